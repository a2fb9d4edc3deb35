"""What a page shows of each dialect: labels, fragments, the hasty counterfactual, side by side."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlib.fixtures import capture, tools
from agentlib.stepper.abreast import Abreast
from agentlib.stepper.hasty import HASTY
from agentlib.stepper.labels import fragment, label
from agentlib.stepper.replay import Replay
from agentlib.stepper.widget import WIDGET_VIEW, Stepper
from workbook.pages.page import events

NAMES = ("success_2_edit", "chat_edit", "messages_edit")


@pytest.mark.parametrize("name", NAMES)
def test_the_fragments_of_each_dialect_are_the_same_texts(name):
    told = [fragment(event.data) for event in capture(name).events]
    joined = "".join(text for text in told if text)

    assert joined.startswith("I can see the bug in add(): it subtracts. I will repair it.")
    assert joined.endswith(
        '{"path": "calculator.py", "old": "return a - b", "new": "return a + b"}'
    )


def test_labels_name_what_an_event_tells():
    chat = [label(event.data) for event in capture("chat_edit").events]
    messages = [label(event.data) for event in capture("messages_edit").events]

    assert chat[:2] == ["chunk role", "chunk content"]
    assert chat[4:6] == ["chunk tool_calls edit", "chunk tool_calls"]
    assert chat[-2:] == ["chunk finish_reason tool_calls", "chunk usage"]
    assert messages[1] == "content_block_start text"
    assert messages[7] == "content_block_start edit"
    assert label({"object": "error"}) == "event without a type"
    assert label({"type": "response.output_item.added", "item": {"name": "read"}}).endswith(" read")


def test_a_table_of_events_shows_the_fragments_of_every_dialect():
    for name in NAMES:
        assert '"return a ' in repr(events(capture(name))).replace("\\", "")


KEYS = st.sampled_from(
    [
        "type",
        "choices",
        "delta",
        "tool_calls",
        "function",
        "arguments",
        "name",
        "id",
        "index",
        "finish_reason",
        "content_block",
        "content",
        "item",
        "item_id",
        "usage",
        "text",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ("content_block_start", "content_block_stop", "response.output_item.done", "x")
)


@given(st.dictionaries(KEYS, JSON, max_size=5), KINDS)
def test_no_event_is_too_strange_to_be_named_or_looked_at(native, kind):
    adapters = [adapter() for adapter in HASTY]
    for event in (native, {**native, "type": kind}):
        assert isinstance(label(event), str)
        assert fragment(event) is None or isinstance(fragment(event), str)
        for adapter in adapters:
            adapter.accept(event)
            adapter.end()


@pytest.mark.parametrize(
    ("name", "event", "calls"),
    [
        ("success_2_edit", 16, ["call_edit_1"]),
        ("chat_edit", 10, ["call_edit_1"]),
        ("messages_edit", 13, ["call_edit_1"]),
        ("chat_two_calls", 8, ["call_read_1", "call_read_2"]),
    ],
)
def test_a_hasty_adapter_acts_where_its_dialect_says_that_a_call_is_done(name, event, calls):
    hasty = Replay(capture(name), tools()).trace.hasty

    assert [action.call_id for action in hasty] == calls
    assert {action.event for action in hasty} == {event}


@pytest.fixture
def abreast():
    return Abreast(*(Stepper(capture(name), tools(), index=8) for name in NAMES))


def test_steppers_side_by_side_show_each_as_it_is(abreast):
    data, metadata = abreast._repr_mimebundle_()

    assert data["text/plain"] == "\n\n".join(map(repr, abreast.steppers)) == repr(abreast)
    assert data[WIDGET_VIEW]["model_id"] == abreast.model_id
    assert metadata == {}
    for stepper in abreast.steppers:
        assert stepper.frame._repr_html_() in data["text/html"]


def test_each_of_them_is_stepped_for_itself(abreast):
    first, second, _ = abreast.steppers
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first.run()

    assert (first.index, second.index) == (first.last, 8)
    assert list(abreast.children) == list(abreast.steppers)

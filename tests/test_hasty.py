"""Three hasty adapters: what each executes, when, and with which arguments, in all four APIs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlib.fixtures import capture, capture_names, tools
from agentlib.stepper import hasty
from agentlib.stepper.hasty import HASTY, ActsAtItemDone, ActsWhenItParses, FillsTheCut, Hasty
from agentlib.stepper.preview import MAX_CHARACTERS, Preview
from agentlib.stepper.replay import Replay

EDIT = {"path": "calculator.py", "old": "return a - b", "new": "return a + b"}


def each(*numbers):
    """The same response in each API, with a number that differs."""
    names = ("success_2_edit", "chat_edit", "messages_edit")
    return list(zip(names, numbers, strict=True))


def acted(adapter, stream):
    """What the adapter executed: at which event, which call ID, with which arguments."""
    trying = adapter()
    told = [action for event in stream.events for action in trying.accept(event.data)]
    told += trying.end()
    assert told == trying.actions
    return [(action.event, action.call_id, action.arguments) for action in told]


@pytest.mark.parametrize(("name", "event"), each(16, 10, 13))
def test_one_acts_where_its_api_says_that_a_call_is_done(name, event):
    assert acted(ActsAtItemDone, capture(name)) == [(event, "call_edit_1", EDIT)]


@pytest.mark.parametrize(("name", "event"), each(12, 6, 9))
def test_one_acts_on_half_a_path(name, event):
    assert acted(ActsWhenItParses, capture(name)) == [(event, "call_edit_1", {"path": "calcul"})]


@pytest.mark.parametrize(("name", "event"), each(18, 10, 14))
def test_one_acts_at_any_end(name, event):
    stream = capture(name)
    (whole,) = acted(FillsTheCut, stream)
    assert whole[1:] == ("call_edit_1", EDIT)
    assert whole[0] >= event


@pytest.mark.parametrize(("name", "after"), each(13, 7, 10))
def test_one_fills_what_a_cut_left_out_with_an_empty_object(name, after):
    stream = capture(name).cut(after=after)
    assert acted(FillsTheCut, stream) == [(after + 1, "call_edit_1", {})]
    assert acted(ActsAtItemDone, stream) == []
    assert Replay(stream, tools()).decision is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("success_2_edit", "incomplete"),
        ("chat_edit", "length"),
        ("messages_edit", "max_tokens"),
        ("gemini_edit", "MAX_TOKENS"),
    ],
)
def test_a_stop_for_length_is_a_completion_to_each_of_them(name, reason):
    stream = capture(name).stop(reason)
    for adapter in HASTY:
        assert [call_id for _, call_id, _ in acted(adapter, stream)] == ["call_edit_1"]
    assert Replay(stream, tools()).decision is None


SAID_AGAIN = {
    "chat": ({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},),
    "messages": ({"type": "content_block_stop", "index": 0}, {"type": "message_stop"}),
    "gemini": (
        {"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    ),
    "responses": (
        {"type": "response.function_call_arguments.done", "item_id": "0"},
        {"type": "response.completed"},
    ),
}
BEGUN = {
    "chat": lambda n, text: {"choices": [{"delta": {"tool_calls": [chat_call(n, text)]}}]},
    "messages": lambda n, _: {
        "type": "content_block_start",
        "index": n,
        "content_block": {"type": "tool_use", "id": f"call_{n}", "name": "t"},
    },
    "gemini": lambda n, _: {
        "candidates": [{"content": {"parts": [{"functionCall": {"name": "t", "id": f"call_{n}"}}]}}]
    },
    "responses": lambda n, text: {
        "type": "response.output_item.added",
        "item": {
            "type": "function_call",
            "id": str(n),
            "call_id": f"call_{n}",
            "name": "t",
            "arguments": text,
        },
    },
}


def chat_call(number, text):
    function = {"name": "t", "arguments": text}
    return {"index": number, "id": f"call_{number}", "function": function}


@pytest.mark.parametrize("adapter", HASTY)
@pytest.mark.parametrize("provider", BEGUN)
@pytest.mark.parametrize("text", ["{}", '{"a": x'])
def test_however_often_a_stream_ends_each_call_is_parsed_once(monkeypatch, adapter, provider, text):
    parsed = []
    monkeypatch.setattr(
        hasty, "_object_of", lambda text, otherwise: parsed.append(text) or otherwise
    )
    trying = adapter()
    for number in range(30):
        trying.accept(BEGUN[provider](number, text))
    for _ in range(30):
        for event in SAID_AGAIN[provider]:
            trying.accept(event)
    trying.end()
    assert len(parsed) <= 30
    if adapter is FillsTheCut:
        assert len(trying.actions) == 30


def test_a_call_that_comes_after_an_end_is_acted_on_at_the_next():
    for adapter in (ActsAtItemDone, FillsTheCut):
        trying = adapter()
        (end,) = SAID_AGAIN["chat"]
        events = (BEGUN["chat"](0, '{"a": 1}'), end, BEGUN["chat"](1, '{"b": 2}'), end, end)
        acts = [[action.call_id for action in trying.accept(event)] for event in events]
        assert acts == [[], ["call_0"], [], ["call_1"], []]


def test_a_call_without_arguments_runs_when_its_object_is_whole():
    assert acted(ActsWhenItParses, capture("success_3_test")) == [(4, "call_test_1", {})]


def test_a_call_that_never_sent_fragments_has_those_of_its_done():
    natives = [e for e in capture("success_2_edit").events if not e.data["type"].endswith("delta")]
    trying = FillsTheCut()
    for event in natives:
        trying.accept(event.data)
    assert [action.arguments for action in trying.actions] == [EDIT]


def test_arguments_that_are_no_object_are_handed_on_as_text_or_filled():
    stream = capture("success_3_test").replace('"{}"', '"[1"')
    assert [a for *_, a in acted(ActsAtItemDone, stream)] == ["[1"]
    assert acted(ActsWhenItParses, stream) == []
    assert [a for *_, a in acted(FillsTheCut, stream)] == [{}]


@pytest.mark.parametrize("name", capture_names())
def test_none_executes_a_call_twice_and_the_stepper_counts_the_first(name):
    stream = capture(name)
    for adapter in HASTY:
        ids = [call_id for _, call_id, _ in acted(adapter, stream)]
        assert len(ids) == len(set(ids))
    assert Hasty is ActsAtItemDone
    counted = Replay(stream, tools()).trace.hasty
    assert [(a.event, a.call_id, a.arguments) for a in counted] == acted(Hasty, stream)


# The preview

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4)


@given(OBJECTS, st.data())
def test_a_preview_of_a_whole_text_is_its_value_wherever_it_is_cut(value, draw):
    text = json.dumps(value)
    middle = draw.draw(st.integers(0, len(text)))
    preview = Preview()
    preview.feed(text[:middle])
    early = preview.value()
    assert early is None or set(early) <= {*value, *(key[:n] for key in value for n in range(4))}
    preview.feed(text[middle:])
    assert preview.closed
    assert preview.value() == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("  ", None),
        ("{", {}),
        ('{"a', None),
        ('{"a": "b', {"a": "b"}),
        ('{"a": "b\\', None),
        ('{"a": "x", "b\\', {"a": "x"}),
        ('{"a": "x", "b"', {"a": "x"}),
        ('{"a": {"b": [1, 2', {"a": {"b": [1, 2]}}),
        ('{"a": tr', None),
        ('{"a": 1, "b": tr', {"a": 1}),
        ("[1", None),
        ("]}{", None),
        ("{" * 9_000, None),
    ],
)
def test_a_preview_closes_what_is_open(text, value):
    preview = Preview()
    preview.feed(text)
    assert preview.value() == value


def test_a_long_text_is_not_previewed():
    preview = Preview()
    preview.feed('{"a": "' + "x" * MAX_CHARACTERS)
    assert preview.value() is None

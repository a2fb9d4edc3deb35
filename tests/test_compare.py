"""Adapters on one timeline: what each would have executed, in text and in HTML."""

import re

import pytest

from agentlib.conversation import Catalog
from agentlib.fixtures import capture, capture_names, tools
from agentlib.recordings.capture import Capture
from agentlib.stepper.comparison import Gated, compare
from agentlib.stepper.hasty import HASTY, ActsAtItemDone, Hasty
from agentlib.stepper.replay import Replay


class Own:
    """An adapter as a reader writes one: it acts at the first event, and fails at the third."""

    def __init__(self, catalog):
        self.catalog = catalog
        self.events = 0

    def accept(self, event):
        event.clear()
        self.events += 1
        if self.events == 3:
            raise RuntimeError("<b>no more</b>")
        return [("call_1", "<img src=x>", '{"a": 1}')] if self.events == 1 else None

    def end(self):
        return None


def test_each_has_its_line_and_what_it_executed():
    assert repr(compare(capture("disconnect"), Hasty, Gated)) == (
        "disconnect · 8 events and the end\n"
        "  ActsAtItemDone  ······█··  executed 1 tool\n"
        "  Gated           ········✕  executed 0 tools\n"
        '  ActsAtItemDone  at event 7: edit {"path":"calculator.py","old":"return a - b",'
        '"new":"return a + b"}\n'
        "  Gated           refuses at the end of the stream, after event 8: the stream ended "
        "before its terminal event\n"
        "  █ executes   ✕ refuses the response   · neither"
    )


@pytest.mark.parametrize("name", capture_names())
def test_gated_executes_what_the_gate_releases_and_nothing_else(name):
    stream = capture(name)
    for response in stream.responses:
        replay = Replay(stream, tools(), response=response.number)
        (row,) = compare(stream, Gated, tools=tools(), response=response.number).rows
        gate = replay.trace.gate[-1]
        calls = replay.decision.calls if replay.decision is not None else ()
        assert [a.call_id for a in row.actions] == [call.call_id for call in calls]
        assert {a.event for a in row.actions} <= {gate.at}
        assert (row.refused_at, row.reason) == (
            (None, "") if replay.failure is None else (gate.at, replay.failure.reason)
        )


def test_at_every_cut_the_gate_executes_nothing_and_the_hasty_do():
    whole = capture("success_2_edit")
    for after in range(len(whole.events)):
        *hasty, gated = compare(whole.cut(after=after), *HASTY, Gated, tools=tools()).rows
        assert not gated.actions
        assert bool(hasty[-1].actions) is (after >= 11)


def test_an_adapter_of_the_readers_own_is_compared_and_cannot_spoil_the_capture():
    stream = capture("success_3_test")
    (own, gated) = compare(stream, Own, Gated, tools=tools()).rows
    assert [(a.event, a.call_id, a.arguments) for a in own.actions] == [(1, "call_1", '{"a": 1}')]
    assert (own.refused_at, own.reason) == (3, "RuntimeError: <b>no more</b>")
    assert len(gated.actions) == 1
    assert stream == capture("success_3_test")


def test_what_is_no_adapter_is_said_to_be_none():
    with pytest.raises(TypeError, match="neither accept and end"):
        compare(capture("disconnect"), dict)
    with pytest.raises(ValueError, match="from 1 to 1"):
        compare(capture("disconnect"), Hasty, response=2)


def test_a_long_stream_has_several_events_to_a_character():
    delta = {"type": "response.output_text.delta", "item_id": "m", "delta": "x"}
    natives = [event.data for event in capture("disconnect").events]
    long = Capture.from_events([*natives[:3], *[delta] * 400, *natives[3:]], "long")
    shown = compare(long, ActsAtItemDone, Gated)
    assert "408 events and the end, 7 events to a character" in repr(shown)
    bars = re.findall("[·█✕]{20,}", repr(shown))
    assert {len(bar) for bar in bars} == {59}
    assert bars[0].index("█") == (407 - 1) // 7


def test_hostile_text_is_escaped_and_made_visible():
    stream = Capture.from_events(capture("hostile").events, "<script>\u202e")
    shown = compare(stream, Own, *HASTY, Gated, tools=Catalog())
    assert "\u202e" not in repr(shown) + shown._repr_html_()
    assert not re.search(r"<(img|script|b|a)\b", shown._repr_html_(), re.IGNORECASE)
    assert "&lt;img src=x&gt;" in shown._repr_html_()


def test_its_html_is_a_table_that_says_what_its_text_says():
    shown = compare(capture("disconnect"), Hasty, Gated)
    html = shown._repr_html_()
    assert html.count('scope="row"') == 2
    for words in ("······█··", "1 tool", "refuses at the end of the stream"):
        assert words in html
        assert words in repr(shown)


# More than any interpreter writes: how much that is differs between versions.
TOO_DEEP = 100_000


def nested(depth, inner, close):
    value = 1
    for _ in range(depth):
        value = {"a": value} if close == "}" else [value]
    return {"a": value} if inner else value


class Unshown:
    def __repr__(self):
        raise ValueError("no")


@pytest.mark.parametrize(
    "arguments",
    [
        nested(TOO_DEEP, True, "}"),
        nested(TOO_DEEP, True, "]"),
        nested(TOO_DEEP, False, "]"),
        {"a": 10**5_000},
        10**5_000,
        {(1, 2): 3},
        {"a": Unshown()},
        Unshown(),
    ],
    ids=["objects", "arrays", "no object", "a number", "only it", "a name", "a value", "it"],
)
def test_arguments_that_cannot_be_written_are_told_of_all_the_same(arguments):
    class Deep(Own):
        def accept(self, event):
            return [("call_1", "edit", arguments)] if event["type"] == "response.created" else None

    compared = compare(capture("disconnect"), Deep)
    assert "at event 1: edit …" in repr(compared)
    assert "edit …" in compared._repr_html_()


def test_a_stream_whose_arguments_nest_deep_is_compared():
    for depth in (100, 500, 990, 5_000):
        text = '{"a":' * depth + "1" + "}" * depth
        call = {"index": 0, "id": "call_1", "function": {"name": "edit", "arguments": text}}
        events = [
            {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        ]
        compared = compare(Capture.from_events(events), *HASTY, Gated)
        assert re.search("ActsAtItemDone +at event 2: edit", repr(compared))
        assert "edit" in compared._repr_html_()

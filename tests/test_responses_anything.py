"""Responses streams that hold anything at all in any place: a failure, and never a crash."""

import copy
import time

import pytest
from streams import (
    BARE,
    ONE_CALL,
    TEXT_THEN_CALL,
    THREE_CALLS,
    TOOLS,
    Framing,
    Say,
    Story,
    after,
    output,
    read,
    refused,
    rejected,
    said,
    tell,
    unnumbered,
)

from agentlib.failures import ProtocolViolation, StreamCut


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


ANYTHING = [
    *(None, True, 0, -1, float("nan"), 10**5000, "", "x" * 100_000, "\ud800", "\x1b[2J\u202e"),
    *([], {}, {"a": {"b": [None]}}, [None]),
    *({"\ud800": "\udc00"}, {"type": "function_call"}, nested(60), nested(5000)),
]


def places(value, where=()):
    yield where
    inner = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else inner:
        yield from places(item, (*where, key))


def put(value, where, new):
    if not where:
        return new
    changed = copy.copy(value)
    changed[where[0]] = put(changed[where[0]], where[1:], new)
    return changed


def without_usage(decision):
    return said(decision)[:-1]


@pytest.mark.parametrize(
    "events",
    [
        tell(TEXT_THEN_CALL, Framing(piece=40)),
        tell(Story((Say(("No.",), refusal=True),)), Framing(numbered=False)),
        tell(ONE_CALL, Framing(whole="added", before=("response.queued",))),
    ],
    ids=["text then call", "refusal", "whole at added"],
)
def test_anything_anywhere_is_a_failure_or_changes_nothing(events):
    reference = without_usage(read(events, TOOLS).decision)
    for number, event in enumerate(events):
        for where in places(event):
            for value in ANYTHING:
                changed = [*events[:number], put(event, where, value), *events[number + 1 :]]
                outcome = read(changed, TOOLS)
                if outcome.decision is not None:
                    assert without_usage(outcome.decision) == reference
                    continue
                assert len(str(outcome.failure)) < 2500
                assert str(outcome.failure).encode()


@pytest.mark.parametrize(
    "event", [None, [], "x", 7, {}, {"type": None}, {"type": []}, nested(5000)]
)
def test_what_is_no_event_is_a_failure_and_no_crash(event):
    assert isinstance(rejected([event]), ProtocolViolation)
    assert refused(after(tell(ONE_CALL, BARE), "in_progress", event)).event == 3


def test_what_is_kept_verbatim_may_hold_anything():
    for value in ANYTHING:
        item = {"type": "reasoning", "id": "rs_1", "summary": value, "encrypted_content": value}
        begun = {"type": "response.output_item.added", "output_index": 1, "item": item}
        events = after(output(ONE_CALL, lambda i, n=item: [*i, n]), "output_item.done", begun)
        outcome = read(events, TOOLS, native=True)
        if outcome.decision is None:
            assert "too deep" in outcome.failure.reason
        else:
            assert len(outcome.decision.native.items) == 2
        refused(events, "replayable")


def test_an_ending_may_hold_anything():
    for kind in ("response.failed", "response.incomplete", "error"):
        for name in ("response", "error", "code", "message", "incomplete_details", "usage"):
            for value in ANYTHING:
                assert refused([{"type": kind, name: value}], "completed")
                body = {"id": "x", name: value}
                assert refused([{"type": kind, "response": body}], "completed")


def test_no_reason_grows_with_what_is_wrong():
    # Hundreds of things wrong, each of its own kind and name, still make one short reason.
    items = [{"type": f"kind_{n}" + "k" * 500, "id": f"x_{n}"} for n in range(500)]
    failure = refused(output(Story(()), lambda _: items), "replayable")
    assert "and 492 more" in failure.reason
    parts = [{"type": "output_text", "text": f"t{n}"} for n in range(500)]
    message = {"type": "message", "id": "m", "status": "completed", "content": parts}
    assert refused(output(Story(()), lambda _: [message]), "texts_equal")


def test_cost_is_linear_in_items_and_answers():
    # A scan of all items for each item would take far longer than this bound.
    begun = time.process_time()
    added = [
        {
            "type": "response.output_item.added",
            "output_index": n,
            "item": {"type": "x", "id": f"{n}"},
        }
        for n in range(20_000)
    ]
    assert isinstance(rejected([tell(Story(()))[0], *added]), StreamCut)
    shells = [{"type": "shell_call", "id": f"s{n}", "call_id": f"c{n}"} for n in range(20_000)]
    refused(output(Story(()), lambda _: shells), "replayable")
    assert time.process_time() - begun < 8


def test_the_reading_of_a_stream_leaves_its_events_alone():
    events = unnumbered(tell(THREE_CALLS))
    before = copy.deepcopy(events)
    assert read(events, TOOLS, native=True).decision
    assert events == before

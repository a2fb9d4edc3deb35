"""Route each fragment of arguments to its call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong
from workbook.pages.compose import composed

DELTA = "response.function_call_arguments.delta"
ADDED = "response.output_item.added"


def _pending(natives: list[dict[str, Any]]) -> dict[str, str]:
    call_of: dict[str, str] = {}
    pending: dict[str, str] = {}
    for native in natives:
        item = native.get("item", {})
        if native["type"] == ADDED and item["type"] == "function_call":
            call_of[item["id"]] = item["call_id"]
            pending[item["call_id"]] = ""
        elif native["type"] == DELTA:
            pending[call_of[native["item_id"]]] += native["delta"]
    return pending


def _natives(stream: Capture, count: int) -> list[dict[str, Any]]:
    return [deepcopy(event.data) for event in stream.events[:count]]


def _kind(stream: Capture, count: int) -> str:
    return str(stream.events[count - 1].data["type"]) if count else "nothing was read yet"


def _trial(stream: Capture, count: int, *, unknown: str | None = None, hostile: bool) -> Trial:
    expected = None if unknown is not None else _pending(_natives(stream, count))

    def judge(outcome: Outcome) -> Wrong | None:
        if expected is None:
            return _judge_refusal(outcome, unknown or "")
        return _judge_pending(outcome, expected, stream, count)

    return Trial(
        stream=stream.name,
        place=f"event {count}: {_kind(stream, count)}" if count else "before the first event",
        prepare=lambda: (_natives(stream, count),),
        judge=judge,
        hostile=hostile,
        capture=stream,
        event=count,
    )


def _judge_refusal(outcome: Outcome, unknown: str) -> Wrong | None:
    if outcome.error is not None:
        return None
    return Wrong(
        f"A fragment names item {unknown!r}, which was never added. Whose call is it? A guess "
        "would put a part of one call's arguments into another's.",
        "an error",
    )


def _judge_pending(
    outcome: Outcome, expected: dict[str, str], stream: Capture, count: int
) -> Wrong | None:
    shown = repr(expected)
    if outcome.error is not None:
        return Wrong("Every event so far is in order.", shown)
    if not isinstance(outcome.value, Mapping):
        return Wrong("It returns a dict: the argument text so far, by call ID.", shown)
    seen = {key: text for key, text in outcome.value.items() if text != ""}
    if seen == {key: text for key, text in expected.items() if text}:
        return None
    items = {n["item"]["id"] for n in _natives(stream, count) if n["type"] == ADDED}
    mistaken = [key for key in seen if key in items and key not in expected]
    if mistaken:
        return Wrong(
            f"{mistaken[0]!r} is an item ID, a place in this response's output. The call ID names "
            "the call, and its result goes back under that.",
            shown,
        )
    return Wrong("Each fragment belongs to the call whose item its item_id names.", shown)


def _without_places(stream: Capture) -> Capture:
    """Return the stream as a server sends it that gives a fragment its item ID alone."""
    natives = _natives(stream, len(stream.events))
    for native in natives:
        if native["type"] == DELTA:
            del native["output_index"]
    return Capture.from_events(natives, "no places", "responses")


def _trials() -> Iterator[Trial]:
    edit, two = capture("success_2_edit"), capture("interleaved")
    # Call IDs that look like the other call's item ID: only the table tells them apart.
    crossed = two.replace("call_read_1", "fc_two").replace("call_read_2", "fc_one")
    crossed = crossed.replace('"fc_1"', '"fc_one"').replace('"fc_2"', '"fc_two"')
    crossed = Capture.from_events(crossed.events, "crossed IDs", "responses")
    named = (capture("text_only"), edit, two, capture("disconnect_mid_arguments"))
    three = composed("three calls", ("list", "{}"), ("read", '{"path": "a"}'), ("test", "{}"))
    unplaced = _without_places(two)
    for stream in (*named, three, crossed, unplaced):
        for count in range(len(stream.events) + 1):
            yield _trial(stream, count, hostile=stream in (crossed, unplaced))
    for wrong in ("fc_7", "call_edit_1"):
        lost = edit.replace('"item_id":"fc_2"', f'"item_id":"{wrong}"', event=13)
        lost = Capture.from_events(lost.events, f"a fragment of {wrong}", "responses")
        for count in range(13, len(lost.events) + 1):
            yield _trial(lost, count, unknown=wrong, hostile=True)


HINTS = (
    (
        "Two kinds of event matter. `response.output_item.added` has an `item` with its `id`, "
        "its `type` and, for a function_call, its `call_id`. The delta has an `item_id` and a "
        "`delta`."
    ),
    (
        "Keep a dict from item ID to call ID. Look a delta's item up with square brackets, not "
        "with .get(): an item that was never added then raises KeyError by itself."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="arguments_by_call(events)",
        trials=_trials,
        hint_texts=HINTS,
    )

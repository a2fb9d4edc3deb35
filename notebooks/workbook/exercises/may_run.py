"""Which calls may run, after these events?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong, listed

TERMINAL = {
    "response.completed": "",
    "response.incomplete": "The response is incomplete: its arguments may be whole, it is not.",
    "response.failed": "The response failed: what was buffered is discarded, for good.",
    "error": "An error ended the response: what was buffered is discarded, for good.",
}
WHOLE = "response.function_call_arguments.done"
ITEM = "response.output_item.done"


def _end(natives: list[dict[str, Any]]) -> dict[str, Any] | None:
    return next((native for native in natives if native["type"] in TERMINAL), None)


def _agrees(end: dict[str, Any]) -> bool:
    body = end.get("response") or {}
    return body.get("status") == "completed" and body.get("error") is None


def _released(natives: list[dict[str, Any]]) -> list[str]:
    end = _end(natives)
    if end is None or end["type"] != "response.completed" or not _agrees(end):
        return []
    return [i["call_id"] for i in end["response"]["output"] if i["type"] == "function_call"]


def _why_nothing(natives: list[dict[str, Any]]) -> str:
    end = _end(natives)
    if end is not None and end["type"] == "response.completed":
        if not end["response"]["output"]:
            return "The end restates what the response holds, and this call is not among it."
        if not _agrees(end):
            return "The event says completed and its body does not: both must."
        return "Reading stops at the first terminal event; what follows is no part of the response."
    if end is not None:
        return TERMINAL[end["type"]]
    kinds = {native["type"] for native in natives}
    if "response.done" in kinds:
        return "response.done is another API's word: it completes nothing here."
    if kinds & {WHOLE, ITEM}:
        return "The arguments are done: one string is whole. The response is not complete."
    return "The response has not completed: nothing may run yet."


def _trial(stream: Capture, count: int, *, hostile: bool) -> Trial:
    natives = [event.data for event in stream.events[:count]]
    expected = _released(natives)

    def judge(outcome: Outcome) -> Wrong | None:
        shown = listed(expected)
        if outcome.error is not None:
            why = "It returns the call IDs that may run" if natives else "The list is empty yet"
            return Wrong(f"{why}; nothing in these events is a reason to raise.", shown)
        if not isinstance(outcome.value, Iterable) or isinstance(outcome.value, str | bytes | dict):
            return Wrong("It returns a list of call IDs, often an empty one.", shown)
        seen = list(outcome.value)
        if sorted(seen) == sorted(expected):
            return None
        extra = [call_id for call_id in seen if call_id not in expected]
        if extra and not expected:
            return Wrong(_why_nothing(natives), shown)
        if len(seen) > len(expected):
            return Wrong("Each call of the completed response may run once, no other.", shown)
        return Wrong("The response is complete and well: each of its calls may run.", shown)

    kind = f": {natives[-1]['type']}" if natives else ""
    return Trial(
        stream=stream.name,
        place=f"event {count}{kind}" if count else "before the first event",
        prepare=lambda: (deepcopy(natives),),
        judge=judge,
        hostile=hostile,
        capture=stream,
        event=count,
    )


def _damaged() -> Iterator[Capture]:
    edit, failed, incomplete = map(capture, ("success_2_edit", "failed", "incomplete"))
    whole = edit.events
    alias = edit.replace('"response.completed"', '"response.done"', event=18)
    yield Capture.from_events(alias.events, "another API's word", "responses")
    wrong = edit.replace('"completed","error":null', '"completed","error":{"code":"x"}', event=18)
    yield Capture.from_events(wrong.events, "completed with an error", "responses")
    yield _ended_without("an item left out at the end", edit)
    for name, stopped in (("failed", failed), ("incomplete", incomplete)):
        glued = [*(event.data for event in stopped.events), whole[-1].data]
        yield Capture.from_events(glued, f"{name}, then completed", "responses")


def _ended_without(name: str, stream: Capture) -> Capture:
    natives = [deepcopy(event.data) for event in stream.events]
    natives[-1]["response"]["output"] = []
    return Capture.from_events(natives, name, "responses")


def _trials() -> Iterator[Trial]:
    for name in ("text_only", "success_3_test", "success_2_edit", "interleaved"):
        stream = capture(name)
        for count in range(len(stream.events) + 1):
            yield _trial(stream, count, hostile=False)
    names = ("disconnect", "disconnect_mid_arguments", "incomplete", "failed", "error_event")
    hostile = (*map(capture, (*names, "status_disagrees", "after_completed")), *_damaged())
    for stream in hostile:
        for count in range(len(stream.events) + 1):
            yield _trial(stream, count, hostile=True)


HINTS = (
    (
        "Look for the first terminal event: `response.completed`, `response.failed`, "
        "`response.incomplete` or `error`. Before it, the answer is an empty list."
    ),
    (
        "Of the four, only `response.completed` can release. It also has a body: does that "
        "say the same?"
    ),
    (
        'Only `response.completed` can release, and only where its body, event["response"], '
        'agrees: its "status" is "completed" and its "error" is None. The calls are those '
        'items of its "output" whose "type" is "function_call".'
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="may_run(events)",
        trials=_trials,
        hint_texts=HINTS,
    )

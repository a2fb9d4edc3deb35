"""A fault of the reader's own, which a hasty adapter runs and the gate refuses."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from agentlib.fixtures import capture, tools
from agentlib.recordings.capture import Capture
from agentlib.recordings.edits import EditError
from agentlib.stepper.replay import Replay
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

_NO_EVENT = (
    "Your fault names an event that this stream does not have: it is shorter. Count from the end: "
    "len(stream.events)."
)
_NO_TEXT = "Your fault needs something that this stream does not have. Find one that each has."
_ANOTHER = "This is another stream. Damage the one that your function is given: `stream`."
STREAMS = ("success_2_edit", "success_3_test", "interleaved", "whole_at_done")


def _response_ids(events: list[dict[str, Any]]) -> set[str]:
    bodies = [event.get("response") for event in events]
    return {str(body["id"]) for body in bodies if isinstance(body, dict) and body.get("id")}


def _is_made_of(stream: Capture, damaged: Capture) -> bool:
    """Say whether `damaged` is an edit of `stream`, or has one of its events or its response."""
    if damaged.edits and damaged.name == stream.name:
        return True
    own = [event.data for event in stream.events]
    seen = [event.data for event in damaged.events]
    return any(data in own for data in seen) or bool(_response_ids(own) & _response_ids(seen))


def _judge(stream: Capture, outcome: Outcome) -> Wrong | None:
    damaged = outcome.value
    if isinstance(outcome.error, EditError):
        missing = "no event" in str(outcome.error) or "cannot cut" in str(outcome.error)
        return Wrong(_NO_EVENT if missing else _NO_TEXT, "a fault that every stream can have")
    if outcome.error is not None or not isinstance(damaged, Capture):
        return Wrong("A fault takes a stream and returns a damaged one.", "a Capture")
    if not _is_made_of(stream, damaged):
        return Wrong(_ANOTHER, f"{stream.name}, damaged")
    replay = Replay(damaged, tools())
    if replay.failure is None:
        return Wrong(
            "The gate releases this stream: it is not damaged, or not so that it matters.",
            "a stream that the gate refuses",
        )
    if not replay.run().hasty:
        return Wrong(
            "A hasty adapter runs nothing here either: the call does not look finished.",
            "a stream whose call is done, in a response that is not complete",
        )
    return None


def _trials() -> Iterator[Trial]:
    for name in STREAMS:
        stream = capture(name)
        yield Trial(
            stream=name,
            place=f"{len(stream.events)} events",
            prepare=lambda stream=stream: (stream,),  # type: ignore[misc]
            judge=partial(_judge, stream),
            hostile=True,
            capture=stream,
            event=len(stream.events),
        )


HINTS = (
    "The adapter acts when the arguments are done. Let that event through.",
    "Which events come after the arguments are done? Lose one that the gate needs.",
    "stream.cut(after=n) ends it after event n; len(stream.events) is the number of its last.",
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=1,
        minutes=5,
        signature="my_fault(stream)",
        trials=_trials,
        hint_texts=HINTS,
    )

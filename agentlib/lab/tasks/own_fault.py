"""Exercise 06: a fault of the reader's own, which a hasty adapter runs and the gate refuses."""

from __future__ import annotations

from collections.abc import Iterator

from agentlib.lab.checking import Exercise, Outcome, Trial, Wrong
from agentlib.lab.replay import Replay
from agentlib.lab.scenarios import capture, tools
from agentlib.transport.capture import Capture

STREAMS = ("success_2_edit", "success_3_test", "interleaved", "whole_at_done")


def _judge(outcome: Outcome) -> Wrong | None:
    damaged = outcome.value
    if outcome.error is not None or not isinstance(damaged, Capture):
        return Wrong("A fault takes a stream and returns a damaged one.", "a Capture")
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
            judge=_judge,
            hostile=True,
            capture=stream,
            event=len(stream.events),
        )


OWN_FAULT = Exercise(
    number="06",
    title="A fault of your own",
    size=1,
    minutes=5,
    signature="my_fault(stream)",
    trials=_trials,
    hint_texts=(
        "The adapter acts at the item's done. Let that event through, and harm what comes later.",
        "stream.cut(after=n) ends it after event n; len(stream.events) is the number of its last.",
    ),
)

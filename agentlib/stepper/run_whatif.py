"""What a change of a run can be about, and how the changed run differs from the recorded one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from agentlib.stepper.run_frame import RunFrame
from agentlib.stepper.run_replay import CHANGES, Change, ChangeName
from agentlib.stepper.run_trace import RunTrace
from agentlib.stepper.run_words import outcome_words

# From one moment to another, a change is about a third: where it takes place.
Interval = tuple[int, int, int]

_WORDS: dict[ChangeName, str] = {
    "stop": "the run is stopped at moment {}",
    "cut": "the stream ends after moment {}",
    "deny": "the approval is denied, at moment {}",
    "fail": "the tool that begins at moment {} fails",
    "twice": "the saved run is resumed once more, after moment {}",
}
_CUTS = frozenset({"lifecycle", "text", "arguments", "done"})
NOT_HERE = "cannot {} at moment {}: it can be done at {}"
MAX_PLACES = 6


class ChangeError(ValueError):
    """Raised for a change that cannot be made, and says where it can."""


def targets(trace: RunTrace) -> dict[str, list[Interval]]:
    """Return for each change the moments at which it can be asked for, and where it is made."""
    found: dict[ChangeName, Callable[[RunTrace], Iterator[Interval]]] = {
        "stop": _stops,
        "cut": _cuts,
        "deny": _denials,
        "fail": _failures,
        "twice": _resumptions,
    }
    return {name: list(found[name](trace)) for name in CHANGES}


def checked(change: Any, trace: RunTrace) -> Change | None:
    """Return a change from what a page sent, [name, moment] or nothing. Raises ChangeError."""
    if change in ([], ()):
        return None
    match change:
        case [str(name), int(moment)] if name in CHANGES:
            known = [target for _, _, target in targets(trace)[name]]
            if moment in known or (name in ("stop", "cut") and _inside(trace, name, moment)):
                return Change(name, moment)
            places = ", ".join(map(str, known[:MAX_PLACES])) or "no moment of this run"
            raise ChangeError(NOT_HERE.format(name, moment, places))
    raise ChangeError(f"expected [name, moment], the name one of {', '.join(CHANGES)}")


def _inside(trace: RunTrace, name: str, moment: int) -> bool:
    return any(first <= moment <= last for first, last, _ in targets(trace)[name])


def difference(change: Change, before: RunTrace, after: RunTrace) -> list[str]:
    """Return in a few lines what a change does."""
    old, new = RunFrame(before, before.last), RunFrame(after, after.last)
    names = ("executed", "pending", "unknown")
    counts = [f"{n} {a} → {b}" for n, a, b in zip(names, old.counts, new.counts, strict=True)]
    ends = " → ".join(
        outcome_words(trace.outcomes[-1]) if trace.outcomes else "no outcome"
        for trace in (before, after)
    )
    seen = [sum(p.kind != "kept back" for p in frame.published) for frame in (old, new)]
    return [
        f"what if {_WORDS[change.name].format(change.moment)}: {ends}",
        f"{' · '.join(counts)} · texts that the user saw {seen[0]} → {seen[1]}",
    ]


def _stops(trace: RunTrace) -> Iterator[Interval]:
    # After the last turn's answer is committed there is nothing left to stop.
    yield from ((k, k, k) for k in range(1, trace.last))


def _cuts(trace: RunTrace) -> Iterator[Interval]:
    yield from ((k, k, k) for k in range(1, trace.last + 1) if trace.moments[k - 1].kind in _CUTS)


def _denials(trace: RunTrace) -> Iterator[Interval]:
    begin = 1
    asked = [k for k in range(1, trace.last + 1) if trace.moments[k - 1].kind == "approval"]
    for moment in asked:
        answered = trace.next_of(("begin",), moment)
        until = answered if answered != moment else trace.last
        target = answered if answered != moment else moment
        yield begin, until, target
        begin = until + 1


def _failures(trace: RunTrace) -> Iterator[Interval]:
    begin = 0
    for bar in sorted((b for b in trace.bars if b.kind == "tool"), key=lambda bar: bar.start):
        if bar.end >= begin:
            yield begin, bar.end, bar.start
            begin = bar.end + 1


def _resumptions(trace: RunTrace) -> Iterator[Interval]:
    if any(moment.label == "resumed" for moment in trace.moments):
        yield 0, trace.last, trace.last

"""A run as a sequence of moments, and what was so at each: its stream, history, budgets, journal.

It is event-sourced, as the trace of one response is: a moment changes a few facts, and each fact
knows the moment from which it holds. Texts only grow, so that their state at a moment is a prefix;
an entry of the history stands from one moment on, and where a saved run is resumed twice, to
another. N moments cost O(N) memory, and a step in any direction a binary search.

Indexes: 0 is before anything, k the state after moment k.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple, TypeAlias, get_args

from agentlib.conversation import Entry, ToolResult
from agentlib.jsonvalues import dumps
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.outcomes import Outcome
from agentlib.stepper.run_buffers import RunBuffer
from agentlib.stepper.run_recorder import Used

Kind: TypeAlias = Literal[
    "begin",
    "turn",
    "opening",
    "lifecycle",
    "text",
    "arguments",
    "done",
    "completed",
    "stopped",
    "released",
    "rejected",
    "approval",
    "tool",
    "result",
    "history",
    "commit",
    "kept",
    "repair",
    "budget",
    "outcome",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
# One more delta of the same text or call is no change.
DELTAS = frozenset({"text", "arguments"})
Lane: TypeAlias = Literal["turn", "model", "gate", "tools", "user"]
LANES: tuple[Lane, ...] = get_args(Lane)
# A person takes hours where a run takes seconds: the wait is drawn no longer than this part.
MOST_OF_A_WAIT = 0.15
VERDICTS = frozenset({"closed", "released", "discarded"})


class Moment(NamedTuple):
    """One moment: its second, its kind, what it is called, a word beside it, and what it changed.

    `turn` is the turn that it belongs to, and `buffer` the place of the buffer that it touched.
    """

    at: float
    kind: Kind
    label: str
    beside: str
    change: str
    turn: int
    buffer: int = -1


class GateIs(NamedTuple):
    """What the gate shows from moment `at` on."""

    at: int
    state: Literal["idle", "closed", "released", "discarded", "waiting", "ended"]
    headline: str


class CallIs(NamedTuple):
    """What is known of a call from moment `at` on.

    `state` is a status of an execution, or "released", "waits for approval", "runs".
    """

    at: int
    call_id: str
    name: str
    state: str
    detail: str = ""


class Span(NamedTuple):
    """Something that stands from moment `start` on, and before `end`; an `end` of 0 is never."""

    start: int
    end: int
    kind: str
    text: str

    def stands(self, index: int) -> bool:
        """Say whether it stands after moment `index`."""
        return self.start <= index and not 0 < self.end <= index


class Bar(NamedTuple):
    """A stretch of a lane, from one moment to another; `row` counts from 0 within the lane.

    `more` is what its label says besides from moment `known` on.
    """

    lane: Lane
    kind: str
    start: int
    end: int
    label: str
    row: int = 0
    more: str = ""
    known: int = 0

    def label_at(self, index: int) -> str:
        """Return the label as it is known after moment `index`."""
        return f"{self.label} · {self.more}" if self.more and self.known <= index else self.label


@dataclass(frozen=True, slots=True)
class RunTrace:
    """A recorded run. `places` has the place of each moment on an axis from 0 to 1.

    `outcomes` are how its starts and resumptions ended, and `used` what was used, after each
    moment; index 0 is before the first.
    """

    title: str
    subtitle: str
    moments: tuple[Moment, ...]
    places: tuple[float, ...]
    used: tuple[Used, ...]
    buffers: tuple[RunBuffer, ...]
    gate: tuple[GateIs, ...]
    calls: tuple[CallIs, ...]
    history: tuple[Span, ...]
    published: tuple[Span, ...]
    bars: tuple[Bar, ...]
    limits: RunLimits
    outcomes: tuple[Outcome, ...]

    @property
    def last(self) -> int:
        """The index of the last moment."""
        return len(self.moments)

    def turn_at(self, index: int) -> int:
        """Return the turn at a moment; 0 before the first."""
        return self.moments[index - 1].turn if index else 0

    def gate_at(self, index: int) -> GateIs:
        """Return what the gate shows."""
        return self.gate[bisect_right(self.gate, index, key=lambda state: state.at) - 1]

    def verdict_at(self, index: int) -> str:
        """Return what the gate says of the latest stream: closed, released or discarded."""
        said = [g.state for g in self.gate if g.at <= index and g.state in VERDICTS]
        return said[-1] if said else "closed"

    def calls_at(self, index: int) -> tuple[CallIs, ...]:
        """Return the latest of each call, in the order in which they were released."""
        stop = bisect_right(self.calls, index, key=lambda call: call.at)
        return tuple({call.call_id: call for call in self.calls[:stop]}.values())

    def history_at(self, index: int) -> tuple[Span, ...]:
        """Return the entries of the history, as the next request would send them."""
        return tuple(span for span in self.history if span.stands(index))

    def published_at(self, index: int) -> tuple[Span, ...]:
        """Return what was committed to the user, and what was kept back."""
        return tuple(span for span in self.published if span.stands(index))

    def buffers_at(self, index: int) -> tuple[RunBuffer, ...]:
        """Return the buffers of the turn at a moment, in the order in which they began."""
        turn = self.turn_at(index)
        return tuple(b for b in self.buffers if b.turn == turn and b.buffer.start <= index)

    def next_change(self, index: int) -> int:
        """Return the next moment that is more than one further delta of the same buffer."""
        found = (k for k in range(index + 1, self.last + 1) if self.is_change(k))
        return next(found, self.last)

    def previous_change(self, index: int) -> int:
        """Return the last change before a moment."""
        return next((k for k in range(index - 1, 0, -1) if self.is_change(k)), 0)

    def is_change(self, index: int) -> bool:
        """Say whether a moment is anything but one more delta of the same buffer."""
        now, before = self.moments[index - 1], self.moments[index - 2]
        same = index > 1 and (now.kind, now.buffer) == (before.kind, before.buffer)
        return not (same and now.kind in DELTAS)

    def next_of(self, kinds: Iterable[Kind], index: int) -> int:
        """Return the next moment of one of these kinds; the moment itself where none is left."""
        wanted = frozenset(kinds)
        found = (k for k in range(index + 1, self.last + 1) if self.moments[k - 1].kind in wanted)
        return next(found, index)


def placed(seconds: Sequence[float], waits: frozenset[int]) -> tuple[float, ...]:
    """Return the place of each moment on an axis from 0 to 1; index 0 is before the first.

    Half of the axis is for the seconds, half for the moments: those of one second stay apart.
    `waits` are the moments before which a person was waited for.
    """
    if not seconds:
        return (0.0,)
    lengths = [0.0, *(after - before for before, after in pairwise(seconds))]
    rest = sum(each for number, each in enumerate(lengths, 1) if number not in waits)
    most = MOST_OF_A_WAIT * rest if rest else float("inf")
    lengths = [min(x, most) if n in waits else x for n, x in enumerate(lengths, 1)]
    total, count = sum(lengths), len(seconds)
    weights = [(x / total if total else 1 / count) / 2 + 1 / count / 2 for x in lengths]
    scale = sum(weights)
    return (0.0, *(min(1.0, place / scale) for place in accumulate(weights)))


class Standing:
    """A list that is replaced from time to time: each item with the moments between it stood."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._open: list[int] = []

    def become(self, at: int, items: Sequence[tuple[str, str]]) -> int:
        """Let the list be `items` from moment `at` on; return how many of them are new."""
        same = 0
        for place, item in zip(self._open, items, strict=False):
            span = self.spans[place]
            if (span.kind, span.text) != item:
                break
            same += 1
        for place in self._open[same:]:
            self.spans[place] = self.spans[place]._replace(end=at)
        new = items[same:]
        first = len(self.spans)
        self.spans += [Span(at, 0, kind, text) for kind, text in new]
        self._open = [*self._open[:same], *range(first, len(self.spans))]
        return len(new)


def entry_words(entry: Entry) -> tuple[str, str]:
    """Return an entry of a history as who speaks and what is said, in one untrusted text."""
    if isinstance(entry, ToolResult):
        return "result", f"{entry.call_id}: {entry.output}"
    said = [text for text in (entry.text, entry.refusal) if text]
    called = [f"calls {c.name} {dumps(c.arguments)} as {c.call_id}" for c in entry.calls]
    called += [f"calls {c.name} {c.arguments} as {c.call_id}" for c in entry.rejected]
    return entry.role, " · ".join([*said, *called])

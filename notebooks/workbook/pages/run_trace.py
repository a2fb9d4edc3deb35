"""The trace of a run: what it told its observers, each with its time, and the rows this makes.

A RunRecorder observes a run and its model and can influence nothing. It keeps what it was told;
the rows of a timeline are made from that alone, once the run has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

from agentlib.assembly import Decision
from agentlib.clock import Clock
from agentlib.conversation import ToolCall, Usage
from agentlib.retry import Opening
from agentlib.runtime.events import (
    ApprovalNeeded,
    BudgetWarning,
    Executed,
    Failed,
    LoopEvent,
    Repaired,
    Turned,
    TurnStarted,
)
from agentlib.runtime.execution import Execution
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.money import exact, total
from agentlib.runtime.outcomes import (
    Outcome,
)
from agentlib.stepper.run_words import outcome_words, seconds, short
from agentlib.vocabulary import Event

Kind: TypeAlias = Literal[
    "opening",
    "backoff",
    "first event",
    "streaming",
    "closing",
    "model",
    "queue",
    "tool",
    "approval",
    "moment",
]
# Names and reasons come from a stream: what a row says of them is short.
MAX_NAME_CHARACTERS = 32
_DID = {
    "executed": "executed",
    "failed": "failed",
    "timed_out": "timed out, may have acted",
    "shown": "shown, nothing was done",
    "denied": "denied, not executed",
    "not_executed": "not executed",
    "unknown": "unknown, may have acted",
}


class Streamed(NamedTuple):
    """A response streamed: when its latest event came, and how many neutral events there were."""

    last: float
    events: int


class Segment(NamedTuple):
    """A stretch of a row, from `start` to `end` in seconds of the run's clock."""

    kind: Kind
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a timeline. `left` has what is left after it of each budget, by name."""

    what: str
    segments: tuple[Segment, ...]
    detail: str
    left: tuple[tuple[str, str], ...] = ()
    inner: bool = False


class RunRecorder:
    """Keeps what a run and its model tell, with the time of each in seconds of `clock`.

    `observe` is for the run, `report` for its model, and `trace` for afterwards. A run that is
    resumed may go on with the same recorder.
    """

    def __init__(self, clock: Clock) -> None:
        self.told: list[tuple[float, Any]] = []
        self._clock = clock

    def observe(self, event: LoopEvent) -> None:
        """Take a step of the loop."""
        self.told.append((self._clock.now(), event))

    def report(self, event: Event | Opening) -> None:
        """Take an opening, or an event of a stream: of a stream only its first and last time."""
        now = self._clock.now()
        at, latest = self.told[-1] if self.told else (now, None)
        if isinstance(event, Opening):
            self.told.append((now, event))
        elif isinstance(latest, Streamed):
            self.told[-1] = (at, Streamed(now, latest.events + 1))
        else:
            self.told.append((now, Streamed(now, 1)))

    def rows(self, outcome: Outcome, limits: RunLimits) -> tuple[Row, ...]:
        """Return the rows of a run that has just ended with `outcome`, under `limits`."""
        return tuple(_Rows(self.told, outcome, limits, self._clock.now()).all())


class _Rows:
    """Makes the rows, from what was told in order."""

    def __init__(
        self,
        told: Iterable[tuple[float, Any]],
        outcome: Outcome,
        limits: RunLimits,
        end: float,
    ) -> None:
        self._told = list(told)
        self._outcome = outcome
        self._limits = limits
        self._end = end
        self._turn: int | None = None
        self._phase: Kind = "model"
        self._openings = 0
        self._cursor = 0.0
        self._segments: list[Segment] = []
        self._calls: tuple[ToolCall, ...] = ()
        self._batch: dict[str, tuple[float, Execution]] = {}
        self._batch_from = 0.0
        self._approval: tuple[float, str] | None = None
        self._used: dict[int, Usage | None] = {}
        for _, each in self._told:
            if isinstance(each, Turned):
                self._used[each.turn] = each.decision.usage
            elif isinstance(each, Failed):
                self._used[each.turn] = getattr(each.failure, "usage", None)

    def all(self) -> Iterator[Row]:
        steps: dict[type, Callable[[float, Any], Iterable[Row]]] = {
            TurnStarted: self._started,
            Opening: self._opening,
            Streamed: self._streamed,
            Turned: self._turned,
            Failed: self._failed,
            Executed: self._executed,
            Repaired: self._repaired,
            BudgetWarning: self._warned,
            ApprovalNeeded: self._waits,
        }
        for at, event in self._told:
            if not isinstance(event, Executed):
                yield from self._flush(at)
            yield from steps[type(event)](at, event)
        yield from self._interrupted()
        yield self._moment("outcome", self._end, outcome_words(self._outcome))

    # ------------------------------------------------------------------------- the model

    def _started(self, at: float, event: TurnStarted) -> Iterable[Row]:
        yield from self._approved(at)
        self._turn, self._segments, self._cursor, self._phase = event.turn, [], at, "model"
        self._openings = 0

    def _opening(self, at: float, opening: Opening) -> Iterable[Row]:
        self._until("opening", at)
        self._openings = opening.number
        self._phase = "first event" if opening.outcome == "opened" else "opening"
        if opening.wait is not None:
            self._until("backoff", min(at + opening.wait, self._end))
        return ()

    def _streamed(self, at: float, streamed: Streamed) -> Iterable[Row]:
        self._until("first event", at)
        self._until("streaming", streamed.last)
        self._phase = "streaming"
        return ()

    def _turned(self, at: float, event: Turned) -> Iterable[Row]:
        self._calls, self._batch_from = event.decision.calls, at
        kind: Kind = "closing" if self._phase == "streaming" else self._phase
        yield self._turn_row(kind, at, _gave(event.decision))

    def _failed(self, at: float, event: Failed) -> Iterable[Row]:
        check = getattr(event.failure, "check", None) or "opening"
        yield self._turn_row(self._phase, at, f"no decision [{check}], nothing executed")

    def _turn_row(self, kind: Kind, at: float, detail: str) -> Row:
        turn, self._turn = self._turn or 0, None
        self._until(kind, at)
        if self._openings > 1:
            detail = f"{detail}, by opening {self._openings}"
        segments = tuple(self._segments) or (Segment(kind, at, at),)
        return Row(f"turn {turn}", segments, short(detail), tuple(self._left(turn)))

    def _until(self, kind: Kind, at: float) -> None:
        if at > self._cursor:
            self._segments.append(Segment(kind, self._cursor, at))
            self._cursor = at

    def _left(self, turn: int) -> Iterator[tuple[str, str]]:
        limits, account = self._limits, self._outcome.account
        yield "turns", str(limits.turns - turn)
        yield "repairs", str(limits.repairs - sum(each.turn < turn for each in account.repairs))
        later = [used for number, used in self._used.items() if number > turn and used is not None]
        if limits.output_tokens is not None:
            tokens = account.output_tokens - sum(u.output_tokens or 0 for u in later)
            yield "tokens", f"{max(0, limits.output_tokens - tokens):,}"
        if limits.spend is not None and limits.prices is not None:
            cost = account.cost - total(limits.prices.cost(used) or Decimal(0) for used in later)
            yield "spend", f"{max(Decimal(0), exact(limits.spend) - cost):.4f}"

    # ------------------------------------------------------------------------- its calls

    def _executed(self, at: float, event: Executed) -> Iterable[Row]:
        execution = event.execution
        yield from self._approved(at - execution.ran - execution.waited)
        self._batch[execution.call.call_id] = (at, execution)

    def _flush(self, at: float) -> Iterator[Row]:
        order = {call.call_id: place for place, call in enumerate(self._calls)}
        rows = sorted(self._batch.values(), key=lambda each: order.get(each[1].call.call_id, 0))
        yield from (_call_row(execution, ended) for ended, execution in rows)
        if self._batch:
            self._batch_from = at
        self._batch = {}

    def _interrupted(self) -> Iterator[Row]:
        seen = {e.execution.call.call_id for _, e in self._told if isinstance(e, Executed)}
        last = {call.call_id for call in self._calls}
        for execution in self._outcome.executions:
            call_id = execution.call.call_id
            if call_id in last - seen and execution.status in ("unknown", "not_executed"):
                begun = self._batch_from + execution.waited
                stopped = execution.status == "unknown"
                ran = self._end - begun if stopped else 0.0
                waited = execution.waited if stopped else self._end - self._batch_from
                found = Execution(execution.call, execution.status, "", waited, ran)
                self._batch[call_id] = (self._end, found)
        yield from self._flush(self._end)
        if self._turn is not None:
            yield self._turn_row(self._phase, self._end, "ended without a decision")
        yield from self._approved(self._end)

    # ------------------------------------------------------------------------- moments

    def _repaired(self, at: float, event: Repaired) -> Iterable[Row]:
        repair = event.repair
        left = (("repairs", str(repair.left)),)
        yield self._moment("repair", at, f"asked again: {repair.reason.replace('_', ' ')}", left)

    def _warned(self, at: float, event: BudgetWarning) -> Iterable[Row]:
        yield self._moment("budget", at, f"used up: {event.budget.replace('_', ' ')}")

    def _waits(self, at: float, event: ApprovalNeeded) -> Iterable[Row]:
        asked = (f"{_named(each.call)}: {each.reason}" for each in event.waiting)
        self._approval = (at, ", ".join(asked))
        return ()

    def _approved(self, at: float) -> Iterator[Row]:
        if self._approval is not None:
            begun, asked = self._approval
            self._approval, self._batch_from = None, at
            yield Row("approval", (Segment("approval", begun, at),), short(asked), inner=True)

    def _moment(
        self, what: str, at: float, detail: str, left: tuple[tuple[str, str], ...] = ()
    ) -> Row:
        return Row(what, (Segment("moment", at, at),), short(detail), left, what != "outcome")


def _gave(decision: Decision) -> str:
    if decision.calls:
        return f"released {', '.join(call.name for call in decision.calls)}"
    if decision.refusal:
        return "a refusal"
    return "an answer" if decision.text.strip() else "an empty answer"


def _named(call: ToolCall) -> str:
    return short(f"{call.name} {call.call_id}", MAX_NAME_CHARACTERS)


def _call_row(execution: Execution, end: float) -> Row:
    begun = end - execution.ran
    asked = begun - execution.waited
    segments = [Segment("queue", asked, begun)] if execution.waited > 0 else []
    if execution.ran > 0 or not segments:
        segments.append(Segment("tool" if execution.ran > 0 else "moment", begun, end))
    waited = f"waited {seconds(execution.waited)} for a place, " if execution.waited > 0 else ""
    ran = f", {seconds(execution.ran)}" if execution.ran > 0 else ""
    detail = f"{waited}{_DID[execution.status]}{ran}"
    return Row(_named(execution.call), tuple(segments), detail, inner=True)

"""A recorder of moments: what a run did, what its model reported, and when, in order.

It observes a run and can influence nothing. What the run tells nobody, that its history or its
committed texts have grown, is seen at the next moment: the loop does not wait in between, so that
both have the same second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

from agentlib.clock import Clock, LoopClock
from agentlib.conversation import Entry, ToolCall, ToolResult
from agentlib.retry import Opening
from agentlib.runtime.approvals import Waiting
from agentlib.runtime.events import LoopEvent
from agentlib.runtime.execution import Executor, RunsIn
from agentlib.runtime.host import Host
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.models import Model
from agentlib.runtime.outcomes import Outcome
from agentlib.runtime.publication import Committed, Publication
from agentlib.stopwatch import Stopwatch
from agentlib.vocabulary import Event

Approvals: TypeAlias = Mapping[str, bool | str]
TERMINAL = "the end of the response"


@dataclass(frozen=True, slots=True)
class Began:
    """A run was started on a history, or a saved one resumed, with the answers by call ID."""

    how: Literal["started", "resumed"]
    answers: Approvals
    history: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class ToolBegan:
    """A call of the run was handed to its tool."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class HistoryIs:
    """The history is another one than it was: usually it has grown."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """What the user was shown, and what was kept from the user, so far."""

    committed: tuple[Committed, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The run ended in an outcome; None where it never began, as its saved state was refused."""

    outcome: Outcome | None


Happening: TypeAlias = (
    Began | ToolBegan | HistoryIs | Published | Ended | Opening | Event | LoopEvent
)


class Used(NamedTuple):
    """What a run had used at a moment: turns, repairs, output tokens, money, its own seconds."""

    turns: int = 0
    repairs: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)
    seconds: float = 0.0


class Note(NamedTuple):
    """What happened at a second of the clock, and what was used by then."""

    at: float
    what: Happening
    used: Used


@dataclass(frozen=True, slots=True)
class Leg:
    """One start or resumption of a recorded run, `begun` at a second of the clock.

    `history` is what it was started on; `saved` and `approvals` what it was resumed with, which
    was saved by leg `of` of the same recording, or by none. `stopped` is the second of its
    cancellation.
    """

    begun: float
    history: tuple[Entry, ...] = ()
    saved: str | None = None
    approvals: Approvals | None = None
    answers: Approvals | None = None
    of: int | None = None
    outcome: Outcome | None = None
    stopped: float | None = None


class RunRecorder:
    """Records runs: `report` is for the model of a run, and `run` makes the run.

    `clock` is the clock of the run. A run that is resumed goes on in the same recorder. What was
    recorded is in `notes`, and how the run was called in `legs`. `on_note`, where it is set, is
    called with the number of each moment, from 1.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.notes: list[Note] = []
        self.legs: list[Leg] = []
        self.limits = RunLimits()
        self.host: Host | None = None
        self.publication = Publication()
        self.terminal = TERMINAL
        self.on_note: Callable[[int], None] | None = None
        self._clock = clock or LoopClock()
        self._run: RecordedRun | None = None
        self._history: tuple[Entry, ...] = ()
        self._published: tuple[int, int] = (0, 0)
        self._waiting: dict[str, tuple[int, tuple[Waiting, ...]]] = {}

    def run(
        self,
        model: Model,
        host: Host,
        limits: RunLimits | None = None,
        *,
        stopwatch: Stopwatch | None = None,
        publication: Publication | None = None,
        observe: Callable[[LoopEvent], None] = lambda _: None,
    ) -> RecordedRun:
        """Return a run that this recorder records; the rest is as with `Run`."""
        provider = getattr(model, "provider", None)
        self.terminal = getattr(provider, "terminal", None) or TERMINAL
        self.host, self.limits = host, limits or RunLimits()
        self.publication = publication or Publication()
        return RecordedRun(
            self, model, host, self.limits, self._clock, stopwatch, self.publication, observe
        )

    def copy(self) -> RunRecorder:
        """Return a recorder with all that was recorded so far, which records no further run."""
        other = RunRecorder(self._clock)
        other.notes, other.legs = list(self.notes), list(self.legs)
        other.host, other.limits = self.host, self.limits
        other.publication, other.terminal = self.publication, self.terminal
        return other

    def now(self) -> float:
        """Return the second of the run's clock."""
        return self._clock.now()

    def report(self, event: Event | Opening) -> None:
        """Take an opening, or an event of a stream. Fits a model's `report`."""
        self.note(event)

    def note(self, what: Happening) -> None:
        """Record what happens now, after what has changed since the last moment."""
        self._look()
        self._add(what)

    def begin(self, run: RecordedRun, leg: Leg) -> None:
        """Record that a run begins, or goes on."""
        of, waiting = self._waiting.get(leg.saved or "", (None, ()))
        given = dict(leg.approvals or {})
        answers = {each.call.call_id: given.get(each.digest, False) for each in waiting}
        self.legs.append(replace(leg, begun=self._clock.now(), of=of, answers=answers))
        if leg.saved is None:
            self._run, self._history = None, leg.history
        # What the saved state says of itself is known once it was read: until then, nothing new.
        used = self.notes[-1].used if self.notes and self._run is not None else Used()
        how: Literal["started", "resumed"] = "started" if leg.saved is None else "resumed"
        self._add(Began(how, answers, self._history), used)
        self._run = run

    def end(self, run: RecordedRun) -> None:
        """Record how the run ended."""
        outcome, number = run.outcome, len(self.legs) - 1
        if outcome is None:
            # The saved state was refused: what stood before it stands.
            self._add(Ended(None), self.notes[-1].used)
            return
        saved = getattr(outcome, "saved", None)
        if saved is not None:
            self._waiting[saved] = (number, getattr(outcome, "waiting", ()))
        stopped = self._clock.now() if type(outcome).__name__ == "Cancelled" else None
        self.legs[number] = replace(self.legs[number], outcome=outcome, stopped=stopped)
        self.note(Ended(outcome))

    def _add(self, what: Happening, used: Used | None = None) -> None:
        now = self._clock.now()
        if used is None:
            used = self._run.used(now) if self._run is not None else Used()
        self.notes.append(Note(now, what, used))
        if self.on_note is not None:
            self.on_note(len(self.notes))

    def _look(self) -> None:
        if self._run is None:
            return
        history = self._run.state.history
        if len(history) != len(self._history) or history[-1:] != list(self._history[-1:]):
            self._history = tuple(history)
            self._add(HistoryIs(self._history))
        shown = self._run.publication
        counts = len(shown.committed), len(shown.dropped)
        if counts != self._published:
            self._published = counts
            self._add(Published(tuple(shown.committed), tuple(shown.dropped)))


class RecordedRun(Run):
    """A run whose moments a recorder keeps. Make one with `RunRecorder.run`."""

    def __init__(
        self,
        recorder: RunRecorder,
        model: Model,
        host: Host,
        limits: RunLimits,
        clock: Clock,
        stopwatch: Stopwatch | None,
        publication: Publication,
        observe: Callable[[LoopEvent], None],
    ) -> None:
        self.publication = publication
        self._recorder = recorder
        self._told = observe
        self._called = 0.0
        host = replace(host, executor=_Executor(host.executor, recorder))
        super().__init__(
            model,
            host,
            limits,
            clock=clock,
            stopwatch=stopwatch,
            publication=publication,
            observe=self._record,
        )

    def used(self, now: float) -> Used:
        """Return what the run has used by `now`, a second of its clock."""
        account = self.state.account
        own = self.state.elapsed + now - max(self._begun, self._called)
        return Used(account.turns, len(account.repairs), account.output_tokens, account.cost, own)

    async def start(self, history: Sequence[Entry]) -> Outcome:
        """Start it as any run. Raises what `Run.start` raises."""
        return await self._recorded(Leg(0.0, tuple(history)), super().start, history)

    async def resume(self, saved: str, approvals: Approvals) -> Outcome:
        """Resume it as any run. Raises what `Run.resume` raises."""
        leg = Leg(0.0, saved=saved, approvals=approvals)
        return await self._recorded(leg, super().resume, saved, approvals)

    async def _recorded(self, leg: Leg, go: Callable[..., Any], *how: Any) -> Outcome:
        self._called = self._recorder.now()
        self._recorder.begin(self, leg)
        try:
            outcome: Outcome = await go(*how)
        finally:
            self._recorder.end(self)
        return outcome

    def _record(self, event: LoopEvent) -> None:
        self._recorder.note(event)
        self._told(event)


class _Executor:
    """The tools of a run, each call of which is recorded as it begins."""

    def __init__(self, tools: Executor, recorder: RunRecorder) -> None:
        self._tools = tools
        self._recorder = recorder

    def runs_in(self, call: ToolCall) -> RunsIn:
        return self._tools.runs_in(call)

    async def execute(self, call: ToolCall) -> ToolResult:
        self._recorder.note(ToolBegan(call))
        return await self._tools.execute(call)

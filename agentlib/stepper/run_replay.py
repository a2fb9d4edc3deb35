"""A recorded run, run again on a mock clock, with or without one change.

The loop, the gate's verdicts, the budgets and the journal are real ones; what the model streamed
and what the tools returned is played from the recording. So nothing acts a second time and no
provider is asked, and the same change gives the same run. Where a change leads to a turn that
was never recorded, the run ends there: nobody knows what the model would have said.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import anyio

from agentlib.assembly import Assembly, Decision
from agentlib.clock import MockClock
from agentlib.conversation import Catalog, Entry, ToolCall, ToolResult
from agentlib.errors import AgentlibError, OpenFailure
from agentlib.retry import Opening
from agentlib.runtime.events import Executed, Failed, Turned, TurnStarted
from agentlib.runtime.execution import Execution, RunsIn
from agentlib.runtime.journal import MemoryJournal
from agentlib.runtime.outcomes import Outcome, WaitingForApproval
from agentlib.runtime.state import StateError
from agentlib.stepper.run_recorder import Began, Ended, Leg, RecordedRun, RunRecorder
from agentlib.stopwatch import Stopwatch
from agentlib.vocabulary import Event

ChangeName: TypeAlias = Literal["stop", "cut", "deny", "fail", "twice"]
CHANGES: tuple[ChangeName, ...] = get_args(ChangeName)
DENIED = "denied, to see what happens"
FAILS = "the tool fails, to see what happens"
# What was interrupted goes on for longer than anybody waits.
FOR_EVER = 1e6
EVENTS = (Opening, *get_args(Event))


class Change(NamedTuple):
    """One change of a run: what, and at which moment."""

    name: ChangeName
    moment: int


class _Turn(NamedTuple):
    begun: float
    events: list[tuple[float, Event | Opening]]
    end: float
    came: Decision | AgentlibError | None


async def run_again(recording: RunRecorder, change: Change | None = None) -> RunRecorder:
    """Run what was recorded once more, with `change`, and return a recording of that.

    Raises LookupError where nothing was recorded.
    """
    if recording.host is None or not recording.legs:
        raise LookupError("nothing was recorded: make the run with RunRecorder.run, and start it")
    return await _Again(recording, change).run()


def run_apart(work: Callable[[], Awaitable[RunRecorder]]) -> RunRecorder:
    """Return what `work` returns, from a thread with an event loop of its own.

    For a notebook, whose event loop is busy with the cell. Raises what `work` raises.
    """
    done: list[RunRecorder] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(anyio.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            failed.append(error)

    thread = threading.Thread(target=run, name="a run, played again")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


class _Again:
    def __init__(self, recording: RunRecorder, change: Change | None) -> None:
        self._recording = recording
        self._change = change
        self._clock = MockClock()
        self._begun = recording.notes[0].at
        self._recorder = RunRecorder(self._clock)
        self._recorder.on_note = self._noted
        self._publication = recording.publication.blank()
        self._stopwatch = Stopwatch(self._clock)
        self._model = _Model(self._turns(), self._clock, self._recorder, self._stopwatch)
        self._model.cut = self._moment("cut")
        # One for all legs, as the recorded run had.
        self._journal = MemoryJournal()
        self._run: RecordedRun | None = None
        self._outcomes: list[Outcome | None] = []

    def _moment(self, name: ChangeName) -> int:
        return self._change.moment if self._change and self._change.name == name else 0

    async def run(self) -> RunRecorder:
        legs = list(self._recording.legs)
        deny, twice = self._moment("deny"), self._moment("twice")
        notes = enumerate(self._recording.notes, 1)
        begins = [number for number, note in notes if isinstance(note.what, Began)]
        for leg, begin in zip(legs, begins, strict=True):
            if not await self._leg(leg, deny=begin == deny):
                break
        else:
            waiting = bool(self._outcomes) and isinstance(self._outcomes[-1], WaitingForApproval)
            if deny and waiting:
                last = len(legs) - 1
                await self._leg(Leg(self._now(), saved="", of=last, answers={}), deny=True)
            if twice:
                again = [leg for leg in legs if leg.saved is not None][-1]
                await self._leg(replace(again, begun=self._now(), stopped=None), deny=False)
        self._recorder.on_note = None
        return self._recorder

    def _now(self) -> float:
        return self._begun + self._clock.now()

    async def _leg(self, leg: Leg, *, deny: bool) -> bool:
        """Start or resume as it was done; return whether it could be."""
        host = self._recording.host
        if host is None:
            return False
        how: tuple[Any, ...] = (leg.history,)
        if leg.saved is not None:
            found = self._answered(leg, deny=deny)
            if found is None:
                return False
            how = found
        await self._clock.sleep(max(0.0, leg.begun - self._now()))
        tools = _Tools(self._executions(), self._clock, self._recorder, host.executor)
        tools.fails = self._moment("fail")
        run = self._run = self._recorder.run(
            self._model,
            replace(host, executor=tools, journal=self._journal, show=lambda _: None),
            self._recording.limits,
            stopwatch=self._stopwatch,
            publication=self._publication,
        )
        self._recorder.terminal = self._recording.terminal
        go = run.start if leg.saved is None else run.resume
        async with anyio.create_task_group() as tasks:
            if leg.stopped is not None:
                tasks.start_soon(self._stop, leg.stopped, run, getattr(leg.outcome, "reason", ""))
            try:
                await go(*how)
            except StateError:
                self._outcomes.append(None)
            else:
                self._outcomes.append(run.outcome)
            tasks.cancel_scope.cancel()
        return True

    def _answered(self, leg: Leg, *, deny: bool) -> tuple[Any, ...] | None:
        if leg.of is None:
            approvals = dict(leg.approvals or {})
            return leg.saved, dict.fromkeys(approvals, DENIED) if deny else approvals
        outcome = self._outcomes[leg.of]
        if not isinstance(outcome, WaitingForApproval):
            return None
        known = dict(leg.answers or {})
        answers = {
            each.digest: DENIED if deny else known.get(each.call.call_id, False)
            for each in outcome.waiting
        }
        return outcome.saved, answers

    async def _stop(self, at: float, run: RecordedRun, reason: str) -> None:
        await self._clock.sleep(max(0.0, at - self._now()))
        run.cancel(reason)

    def _noted(self, number: int) -> None:
        if number == self._moment("stop") and self._run is not None:
            self._run.cancel(f"stopped at moment {number}")

    def _turns(self) -> list[_Turn]:
        turns: list[_Turn] = []
        for at, what, _ in self._recording.notes:
            if isinstance(what, TurnStarted):
                turns.append(_Turn(at, [], at, None))
            elif isinstance(what, Turned | Failed):
                came = what.decision if isinstance(what, Turned) else what.failure
                turns[-1] = turns[-1]._replace(end=at, came=came)
            elif isinstance(what, EVENTS) and turns:
                turns[-1].events.append((at, what))
        return turns

    def _executions(self) -> dict[str, Execution]:
        found: dict[str, Execution] = {}
        for _, what, _ in self._recording.notes:
            if isinstance(what, Executed):
                found.setdefault(what.execution.call.call_id, what.execution)
            elif isinstance(what, Ended) and what.outcome is not None:
                for execution in what.outcome.executions:
                    found.setdefault(execution.call.call_id, execution)
        return found


class _Model:
    """Streams what was recorded, each event at its second of the turn, and then decides as it did.

    `cut` is the moment after which the stream of its turn ends.
    """

    def __init__(
        self,
        turns: Sequence[_Turn],
        clock: MockClock,
        recorder: RunRecorder,
        stopwatch: Stopwatch,
    ) -> None:
        self.cut = 0
        self._stopwatch = stopwatch
        self._turns = list(turns)
        self._clock = clock
        self._recorder = recorder
        self._asked = 0

    async def complete(
        self, history: Sequence[Entry], tools: Catalog, *, most_output_tokens: int | None = None
    ) -> Decision:
        del history, most_output_tokens
        if self._asked >= len(self._turns):
            what = "the recording has no further turn: what the model would say is not known"
            raise OpenFailure(what, sent="not sent")
        turn = self._turns[self._asked]
        self._asked += 1
        begun = self._clock.now()
        self._stopwatch.switch("opening")
        for number, (at, event) in enumerate(turn.events, 1):
            await self._until(begun + at - turn.begun)
            self._recorder.report(event)
            if not isinstance(event, Opening):
                self._stopwatch.switch("streaming")
            elif event.outcome == "opened":
                self._stopwatch.switch("first event")
            if len(self._recorder.notes) == self.cut:
                _end_early([e for _, e in turn.events[:number]], tools)
        if turn.came is None:
            await self._clock.sleep(FOR_EVER)
            raise OpenFailure("the recording of this turn was interrupted", sent="perhaps sent")
        await self._until(begun + turn.end - turn.begun)
        if isinstance(turn.came, AgentlibError):
            raise turn.came.with_traceback(None)
        return turn.came

    async def _until(self, at: float) -> None:
        left = at - self._clock.now()
        if left > 0:
            await self._clock.sleep(left)


def _end_early(events: Sequence[Event | Opening], tools: Catalog) -> None:
    assembly = Assembly(tools)
    for event in events:
        if not isinstance(event, Opening):
            assembly.accept(event)
    assembly.end()


class _Tools:
    """Returns what was recorded of each call, after the seconds that it took; nothing acts."""

    def __init__(
        self, known: dict[str, Execution], clock: MockClock, recorder: RunRecorder, tools: Any
    ) -> None:
        self.fails = 0
        self._known = known
        self._clock = clock
        self._recorder = recorder
        self._tools = tools

    def runs_in(self, call: ToolCall) -> RunsIn:
        runs_in: RunsIn = self._tools.runs_in(call)
        return runs_in

    async def execute(self, call: ToolCall) -> ToolResult:
        if self.fails and len(self._recorder.notes) == self.fails:
            raise RuntimeError(FAILS)
        execution = self._known.get(call.call_id)
        if execution is None:
            raise LookupError("the recording has no result of this call")
        if execution.status in ("unknown", "timed_out"):
            await self._clock.sleep(FOR_EVER)
        if execution.ran > 0:
            await self._clock.sleep(execution.ran)
        if execution.status == "failed":
            kind, _, reason = execution.output.removeprefix("error: ").partition(": ")
            raise type(kind, (Exception,), {})(reason)
        return ToolResult(call.call_id, execution.output)

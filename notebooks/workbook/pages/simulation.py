"""A stage for the bounded loop: scripted responses, real tools, and a clock that nobody waits for.

The run on it is the real one, with the real model, gate and loop; only the transport is a replay.
Tools that run side by side take their seconds side by side.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel

from agentlib.assembly import Decision
from agentlib.clock import Timer
from agentlib.conversation import ToolCall, ToolResult, user
from agentlib.jsonvalues import dumps
from agentlib.model import StreamingModel
from agentlib.recordings.capture import Capture
from agentlib.recordings.replay_transport import Playback, ReplayStream, ReplayTransport, Scripted
from agentlib.retry import Opening
from agentlib.runtime.execution import RunsIn
from agentlib.runtime.host import Host
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Outcome
from agentlib.runtime.publication import Publication
from agentlib.stopwatch import Stopwatch
from agentlib.vocabulary import Event
from workbook.pages.compose import composed
from workbook.pages.project import Project
from workbook.pages.run_trace import RunRecorder
from workbook.pages.timeline import Timeline, timeline

TASK = "Please repair add()."
# What a response takes by default, in seconds: to open, to begin, and to stream.
OPENING, FIRST_EVENT, STREAMING = 0.2, 0.5, 1.3
TOOL = 0.5
# So many times must every other task have had its turn before the hands move.
SETTLED = 25

Step: TypeAlias = Decision | Capture | Scripted


class StageClock:
    """A clock whose hands move when every task on the stage sleeps, to the next one's waking.

    Unlike with a `VirtualClock`, the sleeps of tasks that run side by side overlap, and a timer
    reaches into the tasks within its body.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._quiet = 0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int]] = []
        self._timers: list[_StageTimer] = []

    def now(self) -> float:
        """Return where the hands stand, from 0."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until the hands have moved on by `seconds`."""
        me = (self._now + seconds, next(self._order))
        self._sleepers.append(me)
        self._quiet = 0
        try:
            while self._now < me[0]:
                await anyio.lowlevel.checkpoint()
                if me == min(self._sleepers):
                    self._quiet += 1
                    if self._quiet > SETTLED:
                        self._move(me[0])
        finally:
            self._sleepers.remove(me)
            self._quiet = 0

    @contextmanager
    def timer(self, at: float) -> Iterator[Timer]:
        """Return a timer whose body is cancelled where the hands reach its moment."""
        with anyio.CancelScope() as scope:
            timer = _StageTimer(at, scope)
            self._timers.append(timer)
            try:
                yield timer
            finally:
                self._timers.remove(timer)

    def _move(self, to: float) -> None:
        ahead = [
            timer for timer in self._timers if timer.at <= to and not timer.scope.cancel_called
        ]
        if ahead:
            # Of two with one moment the outer one comes first.
            first = min(ahead, key=lambda timer: timer.at)
            to = max(self._now, first.at)
            first.scope.cancel()
        self._now = to
        self._quiet = 0


class _StageTimer:
    def __init__(self, at: float, scope: anyio.CancelScope) -> None:
        self.at = at
        self.scope = scope

    @property
    def expired(self) -> bool:
        return self.scope.cancelled_caught

    def move(self, at: float) -> None:
        self.at = at


def paced(
    step: Decision | Capture,
    *,
    first: float = FIRST_EVENT,
    rest: float = STREAMING,
    closing: float = 0.0,
) -> Playback:
    """Return a response that takes `first` seconds to its first event, and `rest` to its last.

    `closing` is what it takes to close its stream.
    """
    stream = streamed(step) if isinstance(step, Decision) else step
    response = stream.responses[0]
    return Playback(response, pauses={1: first, len(response.events): rest}, closing=closing)


class StageTools:
    """The fixture project's tools, each of which takes `seconds` by its name, or half a second."""

    def __init__(self, project: Project, clock: StageClock, seconds: Mapping[str, float]) -> None:
        self.project = project
        self._clock = clock
        self._seconds = seconds

    def runs_in(self, call: ToolCall) -> RunsIn:
        """Say that every call runs in a task of this process, which can be stopped."""
        del call
        return "task"

    async def execute(self, call: ToolCall) -> ToolResult:
        """Take the tool's time, then run it."""
        await self._clock.sleep(self._seconds.get(call.name, TOOL))
        return self.project.run(call)


class Stage:
    """One run, set up: `script` has what each opening brings, `seconds` what each tool takes.

    `publication` is given the drafts and the committed texts.

    A step of the script is a decision, which is streamed, a capture, or an opening. `host` are
    further fields of the run's Host. What came of it is in `outcome` and `timeline`, the files
    and the tools that ran are in `project`.
    """

    def __init__(
        self,
        *script: Step,
        limits: RunLimits | None = None,
        seconds: Mapping[str, float] | None = None,
        publication: Publication | None = None,
        **host: Any,
    ) -> None:
        self.clock = StageClock()
        self.recorder = RunRecorder(self.clock)
        self.project = Project()
        self.limits = limits or RunLimits()
        self._stopwatch = Stopwatch(self.clock)
        self.publication = publication or Publication()
        openings = [step if isinstance(step, Scripted) else paced(step) for step in script]
        self.transport = _Timed(openings, self.clock)
        self.model = StreamingModel(
            self.transport,
            "stage",
            clock=self.clock,
            random=lambda: 0.5,
            report=self._report,
            stopwatch=self._stopwatch,
        )
        tools = StageTools(self.project, self.clock, seconds or {})
        self.host = Host(tools=self.project.catalog, executor=tools, **host)
        self._outcome: Outcome | None = None

    @property
    def outcome(self) -> Outcome:
        """How the run ended. Raises LookupError before it did."""
        if self._outcome is None:
            raise LookupError("nothing was run on this stage yet")
        return self._outcome

    @property
    def timeline(self) -> Timeline:
        """The timeline of all that was run on this stage."""
        return timeline(self.recorder, self.outcome, self.limits)

    def run(self) -> Run:
        """Return a run with everything of this stage, not started yet."""
        return Run(
            self.model,
            self.host,
            self.limits,
            clock=self.clock,
            stopwatch=self._stopwatch,
            publication=self.publication,
            observe=self.recorder.observe,
        )

    async def start(self, task: str = TASK) -> Stage:
        """Start a run with the task, and return the stage when it has ended."""
        self._outcome = await self.run().start([user(task)])
        return self

    async def stop(
        self, at: float, saved: str | None = None, approvals: Mapping[str, bool | str] | None = None
    ) -> Stage:
        """Start a run, or resume a saved one, cancel its caller at `at`, and wait for its end."""
        run = self.run()
        async with anyio.create_task_group() as tasks:
            if saved is None:
                tasks.start_soon(run.start, [user(TASK)])
            else:
                tasks.start_soon(run.resume, saved, approvals or {})
            await self.clock.sleep(at - self.clock.now())
            tasks.cancel_scope.cancel()
        self._outcome = run.outcome
        return self

    async def resume(
        self, saved: str, approvals: Mapping[str, bool | str], after: float = 0.0
    ) -> Stage:
        """Resume a saved run `after` seconds; a person has answered in the meantime."""
        await self.clock.sleep(after)
        self._outcome = await self.run().resume(saved, approvals)
        return self

    def _report(self, event: Event | Opening) -> None:
        self.recorder.report(event)
        self.publication.observe(event)


async def perform(*script: Step, **how: Any) -> Stage:
    """Set up a stage, start the run, and return the stage when it has ended."""
    return await Stage(*script, **how).start()


class _Timed(ReplayTransport):
    async def open(self, request: Mapping[str, Any]) -> ReplayStream:
        await self._clock.sleep(OPENING)
        return await super().open(request)


def streamed(decision: Decision) -> Capture:
    """Return a decision as a recorded stream, its text in one fragment."""
    calls = [(call.name, dumps(call.arguments)) for call in decision.calls]
    characters = len(decision.text) + sum(len(name) + len(given) for name, given in calls)
    return composed(
        "stage",
        *calls,
        text=decision.text,
        call_ids=[call.call_id for call in decision.calls],
        usage={"input_tokens": 400, "output_tokens": 1 + characters // 4},
    )

"""A stage for the bounded loop: scripted responses, real tools, and a mock clock.

The run on it is the real one, with the real model, gate and loop; only the transport is a replay.
Tools that run side by side take their seconds side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import anyio

from agentlib.assembly import Decision
from agentlib.clock import MockClock
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
from agentlib.stepper.run_recorder import RunRecorder as Moments
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

Step: TypeAlias = Decision | Capture | Scripted


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

    def __init__(self, project: Project, clock: MockClock, seconds: Mapping[str, float]) -> None:
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
        self.clock = MockClock()
        self.recorder = RunRecorder(self.clock)
        self.moments = Moments(self.clock)
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
        return self.moments.run(
            self.model,
            self.host,
            self.limits,
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
        self.moments.report(event)
        self.publication.observe(event)


async def perform(*script: Step, **how: Any) -> Stage:
    """Set up a stage, start the run, and return the stage when it has ended."""
    return await Stage(*script, **how).start()


class _Timed(ReplayTransport):
    async def open(self, request: Mapping[str, Any], *, idempotency_key: str = "") -> ReplayStream:
        await self._clock.sleep(OPENING)
        return await super().open(request, idempotency_key=idempotency_key)


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

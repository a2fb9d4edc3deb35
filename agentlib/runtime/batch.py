"""Execute the calls of one released decision: bounded, and never silently lost.

A call is claimed in the journal before it runs, so that no resumed run and no other process runs
it again. One failing tool does not lose the others' results, and results keep the calls' order.
Up to a number of calls run at a time; where that is one, they run in the calls' order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import anyio

from agentlib.clock import Clock
from agentlib.conversation import ToolCall
from agentlib.runtime.execution import Execution, RunsIn, Status
from agentlib.runtime.host import Host
from agentlib.runtime.limits import RunLimits

NOT_STARTED = "not executed: the run was cancelled before this call began"
CLAIMED_BEFORE = "unknown: this call was begun before and left no result; it is not run again"
INTERRUPTED: dict[RunsIn, str] = {
    "task": "unknown: the run was cancelled while this call ran; it may have acted",
    "process": "unknown: the run was cancelled and the process of this call stopped",
    "thread": "unknown: a thread cannot be stopped; this call may still run, its result is lost",
}
SHOWN = "shown to the user; nothing was done"
DENIED = "not executed: the user denied it: "


class Batch:
    """The calls of one decision. `executions` has one entry for each at any time, in order.

    `denied` maps the IDs of calls that a person denied to the reason.
    """

    def __init__(
        self,
        run_id: str,
        calls: Sequence[ToolCall],
        host: Host,
        limits: RunLimits,
        clock: Clock,
        denied: Mapping[str, str],
    ) -> None:
        self.executions = [Execution(call, "not_executed", NOT_STARTED) for call in calls]
        self._run_id = run_id
        self._host = host
        self._clock = clock
        self._denied = denied
        self._seconds = limits.tool_deadline
        self._parallel = limits.parallel_tools
        self._places = anyio.CapacityLimiter(limits.parallel_tools)
        self._asked = clock.now()
        self._open = {
            place
            for place, call in enumerate(calls)
            if call.call_id not in denied and call.name not in host.presentation
        }

    async def execute(self, done: Callable[[Execution], None]) -> None:
        """Execute all; `done` is told of each as it ends. A cancellation passes through."""
        calls = [execution.call for execution in self.executions]
        self._asked = self._clock.now()
        if self._parallel == 1:
            for place, call in enumerate(calls):
                await self._one(place, call, done)
            return
        async with anyio.create_task_group() as tasks:
            for place, call in enumerate(calls):
                tasks.start_soon(self._one, place, call, done)

    async def _one(self, place: int, call: ToolCall, done: Callable[[Execution], None]) -> None:
        ended = self._without_running(call)
        if ended is None:
            async with self._places:
                ended = await self._claimed(place, call, self._clock.now() - self._asked)
        self.executions[place] = ended
        self._open.discard(place)
        done(ended)

    def _without_running(self, call: ToolCall) -> Execution | None:
        if call.call_id in self._denied:
            return Execution(call, "denied", f"{DENIED}{self._denied[call.call_id]}")
        if call.name in self._host.presentation:
            self._host.show(call)
            return Execution(call, "shown", SHOWN)
        return None

    async def _claimed(self, place: int, call: ToolCall, waited: float) -> Execution:
        journal, begun = self._host.journal, self._clock.now()
        beside = frozenset(self.executions[each].call.name for each in self._open - {place})
        if not journal.claim(self._run_id, call.call_id):
            output = journal.output(self._run_id, call.call_id)
            known: Status = "unknown" if output is None else "executed"
            return Execution(call, known, CLAIMED_BEFORE if output is None else output, waited)
        # Until it ends it counts as unknown: that is what a cancellation leaves behind.
        unknown = INTERRUPTED[self._host.executor.runs_in(call)]
        self.executions[place] = Execution(call, "unknown", unknown, waited)
        status, output = await self._run(call)
        journal.record(self._run_id, call.call_id, output)
        return Execution(call, status, output, waited, self._clock.now() - begun, beside)

    async def _run(self, call: ToolCall) -> tuple[Status, str]:
        seconds = float("inf") if self._seconds is None else self._seconds
        outcome: tuple[Status, str] | None = None
        with self._clock.timer(self._clock.now() + seconds):
            try:
                result = await self._host.executor.execute(call)
                outcome = ("executed", result.output)
            except Exception as error:  # noqa: BLE001 - one tool's failure must not lose the others
                outcome = ("failed", f"error: {type(error).__name__}: {error}")
        late = f"error: it took longer than {seconds:g} s and was stopped; it may have acted"
        return outcome or ("timed_out", late)

"""Execute the calls of one released decision: bounded, and never silently lost.

A call is claimed in the journal before it runs, so that no resumed run and no other process runs
it again. One failing part, a tool or another, does not lose the other calls' results, and results
keep the calls' order. Up to a number of calls run at a time; where that is one, they run in the
calls' order. A call that does not stop when it should is left alone, and its result says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from agentlib.clock import Clock
from agentlib.conversation import ToolCall, ToolResult
from agentlib.jsonvalues import visible
from agentlib.runtime.detached import Detached
from agentlib.runtime.execution import Execution, RunsIn, Status
from agentlib.runtime.host import Host
from agentlib.runtime.journal import Journal
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.parts import (
    CLAIM,
    OUTPUT,
    RECORD,
    RUNS_IN,
    SHOW,
    PartFailed,
    ask,
    described,
    is_own,
    shown,
)

NOT_STARTED = "not executed: the run was cancelled before this call began"
NOT_CLAIMED = "not executed: the host failed before this call began"
CLAIMED_BEFORE = "unknown: this call was begun before and left no result; it is not run again"
INTERRUPTED: dict[RunsIn, str] = {
    "task": "unknown: the run was cancelled while this call ran; it may have acted",
    "process": "unknown: the run was cancelled and the process of this call stopped",
    "thread": "unknown: a thread cannot be stopped; this call may still run, its result is lost",
}
GOES_ON = "unknown: the run was cancelled and this call did not stop; it may still run"
SHOWN = "shown to the user; nothing was done"
HELD = "not shown: "
NOT_SHOWN = "error: it could not be shown; nothing was done"
DENIED = "not executed: the user denied it: "

RESUMED_BEFORE = (
    "unknown: this run was resumed before, which may have run this call; it is not run again"
)


def recorded(run_id: str, calls: Sequence[ToolCall], journal: Journal) -> list[Execution]:
    """Return what the journal knows of each call; none is run. Raises PartFailed."""
    outputs = ((call, ask(OUTPUT, journal.output, run_id, call.call_id)) for call in calls)
    return [
        Execution(call, "unknown", RESUMED_BEFORE)
        if output is None
        else Execution(call, "executed", visible(output))
        for call, output in outputs
    ]


class Batch:
    """The calls of one decision. `executions` has one entry for each at any time, in order.

    `denied` maps the IDs of calls that a person denied to the reason. `failed` is the first part
    of the host that failed, apart from its tools: what a tool raises is the result of its call.
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
        self.failed: PartFailed | None = None
        self._run_id = run_id
        self._host = host
        self._clock = clock
        self._denied = denied
        self._seconds = float("inf") if limits.tool_deadline is None else limits.tool_deadline
        # Without a place nothing would ever run.
        self._parallel = max(1, limits.parallel_tools)
        self._places = anyio.CapacityLimiter(self._parallel)
        self._asked = clock.now()
        # How long a call waited for a place while others ran: all of them were asked at once.
        self.queued = 0.0
        self._waiting: set[int] = set()
        self._open = {
            place
            for place, call in enumerate(calls)
            if call.call_id not in denied and call.name not in host.presentation
        }

    async def execute(self, done: Callable[[Execution], None]) -> None:
        """Execute all; `done` is told of each as it ends. A cancellation passes through."""
        calls = [execution.call for execution in self.executions]
        self._asked = self._clock.now()
        self._waiting = set(self._open)
        try:
            await self._all(calls, done)
        finally:
            # Whoever has no place by now has waited until now.
            for place in tuple(self._waiting):
                found = self.executions[place]
                self.executions[place] = replace(found, waited=self._placed(place))

    async def _all(self, calls: Sequence[ToolCall], done: Callable[[Execution], None]) -> None:
        if self._parallel == 1:
            for place, call in enumerate(calls):
                await self._one(place, call, done)
            return
        async with anyio.create_task_group() as tasks:
            for place, call in enumerate(calls):
                tasks.start_soon(self._one, place, call, done)

    def _placed(self, place: int) -> float:
        self._waiting.discard(place)
        waited = self._clock.now() - self._asked
        self.queued = max(self.queued, waited)
        return waited

    async def _one(self, place: int, call: ToolCall, done: Callable[[Execution], None]) -> None:
        if call.call_id in self._denied:
            denied = f"{DENIED}{self._denied[call.call_id]}"
            self.executions[place] = Execution(call, "denied", denied)
        elif call.name in self._host.presentation:
            return
        else:
            async with self._places:
                await self._execute(place, call, self._placed(place))
        self._open.discard(place)
        with self._kept():
            done(self.executions[place])

    def show(
        self, unbacked: Callable[[ToolCall], str | None], done: Callable[[Execution], None]
    ) -> None:
        """Show the cards, now that the other calls have ended.

        A card says what they did: where one was not executed, or `unbacked` says what the card
        claims without evidence, it is not shown.
        """
        cards = self._host.presentation
        others = [each for each in self.executions if each.call.name not in cards]
        lost = next((each.call.name for each in others if each.status != "executed"), None)
        for place, found in enumerate(self.executions):
            if found.call.name not in cards or found.status == "denied":
                continue
            with self._kept():
                held = f"{lost} beside it was not executed" if lost else unbacked(found.call)
                if held is None:
                    self._show(place, found.call)
                else:
                    self._end(place, "not_executed", f"{HELD}{held}")
            with self._kept():
                done(self.executions[place])

    def _show(self, place: int, call: ToolCall) -> None:
        self.executions[place] = Execution(call, "failed", NOT_SHOWN)
        with self._kept():
            ask(SHOW, self._host.show, call)
            self.executions[place] = Execution(call, "shown", SHOWN)

    async def _execute(self, place: int, call: ToolCall, waited: float) -> None:
        begun = self._clock.now()
        self.executions[place] = Execution(call, "not_executed", NOT_STARTED, waited)
        work = Detached(partial(self._claimed, place, call, waited), self._clock)
        try:
            with self._kept():
                await work.wait(self._seconds)
        finally:
            if not work.ended:
                self._end(place, "unknown", GOES_ON, 0.0)
        if work.late and self.executions[place].status == "unknown":
            how = (
                "was stopped; it may have acted"
                if work.ended
                else "does not stop; it may still run"
            )
            late = f"error: it took longer than {self._seconds:g} s and {how}"
            self._end(place, "timed_out", late, self._clock.now() - begun)

    async def _claimed(self, place: int, call: ToolCall, waited: float) -> None:
        journal, begun = self._host.journal, self._clock.now()
        beside = frozenset(self.executions[each].call.name for each in self._open - {place})
        self._end(place, "not_executed", NOT_CLAIMED)
        interrupted = INTERRUPTED[ask(RUNS_IN, lambda: self._host.executor.runs_in(call))]
        if not ask(CLAIM, lambda: journal.claim(self._run_id, call.call_id)):
            self._end(place, "unknown", CLAIMED_BEFORE)
            output = ask(OUTPUT, lambda: journal.output(self._run_id, call.call_id))
            if output is not None:
                self._end(place, "executed", visible(output))
            return
        # Until it ends it counts as unknown: that is what a cancellation leaves behind.
        self.executions[place] = Execution(call, "unknown", interrupted, waited, beside=beside)
        status, output = await self._run(call)
        self._end(place, status, output, self._clock.now() - begun)
        if status == "executed":
            ask(RECORD, lambda: journal.record(self._run_id, call.call_id, output))

    async def _run(self, call: ToolCall) -> tuple[Status, str]:
        try:
            result: Any = await self._host.executor.execute(call)
        except BaseException as error:
            if not is_own(error):
                raise
            return "failed", f"error: {described(error)}"
        if isinstance(result, ToolResult) and isinstance(result.output, str):
            return "executed", visible(result.output)
        return "failed", f"error: it may have acted, and returned no text: {shown(result)}"

    def _end(self, place: int, status: Status, output: str, ran: float = 0.0) -> None:
        found = self.executions[place]
        self.executions[place] = replace(found, status=status, output=output, ran=ran)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        # One part that failed must not take the results of the other calls along.
        try:
            yield
        except PartFailed as failed:
            self.failed = self.failed or failed
        except Exception as error:  # noqa: BLE001 - whatever it was, the others' results are kept
            self.failed = self.failed or PartFailed("run", described(error))

"""Stop what runs: a tool in a thread, a tool in a process, a reader of a stream; see what is left.

The thread and the process are real, so these few milliseconds pass on a real clock. All else
happens on the clock of a stage. For notebooks: these helpers need asyncio.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.to_thread

from agentlib.assembly import Decision
from agentlib.conversation import Catalog, Entry, ToolCall, ToolResult, user
from agentlib.fixtures import tools
from agentlib.retry import NativeStream
from agentlib.runtime.execution import Execution, Executor, RunsIn
from agentlib.runtime.host import Host
from agentlib.runtime.loop import Run
from agentlib.runtime.tools import ToolExecutor
from agentlib.runtime.workspace import Workspace
from workbook.pages.simulation import TASK, TOOL, Stage, StageTools, paced
from workbook.pages.small_loop import said, wants

# How often a test that hangs shows that it still runs, in seconds; three of it must tell.
TICK = 0.01
# The clock's time at which a reader is stopped, and the one at which it is stopped again.
STOP, STOP_AGAIN = 1.0, 1.1
HANGS = f"""
import time
while True:
    with open("ticks", "a", encoding="utf-8") as file:
        file.write("x")
    time.sleep({TICK})
"""


@dataclass(frozen=True, slots=True)
class Stopped:
    """What came of a call that was stopped, and whether what it had started ran on.

    `soon` is whether everything had ended within a second.
    """

    execution: Execution
    soon: bool
    runs_on: bool


async def stop_thread() -> Stopped:
    """Stop a run while its tool works in a thread."""
    tool = _InThread()
    try:
        execution, soon = await _stop(tool, tool.began.is_set)
        return Stopped(execution, soon, runs_on=not tool.ended.is_set())
    finally:
        tool.go.set()
        await anyio.to_thread.run_sync(tool.ended.wait)


async def stop_process() -> Stopped:
    """Stop a run while its tool, the tests of a project, hangs in a process."""
    with tempfile.TemporaryDirectory(prefix="agentlib-") as folder:
        _write_tests(folder)
        with Workspace(folder) as workspace:
            ticks = workspace.root / "ticks"
            executor = ToolExecutor(workspace, allow_execution=True)
            execution, soon = await _stop(executor, ticks.exists)
            before = ticks.stat().st_size
            await anyio.sleep(TICK * 3)
            return Stopped(execution, soon, runs_on=ticks.stat().st_size > before)


def _write_tests(folder: str) -> None:
    Path(folder, "test_hangs.py").write_text(HANGS, encoding="utf-8")


async def _stop(executor: Executor, began: Callable[[], bool]) -> tuple[Execution, bool]:
    run = Run(_Asks(), Host(tools=tools(), executor=executor))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.start, [user(TASK)])
            while not began():  # noqa: ASYNC110 - a process sets no event
                await anyio.sleep(TICK)
            stopped_at = anyio.current_time()
            tasks.cancel_scope.cancel()
    soon = anyio.current_time() - stopped_at < 1.0
    return run.state.executions[0], soon


class _Asks:
    async def complete(self, history: Sequence[Entry], catalog: Catalog) -> Decision:
        del history, catalog
        return said("", wants("call_1", "test"))


class _InThread:
    def __init__(self) -> None:
        self.began, self.go, self.ended = (threading.Event() for _ in range(3))

    def runs_in(self, call: ToolCall) -> RunsIn:
        del call
        return "thread"

    async def execute(self, call: ToolCall) -> ToolResult:
        await anyio.to_thread.run_sync(self._work, abandon_on_cancel=True)
        return ToolResult(call.call_id, "done")

    def _work(self) -> None:
        self.began.set()
        self.go.wait()
        self.ended.set()


def acts_first(stage: Stage, seconds: Mapping[str, float]) -> Stage:
    """Give a stage tools that act at once, and then take their seconds to answer."""
    executor = _ActsFirst(stage.project, stage.clock, seconds)
    stage.host = replace(stage.host, executor=executor)
    return stage


class _ActsFirst(StageTools):
    async def execute(self, call: ToolCall) -> ToolResult:
        result = self.project.run(call)
        await self._clock.sleep(self._seconds.get(call.name, TOOL))
        return result


def ignores_stops(stage: Stage, seconds: Mapping[str, float]) -> Stage:
    """Give a stage tools that cannot be stopped, and take their seconds to answer."""
    executor = _IgnoresStops(stage.project, stage.clock, seconds)
    stage.host = replace(stage.host, executor=executor)
    return stage


class _IgnoresStops(StageTools):
    async def execute(self, call: ToolCall) -> ToolResult:
        with anyio.CancelScope(shield=True):
            await self._clock.sleep(self._seconds.get(call.name, TOOL))
        return self.project.run(call)


@dataclass(frozen=True, slots=True)
class Closed:
    """Whether a stream was closed, and how long after the stop its reader had ended, in seconds."""

    closed: bool
    after: float


async def stop_reader(
    read: Callable[[NativeStream], Awaitable[object]] | None = None,
    *,
    closing: float = 0.5,
    again: bool = False,
) -> Closed:
    """Stop `read` in the middle of a stream whose close takes `closing` seconds.

    Without a `read` it is the streaming model that reads. `again` stops it a second time while it
    closes, as a caller in another library would: not by a scope, but through the task.
    """
    stage = Stage(paced(said("add() adds now."), closing=closing))
    scope = anyio.CancelScope()

    async def work() -> None:
        with scope:
            if read is None:
                await stage.run().start([user(TASK)])
            else:
                await read(await stage.transport.open({}))

    task = asyncio.create_task(work())
    await stage.clock.sleep(STOP)
    scope.cancel()
    if again:
        await stage.clock.sleep(STOP_AGAIN - STOP)
        task.cancel()
    await asyncio.wait([task])
    return Closed(stage.transport.closed == 1, round(stage.clock.now() - STOP, 2))

"""The tools, and the gate for effects: what a model asks for runs only where the host allows it.

The completion gate says that a call is whole and valid; this one says whether it may happen. It
is asked at the moment of execution, whatever the catalog exposed: a model can name a tool that it
was never shown. What a tool cannot do is an observation for the model, never an exception.

A temporary folder is no sandbox: `test` runs code that a model may have edited, with your rights.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from agentlib.conversation import Catalog, ToolCall, ToolResult, ToolSpec
from agentlib.jsonvalues import quote, thaw
from agentlib.runtime.execution import RunsIn
from agentlib.runtime.workspace import ToolError, Workspace

TOOLS = (
    ToolSpec.strings("list", "List the project's files."),
    ToolSpec.strings("read", "Read one file of the project.", path=""),
    ToolSpec.strings("edit", "Replace one exact string in a file.", path="", old="", new=""),
    ToolSpec.strings("test", "Run the project's tests."),
)
READS = frozenset({"list", "read"})
EFFECTS = frozenset({"edit", "test"})


@cache
def catalog(*, allow_execution: bool) -> Catalog:
    """Return the tools to expose to a model: those with effects only where they may run."""
    return Catalog(tool for tool in TOOLS if allow_execution or tool.name in READS)


class ToolExecutor:
    """Executes released calls on one workspace.

    `allow_execution` is the host's word on EFFECTS; it is read at each call, so that it can be
    taken back. `executed` lists the calls whose tool was run, in order, whatever came of it; a
    call that was refused is not in it.
    """

    def __init__(self, workspace: Workspace, *, allow_execution: bool) -> None:
        self.workspace = workspace
        self.allow_execution = allow_execution
        self.executed: list[ToolCall] = []
        self._functions: Mapping[str, Callable[..., str]] = {
            "list": workspace.list,
            "read": workspace.read,
            "edit": workspace.edit,
        }

    async def execute(self, call: ToolCall) -> ToolResult:
        """Run one call and return its output, or why it did not run, for the model.

        Cancelled, it kills what it started before it lets the cancellation through.
        """
        await anyio.lowlevel.checkpoint()
        refusal = self._refusal(call)
        if refusal:
            return ToolResult(call.call_id, f"error: {refusal}")
        self.executed.append(call)
        if call.name == "test":
            output = await _test(self.workspace)
        else:
            output = _observe(self._functions[call.name], **call.arguments)
        return ToolResult(call.call_id, output)

    def runs_in(self, call: ToolCall) -> RunsIn:
        """Say where a call runs: the project's tests in a process, all else in the task."""
        return "process" if call.name == "test" else "task"

    def _refusal(self, call: ToolCall) -> str | None:
        known = catalog(allow_execution=True)
        if known.get(call.name) is None:
            return f"there is no tool {quote(call.name)}; the tools are {', '.join(known.names)}"
        if call.name in EFFECTS and not self.allow_execution:
            return f"the host does not allow {call.name}: it would change or run something"
        return known.problem(call.name, thaw(call.arguments))


def _observe(function: Callable[..., str], **arguments: Any) -> str:
    try:
        return function(**arguments)
    except ToolError as error:
        return f"error: {error}"


async def _test(workspace: Workspace) -> str:
    # The thread belongs to a child task, which ends only with it: nothing runs on afterwards,
    # however the caller is cancelled.
    stop = threading.Event()
    done = anyio.Event()
    outputs: list[str] = []

    async def run() -> None:
        run_tests = partial(_observe, workspace.test, stop=stop)
        outputs.append(await anyio.to_thread.run_sync(run_tests))
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            await done.wait()
        finally:
            stop.set()
    return outputs[0]

"""What tests of a run are made of: scripted models, tools that wait, and calls."""

import anyio
import anyio.lowlevel

from agentlib.assembly import Decision
from agentlib.conversation import (
    Catalog,
    RejectedCall,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    check_history,
    user,
)
from agentlib.failures import GateRejected, ProviderStopped
from agentlib.jsonvalues import FrozenObject
from agentlib.runtime.host import Host

TOOLS = Catalog(
    [
        ToolSpec.strings("edit", "Change a file.", path=""),
        ToolSpec.strings("test", "Run the tests."),
        ToolSpec.strings("wait", "Wait for ever."),
        ToolSpec.strings("card", "Show a card."),
        ToolSpec.strings("broken", "Fail."),
    ]
)
ASKED = [user("Please repair add().")]
USAGE = Usage(100, 40, 10, 0)


def call(call_id, name="edit", **arguments):
    if name == "edit":
        arguments = {"path": "a.py", **arguments}
    return ToolCall(call_id, name, FrozenObject(arguments))


def says(text="", *calls, usage=USAGE, refusal=""):
    return Decision("resp", text, refusal, tuple(calls), usage)


def approve(outcome, answer=True):
    return {each.digest: answer for each in outcome.waiting}


def malformed(*call_ids, cut=False):
    kind = ProviderStopped if cut else GateRejected
    failure = kind("arguments are cut", check="completed" if cut else "strict_json", usage=USAGE)
    failure.cut_by_length = cut
    failure.calls = tuple(RejectedCall(each, "edit", '{"path": "a') for each in call_ids)
    return failure


class Script:
    """A model that gives prepared decisions and failures, and checks every history it is asked."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.asked = []

    async def complete(self, history, _tools):
        check_history(history)
        self.asked.append(tuple(history))
        await anyio.lowlevel.checkpoint()
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return await step() if callable(step) else step


class Tools:
    """Tools that note what ran; `wait` ends only when `go` is set, `broken` raises."""

    def __init__(self, runs_in="task"):
        self.begun = []
        self.ran = []
        self.most_at_once = 0
        self.go = anyio.Event()
        self._kind = runs_in
        self._now = 0

    def runs_in(self, _):
        return self._kind

    async def execute(self, call):
        self.begun.append(call.call_id)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            await anyio.lowlevel.checkpoint()
            if call.name == "wait":
                await self.go.wait()
            if call.name == "broken":
                raise RuntimeError("out of paper")
        finally:
            self._now -= 1
        self.ran.append(call.call_id)
        return ToolResult(call.call_id, f"{call.name} done")


def host(tools=None, **what):
    return Host(tools=TOOLS, executor=tools or Tools(), **what)

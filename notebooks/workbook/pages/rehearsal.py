"""A rehearsal: the live run, with the real SDK and a real socket, against a server of our own.

The server listens on 127.0.0.1 and plays recorded streams, with the faults that it is told to
have. No key is needed, nothing leaves the machine, and nothing is paid.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentlib.conversation import user
from agentlib.faultserver.replies import Reply
from agentlib.faultserver.server import LoopbackServer
from agentlib.fixtures import tools
from agentlib.laboratory.scenarios import TASK, ended, failure_of
from agentlib.model import StreamingModel
from agentlib.openai_transport import OpenAITransport, Tee
from agentlib.runtime.host import Host
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Outcome
from agentlib.runtime.tools import ToolExecutor
from agentlib.runtime.workspace import Workspace
from agentlib.wording import plural

# The server looks at no key; the SDK insists on one.
NO_KEY = "sk-rehearsal"


@dataclass(frozen=True, repr=False)
class Rehearsal:
    """How a rehearsal went: its outcome, how many requests the server saw, which tools ran."""

    outcome: Outcome
    requests: int
    executed: tuple[str, ...]
    source: str

    def __repr__(self) -> str:
        failure = failure_of(self.outcome)
        why = f": {failure}" if failure is not None else ""
        executed = ", ".join(self.executed) or "nothing"
        asked = f"the server saw {plural(self.requests, 'request')}"
        return f"{ended(self.outcome)}{why}\n{asked} · executed: {executed}"


async def rehearse(*replies: Reply, tee: Tee | None = None) -> Rehearsal:
    """Run the task against a server that gives these replies, one for each request in order."""
    with LoopbackServer(replies) as server, Workspace() as workspace:
        transport = OpenAITransport(api_key=NO_KEY, base_url=server.base_url, tee=tee)
        executor = ToolExecutor(workspace, allow_execution=True)
        try:
            model = StreamingModel(transport, "rehearsal")
            host = Host(tools=tools(), executor=executor)
            run = Run(model, host, RunLimits(parallel_tools=1))
            outcome = await run.start([user(TASK)])
        finally:
            await transport.aclose()
        executed = tuple(call.name for call in executor.executed)
        return Rehearsal(outcome, len(server.requests), executed, workspace.source("calculator.py"))

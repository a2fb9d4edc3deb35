"""An agent on this project's runtime: the real SDK, StreamingModel and Run.

python runtime_agent.py chat
"""

import sys

import anyio
from raw_agent import TOOLS, execute

from agentlib import ToolResult, user
from agentlib.model import StreamingModel, Timers
from agentlib.openai_transport import OpenAITransport
from agentlib.runtime.host import Host
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run

# Shorter than the silence of an attack, which then sees what comes of it.
TIMERS = Timers(liveness=1.0, progress=1.0)


class Tools:
    def runs_in(self, _):
        return "task"

    async def execute(self, call):
        return ToolResult(call.call_id, execute(call.name, call.arguments))


async def run(api, on_malformed="stop"):
    transport = OpenAITransport(provider=api)
    try:
        native = api == "responses"
        model = StreamingModel(transport, "model", provider=api, native=native, timers=TIMERS)
        host = Host(tools=TOOLS, executor=Tools(), on_malformed=on_malformed)
        return await Run(model, host, RunLimits(turns=4)).start([user("Please repair add().")])
    finally:
        await transport.aclose()


if __name__ == "__main__":
    sys.stdout.write(f"{anyio.run(run, sys.argv[1])}\n")

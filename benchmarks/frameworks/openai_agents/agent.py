import asyncio
import sys

from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

from agentlib import probe

set_tracing_disabled(True)
set_default_openai_api("responses" if sys.argv[1] == "responses" else "chat_completions")


@function_tool
def edit(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


@function_tool
def reset(level: int = 0) -> str:
    """Go back to a level."""
    probe.ran("reset", level=level)
    return "reset"


async def main():
    agent = Agent("assistant", model="gpt-4.1-mini", tools=[edit, reset])
    result = Runner.run_streamed(agent, "Please repair add().")
    async for _event in result.stream_events():
        pass
    print(result.final_output)


asyncio.run(main())

import asyncio
import sys

from pydantic_ai import Agent

from agentlib import probe

KIND = {"responses": "openai-responses", "chat": "openai-chat"}
agent = Agent(f"{KIND[sys.argv[1]]}:gpt-4.1-mini")


@agent.tool_plain
def edit(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


@agent.tool_plain
def reset(level: int = 0) -> str:
    """Go back to a level."""
    probe.ran("reset", level=level)
    return "reset"


async def main():
    async with agent.run_stream_events("Please repair add().") as events:
        async for event in events:
            print(event)


asyncio.run(main())

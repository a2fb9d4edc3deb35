import asyncio
import sys

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

from agentlib import probe


def edit(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


def reset(level: int = 0) -> str:
    """Go back to a level."""
    probe.ran("reset", level=level)
    return "reset"


async def main():
    kind = OpenAIChatClient if sys.argv[1] == "responses" else OpenAIChatCompletionClient
    agent = Agent(client=kind(model="gpt-4.1-mini"), tools=[edit, reset])
    async for update in agent.run("Please repair add().", stream=True):
        print(update.text)


asyncio.run(main())

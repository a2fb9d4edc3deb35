import sys

from agno.agent import Agent
from agno.models.openai import OpenAIChat, OpenAIResponses

from agentlib import probe


def edit(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


def reset(level: int = 0) -> str:
    """Go back to a level."""
    probe.ran("reset", level=level)
    return "reset"


kind = OpenAIResponses if sys.argv[1] == "responses" else OpenAIChat
agent = Agent(model=kind(id="gpt-4.1-mini"), tools=[edit, reset])
for event in agent.run("Please repair add().", stream=True):
    print(event)

import sys

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel

from agentlib import probe


@tool
def edit(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


@tool
def reset(level: int = 0) -> str:
    """Go back to a level."""
    probe.ran("reset", level=level)
    return "reset"


kind = OpenAIResponsesModel if sys.argv[1] == "responses" else OpenAIModel
agent = Agent(model=kind(model_id="gpt-4.1-mini"), tools=[edit, reset])
print(agent("Please repair add()."))

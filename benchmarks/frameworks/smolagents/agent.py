from smolagents import OpenAIModel, ToolCallingAgent, tool

from agentlib import probe


@tool
def edit(path: str, old: str, new: str) -> str:
    """Replace a text in a file.

    Args:
        path: The file.
        old: The old text.
        new: The new text.
    """
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


@tool
def reset(level: int = 0) -> str:
    """Go back to a level.

    Args:
        level: The level.
    """
    probe.ran("reset", level=level)
    return "reset"


model = OpenAIModel(model_id="gpt-4.1-mini")
agent = ToolCallingAgent(tools=[edit, reset], model=model, stream_outputs=True)
print(agent.run("Please repair add()."))

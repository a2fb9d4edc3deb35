import sys

import llm

from agentlib import probe


def edit(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


def reset(level: int = 0) -> str:
    """Go back to a level."""
    probe.ran("reset", level=level)
    return "reset"


model = llm.get_model("gpt-5-mini" if sys.argv[1] == "responses" else "gpt-4.1-mini")
for chunk in model.chain("Please repair add().", tools=[edit, reset]):
    print(chunk, end="")

import sys

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from agentlib import probe


def edit(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


def reset(level: int = 0) -> str:
    """Go back to a level."""
    probe.ran("reset", level=level)
    return "reset"


model = ChatOpenAI(
    model="gpt-4.1-mini", streaming=True, use_responses_api=sys.argv[1] == "responses"
)
agent = create_agent(model, tools=[edit, reset])
asked = {"messages": [{"role": "user", "content": "Please repair add()."}]}
for token, _metadata in agent.stream(asked, stream_mode="messages"):
    print(token.content)

import asyncio

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

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
    agent = LlmAgent(model=LiteLlm("openai/gpt-4.1-mini"), name="agent", tools=[edit, reset])
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="user")
    asked = types.Content(role="user", parts=[types.Part(text="Please repair add().")])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    async for event in runner.run_async(
        user_id="user", session_id=session.id, new_message=asked, run_config=config
    ):
        print(event.content, event.error_code)


asyncio.run(main())

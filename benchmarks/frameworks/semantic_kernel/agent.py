import asyncio
import sys

from semantic_kernel.agents import ChatCompletionAgent, OpenAIResponsesAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

from agentlib import probe


class Tools:
    @kernel_function
    def edit(self, path: str, old: str, new: str) -> str:
        """Replace a text in a file."""
        probe.ran("edit", path=path, old=old, new=new)
        return "edited"

    @kernel_function
    def reset(self, level: int = 0) -> str:
        """Go back to a level."""
        probe.ran("reset", level=level)
        return "reset"


async def main():
    if sys.argv[1] == "responses":
        client = OpenAIResponsesAgent.create_client(ai_model_id="gpt-4.1-mini")
        agent = OpenAIResponsesAgent(
            ai_model_id="gpt-4.1-mini", client=client, plugins=[Tools()], name="agent"
        )
    else:
        service = OpenAIChatCompletion(ai_model_id="gpt-4.1-mini")
        agent = ChatCompletionAgent(service=service, plugins=[Tools()], name="agent")
    async for answer in agent.invoke_stream(messages="Please repair add()."):
        print(answer.message)


asyncio.run(main())

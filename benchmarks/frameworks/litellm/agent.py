"""The loop of the documentation's page on function calling, with streaming."""

import json

import litellm

from agentlib import probe


def edit(path: str, old: str, new: str) -> str:
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


def reset(level: int = 0) -> str:
    probe.ran("reset", level=level)
    return "reset"


strings = {name: {"type": "string"} for name in ("path", "old", "new")}
properties = {"edit": strings, "reset": {"level": {"type": "integer"}}}
required = {"edit": list(strings), "reset": []}
functions = [
    {"name": name, "parameters": {"type": "object", "properties": each, "required": required[name]}}
    for name, each in properties.items()
]
tools = [{"type": "function", "function": each} for each in functions]
messages = [{"role": "user", "content": "Please repair add()."}]
while True:
    stream = litellm.completion("openai/gpt-4.1-mini", messages, tools=tools, stream=True)
    message = litellm.stream_chunk_builder(list(stream), messages=messages).choices[0].message
    messages.append(message)
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        run = {"edit": edit, "reset": reset}[call.function.name]
        content = run(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
print(messages[-1].content)

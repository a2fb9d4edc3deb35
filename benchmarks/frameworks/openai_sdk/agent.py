import json
import sys

from openai import OpenAI

from agentlib import probe

MODEL, ASKED = "gpt-4.1-mini", {"role": "user", "content": "Please repair add()."}
TEXTS = {name: {"type": "string"} for name in ("path", "old", "new")}
SCHEMA = {"type": "object", "properties": TEXTS, "required": list(TEXTS)}
EDIT = {"name": "edit", "strict": True, "parameters": {**SCHEMA, "additionalProperties": False}}
TOOL, OLDER = {"type": "function", **EDIT}, {"type": "function", "function": EDIT}


def edit(path, old, new):
    probe.ran("edit", path=path, old=old, new=new)
    return "edited"


def responses(history):
    with OpenAI().responses.stream(model=MODEL, input=history, tools=[TOOL]) as stream:
        response = stream.get_final_response()
    for call in [item for item in response.output if item.type == "function_call"]:
        text = {"edit": edit}[call.name](**json.loads(call.arguments))
        yield {"type": "function_call_output", "call_id": call.call_id, "output": text}
    history += response.output


def chat(history):
    with OpenAI().chat.completions.stream(model=MODEL, messages=history, tools=[OLDER]) as stream:
        message = stream.get_final_completion().choices[0].message
    for call in message.tool_calls or ():
        text = {"edit": edit}[call.function.name](**json.loads(call.function.arguments))
        yield {"role": "tool", "tool_call_id": call.id, "content": text}
    history.append(message)


history, turn = [ASKED], {"responses": responses, "chat": chat}[sys.argv[1]]
while results := list(turn(history)):
    history += results

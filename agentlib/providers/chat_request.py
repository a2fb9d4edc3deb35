"""The OpenAI Chat Completions API: the request encoder.

Source of the rules: OpenAI's API reference, "Chat Completions", create. A call stands inside the
assistant's message, under `tool_calls`; its result is a message of its own, with the role `tool`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentlib.conversation import (
    Catalog,
    Entry,
    Message,
    RejectedCall,
    ToolCall,
    ToolResult,
    check_history,
)
from agentlib.errors import EncodingError
from agentlib.jsonvalues import thaw
from agentlib.providers.requests import (
    MAX_OUTPUT_TOKENS,
    argument_text,
    is_strict,
    refuse_name,
    refuse_surrogates,
)


def encode_request(
    model: str,
    history: Sequence[Entry],
    catalog: Catalog,
    *,
    max_output_tokens: int = MAX_OUTPUT_TOKENS,
    native: bool = False,  # noqa: ARG001 - this API has nothing to ask for
) -> dict[str, Any]:
    """Return the request body for `history` and `catalog`, as plain JSON values.

    The usage is asked for: without `include_usage` a stream reports none. Raises EncodingError
    for what the API cannot carry; nothing is dropped.
    """
    check_history(history)
    if not history:
        raise EncodingError("the history is empty: the API needs at least one message")
    request: dict[str, Any] = {
        "model": model,
        "messages": [_encode(entry, number) for number, entry in enumerate(history, 1)],
        "max_completion_tokens": max_output_tokens,
        "store": False,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if len(catalog):
        request["tools"] = list(_encode_tools(catalog))
    return request


def _encode(entry: Entry, number: int) -> dict[str, Any]:
    if isinstance(entry, ToolResult):
        refuse_surrogates(entry.call_id + entry.output, number)
        return {"role": "tool", "tool_call_id": entry.call_id, "content": entry.output}
    refuse_surrogates(entry.text + entry.refusal, number)
    if not (entry.text or entry.refusal or entry.all_calls):
        raise EncodingError(f"entry {number}: the message is empty; leave it out")
    if entry.role != "assistant":
        return {"role": entry.role, "content": entry.text}
    return _encode_assistant(entry, number)


def _encode_assistant(entry: Message, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": entry.text or None}
    if entry.refusal and not (entry.text or entry.all_calls):
        # The content is required where there is no call, and a refusal may stand in it alone.
        message["content"] = [{"type": "refusal", "refusal": entry.refusal}]
    elif entry.refusal:
        message["refusal"] = entry.refusal
    if entry.all_calls:
        message["tool_calls"] = [_encode_call(call, number) for call in entry.all_calls]
    return message


def _encode_call(call: ToolCall | RejectedCall, number: int) -> dict[str, Any]:
    refuse_name(call.name, f"entry {number}")
    arguments = argument_text(call)
    refuse_surrogates(call.call_id + arguments, number)
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _encode_tools(catalog: Catalog) -> Iterable[dict[str, Any]]:
    for tool in catalog:
        refuse_name(tool.name, "the catalog")
        schema = thaw(tool.parameters)
        yield {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": schema,
                "strict": is_strict(schema),
            },
        }

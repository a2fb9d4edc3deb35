"""The Anthropic Messages API: the request encoder. It is tested offline only.

Source of the rules: Anthropic's API reference, "Messages", and its page on tool use. The system
text stands outside the messages, which alternate between user and assistant; a call is a
`tool_use` block of the assistant, its result a `tool_result` block of the next user message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agentlib.conversation import Catalog, Entry, Message, ToolResult, check_history
from agentlib.errors import EncodingError
from agentlib.jsonvalues import dumps, quote, thaw
from agentlib.providers.requests import MAX_OUTPUT_TOKENS, refuse_name, refuse_surrogates

# The API reference's form of a call's ID.
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")


def encode_request(
    model: str,
    history: Sequence[Entry],
    catalog: Catalog,
    *,
    max_output_tokens: int = MAX_OUTPUT_TOKENS,
    native: bool = False,  # noqa: ARG001 - this API has nothing to ask for
) -> dict[str, Any]:
    """Return the request body for `history` and `catalog`, as plain JSON values.

    Raises EncodingError for what the API cannot carry: a system message after the beginning, a
    history that does not begin with the user, a call ID in another form; nothing is dropped.
    """
    check_history(history)
    system, messages = _split(history)
    request: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "max_tokens": max_output_tokens,
        "stream": True,
    }
    if system:
        request["system"] = system
    if len(catalog):
        request["tools"] = [_encode_tool(tool) for tool in catalog]
    return request


def _split(history: Sequence[Entry]) -> tuple[str, list[dict[str, Any]]]:
    system: list[str] = []
    messages: list[dict[str, Any]] = []
    for number, entry in enumerate(history, 1):
        if isinstance(entry, Message) and entry.role == "system":
            refuse_surrogates(entry.text, number)
            _refuse_blank(entry.text, number)
            if messages:
                raise EncodingError(f"entry {number}: a system message can only stand first")
            system.append(entry.text)
            continue
        role = entry.role if isinstance(entry, Message) else "user"
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += _blocks(entry, number)
        else:
            messages.append({"role": role, "content": _blocks(entry, number)})
    if not messages or messages[0]["role"] != "user":
        raise EncodingError("the history has to begin with the user, after any system message")
    return "\n\n".join(system), messages


def _blocks(entry: Entry, number: int) -> list[dict[str, Any]]:
    if isinstance(entry, ToolResult):
        _refuse_call_id(entry.call_id, number)
        refuse_surrogates(entry.output, number)
        return [{"type": "tool_result", "tool_use_id": entry.call_id, "content": entry.output}]
    refuse_surrogates(entry.text, number)
    if entry.refusal:
        raise EncodingError(f"entry {number}: the API cannot carry a refusal in its history")
    if entry.rejected:
        raise EncodingError(f"entry {number}: the API cannot carry a call whose input is no object")
    if entry.text:
        _refuse_blank(entry.text, number)
    if not (entry.text or entry.calls):
        raise EncodingError(f"entry {number}: the message is empty; leave it out")
    blocks: list[dict[str, Any]] = [{"type": "text", "text": entry.text}] if entry.text else []
    for call in entry.calls:
        refuse_name(call.name, f"entry {number}")
        _refuse_call_id(call.call_id, number)
        refuse_surrogates(dumps(call.arguments), number)
        block = {"type": "tool_use", "id": call.call_id, "name": call.name}
        caller = {"caller": thaw(call.caller)} if call.caller is not None else {}
        blocks.append({**block, "input": thaw(call.arguments), **caller})
    return blocks


def _encode_tool(tool: Any) -> dict[str, Any]:
    refuse_name(tool.name, "the catalog")
    schema = thaw(tool.parameters)
    if schema.get("type") != "object":
        raise EncodingError(f"tool {quote(tool.name)}: the API needs a schema of type object")
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _refuse_blank(text: str, number: int) -> None:
    if not text.strip():
        raise EncodingError(f"entry {number}: the API takes no text of white space alone")


def _refuse_call_id(call_id: str, number: int) -> None:
    if not CALL_ID.fullmatch(call_id):
        raise EncodingError(
            f"entry {number}: call ID {quote(call_id)} cannot be sent; "
            "expected letters, digits, - or _"
        )

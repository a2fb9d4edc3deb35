"""Google's Gemini API: the request encoder. It is tested offline only.

Source of the rules: Google's API reference, "Generating content" (`Content`, `FunctionResponse`,
`FunctionDeclaration`), and its pages on function calling and thought signatures. The model stands
in the path, `/v1beta/models/MODEL:streamGenerateContent?alt=sse`, and the system text outside of
the contents. All results of a turn's calls come in one content, right after it and in the order of
the calls: a call without an ID has nothing else that joins it to its result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentlib.conversation import Catalog, Entry, Message, ToolCall, ToolResult, check_history
from agentlib.errors import EncodingError
from agentlib.jsonvalues import dumps, quote, thaw
from agentlib.providers.requests import MAX_OUTPUT_TOKENS, refuse_name, refuse_surrogates
from agentlib.providers.synthetic import is_local

# The API reference wants a letter or an underscore first.
_FIRST = re.compile(r"[a-zA-Z_]")
# What the page on thought signatures names for the first call of a turn that has none.
UNSIGNED = "skip_thought_signature_validator"


def encode_request(
    model: str,  # noqa: ARG001 - it stands in the path
    history: Sequence[Entry],
    catalog: Catalog,
    *,
    max_output_tokens: int = MAX_OUTPUT_TOKENS,
    native: bool = False,  # noqa: ARG001 - what native replay sends back comes unasked
) -> dict[str, Any]:
    """Return the request body for `history` and `catalog`, as plain JSON values.

    Raises EncodingError for what the API cannot carry: a system message after the beginning, a
    history that does not begin with the user, a refusal; nothing is dropped.
    """
    check_history(history)
    system, contents = _split(history)
    if not contents or contents[0]["role"] != "user":
        raise EncodingError("the history has to begin with the user, after any system message")
    request: dict[str, Any] = {
        "contents": contents,
        "generationConfig": {"maxOutputTokens": max_output_tokens},
    }
    if system:
        request["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    if len(catalog):
        request["tools"] = [{"functionDeclarations": [_encode_tool(tool) for tool in catalog]}]
    return request


def _split(history: Sequence[Entry]) -> tuple[list[str], list[dict[str, Any]]]:
    system: list[str] = []
    contents: list[dict[str, Any]] = []
    calls: dict[str, str] = {}
    results: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(history, 1):
        if isinstance(entry, ToolResult):
            results[entry.call_id] = _result(entry, calls[entry.call_id], number)
            if len(results) == len(calls):
                parts = [results[call_id] for call_id in calls]
                contents.append({"role": "user", "parts": parts})
            continue
        if entry.role == "system":
            refuse_surrogates(entry.text, number)
            if contents:
                raise EncodingError(f"entry {number}: a system message can only stand first")
            if not entry.text:
                raise EncodingError(f"entry {number}: the message is empty; leave it out")
            system.append(entry.text)
            continue
        calls = {call.call_id: call.name for call in entry.calls}
        results = {}
        role = "model" if entry.role == "assistant" else "user"
        contents.append({"role": role, "parts": list(_parts(entry, number))})
    return system, contents


def _parts(entry: Message, number: int) -> Iterable[dict[str, Any]]:
    if entry.native is not None and entry.native.provider == "gemini":
        refuse_surrogates(dumps(entry.native.items), number)
        yield from thaw(entry.native.items)
        return
    refuse_surrogates(entry.text, number)
    if entry.refusal:
        raise EncodingError(f"entry {number}: the API cannot carry a refusal in its history")
    if entry.rejected:
        raise EncodingError(f"entry {number}: the API cannot carry a call whose args are no object")
    if not (entry.text or entry.calls):
        raise EncodingError(f"entry {number}: the message is empty; leave it out")
    if entry.text:
        yield {"text": entry.text}
    for place, call in enumerate(entry.calls):
        part = {"functionCall": {**_joint(call.call_id, number), **_call(call, number)}}
        yield part | ({"thoughtSignature": UNSIGNED} if place == 0 else {})


def _call(call: ToolCall, number: int) -> dict[str, Any]:
    _refuse_name(call.name, f"entry {number}")
    refuse_surrogates(dumps(call.arguments), number)
    return {"name": call.name, "args": thaw(call.arguments)}


def _result(entry: ToolResult, name: str, number: int) -> dict[str, Any]:
    refuse_surrogates(entry.output, number)
    response = {"name": name, "response": {"output": entry.output}}
    return {"functionResponse": {**_joint(entry.call_id, number), **response}}


def _joint(call_id: str, number: int) -> Mapping[str, str]:
    """Return the ID that joins a call and its result, but for one that no server knows."""
    refuse_surrogates(call_id, number)
    return {} if is_local(call_id) else {"id": call_id}


def _encode_tool(tool: Any) -> dict[str, Any]:
    _refuse_name(tool.name, "the catalog")
    schema = thaw(tool.parameters)
    if schema.get("type") != "object":
        raise EncodingError(f"tool {quote(tool.name)}: the API needs a schema of type object")
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": schema}


def _refuse_name(name: str, where: str) -> None:
    refuse_name(name, where)
    if not _FIRST.match(name):
        raise EncodingError(
            f"{where}: tool name {quote(name)} cannot be sent; it has to begin with a letter or _"
        )

"""The OpenAI Responses API: the request encoder.

Source of the rules: OpenAI's API reference, "Responses", create, and the guide to function
calling. A call and its result are two input items, joined by the call ID.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentlib.conversation import Catalog, Entry, Message, ToolResult, ToolSpec, check_history
from agentlib.errors import EncodingError
from agentlib.jsonvalues import dumps, thaw
from agentlib.providers.requests import (
    MAX_OUTPUT_TOKENS,
    argument_text,
    is_strict,
    refuse_name,
    refuse_surrogates,
)
from agentlib.providers.responses_items import is_of_a_program

# Families of models that do not reason, and refuse to be asked for their reasoning. Any other
# model is asked: where its server refuses that, the request is repaired (OPTIONAL in `requests`).
WITHOUT_REASONING = (
    *("gpt-4", "gpt-3.5", "chatgpt-4o", "gpt-5-chat", "gpt-5.1-chat", "gpt-5.2-chat"),
    *("davinci", "babbage"),
)


def takes_reasoning(model: str) -> bool:
    """Whether a model, by its name, may be asked for its encrypted reasoning."""
    name = model.rpartition("/")[2].removeprefix("ft:")
    return not name.startswith(WITHOUT_REASONING)


def encode_request(
    model: str,
    history: Sequence[Entry],
    catalog: Catalog,
    *,
    max_output_tokens: int = MAX_OUTPUT_TOKENS,
    native: bool = False,
) -> dict[str, Any]:
    """Return the request body for `history` and `catalog`, as plain JSON values.

    The whole history goes out every time and nothing is stored, so no ID of an earlier response
    is needed. `native` asks a model that may reason for what native replay sends back: without
    it, reasoning that is not stored comes without its content. Raises EncodingError for what the
    API cannot carry; nothing is dropped.
    """
    check_history(history)
    if not history:
        raise EncodingError("the history is empty: the API needs at least one input item")
    request: dict[str, Any] = {
        "model": model,
        "input": _encode_from(history, 0),
        "tools": [_encode_tool(tool) for tool in catalog],
        "max_output_tokens": max_output_tokens,
        "store": False,
        "stream": True,
    }
    if native and takes_reasoning(model):
        request["include"] = ["reasoning.encrypted_content"]
    return request


def encode_continuation(
    model: str,
    history: Sequence[Entry],
    catalog: Catalog,
    *,
    known: int = 0,
    response_id: str = "",
    max_output_tokens: int = MAX_OUTPUT_TOKENS,
    native: bool = False,
) -> dict[str, Any]:
    """Return the request body that continues response `response_id`, as plain JSON values.

    Its server stored the first `known` entries of `history` under that ID: what was asked, and
    the message that it answered with. Only what is new goes out: the results of its calls, and
    what the user said since. Without an ID the whole history goes out. Either way the answer is
    stored, so that it can be continued in its turn; who must not store uses `encode_request`.
    Raises EncodingError for what the API cannot carry, or what no continuation can.
    """
    request = encode_request(
        model, history, catalog, max_output_tokens=max_output_tokens, native=native
    )
    request["store"] = True
    if not response_id:
        return request
    _check_known(history, known)
    request["previous_response_id"] = response_id
    request["input"] = _encode_from(history, known)
    return request


def _check_known(history: Sequence[Entry], known: int) -> None:
    last = history[known - 1] if 0 < known < len(history) else None
    if not isinstance(last, Message) or last.role != "assistant":
        raise EncodingError(
            "what the server knows ends with its own message, and something new comes after it"
        )
    for number, entry in enumerate(history[known:], known + 1):
        if isinstance(entry, Message) and entry.role != "user":
            raise EncodingError(
                f"entry {number}: a continuation adds results and user messages, saw {entry.role}"
            )


def _encode_from(history: Sequence[Entry], first: int) -> list[dict[str, Any]]:
    callers = dict(_callers(history))
    return [
        item
        for number, entry in enumerate(history[first:], first + 1)
        for item in _encode(entry, number, callers)
    ]


def _callers(history: Iterable[Entry]) -> Iterable[tuple[str, Any]]:
    """Yield the call ID and the caller of each call that a hosted program made."""
    for entry in history:
        turn = entry.native if isinstance(entry, Message) else None
        for item in turn.items if turn is not None else ():
            if item.get("type") == "function_call" and is_of_a_program(item):
                yield item["call_id"], thaw(item["caller"])


def _encode(entry: Entry, number: int, callers: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    if isinstance(entry, ToolResult):
        refuse_surrogates(entry.output, number)
        output = {"type": "function_call_output", "call_id": entry.call_id, "output": entry.output}
        caller = callers.get(entry.call_id)
        yield output if caller is None else {**output, "caller": caller}
        return
    if entry.native is not None and entry.native.provider == "responses":
        refuse_surrogates(dumps(entry.native.items), number)
        yield from thaw(entry.native.items)
        return
    refuse_surrogates(entry.text + entry.refusal, number)
    if not (entry.text or entry.refusal or entry.all_calls):
        raise EncodingError(f"entry {number}: the message is empty; leave it out")
    if entry.text:
        yield {"type": "message", "role": entry.role, "content": entry.text}
    if entry.refusal:
        yield _encode_refusal(entry, number)
    for call in entry.all_calls:
        refuse_name(call.name, f"entry {number}")
        arguments = argument_text(call)
        refuse_surrogates(arguments + call.call_id, number)
        yield {
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": arguments,
        }


def _encode_refusal(entry: Message, number: int) -> dict[str, Any]:
    # A refusal is carried by an output message only, which needs an ID; nothing is stored under it.
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "refusal", "refusal": entry.refusal}],
    }


def _encode_tool(tool: ToolSpec) -> dict[str, Any]:
    refuse_name(tool.name, "the catalog")
    schema = thaw(tool.parameters)
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": schema,
        "strict": is_strict(schema),
    }

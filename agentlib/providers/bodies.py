"""A whole body, which was not streamed, as the native events that it stands for: one row an API.

What was not streamed is judged by the same translator and the same gate as a stream: a body becomes
the shortest stream that says it. A body says for itself whether it is complete, by its status or
its reason, and nothing here makes one up.

Source of the forms: the API references of OpenAI ("Responses", the object; "Chat Completions", the
object), of Anthropic ("Messages", the message) and of Google ("Generating content",
`GenerateContentResponse`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from agentlib.jsonvalues import dumps, quote
from agentlib.providers.fields import Native

_ENDS = ("completed", "failed", "incomplete")


class _Form(NamedTuple):
    """How a body of one API is known, and the events that it stands for."""

    api: str
    known: Callable[[Native], bool]
    events: Callable[[Native], Iterator[Native]]


def api_of_body(body: Native) -> str:
    """Return the provider whose whole response this object is, "" where it is none."""
    return next((form.api for form in _FORMS.values() if form.known(body)), "")


def body_events(api: str, body: Native) -> tuple[Native, ...]:
    """Return the native events that a whole body of this API stands for; it is not changed.

    The stream of them ends cleanly: give all of them to a reader, then call its `end`. Raises
    LookupError for an API that is not known, and nothing for what the body holds.
    """
    return tuple(_FORMS[api].events(body))


def _is_response(body: Native) -> bool:
    return body.get("object") == "response" and "output" in body


def _response(body: Native) -> Iterator[Native]:
    """Yield the events of a Responses object: each item whole, then the end that its status is."""
    yield {"type": "response.created", "response": {"id": body.get("id")}}
    for index, item in enumerate(_objects(body.get("output"))):
        empty = {"arguments": "", "status": "in_progress"} if _is_call(item) else {}
        begun = {**item, **empty} | ({"content": []} if item.get("type") == "message" else {})
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    status = body.get("status")
    if status in _ENDS:
        yield {"type": f"response.{status}", "response": body}
    else:
        yield {"type": "error", "message": f"the body's status is {quote(status)}"}


def _is_call(item: Native) -> bool:
    return item.get("type") == "function_call"


def _is_completion(body: Native) -> bool:
    return any("message" in choice for choice in _objects(body.get("choices")))


def _completion(body: Native) -> Iterator[Native]:
    """Yield the one chunk that a chat completion is: its message is a delta of everything."""
    choices = body.get("choices")
    yield {**body, "choices": [*map(_choice, choices)] if isinstance(choices, list) else choices}


def _choice(choice: Any) -> Any:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return choice
    rest = {name: value for name, value in choice.items() if name != "message"}
    return {**rest, "delta": message}


def _is_message(body: Native) -> bool:
    return body.get("type") == "message" and isinstance(body.get("content"), list)


def _message(body: Native) -> Iterator[Native]:
    """Yield the events of a message: its blocks, then its stop reason and the end."""
    content = body.get("content")
    if not isinstance(content, list):
        yield {"type": "error", "message": f"the body's content is {quote(content)}"}
        return
    yield {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}
    for index, block in enumerate(content):
        yield from _block(index, block)
    delta = {"stop_reason": body.get("stop_reason")}
    yield {"type": "message_delta", "delta": delta, "usage": body.get("usage")}
    yield {"type": "message_stop"}


def _block(index: int, block: Any) -> Iterator[Native]:
    is_tool = isinstance(block, dict) and block.get("type") == "tool_use"
    begun = {**block, "input": {}} if is_tool else block
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    if is_tool:
        delta = {"type": "input_json_delta", "partial_json": _json(block.get("input"))}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _json(value: object) -> str:
    try:
        return dumps(value)
    except (ValueError, RecursionError):
        return "no JSON"  # which the gate refuses


def _is_generated(body: Native) -> bool:
    return "candidates" in body or "promptFeedback" in body


def _generated(body: Native) -> Iterator[Native]:
    """Yield a GenerateContentResponse: it is a chunk as it stands."""
    yield body


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


_FORMS = {
    form.api: form
    for form in (
        _Form("responses", _is_response, _response),
        _Form("chat", _is_completion, _completion),
        _Form("messages", _is_message, _message),
        _Form("gemini", _is_generated, _generated),
    )
}

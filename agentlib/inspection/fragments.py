"""The fragments of a response, in the order in which they came: of each text, and of each call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agentlib.inspection.observations import Native, Seen, objects, place, record, text


class Fragment(NamedTuple):
    """One delta: `key` tells to which call or text it belongs; `kind` is what it is a part of."""

    kind: str  # "text", "reasoning" or "arguments"
    key: object
    text: str


def fragments(seen: Seen) -> Iterator[Fragment]:
    """Yield every fragment that is not empty, whatever the API."""
    find = _OF.get(seen.provider)
    found = (each for event in seen.events for each in find(event)) if find is not None else ()
    yield from (each for each in found if each.text)


def by_key(seen: Seen, *kinds: str) -> dict[object, list[str]]:
    """Return the fragments of each text or call, those of these kinds alone."""
    found: dict[object, list[str]] = {}
    for each in fragments(seen):
        if each.kind in kinds:
            found.setdefault((each.kind, each.key), []).append(each.text)
    return found


def _of_chunk(event: Native) -> Iterator[Fragment]:
    for choice in objects(event.get("choices")):
        delta = record(choice.get("delta"))
        yield Fragment("text", 0, text(delta.get("content")))
        reasoning = text(delta.get("reasoning_content")) or text(delta.get("reasoning"))
        yield Fragment("reasoning", 0, reasoning)
        for call in objects(delta.get("tool_calls")):
            arguments = text(record(call.get("function")).get("arguments"))
            yield Fragment("arguments", str(call.get("index", call.get("id"))), arguments)


def _of_event(event: Native) -> Iterator[Fragment]:
    kind = text(event.get("type"))
    if not kind.endswith(".delta"):
        return
    if kind == "response.output_text.delta":
        yield Fragment("text", place(event), text(event.get("delta")))
    elif kind == "response.function_call_arguments.delta":
        yield Fragment("arguments", place(event), text(event.get("delta")))
    elif kind.startswith("response.reasoning"):
        yield Fragment("reasoning", place(event), text(event.get("delta")))


def _of_block(event: Native) -> Iterator[Fragment]:
    if event.get("type") == "content_block_delta":
        delta, index = record(event.get("delta")), str(event.get("index"))
        yield Fragment("text", index, text(delta.get("text")))
        yield Fragment("reasoning", index, text(delta.get("thinking")))
        yield Fragment("arguments", index, text(delta.get("partial_json")))


_OF = {"chat": _of_chunk, "responses": _of_event, "messages": _of_block}

"""What a native event is called in a list, and the fragment that it carries, for every API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentlib.jsonvalues import dumps, shorten, visible
from agentlib.providers.fields import Native

MAX_LABEL_CHARACTERS = 80
# The keys under which a delta carries its fragment: of a chunk, or of a content block.
_FRAGMENTS = ("content", "reasoning_content", "refusal", "text", "partial_json", "thinking")


def label(native: Native) -> str:
    """Return a short name of a native event: its kind, and of which item or block it tells."""
    kind = native.get("type")
    if not isinstance(kind, str):
        words = next((read(native) for key, read in _CHUNKS.items() if key in native), None)
        short = "event without a type" if words is None else " ".join(("chunk", *words))
    else:
        short = kind.removeprefix("response.") if kind.count(".") > 1 else kind
        short = short.replace("function_call_arguments.", "arguments.")
        item = native.get("item") or native.get("content_block")
        if isinstance(item, Mapping):
            named = item.get("name") or item.get("type")
            short = f"{short} {named}" if isinstance(named, str) else short
    return visible(shorten(short, MAX_LABEL_CHARACTERS))


def fragment(native: Native) -> str | None:
    """Return the fragment of a text or of arguments that an event carries, or None."""
    for part in _parts(native):
        return _part_fragment(part)
    delta = native.get("delta")
    choice = _choice(native)
    if choice is not None:
        delta = choice.get("delta")
    if isinstance(delta, Mapping):
        for call in _calls(delta):
            delta = call.get("arguments")
            break
        else:
            delta = next((delta[key] for key in _FRAGMENTS if delta.get(key)), None)
    return delta if isinstance(delta, str) else None


def _choice(native: Native, key: str = "choices") -> Mapping[str, Any] | None:
    choices = native.get(key)
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def _parts(native: Native) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a chunk of Gemini."""
    content = (_choice(native, "candidates") or {}).get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    yield from filter(_is_object, parts if isinstance(parts, list) else ())


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _part_fragment(part: Mapping[str, Any]) -> str | None:
    call = part.get("functionCall")
    if not isinstance(call, Mapping):
        text = part.get("text")
        return text if isinstance(text, str) and text else None
    pieces = call.get("partialArgs")
    held = filter(_is_object, pieces if isinstance(pieces, list) else ())
    texts = [piece.get("stringValue") for piece in held]
    found = [text for text in texts if isinstance(text, str)]
    if found:
        return " ".join(found)
    return dumps(call["args"]) if isinstance(call.get("args"), Mapping) else None


def _calls(delta: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
            yield call["function"]


def _chunk(native: Native) -> Iterator[str]:
    """Yield what a chunk of Chat Completions tells, by the names of its own fields."""
    choice = _choice(native) or {}
    delta = choice.get("delta")
    if isinstance(delta, Mapping):
        yield from (str(key) for key, value in delta.items() if value)
        yield from (c["name"] for c in _calls(delta) if isinstance(c.get("name"), str))
    if choice.get("finish_reason"):
        yield f"finish_reason {choice['finish_reason']}"
    if native.get("usage"):
        yield "usage"


def _gemini_chunk(native: Native) -> Iterator[str]:
    """Yield what a chunk of Gemini tells, by the names of its own fields."""
    for part in _parts(native):
        yield from (str(key) for key, value in part.items() if value not in (None, ""))
        call = part.get("functionCall")
        if isinstance(call, Mapping) and isinstance(call.get("name"), str):
            yield call["name"]
    reason = (_choice(native, "candidates") or {}).get("finishReason")
    if reason:
        yield f"finishReason {reason}"
    feedback = native.get("promptFeedback")
    if isinstance(feedback, Mapping) and feedback.get("blockReason"):
        yield f"blockReason {feedback['blockReason']}"
    if not reason and native.get("usageMetadata") and not any(True for _ in _parts(native)):
        yield "usageMetadata"


# How a chunk that has no type of its own is named, by a field of its API.
_CHUNKS: dict[str, Callable[[Native], Iterator[str]]] = {
    "choices": _chunk,
    "candidates": _gemini_chunk,
    "promptFeedback": _gemini_chunk,
    "usageMetadata": _gemini_chunk,
}

"""What a native event is called in a list, and the fragment that it carries, for every API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentlib.jsonvalues import shorten, visible
from agentlib.providers.fields import Native

MAX_LABEL_CHARACTERS = 80
# The keys under which a delta carries its fragment: of a chunk, or of a content block.
_FRAGMENTS = ("content", "reasoning_content", "refusal", "text", "partial_json", "thinking")


def label(native: Native) -> str:
    """Return a short name of a native event: its kind, and of which item or block it tells."""
    kind = native.get("type")
    if not isinstance(kind, str):
        short = (
            " ".join(("chunk", *_chunk(native))) if "choices" in native else "event without a type"
        )
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


def _choice(native: Native) -> Mapping[str, Any] | None:
    choices = native.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


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

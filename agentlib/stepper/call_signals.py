"""The signals of a call in one native event, read as a hasty adapter reads it: by itself.

One small reader for each API. None of them asks whether the response may be believed: which call
begins, which grows, which is said to be done, and that the response stops, is all they see.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

BEGINS, GROWS, DONE, ALL_DONE, STOPS = "begins", "grows", "done", "all done", "stops"


class Signal(NamedTuple):
    """One signal of the call at `key`, which is the API's own way to name it.

    `text` is a fragment where the call grows, and all of its arguments where it is done; None
    where the event does not repeat them. `piece` is a fragment of another kind: a value, and the
    path of its argument.
    """

    what: str
    key: str = ""
    call_id: str = ""
    name: str = ""
    text: str | None = None
    piece: Mapping[str, Any] | None = None


def read(native: Mapping[str, Any]) -> Iterator[Signal]:
    """Yield the signals of calls in a decoded native event of any API. Raises nothing."""
    kind = native.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is not None:
        yield from reader(native)
    elif "choices" in native:
        yield from _chunk(native["choices"])
    elif "candidates" in native:
        yield from _candidates(native["candidates"])


def _item_added(native: Mapping[str, Any]) -> Iterator[Signal]:
    item = _object(native.get("item"))
    if item.get("type") == "function_call":
        yield Signal(BEGINS, str(item.get("id")), *_identity(item))
        yield Signal(GROWS, str(item.get("id")), text=_text(item.get("arguments")))


def _item_done(native: Mapping[str, Any]) -> Iterator[Signal]:
    item = _object(native.get("item"))
    if item.get("type") == "function_call":
        whole = _text(item.get("arguments"))
        yield Signal(DONE, str(item.get("id")), *_identity(item), whole)


def _arguments_delta(native: Mapping[str, Any]) -> Iterator[Signal]:
    yield Signal(GROWS, str(native.get("item_id")), text=_text(native.get("delta")))


def _arguments_done(native: Mapping[str, Any]) -> Iterator[Signal]:
    yield Signal(DONE, str(native.get("item_id")), text=_text(native.get("arguments")))


def _block_start(native: Mapping[str, Any]) -> Iterator[Signal]:
    block = _object(native.get("content_block"))
    if block.get("type") == "tool_use":
        yield Signal(BEGINS, str(native.get("index")), _text(block.get("id")), _name(block))


def _block_delta(native: Mapping[str, Any]) -> Iterator[Signal]:
    delta = _object(native.get("delta"))
    if delta.get("type") == "input_json_delta":
        yield Signal(GROWS, str(native.get("index")), text=_text(delta.get("partial_json")))


def _block_stop(native: Mapping[str, Any]) -> Iterator[Signal]:
    yield Signal(DONE, str(native.get("index")))


def _stops(_: Mapping[str, Any]) -> Iterator[Signal]:
    yield Signal(STOPS)


def _chunk(choices: object) -> Iterator[Signal]:
    choice = _object(choices[0] if isinstance(choices, list) and choices else None)
    calls = _object(choice.get("delta")).get("tool_calls")
    for call in map(_object, calls if isinstance(calls, list) else ()):
        function = _object(call.get("function"))
        key = str(call.get("index", 0))
        if call.get("id") and function.get("name"):
            yield Signal(BEGINS, key, str(call["id"]), str(function["name"]))
        yield Signal(GROWS, key, text=_text(function.get("arguments")))
    if choice.get("finish_reason"):
        yield Signal(ALL_DONE)
        yield Signal(STOPS)


def _candidates(candidates: object) -> Iterator[Signal]:
    candidate = _object(candidates[0] if isinstance(candidates, list) and candidates else None)
    parts = _object(candidate.get("content")).get("parts")
    for part in map(_object, parts if isinstance(parts, list) else ()):
        if isinstance(part.get("functionCall"), Mapping):
            yield from _function_call(part["functionCall"])
    if candidate.get("finishReason"):
        yield Signal(STOPS)


def _function_call(call: Mapping[str, Any]) -> Iterator[Signal]:
    # One call at a time: a piece has no index and no name, and belongs to the last that began.
    if call.get("name"):
        yield Signal(BEGINS, "", _text(call.get("id")), _name(call))
    whole = call.get("args")
    if isinstance(whole, Mapping) and whole:
        yield Signal(GROWS, text=json.dumps(whole, ensure_ascii=False))
    pieces = call.get("partialArgs")
    for piece in map(_object, pieces if isinstance(pieces, list) else ()):
        yield Signal(GROWS, piece=piece)
    if not call.get("willContinue"):
        yield Signal(DONE)


_READERS: dict[str, Callable[[Mapping[str, Any]], Iterator[Signal]]] = {
    "response.output_item.added": _item_added,
    "response.function_call_arguments.delta": _arguments_delta,
    "response.function_call_arguments.done": _arguments_done,
    "response.output_item.done": _item_done,
    **dict.fromkeys(
        ("response.completed", "response.incomplete", "response.failed", "message_stop", "error"),
        _stops,
    ),
    "content_block_start": _block_start,
    "content_block_delta": _block_delta,
    "content_block_stop": _block_stop,
}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _name(value: Mapping[str, Any]) -> str:
    return str(value.get("name", ""))


def _identity(item: Mapping[str, Any]) -> tuple[str, str]:
    return str(item.get("call_id", "")), _name(item)

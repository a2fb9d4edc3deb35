"""Write native events as strict JSON text, and as the blocks and comments of an event stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agentlib.jsonvalues import SURROGATE
from agentlib.sse import EventStreamError, ServerSentEvent, decode_event

DONE_BLOCK = b"data: [DONE]\n\n"
# What `mark` writes, with its JSON object, found at the beginning of any line.
MARK = re.compile(rb"(?:\A|(?<=[\r\n])): recorded answer (\{[^\r\n]*\})(?:\r\n|\n|\r|\Z)")


class WrittenEvent(NamedTuple):
    """A native event and its JSON text."""

    data: dict[str, Any]
    raw: str


def written(data: Mapping[str, Any], number: int, received: str | None = None) -> WrittenEvent:
    """Return a copy of `data` and its JSON text, `received` where that still says the same.

    Raises EventStreamError at event `number` where it cannot be written as strict JSON.
    """
    try:
        raw = _ENCODER.encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise EventStreamError(f"it cannot be written as JSON: {error}", event=number) from error
    if received is not None and "\n" not in received and "\r" not in received:
        with suppress(EventStreamError):
            read = decode_event(ServerSentEvent("", received, number))
            if _ENCODER.encode(read) == raw:
                return WrittenEvent(read, received)
    if SURROGATE.search(raw):
        raw = json.dumps(json.loads(raw), separators=(",", ":"))
    return WrittenEvent(decode_event(ServerSentEvent("", raw, number)), raw)


def as_block(data: Mapping[str, Any], raw: str) -> bytes:
    """Return one event as a block of an event stream, named by its type where it has one."""
    kind = data.get("type")
    plain = isinstance(kind, str) and kind.isascii() and kind.isprintable()
    named = f"event: {kind}\n" if plain else ""
    return f"{named}data: {raw}\n\n".encode()


def as_comments(lines: Iterable[str]) -> bytes:
    """Return comment lines of an event stream, with a blank line after them, if there are any."""
    text = "".join(f": {line}\n" for line in lines)
    return f"{text}\n".encode() if text else b""


def mark(where: str, tools: list[dict[str, Any]] | None = None) -> bytes:
    """Return the comment that begins one answer among several: its place, and its catalog.

    It is a comment of the event stream, so that any reader passes over it.
    """
    fields: dict[str, Any] = {"from": where}
    if tools is not None:
        fields["tools"] = tools
    return b": recorded answer %b\n" % json.dumps(fields, separators=(",", ":")).encode()


def _plain(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
)

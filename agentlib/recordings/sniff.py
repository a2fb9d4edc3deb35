"""What bytes are that were taken for a recorded stream and hold no event, in one plain sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agentlib.jsonvalues import JSON_NAMES, StrictJSONError, loads_unique, quote
from agentlib.sse import BOM

UNKNOWN_RECORDING = "this is a recording in JSON of an unknown kind"
_MAX_NAMES = 6
_SPACE = b" \t\r\n"
_MAGIC = (
    (b"\x1f\x8b", "this is compressed with gzip, and cannot be unpacked"),
    (b"PK\x03\x04", "this is a zip archive: unpack it first"),
    (b"\xff\xfe", "this is UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "this is UTF-16 text: save it as UTF-8"),
)
# A line that only an event stream begins with: a comment, or a field of the standard.
_STREAM_LINE = re.compile(rb"(?:data|event|id|retry)?(?::|[\r\n]|\Z)")
_HTML = re.compile(
    rb"(?:<!--[^>]*-->\s*)?<(?:!doctype\s+html|html|head|body|title)\b", re.IGNORECASE
)


def head(source: bytes) -> bytes:
    """Return up to 1,024 bytes from the first that is neither white space nor a byte order mark."""
    blank = re.match(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*", source)
    first = blank.end() if blank else 0
    return source[first : first + 1024]


def what_it_is(source: bytes) -> str | None:
    """Say what `source`, in which no event was found, is; None where it is a stream after all."""
    start = head(source)
    if not source:
        return "the file is empty"
    if not start:
        return "the file holds nothing but white space"
    for magic, sentence in _MAGIC:
        if source.startswith(magic):
            return sentence
    if _STREAM_LINE.match(start):
        return None
    if start.startswith((b"{", b"[")):
        return _what_json_it_is(source)
    try:
        text = source.decode()
    except UnicodeDecodeError as error:
        return _binary(f"byte 0x{source[error.start]:02x} at offset {error.start} is not UTF-8")
    if "\0" in text:
        return _binary(f"NUL byte at offset {source.index(0)}")
    name = "HTML" if _HTML.match(start) else "XML" if start.startswith(b"<?xml") else "text"
    return f"this is {name}, not an event stream: it starts with {quote(_first_line(start))}"


def is_one_document(source: bytes, lines: Sequence[bytes]) -> bool:
    """Whether `source`, whose nonblank lines are `lines`, is one JSON value and no event a line.

    An object on a line of its own is an event where it says its kind, or is a Chat chunk.
    """
    first = parse_document(lines[0]) if lines else None
    if len(lines) == 1:
        return first is not None and not is_event(first)
    return first is None and parse_document(source) is not None


def _binary(what: str) -> str:
    return f"binary data: {what}"


def _first_line(start: bytes) -> str:
    return start.split(b"\n")[0].strip(_SPACE).decode(errors="replace")


def parse_document(text: bytes) -> dict[str, Any] | list[Any] | None:
    """Return the one JSON object or array that a text is, or None."""
    try:
        value = loads_unique(text.removeprefix(BOM).decode())
    except (UnicodeDecodeError, StrictJSONError):
        return None
    return value if isinstance(value, dict | list) else None


def is_event(value: dict[str, Any] | list[Any]) -> bool:
    """Say whether an object on its own is an event: it says its kind, or is a Chat chunk."""
    if isinstance(value, list):
        return False
    if value.get("object") == "chat.completion.chunk":
        return True
    # A whole message of the Messages API has a type too, and it is no event.
    return isinstance(value.get("type"), str) and value["type"] != "message"


def _what_json_it_is(source: bytes) -> str | None:
    value = parse_document(source)
    if value is None:
        first_line = source.removeprefix(BOM).strip(_SPACE).split(b"\n")[0]
        several = parse_document(first_line) is not None
        return "these are JSON lines: name the file .jsonl" if several else None
    if isinstance(value, list):
        first = f", the first {_looks_like(value[0])}" if value else ""
        return f"{UNKNOWN_RECORDING}: an array of {len(value)} values{first}"
    error = value.get("error")
    if error:
        said = error.get("message") if isinstance(error, dict) else error
        return f"this is a JSON error body, not a stream of events: {quote(said)}"
    if isinstance(value.get("output", value.get("choices", value.get("content"))), list):
        return "this is a whole response as one JSON object, not a stream of events"
    return f"{UNKNOWN_RECORDING}: {_looks_like(value)}"


def _looks_like(value: object) -> str:
    if not isinstance(value, dict):
        return JSON_NAMES[type(value)]
    names = ", ".join(map(quote, [*value][:_MAX_NAMES]))
    more = f" and {len(value) - _MAX_NAMES} more" if len(value) > _MAX_NAMES else ""
    return f"an object with {names}{more}" if names else "an empty object"

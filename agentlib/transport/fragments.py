"""The places in a recording where text stands: its lines, its events, and their fragments.

Whoever rewrites a recording goes through here, so that every byte that need not change stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from agentlib.jsonvalues import StrictJSONError, has_surrogate, loads_unique
from agentlib.transport.sse import BOM

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_LF_LINE = re.compile(rb"[^\n]*(?:\n|\Z)")


class Fragment(str):
    """A text that was rewritten already, and is passed over by what comes later."""

    __slots__ = ()


class Leaf(NamedTuple):
    """One fragment of a streamed text: the key of that text, and where in its event it stands."""

    key: tuple[object, ...]
    owner: dict[str, Any]
    name: str

    @property
    def text(self) -> str:
        """The fragment."""
        text: str = self.owner[self.name]
        return text

    def put(self, text: str) -> None:
        """Replace the fragment."""
        self.owner[self.name] = Fragment(text)


def leaves(event: Mapping[str, Any]) -> Iterator[Leaf]:
    """Yield the fragments that an event of any API carries."""
    delta = event.get("delta")
    kind = _key(event.get("type"))
    if isinstance(delta, str) and isinstance(event, dict):
        item = event.get("output_index", event.get("item_id"))
        part = event.get("content_index", event.get("summary_index"))
        yield Leaf((kind, _key(item), _key(part)), event, "delta")
    elif isinstance(delta, dict):
        yield from _texts(delta, (kind, _key(event.get("index"))))
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if isinstance(delta, dict):
            yield from _of_chat(delta, _key(choice.get("index")))


def opens_response(event: Mapping[str, Any]) -> bool:
    """Whether a further response may begin with this event: its fragments are others."""
    return event.get("type") in ("response.created", "message_start")


def _of_chat(delta: dict[str, Any], choice: object) -> Iterator[Leaf]:
    yield from _texts(delta, (choice,))
    calls = delta.get("tool_calls")
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            yield Leaf((choice, "call", _key(call.get("index", position))), function, "arguments")


def _texts(owner: dict[str, Any], key: tuple[object, ...]) -> Iterator[Leaf]:
    for name, value in owner.items():
        if isinstance(value, str) and name not in ("type", "role"):
            yield Leaf((*key, name), owner, name)


def _key(value: object) -> object:
    return value if isinstance(value, str | int) else None


class _Event:
    """The lines of one event that carry its data, and the object that they say, if any."""

    def __init__(self, lines: list[bytes], first: bytes) -> None:
        self.lines = lines
        self.first = first  # what stands before the data on a line that is written anew
        self.data: dict[str, Any] | None = None

    def read(self) -> dict[str, Any] | None:
        """Return the object anew."""
        return _parsed(b"".join(self.lines), self.first)


class Blocks:
    """A recording, taken apart into lines that are no data, and events; `join` puts it together.

    In an event stream an event is the `data` lines of one block, in JSON lines each line that is
    an object.
    """

    def __init__(self, body: bytes, form: Literal["sse", "jsonl"]) -> None:
        self._parts: list[bytes | _Event] = []
        if form == "jsonl":
            self._take_lines(body)
        else:
            self._take_blocks(body)

    def _take_lines(self, body: bytes) -> None:
        for found in _LF_LINE.finditer(body):
            event = _Event([found[0]], b"")
            event.data = event.read()
            self._parts.append(found[0] if event.data is None else event)

    def _take_blocks(self, body: bytes) -> None:
        block: _Event | None = None
        for found in _LINE.finditer(body):
            line = found[0]
            content = line.rstrip(b"\r\n").removeprefix(BOM)
            if content.partition(b":")[0] == b"data":
                if block is None:
                    block = _Event([], b"data: ")
                    self._parts.append(block)
                block.lines.append(line)
                continue
            self._parts.append(line)
            if not content and block is not None:
                block.data = block.read()
                block = None

    @property
    def lines(self) -> Iterator[str]:
        """The lines that are no event's data."""
        return (_decode(part) for part in self._parts if isinstance(part, bytes))

    @property
    def events(self) -> Iterator[dict[str, Any] | None]:
        """The objects of the events, None where an event's data is no object."""
        return (part.data for part in self._parts if isinstance(part, _Event))

    def rewrite_lines(self, change: Callable[[str], str]) -> None:
        """Replace each line that is no event's data by what `change` makes of it."""
        self._parts = [
            _encode(change(_decode(part))) if isinstance(part, bytes) else part
            for part in self._parts
        ]

    def rewrite_events(
        self, change: Callable[[dict[str, Any]], dict[str, Any]], change_text: Callable[[str], str]
    ) -> None:
        """Replace each event by what `change` makes of its object, `change_text` where it has none.

        An event that stays the same keeps its bytes.
        """
        for part in self._parts:
            if isinstance(part, bytes):
                continue
            if part.data is None:
                part.lines = [_encode(change_text(_decode(line))) for line in part.lines]
                continue
            value = change(part.data)
            if value != part.read():
                end = part.lines[-1][len(part.lines[-1].rstrip(b"\r\n")) :]
                mark = BOM if part.lines[0].startswith(BOM) else b""
                part.lines = [mark + part.first + _encode(write_object(value)) + end]

    def join(self) -> bytes:
        """Return the bytes of the recording as it is now."""
        return b"".join(
            part if isinstance(part, bytes) else b"".join(part.lines) for part in self._parts
        )


def line_of_event(body: bytes, form: Literal["sse", "jsonl"], number: int) -> int:
    """Return the line, from 1, on which event `number` of a stream begins, or would have."""
    seen = 0
    line = 0
    inside = False
    for line, found in enumerate((_LF_LINE if form == "jsonl" else _LINE).finditer(body), 1):
        content = found[0].strip(b" \t\r\n" if form == "jsonl" else b"\r\n").removeprefix(BOM)
        if form == "jsonl":
            seen += bool(content)
        elif content.partition(b":")[0] == b"data":
            seen += not inside
            inside = True
        inside = inside and bool(content)
        if seen == number:
            return line
    return line


def write_object(value: Mapping[str, Any]) -> str:
    """Write an object as compact JSON, lone halves of escape pairs as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, separators=(",", ":")) if has_surrogate(text) else text


def _parsed(lines: bytes, first: bytes) -> dict[str, Any] | None:
    text = lines.removeprefix(BOM)
    if first:
        pieces = (line.partition(b":")[2].removeprefix(b" ") for line in _split(text))
        text = b"\n".join(pieces)
    try:
        value = loads_unique(text.decode())
    except (StrictJSONError, UnicodeDecodeError):
        return None
    return value if isinstance(value, dict) else None


def _split(text: bytes) -> list[bytes]:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n").split(b"\n")


def _decode(line: bytes) -> str:
    return line.decode(errors="surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogateescape")

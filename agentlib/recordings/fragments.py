"""The places in a recording where text stands: its lines, its events, and their fragments.

Whoever rewrites a recording goes through here, so that every byte that need not change stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from agentlib.jsonvalues import StrictJSONError, has_surrogate, loads_unique
from agentlib.sse import BOM, MAX_EVENT_BYTES

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_LF_LINE = re.compile(rb"[^\n]*(?:\n|\Z)")
_DATA_LINE = re.compile(rb"(?<![^\r\n])data(?=[:\r\n]|\Z)[^\r\n]*(?:\r\n|\n|\r|\Z)")
# After a line's end: whether a blank line stands in what follows.
_BLANK = re.compile(rb"\A[\r\n]|\n[\r\n]|\r\r")
# What tells events, items and calls apart, and how they ended. It is no text.
_STRUCTURE = frozenset(
    (
        *("type", "object", "status", "role", "name", "model", "reason"),
        *("finish_reason", "stop_reason"),
        *("finishReason", "blockReason", "responseId", "modelVersion", "jsonPath"),
    )
)

_OPENINGS = ("response.created", "message_start")


def is_structure(name: str) -> bool:
    """Whether a field of this name carries the structure of a stream: its kinds, names and IDs."""
    return name in _STRUCTURE or name == "id" or name.endswith("_id")


class Fragment(str):
    """A text that was looked at already, and is passed over by what comes later."""

    __slots__ = ()


class Masked(Fragment):
    """A fragment that was changed."""

    __slots__ = ()


class Leaf(NamedTuple):
    """One fragment of a text: what holds it, and its name or number there."""

    owner: Any
    name: str | int

    @property
    def text(self) -> str:
        """The fragment."""
        text: str = self.owner[self.name]
        return text

    def put(self, text: str) -> None:
        """Replace the fragment."""
        self.owner[self.name] = Fragment(text) if text == self.text else Masked(text)


class Text(NamedTuple):
    """One text, whole or in fragments: each owner holds one of them under `name`."""

    name: str | int
    owners: list[Any]

    @property
    def whole(self) -> str:
        """The fragments joined."""
        name = self.name
        return "".join([owner[name] for owner in self.owners])

    @property
    def pieces(self) -> Iterator[Leaf]:
        """The fragments, in order."""
        return (Leaf(owner, self.name) for owner in self.owners)


class _Node:
    """A path in the events of one place: who owns its strings, by name, and what lies deeper."""

    __slots__ = ("inner", "owners")

    def __init__(self) -> None:
        self.owners: dict[str | int, list[Any]] = {}
        self.inner: dict[object, _Node] = {}

    def texts(self) -> Iterator[Text]:
        for name, owners in self.owners.items():
            yield Text(name, owners)
        for node in self.inner.values():
            yield from node.texts()


class Contents:
    """All that events hold, found in one pass: the names of their fields, and their texts.

    Strings of one kind of event, at one path, with one index of the item and of the part, are
    fragments of one text, within one response. `names` says of each whether it is_structure, and
    `structure` are the values that stand there. None among the events is `[DONE]`.
    """

    def __init__(self, events: Iterable[Mapping[str, Any] | None]) -> None:
        self.names: dict[str, bool] = {}
        self.structure: set[str] = set()
        self._root = _Node()
        response = 0
        for event in events:
            # The next response of a recording begins anew: its fragments are others.
            if event is None or event.get("type") in _OPENINGS:
                response += 1
            if event is not None:
                self._take_object(event, _deeper(self._root, (response, *_place(event))))

    @property
    def texts(self) -> Iterator[Text]:
        """The texts, but not what is_structure."""
        return self._root.texts()

    def _take_object(self, owner: Mapping[str, Any], node: _Node) -> None:
        # Every field of every event comes through here: a tree of nodes needs no key for each.
        names = self.names
        for name, value in owner.items():
            structural = names.get(name)
            if structural is None:
                structural = names[name] = is_structure(name)
            kind = type(value)
            if kind is str:
                if structural:
                    self.structure.add(value)
                elif name in node.owners:
                    node.owners[name].append(owner)
                else:
                    node.owners[name] = [owner]
            elif kind is dict and value:
                # A block of the Messages API may begin with the first fragment of its text.
                inner = "delta" if name == "content_block" else name
                self._take_object(value, _deeper(node, inner))
            elif kind is list and value:
                self._take_list(value, _deeper(node, name))

    def _take_list(self, owner: list[Any], node: _Node) -> None:
        for position, value in enumerate(owner):
            if type(value) is dict:
                # A list may say for itself which of several each entry is.
                self._take_object(value, _deeper(node, _key(value.get("index", position))))
            elif type(value) is list:
                self._take_list(value, _deeper(node, position))
            elif type(value) is str:
                node.owners.setdefault(position, []).append(owner)


def _deeper(node: _Node, name: object) -> _Node:
    inner = node.inner.get(name)
    if inner is None:
        inner = node.inner[name] = _Node()
    return inner


def _place(event: Mapping[str, Any]) -> tuple[object, ...]:
    kind = _key(event.get("type"))
    item = event.get("output_index", event.get("item_id", event.get("index")))
    part = event.get("content_index", event.get("summary_index"))
    kind = "content_block_delta" if kind == "content_block_start" else kind
    return kind, _key(item), _key(part)


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

    In an event stream an event is the `data` lines of one block, the last one also where it has
    no end; in JSON lines each line that is an object. All of them are here, also those after the
    one at which reading stops.
    """

    def __init__(self, body: bytes, form: Literal["sse", "jsonl"]) -> None:
        mark = BOM if body.startswith(BOM) else b""
        self._parts: list[bytes | _Event] = [mark] if mark else []
        if form == "jsonl":
            self._take_lines(body, len(mark))
        else:
            self._take_blocks(body[len(mark) :])

    def _take_lines(self, body: bytes, start: int) -> None:
        for found in _LF_LINE.finditer(body, start):
            event = _Event([found[0]], b"")
            event.data = event.read()
            self._parts.append(found[0] if event.data is None else event)

    def _take_blocks(self, body: bytes) -> None:
        block: _Event | None = None
        at = 0
        for found in _DATA_LINE.finditer(body):
            between = body[at : found.start()]
            at = found.end()
            if block is not None and not _BLANK.search(between):
                self._parts.insert(-1, between)  # what is no data of a block comes first
            else:
                block = _Event([], b"data: ")
                self._parts += [between, block]
            block.lines.append(found[0])
        self._parts.append(body[at:])
        for part in self._parts:
            if isinstance(part, _Event):
                part.data = part.read()

    @property
    def lines(self) -> Iterator[str]:
        """The lines that are no event's data, one or several at a time."""
        return (_decode(part) for part in self._parts if isinstance(part, bytes))

    @property
    def events(self) -> Iterator[dict[str, Any] | None]:
        """The objects of the events, None where an event's data is no object."""
        return (part.data for part in self._parts if isinstance(part, _Event))

    def rewrite_lines(self, change: Callable[[str], str]) -> None:
        """Replace the lines that are no event's data by what `change` makes of them."""
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
                part.lines = [part.first + _encode(write_object(value)) + end]

    def join(self) -> bytes:
        """Return the bytes of the recording as it is now."""
        return b"".join(
            part if isinstance(part, bytes) else b"".join(part.lines) for part in self._parts
        )


def line_of_event(body: bytes, form: Literal["sse", "jsonl"], number: int) -> int:
    """Return the line, from 1, on which event `number` of a stream begins, or would have."""
    line = 0
    for line, (seen, _) in enumerate(_event_lines(body, form), 1):
        if seen == number:
            return line
    return line


def offset_of_event(body: bytes, form: Literal["sse", "jsonl"], number: int) -> int:
    """Return the byte at which the data of event `number` begins; all bytes where there is none."""
    return next((at for seen, at in _event_lines(body, form) if seen == number), len(body))


def _event_lines(body: bytes, form: Literal["sse", "jsonl"]) -> Iterator[tuple[int, int]]:
    """Yield for each line how many events have begun with it, and the byte at which it begins."""
    seen = 0
    inside = False
    for found in (_LF_LINE if form == "jsonl" else _LINE).finditer(body):
        content = found[0].strip(b" \t\r\n" if form == "jsonl" else b"\r\n").removeprefix(BOM)
        if form == "jsonl":
            seen += bool(content)
        elif content.partition(b":")[0] == b"data":
            seen += not inside
            inside = True
        inside = inside and bool(content)
        yield seen, found.start()


def write_object(value: Mapping[str, Any]) -> str:
    """Write an object as compact JSON, lone halves of escape pairs as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, separators=(",", ":")) if has_surrogate(text) else text


def _parsed(lines: bytes, first: bytes) -> dict[str, Any] | None:
    text = lines
    if len(text) > MAX_EVENT_BYTES:
        return None  # written anew it might be smaller, and read after all
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

"""A preview of JSON that is still arriving, as lenient parsers make one to show it early.

It closes the string, the arrays and the objects that are open, and leaves out a last member that
has no value yet. This is good for showing and bad for acting: what it returns was never said.
"""

from __future__ import annotations

import json
from typing import Any

# A longer text is not previewed any more: each look at it costs time that grows with it.
MAX_CHARACTERS = 20_000
_CLOSERS = {"{": "}", "[": "]"}


class Preview:
    """Takes the fragments of one JSON text with `feed`; `value` is the object so far."""

    __slots__ = ("_comma", "_escaped", "_in_string", "_open", "_size", "_text")

    def __init__(self) -> None:
        self._text = ""
        self._size = 0
        self._open: list[str] = []
        self._in_string = self._escaped = False
        self._comma: tuple[int, str] | None = None

    @property
    def closed(self) -> bool:
        """Whether nothing is open: the text may be whole."""
        return not self._open and not self._in_string

    def feed(self, fragment: str) -> None:
        """Take the next fragment."""
        start = self._size
        self._size += len(fragment)
        if self._size > MAX_CHARACTERS:
            return
        self._text += fragment
        for place, character in enumerate(fragment, start):
            self._look(character, place)

    def _look(self, character: str, place: int) -> None:
        if self._in_string:
            self._in_string = self._escaped or character != '"'
            self._escaped = character == "\\" and not self._escaped
        elif character == '"':
            self._in_string = True
        elif character in _CLOSERS:
            self._open.append(_CLOSERS[character])
        elif character in "}]" and self._open:
            self._open.pop()
        elif character == ",":
            self._comma = place, self._closing()

    def _closing(self) -> str:
        return "".join(reversed(self._open))

    def value(self) -> dict[str, Any] | None:
        """Return the text so far as an object, closed where it is open, or None."""
        if self._size > MAX_CHARACTERS or not self._text.strip():
            return None
        closed = self._text + ('"' if self._in_string else "") + self._closing()
        value = _parsed(closed)
        if value is None and self._comma is not None:
            place, closing = self._comma
            value = _parsed(self._text[:place] + closing)
        return value


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

"""Bytes of one JSON array to its elements, incrementally and without I/O, as if they were events.

`streamGenerateContent` answers so where `alt=sse` is not asked for: one JSON array, whose elements
come one after the other. An element is known to be whole by its brackets alone (RFC 8259): it is
parsed by whoever takes it. The array is over at its own closing bracket; bytes that end before it
were cut, whatever came so far.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from agentlib.sse import BOM, MAX_EVENT_BYTES, EventStreamError, ServerSentEvent, too_large

# Inside of a string only its end and an escape count; outside, what opens and closes.
_IN_STRING = re.compile(rb'["\\]')
_OUTSIDE = re.compile(rb'["{}\[\]]')
_BETWEEN = b" \t\r\n"
_BLANK = re.compile(rb"[ \t\r\n]*")


class ArrayEnd(NamedTuple):
    """How an array ended: whether its bracket came, and how many bytes were left over."""

    closed: bool
    dropped: int


class JSONArrayDecoder:
    """Turns the bytes of one JSON array of objects, in chunks of any size, into its elements.

    `max_event_bytes` bounds one element. The data of an element is its text as it came.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.max_event_bytes = max_event_bytes
        self._pending = bytearray()
        self._at = 0  # how far the pending bytes were looked at
        self._depth = 0
        self._in_string = False
        self._state = "before"  # then "first", "comma", "element", "after": see _NEXT
        self._number = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the elements that they complete, in order.

        Raises EventStreamError, with the elements before it, for anything that is no array of
        objects, for bad UTF-8, and for an element above the bound.
        """
        self._pending += chunk
        found: list[ServerSentEvent] = []
        try:
            while self._step(found):
                pass
        except EventStreamError as error:
            raise EventStreamError(error.reason, event=error.event, events=found) from error
        return found

    def end(self) -> ArrayEnd:
        """Say that the bytes ended."""
        return ArrayEnd(self._state == "after", len(self._pending.strip(_BETWEEN)))

    def _step(self, found: list[ServerSentEvent]) -> bool:
        if self._depth:
            return self._inside(found)
        if self._state == "before" and BOM.startswith(self._pending[: len(BOM)]):
            if len(self._pending) < len(BOM):
                return False
            del self._pending[: len(BOM)]
        blank = _BLANK.match(self._pending)
        # A copy of the rest for each element would cost the square of their number.
        del self._pending[: blank.end() if blank else 0]
        first = bytes(self._pending[:1])
        if not first:
            return False
        follows = _NEXT.get((self._state, first))
        if follows is None:
            seen = first.decode(errors="replace")
            raise self._fault(f"expected one JSON array of objects, saw {seen!r}")
        self._state = follows
        if first == b"{":
            self._depth, self._at = 1, 1
        else:
            del self._pending[:1]
        return True

    def _inside(self, found: list[ServerSentEvent]) -> bool:
        while self._depth:
            pattern = _IN_STRING if self._in_string else _OUTSIDE
            mark = pattern.search(self._pending, self._at)
            if mark is None:
                self._at = len(self._pending)
                self._bound(self._at)
                return False
            self._at = mark.end()
            if mark[0] == b"\\":
                if self._at >= len(self._pending):
                    self._at -= 1
                    return False
                self._at += 1
            elif mark[0] == b'"':
                self._in_string = not self._in_string
            else:
                self._depth += 1 if mark[0] in (b"{", b"[") else -1
        self._bound(self._at)
        found.append(self._taken())
        return True

    def _taken(self) -> ServerSentEvent:
        element = bytes(self._pending[: self._at])
        del self._pending[: self._at]
        try:
            text = element.decode()
        except UnicodeDecodeError as error:
            raise self._fault(f"its text is not UTF-8: {error.reason}") from error
        self._number += 1
        return ServerSentEvent("", text, self._number)

    def _bound(self, size: int) -> None:
        if size > self.max_event_bytes:
            raise self._fault(too_large(self.max_event_bytes))

    def _fault(self, reason: str) -> EventStreamError:
        return EventStreamError(reason, event=self._number + 1)


# Which character may come next where no element is open, and what is expected behind it.
_NEXT = {
    ("before", b"["): "first",
    ("first", b"{"): "comma",
    ("first", b"]"): "after",
    ("comma", b","): "element",
    ("comma", b"]"): "after",
    ("element", b"{"): "comma",
}

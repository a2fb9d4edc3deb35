"""Bytes to server-sent events, incrementally and without I/O, then each event's data to JSON.

The rules are those of the WHATWG HTML standard, "Server-sent events": the sections "Parsing an
event stream" (what ends a line, the byte order mark) and "Interpreting an event stream" (fields,
comments, when an event is dispatched). Three rules are stricter or ours:

- UTF-8 is strict: the standard repairs bad bytes, here they fail. A repaired argument is another
  argument.
- One event has a bound, enforced while its bytes arrive, and so has the number of events.
- `id` and `retry` are ignored: nothing here reconnects.

A stream becomes blocks, each ended by a blank line; a block with a `data` field is an event. So
an event without its closing blank line does not exist, and any split of the same bytes gives the
same events. Each byte is copied a fixed number of times, however small the chunks are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from agentlib.errors import AgentlibError
from agentlib.jsonvalues import StrictJSONError, loads_unique, quote

# The terminal event restates the whole response. Text and calls within their limits stay far
# below 1 MB, but one generated image is 2 to 6 MB of base64 and a response may hold two.
MAX_EVENT_BYTES = 16 * 1024 * 1024
# An answer at the limit of its text has some 64,000 deltas of one character. A packet of a few
# kilobytes can unpack to millions of empty events.
MAX_EVENTS = 200_000

DONE = "[DONE]"
# What stands for `[DONE]` in a stream of decoded events. It is known by identity: no server can
# send it, whatever JSON it writes.
DONE_EVENT: Mapping[str, Any] = MappingProxyType({"type": DONE})
BOM = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"


class EventStreamError(AgentlibError):
    """Raised when bytes are no event stream, or an event's data is not what it must be.

    `reason` is one sentence, `event` the number (from 1) that the event has or would have had,
    `events` those that were completed earlier by the same `feed`: they are good.
    """

    def __init__(self, reason: str, *, event: int, events: Sequence[ServerSentEvent] = ()) -> None:
        super().__init__(f"event {event}: {reason}")
        self.reason = reason
        self.event = event
        self.events = tuple(events)


class ServerSentEvent(NamedTuple):
    """One dispatched event: its `event:` field ("" where it has none), its data, its number.

    Numbers count from 1 and include the two kinds of event that carry nothing, told by `empty`
    and `done`.
    """

    kind: str
    data: str
    number: int

    @property
    def empty(self) -> bool:
        """Whether its data is nothing but white space: a keep-alive that some servers send."""
        return not self.data.strip(_SPACE)

    @property
    def done(self) -> bool:
        """Whether its data is `[DONE]`: a separator that some servers send last, and no JSON."""
        return self.data.strip(_SPACE) == DONE


class EventStreamDecoder:
    """Turns the bytes of one stream, in chunks of any size, into its events.

    `max_event_bytes` bounds one block: all bytes between two blank lines, comments included,
    each line end counted as one byte and the last one not at all. After `end`, `dropped` is the
    size in the same count of an unfinished block, 0 where there is none but comments.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.max_event_bytes = max_event_bytes
        self.dropped = 0
        self._number = 0
        self._start: bytes | None = b""  # the first bytes, while they may be a byte order mark
        self._after_cr = False
        self._pending = bytearray()  # an unfinished block; never begins with a line end
        self._failure: EventStreamError | None = None
        self._ended = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events that they complete, in order.

        Raises EventStreamError for bad UTF-8, for an event above the bound and for one more than
        MAX_EVENTS, then and at every later call; ValueError after `end`.
        """
        self._refuse_failed()
        if self._ended:
            raise ValueError("the stream has ended; a new stream needs a new decoder")
        events: list[ServerSentEvent] = []
        blocks = self._split(self._line_feeds(self._without_bom(chunk)))
        tail = blocks.pop()
        for block in blocks:
            if len(block.lstrip(b"\n")) > self.max_event_bytes:
                raise self._fail(too_large(self.max_event_bytes), events)
            try:
                text = block.decode()
            except UnicodeDecodeError as error:
                raise self._fail(bad_utf8(error), events) from error
            event = self._interpret(text)
            if self._number > MAX_EVENTS:
                self._number = MAX_EVENTS
                raise self._fail(too_many(MAX_EVENTS), events)
            if event is not None:
                events.append(event)
        if not self._pending:
            tail = tail.lstrip(b"\n")
        size = len(self._pending) + len(tail.removesuffix(b"\n"))
        if tail and size > self.max_event_bytes:
            raise self._fail(too_large(self.max_event_bytes), events)
        self._pending += tail
        return events

    def end(self) -> None:
        """Take the end of the stream: an unfinished block is dropped, its size is `dropped`.

        Raises EventStreamError where `feed` has failed.
        """
        self._refuse_failed()
        if self._ended:
            return
        self._ended = True
        rest = (self._start or b"") + bytes(self._pending)
        if any(line and not line.startswith(b":") for line in rest.split(b"\n")):
            self.dropped = len(rest)
        self._pending.clear()

    def _without_bom(self, chunk: bytes) -> bytes:
        if self._start is None:
            return chunk
        start = self._start + chunk
        if len(start) < len(BOM) and BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(BOM)

    def _line_feeds(self, chunk: bytes) -> bytes:
        # A CR ends its line at once; a LF that the next chunk begins with belongs to it.
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" not in chunk:
            return chunk
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _split(self, text: bytes) -> list[bytes]:
        # The blocks that `text` completes, then what follows the last of them. Only `text` is
        # searched, so that pending bytes are looked at once.
        if not self._pending:
            return text.split(b"\n\n")
        if text.startswith(b"\n") and self._pending.endswith(b"\n"):
            self._pending.pop()
            cut, after = 0, 1
        else:
            cut = text.find(b"\n\n")
            after = cut + 2
        if cut < 0:
            return [text]
        first = bytes(self._pending) + text[:cut]
        self._pending.clear()
        return [first, *text[after:].split(b"\n\n")]

    def _interpret(self, block: str) -> ServerSentEvent | None:
        kind = ""
        data: list[str] = []
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name == "data":
                data.append(value.removeprefix(" "))
            elif name == "event":
                kind = value.removeprefix(" ")
        if not data:
            return None
        self._number += 1
        return ServerSentEvent(kind, "\n".join(data), self._number)

    def _fail(self, reason: str, events: Sequence[ServerSentEvent]) -> EventStreamError:
        number = self._number + 1
        self._failure = EventStreamError(reason, event=number)
        self._pending.clear()
        return EventStreamError(reason, event=number, events=events)

    def _refuse_failed(self) -> None:
        if self._failure is not None:
            raise EventStreamError(self._failure.reason, event=self._failure.event)


def decode_event(event: ServerSentEvent) -> dict[str, Any]:
    """Return the JSON object that is the event's data, with its kind under "type".

    The kind may stand in the `event:` field alone; "message" there says nothing, since it is the
    standard's name for an event without the field. An object without any kind is returned as it
    is. Lone surrogates are let through: the other half of the pair may be in the next fragment.

    Raises EventStreamError where the data is not strict JSON (RFC 8259 and I-JSON: no duplicate
    names, no NaN, no absurd nesting), is not an object, or names another kind than the field.
    """
    try:
        value = loads_unique(event.data)
    except StrictJSONError as error:
        raise EventStreamError(f"its data is not JSON: {error}", event=event.number) from error
    if not isinstance(value, dict):
        reason = f"its data is not a JSON object: {quote(event.data)}"
        raise EventStreamError(reason, event=event.number)
    kind = event.kind
    if not kind or kind == "message":
        return value
    if "type" not in value:
        return {"type": kind, **value}
    if value["type"] != kind:
        seen = f"its field says {quote(kind)} and its data {quote(value['type'])}"
        raise EventStreamError(f"expected one kind of event; {seen}", event=event.number)
    return value


def bad_utf8(error: UnicodeDecodeError) -> str:
    """Say in one sentence which byte is not UTF-8, and why."""
    return f"it is not UTF-8: byte 0x{error.object[error.start]:02x}, {error.reason}"


def too_many(bound: int) -> str:
    """Say in one sentence that a stream holds more events than the bound."""
    return f"the stream holds more than {bound:,} events"


def too_large(bound: int) -> str:
    """Say in one sentence that an event is above the bound, in bytes."""
    return f"it is larger than {bound:,} bytes"

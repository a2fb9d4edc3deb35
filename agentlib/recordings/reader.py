"""Read one stream of a recording: its events up to where reading has to stop, and why it did."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

from agentlib.json_array import JSONArrayDecoder
from agentlib.recordings.exchanges import Part
from agentlib.recordings.formats import odd_lines, page_in
from agentlib.recordings.fragments import line_of_event, offset_of_event
from agentlib.recordings.redaction import Redactor
from agentlib.recordings.sniff import head, is_one_document, parse_document, what_it_is
from agentlib.recordings.unpack import line_feeds
from agentlib.sse import (
    BOM,
    MAX_EVENT_BYTES,
    MAX_EVENTS,
    EventStreamDecoder,
    EventStreamError,
    ServerSentEvent,
    bad_utf8,
    decode_event,
    too_large,
    too_many,
)

_SPACE = b" \t\r\n"
# Five for each event: a name, an ID, its data in two lines, and the blank one.
MAX_LINES = 5 * MAX_EVENTS
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BLANK_LINES = re.compile(rb"\n{3,}")


class Item(NamedTuple):
    """One event: its object, and its JSON text as it was received."""

    data: dict[str, Any]
    raw: str


@dataclass(slots=True)
class Reading:
    """What was read of a part: its events, None for each `[DONE]`, and why reading stopped."""

    part: Part
    items: list[Item | None] = field(default_factory=list)
    fault: str | None = None
    stopped: int = 0  # the number of the event at which it stopped
    dropped: int = 0
    last: Item | None = None  # what was dropped, where only its blank line is missing
    page: str = ""  # the first line of a page of HTML that came where an event should

    @property
    def positions(self) -> list[dict[str, Any] | None]:
        """The events, None for each `[DONE]`."""
        return [item.data if item is not None else None for item in self.items]

    @property
    def natives(self) -> Iterable[dict[str, Any]]:
        """The events."""
        return (item.data for item in self.items if item is not None)

    def take(self, events: Iterable[ServerSentEvent]) -> None:
        """Decode the events up to the first that fails."""
        try:
            for event in events:
                if event.data.startswith("{"):
                    self.items.append(Item(decode_event(event), event.data))
                elif event.done:
                    self.items.append(None)
                elif not event.empty:
                    self.items.append(Item(decode_event(event), event.data))
        except EventStreamError as error:
            self.fault, self.stopped = error.reason, error.event

    def notes(self) -> Iterable[str]:
        """Say where the part came from, and what of it was not understood."""
        part = self.part
        if part.where:
            yield f"from {part.where}"
        yield from part.notes
        if self.items:
            yield from odd_lines(part)
        if self.stopped:
            line = part.line - 1 + line_of_event(part.body, part.form, self.stopped)
            yield f"reading stopped at line {line:,}"


def shrink_blank_lines(body: bytes) -> bytes:
    """Return an event stream of the same events with one blank line where many follow another."""
    body = line_feeds(body)
    return _BLANK_LINES.sub(b"\n\n", body) if b"\n\n\n" in body else body


def read_stream(part: Part) -> Reading:
    """Read an event stream as it stands, its secrets included."""
    source = shrink_blank_lines(part.body)
    decoder = EventStreamDecoder(MAX_EVENT_BYTES)
    reading = Reading(part)
    fault, stopped = None, 0
    try:
        events: Sequence[ServerSentEvent] = decoder.feed(source)
        decoder.end()
    except EventStreamError as error:
        events, fault, stopped = error.events, error.reason, error.event
    reading.take(events)
    if reading.fault is None:
        reading.fault, reading.stopped = fault, stopped
    reading.dropped = decoder.dropped
    if decoder.dropped and reading.fault is None:
        reading.last = _last_event(source)
    reading.page = page_in(part)
    return reading


def _last_event(source: bytes) -> Item | None:
    decoder = EventStreamDecoder(MAX_EVENT_BYTES)
    rest = Reading(Part(b"", "sse"))
    with suppress(EventStreamError):
        rest.take(decoder.feed(source.removeprefix(BOM).rpartition(b"\n\n")[2] + b"\n\n"))
    return rest.items[0] if len(rest.items) == 1 and rest.fault is None else None


def read_part(part: Part, redactor: Redactor | None) -> Reading:
    """Read a stream; where a redactor is given, without its secrets, in the bytes as well.

    A stream without its secrets is read up to where it is read with them, and no further.
    """
    part = within_bounds(part)
    reading = _read(part)
    if redactor is None:
        if not reading.items:
            _say_what_it_is(reading, part.body)
        return reading
    whole = reading.fault is None and not reading.dropped
    body = redactor.body(part.body, part.form, reading.positions if whole else None)
    notes = tuple(redactor.lines(note) for note in part.notes)
    clean = part._replace(body=body, tools=redactor.value(part.tools), notes=notes)
    if body is part.body:
        reading.part = clean
    else:
        reading = _no_further(_read(clean), reading, redactor)
    if not reading.items:
        # What it is may no longer be told where a line was cut, but a literal keeps its length.
        text = redactor.text(part.body.decode(errors="surrogateescape"))
        _say_what_it_is(reading, text.encode(errors="surrogateescape"))
        reading.fault = redactor.lines(reading.fault) if reading.fault else None
    return reading


def within_bounds(part: Part) -> Part:
    """Return a part without what is behind the last event that is looked at, and say so.

    A few kilobytes of gzip unpack to millions of events or lines. What is never read is not
    searched for secrets either: it is left out.
    """
    body = part.body
    lines = body.count(b"\n") + body.count(b"\r") - body.count(b"\r\n")
    if lines > MAX_LINES:
        body = body[: next(islice(_LINE_END.finditer(body), MAX_LINES - 1, None)).end()]
    # Each event has a line of its own at least. The first too many stays, and is what is refused.
    if lines > MAX_EVENTS + 1:
        body = body[: offset_of_event(body, part.form, MAX_EVENTS + 2)]
    if len(body) == len(part.body):
        return part
    left = len(part.body) - len(body)
    note = f"its last {left:,} bytes are left out: there are more events or lines than are read"
    return part._replace(body=body, notes=(*part.notes, note))


def _no_further(reading: Reading, original: Reading, redactor: Redactor) -> Reading:
    count = len(original.items)
    if len(reading.items) < count or (reading.stopped, len(reading.items)) == (
        original.stopped,
        count,
    ):
        return reading
    fault = redactor.lines(original.fault) if original.fault else None
    # What was dropped may hold a secret that is whole only with what follows.
    items, page = reading.items[:count], redactor.text(original.page)
    return replace(original, part=reading.part, items=items, fault=fault, last=None, page=page)


def _say_what_it_is(reading: Reading, body: bytes) -> None:
    what = what_it_is(body)
    if what is not None:
        reading.fault, reading.dropped = what, 0


def _read(part: Part) -> Reading:
    return _read_lines(part) if part.form == "jsonl" else read_stream(part)


def _read_lines(part: Part) -> Reading:
    # LF or CRLF ends a line, the last one may lack its end; a blank line is none.
    lines = [line for line in part.body.removeprefix(BOM).split(b"\n") if line.strip(_SPACE)]
    reading = Reading(part)
    if is_one_document(part.body, lines):
        return reading
    if head(part.body).startswith(b"[") and parse_document(lines[0]) is None:
        _take_array(reading)
    else:
        reading.take(_decoded(line, number) for number, line in enumerate(lines, 1))
    return reading


def _take_array(reading: Reading) -> None:
    # One that is whole was taken for a recording in JSON: this one was cut, or is none.
    decoder = JSONArrayDecoder(MAX_EVENT_BYTES)
    try:
        reading.take(decoder.feed(reading.part.body))
    except EventStreamError as error:
        reading.take(error.events)
        reading.fault = reading.fault or error.reason
    closed, reading.dropped = decoder.end()
    if reading.items and not closed and reading.fault is None:
        reading.fault = "the array of its events ends before its closing bracket"


def _decoded(line: bytes, number: int) -> ServerSentEvent:
    if number > MAX_EVENTS:
        raise EventStreamError(too_many(MAX_EVENTS), event=number)
    if len(line) > MAX_EVENT_BYTES:
        raise EventStreamError(too_large(MAX_EVENT_BYTES), event=number)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise EventStreamError(bad_utf8(error), event=number) from error
    return ServerSentEvent("", text.removesuffix("\r"), number)

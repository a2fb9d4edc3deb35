"""Read one stream of a recording: its events up to where reading has to stop, and why it did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentlib.transport.diagnosis import is_one_document, what_it_is
from agentlib.transport.exchanges import Part
from agentlib.transport.fragments import line_of_event
from agentlib.transport.recordings import odd_lines
from agentlib.transport.redaction import Redactor
from agentlib.transport.sse import (
    BOM,
    MAX_EVENT_BYTES,
    EventStreamDecoder,
    EventStreamError,
    ServerSentEvent,
    bad_utf8,
    decode_event,
    too_large,
)

_SPACE = b" \t\r\n"


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
                if event.done:
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


def read_part(part: Part, redactor: Redactor | None) -> Reading:
    """Read a stream; where a redactor is given, without its secrets, in the bytes as well."""
    reading = _read_lines(part) if part.form == "jsonl" else _read_stream(part)
    if redactor is not None:
        body = redactor.body(part.body, part.form, reading.positions)
        tools = redactor.value(part.tools)
        if body is not part.body:
            return read_part(part._replace(body=body, tools=tools), None)
        reading.part = part._replace(tools=tools)
    if not reading.items:
        what = what_it_is(part.body)
        if what is not None:
            reading.fault, reading.dropped = what, 0
    return reading


def _read_stream(part: Part) -> Reading:
    source = part.body
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
    return reading


def _read_lines(part: Part) -> Reading:
    # LF or CRLF ends a line, the last one may lack its end; a blank line is none.
    lines = [line for line in part.body.removeprefix(BOM).split(b"\n") if line.strip(_SPACE)]
    reading = Reading(part)
    if not is_one_document(part.body, lines):
        reading.take(_decoded(line, number) for number, line in enumerate(lines, 1))
    return reading


def _decoded(line: bytes, number: int) -> ServerSentEvent:
    if len(line) > MAX_EVENT_BYTES:
        raise EventStreamError(too_large(MAX_EVENT_BYTES), event=number)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise EventStreamError(bad_utf8(error), event=number) from error
    return ServerSentEvent("", text.removesuffix("\r"), number)

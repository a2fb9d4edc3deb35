"""Captures: recorded streams, from a file, from bytes or from a list of events.

A capture keeps its source bytes, so that saving one writes the same bytes back. It never decides
what a response may do: it says what was recorded, and where reading had to stop. A recording may
hold several responses, one after the other; the events of each API tell them apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from agentlib.errors import AgentlibError
from agentlib.jsonvalues import SURROGATE, thaw
from agentlib.transport.boundaries import Provider, Start, detect_provider, find_starts
from agentlib.transport.diagnosis import head, is_one_document, what_it_is
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

Form: TypeAlias = Literal["sse", "jsonl", "events"]
LINE_SUFFIXES = (".jsonl", ".ndjson")
_SPACE = b" \t\r\n"


class CaptureNotFound(AgentlibError):
    """Raised when a capture's file is missing or cannot be opened."""


class CapturedEvent(NamedTuple):
    """One native event: its number within its response (from 1), its object, its text.

    `raw` is the JSON text as it was received; `data` has the kind of the event under "type" also
    where only the stream's `event:` field named it.
    """

    number: int
    data: dict[str, Any]
    raw: str


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """One response of a capture: its number (from 1) and its events, in order.

    `fault` says in one sentence why reading stopped, at event number `len(events) + 1`, or is
    None. `done_marker` is whether `[DONE]` stood among its events. `notes` are for a reader.
    """

    number: int
    events: tuple[CapturedEvent, ...]
    fault: str | None = None
    done_marker: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Capture:
    """A recorded stream: make one with `load`, `from_bytes` or `from_events`.

    `responses` has at least one entry. `comments` are the comment lines of an event stream; in
    the fixtures the first says that they are authored and what they show.
    """

    name: str
    provider: Provider
    source: bytes = field(repr=False)
    responses: tuple[CapturedResponse, ...]
    comments: tuple[str, ...] = ()
    form: Form = "sse"

    @classmethod
    def load(cls, path: str | Path, provider: Provider | Literal["auto"] = "auto") -> Capture:
        """Read a file: `.sse` is an event stream; of any other, its first character tells.

        Raises CaptureNotFound where there is no such file, or it cannot be opened. Whatever is
        in the file, it is a capture: see `from_bytes`.
        """
        path = Path(path)
        try:
            source = path.read_bytes()
        except FileNotFoundError as error:
            raise CaptureNotFound(f"there is no file {path}") from error
        except OSError as error:
            raise CaptureNotFound(f"cannot read {path}: {error.strerror}") from error
        return cls.from_bytes(
            source, path.stem, provider, "sse" if path.suffix == ".sse" else "auto"
        )

    @classmethod
    def from_bytes(
        cls,
        source: bytes,
        name: str = "capture",
        provider: Provider | Literal["auto"] = "auto",
        form: Literal["sse", "jsonl", "auto"] = "auto",
    ) -> Capture:
        """Read recorded bytes: an event stream, or JSON lines where they begin as JSON does.

        Never raises for what the bytes hold. Where they are no stream at all, the only response
        has no event and a `fault` that says what they are instead.
        """
        if form == "auto":
            form = "jsonl" if head(source).startswith((b"{", b"[")) else "sse"
        reading = _read_lines(source) if form == "jsonl" else _read_stream(source)
        if not reading.items:
            reading.fault = what_it_is(source) or reading.fault
        return cls._build(name, provider, form, source, reading)

    @classmethod
    def from_events(
        cls,
        events: Iterable[Mapping[str, Any] | CapturedEvent],
        name: str = "events",
        provider: Provider | Literal["auto"] = "auto",
    ) -> Capture:
        """Make a capture of native events, each a JSON object or an event of another capture.

        The events are copied. Raises EventStreamError where one cannot be written as strict JSON.
        """
        items = [_written(event, number) for number, event in enumerate(events, 1)]
        source = b"".join(_as_block(item) for item in items)
        return cls._build(name, provider, "events", source, _Reading([*items]))

    @classmethod
    def _build(
        cls,
        name: str,
        provider: Provider | Literal["auto"],
        form: Form,
        source: bytes,
        reading: _Reading,
    ) -> Capture:
        natives = [item.data if item is not None else None for item in reading.items]
        if provider == "auto":
            provider = detect_provider(native for native in natives if native is not None)
        starts = find_starts(provider, natives)
        comments = _comments(source) if form == "sse" else ()
        return cls(name, provider, source, _responses(reading, starts), comments, form)

    @property
    def events(self) -> tuple[CapturedEvent, ...]:
        """The events of the first response."""
        return self.responses[0].events

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all responses, in order."""
        return tuple(note for response in self.responses for note in response.notes)

    def catalog_json(self, response_number: int = 1) -> list[dict[str, Any]] | None:
        """Return a copy of the tools that this response's `response.created` echoes, or None."""
        for event in self.responses[response_number - 1].events:
            body = event.data.get("response")
            if event.data.get("type") == "response.created" and isinstance(body, dict):
                tools = body.get("tools")
                if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
                    return [thaw(tool) for tool in tools]
        return None

    def save(self, path: str | Path) -> None:
        """Write the capture to a file: the same bytes that it was read from.

        One that was made of events is written as JSON lines where the file's suffix is `.jsonl`
        or `.ndjson`, and as an event stream otherwise.
        """
        path = Path(path)
        source = self.source
        if self.form == "events" and path.suffix in LINE_SUFFIXES:
            events = (event for response in self.responses for event in response.events)
            source = b"".join(b"%b\n" % event.raw.encode() for event in events)
        path.write_bytes(source)

    def __repr__(self) -> str:
        counts = ", ".join(str(len(response.events)) for response in self.responses)
        return f"Capture({self.name!r}, {self.provider!r}, events: {counts})"


class _Item(NamedTuple):
    data: dict[str, Any]
    raw: str


@dataclass(slots=True)
class _Reading:
    """What was read of a source: its events, None for each `[DONE]`, and why reading stopped."""

    items: list[_Item | None] = field(default_factory=list)
    fault: str | None = None
    dropped: int = 0

    def take(self, events: Iterable[ServerSentEvent]) -> None:
        """Decode the events up to the first that fails."""
        try:
            for event in events:
                if event.done:
                    self.items.append(None)
                elif not event.empty:
                    self.items.append(_Item(decode_event(event), event.data))
        except EventStreamError as error:
            self.fault = error.reason


def _read_stream(source: bytes) -> _Reading:
    decoder = EventStreamDecoder(MAX_EVENT_BYTES)
    reading = _Reading()
    fault = None
    try:
        events: Sequence[ServerSentEvent] = decoder.feed(source)
        decoder.end()
    except EventStreamError as error:
        events, fault = error.events, error.reason
    reading.take(events)
    reading.fault = reading.fault or fault
    reading.dropped = decoder.dropped
    return reading


def _read_lines(source: bytes) -> _Reading:
    # LF or CRLF ends a line, the last one may lack its end; a blank line is none.
    lines = [line for line in source.removeprefix(BOM).split(b"\n") if line.strip(_SPACE)]
    reading = _Reading()
    if not is_one_document(source, lines):
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


def _responses(reading: _Reading, starts: Sequence[Start]) -> tuple[CapturedResponse, ...]:
    edges = [0, *(start.position for start in starts), len(reading.items)]
    cuts = [*(start.cut for start in starts), False]
    responses = []
    for number, ((first, after), cut) in enumerate(zip(pairwise(edges), cuts, strict=True), 1):
        items = reading.items[first:after]
        events = [item for item in items if item is not None]
        last = number == len(cuts)
        notes = ["the next response begins before this one has ended"] if cut else []
        if last and reading.dropped:
            notes.append(f"an unfinished event of {reading.dropped:,} bytes at the end is dropped")
        responses.append(
            CapturedResponse(
                number=number,
                events=tuple(CapturedEvent(n, *item) for n, item in enumerate(events, 1)),
                fault=reading.fault if last else None,
                done_marker=len(events) < len(items),
                notes=tuple(notes),
            )
        )
    return tuple(responses)


def _plain(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain
)


def _written(event: Mapping[str, Any] | CapturedEvent, number: int) -> _Item:
    data = event.data if isinstance(event, CapturedEvent) else event
    try:
        raw = _ENCODER.encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise EventStreamError(f"it cannot be written as JSON: {error}", event=number) from error
    if isinstance(event, CapturedEvent) and "\n" not in event.raw and "\r" not in event.raw:
        with suppress(EventStreamError):
            received = decode_event(ServerSentEvent("", event.raw, number))
            if _ENCODER.encode(received) == raw:
                return _Item(received, event.raw)
    if SURROGATE.search(raw):
        raw = json.dumps(json.loads(raw), separators=(",", ":"))
    return _Item(decode_event(ServerSentEvent("", raw, number)), raw)


def _as_block(item: _Item) -> bytes:
    kind = item.data.get("type")
    plain = isinstance(kind, str) and kind.isascii() and kind.isprintable()
    named = f"event: {kind}\n" if plain else ""
    return f"{named}data: {item.raw}\n\n".encode()


def _comments(source: bytes) -> tuple[str, ...]:
    text = b"\n" + source.removeprefix(BOM).replace(b"\r", b"\n")
    found = (rest.split(b"\n", 1)[0] for rest in text.split(b"\n:")[1:])
    return tuple(line.removeprefix(b" ").decode(errors="replace") for line in found)

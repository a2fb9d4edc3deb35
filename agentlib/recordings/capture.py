"""Captures: recorded streams, from a file, from bytes or from a list of events.

A capture of a stream keeps its source bytes, so that saving one writes the same bytes back, but
for the secrets in it. Of a recording that holds more, such as a browser's, it keeps the streams.
It never decides what a response may do: it says what was recorded, and where reading had to stop.
A recording may hold several responses; the events of each API tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain as joined
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentlib.errors import AgentlibError
from agentlib.files import write_file
from agentlib.jsonvalues import thaw
from agentlib.recordings.boundaries import Provider, Start, detect_provider, find_starts
from agentlib.recordings.edits import Edit, apply, as_stream, chain
from agentlib.recordings.events import UNFINISHED, CapturedEvent, CapturedResponse
from agentlib.recordings.exchanges import MAX_NAMED, Part
from agentlib.recordings.formats import join_parts, open_recording
from agentlib.recordings.reader import Item, Reading, read_part, read_stream
from agentlib.recordings.redaction import Redactor
from agentlib.recordings.writing import as_block, written
from agentlib.sse import BOM

Form: TypeAlias = Literal["sse", "jsonl", "events"]
LINE_SUFFIXES = (".jsonl", ".ndjson")
CUT_BY_NEXT = "the next response begins before this one has ended"


class CaptureNotFound(AgentlibError):
    """Raised when a capture's file is missing or cannot be opened."""


@dataclass(frozen=True, slots=True, repr=False)
class Capture:
    """A recorded stream: make one with `load`, `from_bytes` or `from_events`.

    `responses` has at least one entry. `comments` are the comment lines of an event stream; in
    the fixtures the first says that they are authored and what they show. `edits` are what was
    done to it since it was recorded.

    The methods from `cut` to `replace` return a new capture, edited in the response of this number.
    They raise EditError where there is no such event or text.
    """

    name: str
    provider: Provider
    source: bytes = field(repr=False)
    responses: tuple[CapturedResponse, ...]
    comments: tuple[str, ...] = ()
    form: Form = "sse"
    edits: tuple[Edit, ...] = ()

    @classmethod
    def load(
        cls,
        path: str | Path,
        provider: Provider | Literal["auto"] = "auto",
        *,
        redact: bool = True,
    ) -> Capture:
        """Read a file: a recording of any kind that `from_bytes` knows.

        A stream in `.sse` is an event stream; of any other, its first character tells. Raises
        CaptureNotFound where there is no such file, or it cannot be opened.
        """
        path = Path(path)
        try:
            source = path.read_bytes()
        except (FileNotFoundError, ValueError) as error:
            raise CaptureNotFound(f"there is no file {path}") from error
        except OSError as error:
            raise CaptureNotFound(f"cannot read {path}: {error.strerror}") from error
        form: Literal["sse", "auto"] = "sse" if path.suffix == ".sse" else "auto"
        return cls.from_bytes(source, path.stem, provider, form, redact=redact)

    @classmethod
    def from_bytes(
        cls,
        source: bytes,
        name: str = "capture",
        provider: Provider | Literal["auto"] = "auto",
        form: Literal["sse", "jsonl", "auto"] = "auto",
        *,
        redact: bool = True,
    ) -> Capture:
        """Read recorded bytes: an event stream, or JSON lines where they begin as JSON does.

        Also what holds such streams: a recording of curl, a browser's archive (HAR), a cassette
        of VCR, each with gzip or without. Secrets are replaced unless `redact` is False. What was
        redacted, left out or not understood is said in the notes.

        Never raises for what the bytes hold. Where they are no stream at all, the only response
        has no event and a `fault` that says what they are instead.
        """
        redactor = Redactor() if redact else None
        recording = open_recording(source, form, redactor)
        readings = [read_part(part, redactor) for part in recording.parts]
        parts = [reading.part for reading in readings]
        source = parts[0].body if recording.whole else join_parts(parts)
        said = redactor.note if redactor is not None else None
        notes = [*recording.notes, *([said] if said else [])]
        kind: Form = parts[0].form if recording.whole else "sse"
        name = redactor.text(name) if redactor is not None else name
        return cls._build(name, provider, kind, source, readings, notes)

    @classmethod
    def from_stream(
        cls, source: bytes, name: str = "stream", provider: Provider | Literal["auto"] = "auto"
    ) -> Capture:
        """Read the bytes of an event stream that is known to be one, and to hold no secret.

        Nothing is sniffed, unpacked or redacted: of such a stream `from_bytes` gives the same.
        """
        return cls._build(name, provider, "sse", source, [read_stream(Part(source, "sse"))])

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
        source = b"".join(as_block(*item) for item in items)
        return cls._build(name, provider, "events", source, [Reading(Part(b"", "sse"), [*items])])

    @classmethod
    def _build(
        cls,
        name: str,
        provider: Provider | Literal["auto"],
        form: Form,
        source: bytes,
        readings: Sequence[Reading],
        notes: Sequence[str] = (),
    ) -> Capture:
        first = detect_provider(joined.from_iterable(r.natives for r in readings))
        named = None if provider == "auto" else provider
        responses: list[CapturedResponse] = []
        for reading in _speaking(named, readings) if named else readings:
            api = named or detect_provider(reading.natives)
            starts = find_starts(api, reading.positions)
            apis = [first if api == "unknown" else api, *(named or s.provider for s in starts)]
            responses += _responses(reading, starts, len(responses), apis)
        if notes:
            responses[0] = replace(responses[0], notes=(*notes, *responses[0].notes))
        comments = _comments(source) if form == "sse" else ()
        return cls(name, named or first, source, tuple(responses), comments, form)

    @property
    def events(self) -> tuple[CapturedEvent, ...]:
        """The events of the first response."""
        return self.responses[0].events

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all responses, in order."""
        return tuple(note for response in self.responses for note in response.notes)

    def catalog_json(self, response_number: int = 1) -> list[dict[str, Any]] | None:
        """Return a copy of the tools that the request of this response exposed, or None.

        They are those that its `response.created` echoes, or those of the request itself, where
        the recording has it.
        """
        response = self.responses[response_number - 1]
        for event in response.events:
            body = event.data.get("response")
            if event.data.get("type") == "response.created" and isinstance(body, dict):
                tools = body.get("tools")
                if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
                    return [thaw(tool) for tool in tools]
        return thaw(response.tools) if response.tools is not None else None

    def save(self, path: str | Path) -> None:
        """Write the capture to a file: the same bytes that it was read from, without the secrets.

        One that was made of events is written as JSON lines where the file's suffix is `.jsonl`
        or `.ndjson`, and as an event stream otherwise. Raises CannotWrite.
        """
        path = Path(path)
        source = self.source
        if self.form == "events" and path.suffix in LINE_SUFFIXES:
            events = (event for response in self.responses for event in response.events)
            source = b"".join(b"%b\n" % event.raw.encode() for event in events)
        write_file(path, source)

    def edited(self, *edits: Edit) -> Capture:
        """Return the capture with these edits more, in order. Raises EditError where one cannot be.

        The source of the new capture is written anew from its events, after the last edit; where
        reading had stopped, it still says so, unless that end was cut off.
        """
        if not edits:
            return self
        responses = apply(edits, self.name, self.responses)
        source = as_stream(self.comments, responses)
        made = (*self.edits, *edits)
        return replace(self, source=source, responses=responses, form="events", edits=made)

    def cut(self, after: int, *, response: int = 1) -> Capture:
        """End the stream after event `after`; 0 leaves nothing."""
        return self.edited(Edit("cut", (after,), response))

    def drop(self, event: int, *, response: int = 1) -> Capture:
        """Leave out an event."""
        return self.edited(Edit("drop", (event,), response))

    def double(self, event: int, *, response: int = 1) -> Capture:
        """Send an event twice."""
        return self.edited(Edit("double", (event,), response))

    def swap(self, event: int, *, response: int = 1) -> Capture:
        """Send an event after the one that follows it."""
        return self.edited(Edit("swap", (event,), response))

    def edit(self, event: int, fragment: str, *, response: int = 1) -> Capture:
        """Send another fragment of text or arguments in an event, in its API's own place."""
        return self.edited(Edit("edit", (event, fragment), response))

    def stop(self, reason: str, *, response: int = 1) -> Capture:
        """Let the response stop for another reason, one of its API's own: see edits.REASONS."""
        return self.edited(Edit("stop", (reason,), response))

    def replace(
        self, old: str, new: str, event: int | None = None, *, response: int = 1
    ) -> Capture:
        """Replace a piece of the JSON text, as it was sent, of one event or of every event."""
        return self.edited(Edit("replace", (old, new, event), response))

    def __repr__(self) -> str:
        if self.edits:
            return f"capture({self.name!r}){chain(self.edits)}"
        counts = ", ".join(str(len(response.events)) for response in self.responses)
        return f"Capture({self.name!r}, {self.provider!r}, events: {counts})"


def _speaking(provider: Provider, readings: Sequence[Reading]) -> Sequence[Reading]:
    # Where one API was asked for, what speaks another is named.
    apis = [detect_provider(reading.natives) for reading in readings]
    own = [r for r, api in zip(readings, apis, strict=True) if api in (provider, "unknown")]
    if not own or len(own) == len(readings):
        return readings
    others = [
        f'{reading.part.where} speaks another API: read it with the provider "{api}"'
        for reading, api in zip(readings, apis, strict=True)
        if api not in (provider, "unknown")
    ]
    part = own[0].part
    own[0].part = part._replace(notes=(*part.notes, *others[:MAX_NAMED]))
    return own


def _responses(
    reading: Reading, starts: Sequence[Start], before: int, apis: Sequence[Provider]
) -> list[CapturedResponse]:
    edges = [0, *(start.position for start in starts), len(reading.items)]
    cuts = [*(start.cut for start in starts), False]
    responses = []
    said = [*reading.notes()]
    for number, ((first, after), cut) in enumerate(zip(pairwise(edges), cuts, strict=True), 1):
        items = reading.items[first:after]
        events = [item for item in items if item is not None]
        last = number == len(cuts)
        notes = said if number == 1 else []
        notes = [*notes, *([CUT_BY_NEXT] if cut else [])]
        if last and reading.dropped:
            notes.append(f"{UNFINISHED} of {reading.dropped:,} bytes at the end is dropped")
        after_it = len(events) + 1
        api = apis[number - 1]
        fault = reading.fault if last else None
        if fault and events and items[-1] is None and api == "chat":
            notes, fault = [*notes, f"after [DONE], reading stopped: {fault}"], None
        responses.append(
            CapturedResponse(
                number=before + number,
                events=tuple(CapturedEvent(n, *item) for n, item in enumerate(events, 1)),
                fault=fault,
                done_marker=len(events) < len(items),
                notes=tuple(notes),
                tools=reading.part.tools,
                dropped=reading.dropped if last else 0,
                last=CapturedEvent(after_it, *reading.last) if last and reading.last else None,
                page=reading.page if last else "",
                provider=api,
            )
        )
    return responses


def _written(event: Mapping[str, Any] | CapturedEvent, number: int) -> Item:
    if isinstance(event, CapturedEvent):
        return Item(*written(event.data, number, event.raw))
    return Item(*written(event, number))


def _comments(source: bytes) -> tuple[str, ...]:
    text = b"\n" + source.removeprefix(BOM).replace(b"\r", b"\n")
    found = (rest.split(b"\n", 1)[0] for rest in text.split(b"\n:")[1:])
    return tuple(line.removeprefix(b" ").decode(errors="replace") for line in found)

"""What the loopback server answers: a reply is data, and so is each fault in it.

A reply is a status, headers and a body; a fault is a thing done at an offset of that body. So a
reply can be printed, compared, and damaged further: each method returns another reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from agentlib.jsonvalues import FrozenObject
from agentlib.recordings.capture import Capture
from agentlib.sse import BOM, EventStreamDecoder, EventStreamError, ServerSentEvent

# The offset before the status line: nothing of the answer has been sent there.
HEAD = -1
HUGE_LINE_BYTES = 100_000_000
KEEPALIVE = b": keep-alive\n\n"

FaultKind: TypeAlias = Literal[
    "split", "delay", "stall", "reset", "close", "cut_chunk", "keepalives", "fill"
]
Framing: TypeAlias = Literal["chunked", "length", "close"]

_AT_HEAD = ("delay", "stall", "reset", "close")
_OWN_HEADERS = ("connection", "content-length", "transfer-encoding")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_HTML = b"""<!DOCTYPE html>
<html><head><title>502 Bad Gateway</title></head>
<body><h1>502 Bad Gateway</h1><p>The upstream server did not answer.</p></body></html>
"""


class Fault(NamedTuple):
    """Something done when the body's bytes before offset `at` are sent.

    `seconds` is the time of a delay and the pause before each keep-alive; `amount` the number of
    keep-alives (None without end), or of the bytes that fill a line.
    """

    at: int
    kind: FaultKind
    seconds: float = 0.0
    amount: int | None = None

    def __str__(self) -> str:
        where = "before the head" if self.at == HEAD else f"at byte {self.at:,}"
        return f"{self.kind} {where}"


@dataclass(frozen=True, slots=True, repr=False)
class Reply:
    """One answer of the server, by default an empty event stream with status 200.

    `framing` is how the end of the body shows (RFC 9112, "Message Body Length"): by a last
    chunk, by its length in the head, or only by the end of the connection. Faults at one offset
    happen in the order in which they were added, and nothing happens after a stall, a reset, a
    close or a cut chunk.

    Raises ValueError for an offset outside the body, and for what HTTP cannot carry.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    framing: Framing = "chunked"
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        headers.setdefault("content-type", "text/event-stream; charset=utf-8")
        object.__setattr__(self, "headers", FrozenObject(headers))
        object.__setattr__(self, "faults", tuple(sorted(self.faults, key=lambda f: f.at)))
        if not 200 <= self.status <= 599 or self.status in (204, 304):
            raise ValueError(f"expected a status that has a body, 200 to 599: {self.status}")
        if self.framing not in ("chunked", "length", "close"):
            raise ValueError(f"expected the framing chunked, length or close: {self.framing!r}")
        for name, value in headers.items():
            if name in _OWN_HEADERS:
                raise ValueError(f"{name} follows from the framing, and cannot be given")
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"not a header that HTTP can carry: {name!r}: {value!r}")
        for fault in self.faults:
            self._check(fault)

    def _check(self, fault: Fault) -> None:
        first = HEAD if fault.kind in _AT_HEAD else 0
        if not first <= fault.at <= len(self.body):
            raise ValueError(f"expected an offset from {first} to {len(self.body)}: {fault}")
        if fault.seconds < 0 or (fault.amount is not None and fault.amount < 0):
            raise ValueError(f"neither a time nor an amount can be negative: {fault!r}")
        if fault.kind == "cut_chunk" and self.framing != "chunked":
            raise ValueError(f"there is no chunk to cut with the framing {self.framing!r}")

    # ------------------------------------------------------------------------ where to begin

    @classmethod
    def stream(cls, capture: Capture, response: int = 1) -> Reply:
        """Play one response of a capture, from 1: the bytes that were recorded for it.

        JSON lines become an event stream, a line an event.
        """
        if not 1 <= response <= len(capture.responses):
            raise ValueError(f"expected a response from 1 to {len(capture.responses)}: {response}")
        body = capture.source
        if capture.form == "jsonl" and any(r.events for r in capture.responses):
            body = b"".join(_lines_as_blocks(capture.source))
        if len(capture.responses) > 1:
            body = _slice(body, capture, response)
        return cls(body=body)

    @classmethod
    def error(
        cls,
        status: int,
        *,
        code: str | None = None,
        message: str | None = None,
        headers: Mapping[str, str] | None = None,
        json_body: Any = None,
    ) -> Reply:
        """Answer with an error status and a JSON body, by default the shape that OpenAI sends.

        `code` is the machine's word in that shape, such as `insufficient_quota`; `json_body`
        stands in place of the whole.
        """
        if json_body is None:
            kind = "server_error" if status >= 500 else "invalid_request_error"
            text = message or f"this server was told to answer {status}"
            json_body = {"error": {"message": text, "type": kind, "param": None, "code": code}}
        sent = {"content-type": "application/json", **(headers or {})}
        return cls(status, sent, json.dumps(json_body).encode(), framing="length")

    @classmethod
    def refuse(cls) -> Reply:
        """Take the request, then reset the connection before the first byte of an answer."""
        return cls().reset(at=HEAD)

    @classmethod
    def blank(cls, body: bytes = b"") -> Reply:
        """Answer 200 with a body that holds no event: nothing, NULs, white space."""
        return cls(body=body)

    @classmethod
    def html(cls, body: bytes = _HTML) -> Reply:
        """Answer 200 with a page, as a proxy in between does."""
        return cls(headers={"content-type": "text/html; charset=utf-8"}, body=body)

    @classmethod
    def keepalives_only(cls, interval: float = 0.01, count: int | None = None) -> Reply:
        """Send comments and no event: one every `interval` seconds, for ever or `count` times."""
        return cls().keepalives(interval, count)

    @classmethod
    def huge_line(cls, size: int = HUGE_LINE_BYTES) -> Reply:
        """Send one text delta in a single line of `size` bytes, made while it is sent."""
        start = b'data: {"type":"response.output_text.delta","delta":"'
        end = b'"}'
        fill = size - len(start) - len(end)
        if fill < 0:
            raise ValueError(f"expected a line of at least {len(start) + len(end)} bytes: {size}")
        fault = Fault(len(start), "fill", amount=fill)
        return cls(body=start + end + b"\n\n", faults=(fault,))

    # --------------------------------------------------------------- what happens at an offset

    def split_at(self, *offsets: int) -> Reply:
        """Send what is before each offset on its own: a chunk and a packet end there."""
        return self._with(Fault(at, "split") for at in offsets)

    def split_every(self, size: int) -> Reply:
        """Send the body in pieces of `size` bytes."""
        return self.split_at(*self._every(size))

    def trickle(self, size: int = 1, seconds: float = 0.001) -> Reply:
        """Send the body in pieces of `size` bytes, with a pause between each two."""
        return self._with(Fault(at, "delay", seconds) for at in self._every(size))

    def delay(self, seconds: float, *, at: int = 0) -> Reply:
        """Wait there, then go on."""
        return self._with([Fault(at, "delay", seconds)])

    def stall(self, *, at: int) -> Reply:
        """Send nothing more from there, and keep the connection open."""
        return self._with([Fault(at, "stall")])

    def hold_open(self) -> Reply:
        """Send the whole body, but not its end, and keep the connection open."""
        return self.stall(at=len(self.body))

    def reset(self, *, at: int) -> Reply:
        """Reset the connection there; the bytes before it arrive."""
        return self._with([Fault(at, "reset")])

    def close(self, *, at: int) -> Reply:
        """End there early: in chunked framing the body looks whole, by a length it is too short.

        Before the head, the connection ends without any answer.
        """
        return self._with([Fault(at, "close")])

    def cut_chunk(self, *, at: int) -> Reply:
        """Close the connection there, inside a chunk that announced more bytes."""
        return self._with([Fault(at, "cut_chunk")])

    def keepalives(self, interval: float = 0.01, count: int | None = None, *, at: int = 0) -> Reply:
        """Send a comment there every `interval` seconds, for ever, or `count` times and go on."""
        return self._with([Fault(at, "keepalives", interval, count)])

    def _with(self, faults: Iterable[Fault]) -> Reply:
        return replace(self, faults=(*self.faults, *faults))

    def _every(self, size: int) -> range:
        if size < 1:
            raise ValueError(f"expected a piece of at least one byte: {size}")
        return range(size, len(self.body), size)

    # -------------------------------------------------------------------- what the body is

    def content_type(self, value: str) -> Reply:
        """Name another media type in the head."""
        return replace(self, headers={**self.headers, "content-type": value})

    def duplicate(self, event: int) -> Reply:
        """Send an event, by its number from 1, twice in a row."""
        start, end = self._span(event)
        return self._rewritten(self.body[:end] + self.body[start:end] + self.body[end:])

    def swap(self, event: int) -> Reply:
        """Send an event, by its number from 1, after the next one."""
        (start, end), (after, last) = self._span(event), self._span(event + 1)
        moved = self.body[after:last] + self.body[end:after] + self.body[start:end]
        return self._rewritten(self.body[:start] + moved + self.body[last:])

    @property
    def ends(self) -> tuple[int, ...]:
        """The offset just after each event of the body, in order."""
        return tuple(end for _, end, _ in _spans(self.body))

    def _span(self, event: int) -> tuple[int, int]:
        spans = list(_spans(self.body))
        if not 1 <= event <= len(spans):
            raise ValueError(f"expected an event from 1 to {len(spans)}: {event}")
        return spans[event - 1][:2]

    def _rewritten(self, body: bytes) -> Reply:
        if self.faults:
            raise ValueError("change the events first: the offsets of the faults would be wrong")
        return replace(self, body=body)

    def __repr__(self) -> str:
        shown = [f"{self.status}", f"{len(self.body):,} bytes"]
        shown += [str(fault) for fault in self.faults[:3]]
        if len(self.faults) > 3:
            shown.append(f"{len(self.faults) - 3:,} more faults")
        return f"Reply({', '.join(shown)})"


_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)")


def _spans(body: bytes) -> Iterator[tuple[int, int, ServerSentEvent]]:
    # Where each event's own lines begin and end, up to the first that is none.
    decoder = EventStreamDecoder(max_event_bytes=max(1, len(body)))
    start = len(BOM) if body.startswith(BOM) else 0
    if start:
        decoder.feed(BOM)
    for line in _LINE.finditer(body, start):
        try:
            events = decoder.feed(line[0])
        except EventStreamError:
            return
        for event in events:
            yield start, line.end(), event
        if not line[0].strip(b"\r\n"):
            start = line.end()


def _lines_as_blocks(source: bytes) -> Iterator[bytes]:
    for line in source.removeprefix(BOM).split(b"\n"):
        if line.strip():
            yield b"data: %b\n\n" % line.removesuffix(b"\r")


def _slice(body: bytes, capture: Capture, response: int) -> bytes:
    starts = [start for start, _, event in _spans(body) if not (event.empty or event.done)]
    before = sum(len(earlier.events) for earlier in capture.responses[: response - 1])
    after = before + len(capture.responses[response - 1].events)
    first = starts[before] if response > 1 else 0
    last = starts[after] if response < len(capture.responses) else len(body)
    return body[first:last]

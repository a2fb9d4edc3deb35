"""What a recording holds, whoever made it: the streams in it, each with its place.

A recording is a stream, plain or with gzip, or holds streams among other things: a recording of
curl, a browser's archive (HAR), a cassette of VCR, or a capture of several answers that was saved
from one of these. Nothing here raises for what the bytes hold; what was not understood is a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from agentlib.jsonvalues import quote
from agentlib.recordings.curl import is_curl, read_curl
from agentlib.recordings.exchanges import (
    MAX_NAMED,
    Exchange,
    Part,
    form_of,
    opened,
    read_object,
    streams_of,
)
from agentlib.recordings.har import is_har, read_har
from agentlib.recordings.json_recording import is_json_recording, read_json_recording
from agentlib.recordings.redaction import Redactor
from agentlib.recordings.sniff import is_one_document
from agentlib.recordings.unpack import GZIP, line_feeds, unpack
from agentlib.recordings.vcr import is_cassette, read_cassette
from agentlib.recordings.writing import MARK, mark
from agentlib.sse import BOM

# The list of notes may grow while the exchanges are read.
Read = Callable[[bytes], tuple[Iterable[Exchange], list[str]]]
# The first whose bytes these are.
_CONTAINERS: tuple[tuple[str, Callable[[bytes], bool], Read], ...] = (
    ("an archive of a browser (HAR)", is_har, read_har),
    ("a cassette", is_cassette, read_cassette),
    ("a recording of curl", is_curl, read_curl),
    ("a recording in JSON", is_json_recording, read_json_recording),
)
# A line that is neither blank, nor a comment, nor a field of the standard.
_KNOWN_LINE = re.compile(rb"(?:data|event|id|retry)?(?::|\Z)")
_FIELDS = (b"data:", b"event:", b":", b"id:", b"retry:")
# At the start of a line, or behind the JSON of an event that broke off: never inside its text,
# which would go on to the event's closing brace.
_PAGE = re.compile(
    rb"^(?:data:[^\n]*)?(?P<page><(?:!doctype\s+html|html|head)\b[^\n]*)(?<!\})$",
    re.IGNORECASE | re.MULTILINE,
)
_FULL_LINE = re.compile(rb"[^\n]+")


class Recording(NamedTuple):
    """The streams of a recording, at least one, and what a reader should know of the rest.

    `whole` is whether it is a stream itself, and nothing else: its bytes are then the stream's.
    """

    parts: list[Part]
    notes: list[str]
    whole: bool = True


def open_recording(
    source: bytes,
    form: Literal["sse", "jsonl", "auto"] = "auto",
    redactor: Redactor | None = None,
) -> Recording:
    """Return the streams in recorded bytes; `form` is that of a plain stream, where it is known.

    A redactor learns what the requests sent, and takes the secrets out of all but the streams.
    """
    clean = redactor.lines if redactor is not None else str
    data, note = unpack(source)
    notes = [note] if note else []
    if source.startswith(GZIP) and not data.startswith(GZIP):
        notes.insert(0, f"unpacked with gzip: {len(data):,} bytes")
    if MARK.match(data):
        parts = [part._replace(where=clean(part.where)) for part in _marked(data)]
        return Recording(parts, notes, whole=False)
    for title, known, read in _CONTAINERS:
        if known(data):
            found, said = read(data)
            exchanges, left_out = opened(found, len(data))
            if redactor is not None:
                for exchange in exchanges:
                    redactor.learn(exchange.headers)
                    redactor.learn(exchange.asked_with(), counted=False)
            parts, others = streams_of(exchanges, clean)
            said = [clean(each) for each in (*said, *others, *left_out)]
            if parts:
                return Recording(parts, [*notes, *said], whole=False)
            notes.append(f"this is {title}, and no answer in it is a stream")
            return Recording([Part(b"", "sse")], [*notes, *said], whole=False)
    kind = form_of(data) if form == "auto" else form
    return Recording([Part(data, kind)], notes)


def join_parts(parts: Sequence[Part]) -> bytes:
    """Write several streams as one event stream; a comment before each says whence it came."""
    return b"".join(mark(part.where, part.tools) + _as_stream(part) for part in parts)


def odd_lines(part: Part) -> Iterator[str]:
    """Name the lines of an event stream that the standard tells a reader to pass over."""
    if part.form != "sse":
        return
    text = line_feeds(part.body.removeprefix(BOM))
    if all(line.startswith(_FIELDS) for line in text.split(b"\n") if line):
        return
    found = [line for line in _FULL_LINE.finditer(text) if not _KNOWN_LINE.match(line[0])]
    place = f"{part.where}: " if part.where else ""
    for line in found[:MAX_NAMED]:
        number = part.line + text.count(b"\n", 0, line.start())
        seen = quote(line[0].decode(errors="replace"))
        yield f"{place}line {number} is no field of an event stream: {seen}"
    if len(found) > MAX_NAMED:
        yield f"{place}{len(found) - MAX_NAMED:,} more lines are no field of an event stream"


def page_in(part: Part) -> str:
    """Return the first line of a page of HTML that stands in an event stream, "" where none does.

    A gateway sends one where its own time limit ends the stream: as lines that are no field of a
    stream, or glued to the event that was being sent.
    """
    if part.form != "sse" or b"<" not in part.body:
        return ""
    found = _PAGE.search(line_feeds(part.body))
    return found["page"].decode(errors="replace") if found is not None else ""


def _marked(data: bytes) -> Iterator[Part]:
    marks = list(MARK.finditer(data))
    ends = [*(found.start() for found in marks[1:]), len(data)]
    line, counted = 1, 0
    for found, end in zip(marks, ends, strict=True):
        line += data.count(b"\n", counted, found.end())
        counted = found.end()
        said = read_object(found[1])
        where, tools = said.get("from"), said.get("tools")
        yield Part(
            data[found.end() : end],
            "sse",
            where if isinstance(where, str) else "",
            line,
            tools if isinstance(tools, list) and all(isinstance(t, dict) for t in tools) else None,
        )


def _as_stream(part: Part) -> bytes:
    body = part.body.removeprefix(BOM)
    if part.form == "jsonl":
        lines = [line.strip() for line in body.split(b"\n") if line.strip()]
        if not is_one_document(body, lines):
            return b"".join(b"data: %b\n\n" % line.replace(b"\r", b" ") for line in lines)
    return body if body.endswith((b"\n", b"\r")) or not body else body + b"\n"

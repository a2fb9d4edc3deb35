"""What curl writes around a stream: heads of answers (`-i`), its own remarks (`-v`), its meter.

Each head begins a further answer. curl's own lines are none of the stream's, and are taken out of
it; with `2>&1` they stand in its middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentlib.recordings.exchanges import MAX_NAMED, Exchange
from agentlib.recordings.unpack import GZIP, join_chunks

_OWN_LINES = re.compile(
    rb"(?m)^(?:\* [^\r\n]*|[<>](?: [^\r\n]*)?|[{}] \[\d+ bytes data\]|curl: \(\d+\)[^\r\n]*"
    rb"|[ \t]+% Total[^\r\n]*|[ \t]+Dload[^\r\n]*)(?:\r?\n|\Z)"
)
# The meter of progress, as wide as curl prints it: it ends no line, so anything may follow it.
_METER = re.compile(
    rb"(?m)(?:^|\r)[ ]{0,2}\d{1,3} [ \d.kMGTP]{10,60}"
    rb"(?: {1,4}(?:--:--:--|\d{1,3}:\d\d:\d\d|\d{1,4}d \d\dh)){3} [ \d.kMGTP]{5}(?:\n\Z)?"
)
_BEGINS = re.compile(rb"HTTP/\d(?:\.\d)? \d{3}|\* |> [A-Z]+ |< HTTP/|[ \t]+% Total")
_HEAD = re.compile(rb"(?m)^HTTP/\d(?:\.\d)? (\d{3})[^\n]*\n((?:[^\r\n:]+:[^\n]*\n)*)(?:\r?\n|\Z)")
_SENT_HEAD = re.compile(rb"(?m)^< HTTP/\d(?:\.\d)? (\d{3})[^\n]*\n((?:<[^\n]*(?:\n|\Z))*)")
_FIELD = re.compile(r"(?m)^(?:[<>] |\*[^\r\n]*\[)?([\w-]+):[ \t]*([^\]\r\n]*)")


def is_curl(source: bytes) -> bool:
    """Say whether bytes begin as a recording of curl does that has more than the stream."""
    return _BEGINS.match(source.lstrip(b"\r\n")[:64]) is not None


def read_curl(source: bytes) -> tuple[list[Exchange], list[str]]:
    """Return the answers in a recording of curl, and in one sentence each what else it holds."""
    own: list[bytes] = _METER.findall(source)
    source = _METER.sub(b"", source)
    heads = list(_HEAD.finditer(source)) or list(_SENT_HEAD.finditer(source))
    notes = list(_of_heads(source, heads))
    ends = [*(found.start() for found in heads[1:]), len(source)]
    exchanges = []
    before = _without_own(source[: heads[0].start()], own) if heads else b""
    if before.strip():
        count = len(before.strip().splitlines())
        notes.append(f"{count:,} line{'s' if count > 1 else ''} before the first answer, not read")
    answers: list[re.Match[bytes] | None] = [*heads] or [None]
    line, counted = 1, 0
    for number, (found, end) in enumerate(zip(answers, ends, strict=True), 1):
        start = found.end() if found is not None else 0
        body = source[start:end]
        joined = join_chunks(body)
        body = _without_own(joined.data if joined is not None else body, own)
        # An answer before the answer has no body: 100 Continue, a proxy's 200, a redirect.
        if not body.strip() and len(heads) > 1:
            continue
        status = f", status {found[1].decode()}" if found is not None else ""
        where = f"answer {number}{status}"
        if joined is not None and joined.note:
            notes.append(f"{where}: {joined.note}")
        fields = _fields(found[2]) if found is not None else ()
        line, counted = line + source.count(b"\n", counted, start), start
        exchanges.append(Exchange(where, body=body, headers=fields, line=line, asked=True))
    if own:
        notes.append(
            f"{len(own):,} line{'s' if len(own) > 1 else ''} of curl's own, not part of the stream"
        )
    if own and exchanges:
        # What headers hold is looked for in all of the recording, whosever they are.
        first = exchanges[0]._replace(headers=(*exchanges[0].headers, *_fields(b"".join(own))))
        exchanges[0] = first
    return exchanges, notes


def _of_heads(source: bytes, heads: list[re.Match[bytes]]) -> Iterator[str]:
    for found in heads[:MAX_NAMED]:
        first = source.count(b"\n", 0, found.start()) + 1
        last = first + found[0].count(b"\n") - 1
        yield f"lines {first} to {last} are the head of an answer, {found[1].decode()}"
    if len(heads) > MAX_NAMED:
        yield f"and {len(heads) - MAX_NAMED:,} more heads of answers"


def _without_own(text: bytes, own: list[bytes]) -> bytes:
    if text.startswith(GZIP):
        return text
    own += _OWN_LINES.findall(text)
    return _OWN_LINES.sub(b"", text)


def _fields(text: bytes) -> tuple[tuple[str, str], ...]:
    return tuple(_FIELD.findall(text.decode(errors="replace")))

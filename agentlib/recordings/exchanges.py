"""Requests and answers as other tools record them, and which of the answers are streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from agentlib.jsonvalues import (
    MAX_QUOTED_CHARACTERS,
    StrictJSONError,
    loads_unique,
    one_line,
    shorten,
)
from agentlib.recordings.sniff import head
from agentlib.recordings.unpack import MAX_UNPACKED_BYTES, join_chunks, unpack

# What is skipped is clear from a few of many.
MAX_NAMED = 8
STREAM_TYPES = frozenset(
    ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/jsonlines")
)
_AFTER_PATH = re.compile(r"[;?]|%3[BbFf]")
_FIELD = re.compile(rb"(?:data|event|id|retry)?:")


class Part(NamedTuple):
    """One stream of a recording: its bytes, their form, and from where it came.

    `where` names its place for a reader, "" where the recording is nothing but the stream.
    `line` is the number of its first line there. `tools` is the catalog that its request
    exposed, as the API writes it, or None.
    """

    body: bytes
    form: Literal["sse", "jsonl"]
    where: str = ""
    line: int = 1
    tools: list[dict[str, Any]] | None = None
    notes: tuple[str, ...] = ()


class Exchange(NamedTuple):
    """One request and its answer, as far as they were recorded.

    `where` names its place in the recording, `line` is the line where its body begins. `kind` is
    the type of the answer's content, `headers` are those of both, by name. `asked` says that a
    stream was asked for, which the body of the request may say as well. `note` says what is
    missing of its body.
    """

    where: str
    method: str = ""
    url: str = ""
    request: bytes = b""
    kind: str = ""
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    line: int = 1
    asked: bool = False
    note: str | None = None

    @property
    def title(self) -> str:
        """Where it stands and what was asked, without the query: that may hold a key."""
        host, path = _address(self.url)
        asked = f"{self.method} {host}{_AFTER_PATH.split(path, maxsplit=1)[0]}".strip()
        return f"{self.where} ({asked})" if asked else self.where

    def asked_with(self) -> Iterator[tuple[str, str]]:
        """Yield by name what was sent in the address, password and query, and in the body."""
        try:
            parts = urlsplit(self.url)
            yield "password", parts.password or ""
            yield from parse_qsl(parts.query, max_num_fields=100)
        except ValueError:
            pass
        for name, value in _object(self.request).items():
            if isinstance(value, str):
                yield name, value


def opened(exchanges: Iterable[Exchange], size: int) -> tuple[list[Exchange], list[str]]:
    """Return exchanges with their bodies unpacked, and in one sentence what is left out, if any.

    A small recording can stand for a vast one, since it may be packed, or name a part and repeat
    it. All of it together may take MAX_UNPACKED_BYTES, or `size`, that of the recording itself.
    """
    left = max(size, MAX_UNPACKED_BYTES)
    taken: list[Exchange] = []
    for exchange in exchanges:
        fields = sum(len(name) + len(value) for name, value in exchange.headers)
        left -= len(exchange.url) + len(exchange.kind) + fields
        request = unpack(exchange.request, max(left, 0)).data
        left -= len(request)
        body, note = unpack(exchange.body, max(left, 0))
        left -= len(body)
        taken.append(exchange._replace(request=request, body=body, note=note))
        if left <= 0:
            bound = f"more than {max(size, MAX_UNPACKED_BYTES):,} bytes in all"
            return taken, [f"{exchange.where} is the last that is read: {bound}"]
    return taken, []


def streams_of(
    exchanges: Iterable[Exchange], clean: Callable[[str], str] = str
) -> tuple[list[Part], list[str]]:
    """Return the streams among the answers, and one sentence for those that are none.

    `clean` takes the secrets out of a text.
    """
    parts, others = [], []
    for exchange in exchanges:
        request = _object(exchange.request)
        body, chunks = join_chunks(exchange.body) or (exchange.body, None)
        title = one_line(shorten(clean(exchange.title), 3 * MAX_QUOTED_CHARACTERS))
        if not _is_stream(exchange, request, body):
            kind = one_line(shorten(clean(exchange.kind), MAX_QUOTED_CHARACTERS)) or "no type"
            others.append(f"{title}, {kind}")
            continue
        notes = tuple(f"{exchange.where}: {said}" for said in (exchange.note, chunks) if said)
        tools = tools_of(request)
        parts.append(Part(body, form_of(body), title, exchange.line, tools, notes))
    more = f", and {len(others) - MAX_NAMED:,} more" if len(others) > MAX_NAMED else ""
    named = "; ".join(others[:MAX_NAMED])
    return parts, [f"no stream, and not read: {named}{more}"] if others else []


def form_of(body: bytes) -> Literal["sse", "jsonl"]:
    """Return the form of a stream by its first character: JSON lines begin as JSON does."""
    return "jsonl" if head(body).startswith((b"{", b"[")) else "sse"


def _is_stream(exchange: Exchange, request: dict[str, Any], body: bytes) -> bool:
    kind = exchange.kind.partition(";")[0].strip().lower()
    # A refusal in another form counts: it is what came instead of the stream.
    asked = exchange.asked or request.get("stream") is True
    return kind in STREAM_TYPES or asked or _FIELD.match(head(body)) is not None


def tools_of(request: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the catalog in the body of a request, as its API writes it, or None."""
    tools = request.get("tools")
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return None
    return tools


def read_object(text: bytes) -> dict[str, Any]:
    """Return the object that the body of a request is, an empty one where it is none."""
    return _object(unpack(text).data)


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = loads_unique(text.decode())
    except (StrictJSONError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _address(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "", ""
    return host, parts.path

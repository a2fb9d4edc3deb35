"""Requests and answers as other tools record them, and which of the answers are streams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from agentlib.jsonvalues import (
    MAX_QUOTED_CHARACTERS,
    StrictJSONError,
    loads_unique,
    one_line,
    shorten,
)
from agentlib.transport.diagnosis import head
from agentlib.transport.unpack import join_chunks, unpack

# What is skipped is clear from a few of many.
MAX_NAMED = 8
STREAM_TYPES = frozenset(
    ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/jsonlines")
)
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
    the type of the answer's content, `headers` are those of both. `asked` says that a stream was
    asked for, which the body of the request may say as well.
    """

    where: str
    method: str = ""
    url: str = ""
    request: bytes = b""
    kind: str = ""
    body: bytes = b""
    headers: tuple[Mapping[str, str], ...] = ()
    line: int = 1
    asked: bool = False

    @property
    def title(self) -> str:
        """Where it stands and what was asked, without the query: that may hold a key."""
        host, path = _address(self.url)
        asked = one_line(shorten(f"{self.method} {host}{path}", 2 * MAX_QUOTED_CHARACTERS))
        return f"{self.where} ({asked.strip()})" if asked.strip() else self.where


def streams_of(exchanges: Iterable[Exchange]) -> tuple[list[Part], list[str]]:
    """Return the streams among the answers, and one sentence for those that are none."""
    parts, others = [], []
    for exchange in exchanges:
        request = read_object(exchange.request)
        body, note = unpack(exchange.body)
        body, chunks = join_chunks(body) or (body, None)
        if not _is_stream(exchange, request, body):
            kind = one_line(shorten(exchange.kind, MAX_QUOTED_CHARACTERS)) or "no type"
            others.append(f"{exchange.title}, {kind}")
            continue
        notes = tuple(f"{exchange.where}: {said}" for said in (note, chunks) if said)
        tools = tools_of(request)
        parts.append(Part(body, form_of(body), exchange.title, exchange.line, tools, notes))
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
    try:
        value = loads_unique(unpack(text).data.decode())
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

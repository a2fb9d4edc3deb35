"""A browser's recording: HAR 1.2, "HTTP Archive", by the names of the format."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from agentlib.jsonvalues import one_line
from agentlib.recordings.exchanges import Exchange
from agentlib.recordings.sniff import head
from agentlib.sse import BOM

_LINE_END = re.compile(r"\r\n|\n|\r")


def is_har(source: bytes) -> bool:
    """Say whether bytes begin as an archive does: an object whose first name is `log`."""
    start = head(source)
    return start.startswith(b"{") and start[1:].lstrip().startswith(b'"log"')


def read_har(source: bytes) -> tuple[Iterable[Exchange], list[str]]:
    """Return the entries of an archive, and in one sentence each what of it cannot be read.

    The list grows while the entries are read.
    """
    try:
        # Chains of callers nest deeper than an event may.
        archive = json.loads(source.removeprefix(BOM).decode())
    except (ValueError, RecursionError) as error:
        return [], [f"the archive is not JSON: {one_line(str(error))}"]
    entries = _part(archive, "log").get("entries")
    if not isinstance(entries, list):
        return [], ["the archive has no list log.entries"]
    notes: list[str] = []
    return _exchanges(entries, notes), notes


def _exchanges(entries: list[Any], notes: list[str]) -> Iterator[Exchange]:
    for number, entry in enumerate(entries, 1):
        where = f"entry {number}"
        request, response = _part(entry, "request"), _part(entry, "response")
        content = _part(response, "content")
        body = _body(content)
        if body is None:
            notes.append(f"{where}: its content is not the base64 that it claims to be")
            continue
        kind = _text(content.get("mimeType"))
        body = body or _messages(entry)
        if not body and kind:
            notes.append(f"{where}: the browser kept no body of this answer")
        yield Exchange(
            where,
            _text(request.get("method")),
            _text(request.get("url")),
            _text(_part(request, "postData").get("text")).encode(errors="replace"),
            kind,
            body,
            (*_headers(request), *_headers(response)),
        )


def _body(content: dict[str, Any]) -> bytes | None:
    text = _text(content.get("text"))
    if content.get("encoding") != "base64":
        return text.encode(errors="replace")
    try:
        return base64.b64decode(text.encode(errors="replace"), validate=True)
    except (binascii.Error, ValueError):
        return None


def _messages(entry: Any) -> bytes:
    # Chrome keeps the events of an EventSource apart, and no body beside them.
    found = entry.get("_eventSourceMessages") if isinstance(entry, dict) else None
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    blocks = []
    for row in rows:
        name = " ".join(_text(row.get("eventName")).split())
        lines = [f"event: {name}"] if name not in ("", "message") else []
        lines += [f"data: {line}" for line in _LINE_END.split(_text(row.get("data")))]
        blocks.append("\n".join([*lines, "", ""]))
    return "".join(blocks).encode(errors="replace")


def _headers(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    found = message.get("headers")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return ((_text(row.get("name")), _text(row.get("value"))) for row in rows)


def _part(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

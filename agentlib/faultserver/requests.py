"""What the loopback server takes as a request: one JSON object, posted to a known path.

Just enough of RFC 9112, "Message Syntax" and "Message Body": a head, then a body whose length the
head tells. Everything is bounded, and no header is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentlib.faultserver.connection import Wire
from agentlib.jsonvalues import StrictJSONError, loads_unique, quote

MAX_HEAD_BYTES = 64 * 1024
# A conversation with some files in it is far below.
MAX_BODY_BYTES = 16 * 1024 * 1024
PATHS = ("/v1/responses", "/v1/chat/completions", "/v1/messages")
_KEY_HEADERS = ("authorization", "x-api-key", "api-key")
_BLANK_LINE = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its number (from 1), and its JSON body, None where it was not an object.

    `authorized` says whether it came with a key, and not with which.
    """

    number: int
    method: str
    path: str
    body: dict[str, Any] | None
    authorized: bool


class Refused(Exception):
    """Raised for a request that the plan does not answer; `status` is the HTTP status for it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def read_request(wire: Wire) -> Request:
    """Read one request, to the end of its body; its number is not known yet, 0.

    Raises Refused where it is too large or no HTTP that this server speaks.
    """
    head, rest = _read_head(wire)
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refused(400, f"expected an HTTP/1.1 request line, saw {quote(lines[0])}")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = _read_body(wire, headers, rest)
    authorized = any(headers.get(name) for name in _KEY_HEADERS)
    return Request(0, words[0], words[1].partition("?")[0], _object(body), authorized)


def refuse_unknown(request: Request) -> None:
    """Raise Refused unless it is a JSON object, posted to one of PATHS."""
    if request.path not in PATHS:
        raise Refused(404, f"expected one of {', '.join(PATHS)}; saw {quote(request.path)}")
    if request.method != "POST":
        raise Refused(405, f"expected POST, saw {quote(request.method)}")
    if request.body is None:
        raise Refused(400, "expected one JSON object as the body")


def _read_head(wire: Wire) -> tuple[bytes, bytes]:
    data = b""
    while _BLANK_LINE not in data[: MAX_HEAD_BYTES + len(_BLANK_LINE)]:
        if len(data) > MAX_HEAD_BYTES:
            raise Refused(431, f"expected a head of at most {MAX_HEAD_BYTES:,} bytes")
        data += wire.receive()
    head, _, rest = data.partition(_BLANK_LINE)
    return head, rest


def _read_body(wire: Wire, headers: dict[str, str], rest: bytes) -> bytes:
    if "transfer-encoding" in headers:
        raise Refused(411, "expected a body whose length is told by content-length")
    told = headers.get("content-length", "0")
    if not (told.isascii() and told.isdigit() and len(told) <= 16):
        raise Refused(400, f"expected content-length to be a number, saw {quote(told)}")
    length = int(told)
    if length > MAX_BODY_BYTES:
        raise Refused(413, f"expected a body of at most {MAX_BODY_BYTES:,} bytes")
    body = bytearray(rest)
    while len(body) < length:
        body += wire.receive()
    return bytes(body[:length])


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = loads_unique(body.decode())
    except (UnicodeDecodeError, StrictJSONError):
        return None
    return value if isinstance(value, dict) else None

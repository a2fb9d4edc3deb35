"""What the loopback server takes as a request: one JSON object, posted to a known path.

h11 reads it, by the rules of RFC 9112: a head, then a body whose length stands in the head.
Everything is bounded, and of the headers only an idempotency key is kept. What the server sends is
written elsewhere and byte by byte, since no library tears a chunk on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import h11

from agentlib.faultserver.connection import Wire
from agentlib.jsonvalues import StrictJSONError, loads_unique, quote

MAX_HEAD_BYTES = 64 * 1024
# A conversation with some files in it is far below.
MAX_BODY_BYTES = 16 * 1024 * 1024
PATHS = ("/v1/responses", "/v1/chat/completions", "/v1/messages")
_KEY_HEADERS = (b"authorization", b"x-api-key", b"api-key")
_VERSIONS = (b"1.0", b"1.1")


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its number (from 1), and its JSON body, None where it was not an object.

    `authorized` is whether it came with a key; which one is not kept. `idempotency_key` is the
    header of that name, empty where there was none.
    """

    number: int
    method: str
    path: str
    body: dict[str, Any] | None
    authorized: bool
    idempotency_key: str = ""


class Refused(Exception):
    """Raised for a request that the plan does not answer; `status` is the HTTP status for it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def read_request(wire: Wire) -> Request:
    """Read one request, to the end of its body; its number is not known yet, 0.

    Raises Refused where it is too large or no HTTP that this server takes.
    """
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    try:
        head = _read_head(wire, connection)
        body = _read_body(wire, connection)
    except h11.RemoteProtocolError as error:
        # What follows the colon quotes the request, and may hold its key.
        problem = str(error).partition(":")[0]
        reason = f"expected an HTTP/1.1 request, saw one with a fault: {problem}"
        raise Refused(error.error_status_hint, reason) from error
    path = head.target.decode("ascii").partition("?")[0]
    authorized = any(value for name, value in head.headers if name in _KEY_HEADERS)
    key = dict(head.headers).get(b"idempotency-key", b"").decode("latin-1")
    return Request(0, head.method.decode("ascii"), path, _object(body), authorized, key)


def refuse_unknown(request: Request) -> None:
    """Raise Refused unless it is a JSON object, posted to one of PATHS."""
    if request.path not in PATHS:
        raise Refused(404, f"expected one of {', '.join(PATHS)}; saw {quote(request.path)}")
    if request.method != "POST":
        raise Refused(405, f"expected POST, saw {quote(request.method)}")
    if request.body is None:
        raise Refused(400, "expected one JSON object as the body")


def _read_head(wire: Wire, connection: h11.Connection) -> h11.Request:
    received = 0
    while (event := connection.next_event()) is h11.NEED_DATA:
        data = wire.receive()
        received += len(data)
        connection.receive_data(data)
    # A head that came whole in one piece passes the bound of h11, whatever its size.
    if received - len(connection.trailing_data[0]) > MAX_HEAD_BYTES:
        raise Refused(431, f"expected a head of at most {MAX_HEAD_BYTES:,} bytes")
    if not isinstance(event, h11.Request) or event.http_version not in _VERSIONS:
        raise Refused(400, "expected an HTTP/1.1 request")
    return _accepted(event)


def _accepted(head: h11.Request) -> h11.Request:
    headers = dict(head.headers)
    # The size of a body in chunks is known only at its end.
    if b"transfer-encoding" in headers:
        raise Refused(411, "expected a body whose length is in content-length")
    if int(headers.get(b"content-length", b"0")) > MAX_BODY_BYTES:
        raise Refused(413, f"expected a body of at most {MAX_BODY_BYTES:,} bytes")
    return head


def _read_body(wire: Wire, connection: h11.Connection) -> bytes:
    body = bytearray()
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Data):
            body += event.data
        else:
            connection.receive_data(wire.receive())
    return bytes(body)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = loads_unique(body.decode())
    except (UnicodeDecodeError, StrictJSONError):
        return None
    return value if isinstance(value, dict) else None

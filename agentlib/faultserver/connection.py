"""One connection of the loopback server, byte for byte: what is sent when, and how it ends.

A TCP connection ends in two ways, and a client must distinguish them (RFC 9293, "Closing a
Connection" and "Reset Processing"): by a FIN, after which nothing more comes, or by a reset, after
which nothing can be trusted to have come. Sockets here never block: whoever waits, waits for the
socket, for the server's end and for a deadline at once.
"""

from __future__ import annotations

import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from http import HTTPStatus
from itertools import groupby

from agentlib.faultserver.replies import HEAD, KEEPALIVE, Fault, Reply

PIECE = 64 * 1024
# Waiting until the network has taken all bytes has no event: the kernel is asked this often.
_POLL_SECONDS = 0.001
# `struct linger`, on and for no time: a close is then a reset.
_LINGER_ZERO = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
_NOT_SENT = 0x894B  # SIOCOUTQNSD: the bytes that the kernel has not yet sent (linux/sockios.h)


class PeerClosed(Exception):
    """Raised when the client has closed or reset the connection."""


class ServerEnded(Exception):
    """Raised when the server ends, or its time is over."""


class Wire:
    """The server's side of one accepted connection.

    `alarm` becomes readable when the server ends; `deadline` is a moment of `time.monotonic`.
    `on_stall` is called with 1 when a stall begins, and with -1 when it is over.
    """

    def __init__(
        self,
        sock: socket.socket,
        alarm: socket.socket,
        deadline: float,
        on_stall: Callable[[int], None],
    ) -> None:
        self._sock = sock
        self._alarm = alarm
        self._deadline = deadline
        self._on_stall = on_stall
        sock.setblocking(False)
        # Pieces leave when the script sends them: the kernel would wait, and join small ones.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)
        self._selector.register(alarm, selectors.EVENT_READ)

    def receive(self) -> bytes:
        """Return the next bytes, at least one. Raises PeerClosed where none will come."""
        while True:
            try:
                data = self._sock.recv(PIECE)
            except BlockingIOError:
                self._wait(selectors.EVENT_READ)
            except OSError as error:
                raise PeerClosed from error
            else:
                if not data:
                    raise PeerClosed
                return data

    def send(self, data: bytes) -> None:
        """Hand all bytes to the network. Raises PeerClosed where it takes no more."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                self._wait(selectors.EVENT_WRITE)
            except OSError as error:
                raise PeerClosed from error

    def pause(self, seconds: float) -> None:
        """Wait, and drop what comes meanwhile. Raises PeerClosed as soon as the client closes."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            if self._wait(selectors.EVENT_READ, until - now):
                self.receive()

    def stall(self) -> None:
        """Wait for the client to close, and raise PeerClosed then."""
        self._on_stall(1)
        try:
            while True:
                self.receive()
        finally:
            self._on_stall(-1)

    def finish(self) -> None:
        """Send a FIN, and wait until the client has closed too."""
        try:
            self._sock.shutdown(socket.SHUT_WR)
            while True:
                self.receive()
        except ServerEnded:
            if not self.is_closed_by_peer():
                raise
        except (PeerClosed, OSError):
            return

    def reset(self) -> None:
        """Reset the connection, after all bytes are sent."""
        while self._not_sent():
            self.pause(_POLL_SECONDS)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.close()

    def is_closed_by_peer(self) -> bool:
        """Return whether the client has closed by now, without waiting."""
        try:
            while self._sock.recv(PIECE):
                pass
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        """Free the socket."""
        self._selector.close()
        self._sock.close()

    def _wait(self, events: int, seconds: float | None = None) -> bool:
        left = self._deadline - time.monotonic()
        self._selector.modify(self._sock, events)
        ready = {key.fileobj for key, _ in self._selector.select(_least(left, seconds))}
        if self._alarm in ready or (not ready and time.monotonic() >= self._deadline):
            raise ServerEnded
        return self._sock in ready

    def _not_sent(self) -> int:
        # On Linux a reset drops what is unsent; elsewhere the kernel cannot be asked.
        if sys.platform != "linux":
            return 0
        import fcntl

        answer: bytes = fcntl.ioctl(self._sock, _NOT_SENT, bytes(4))
        return int.from_bytes(answer, sys.byteorder)


def play(reply: Reply, wire: Wire) -> None:
    """Send one reply, with its faults, and end the connection as it demands.

    Returns after the client has closed too, or after a reset. Raises PeerClosed where the client
    closed before that.
    """
    groups = [(at, tuple(faults)) for at, faults in groupby(reply.faults, key=lambda f: f.at)]
    if groups and groups[0][0] == HEAD and _apply(groups.pop(0)[1], reply, wire):
        return
    wire.send(_head(reply))
    sent = 0
    for at, faults in groups:
        torn = any(fault.kind == "cut_chunk" for fault in faults)
        missing = max(1, len(reply.body) - at) if torn else 0
        _send_piece(reply.body[sent:at], reply, wire, missing)
        sent = at
        if _apply(faults, reply, wire):
            return
    _send_piece(reply.body[sent:], reply, wire)
    _end_body(reply, wire)


def _apply(faults: tuple[Fault, ...], reply: Reply, wire: Wire) -> bool:
    # Whether the reply is over.
    for fault in faults:
        if fault.kind == "delay":
            wire.pause(fault.seconds)
        elif fault.kind == "stall":
            wire.stall()
        elif fault.kind == "keepalives":
            _keep_alive(fault, reply, wire)
        elif fault.kind == "fill":
            _fill(fault.amount or 0, reply, wire)
        elif fault.kind == "reset":
            wire.reset()
            return True
        elif fault.kind == "close" and fault.at != HEAD:
            _end_body(reply, wire)
            return True
        elif fault.kind in ("close", "cut_chunk"):
            wire.finish()
            return True
    return False


def _keep_alive(fault: Fault, reply: Reply, wire: Wire) -> None:
    sent = 0
    while fault.amount is None or sent < fault.amount:
        wire.pause(fault.seconds)
        _send_piece(KEEPALIVE, reply, wire)
        sent += 1


def _fill(count: int, reply: Reply, wire: Wire) -> None:
    piece = b"x" * PIECE
    while count > 0:
        _send_piece(piece[:count], reply, wire)
        count -= PIECE


def _send_piece(data: bytes, reply: Reply, wire: Wire, missing: int = 0) -> None:
    # `missing` bytes are announced and never sent.
    if reply.framing != "chunked":
        wire.send(data)
    elif missing:
        wire.send(b"%x\r\n%b" % (len(data) + missing, data))
    elif data:
        wire.send(b"%x\r\n%b\r\n" % (len(data), data))


def _end_body(reply: Reply, wire: Wire) -> None:
    if reply.framing == "chunked":
        wire.send(b"0\r\n\r\n")
    wire.finish()


def _head(reply: Reply) -> bytes:
    headers = {**reply.headers, "connection": "close"}
    if reply.framing == "chunked":
        headers["transfer-encoding"] = "chunked"
    elif reply.framing == "length":
        headers["content-length"] = str(len(reply.body) + _added(reply))
    lines = [f"HTTP/1.1 {reply.status} {_phrase(reply.status)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _added(reply: Reply) -> int:
    fills = sum(f.amount or 0 for f in reply.faults if f.kind == "fill")
    alive = sum(f.amount or 0 for f in reply.faults if f.kind == "keepalives")
    return fills + alive * len(KEEPALIVE)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unnamed"


def _least(left: float, seconds: float | None) -> float:
    return max(0.0, left if seconds is None else min(left, seconds))

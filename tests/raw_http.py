"""A client without any library, and a loopback server whose end is checked."""

import gc
import re
import socket
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from agentlib.faultserver.server import LoopbackServer

SECRET = "sk-a-secret-that-nobody-keeps"


@contextmanager
def serving():
    """Start servers; at the end, each has seen every connection closed by its client."""
    with ExitStack() as stack:
        servers = []

        def start(plan, **options):
            servers.append(stack.enter_context(LoopbackServer(plan, **options)))
            return servers[-1]

        yield start
        for server in servers:
            server.wait_idle()
    for server in servers:
        assert server.opened == server.closed
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address(server))


@contextmanager
def leaving_nothing():
    """Afterwards there is no thread of a server, and no socket that was not there before."""
    before = open_sockets()
    yield
    assert loopback_threads() == []
    if open_sockets() != before:
        gc.collect()
    assert open_sockets() == before


def loopback_threads():
    return [thread for thread in threading.enumerate() if "agentlib-loopback" in thread.name]


def open_sockets():
    links = Path("/proc/self/fd")
    if not links.is_dir():
        return None
    return {name for link in links.iterdir() if (name := read_link(link)).startswith("socket:")}


def read_link(link):
    try:
        return str(link.readlink())
    except OSError:
        return ""


def address(server):
    host, port = re.fullmatch(r"http://(127\.0\.0\.1):(\d+)/v1", server.base_url).groups()
    return host, int(port)


def post(body=b'{"stream": true}', path="/v1/responses", extra=""):
    return (
        f"POST {path} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {SECRET}\r\n{extra}"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


class Answer(NamedTuple):
    """What a client without any library saw: `chunks` None where the body was not chunked."""

    head: str
    body: bytes
    chunks: list | None
    whole: bool
    end: str

    @property
    def status(self):
        return int(self.head.split(" ")[1])


def receive(sock, end="closed"):
    data = bytearray()
    try:
        while piece := sock.recv(1 << 16):
            data += piece
    except ConnectionResetError:
        end = "reset"
    head, _, rest = bytes(data).partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head:
        return Answer(head.decode(), rest, None, whole=False, end=end)
    chunks, whole = dechunk(rest)
    return Answer(head.decode(), b"".join(chunks), chunks, whole, end)


def dechunk(rest):
    chunks = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        size = int(size, 16)
        if size == 0:
            assert rest == b"\r\n"
            return chunks, True
        chunks.append(rest[:size])
        if len(rest) < size + 2:
            return chunks, False
        assert rest[size : size + 2] == b"\r\n"
        rest = rest[size + 2 :]
    return chunks, False


def ask(server, request=None):
    with socket.create_connection(address(server)) as sock:
        sock.sendall(post() if request is None else request)
        return receive(sock)


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        data += sock.recv(size - len(data))
    return data

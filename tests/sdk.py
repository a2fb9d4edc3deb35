"""The real SDK against a local server: a model for each, and a server of raw bytes."""

import socket
import threading
from contextlib import asynccontextmanager, contextmanager
from functools import cache

import httpx2
import openai
from raw_http import SECRET

from agentlib import user
from agentlib.fixtures import tools
from agentlib.model import StreamingModel
from agentlib.openai_transport import OpenAITransport

REQUEST = {"model": "m", "input": "repair it", "stream": True}
SECONDS = 10


@cache
def trusted():
    """One context for all clients that a test makes: to read the certificates takes long."""
    return httpx2.create_ssl_context()


def given_async_client(**options):
    """A client of the SDK as a user makes it."""
    http_client = openai.DefaultAsyncHttpxClient(verify=trusted())
    return openai.AsyncOpenAI(api_key=SECRET, http_client=http_client, **options)


def given_client(**options):
    """The same, for one that blocks."""
    http_client = openai.DefaultHttpxClient(verify=trusted())
    return openai.OpenAI(api_key=SECRET, http_client=http_client, **options)


@asynccontextmanager
async def transport_to(server, *, owned=True, **options):
    """A transport to a server or an address, with a client of its own, or one that was given."""
    base_url = getattr(server, "base_url", server)
    if owned:
        transport = OpenAITransport(api_key=SECRET, base_url=base_url, **options)
        try:
            yield transport
        finally:
            await transport.aclose()
        return
    async with given_async_client(base_url=base_url, max_retries=5) as client:
        yield OpenAITransport(client, **options)


@asynccontextmanager
async def model_of(server, *, owned=True, tee=None, max_event_bytes=1 << 24, **options):
    """A model behind such a transport; it waits for nothing between openings."""
    async with transport_to(server, owned=owned, tee=tee, max_event_bytes=max_event_bytes) as made:
        yield StreamingModel(made, "m", random=lambda: 0.5, **options)


async def ask(model):
    return await model.complete([user("repair it")], tools())


@contextmanager
def sending(*answers):
    """Serve raw bytes, an answer for each connection, then close it; yield the base address."""
    requests = []

    def serve():
        for answer in answers:
            sock, _ = listener.accept()
            with sock:
                requests.append(read_request(sock))
                sock.sendall(answer)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(1 << 16):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", requests
        thread.join(SECONDS)
        assert not thread.is_alive(), "every answer was asked for, and every connection closed"


def read_request(sock):
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(1 << 16)
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    while len(rest) < int(headers.get("content-length", 0)):
        rest += sock.recv(1 << 16)
    return headers

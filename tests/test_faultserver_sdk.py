"""The loopback server: which requests it answers, what it counts, and that nothing is left."""

import json
import socket
import time
from contextlib import ExitStack, aclosing, closing, nullcontext
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from raw_http import (
    SECRET,
    address,
    ask,
    loopback_threads,
    post,
    receive,
)

from agentlib.faultserver import requests as loopback_requests
from agentlib.faultserver import server as loopback
from agentlib.faultserver.connection import ServerEnded, Wire
from agentlib.faultserver.server import HEAD, LoopbackServer, Reply
from agentlib.recordings.capture import Capture

pytestmark = pytest.mark.usefixtures("nothing_is_left")
STREAMS = Path(__file__).parents[1] / "fixtures" / "streams"
EDIT = Capture.load(STREAMS / "success_2_edit.sse")
KINDS = [event.data["type"] for event in EDIT.events]
STREAM = Reply.stream(EDIT)
SMALL = Reply(body=b"data: 1\n\ndata: 2\n\n")


# ----------------------------------------------------------------------------- what it takes


def test_requests_get_the_replies_in_order_and_then_the_last_again(serve):
    server = serve([Reply.error(500), SMALL])
    statuses = [ask(server).status for _ in range(4)]

    assert statuses == [500, 200, 200, 200]
    assert [request.number for request in server.requests] == [1, 2, 3, 4]


def test_a_request_is_kept_without_its_headers(serve):
    server = serve(SMALL)
    ask(server, post(b'{"model": "m"}', "/v1/messages?beta=true"))
    ask(server, post().replace(b"Authorization", b"Other"))
    ask(server, post().replace(b"Authorization: Bearer", b"X-API-Key:"))
    first, second, third = server.requests

    assert (first.method, first.path) == ("POST", "/v1/messages")
    assert first.body == {"model": "m"}
    assert [r.authorized for r in (first, second, third)] == [True, False, True]
    assert SECRET not in repr(server.requests)
    assert SECRET not in repr(vars(server))


@pytest.mark.parametrize("path", loopback_requests.PATHS)
def test_each_api_has_its_path(serve, path):
    assert ask(serve(SMALL), post(path=path)).status == 200


LONG = "x" * loopback_requests.MAX_HEAD_BYTES
OTHERS = {
    "another path": (post(path="/v1/models"), 404),
    "another method": (post().replace(b"POST", b"PUT"), 405),
    "an array": (post(b"[1]"), 400),
    "no JSON": (post(b"{"), 400),
    "no UTF-8": (post(b'{"a": "\xff"}'), 400),
    "no body": (b"POST /v1/responses HTTP/1.1\r\nHost: here\r\n\r\n", 400),
    "no host": (post().replace(b"Host", b"Other"), 400),
    "two lengths": (post(extra="Content-Length: 3\r\n"), 400),
    "no header": (post(extra=f"Bearer {SECRET}\r\n"), 400),
    "a header that HTTP cannot carry": (post(extra=f"A: {SECRET}\0\r\n"), 400),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "another HTTP": (b"PRI * HTTP/2.0\r\n\r\n", 400),
    "no length": (post(extra="Content-Length: many\r\n").replace(b"Length: 16", b"Other: 1"), 400),
    "a body in chunks": (post(extra="Transfer-Encoding: chunked\r\n"), 411),
    "too large": (
        b"POST /v1/responses HTTP/1.1\r\nHost: here\r\nContent-Length: 16777217\r\n\r\n",
        413,
    ),
    "a long head": (post(extra=f"A: {LONG}\r\n"), 431),
    "an endless head": (f"POST / HTTP/1.1\r\n{LONG}".encode(), 431),
}


@pytest.mark.parametrize(("request_bytes", "status"), OTHERS.values(), ids=OTHERS)
def test_another_request_is_answered_outside_the_plan(serve, request_bytes, status):
    server = serve([SMALL, Reply.error(500)])
    answer = ask(server, request_bytes)

    assert answer.status == status
    assert json.loads(answer.body)["error"]["message"]
    assert SECRET not in answer.body.decode()
    assert ask(server).status == 200


@pytest.mark.parametrize("size", [1 << 20, 4_099])
@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 431)])
def test_the_bound_of_a_head_holds_however_it_arrives(serve, over, status, size):
    room = loopback_requests.MAX_HEAD_BYTES - (len(post()) - len(b'{"stream": true}'))
    data = post(extra=f"A: {'x' * (room + over - len('A: ') - 2)}\r\n")
    with socket.create_connection(address(serve(SMALL))) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), size):
            sock.sendall(data[at : at + size])
        assert receive(sock).status == status


def test_a_request_is_read_to_its_end_before_it_is_answered(serve):
    server = serve(SMALL)
    data = post(b'{"text": "\xc3\xa9"}')
    with socket.create_connection(address(server)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(data)):
            assert server.requests == []
            sock.sendall(data[at : at + 1])
        answer = receive(sock)

    assert answer.body == SMALL.body
    assert server.requests[0].body == {"text": "é"}


def test_connections_are_served_side_by_side(serve):
    server = serve([SMALL.stall(at=9), SMALL])
    with socket.create_connection(address(server)) as first:
        first.sendall(post())
        server.wait_until(lambda server: server.stalled == 1)
        assert ask(server).whole
        assert server.stalled == 1


def test_further_connections_wait_for_room(serve, monkeypatch):
    monkeypatch.setattr(loopback, "MAX_CONNECTIONS", 1)
    server = serve([SMALL.stall(at=9), SMALL])
    with socket.create_connection(address(server)) as first:
        first.sendall(post())
        server.wait_until(lambda server: server.stalled == 1)
        second = socket.create_connection(address(server))
        second.sendall(post())
        assert server.opened == 1
    with closing(second):
        assert receive(second).whole


# ------------------------------------------------------------------ what it counts, and how it ends


def test_leaving_ends_what_is_stalled_sending_asking_or_silent():
    plan = [SMALL.stall(at=9), Reply.huge_line(), Reply.keepalives_only(), SMALL.delay(60)]
    with ExitStack() as clients:
        with LoopbackServer(plan) as server:
            for number in range(len(plan)):
                sock = clients.enter_context(socket.create_connection(address(server)))
                sock.sendall(post())
                server.wait_until(lambda s, number=number: len(s.requests) == number + 1)
            for data in (b"", post()[:20], post()[:-1]):
                sock = clients.enter_context(socket.create_connection(address(server)))
                sock.sendall(data)
            server.wait_until(lambda server: server.opened == 7)
            start = time.monotonic()
        assert time.monotonic() - start < 1
        assert loopback_threads() == []
        assert (server.opened, server.closed, server.stalled) == (7, 0, 0)


def test_leaving_tells_a_client_that_closed_from_one_that_leaks():
    with LoopbackServer(SMALL) as server:
        leaking = socket.create_connection(address(server))
        leaking.sendall(post())
        assert receive(leaking).whole
        with pytest.raises(TimeoutError, match=r"opened=1, closed=0"):
            server.wait_idle(timeout=0.01)
    leaking.close()
    with LoopbackServer(SMALL) as tidy:
        ask(tidy)

    assert (server.opened, server.closed) == (1, 0)
    assert (tidy.opened, tidy.closed, tidy.peer_closed) == (1, 1, 0)


@pytest.mark.parametrize("leaves", [True, False])
def test_a_client_that_closes_just_as_the_server_ends_has_closed(leaves):
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(listener.getsockname()))
        alarm, trigger = map(stack.enter_context, socket.socketpair())
        trigger.close()
        wire = Wire(listener.accept()[0], alarm, float("inf"), print)
        stack.callback(wire.close)

        def wait(_events):
            if leaves:
                client.close()
            raise ServerEnded

        wire._wait = wait
        with nullcontext() if leaves else pytest.raises(ServerEnded):
            wire.finish()


def test_a_client_that_leaves_without_asking_is_counted(serve):
    server = serve(SMALL)
    socket.create_connection(address(server)).close()
    server.wait_until(lambda server: server.closed == 1)

    assert (server.opened, server.peer_closed, server.requests) == (1, 1, [])


def test_a_forgotten_server_ends_by_itself():
    with LoopbackServer(SMALL.stall(at=9), life=0.5) as server:
        with socket.create_connection(address(server)) as sock:
            sock.sendall(post())
            assert receive(sock).body == SMALL.body[:9]
        server._running.acceptor.join(5)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address(server))


def test_a_server_runs_once():
    server = LoopbackServer(SMALL)
    with pytest.raises(RuntimeError, match="once its `with` has begun"):
        _ = server.base_url
    with server:
        pass
    with pytest.raises(RuntimeError, match="runs once"):
        server.__enter__()


# ------------------------------------------------------------------------- seen by the OpenAI SDK


@pytest.fixture
def read():
    """Read a server's answer through the real SDK, to its end; return the kinds of its events."""
    from openai import AsyncOpenAI

    async def read_all(server, stop_at=None):
        kinds = []
        async with AsyncOpenAI(
            base_url=server.base_url, api_key=SECRET, max_retries=0, timeout=5
        ) as client:
            stream = await client.responses.create(model="m", input="x", stream=True)
            async with stream, aclosing(aiter(stream)) as events:
                async for event in events:
                    kinds.append(event.type)
                    if event.type == stop_at:
                        break
        return kinds

    return read_all


@pytest.mark.parametrize(
    "reply",
    [STREAM, STREAM.split_every(97), STREAM.keepalives(0, 2, at=STREAM.ends[4])],
    ids=["whole", "split", "keep-alives"],
)
async def test_the_sdk_reads_the_events_of_the_capture(serve, read, reply):
    server = serve(reply)

    assert await read(server) == KINDS
    assert server.requests[0].body == {"model": "m", "input": "x", "stream": True}
    assert server.requests[0].authorized


async def test_the_sdk_takes_a_clean_early_end_for_an_end(serve, read):
    assert await read(serve(STREAM.close(at=STREAM.ends[8]))) == KINDS[:9]


FAILING = {
    "reset": (STREAM.reset(at=STREAM.ends[8]), "APIConnectionError"),
    "chunk cut": (STREAM.cut_chunk(at=STREAM.ends[8] + 5), "APIConnectionError"),
    "refused": (Reply.refuse(), "APIConnectionError"),
    "no answer": (STREAM.close(at=HEAD), "APIConnectionError"),
    "500": (Reply.error(500), "InternalServerError"),
    "429": (Reply.error(429, code="insufficient_quota"), "RateLimitError"),
    "401": (Reply.error(401), "AuthenticationError"),
}


@pytest.mark.parametrize(("reply", "name"), FAILING.values(), ids=FAILING)
async def test_the_sdk_sees_the_fault_after_exactly_one_request(serve, read, reply, name):
    import openai

    server = serve(reply)
    with pytest.raises(getattr(openai, name)):
        await read(server)

    assert len(server.requests) == 1


async def test_the_sdk_leaves_a_connection_that_is_held_open(serve, read):
    server = serve(STREAM.hold_open())

    assert (await read(server, stop_at="response.completed")) == KINDS
    await anyio.to_thread.run_sync(server.wait_idle)
    assert server.peer_closed == 1


@pytest.mark.parametrize("at", [HEAD, 0, STREAM.ends[8]], ids=["opening", "start", "middle"])
async def test_the_sdk_is_cancelled_in_a_stall(serve, read, at):
    server = serve(STREAM.stall(at=at))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, server)
        await anyio.to_thread.run_sync(server.wait_until, lambda server: server.stalled == 1)
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(server.wait_idle)

    assert (server.opened, server.peer_closed, server.stalled) == (1, 1, 0)

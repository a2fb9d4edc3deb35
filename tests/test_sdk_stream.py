"""Reading a stream of the real SDK: strict, bounded, and closed whatever was read of it."""

import asyncio
import gzip
import traceback
from contextlib import suppress
from dataclasses import replace

import anyio
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_http import SECRET
from sdk import REQUEST, ask, model_of, sending, transport_to

from agentlib import openai_transport as openai_sdk
from agentlib.failures import (
    IdleTimeout,
    ProtocolViolation,
    ProviderStopped,
    ResponseFailure,
    StreamCut,
)
from agentlib.faultserver.server import Reply
from agentlib.fixtures import capture
from agentlib.scrubbing import REDACTED, scrubbed
from agentlib.sse import DONE_EVENT

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_is_left")]
READ = Reply.stream(capture("success_1_read"))
FIRST = READ.ends[0]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


async def read(server, **options):
    """Read a stream to its end; return its events, with None left out."""
    async with transport_to(server, **options) as transport:
        stream = await transport.open(REQUEST)
        try:
            with anyio.fail_after(20):
                return [event async for event in stream if event is not None]
        finally:
            await stream.aclose()


async def failure(server, kind, **options):
    with pytest.raises(kind) as raised:
        await read(server, **options)
    return raised.value


def natives(name):
    found = []
    for response in capture(name).responses:
        found += [event.data for event in response.events]
        found += [DONE_EVENT] * response.done_marker
    return found


# ------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize("name", ["success_1_read", "unicode", "wire", "interleaved"])
@pytest.mark.parametrize(
    "split",
    [lambda r: r, lambda r: r.split_every(97), lambda r: replace(r, framing="close")],
    ids=["whole", "split", "without chunks"],
)
async def test_the_events_are_those_of_the_capture(serve, name, split):
    assert await read(serve(split(Reply.stream(capture(name))))) == natives(name)


async def test_the_rules_of_the_wire_hold_at_every_split(serve):
    reply = Reply.stream(capture("wire"))
    server = serve(reply.split_every(1))
    assert await read(server) == natives("wire")


async def test_bytes_without_an_event_are_told_as_life(serve):
    server = serve(READ.keepalives(0, 3, at=FIRST).split_at(FIRST // 2))
    async with transport_to(server) as transport:
        stream = await transport.open(REQUEST)
        seen = [await anext(stream) for _ in range(5)]
        await stream.aclose()
    assert [event is None for event in seen].count(False) <= 2
    assert seen[0] is None, "half an event"
    assert seen[-1] is None, "a comment"


async def test_http_around_the_events_is_not_read_as_such():
    body = b"data: {}\n\n"
    trailers = b"a\r\n" + body + b"\r\n0\r\nx-secret: trailer\r\ndata: {}\r\n\r\n"
    extension = b'a;note="data: {}"\r\n' + body + b"\r\n0\r\n\r\n"
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 3
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    answers = [chunked + trailers, chunked + extension, early + HEAD + b"\r\n" + body]
    with sending(*answers) as (address, _):
        for _ in answers:
            assert await read(address) == [{}]


# ------------------------------------------------------------------------------ what is refused

CONTENT = {
    "a page": Reply.html(),
    "JSON": Reply.error(200),
    "no type": READ.content_type(""),
    "a wrong type": READ.content_type("text/plain"),
    "a type that begins alike": READ.content_type("text/event-stream-not"),
    "packed": Reply(headers={"content-encoding": "gzip"}, body=gzip.compress(READ.body)),
    "packed by nobody": Reply(headers={"content-encoding": "gzip"}, body=READ.body),
    "a bomb": Reply(headers={"content-encoding": "gzip"}, body=gzip.compress(b" " * 10**7)),
}


@pytest.mark.parametrize("what", CONTENT)
async def test_other_content_is_refused_before_it_is_read(serve, what):
    server = serve(CONTENT[what])
    found = await failure(server, ProtocolViolation)
    assert found.check == "lifecycle"
    assert "expected" in found.reason


@pytest.mark.parametrize("content", ["Text/Event-Stream", "text/event-stream;charset=utf-8"])
async def test_a_content_type_is_compared_as_http_says(serve, content):
    assert await read(serve(READ.content_type(content))) == natives("success_1_read")


async def collect(stream, seen):
    async for event in stream:
        seen += [event]


@pytest.mark.parametrize(
    "bad",
    [
        b"data: {\n\n",
        b'data: {"a": NaN}\n\n',
        b'data: {"a": 1, "a": 2}\n\n',
        b'data: {"a": "\xff"}\n\n',
        b"data: [1]\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
        b'event: other\ndata: {"type": "response.created"}\n\n',
        b"data: <html>\n\n",
    ],
)
async def test_a_bad_event_ends_the_reading_after_the_good_ones(serve, bad):
    body = READ.body[:FIRST] + bad + READ.body[FIRST:]
    async with transport_to(serve(Reply(body=body))) as transport:
        stream = await transport.open(REQUEST)
        seen = []
        with pytest.raises(ProtocolViolation):
            await collect(stream, seen)
        await stream.aclose()
    # None stands for bytes that end no event yet: how many of those come is the network's matter.
    assert [event for event in seen if event is not None] == natives("success_1_read")[:1]


@pytest.mark.parametrize("body", [b"", b"\0" * 4096, b" " * 4096, b"\n" * 4096, b": x\n\n" * 99])
async def test_a_body_without_an_event_holds_no_event(serve, body):
    assert await read(serve(Reply.blank(body))) == []


async def test_one_event_is_bounded(serve):
    found = await failure(serve(READ), ProtocolViolation, max_event_bytes=300)
    assert "larger than 300 bytes" in found.reason


@pytest.mark.parametrize(
    "tear",
    [lambda r: r.reset(at=FIRST + 9), lambda r: r.cut_chunk(at=FIRST + 9)],
    ids=["reset", "cut chunk"],
)
async def test_a_connection_that_fails_is_no_end(serve, tear):
    found = await failure(serve(tear(READ)), StreamCut)
    assert found.check == "completed"
    assert "APIConnection" not in found.reason, "the SDK was not asked"
    assert found.__cause__ is not None


async def test_a_body_that_is_too_short_is_no_end(serve):
    reply = replace(READ, framing="length").close(at=FIRST)
    assert isinstance(await failure(serve(reply), StreamCut), StreamCut)


async def test_the_sdks_own_time_out_is_a_time_out(serve, monkeypatch):
    monkeypatch.setattr(openai_sdk, "SDK_TIMEOUT_SECONDS", 0.5)
    found = await failure(serve(READ.stall(at=FIRST)), IdleTimeout)
    assert "no byte came for 0.5 s" in found.reason


async def test_a_key_that_is_sent_back_in_an_event_is_not_handed_on(serve):
    body = (
        b'data: {"type":"response.failed","response":{"id":"r","status":"failed",'
        b'"error":{"code":"x","message":"bad key %b"}}}\n\n' % SECRET.encode()
    )
    reply = Reply(body=READ.body[:FIRST] + body)
    events = await read(serve(reply.split_every(7)))
    assert SECRET not in repr(events)
    async with model_of(serve(reply)) as model:
        with pytest.raises(ProviderStopped) as raised:
            await ask(model)
    assert "bad key [redacted]" in raised.value.reason


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b'data: {"error":{"message":"bad \\u0073%b"}}\n\n' % SECRET[1:].encode()),
        Reply(body=b'data: "%b"\n\n' % SECRET.encode()),
        Reply(body=b"data: {%b\n\n" % SECRET.upper().encode()),
        Reply(headers={"content-type": f"text/html; {SECRET}"}),
        Reply(headers={"content-encoding": SECRET}),
    ],
    ids=["escaped", "no object", "no JSON", "type", "encoding"],
)
async def test_a_key_that_is_sent_back_is_in_no_text_of_what_fails(serve, reply):
    async with model_of(serve(reply)) as model:
        with pytest.raises(ResponseFailure) as raised:
            await ask(model)
    shown = "".join(traceback.format_exception(raised.value)).lower()
    assert [SECRET[at : at + 12] for at in range(17) if SECRET[at : at + 12] in shown] == []


@given(
    before=st.text("0é😀İ ", max_size=20),
    piece=st.tuples(st.integers(0, 17), st.integers(12, 29)),
    upper=st.booleans(),
    after=st.text("0é😀İ ", max_size=20),
)
def test_what_is_scrubbed_holds_no_long_piece_and_keeps_the_rest(before, piece, upper, after):
    held = SECRET[piece[0] : piece[0] + piece[1]]
    text = scrubbed(f"{before}{held.upper() if upper else held}{after}", SECRET)
    assert text == f"{before}{REDACTED}{after}"
    assert scrubbed(before + after, SECRET) == before + after


# --------------------------------------------------------------------------------- how it ends


async def test_every_byte_that_was_read_is_teed(serve):
    chunks = []
    assert await read(serve(READ.split_every(100)), tee=chunks.append)
    assert b"".join(chunks) == READ.body


async def test_a_tee_that_raises_ends_the_reading_and_leaves_nothing_open(serve):
    def full(_chunk):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        await read(serve(READ), tee=full)


@pytest.mark.parametrize("events", [0, 1, 3])
@pytest.mark.parametrize("rest", ["stalls", "follows", "never ends"])
async def test_a_stream_is_closed_wherever_one_stops(serve, events, rest):
    at = READ.ends[3]
    replies = {
        "stalls": READ.stall(at=at),
        "follows": READ,
        "never ends": READ.keepalives(0, None, at=at),
    }
    server = serve(replies[rest])
    async with transport_to(server) as transport:
        stream = await transport.open(REQUEST)
        for _ in range(events):
            await anext(stream)
        with anyio.fail_after(1):
            await stream.aclose()
        await anyio.to_thread.run_sync(server.wait_idle)
        await stream.aclose()
    assert server.opened == 1


async def test_the_iterators_within_a_stream_come_to_their_end(serve):
    """An early end leaves no generator that a task of the event loop must finish later."""
    server = serve(READ.keepalives(0, None, at=FIRST))
    async with transport_to(server) as transport:
        stream = await transport.open(REQUEST)
        await anext(stream)
        chunks = stream._chunks
        await stream.aclose()
    assert chunks.ag_frame is None


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_no_task_is_left(serve):
    before = asyncio.all_tasks()
    async with model_of(serve([READ, READ.reset(at=FIRST), READ.hold_open()])) as model:
        for _ in range(3):
            with suppress(StreamCut):
                await ask(model)
            assert asyncio.all_tasks() == before


async def test_two_streams_of_one_client_do_not_disturb_each_other(serve):
    server = serve([READ.split_every(50), READ.stall(at=FIRST), READ.split_every(60)])
    async with transport_to(server) as transport:
        first, stalled, last = [await transport.open(REQUEST) for _ in range(3)]
        found = [event async for event in first]
        await stalled.aclose()
        found += [event async for event in last]
        await first.aclose()
        await last.aclose()
    assert [event for event in found if event is not None] == natives("success_1_read") * 2

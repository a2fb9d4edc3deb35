"""The real SDK, real sockets, and a server that misbehaves: what must hold whatever it does.

By default every event boundary of every fixture is cut, every byte of the last 2,048 of two of
them, and a seeded sample of bytes of the others; EVERY_BYTE=1 cuts them all, which takes minutes.
"""

import asyncio
import os
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes import Counter
from raw_http import leaving_nothing
from sdk import REQUEST, model_of

from agentlib import Decision, ResponseFailure, ResponseReader, user
from agentlib.faultserver.server import Reply
from agentlib.fixtures import capture, capture_names, tools
from agentlib.sse import EventStreamDecoder, decode_event

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
CATALOG = tools()
TAIL = 2048
SAMPLE = 4
ALL = os.environ.get("EVERY_BYTE") == "1"
ENDS = {"clean close": Reply.close, "reset": Reply.reset}
# Text, then a call; and two calls at once. Every byte by one way to end each.
WHOLE_TAILS = [("success_2_edit", "clean close"), ("interleaved", "reset")]


@pytest.fixture(autouse=True)
def _nothing_is_left():
    before = children()
    with leaving_nothing():
        yield
    assert children() <= before


def children():
    tasks = Path("/proc/self/task")
    lists = tasks.glob("*/children") if tasks.is_dir() else []
    return {child for path in lists for child in path.read_text(encoding="ascii").split()}


@dataclass(frozen=True)
class Prefix:
    """What the bytes before an offset amount to: a check that fails, or the calls released."""

    check: str | None
    calls: tuple[str, ...]


def prefixes(body):
    """For each offset of a body, from 0 to its length, what the bytes before it amount to.

    Found without any transport: byte by byte, through the decoder and the reader.
    """
    decoder, reader = EventStreamDecoder(), ResponseReader("responses", CATALOG)
    decision = failure = None
    for at in range(len(body) + 1):
        for event in decoder.feed(body[at - 1 : at]) if at else ():
            if event.empty or event.done or decision or failure:
                continue
            try:
                decision = reader.accept(decode_event(event))
            except ResponseFailure as error:
                failure = error
        if decision:
            yield Prefix(None, tuple(call.name for call in decision.calls))
        elif failure:
            yield Prefix(failure.check, ())
        else:
            yield Prefix("opened" if reader.assembly.state == "new" else "completed", ())


@asynccontextmanager
async def cutting(serve, replies):
    """A model whose n-th response is the n-th reply; afterwards no task is left."""
    server = serve(replies)
    tasks = asyncio.all_tasks()
    async with model_of(server) as model:
        yield model
        assert asyncio.all_tasks() == tasks
    assert len(server.requests) == len(replies), "nothing was asked for twice"


def judge(outcome, executed, expected, where):
    """Compare what came of a response with what its bytes amount to."""
    assert tuple(call.name for call in executed) == expected.calls, where
    if expected.check is None:
        assert isinstance(outcome, Decision), where
        return
    assert isinstance(outcome, ResponseFailure), where
    # A connection that fails does not say whether the response had opened.
    cut = {"opened", "completed"} if expected.check == "opened" else {expected.check}
    assert outcome.check in cut, where
    assert str(outcome).count("\n") == 0, where
    assert len(str(outcome)) > 20, where


async def act(response):
    """Await one response, and execute the calls of its decision, as a loop does."""
    counter = Counter()
    try:
        decision = await response
    except ResponseFailure as failure:
        return failure, counter.executed
    for call in decision.calls:
        await counter.execute(call)
    return decision, counter.executed


async def cut(serve, name, ways, offsets):
    reply = Reply.stream(capture(name))
    expected = list(prefixes(reply.body))
    places = [(how, at) for how in ways for at in offsets]
    async with cutting(serve, [ENDS[how](reply, at=at) for how, at in places]) as model:
        for how, at in places:
            outcome = await act(model.ask(REQUEST, CATALOG))  # a small request: there are thousands
            judge(*outcome, expected[at], f"{name}: {how} at {at}")


# ----------------------------------------------------------------------------------- every cut


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("name", capture_names())
async def test_a_cut_at_every_event_boundary_is_one_failure_and_no_execution(serve, name):
    reply = Reply.stream(capture(name))
    expected = list(prefixes(reply.body))
    places = [(how, at) for how in ENDS for at in (0, *reply.ends)]
    async with cutting(serve, [ENDS[how](reply, at=at) for how, at in places]) as model:
        for how, at in places:
            outcome = await act(model.complete([user("repair it")], CATALOG))
            judge(*outcome, expected[at], f"{name}: {how} at {at}")


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(("name", "how"), WHOLE_TAILS)
async def test_a_cut_at_every_byte_of_the_end(serve, name, how, part):
    size = len(Reply.stream(capture(name)).body)
    await cut(serve, name, [how], range(size - TAIL + part, size, 4))


@pytest.mark.exhaustive(keep=8)
@pytest.mark.timeout(1200 if ALL else 120)
@pytest.mark.parametrize("name", capture_names())
async def test_a_cut_at_some_bytes_of_the_end(serve, name):
    size = len(Reply.stream(capture(name)).body)
    tail = range(max(0, size - TAIL), size)
    offsets = tail if ALL else random.Random(name).sample(tail, SAMPLE)
    await cut(serve, name, ENDS, [*offsets, size - 1, size])


@pytest.mark.parametrize("name", capture_names())
async def test_at_every_byte_nothing_is_released_before_the_terminal_event(name):
    """The same without a transport, for every byte of every fixture."""
    source = capture(name)
    body = Reply.stream(source).body
    released = [at for at, prefix in enumerate(prefixes(body)) if prefix.check is None]
    terminal = body.find(b"response.completed")
    assert all(at > terminal >= 0 for at in released)
    assert released == list(range(released[0], len(body) + 1)) if released else True

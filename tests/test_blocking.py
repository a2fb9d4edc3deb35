"""An async path without an event loop: it returns, raises, and refuses to wait for a loop."""

import anyio
import pytest

from agentlib.blocking import BlockingBody, run_blocking
from agentlib.clock import BlockingClock

CHUNKS = [b"a", b"", b"bc"]


async def read(body):
    try:
        return [chunk async for chunk in body]
    finally:
        await body.aclose()


def test_a_body_is_read_as_it_comes_and_closed():
    closed = []
    assert run_blocking(read(BlockingBody(CHUNKS, lambda: closed.append(True)))) == CHUNKS
    assert closed == [True]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_a_read_raises_reaches_the_caller_and_the_body_is_closed(kind):
    closed = []

    def chunks():
        yield b"a"
        raise kind("why")

    with pytest.raises(kind, match="why"):
        run_blocking(read(BlockingBody(chunks(), lambda: closed.append(True))))
    assert closed == [True]


def test_a_path_that_waits_for_a_loop_is_closed_and_refused():
    closed = []

    class Suspended:
        def __await__(self):
            yield

    async def path():
        try:
            await Suspended()
        finally:
            closed.append(True)

    with pytest.raises(RuntimeError, match="event loop"):
        run_blocking(path())
    assert closed == [True]


@pytest.mark.anyio
async def test_it_runs_where_a_loop_runs_already():
    await anyio.lowlevel.checkpoint()
    assert run_blocking(read(BlockingBody(CHUNKS, lambda: None))) == CHUNKS


@pytest.mark.parametrize("late", ["neither", "inner", "outer"])
def test_a_timer_without_a_loop_ends_its_own_body_at_the_next_move(monkeypatch, late):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    clock, reached = BlockingClock(), []
    with clock.timer(10.0) as outer:
        with clock.timer(5.0) as inner:
            inner.move(5.0)
            now[0] = {"neither": 5.0, "inner": 5.1, "outer": 10.1}[late]
            (outer if late == "outer" else inner).move(20.0)
            reached.append("inner")
        reached.append("outer")
    assert (inner.expired, outer.expired) == (late == "inner", late == "outer")
    assert reached == {"neither": ["inner", "outer"], "inner": ["outer"], "outer": []}[late]

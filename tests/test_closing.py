"""Closing: once, on every way out, whoever cancels and how often; and what if it fails."""

import asyncio
import itertools

import anyio
import anyio.lowlevel
import pytest
from fakes import HANG, ask, counted, events, failure_of

from agentlib.clock import MockClock
from agentlib.errors import OpenFailure
from agentlib.failures import CloseFailed, IdleTimeout, ObserverFailed, StreamCut
from agentlib.model import StreamingModel, Timers
from agentlib.retry import PATIENT
from agentlib.vocabulary import TextDelta

pytestmark = pytest.mark.anyio
READ = events("success_1_read")
NETWORK = OpenFailure("no connection", retryable=True, sent="not sent")
QUICK = Timers(closing=0.02)


@pytest.fixture
def transport():
    with counted() as make:
        yield make


async def broken():
    raise OSError("the close failed")


async def hanging():
    await anyio.sleep_forever()


async def slow():
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


# --------------------------------------------------------------------------------- when it fails


async def test_a_decision_is_not_dispatched_where_the_close_failed(transport):
    failure = await failure_of(StreamingModel(transport(READ, closing=broken), "m"), CloseFailed)

    assert isinstance(failure.__cause__, OSError)
    assert (failure.check, failure.usage.output_tokens) == ("closing", 31)
    assert "nothing is dispatched: the close failed" in failure.reason


async def test_a_close_that_hangs_is_bounded_and_nothing_is_dispatched(transport):
    model = StreamingModel(transport(READ, closing=hanging), "m", timers=QUICK)
    with anyio.fail_after(5):
        failure = await failure_of(model, CloseFailed)
    assert "longer than 0.02 s" in failure.reason


async def test_the_bound_of_a_close_is_on_the_one_clock(transport):
    async def long():
        await clock.sleep(0.8)

    clock = MockClock()
    failure = await failure_of(StreamingModel(transport(READ, closing=long), "m", clock=clock))
    assert isinstance(failure, CloseFailed)
    assert clock.now() == 0.75


@pytest.mark.parametrize(("closing", "told"), [(broken, "the close failed"), (hanging, "0.02 s")])
@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        (lambda: READ[:5], StreamCut),
        (lambda: [StreamCut("reset", check="completed")], StreamCut),
        (lambda: [RuntimeError("a bug")], RuntimeError),
        (lambda: [KeyboardInterrupt()], KeyboardInterrupt),
    ],
    ids=["an end", "a reset", "a bug", "an interrupt"],
)
async def test_a_failure_is_not_hidden_by_a_close_that_fails_too(
    transport, steps, kind, closing, told
):
    model = StreamingModel(transport(steps(), closing=closing), "m", timers=QUICK)
    failure = await failure_of(model, kind)

    assert len(failure.__notes__) == 1
    assert "closing the stream failed too" in failure.__notes__[0]
    assert told in failure.__notes__[0]


async def test_a_time_out_is_not_hidden_by_a_close_that_fails_too(transport):
    async def pause():
        await clock.sleep(31)

    clock = MockClock()
    opener = transport([*READ[:5], pause], closing=broken)
    failure = await failure_of(StreamingModel(opener, "m", clock=clock), IdleTimeout)
    assert "the close failed" in failure.__notes__[0]


async def test_an_observers_failure_is_not_hidden_by_a_close_that_fails_too(transport):
    def report(event):
        if isinstance(event, TextDelta):
            raise KeyError("an observer's own bug")

    opener = transport(READ, closing=broken)
    failure = await failure_of(StreamingModel(opener, "m", report=report), ObserverFailed)
    assert "the close failed" in failure.__notes__[0]


# --------------------------------------------------------------------------- when one is cancelled

WHERE = {
    "opening": [HANG],
    "a retried opening": [NETWORK, HANG],
    "before the first event": [[HANG]],
    "between events": [[*READ[:9], HANG]],
    "a stalled read": [[*READ[:15], None, HANG]],
}
CLOSES = {"a quick close": None, "a slow close": slow, "a broken close": broken}
everywhere = pytest.mark.parametrize("where", WHERE)
however = pytest.mark.parametrize("how", CLOSES)


@pytest.mark.exhaustive(keep=2)
@everywhere
@however
async def test_a_cancelled_call_is_closed_within_a_second(transport, where, how):
    opener, ended = transport(*WHERE[where], closing=CLOSES[how]), anyio.Event()
    model = StreamingModel(opener, "m", policy=PATIENT)

    async def call():
        try:
            await ask(model)
        finally:
            ended.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await opener.waiting.wait()
            requests = len(opener.requests)
            begun = anyio.current_time()
            tasks.cancel_scope.cancel()
    assert ended.is_set()
    assert anyio.current_time() - begun < 1
    assert len(opener.requests) == requests, "a cancel is nothing to retry"
    assert opener.closed == opener.opened - (how == "a broken close" and opener.opened)


async def test_a_close_that_hangs_holds_a_cancelled_call_for_its_bound_alone(transport):
    opener = transport([HANG], closing=hanging)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, StreamingModel(opener, "m", timers=QUICK))
        await opener.waiting.wait()
        begun = anyio.current_time()
        tasks.cancel_scope.cancel()
    assert QUICK.closing <= anyio.current_time() - begun < 1
    assert Timers().closing < 1


async def test_a_call_that_is_cancelled_before_it_begins_opens_nothing(transport):
    opener = transport(READ)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await ask(StreamingModel(opener, "m"))
    assert (opener.requests, opener.opened) == ([], 0)


async def test_a_cancel_at_any_moment_leaves_nothing_open(transport):
    """Cancelled after each number of turns of the event loop, until a call ends before that."""

    async def opening():
        await anyio.lowlevel.checkpoint()
        return list(steps)

    steps = [step for event in READ for step in (event, None)]
    for turns in itertools.count():
        opener, found = transport(NETWORK, opening, closing=slow), []

        async def call(opener=opener, found=found):
            found.append(await ask(StreamingModel(opener, "m", clock=MockClock())))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert opener.opened == opener.closed, f"cancelled after {turns} turns"
        if found:
            break
    assert turns > len(steps), "it was cancelled at every step"


async def test_a_stream_that_is_acquired_as_its_caller_is_cancelled_is_closed(transport):
    async def just_in_time():
        with anyio.CancelScope(shield=True):
            tasks.cancel_scope.cancel()
            await anyio.lowlevel.checkpoint()
        return READ

    opener = transport(just_in_time)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, StreamingModel(opener, "m"))
    assert (opener.opened, opener.closed) == (1, 1)


async def test_a_stream_that_is_acquired_as_its_time_is_over_is_closed(transport):
    async def too_late():
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.02)
        return READ

    opener = transport(too_late)
    model = StreamingModel(opener, "m", timers=Timers(total=0.01))
    assert "longer than 0.01 s in all" in (await failure_of(model, IdleTimeout)).reason
    assert (opener.opened, opener.closed) == (1, 1)


async def test_a_deadline_of_the_callers_own_is_no_time_out_of_the_stream(transport):
    opener = transport([*READ[:5], HANG])
    with anyio.move_on_after(0.01) as scope:
        await ask(StreamingModel(opener, "m"))
    assert scope.cancelled_caught
    assert opener.closed == 1


async def test_a_decision_whose_caller_is_gone_is_not_dispatched(transport):
    opener, found = transport(READ, closing=slow), []

    async def call():
        found.append(await ask(StreamingModel(opener, "m")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await opener.close_begun.wait()
        tasks.cancel_scope.cancel()
    assert found == []
    assert opener.closed == 1


# ---------------------------------- asyncio's own cancel, which interrupts once and can be repeated


async def cancelled(task):
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), 10)
    assert task.cancelled()


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@everywhere
@however
@pytest.mark.parametrize("times", [1, 2, 5])
async def test_cancelled_again_and_again_during_the_close(transport, where, how, times):
    opener = transport(*WHERE[where], closing=CLOSES[how])
    task = asyncio.create_task(ask(StreamingModel(opener, "m", policy=PATIENT)))
    await opener.waiting.wait()
    begun = anyio.current_time()
    task.cancel()
    for _ in range(times - 1):
        await anyio.lowlevel.checkpoint()
        task.cancel()
    await cancelled(task)
    assert anyio.current_time() - begun < 1
    assert opener.closed == opener.opened - (how == "a broken close" and opener.opened)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_second_cancel_at_any_moment_of_the_close_changes_nothing(transport):
    for turns in range(30):
        opener = transport([HANG], closing=slow)
        task = asyncio.create_task(ask(StreamingModel(opener, "m")))
        await opener.waiting.wait()
        task.cancel()
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        task.cancel()
        await cancelled(task)
        assert opener.closed == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_decision_that_is_cancelled_during_its_close_is_not_dispatched(transport, times):
    opener = transport(READ, closing=slow)
    task = asyncio.create_task(ask(StreamingModel(opener, "m")))
    await opener.close_begun.wait()
    for _ in range(times):
        task.cancel()
        await anyio.lowlevel.checkpoint()
    await cancelled(task)
    assert opener.closed == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_close_that_was_itself_cancelled_did_not_close(transport):
    async def cancelled_inside():
        raise asyncio.CancelledError

    failure = await failure_of(StreamingModel(transport(READ, closing=cancelled_inside), "m"))
    assert isinstance(failure, CloseFailed)
    assert "interrupted" in failure.reason


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_no_task_is_left(transport):
    before = asyncio.all_tasks()
    await ask(StreamingModel(transport(READ), "m"))
    await failure_of(StreamingModel(transport(READ[:4], closing=broken), "m"))
    assert asyncio.all_tasks() == before

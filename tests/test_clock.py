"""The two clocks: a timer ends its own body and nothing else, and a virtual wait takes no time."""

import math
import time

import anyio
import anyio.lowlevel
import pytest

from agentlib.clock import LoopClock, VirtualClock

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("make", [LoopClock, VirtualClock])


# ------------------------------------------------------------------------------- the loop's clock


async def test_the_loops_clock_goes_on_while_one_waits():
    clock = LoopClock()
    before = clock.now()
    await clock.sleep(0.001)
    assert clock.now() > before


async def test_a_timer_ends_its_body_at_its_moment():
    clock = LoopClock()
    with clock.timer(clock.now() - 1) as timer:
        await anyio.sleep_forever()
    assert timer.expired


async def test_a_timer_is_moved_while_it_runs():
    clock = LoopClock()
    with clock.timer(clock.now() + 1000) as timer:
        timer.move(math.inf)
        await anyio.lowlevel.checkpoint()
    assert not timer.expired

    with clock.timer(math.inf) as timer:
        timer.move(clock.now() - 1)
        await anyio.sleep_forever()
    assert timer.expired


async def test_the_callers_cancellation_is_not_the_timers():
    clock = LoopClock()
    with anyio.CancelScope() as scope:
        with clock.timer(math.inf) as timer:
            scope.cancel()
            await anyio.sleep_forever()
        pytest.fail("the cancellation must pass")
    assert scope.cancelled_caught
    assert not timer.expired


# ------------------------------------------------------------------------------- the virtual clock


async def test_a_virtual_wait_takes_no_time_and_is_remembered():
    clock = VirtualClock()
    before = time.perf_counter()
    await clock.sleep(86_400)
    await clock.sleep(0.5)
    assert time.perf_counter() - before < 1
    assert clock.now() == 86_400.5
    assert clock.slept == [86_400, 0.5]


@pytest.mark.parametrize("seconds", [10, 10.5, 1e9])
async def test_a_virtual_timer_ends_the_body_where_a_wait_reaches_its_moment(seconds):
    clock = VirtualClock()
    with clock.timer(10) as timer:
        await clock.sleep(seconds)
        pytest.fail("the body must have ended")
    assert timer.expired
    assert clock.now() == 10


async def test_a_virtual_timer_that_is_not_reached_does_nothing():
    clock = VirtualClock()
    with clock.timer(10) as timer:
        await clock.sleep(9.5)
        timer.move(12)
        await clock.sleep(2)
    assert not timer.expired
    await clock.sleep(100)
    assert clock.now() == 111.5


@pytest.mark.parametrize(("outer", "inner"), [(5, 7), (7, 5), (5, 5)])
async def test_of_two_virtual_timers_the_one_that_is_passed_first_ends_its_body(outer, inner):
    clock = VirtualClock()
    reached = []
    with clock.timer(outer) as first:
        with clock.timer(inner) as second:
            await clock.sleep(100)
        reached.append("between")
    assert (first.expired, second.expired) == (outer <= inner, inner < outer)
    assert reached == ([] if first.expired else ["between"])
    assert clock.now() == min(outer, inner)


async def test_no_handler_of_errors_stops_a_virtual_timer():
    clock = VirtualClock()
    with clock.timer(1) as timer:
        try:
            await clock.sleep(2)
        except Exception:  # noqa: BLE001 - what a careless body does
            pytest.fail("a timer is no error")
    assert timer.expired


async def test_a_virtual_wait_of_one_task_ends_no_body_of_another():
    clock = VirtualClock()
    entered, passed = anyio.Event(), anyio.Event()
    ended = []

    async def patient():
        with clock.timer(5) as timer:
            entered.set()
            await passed.wait()
            await clock.sleep(0)
        ended.append(timer.expired)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(patient)
        await entered.wait()
        with clock.timer(100) as mine:
            await clock.sleep(50)
        passed.set()
    assert not mine.expired
    assert ended == [True], "it ends where its own task waits next"


@BOTH
async def test_an_error_in_a_timers_body_passes_and_the_timer_is_gone(make):
    clock = make()
    with pytest.raises(ZeroDivisionError), clock.timer(clock.now() + 1000):
        _ = 1 / 0
    await clock.sleep(0)


@BOTH
async def test_a_cancelled_wait_is_woken_at_once(make):
    clock = make()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await clock.sleep(1000)
        pytest.fail("a cancelled wait must not return")
    assert scope.cancelled_caught

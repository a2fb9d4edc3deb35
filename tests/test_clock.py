"""The clocks: a timer ends its own body and nothing else, and the mock clock waits for nothing."""

import math
import time

import anyio
import anyio.lowlevel
import pytest

from agentlib.clock import LoopClock, MockClock

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("make", [LoopClock, MockClock])


# ------------------------------------------------------------------------------- the loop's clock


async def test_the_loops_clock_goes_on_while_one_waits():
    clock = LoopClock()
    before = clock.now()
    await clock.sleep(0.001)
    assert clock.now() > before


@BOTH
async def test_a_timer_ends_its_body_at_its_moment(make):
    clock = make()
    with clock.timer(clock.now() - 1) as timer:
        await anyio.sleep_forever()
    assert timer.expired


@BOTH
async def test_a_timer_is_moved_while_it_runs(make):
    clock = make()
    with clock.timer(clock.now() + 1000) as timer:
        timer.move(math.inf)
        await anyio.lowlevel.checkpoint()
    assert not timer.expired

    with clock.timer(math.inf) as timer:
        timer.move(clock.now() - 1)
        await anyio.sleep_forever()
    assert timer.expired


@BOTH
async def test_the_callers_cancellation_is_not_the_timers(make):
    clock = make()
    with anyio.CancelScope() as scope:
        with clock.timer(math.inf) as timer:
            scope.cancel()
            await anyio.sleep_forever()
        pytest.fail("the cancellation must pass")
    assert scope.cancelled_caught
    assert not timer.expired


# --------------------------------------------------------------------------------- the mock clock


async def test_a_mock_wait_takes_no_time_and_is_remembered():
    clock = MockClock()
    before = time.perf_counter()
    await clock.sleep(86_400)
    await clock.sleep(0.5)
    assert time.perf_counter() - before < 1
    assert clock.now() == 86_400.5
    assert clock.slept == [86_400, 0.5]


@pytest.mark.parametrize("seconds", [10, 10.5, 1e9])
async def test_a_mock_timer_ends_the_body_where_a_wait_reaches_its_moment(seconds):
    clock = MockClock()
    with clock.timer(10) as timer:
        await clock.sleep(seconds)
        pytest.fail("the body must have ended")
    assert timer.expired
    assert clock.now() == 10


async def test_a_mock_timer_that_is_not_reached_does_nothing():
    clock = MockClock()
    with clock.timer(10) as timer:
        await clock.sleep(9.5)
        timer.move(12)
        await clock.sleep(2)
    assert not timer.expired
    await clock.sleep(100)
    assert clock.now() == 111.5


@pytest.mark.parametrize(("outer", "inner"), [(5, 7), (7, 5), (5, 5)])
async def test_of_two_mock_timers_the_one_that_is_passed_first_ends_its_body(outer, inner):
    clock = MockClock()
    reached = []
    with clock.timer(outer) as first:
        with clock.timer(inner) as second:
            await clock.sleep(100)
        reached.append("between")
    assert (first.expired, second.expired) == (outer <= inner, inner < outer)
    assert reached == ([] if first.expired else ["between"])
    assert clock.now() == min(outer, inner)


async def test_no_handler_of_errors_stops_a_mock_timer():
    clock = MockClock()
    with clock.timer(1) as timer:
        try:
            await clock.sleep(2)
        except Exception:  # noqa: BLE001 - what a careless body does
            pytest.fail("a timer is no error")
    assert timer.expired


async def test_a_timer_ends_the_body_of_another_task_than_that_which_waits():
    clock = MockClock()
    entered, ended = anyio.Event(), []

    async def patient():
        with clock.timer(5) as timer:
            entered.set()
            await anyio.sleep_forever()
        ended.append((timer.expired, clock.now()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(patient)
        await entered.wait()
        with clock.timer(100) as mine:
            await clock.sleep(50)
    assert not mine.expired
    assert ended == [(True, 5)]
    assert clock.now() == 50


async def test_a_jump_passes_timers_at_once_whoever_waits():
    clock = MockClock()
    with clock.timer(10) as outer, clock.timer(2) as timer:
        clock.jump(1.5)
        timer.move(4)
        assert clock.moves == 1
        clock.jump(1.5)
        assert not timer.expired
        clock.jump(1)
        await anyio.sleep_forever()
    assert (timer.expired, outer.expired, clock.now()) == (True, False, 4)


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

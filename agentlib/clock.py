"""The one clock: what the time is, how to wait, and a timer that can be moved while it runs.

`LoopClock` is the event loop's own. `MockClock` is for a replay and a test: when every task waits,
it jumps, so that nobody waits for real.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import Protocol

import anyio
import anyio.lowlevel

# So many times must every other task have had its turn before the mock clock jumps: no event loop
# can be asked whether all its tasks wait, on asyncio and trio alike.
SETTLED = 25


class Timer(Protocol):
    """A moment that ends the body of a `with`, without an error; `expired` is whether it did."""

    @property
    def expired(self) -> bool:
        """Whether the timer ended the body."""
        ...

    def move(self, at: float) -> None:
        """Set the moment, in seconds of the clock."""
        ...


class Clock(Protocol):
    """What the runtime needs to know of time; all numbers are seconds."""

    def now(self) -> float:
        """Return the time; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def timer(self, at: float) -> AbstractContextManager[Timer]:
        """Return a timer for the body of a `with`."""
        ...


class _LoopTimer:
    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope

    @property
    def expired(self) -> bool:
        return self._scope.cancelled_caught

    def move(self, at: float) -> None:
        self._scope.deadline = at


class LoopClock:
    """The event loop's clock, on asyncio and trio."""

    def now(self) -> float:
        """Return the event loop's time."""
        return anyio.current_time()

    async def sleep(self, seconds: float) -> None:
        """Wait; a cancelled caller is woken at once."""
        await anyio.sleep(seconds)

    @contextmanager
    def timer(self, at: float) -> Iterator[Timer]:
        """Return a timer whose body is cancelled at its moment."""
        with anyio.CancelScope(deadline=at) as scope:
            yield _LoopTimer(scope)


class Expired(BaseException):
    """Ends the body of a timer; like a cancellation, no `except Exception` stops it."""

    def __init__(self, timer: Timer) -> None:
        self.timer = timer


class _CheckedTimer:
    def __init__(self, at: float) -> None:
        self.expired = False
        self._at = at

    def move(self, at: float) -> None:
        if time.monotonic() > self._at:
            raise Expired(self)
        self._at = at


class BlockingClock:
    """The clock of a caller who blocks; `sleep` blocks for so many seconds.

    Nothing can interrupt a read that blocks, so that a timer ends its body no earlier than at its
    next `move`; each single wait is bounded by whoever waits.
    """

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep

    def now(self) -> float:
        """Return the time of the machine."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Block."""
        self._sleep(seconds)

    @contextmanager
    def timer(self, at: float) -> Iterator[Timer]:
        """Return a timer whose body ends where it is moved after its moment."""
        timer = _CheckedTimer(at)
        try:
            yield timer
        except Expired as expired:
            if expired.timer is not timer:
                raise
            timer.expired = True


class _MockTimer:
    def __init__(self, clock: MockClock, scope: anyio.CancelScope, at: float) -> None:
        self._clock = clock
        self._scope = scope
        self.at = at

    @property
    def expired(self) -> bool:
        return self._scope.cancelled_caught

    @property
    def pending(self) -> bool:
        return not self._scope.cancel_called

    def move(self, at: float) -> None:
        self.at = at
        self._clock.moves += 1
        self.fire()

    def fire(self) -> None:
        if self.at <= self._clock.now():
            self._scope.cancel()


class MockClock:
    """A clock that starts at 0 and, when every task waits, jumps to the next moment of interest.

    That is the end of a sleep, or a timer before it: trio's mock clock calls it autojump. The
    sleeps of tasks that run side by side overlap. `slept` has every wait that was asked for, and
    `moves` counts how often a timer was moved.
    """

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.moves = 0
        self._now = 0.0
        self._quiet = 0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int]] = []
        self._timers: list[_MockTimer] = []

    def now(self) -> float:
        """Return the seconds that were waited or jumped."""
        return self._now

    def jump(self, seconds: float) -> None:
        """Let so many seconds pass at once, whoever waits; timers that are passed end their bodies.

        For a test with a real server, whose silence no clock can see.
        """
        self._now += seconds
        for timer in tuple(self._timers):
            timer.fire()

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has jumped so far; a cancelled caller is woken at once."""
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()
        me = (self._now + seconds, next(self._order))
        self._sleepers.append(me)
        self._quiet = 0
        try:
            while self._now < me[0]:
                await anyio.lowlevel.checkpoint()
                if me == min(self._sleepers):
                    self._quiet += 1
                    if self._quiet > SETTLED:
                        self._jump_to(me[0])
            # A timer at this very moment has ended its body: that goes before the end of the sleep.
            await anyio.lowlevel.checkpoint()
        finally:
            self._sleepers.remove(me)
            self._quiet = 0

    @contextmanager
    def timer(self, at: float) -> Iterator[Timer]:
        """Return a timer whose body is cancelled where the clock reaches its moment."""
        with anyio.CancelScope() as scope:
            timer = _MockTimer(self, scope, at)
            self._timers.append(timer)
            timer.fire()
            try:
                yield timer
            finally:
                self._timers.remove(timer)

    def _jump_to(self, to: float) -> None:
        ahead = [timer for timer in self._timers if timer.at <= to and timer.pending]
        # Of two with one moment the outer one is first. One at a time: what its end sets off may
        # move the next, or sleep for less.
        first = min(ahead, key=attrgetter("at"), default=None)
        self._now = max(self._now, to if first is None else first.at)
        if first is not None:
            first.fire()
        self._quiet = 0

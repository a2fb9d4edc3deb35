"""The one clock: what the time is, how to wait, and a timer that can be moved while it runs.

`LoopClock` is the event loop's own. `VirtualClock` is for a replay and a test: waiting takes no
time, it only moves the hands, and a timer goes off where the hands pass it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import Protocol

import anyio
import anyio.lowlevel


class Timer(Protocol):
    """A moment at which the body of a `with` is ended, without an error; `expired` says if so."""

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


class _VirtualTimer:
    def __init__(self, at: float) -> None:
        self.at = at
        self.expired = False
        self.task = anyio.get_current_task().id

    def move(self, at: float) -> None:
        self.at = at


class VirtualClock:
    """A clock whose hands move only when somebody sleeps; `slept` keeps every wait asked for."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._now = 0.0
        self._timers: list[_VirtualTimer] = []

    def now(self) -> float:
        """Return where the hands stand, from 0."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Move the hands; end the body of the first timer that they pass, if it is this task's.

        Of two with one moment the outer one comes first.
        """
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()
        before, self._now = self._now, self._now + seconds
        task = anyio.get_current_task().id
        passed = [t for t in self._timers if t.at <= self._now and t.task == task]
        if passed:
            first = min(passed, key=attrgetter("at"))
            self._now = max(before, first.at)
            raise Expired(first)

    @contextmanager
    def timer(self, at: float) -> Iterator[Timer]:
        """Return a timer whose body ends where a sleep passes its moment."""
        timer = _VirtualTimer(at)
        self._timers.append(timer)
        try:
            yield timer
        except Expired as expired:
            if expired.timer is not timer:
                raise
            timer.expired = True
        finally:
            self._timers.remove(timer)

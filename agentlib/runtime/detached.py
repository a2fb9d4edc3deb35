"""A call in a task of its own: it is stopped with who waits for it, and left alone if it does not.

A task group waits for its tasks, however long: one tool that swallows its cancellation would hold
the whole run. So this task belongs to no group. Where it does not end in time, nobody waits.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import anyio

from agentlib.clock import Clock

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

# How long a stopped call may take to end, in seconds: a run's outcome comes within a second.
GRACE_SECONDS = 0.5
# The event loop keeps weak references only: a task that nobody holds may vanish.
_RUNNING: set[asyncio.Task[None]] = set()


class Detached:
    """Does `work` in a task of its own, from the moment when somebody waits for it.

    `ended` says whether it has ended, or was stopped before it began; `late` whether it was
    stopped because it took too long.
    """

    def __init__(self, work: Work, clock: Clock) -> None:
        self.ended = False
        self.late = False
        self._work = work
        self._clock = clock
        self._done = anyio.Event()
        self._scope = anyio.CancelScope()
        self._error: BaseException | None = None

    async def wait(self, seconds: float) -> None:
        """Wait for its end, at most `seconds`; where it has not ended by then, it is stopped.

        Raises what the work raised. Cancelled, it stops the work, and waits for a moment only.
        """
        _spawn(self._main)
        try:
            with self._clock.timer(self._clock.now() + seconds):
                await self._done.wait()
            self.late = not self.ended
        finally:
            if not self.ended:
                await self._stop()
        if self._error is not None:
            raise self._error

    async def _stop(self) -> None:
        self._scope.cancel()
        until = self._clock.now() + GRACE_SECONDS
        with anyio.CancelScope(shield=True), self._clock.timer(until):
            await self._done.wait()

    async def _main(self) -> None:
        try:
            with self._scope:
                # A task that was stopped before its first step would still take that one.
                if not self._scope.cancel_called:
                    await self._work()
        except BaseException as error:  # noqa: BLE001 - who waits raises it
            self._error = error
        finally:
            self.ended = True
            self._done.set()


def _spawn(work: Work) -> None:
    if issubclass(anyio.get_cancelled_exc_class(), asyncio.CancelledError):
        task = asyncio.create_task(work())
        _RUNNING.add(task)
        task.add_done_callback(_RUNNING.discard)
    else:
        # Who runs on trio has imported it.
        trio = sys.modules["trio"]
        trio.lowlevel.spawn_system_task(work, context=contextvars.copy_context())

"""Run an agent that is a function, in a thread of this process, as `run_command` runs a command."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import thread as pool
from contextlib import contextmanager
from types import FrameType
from typing import Any

from agentlib.attack.processes import LATE_SECONDS, end_left, mark_of, outlives, running
from agentlib.attack.run_command import Ended

# So often in a row a pool is seen at rest: a worker that was just given work may not run yet.
_LOOKS = 3


def run_function(
    agent: Callable[[], Any],
    environment: Mapping[str, str],
    time_out: float,
    late: float = LATE_SECONDS,
    known: Collection[threading.Thread] | None = None,
) -> Ended:
    """Call `agent`, and run what it returns where that is a coroutine; `os.environ` is patched.

    An exception counts as exit status 1. Afterwards the threads and processes that it has started
    have `late` seconds to end, but for those of a pool that wait for work; `known` are the threads
    that are not the agent's, by default `others_running`. A thread cannot be killed: one that
    is still running after its time is left, and ends when the server closes its connection.
    """
    start = time.monotonic()
    call = _Call(agent)
    thread = threading.Thread(target=call, name="agentlib-attack-agent", daemon=True)
    others = {*(others_running() if known is None else known), thread}
    mark = mark_of(environment)
    left = False
    with _patched(environment):
        thread.start()
        thread.join(time_out)
        seconds = time.monotonic() - start
        if not thread.is_alive():
            threads = _Threads(others)
            left = outlives(lambda: threads.run() or running(None, mark), late)
            end_left(None, mark)
    status = None if thread.is_alive() else call.status
    return Ended(status, seconds, call.output, left, in_process=True)


def others_running() -> frozenset[threading.Thread]:
    """Return the threads of this moment, but for the workers of a pool that an agent may use."""
    frames = sys._current_frames()  # noqa: SLF001 - a public function, for all its name
    every = threading.enumerate()
    return frozenset(each for each in every if not _is_at_rest(frames.get(each.ident or 0)))


class _Threads:
    """The threads that an agent has left running; `others` are not its own."""

    def __init__(self, others: Collection[threading.Thread]) -> None:
        self._others = others
        self._rested = 0

    def run(self) -> bool:
        """Whether one runs, or may have been woken since the last look."""
        frames = sys._current_frames()  # noqa: SLF001 - a public function, for all its name
        left = [
            each
            for each in threading.enumerate()
            if each not in self._others and not each.name.startswith("agentlib-")
        ]
        at_rest = all(_is_at_rest(frames.get(each.ident or 0)) for each in left)
        self._rested = self._rested + 1 if at_rest else 0
        return bool(left) and self._rested < _LOOKS


def _is_at_rest(frame: FrameType | None) -> bool:
    """Whether a thread is the worker of a pool, and has no work."""
    if frame is None or frame.f_code.co_name != "_worker":
        return False
    queue = frame.f_locals.get("work_queue")
    return frame.f_code.co_filename == pool.__file__ and (queue is None or queue.empty())


class _Call:
    def __init__(self, agent: Callable[[], Any]) -> None:
        self.status = 0
        self.output = ""
        self._agent = agent

    def __call__(self) -> None:
        try:
            returned = self._agent()
            if inspect.iscoroutine(returned):
                returned = asyncio.run(returned)
            self.output = "" if returned is None else str(returned)
        except SystemExit as ended:
            self.status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:  # noqa: BLE001 - an agent may refuse by any exception
            self.status = 1
            self.output = traceback.format_exc()


@contextmanager
def _patched(environment: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(environment)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)

"""Run an agent that is a function, in a thread of this process, as `run_command` runs a command."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentlib.attack.run_command import Ended


def run_function(
    agent: Callable[[], Any], environment: Mapping[str, str], time_out: float
) -> Ended:
    """Call `agent`, and run what it returns where that is a coroutine; `os.environ` is patched.

    An exception counts as exit status 1. A thread cannot be killed: one that is still running
    after `time_out` seconds is left, and ends when the server closes its connection.
    """
    start = time.monotonic()
    call = _Call(agent)
    thread = threading.Thread(target=call, name="agentlib-attack-agent", daemon=True)
    with _patched(environment):
        thread.start()
        thread.join(time_out)
    status = None if thread.is_alive() else call.status
    return Ended(status, time.monotonic() - start, call.output)


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

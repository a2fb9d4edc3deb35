"""Run a command bounded in time and output, and leave nothing of it behind.

The command runs in a session of its own. When it has ended, what it has started and left running
is waited for, for a short while, and then killed: see `agentlib.attack.processes`.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO

from agentlib.attack.last_words import is_uncaught
from agentlib.attack.processes import LATE_SECONDS, end, is_left, mark_of, outlives

MAX_OUTPUT_BYTES = 64 * 1024
_JOIN_SECONDS = 5.0
_RUNNING: set[subprocess.Popen[bytes]] = set()


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit status, None where it was killed for its time, and its output.

    `left` says that something of it was still running a while after it had ended, and `in_process`
    that it was a function: its caller gets what it raises, so that an error is no crash.
    """

    status: int | None
    seconds: float
    output: str
    left: bool = False
    in_process: bool = False

    @property
    def hung(self) -> bool:
        """Whether it was still running when its time was over."""
        return self.status is None

    @property
    def signalled(self) -> bool:
        """Whether a signal ended it: a crash, and no exit."""
        return self.status is not None and self.status < 0

    @property
    def crash(self) -> str:
        """What ended it where it did not end by itself: a signal, or an error; else ""."""
        if self.signalled:
            return f"ended by signal {-(self.status or 0)}"
        if self.status and not self.in_process and is_uncaught(self.output):
            return "ended by an error that nothing caught"
        return ""


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    time_out: float,
    late: float = LATE_SECONDS,
) -> Ended:
    """Run `command` for at most `time_out` seconds, with standard input closed.

    What it leaves running has `late` seconds to end. Raises OSError where it cannot be started.
    """
    mark = mark_of(environment)
    start = time.monotonic()
    process = subprocess.Popen(  # noqa: S603 - the reader's own command, which is what is attacked
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        start_new_session=True,
    )
    _RUNNING.add(process)
    tail = _Tail(process.stdout)
    status: int | None = None
    left = False
    try:
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(time_out)
        seconds = time.monotonic() - start
        if status is not None:
            left = outlives(partial(is_left, process.pid, mark), late)
    finally:
        _RUNNING.discard(process)
        end(process, mark)
        tail.join()
    return Ended(status, seconds, tail.text, left)


def end_running() -> None:
    """Kill every command that runs now, in whichever thread: who waits for it goes on."""
    for process in tuple(_RUNNING):
        process.kill()


class _Tail:
    """Reads a pipe to its end in a thread, and keeps only the last bytes."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        self._data = b""
        self._pipe = pipe
        self._thread = threading.Thread(target=self._read, name="agentlib-attack", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        if self._pipe is None:
            return
        with self._pipe as pipe:
            while piece := os.read(pipe.fileno(), MAX_OUTPUT_BYTES):
                self._data = (self._data + piece)[-MAX_OUTPUT_BYTES:]

    def join(self) -> None:
        self._thread.join(_JOIN_SECONDS)

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")

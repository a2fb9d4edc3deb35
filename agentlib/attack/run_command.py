"""Run a command bounded in time and output, and leave nothing of it behind.

The command runs in a session of its own. Afterwards its process group is killed, and on Linux
every other process of its session too. What has made a session of its own (a daemon) is out of
reach, and on Windows only the tree of processes that still hang together is ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MAX_OUTPUT_BYTES = 64 * 1024
_JOIN_SECONDS = 5.0
_KILL_ROUNDS = 20
_RUNNING: set[subprocess.Popen[bytes]] = set()


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit status, None where it was killed for its time, and its output."""

    status: int | None
    seconds: float
    output: str

    @property
    def hung(self) -> bool:
        """Whether it was still running when its time was over."""
        return self.status is None

    @property
    def signalled(self) -> bool:
        """Whether a signal ended it: a crash, and no exit."""
        return self.status is not None and self.status < 0


def run_command(command: Sequence[str], environment: Mapping[str, str], time_out: float) -> Ended:
    """Run `command` for at most `time_out` seconds, with standard input closed.

    Raises OSError where it cannot be started.
    """
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
    try:
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(time_out)
    finally:
        _RUNNING.discard(process)
        _end(process)
        tail.join()
    return Ended(status, time.monotonic() - start, tail.text)


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


def _end(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        if process.poll() is None:
            tree = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(tree, check=False, capture_output=True)  # noqa: S603
        process.wait()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # One that is being started while the others are killed shows in the next round.
    for _ in range(_KILL_ROUNDS):
        left = _session(process.pid)
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _session(leader: int) -> list[int]:
    """Return the processes of a session that still run, on Linux; elsewhere none is known."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # proc(5): after the name in brackets come state, parent, group and session.
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            state, _, _, session = fields.rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found.append(int(folder.name))
    return found

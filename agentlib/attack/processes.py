"""The processes of one run of an agent, and of all that it has started: found, waited for, ended.

On Linux they are those of the run's session, and those whose environment carries its nonce: what
has made a session of its own (a daemon) is among them, unless it has changed its environment too.
Elsewhere only the run's process group is known, and on Windows only what a tree of it still holds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from agentlib.probe import NONCE

# How long what outlives an agent is watched, in seconds: its tool may still run.
LATE_SECONDS = 3.0
_ROUND_SECONDS = 0.02
_KILL_ROUNDS = 20


def mark_of(environment: Mapping[str, str]) -> str:
    """Return what is in the environment of every process of one run, "" where nothing is."""
    word = environment.get(NONCE)
    return f"{NONCE}={word}" if word else ""


def outlives(is_running: Callable[[], object], seconds: float) -> bool:
    """Wait until nothing runs any more; return whether something still does after `seconds`."""
    until = time.monotonic() + seconds
    while is_running():
        if time.monotonic() >= until:
            return True
        time.sleep(_ROUND_SECONDS)
    return False


def is_left(leader: int, mark: str) -> bool:
    """Whether a process of a run is left whose leader has ended."""
    if Path("/proc/self/stat").exists():
        return bool(running(leader, mark))
    killpg = getattr(os, "killpg", None)
    with suppress(ProcessLookupError, PermissionError):
        if killpg is not None:
            killpg(leader, 0)
            return True
    return False


def running(leader: int | None, mark: str) -> list[int]:
    """Return the processes of a run that still run, on Linux; elsewhere none is known."""
    found = []
    wanted = mark.encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # proc(5): after the name in brackets come state, parent, group and session.
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            state, _, _, session = fields.rpartition(")")[2].split()[:4]
            if state in "ZX" or int(folder.name) == os.getpid():
                continue
            if int(session) == leader or (wanted and wanted in _environment(folder)):
                found.append(int(folder.name))
    return found


def _environment(folder: Path) -> list[bytes]:
    return (folder / "environ").read_bytes().split(b"\0")


def end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill a command, and every process of its run that is left."""
    if sys.platform == "win32":
        if process.poll() is None:
            tree = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(tree, check=False, capture_output=True)  # noqa: S603
        process.wait()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    end_left(process.pid, mark)


def end_left(leader: int | None, mark: str) -> None:
    """Kill every process of a run whose leader has ended, on Linux."""
    # One that is being started while the others are killed shows in the next round.
    for _ in range(_KILL_ROUNDS):
        left = running(leader, mark)
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_ROUND_SECONDS / 2)

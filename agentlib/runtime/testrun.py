"""Run a project's tests in a process of their own: bounded in time and output, killed on demand.

The process gets no key and no other variable of its parent, and leaves nothing running: its whole
process group is killed, also after an ordinary end. That bounds accidents, not malice: a temporary
folder and a process are no sandbox.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

# The fixture's tests take a tenth of a second; what takes this long hangs.
TEST_SECONDS = 20.0
# What a model is shown; the end of the output holds the summary.
MAX_OUTPUT_BYTES = 8 * 1024
# What may be written before the process is killed for it.
MAX_WRITTEN_BYTES = 4 * 1024 * 1024
_POLL_SECONDS = 0.01

# -I: neither variables of the environment nor the user's own packages change what runs.
COMMAND = (sys.executable, "-I", "-B", "-X", "utf8", "-m", "unittest")
# What a Python cannot start without, on some systems. None of it is secret.
_NEEDED = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def run_tests(
    folder: Path, scratch: Path, seconds: float, stop: threading.Event | None = None
) -> str:
    """Run the unit tests of `folder` and return what came of it, in words, then their output.

    They may write to `scratch`. Blocks until they end, or are killed: after `seconds`, when
    `stop` is set, or when they write too much. The text holds no path outside the project and no
    duration, so that the same tests give the same text.
    """
    stop = stop or threading.Event()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603 - this interpreter, and the project's own tests
            COMMAND,
            cwd=folder,
            env=environment(scratch),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            killed = _watch(process, output, time.monotonic() + seconds, seconds, stop)
        finally:
            _kill(process)
        shown = _shown(output, folder, scratch)
    verdict = killed or _verdict(process.returncode, shown)
    return f"{verdict}\n\n{shown}".rstrip()


def environment(scratch: Path) -> Mapping[str, str]:
    """Return the variables that the tests get: a place to write, and no secret."""
    place = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), str(scratch))
    needed = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    plain = {"PATH": os.defpath, "LANG": "C.UTF-8", "NO_COLOR": "1"}
    return {**plain, **place, **needed, "PYTHONDONTWRITEBYTECODE": "1"}


def _watch(
    process: subprocess.Popen[bytes],
    output: IO[bytes],
    deadline: float,
    seconds: float,
    stop: threading.Event,
) -> str:
    # Why the process must be killed; nothing where it ended by itself.
    while process.poll() is None:
        if stop.wait(_POLL_SECONDS):
            return "the tests were stopped"
        if time.monotonic() > deadline:
            return f"the tests took longer than {seconds:g} seconds and were killed"
        if os.fstat(output.fileno()).st_size > MAX_WRITTEN_BYTES:
            return f"the tests wrote more than {MAX_WRITTEN_BYTES:,} bytes and were killed"
    return ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nobody of the group is left
    process.wait()


def _verdict(status: int, output: str) -> str:
    if re.search(r"^Ran 0 tests", output, re.MULTILINE):
        return "there are no tests to run"
    if status == 0:
        return "the tests pass"
    return f"the tests fail (exit status {status})"


def _names(folder: Path, scratch: Path) -> Mapping[str, str]:
    # What stands in the output for a place of this machine; the longer paths come first.
    return {
        f"{folder}{os.sep}": "",
        str(folder): ".",
        str(scratch): "(scratch)",
        sysconfig.get_path("purelib"): "(packages)",
        sysconfig.get_path("stdlib"): "(python)",
    }


def _shown(output: IO[bytes], folder: Path, scratch: Path) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - MAX_OUTPUT_BYTES))
    text = output.read(MAX_OUTPUT_BYTES).decode(errors="replace").replace("\r\n", "\n")
    for place, name in _names(folder, scratch).items():
        text = text.replace(place, name)
    text = re.sub(r"^(Ran \d+ tests?) in [\d.]+s$", r"\1", text, flags=re.MULTILINE)
    left_out = size - MAX_OUTPUT_BYTES
    return f"({left_out:,} earlier bytes are left out)\n{text}" if left_out > 0 else text

"""Run a project's tests in a process of their own: bounded in time and output, killed on demand.

The process gets no key and no other variable of its parent, and leaves nothing running: its whole
process group is killed, also after an ordinary end. That bounds accidents, not malice: a temporary
folder and a process are no sandbox.

That the tests pass is known by the runner's own report with at least one passed test, never by an
exit status: a process can end with 0 before any test began.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NamedTuple

from agentlib.runtime import unittest_runner

# The fixture's tests take a tenth of a second; what takes this long hangs.
TEST_SECONDS = 20.0
# What a model is shown; the end of the output holds the summary.
MAX_OUTPUT_BYTES = 8 * 1024
# What may be written before the process is killed for it.
MAX_WRITTEN_BYTES = 4 * 1024 * 1024
_POLL_SECONDS = 0.01
UNPROVEN = "the tests prove nothing"

# -I: neither variables of the environment nor the user's own packages change what runs.
_RUNNER = Path(unittest_runner.__file__)
COMMAND = (sys.executable, "-I", "-B", "-X", "utf8", str(_RUNNER))
# A report is one short line; what is longer is none.
MAX_REPORT = 1024
# What a Python cannot start without, on some systems. None of it is secret.
_NEEDED = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class _Counts(NamedTuple):
    ran: int
    passed: int
    failed: int
    skipped: int


def run_tests(
    folder: Path, scratch: Path, seconds: float, stop: threading.Event | None = None
) -> str:
    """Run the unit tests of `folder` and return what came of it, in words, then their output.

    They may write to `scratch`. Blocks until they end, or are killed: after `seconds`, when
    `stop` is set, or when they write too much. The text holds no path outside the project and no
    duration, so that the same tests give the same text.
    """
    stop = stop or threading.Event()
    nonce = secrets.token_hex(unittest_runner.NONCE_BYTES // 2)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as report:
        report.write(nonce.encode())
        report.seek(0)
        process = subprocess.Popen(  # noqa: S603 - this interpreter, and the project's own tests
            COMMAND,
            cwd=folder,
            env=environment(scratch),
            stdin=report,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            killed = _watch(process, output, time.monotonic() + seconds, seconds, stop)
        finally:
            _kill(process)
        shown = _shown(output, folder, scratch)
        counts = _counts(report, nonce)
    verdict = killed or _verdict(process.returncode, counts)
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


def _counts(report: IO[bytes], nonce: str) -> _Counts | None:
    # What the runner reported; None where it did not.
    report.seek(0)
    found = re.fullmatch(rb"%b (\d+) (\d+) (\d+) (\d+)\n" % nonce.encode(), report.read(MAX_REPORT))
    return _Counts(*map(int, found.groups())) if found is not None else None


def _verdict(status: int, counts: _Counts | None) -> str:
    failed = f"the tests fail (exit status {status})"
    if counts is None:
        return failed if status else f"{UNPROVEN}: their process ended before they did"
    if counts.failed:
        return failed
    if not counts.ran and not counts.skipped:
        return "there are no tests to run"
    if not counts.passed:
        return f"{UNPROVEN}: none of them passed, {counts.skipped} were skipped"
    return failed if status else "the tests pass"


def _names(folder: Path, scratch: Path) -> Mapping[str, str]:
    # What stands in the output for a place of this machine; the longer paths come first.
    return {
        f"{folder}{os.sep}": "",
        str(folder): ".",
        str(scratch): "(scratch)",
        str(_RUNNER.parent): "(runner)",
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

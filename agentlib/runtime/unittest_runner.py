"""The program that runs a project's unit tests and reports what came of them.

It runs as a file, in a process of its own, and imports nothing but the standard library. Its
standard input is a file that holds a nonce: it takes the nonce, empties the file, and once all
tests have ended it writes one line there: the nonce and four counts. So a process that ends early,
whatever its exit status, leaves no report, and neither does one that was forked.

The tests run in this same process: what is meant to deceive can find the nonce. A report shows
that tests passed; it is no protection against malice.
"""

from __future__ import annotations

import os
import sys
import unittest
from collections.abc import Callable
from typing import Any

NONCE_BYTES = 32


class Result(unittest.TextTestResult):
    """A result that counts the tests that passed: one that was skipped did not."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.passed = 0

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        """Count one."""
        super().addSuccess(test)
        self.passed += 1


class Runner(unittest.TextTestRunner):
    """unittest's own runner with that result."""

    def __init__(self, **options: Any) -> None:
        super().__init__(resultclass=Result, **options)


def reporter() -> Callable[..., None]:
    """Return what writes the report: it keeps what it needs, whatever the tests replace."""
    report, process = os.dup(0), os.getpid()
    nonce = os.read(report, NONCE_BYTES).decode()
    os.ftruncate(report, 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    getpid, seek, write = os.getpid, os.lseek, os.write

    def send(*counts: int) -> None:
        if getpid() == process:
            seek(report, 0, os.SEEK_SET)
            write(report, f"{nonce} {' '.join(map(str, counts))}\n".encode())

    return send


def main() -> None:
    """Find and run the tests of the current folder, and report."""
    send = reporter()
    sys.argv[0] = "python -m unittest"
    program: Any = unittest.main(module=None, testRunner=Runner, exit=False)
    result = program.result
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    send(result.testsRun, result.passed, failed, len(result.skipped))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()

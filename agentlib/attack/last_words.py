"""How an agent's own output ends: by an error that nothing caught, and the line which names it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentlib.jsonvalues import one_line, shorten

MAX_CHARACTERS = 100
_TRACEBACK = re.compile(r"[ |+]*(?:Exception Group )?Traceback \(most recent call last\):\s*")
# What the run time of another language writes where an error ended the process.
_UNCAUGHT = (
    re.compile(r"Node\.js v\d"),
    re.compile(r"panic: "),
    re.compile(r"thread '.*' .*panicked at "),
    re.compile(r"Exception in thread "),
    re.compile(r"Unhandled exception\. "),
)
_BAR = re.compile(r"[ +]*\| ?")
_FRAME = re.compile(r"\s+at \S")
_AFTERWARDS = re.compile(r"Node\.js v\d|exit status \d+$|[\s{}^~]*$")


def is_uncaught(output: str) -> bool:
    """Whether an output has what a language writes of an error that nothing caught."""
    lines = output.splitlines()
    return any(_TRACEBACK.fullmatch(line) for line in lines) or any(
        pattern.match(line) for line in lines for pattern in _UNCAUGHT
    )


def error_of(output: str) -> str:
    """Return the line of an output that names its last error, else its last line; "" without any.

    In Python it stands after the last frame of the traceback; in most others, before the first.
    """
    lines = [line.rstrip() for line in output.strip().splitlines()]
    if not lines:
        return ""
    found = _after_traceback(lines) or _before_frames(lines) or _panic(lines) or _last(lines)
    return found.strip()


def after_colon(output: str) -> str:
    """Return the error of an output in one bounded line, after a colon; "" without any."""
    error = error_of(output)
    return f": {shorten(one_line(error), MAX_CHARACTERS)}" if error else ""


def _after_traceback(lines: Sequence[str]) -> str:
    starts = [at for at, line in enumerate(lines) if _TRACEBACK.fullmatch(line)]
    rest = lines[starts[-1] + 1 :] if starts else ()
    # Frames and the marks below them are indented, behind a bar where several errors are grouped.
    bare = (_BAR.sub("", each) for each in rest)
    return next((each for each in bare if not each.startswith((" ", "\t", "+")) and each), "")


def _before_frames(lines: Sequence[str]) -> str:
    frames = [at for at, line in enumerate(lines) if _FRAME.match(line)]
    firsts = [at for at in frames if at - 1 not in frames and at > 0]
    return lines[firsts[-1] - 1] if firsts else ""


def _panic(lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines) if line.startswith("panic: ")), "")


def _last(lines: Sequence[str]) -> str:
    return next((each for each in reversed(lines) if not _AFTERWARDS.match(each)), lines[-1])

"""Which exercises the reader has passed and which predictions were made, in one small local file.

It is kept beside the chapters, as `.progress.json`, and only when a chapter itself runs: where
the working directory holds `00_start_here.ipynb`. It holds numbers of chapters and nothing else;
deleting it is safe, and whatever is wrong with it never stops a check. AGENTLIB_PROGRESS names
another file, or is `off`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentlib.files import write_file

Kind: TypeAlias = Literal["passed", "tried", "predicted"]
KINDS: tuple[Kind, ...] = ("passed", "tried", "predicted")
FILE, FIRST_CHAPTER = ".progress.json", "00_start_here.ipynb"
# A chapter number each: more than this is no progress of ours.
MAX_BYTES = 10_000


def read() -> dict[Kind, frozenset[str]]:
    """Return the chapters that were kept, by kind; none where there is no file that can be used."""
    path = _path()
    return _read(path) if path is not None else dict.fromkeys(KINDS, frozenset())


def keep(kind: Kind, number: str) -> None:
    """Note that the exercise of a chapter was passed or tried, or its prediction made.

    Nothing happens where no progress is kept, or the file cannot be written.
    """
    path = _path()
    if path is None:
        return
    with suppress(OSError, ValueError), _alone(path.parent):
        known = _read(path)
        if number in known[kind]:
            return
        known[kind] |= {number}
        text = json.dumps({each: sorted(known[each]) for each in KINDS}, indent=1)
        write_file(path, f"{text}\n")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one chapter at a time write in a folder, where the system has such locks."""
    try:
        # Windows has no such module, and a kernel in the browser has it without its functions.
        from fcntl import LOCK_EX, flock
    except ImportError:
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        flock(held, LOCK_EX)
        yield
    finally:
        os.close(held)


def _path() -> Path | None:
    """Return where progress is kept; None where that is nowhere, or nothing that a file can be."""
    named = os.environ.get("AGENTLIB_PROGRESS", "")
    with suppress(OSError, ValueError):
        path = Path(named) if named else Path.cwd() / FILE
        chosen = named != "off" if named else path.with_name(FIRST_CHAPTER).is_file()
        # A pipe or a device would be waited for, or read without an end.
        return path if chosen and (not path.exists() or path.is_file()) else None
    return None


def _read(path: Path) -> dict[Kind, frozenset[str]]:
    held: Any = {}
    with suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= MAX_BYTES:
            held = json.loads(path.read_text(encoding="utf-8"))
    found = held if isinstance(held, dict) else {}
    return {kind: frozenset(_numbers(found.get(kind))) for kind in KINDS}


def _numbers(value: object) -> Iterable[str]:
    listed = value if isinstance(value, list) else []
    return (each for each in listed if isinstance(each, str) and len(each) == 2 and each.isdigit())

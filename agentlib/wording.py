"""How counts and untrusted texts are worded for a person to read."""

from __future__ import annotations

from agentlib.jsonvalues import printable

# Two lines of a terminal: what is longer would hide what stands beside it.
LINE_CHARACTERS = 160


def plural(count: int, word: str, several: str = "") -> str:
    """Return the count and the word, which becomes `several` (an s more) where not just one."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {several or f'{word}s'}"


def short_line(text: str, limit: int = LINE_CHARACTERS) -> str:
    """Return untrusted text fit to be shown in one line: bounded, with nothing invisible."""
    line = " ".join(text.split())
    return printable(line if len(line) <= limit else f"{line[: limit - 1]}…")

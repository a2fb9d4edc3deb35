"""The authored fixtures by name: captures, scenarios, and the tools that they expose.

In a checkout the fixtures are the folder `fixtures` beside the package; an installed copy carries
them as `agentlib/_fixtures`. What a file of them means is said in `fixtures/scenarios.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from agentlib.conversation import Catalog
from agentlib.errors import AgentlibError
from agentlib.jsonvalues import strict_loads
from agentlib.recordings.capture import Capture

PACKAGE = Path(__file__).resolve().parent


class FixtureNotFound(AgentlibError):
    """Raised when no fixture has this name, or when there are no fixtures at all."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One response of a model within a scenario.

    `opens` are the HTTP statuses of its openings, in order. `stream` is the name of a
    capture and `response` which response of it, from 1. What must come of it: `verdict` is
    "released" or "rejected", `event` the number of the event that gives it, `check` the check
    that fails (None where released), `calls` the names of the calls released.
    """

    opens: tuple[str, ...]
    stream: str
    verdict: str
    event: int
    calls: tuple[str, ...]
    check: str | None = None
    response: int = 1

    @property
    def capture(self) -> Capture:
        """The recorded stream, read anew each time, so that nobody's changes stay."""
        return capture(self.stream)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A series of turns, with what it shows and what must come of each."""

    name: str
    title: str
    shows: str
    turns: tuple[Turn, ...]

    @property
    def captures(self) -> tuple[Capture, ...]:
        """The recorded stream of each turn, in order."""
        return tuple(turn.capture for turn in self.turns)

    def __repr__(self) -> str:
        lines = [f"{self.name}: {self.title}", f"  {self.shows}"]
        lines += [f"  turn {n}  {_in_brief(turn)}" for n, turn in enumerate(self.turns, 1)]
        return "\n".join(lines)


def _in_brief(turn: Turn) -> str:
    of = f", response {turn.response}" if turn.response > 1 else ""
    opens = f"opens {', '.join(turn.opens)} · " if turn.opens != ("200",) else ""
    by = f" [{turn.check}]" if turn.check else f": {', '.join(turn.calls) or 'no call'}"
    return f"{opens}{turn.stream}{of} · {turn.verdict} at event {turn.event}{by}"


def fixtures() -> Path:
    """Return the folder of the fixtures. Raises FixtureNotFound where there is none."""
    for folder in (PACKAGE / "_fixtures", PACKAGE.parent / "fixtures"):
        if (folder / "scenarios.toml").is_file():
            return folder
    raise FixtureNotFound(
        "this copy of agentlib has no fixtures: install it whole, or run it from a checkout"
    )


def capture(name: str) -> Capture:
    """Return the fixture stream of this name, for example "disconnect".

    Raises FixtureNotFound, with the nearest names, where there is none.
    """
    if name not in capture_names():
        raise FixtureNotFound(_unknown("stream", name, capture_names()))
    # What was authored here is an event stream without a secret: nothing is left to find out.
    path = fixtures() / "streams" / f"{name}.sse"
    return Capture.from_stream(path.read_bytes(), name)


def capture_names() -> tuple[str, ...]:
    """Return the names of all fixture streams, in alphabetical order."""
    return tuple(sorted(path.stem for path in (fixtures() / "streams").glob("*.sse")))


def scenario(name: str) -> Scenario:
    """Return the scenario of this name, for example "success". Raises as `capture` does."""
    table = _table()["scenario"]
    if name not in table:
        raise FixtureNotFound(_unknown("scenario", name, table))
    row = table[name]
    return Scenario(name, row["title"], row["shows"], tuple(_turn(turn) for turn in row["turns"]))


def scenario_names() -> tuple[str, ...]:
    """Return the names of all scenarios, in the order of the book."""
    return tuple(_table()["scenario"])


@cache
def tools() -> Catalog:
    """Return the catalog that the fixtures expose: `list`, `read`, `edit` and `test`."""
    path = fixtures() / _table()["tools"]
    return Catalog.from_json(strict_loads(path.read_text(encoding="utf-8")))


def workspace_files() -> dict[str, str]:
    """Return the fixture project, a tiny one with a bug and a failing test: texts by path."""
    folder = fixtures() / _table()["workspace"]
    paths = sorted(path for path in folder.rglob("*.py") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _table() -> dict[str, Any]:
    return tomllib.loads((fixtures() / "scenarios.toml").read_text(encoding="utf-8"))


def _turn(row: dict[str, Any]) -> Turn:
    return Turn(
        opens=tuple(row["opens"]),
        stream=Path(row["stream"]).stem,
        verdict=row["verdict"],
        event=row["event"],
        calls=tuple(row["calls"]),
        check=row.get("check"),
        response=row.get("response", 1),
    )


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = get_close_matches(name, names, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"
    return f"no {kind} is named {name!r}; {hint}"

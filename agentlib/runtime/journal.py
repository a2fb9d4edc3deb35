"""The journal of executions: what was claimed, and what came of it.

A call is claimed before it runs and its result is recorded after. Whoever finds a claim without a
result does not run the call again: it may have acted, so it is *unknown*. In a file the journal
outlives the process, and two processes that resume the same run cannot both claim a call.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

CREATE = """
CREATE TABLE IF NOT EXISTS executions (
    run TEXT NOT NULL,
    call_id TEXT NOT NULL,
    output TEXT,
    PRIMARY KEY (run, call_id)
)
"""
# As long as a second process waits for the first one's short transaction, in seconds.
BUSY_SECONDS = 5.0


class Journal(Protocol):
    """What the loop needs of a journal."""

    def claim(self, run: str, call_id: str) -> bool:
        """Claim a call of a run; False where it was claimed before, by whomever."""
        ...

    def record(self, run: str, call_id: str, output: str) -> None:
        """Record what a claimed call returned."""
        ...

    def output(self, run: str, call_id: str) -> str | None:
        """Return what was recorded of a call; None where nothing was."""
        ...


def claim_resumption(journal: Journal, run: str, turn: int) -> bool:
    """Claim the resumption of a run that was saved in a turn; False where it was resumed before.

    Two that go on with one saved run would run nothing twice of what it waits for, and all that
    the model asks for afterwards. The claim is one of a call that no run has: no run's ID holds a
    colon.
    """
    return journal.claim(f"{run}:resumed", f"turn {turn}")


class MemoryJournal:
    """A journal for one process."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], str | None] = {}

    def claim(self, run: str, call_id: str) -> bool:
        """Claim a call of a run; False where it was claimed before."""
        if (run, call_id) in self._rows:
            return False
        self._rows[run, call_id] = None
        return True

    def record(self, run: str, call_id: str, output: str) -> None:
        """Record what a claimed call returned."""
        self._rows[run, call_id] = output

    def output(self, run: str, call_id: str) -> str | None:
        """Return what was recorded of a call; None where nothing was."""
        return self._rows.get((run, call_id))


class FileJournal:
    """A journal in a SQLite file: a claim is one insert, so only one process can make it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self._open() as database:
            database.execute(CREATE)

    def claim(self, run: str, call_id: str) -> bool:
        """Claim a call of a run; False where it was claimed before, by whomever."""
        with self._open() as database:
            cursor = database.execute(
                "INSERT OR IGNORE INTO executions VALUES (?, ?, NULL)", (run, call_id)
            )
            return cursor.rowcount == 1

    def record(self, run: str, call_id: str, output: str) -> None:
        """Record what a claimed call returned."""
        with self._open() as database:
            database.execute(
                "UPDATE executions SET output = ? WHERE run = ? AND call_id = ?",
                (output, run, call_id),
            )

    def output(self, run: str, call_id: str) -> str | None:
        """Return what was recorded of a call; None where nothing was."""
        with self._open() as database:
            row = database.execute(
                "SELECT output FROM executions WHERE run = ? AND call_id = ?", (run, call_id)
            ).fetchone()
        return row[0] if row is not None else None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
        try:
            with database:
                yield database
        finally:
            database.close()

"""The ledger: what each attempt on each route cost, and who made it, in one SQLite file.

Money is reserved before a request and settled after it, each in one transaction, so that two
processes that share a budget cannot overspend it, and spend survives a restart. Where a cost
cannot be told, the reservation stands: unknown is not zero.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentlib.conversation import Usage
from agentlib.errors import AgentlibError

CREATE = """
CREATE TABLE IF NOT EXISTS attempts (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    who TEXT NOT NULL,
    route TEXT NOT NULL,
    model TEXT NOT NULL,
    reserved REAL NOT NULL,
    cost REAL,
    outcome TEXT,
    input_tokens INTEGER,
    cached_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER
)
"""
SPENT = "SELECT TOTAL(COALESCE(cost, reserved)) FROM attempts"
COLUMNS = (
    "number, who, route, model, reserved, cost, outcome, "
    "input_tokens, cached_tokens, output_tokens, reasoning_tokens"
)
# As long as a second process waits for the first one's short transaction, in seconds.
BUSY_SECONDS = 5.0


class BudgetExceeded(AgentlibError):
    """Raised when a reservation does not fit into what is left of the spend limit."""


class LedgerFailed(AgentlibError):
    """Raised when the ledger cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt. `cost` is None where it could not be told; the reservation then counts."""

    number: int
    who: str
    route: str
    model: str
    reserved: float
    cost: float | None
    outcome: str | None
    usage: Usage


class Ledger:
    """A ledger with a spend limit, in the money of the prices.

    Raises LedgerFailed from any method where the file cannot be used.
    """

    def __init__(
        self, path: str | Path, limit: float, wall: Callable[[], float] = time.time
    ) -> None:
        self.path = Path(path)
        self.limit = limit
        self._wall = wall

    def reserve(self, who: str, route: str, model: str, amount: float) -> int:
        """Reserve money for one attempt and return its number. Raises BudgetExceeded."""
        with self._transaction() as database:
            (spent,) = database.execute(SPENT).fetchone()
            if spent + amount > self.limit:
                raise BudgetExceeded(
                    f"expected at most {self.limit - spent:.6f} more, "
                    f"the attempt could cost {amount:.6f}"
                )
            cursor = database.execute(
                "INSERT INTO attempts (at, who, route, model, reserved) VALUES (?, ?, ?, ?, ?)",
                (self._wall(), who, route, model, amount),
            )
            return int(cursor.lastrowid or 0)

    def settle(self, number: int, outcome: str, cost: float | None, usage: Usage | None) -> None:
        """Say what came of an attempt; a cost of None leaves its reservation standing."""
        used = usage or Usage()
        with self._transaction() as database:
            database.execute(
                "UPDATE attempts SET outcome = ?, cost = ?, input_tokens = ?, cached_tokens = ?, "
                "output_tokens = ?, reasoning_tokens = ? WHERE number = ?",
                (
                    outcome,
                    cost,
                    used.input_tokens,
                    used.cached_tokens,
                    used.output_tokens,
                    used.reasoning_tokens,
                    number,
                ),
            )

    def spent(self) -> float:
        """Return what is spent or reserved so far."""
        with self._transaction() as database:
            (spent,) = database.execute(SPENT).fetchone()
        return float(spent)

    def rows(self) -> tuple[Row, ...]:
        """Return all attempts, in order."""
        with self._transaction() as database:
            found = database.execute(f"SELECT {COLUMNS} FROM attempts ORDER BY number").fetchall()  # noqa: S608 - a constant
        return tuple(_row(*row) for row in found)

    def probe(self) -> None:
        """Write to the ledger and take it back: whether accounting works at this moment."""
        with self._transaction(end="ROLLBACK") as database:
            database.execute(
                "INSERT INTO attempts (at, who, route, model, reserved) "
                "VALUES (0, 'probe', 'probe', 'probe', 0)"
            )

    @contextmanager
    def _transaction(self, end: str = "COMMIT") -> Iterator[sqlite3.Connection]:
        try:
            database = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise LedgerFailed(f"the ledger cannot be opened: {error}") from error
        try:
            database.execute("BEGIN IMMEDIATE")
            database.execute(CREATE)
            yield database
            database.execute(end)
        except sqlite3.Error as error:
            raise LedgerFailed(f"the ledger cannot be used: {error}") from error
        finally:
            database.close()


def _row(
    number: int,
    who: str,
    route: str,
    model: str,
    reserved: float,
    cost: float | None,
    outcome: str | None,
    *used: int | None,
) -> Row:
    return Row(number, who, route, model, reserved, cost, outcome, Usage(*used))

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
from dataclasses import astuple, dataclass
from decimal import Decimal
from pathlib import Path

from agentlib.conversation import Usage
from agentlib.errors import AgentlibError
from agentlib.runtime.money import Amount, exact, from_units, plain, to_units

# Money is a whole number of units, as agentlib.runtime.money says: a sum of them is exact.
VERSION = 2
CREATE = """
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    who TEXT NOT NULL,
    route TEXT NOT NULL,
    model TEXT NOT NULL,
    reserved INTEGER NOT NULL,
    cost INTEGER,
    outcome TEXT,
    input_tokens INTEGER,
    cached_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER,
    cache_creation_tokens INTEGER,
    cache_creation_hour_tokens INTEGER,
    cached_apart INTEGER
)
"""
SETTLE = """
UPDATE attempts SET outcome = ?, cost = ?, input_tokens = ?, cached_tokens = ?,
output_tokens = ?, reasoning_tokens = ?, cache_creation_tokens = ?,
cache_creation_hour_tokens = ?, cached_apart = ? WHERE number = ?
"""
ROWS = """
SELECT number, who, route, model, reserved, cost, outcome, input_tokens, cached_tokens,
output_tokens, reasoning_tokens, cache_creation_tokens, cache_creation_hour_tokens, cached_apart
FROM attempts ORDER BY number
"""
SPENT = "SELECT COALESCE(SUM(COALESCE(cost, reserved)), 0) FROM attempts"
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
    reserved: Decimal
    cost: Decimal | None
    outcome: str | None
    usage: Usage


class Ledger:
    """A ledger with a spend limit, in the money of the prices. All its amounts are exact.

    Raises AmountError where an amount is none, and from any method LedgerFailed where the file
    cannot be used.
    """

    def __init__(
        self, path: str | Path, limit: Amount, wall: Callable[[], float] = time.time
    ) -> None:
        self.path = Path(path)
        self.limit: Amount = plain(exact(limit))
        self._wall = wall

    def reserve(self, who: str, route: str, model: str, amount: Amount) -> int:
        """Reserve money for one attempt and return its number. Raises BudgetExceeded."""
        with self._transaction() as database:
            (spent,) = database.execute(SPENT).fetchone()
            units, left = to_units(amount), to_units(self.limit, down=True) - spent
            if units > left:
                raise BudgetExceeded(
                    f"expected at most {from_units(left):.6f} more, "
                    f"the attempt could cost {exact(amount):.6f}"
                )
            cursor = database.execute(
                "INSERT INTO attempts (at, who, route, model, reserved) VALUES (?, ?, ?, ?, ?)",
                (self._wall(), who, route, model, units),
            )
            return int(cursor.lastrowid or 0)

    def settle(self, number: int, outcome: str, cost: Amount | None, usage: Usage | None) -> None:
        """Say what came of an attempt; a cost of None leaves its reservation standing."""
        used = usage or Usage()
        units = None if cost is None else to_units(cost)
        values = (outcome, units, *astuple(used), number)
        with self._transaction() as database:
            database.execute(SETTLE, values)

    def spent(self) -> Decimal:
        """Return what is spent or reserved so far."""
        with self._transaction() as database:
            (spent,) = database.execute(SPENT).fetchone()
        return from_units(spent)

    def rows(self) -> tuple[Row, ...]:
        """Return all attempts, in order."""
        with self._transaction() as database:
            found = database.execute(ROWS).fetchall()
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
            _prepare(database)
            yield database
            database.execute(end)
        except sqlite3.Error as error:
            raise LedgerFailed(f"the ledger cannot be used: {error}") from error
        finally:
            database.close()


def _prepare(database: sqlite3.Connection) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        return
    if database.execute("SELECT name FROM sqlite_master").fetchone() is not None:
        raise LedgerFailed(
            f"expected a ledger of version {VERSION}, or a new file; saw version {version}: "
            "begin with a new file, its limit being what is left"
        )
    database.execute(CREATE)
    database.execute(f"PRAGMA user_version = {VERSION}")


def _row(
    number: int,
    who: str,
    route: str,
    model: str,
    reserved: int,
    cost: int | None,
    outcome: str | None,
    *used: int | None,
) -> Row:
    *counters, apart = used
    usage = Usage(*counters, cached_apart=bool(apart))
    known = None if cost is None else from_units(cost)
    return Row(number, who, route, model, from_units(reserved), known, outcome, usage)

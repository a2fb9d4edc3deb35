"""Whether one more attempt fits under the spend limit, by the rows of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from agentlib.conversation import Usage
from agentlib.runtime.ledger import Row
from agentlib.runtime.money import exact
from agentlib.wording import plural
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

FITS = "What was spent and this attempt are within the limit together."
OVER = "With this attempt more could be spent than the limit allows."
UNKNOWN = (
    "An attempt was cut, and nobody said what it cost. Unknown is not zero: what was reserved "
    "for it counts."
)
RUNNING = (
    "An attempt is still under way. Until it is settled it may cost all that was reserved for it; "
    "another process may have begun it."
)
FREE = "A cost of zero is known: this opening acquired nothing, and its reservation is free again."


ELSEWHERE = "The money is one, whichever route it went: a row of the direct route counts as well."
DEARER = "This attempt cost more than was reserved for it: what was paid counts."


def _row(number: int, cost: float | None, outcome: str | None, route: str = "gateway") -> Row:
    paid = None if cost is None else exact(cost)
    return Row(number, "ann", route, "example-model", Decimal("0.5"), paid, outcome, Usage())


def _paid(number: int, cost: float) -> Row:
    return _row(number, cost, "released")


def _cut(number: int) -> Row:
    return _row(number, None, "the stream ended before its terminal event")


def _running(number: int) -> Row:
    return _row(number, None, None)


def _refused(number: int) -> Row:
    return _row(number, 0.0, "not opened: the server answered 503")


def _trial(
    stream: str, rows: Sequence[Row], amount: float, limit: float, wanted: bool, why: str
) -> Trial:
    def judge(outcome: Outcome) -> Wrong | None:
        right = outcome.error is None and outcome.value is wanted
        return None if right else Wrong(why, repr(wanted))

    return Trial(
        stream=stream,
        place=f"{plural(len(rows), 'row')}, {amount:g} more, limit {limit:g}",
        prepare=lambda: (tuple(rows), exact(amount), exact(limit)),
        judge=judge,
        hostile=any(row.cost is None for row in rows),
    )


def _trials() -> Iterator[Trial]:
    # All amounts are sums of halves and quarters: no rounding decides.
    yield _trial("an empty ledger", (), 0.5, 1.0, True, FITS)
    yield _trial("an empty ledger", (), 1.5, 1.0, False, OVER)
    yield _trial("paid attempts", (_paid(1, 0.25), _paid(2, 0.25)), 0.5, 1.0, True, FITS)
    yield _trial("paid attempts", (_paid(1, 0.25), _paid(2, 0.5)), 0.5, 1.0, False, OVER)
    yield _trial("a refused opening", (_refused(1), _paid(2, 0.5)), 0.5, 1.0, True, FREE)
    yield _trial("a cut stream", (_cut(1), _paid(2, 0.25)), 0.5, 1.0, False, UNKNOWN)
    yield _trial("a cut stream", (_cut(1),), 0.5, 1.0, True, FITS)
    yield _trial("another process", (_running(1), _running(2)), 0.5, 1.0, False, RUNNING)
    yield _trial("another process", (_running(1), _refused(2)), 0.5, 1.0, True, FREE)
    direct = (_row(1, 0.5, "released", "direct"), _row(2, None, None, "direct"))
    yield _trial("another route", direct, 0.5, 1.25, False, ELSEWHERE)
    yield _trial("another route", direct, 0.25, 1.25, True, FITS)
    yield _trial("dearer than reserved", (_paid(1, 0.75),), 0.5, 1.0, False, DEARER)
    yield _trial("dearer than reserved", (_paid(1, 0.75),), 0.25, 1.0, True, FITS)
    every = (_paid(1, 0.25), _cut(2), _running(3), _refused(4))
    yield _trial("all kinds", every, 0.5, 1.5, False, UNKNOWN)
    yield _trial("all kinds", every, 0.5, 1.75, True, FITS)


HINTS = (
    (
        "A row has `reserved`, which is always known, and `cost`, which is None where nobody "
        "could tell. Ask for None, not for falsehood: a cost of 0 is known. All amounts are "
        "Decimal: a sum of them begins with 0, not with 0.0."
    ),
    "Each row counts `row.reserved if row.cost is None else row.cost`.",
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="fits(rows, amount, limit)",
        trials=_trials,
        hint_texts=HINTS,
    )

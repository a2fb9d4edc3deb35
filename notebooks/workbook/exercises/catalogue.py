"""The exercises by number: `exercise("03").check(your_function)` says what it did and where.

Each has trials on good and hostile streams, hints that unfold, and a solution in
`notebooks/solutions`. A check never marks a right answer wrong for its style, and never raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple, cast

from agentlib.tables import Table, table
from workbook.grading.grader import Exercise
from workbook.progress_file import read


class Row(NamedTuple):
    """An exercise in the list: the module that makes it, and its title."""

    module: str
    title: str


# By the number of the chapter, which stands nowhere else: a chapter may move. A module is loaded
# when its exercise is asked for, so that one chapter does not pay for the trials of all.
ROWS = {
    "01": Row("bounded_run", "A loop that ends"),
    "02": Row("fragments", "Whose fragment is it?"),
    "03": Row("may_run", "Which calls may run?"),
    "04": Row("no_doubles", "The same call twice"),
    "05": Row("what_to_retry", "What to retry, and when"),
    "06": Row("own_fault", "A fault of your own"),
    "07": Row("tally_adapter", "An adapter for a fifth dialect"),
    "08": Row("next_input", "The input of the next request"),
    "09": Row("settle_calls", "One result for each call"),
    "10": Row("may_claim", "What may be claimed"),
    "11": Row("run_once", "At most once"),
    "12": Row("one_decision", "What the next request is"),
    "13": Row("may_spend", "What may still be spent"),
    "14": Row("redact", "Keep a secret out of a recording"),
    "15": Row("name_the_server", "Name the server"),
    "16": Row("attacked", "Decide what runs"),
}


def exercise(number: str) -> Exercise:
    """Return the exercise of this number, the chapter's, for example "03".

    Raises ValueError, with those there are, where there is none.
    """
    if number not in ROWS:
        raise ValueError(f"no exercise {number!r}; there are: {', '.join(ROWS)}")
    row = ROWS[number]
    module = import_module(f"workbook.exercises.{row.module}")
    return cast("Exercise", module.exercise(number, row.title))


@dataclass(frozen=True, repr=False)
class Progress:
    """What the reader has done, chapter by chapter.

    `passed`, `tried` and `predicted` are numbers of chapters; `titles` are the chapters to show.
    """

    passed: frozenset[str]
    tried: frozenset[str]
    predicted: frozenset[str]
    titles: dict[str, str]

    @property
    def table(self) -> Table:
        """One row a chapter: whether its prediction was made, and how its exercise stands."""
        numbers = sorted({*self.titles, *self.passed, *self.tried, *self.predicted})
        rows = [
            (number, self.titles.get(number, ""), self._predicted(number), self._exercise(number))
            for number in numbers
        ]
        return table("chapter, exercise, prediction, standing", rows)

    def _predicted(self, number: str) -> str:
        return "made" if number in self.predicted else "open"

    def _exercise(self, number: str) -> str:
        if number in self.passed:
            return "✓ passed"
        return "tried, not yet passed" if number in self.tried else "open"

    def __repr__(self) -> str:
        return f"{self._summary()}\n{self.table!r}"

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{self.table._repr_html_()}"

    def _summary(self) -> str:
        return f"{len(self.passed)} of {len(self.titles)} exercises passed"


def progress() -> Progress:
    """Return what was kept so far; nothing where there is no file, or none that can be used."""
    return Progress(**read(), titles={number: row.title for number, row in ROWS.items()})

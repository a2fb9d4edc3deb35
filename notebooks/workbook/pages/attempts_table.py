"""The requests of one decision side by side: what was told, what came, what it cost.

One column for each request, in order. Everything the server or the model said is escaped, and the
text form is complete.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from agentlib.decisions.failures import DecisionAttempt
from agentlib.decisions.model import DecisionUsage
from agentlib.jsonvalues import printable
from agentlib.stepper.run_words import seconds
from agentlib.tables import Cell, Table, scrollable
from agentlib.wording import plural

COLUMN_CHARACTERS = 30
# Each class is named, and marked for who sees no colour.
MARKS = {"decision": "✓", "parse": "✗", "transport": "↯", "empty": "∅", "capability": "≠"}
# A request that is sent again unchanged tells what the one before it told.
SAME = "the same"
_CELL = "text-align:left;vertical-align:top;padding:2px 10px;max-width:24em;overflow-wrap:anywhere"
_CODE = "font-family:var(--jp-code-font-family,monospace);white-space:pre-wrap"


@dataclass(frozen=True, repr=False)
class Deciding:
    """The requests of one decision that has ended."""

    attempts: tuple[DecisionAttempt, ...]

    @property
    def title(self) -> str:
        """How many requests there were, what came of them, and what was billed in all."""
        if not self.attempts:
            return "no request was sent"
        last = self.attempts[-1]
        end = f"decided: {last.reason}" if last.result == "decision" else "no decision"
        billed = told_of(DecisionUsage.total(each.usage for each in self.attempts))
        return f"{plural(len(self.attempts), 'request')} · {printable(end)} · billed {billed}"

    @property
    def text(self) -> str:
        """The whole view as text."""
        return "\n".join(line.rstrip() for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.title
        names = ["", *ROWS]
        width = max(map(len, names))
        heads = [f"request {each.number}" for each in self.attempts]
        for name, cells in [("", heads), *self._rows()]:
            wrapped = [list(_wrapped(cell)) for cell in cells]
            for place in range(max((len(lines) for lines in wrapped), default=0)):
                parts = (lines[place] if place < len(lines) else "" for lines in wrapped)
                label = "" if place else name
                columns = "  ".join(part.ljust(COLUMN_CHARACTERS) for part in parts)
                yield f"{label:{width}}  {columns}"

    def _rows(self) -> Iterator[tuple[str, list[str]]]:
        for name, cell in ROWS.items():
            cells = [cell(attempt) for attempt in self.attempts]
            if name == "told":
                pairs = zip(["", *cells], cells, strict=False)
                cells = [SAME if text and text == before else text for before, text in pairs]
            if any(cells):
                yield name, cells

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        table = Table(
            ("", *(f"request {attempt.number}" for attempt in self.attempts)),
            tuple((name, *_styled(name, cells)) for name, cells in self._rows()),
            title=self.title,
            style=_CELL,
            named_rows=True,
        )
        return scrollable(f"Requests of one decision. {self.title}", table._repr_html_())


def _styled(name: str, cells: Iterable[str]) -> Iterator[Cell]:
    return (Cell(cell, _CODE if name in _VERBATIM else "") for cell in cells)


def deciding(attempts: Iterable[DecisionAttempt]) -> Deciding:
    """Return the view of a client's `attempts`, or of those that a failure carries."""
    return Deciding(tuple(attempts))


def told_of(usage: DecisionUsage | None) -> str:
    """Return what was billed in a few words; what nobody reported is unknown, not zero."""
    if usage is None:
        return "nothing"
    known = [(usage.input_tokens, "in"), (usage.output_tokens, "out")]
    counts = ", ".join(f"{count:,} {what}" for count, what in known if count is not None)
    if not counts:
        return "unknown"
    if not usage.unreported:
        return counts
    return f"at least {counts} ({usage.unreported} of {usage.requests} unknown)"


def _sent(attempt: DecisionAttempt) -> str:
    return "streamed" if attempt.streamed else "not streamed"


def _came(attempt: DecisionAttempt) -> str:
    return f"{MARKS[attempt.result]} {attempt.result}"


def _then(attempt: DecisionAttempt) -> str:
    if attempt.wait is None:
        return "the end"
    return f"waits {seconds(attempt.wait)}" if attempt.wait else "at once"


ROWS: dict[str, Callable[[DecisionAttempt], str]] = {
    "asked": _sent,
    "told": lambda attempt: printable(attempt.told),
    "came": _came,
    "it says": lambda attempt: printable(attempt.reason),
    "it began": lambda attempt: printable(attempt.excerpt),
    "billed": lambda attempt: told_of(attempt.usage),
    "then": _then,
}
_VERBATIM = frozenset({"told", "it began"})


def _wrapped(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from textwrap.wrap(line, COLUMN_CHARACTERS, break_on_hyphens=False) or [""]

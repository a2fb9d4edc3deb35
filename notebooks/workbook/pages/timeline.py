"""The timeline of a run: turns, tools, waits, repairs and what is left of each budget, drawn.

The picture is made of characters, one for each kind of time, so that it says without colour, on
GitHub and in a plain terminal what it says in a notebook. Text of a stream is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby

from agentlib.runtime.limits import RunLimits
from agentlib.runtime.outcomes import Outcome
from agentlib.stepper.run_words import outcome_words, seconds
from agentlib.tables import Cell, Table, scrollable
from agentlib.wording import plural
from workbook.pages.run_trace import Kind, Row, RunRecorder, Segment

BAR_CHARACTERS = 40
# A person takes hours where a run takes seconds: the wait is drawn no longer than this part.
MOST_OF_APPROVAL = 0.15

GLYPHS: dict[Kind, str] = {
    "opening": "░",
    "backoff": "·",
    "first event": "─",
    "streaming": "▓",
    "closing": "▏",
    "model": "▓",
    "queue": "┄",
    "tool": "█",
    "approval": "?",
    "moment": "◆",
}
# JupyterLab's own colours, which follow its theme; the glyphs say the same.
_COLOURS: dict[Kind, str] = {
    "opening": "var(--jp-info-color1, #0277bd)",
    "backoff": "var(--jp-warn-color1, #b26a00)",
    "first event": "var(--jp-info-color1, #0277bd)",
    "streaming": "var(--jp-brand-color1, #1976d2)",
    "model": "var(--jp-brand-color1, #1976d2)",
    "queue": "var(--jp-warn-color1, #b26a00)",
    "tool": "var(--jp-success-color1, #2e7d32)",
    "approval": "var(--jp-warn-color1, #b26a00)",
}
_CODE = "font-family:var(--jp-code-font-family,monospace);white-space:pre;line-height:1.2"
_CELL = "text-align:left;white-space:nowrap;padding:1px 8px"


@dataclass(frozen=True, repr=False)
class Timeline:
    """A run that has ended, drawn over time; `rows` are its lines, times in seconds."""

    title: str
    rows: tuple[Row, ...]
    times: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """The whole timeline as text."""
        return "\n".join(line.rstrip() for line in self._lines())

    def _lines(self) -> Iterator[str]:
        scale = _Scale(self.rows)
        budgets = _budgets(self.rows)
        names = [_name(row) for row in self.rows]
        width = max(map(len, names))
        columns = [max(len(b), *(len(_left(row, b)) for row in self.rows)) for b in budgets]
        left = " ".join(b.rjust(size) for b, size in zip(budgets, columns, strict=True))
        yield self.title
        yield f"{'':{width}}  {scale.axis}  {left}  (left after it)"
        for name, row in zip(names, self.rows, strict=True):
            numbers = (_left(row, b) for b in budgets)
            left = " ".join(n.rjust(size) for n, size in zip(numbers, columns, strict=True))
            yield f"{name:{width}}  {scale.drawn(row)}  {left}  {row.detail}"
        yield self._legend()
        yield self._spent()

    def _legend(self) -> str:
        used = {segment.kind for row in self.rows for segment in row.segments}
        return "   ".join(f"{glyph} {kind}" for kind, glyph in GLYPHS.items() if kind in used)

    def _spent(self) -> str:
        spent = ", ".join(f"{name} {seconds(value)}" for name, value in self.times if value > 0)
        return f"where the time went: {spent or 'nowhere, the clock stood still'}"

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        scale, budgets = _Scale(self.rows), _budgets(self.rows)
        table = Table(
            (
                "step",
                Cell(scale.axis, _CODE),
                *(f"{name} left" for name in budgets),
                "what came of it",
            ),
            tuple(_cells(row, scale, budgets) for row in self.rows),
            title=self.title,
            style=_CELL,
            named_rows=True,
        )
        return scrollable(
            f"Timeline of a run. {self.title}",
            table._repr_html_(),
            f'<div style="{_CODE}">{escape(self._legend())}</div>',
            f"<div>{escape(self._spent())}</div>",
        )


def _cells(row: Row, scale: _Scale, budgets: list[str]) -> tuple[str | Cell, ...]:
    return (
        Cell(row.what, "padding-left:24px;font-weight:normal" if row.inner else ""),
        Cell(scale.drawn(row), _CODE, "".join(scale.coloured(row))),
        *(Cell(_left(row, name), "text-align:right") for name in budgets),
        row.detail,
    )


class _Scale:
    """Maps seconds to columns; a wait for a person is drawn shorter than it was."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        segments = [segment for row in rows for segment in row.segments]
        self._from = min(segment.start for segment in segments)
        self._to = max(segment.end for segment in segments)
        waits = [(s.start, s.end) for s in segments if s.kind == "approval"]
        rest = self._to - self._from - sum(end - start for start, end in waits)
        most = MOST_OF_APPROVAL * rest if rest > 0 else float("inf")
        self._cuts = [(start, end, min(end - start, most)) for start, end in waits]
        self._length = self._drawn_seconds(self._to)

    @property
    def axis(self) -> str:
        end = seconds(self._to - self._from)
        return f"0 s{end:>{BAR_CHARACTERS - 3}}"

    def drawn(self, row: Row) -> str:
        return "".join(" " if kind is None else GLYPHS[kind] for kind in self._kinds(row))

    def coloured(self, row: Row) -> Iterator[str]:
        for kind, columns in groupby(self._kinds(row)):
            count = len(list(columns))
            if kind is None:
                yield " " * count
            else:
                colour = _COLOURS.get(kind, "inherit")
                yield f'<span style="color:{colour}">{GLYPHS[kind] * count}</span>'

    def _kinds(self, row: Row) -> list[Kind | None]:
        kinds: list[Kind | None] = [None] * BAR_CHARACTERS
        # The shortest last: each has one column at least, which no longer one covers.
        for segment in sorted(row.segments, key=lambda each: each.start - each.end):
            first, last = self._columns(segment)
            kinds[first:last] = [segment.kind] * (last - first)
        return kinds

    def _columns(self, segment: Segment) -> tuple[int, int]:
        first = min(self._column(segment.start), BAR_CHARACTERS - 1)
        return first, max(self._column(segment.end), first + 1)

    def _column(self, at: float) -> int:
        if not self._length:
            return 0
        return round(self._drawn_seconds(at) / self._length * BAR_CHARACTERS)

    def _drawn_seconds(self, at: float) -> float:
        drawn = at - self._from
        for start, end, length in self._cuts:
            inside = min(max(at, start), end) - start
            drawn -= inside - (inside / (end - start) * length if end > start else 0.0)
        return drawn


def timeline(recorder: RunRecorder, outcome: Outcome, limits: RunLimits) -> Timeline:
    """Return the timeline of a run that has just ended, from what its recorder was told."""
    rows = recorder.rows(outcome, limits)
    turns = plural(outcome.account.turns, "turn")
    repairs = plural(len(outcome.account.repairs), "repair")
    return Timeline(
        f"{outcome_words(outcome)} · {turns}, {repairs}", rows, tuple(outcome.times.items())
    )


def _name(row: Row) -> str:
    return f"  {row.what}" if row.inner else row.what


def _budgets(rows: tuple[Row, ...]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name, _ in row.left))


def _left(row: Row, budget: str) -> str:
    return dict(row.left).get(budget, "")

"""What a benchmark measured: one figure, with its unit and what it aims at, as a row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WIDTHS = (44, 16, 24)
# A difference that a busy machine makes by itself.
NOISE = 0.10


class Unmeasured(Exception):
    """Raised by a benchmark that cannot run here; its text says what is missing."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured. Of a figure with an `aim`, `most` says on which side it lies.

    `name` is stable: figures of two runs are compared by it. `of` says what was measured besides.
    """

    name: str
    value: float
    unit: str
    aim: float | None = None
    most: bool = True
    of: str = ""

    @property
    def verdict(self) -> Literal["met", "missed", ""]:
        """Whether the aim was met; nothing where there is none."""
        if self.aim is None:
            return ""
        return (
            "met" if (self.value <= self.aim) is self.most or self.value == self.aim else "missed"
        )

    @property
    def goal(self) -> str:
        """The aim in words."""
        if self.aim is None:
            return ""
        return f"{'≤' if self.most else '≥'} {self.aim:g} {self.unit}, {self.verdict}"


def row(figure: Figure, last: float | None) -> str:
    """Return one line of the table: the figure, its aim, and the change since the last run."""
    value = f"{figure.value:,.2f} {figure.unit}"
    cells = (figure.name, value.rjust(WIDTHS[1] - 2), figure.goal, change(figure.value, last))
    widths = (*WIDTHS, 0)
    line = "".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
    return f"{line}\n    {figure.of}" if figure.of else line


def change(value: float, last: float | None) -> str:
    """Say how a value compares with the last one."""
    if last is None:
        return "first run"
    if not last or abs(value / last - 1) <= NOISE:
        return f"was {last:,.2f}"
    return f"was {last:,.2f}, {value / last - 1:+.0%}"

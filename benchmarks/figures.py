"""What a benchmark measured: one figure, with its unit and what it aims at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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

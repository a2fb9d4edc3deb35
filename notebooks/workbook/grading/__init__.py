"""How the reader's own code is tried, and what is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from workbook.grading.grader import Exercise as Exercise
    from workbook.grading.verdict import Verdict as Verdict

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".grader": ("Exercise",),
        ".verdict": ("Verdict",),
    },
)

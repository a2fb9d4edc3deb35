"""The exercises of the book, a module each: the trials, the judge, the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from workbook.exercises.no_doubles import evidence_of as evidence_of
    from workbook.exercises.tally_adapter import SmallTranslator as SmallTranslator

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".no_doubles": ("evidence_of",),
        ".tally_adapter": ("SmallTranslator",),
    },
)

"""The questions of the *predict* beats, and their form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from workbook.quiz.predictions import Prediction as Prediction
    from workbook.quiz.questions import QUESTIONS as QUESTIONS

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".predictions": ("Prediction",),
        ".questions": ("QUESTIONS",),
    },
)

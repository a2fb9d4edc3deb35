"""The book's own code: what its chapters show, ask and judge. It imports from `agentlib` alone.

Each name is loaded from its module at first use, so that a chapter pays for what it shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.laboratory import capture as capture
    from agentlib.laboratory import scenario as scenario
    from agentlib.laboratory import tools as tools
    from agentlib.stepper import Replay as Replay
    from agentlib.stepper import Stepper as Stepper
    from agentlib.tables import table as table
    from workbook.exercises.catalogue import exercise as exercise
    from workbook.exercises.catalogue import progress as progress
    from workbook.pages.page import as_json as as_json
    from workbook.pages.page import events as events
    from workbook.pages.page import source as source
    from workbook.pages.page import transcript as transcript
    from workbook.quiz.predictions import predict as predict

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        "agentlib.laboratory": ("capture", "scenario", "tools"),
        "agentlib.stepper": ("Replay", "Stepper"),
        "agentlib.tables": ("table",),
        ".exercises.catalogue": ("exercise", "progress"),
        ".quiz.predictions": ("predict",),
        ".pages.page": ("as_json", "events", "source", "transcript"),
    },
)

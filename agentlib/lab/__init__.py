"""What a learner sees and touches: traces, replays, the stepper, scenarios and exercises.

The names that a chapter uses can all be imported from here. Each is loaded from its module at
first use, so that a command line that only reads a capture loads no widget.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentlib.lab.comparison import Gated, compare
    from agentlib.lab.exercises import exercise
    from agentlib.lab.hasty import ActsAtItemDone, ActsWhenItParses, FillsTheCut, Hasty
    from agentlib.lab.kept import progress
    from agentlib.lab.page import as_json, events, source, table, transcript
    from agentlib.lab.predictions import predict
    from agentlib.lab.replay import Replay
    from agentlib.lab.scenarios import capture, scenario, tools
    from agentlib.lab.stepper import Stepper

__all__ = [
    "ActsAtItemDone",
    "ActsWhenItParses",
    "FillsTheCut",
    "Gated",
    "Hasty",
    "Replay",
    "Stepper",
    "as_json",
    "capture",
    "compare",
    "events",
    "exercise",
    "predict",
    "progress",
    "scenario",
    "source",
    "table",
    "tools",
    "transcript",
]

_HOMES = {
    **dict.fromkeys(("ActsAtItemDone", "ActsWhenItParses", "FillsTheCut", "Hasty"), "hasty"),
    "Gated": "comparison",
    "Replay": "replay",
    "Stepper": "stepper",
    "capture": "scenarios",
    "compare": "comparison",
    "exercise": "exercises",
    "predict": "predictions",
    "progress": "kept",
    "scenario": "scenarios",
    "tools": "scenarios",
    **dict.fromkeys(("as_json", "events", "source", "table", "transcript"), "page"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

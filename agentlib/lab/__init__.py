"""What a learner sees and touches: traces, replays, the stepper, scenarios and exercises.

The names that a chapter uses can all be imported from here. Each is loaded from its module at
first use, so that a command line that only reads a capture loads no widget.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentlib.lab.exercises import exercise
    from agentlib.lab.page import as_json, events, source, table, transcript
    from agentlib.lab.replay import Replay
    from agentlib.lab.scenarios import capture, scenario, tools
    from agentlib.lab.stepper import Stepper

__all__ = [
    "Replay",
    "Stepper",
    "as_json",
    "capture",
    "events",
    "exercise",
    "scenario",
    "source",
    "table",
    "tools",
    "transcript",
]

_HOMES = {
    "Replay": "replay",
    "Stepper": "stepper",
    "capture": "scenarios",
    "exercise": "exercises",
    "scenario": "scenarios",
    "tools": "scenarios",
    **dict.fromkeys(("as_json", "events", "source", "table", "transcript"), "page"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

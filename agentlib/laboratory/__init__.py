"""The scenarios by name, the failure laboratory that plays them, and the live run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.fixtures import capture as capture
    from agentlib.fixtures import scenario as scenario
    from agentlib.fixtures import tools as tools
    from agentlib.laboratory.scenarios import play as play
    from agentlib.laboratory.scenarios import run_names as run_names

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        "agentlib.fixtures": ("capture", "scenario", "tools"),
        ".scenarios": ("play", "run_names"),
    },
)

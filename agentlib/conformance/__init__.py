"""The contract that every adapter must keep, tried on hostile streams without number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.conformance.contract import Trials as Trials
    from agentlib.conformance.dialects.registry import DIALECTS as DIALECTS
    from agentlib.conformance.dialects.tally import TALLY_REFERENCE as TALLY_REFERENCE
    from agentlib.conformance.script import TEXT_AND_CALL as TEXT_AND_CALL
    from agentlib.conformance.trials import maker as maker
    from agentlib.conformance.trials import own as own

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".contract": ("Trials",),
        ".script": ("TEXT_AND_CALL",),
        ".trials": ("maker", "own"),
        ".dialects.registry": ("DIALECTS",),
        ".dialects.tally": ("TALLY_REFERENCE",),
    },
)

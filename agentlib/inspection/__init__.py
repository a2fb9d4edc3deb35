"""Inspect recorded responses: the verdict on each, and what kind of server sent it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.inspection.diagnoses import DIAGNOSES as DIAGNOSES
    from agentlib.inspection.ends import cut_stream as cut_stream
    from agentlib.inspection.report import run_inspect as run_inspect

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".ends": ("cut_stream",),
        ".diagnoses": ("DIAGNOSES",),
        ".report": ("run_inspect",),
    },
)

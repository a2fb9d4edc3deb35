"""A local server that misbehaves on purpose: real sockets, scripted faults, exact to the byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.faultserver.replies import Reply as Reply
    from agentlib.faultserver.server import LoopbackServer as LoopbackServer

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".server": ("LoopbackServer",),
        ".replies": ("Reply",),
    },
)

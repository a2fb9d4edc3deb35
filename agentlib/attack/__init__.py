"""Test an agent from outside: unsound streams from a local provider, and what its tool did.

    agentlib attack --tool edit -- python my_agent.py

The agent may be written in any language, with any framework: it is started once for each
scenario, and seen only by what it asks and by what its tool notes (`agentlib.probe`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.attack.api import attack as attack
    from agentlib.attack.provider import HostileProvider as HostileProvider
    from agentlib.attack.results import Report as Report
    from agentlib.attack.scenarios import HOSTILE as HOSTILE
    from agentlib.attack.small_agent import TOOLS as TOOLS
    from agentlib.attack.small_agent import SmallAgent as SmallAgent
    from agentlib.attack.small_agent import stream_of as stream_of

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".api": ("attack",),
        ".provider": ("HostileProvider",),
        ".results": ("Report",),
        ".scenarios": ("HOSTILE",),
        ".small_agent": ("SmallAgent", "TOOLS", "stream_of"),
    },
)

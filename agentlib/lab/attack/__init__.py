"""Test an agent from outside: unsound streams from a local provider, and what its tool did.

    agentlib attack --tool edit -- python my_agent.py

The agent may be written in any language, with any framework: it is started once for each
scenario, and seen only by what it asks and by what its tool notes (`agentlib.probe`).
"""

from typing import Literal, TypeAlias

Api: TypeAlias = Literal["responses", "chat", "messages"]
APIS: tuple[Api, ...] = ("responses", "chat", "messages")

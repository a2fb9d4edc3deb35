"""The dialects that the contract kit speaks, one row each: how an API tells a story.

Adding a provider is one module here, beside its module in `agentlib.providers`.
"""

from __future__ import annotations

from agentlib.lab.dialects.chat import Chat
from agentlib.lab.dialects.common import Dialect, Framing, Said, Telling
from agentlib.lab.dialects.messages import Messages
from agentlib.lab.dialects.responses import Responses
from agentlib.lab.dialects.tally import Tally

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (Responses(), Chat(), Messages(), Tally())
}

__all__ = ["DIALECTS", "Dialect", "Framing", "Said", "Telling"]

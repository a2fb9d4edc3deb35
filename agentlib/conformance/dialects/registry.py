"""The dialects that the contract kit speaks, one row each: how an API encodes a script.

Adding a provider is one module here, beside its module in `agentlib.providers`.
"""

from __future__ import annotations

from agentlib.conformance.dialects.chat import Chat
from agentlib.conformance.dialects.common import Dialect
from agentlib.conformance.dialects.gemini import Gemini
from agentlib.conformance.dialects.messages import Messages
from agentlib.conformance.dialects.responses import Responses
from agentlib.conformance.dialects.tally import Tally

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (Responses(), Chat(), Messages(), Gemini(), Tally())
}

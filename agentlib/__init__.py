"""agentlib: a complete, validated response can request an action; an incomplete one cannot.

One straight way from bytes to action: `agentlib.transport` turns bytes into native events,
`agentlib.providers` turns those into a small vocabulary, `agentlib.assembly` keeps the pending
buffers, and `agentlib.gate` releases a decision or nothing. `agentlib.lab` is what a notebook
shows of it.
"""

from agentlib.assembly import Assembly, Decision, Limits
from agentlib.conversation import (
    Catalog,
    Message,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    assistant,
    system,
    user,
)
from agentlib.errors import AgentlibError, OpenFailure, ResponseFailure
from agentlib.providers.reading import ResponseReader

__version__ = "0.1.0"

__all__ = [
    "AgentlibError",
    "Assembly",
    "Catalog",
    "Decision",
    "Limits",
    "Message",
    "OpenFailure",
    "ResponseFailure",
    "ResponseReader",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Usage",
    "assistant",
    "system",
    "user",
]

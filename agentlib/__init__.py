"""agentlib: a complete, validated response can request an action; an incomplete one cannot.

One straight way from bytes to action: `agentlib.transport` turns bytes into native events,
`agentlib.providers` turns those into a small vocabulary, `agentlib.assembly` keeps the pending
buffers, and `agentlib.gate` releases a decision or nothing. `agentlib.lab` is what a notebook
shows of it.

Each name is loaded from its module at first use, so that importing the package costs next to
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_HOMES = {
    **dict.fromkeys(("Assembly", "Decision", "Limits"), "assembly"),
    **dict.fromkeys(("Catalog", "Message", "ToolCall", "ToolResult", "ToolSpec"), "conversation"),
    **dict.fromkeys(("Usage", "assistant", "system", "user"), "conversation"),
    **dict.fromkeys(("AgentlibError", "OpenFailure", "ResponseFailure"), "errors"),
    "ResponseReader": "providers.reading",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

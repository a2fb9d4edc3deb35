"""One validated decision per turn: the parse boundary, and clients that cross it.

The names can all be imported from here. Each is loaded from its module at first use, since the
models are pydantic's, which is slow to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentlib.decisions.attempts import DecisionAttempt
    from agentlib.decisions.client import ModelClient
    from agentlib.decisions.context import DecisionContext, DecisionTool, Observation
    from agentlib.decisions.model import (
        AskUser,
        DecisionRetryNote,
        DecisionUsage,
        FinalAnswer,
        ModelDecision,
        ToolCall,
    )
    from agentlib.decisions.openai_client import ClientConfig, OpenAIModelClient
    from agentlib.decisions.parsing import parse_decision
    from agentlib.decisions.prompt import build_messages, build_tool_schemas
    from agentlib.decisions.scripted import ScriptedModelClient

__all__ = [
    "AskUser",
    "ClientConfig",
    "DecisionAttempt",
    "DecisionContext",
    "DecisionRetryNote",
    "DecisionTool",
    "DecisionUsage",
    "FinalAnswer",
    "ModelClient",
    "ModelDecision",
    "Observation",
    "OpenAIModelClient",
    "ScriptedModelClient",
    "ToolCall",
    "build_messages",
    "build_tool_schemas",
    "parse_decision",
]

_HOMES = {
    "DecisionAttempt": "attempts",
    "ModelClient": "client",
    "ScriptedModelClient": "scripted",
    "parse_decision": "parsing",
    **dict.fromkeys(("ClientConfig", "OpenAIModelClient"), "openai_client"),
    **dict.fromkeys(("DecisionContext", "DecisionTool", "Observation"), "context"),
    **dict.fromkeys(("build_messages", "build_tool_schemas"), "prompt"),
    **dict.fromkeys(
        (
            "AskUser",
            "DecisionRetryNote",
            "DecisionUsage",
            "FinalAnswer",
            "ModelDecision",
            "ToolCall",
        ),
        "model",
    ),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

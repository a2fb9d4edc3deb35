"""One validated decision per turn: the parse boundary, and clients that cross it.

The names can all be imported from here. Each is loaded from its module at first use, since the
models are pydantic's, which is slow to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.decisions.attempts import Attempts as Attempts
    from agentlib.decisions.client import ModelClient as ModelClient
    from agentlib.decisions.context import DecisionContext as DecisionContext
    from agentlib.decisions.context import DecisionTool as DecisionTool
    from agentlib.decisions.context import Observation as Observation
    from agentlib.decisions.failures import DecisionAttempt as DecisionAttempt
    from agentlib.decisions.model import AskUser as AskUser
    from agentlib.decisions.model import DecisionRetryNote as DecisionRetryNote
    from agentlib.decisions.model import DecisionUsage as DecisionUsage
    from agentlib.decisions.model import FinalAnswer as FinalAnswer
    from agentlib.decisions.model import ModelDecision as ModelDecision
    from agentlib.decisions.model import ToolCall as ToolCall
    from agentlib.decisions.openai_client import ClientConfig as ClientConfig
    from agentlib.decisions.openai_client import OpenAIModelClient as OpenAIModelClient
    from agentlib.decisions.parsing import parse_decision as parse_decision
    from agentlib.decisions.prompt import build_messages as build_messages
    from agentlib.decisions.prompt import build_tool_schemas as build_tool_schemas
    from agentlib.decisions.reading import reply_failure as reply_failure
    from agentlib.decisions.runner import DecisionRun as DecisionRun
    from agentlib.decisions.runner import DecisionRunner as DecisionRunner
    from agentlib.decisions.scripted import ScriptedModelClient as ScriptedModelClient

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".attempts": ("Attempts",),
        ".failures": ("DecisionAttempt",),
        ".client": ("ModelClient",),
        ".context": ("DecisionContext", "DecisionTool", "Observation"),
        ".model": (
            "AskUser",
            "DecisionRetryNote",
            "DecisionUsage",
            "FinalAnswer",
            "ModelDecision",
            "ToolCall",
        ),
        ".openai_client": ("ClientConfig", "OpenAIModelClient"),
        ".parsing": ("parse_decision",),
        ".prompt": ("build_messages", "build_tool_schemas"),
        ".reading": ("reply_failure",),
        ".runner": ("DecisionRun", "DecisionRunner"),
        ".scripted": ("ScriptedModelClient",),
    },
)

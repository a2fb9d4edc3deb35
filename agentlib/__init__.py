"""agentlib: a complete, validated response can request an action; an incomplete one cannot.

One straight way from bytes to action: `agentlib.sse` turns bytes into native events,
`agentlib.providers` turns those into a small vocabulary, `agentlib.assembly` keeps the pending
buffers, and `agentlib.gate` releases a decision or nothing; `agentlib.reader` is all of it for one
response.

Each name is loaded from its module at first use, so that importing the package costs next to
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.assembly import Assembly as Assembly
    from agentlib.assembly import Decision as Decision
    from agentlib.assembly import Limits as Limits
    from agentlib.conversation import Catalog as Catalog
    from agentlib.conversation import Message as Message
    from agentlib.conversation import ToolCall as ToolCall
    from agentlib.conversation import ToolResult as ToolResult
    from agentlib.conversation import ToolSpec as ToolSpec
    from agentlib.conversation import Usage as Usage
    from agentlib.conversation import assistant as assistant
    from agentlib.conversation import check_history as check_history
    from agentlib.conversation import system as system
    from agentlib.conversation import user as user
    from agentlib.decisions.failures import DecisionFailure as DecisionFailure
    from agentlib.decisions.failures import DecisionParseError as DecisionParseError
    from agentlib.decisions.failures import EmptyResponseError as EmptyResponseError
    from agentlib.decisions.failures import StreamingUnsupportedError as StreamingUnsupportedError
    from agentlib.decisions.failures import TransportError as TransportError
    from agentlib.errors import AgentlibError as AgentlibError
    from agentlib.errors import EncodingError as EncodingError
    from agentlib.errors import OpenFailure as OpenFailure
    from agentlib.failures import GateRejected as GateRejected
    from agentlib.failures import LimitExceeded as LimitExceeded
    from agentlib.failures import ProtocolViolation as ProtocolViolation
    from agentlib.failures import ProviderStopped as ProviderStopped
    from agentlib.failures import ResponseFailure as ResponseFailure
    from agentlib.failures import StreamCut as StreamCut
    from agentlib.gate import CHECKS as CHECKS
    from agentlib.gate import Check as Check
    from agentlib.model import StreamingModel as StreamingModel
    from agentlib.openai_transport import OpenAITransport as OpenAITransport
    from agentlib.openai_transport import SDKStream as SDKStream
    from agentlib.reader import ResponseReader as ResponseReader
    from agentlib.retry import CONSERVATIVE as CONSERVATIVE
    from agentlib.retry import PATIENT as PATIENT
    from agentlib.retry import RetryPolicy as RetryPolicy
    from agentlib.retry import open_with_retry as open_with_retry
    from agentlib.version import __version__ as __version__
    from agentlib.vocabulary import Completed as Completed
    from agentlib.vocabulary import Opened as Opened
    from agentlib.vocabulary import Stopped as Stopped
    from agentlib.vocabulary import TextDelta as TextDelta
    from agentlib.vocabulary import ToolArgsDelta as ToolArgsDelta
    from agentlib.vocabulary import ToolStart as ToolStart

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".assembly": ("Assembly", "Decision", "Limits"),
        ".conversation": (
            "Catalog",
            "Message",
            "ToolCall",
            "ToolResult",
            "ToolSpec",
            "Usage",
            "assistant",
            "system",
            "user",
            "check_history",
        ),
        ".decisions.failures": (
            "DecisionFailure",
            "DecisionParseError",
            "EmptyResponseError",
            "StreamingUnsupportedError",
            "TransportError",
        ),
        ".errors": ("AgentlibError", "EncodingError", "OpenFailure"),
        ".failures": (
            "GateRejected",
            "LimitExceeded",
            "ProtocolViolation",
            "ProviderStopped",
            "ResponseFailure",
            "StreamCut",
        ),
        ".gate": ("CHECKS", "Check"),
        ".model": ("StreamingModel",),
        ".openai_transport": ("OpenAITransport", "SDKStream"),
        ".reader": ("ResponseReader",),
        ".retry": ("CONSERVATIVE", "PATIENT", "RetryPolicy", "open_with_retry"),
        ".version": ("__version__",),
        ".vocabulary": (
            "Completed",
            "Opened",
            "Stopped",
            "TextDelta",
            "ToolArgsDelta",
            "ToolStart",
        ),
    },
)

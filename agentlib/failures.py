"""How a response ends without a decision: a stream was acquired, and nothing of it is executed.

None of these is ever retried: a second response could do the first one's work again. What may be
retried is an opening, an `agentlib.errors.OpenFailure`.
"""

from __future__ import annotations

from agentlib.conversation import RejectedCall, Usage
from agentlib.errors import AgentlibError


class ResponseFailure(AgentlibError):
    """Raised when a stream was acquired and gave no decision.

    `reason` is one sentence: what was expected and what was seen. `check` names the gate's check
    that failed. `event` is the number of the event (from 1) at which it failed, `usage` what the
    provider said was billed, each None where unknown. `cut_by_length` is whether the output limit
    ended it, and `calls` are the calls that it held, where they can be told to the model.

    `draft` is the text that had come, perhaps to its end and perhaps not. It is no answer: nothing
    confirmed it, and it goes into no history. It is for whoever looks at what was lost.
    """

    def __init__(
        self,
        reason: str,
        *,
        check: str,
        event: int | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.check = check
        self.event = event
        self.usage = usage
        self.cut_by_length = False
        self.calls: tuple[RejectedCall, ...] = ()
        self.draft = ""

    def __str__(self) -> str:
        where = f"event {self.event}: " if self.event else ""
        return f"{where}{self.reason} [{self.check}]"


class StreamCut(ResponseFailure):
    """Raised when the stream ends before its terminal event."""


class ProviderStopped(ResponseFailure):
    """Raised when the provider says that the response failed, is incomplete or met an error."""


class ProtocolViolation(ResponseFailure):
    """Raised when an event breaks the rules of its API."""


class LimitExceeded(ResponseFailure):
    """Raised when the response passes one of its limits."""


class IdleTimeout(ResponseFailure):
    """Raised when nothing arrives for longer than a timer allows."""


class GateRejected(ResponseFailure):
    """Raised when the response completed and a check of the gate failed."""


class ObserverFailed(ResponseFailure):
    """Raised when the caller's own observer raised while the response was read."""


class CloseFailed(ResponseFailure):
    """Raised when a stream could not be closed in time: then nothing of it is dispatched."""

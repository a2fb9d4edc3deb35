"""Every error that this package raises on purpose, as one tree.

    AgentlibError
    ├── EncodingError            a provider's request cannot carry this conversation
    ├── CatalogError             a tool, or a set of tools, is not usable
    ├── UnknownProvider          no adapter has this name
    ├── UnknownFlag              no tolerance of a server has this name
    ├── OpenFailure              no stream was acquired (may be retried)
    ├── DecisionFailure          a decision client got no decision
    │   ├── DecisionParseError   what the model said is no decision (it is told, and asked again)
    │   ├── TransportError       no whole reply arrived (asked again unchanged, never told)
    │   │   └── EmptyResponseError      status 200, and a body of nothing
    │   └── StreamingUnsupportedError   the server cannot stream this (asked again without)
    └── ResponseFailure          a stream was acquired and gave no decision (never retried)
        ├── StreamCut            it ended before its terminal event
        ├── ProviderStopped      the provider said failed, incomplete or error
        ├── ProtocolViolation    an event broke the rules of its API
        ├── LimitExceeded        a named limit was passed
        ├── IdleTimeout          nothing arrived in time
        ├── GateRejected         the response completed and a check of the gate failed
        ├── ObserverFailed       the caller's own observer raised
        └── CloseFailed          the stream could not be closed

The two families OpenFailure and ResponseFailure must never be confused: one is retried within a
budget, the other ends the response, and nothing of it is executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentlib.conversation import RejectedCall, Usage
    from agentlib.decisions.attempts import DecisionAttempt
    from agentlib.decisions.model import DecisionUsage


class AgentlibError(Exception):
    """The root: catch it to catch everything that this package raises on purpose."""


class EncodingError(AgentlibError):
    """Raised when a provider's request cannot carry a part of the conversation.

    Nothing is dropped in silence: the message names the entry and what to change.
    """


class CatalogError(AgentlibError):
    """Raised when a tool specification or a catalog file cannot be used."""


class UnknownProvider(AgentlibError):
    """Raised when no adapter has this name; the message lists those known."""


class UnknownFlag(AgentlibError):
    """Raised when no flag of what is tolerated has this name; the message lists those known."""


class OpenFailure(AgentlibError):
    """Raised when no stream was acquired.

    `status` is the HTTP status, None where no answer came; `code` the provider's word for the
    reason, if it gave one; `retry_after` the seconds that it asks to wait, if it asked.
    `retryable` says whether the same opening could succeed later, and `openings` how often it
    was tried.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.retryable = retryable
        self.openings = 1


class ResponseFailure(AgentlibError):
    """Raised when a stream was acquired and gave no decision.

    `reason` is one sentence: what was expected and what was seen. `check` names the gate's check
    that failed. `event` is the number of the event (from 1) at which it failed, `usage` what the
    provider said was billed, each None where unknown. `cut_by_length` is whether the output limit
    ended it, and `calls` are the calls that it held, where they can be told to the model.
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


class DecisionFailure(AgentlibError):
    """Raised when a decision client got no decision.

    `reason` is one sentence: what was expected and what was seen. `usage` is what all requests of
    the decision were billed, also those whose reply was lost; None where nobody was asked.
    `attempts` are those requests, in order.
    """

    def __init__(self, reason: str, *, usage: DecisionUsage | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.usage = usage
        self.attempts: tuple[DecisionAttempt, ...] = ()


class DecisionParseError(DecisionFailure):
    """Raised when a whole reply is not exactly one valid decision: the model can mend that.

    `excerpt` is the beginning of what it said, capped.
    """

    def __init__(
        self, reason: str, *, excerpt: str = "", usage: DecisionUsage | None = None
    ) -> None:
        super().__init__(reason, usage=usage)
        self.excerpt = excerpt


class TransportError(DecisionFailure):
    """Raised when no whole reply arrived: the model has nothing to mend.

    `retryable` says whether the same request could succeed later; `status`, `code` and
    `retry_after` are those of an OpenFailure.
    """

    def __init__(
        self,
        reason: str,
        *,
        retryable: bool = True,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        usage: DecisionUsage | None = None,
    ) -> None:
        super().__init__(reason, usage=usage)
        self.retryable = retryable
        self.status = status
        self.code = code
        self.retry_after = retry_after


class EmptyResponseError(TransportError):
    """Raised when the server answered 200 with a body that is empty, blank or all NUL bytes."""


class StreamingUnsupportedError(DecisionFailure):
    """Raised when the server refuses to stream this request, or streams it unusably."""

"""How a decision client gets no decision, and the attempts that it made: each one request.

The kinds differ in what is asked next: what the model can mend goes back to it, what it cannot
is asked again unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from agentlib.errors import AgentlibError, Sent

# Only named here: the model of a decision needs pydantic, and who catches a failure does not.
if TYPE_CHECKING:
    from agentlib.decisions.model import DecisionUsage

Result: TypeAlias = Literal["decision", "parse", "transport", "empty", "capability"]


@dataclass(frozen=True, slots=True)
class DecisionAttempt:
    """One request of a decision, and what came of it.

    `told` is what its last message tells the model of an earlier reply, empty where it tells
    nothing. `reason` says what was wrong, or what was decided; `excerpt` how a refused reply
    began. `wait` is the seconds before the next request, None where there is none.
    """

    number: int
    result: Result
    reason: str
    usage: DecisionUsage
    streamed: bool = False
    told: str = ""
    excerpt: str = ""
    wait: float | None = None


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

    `retryable` says whether the same request could succeed later; `status`, `code`, `retry_after`,
    `should_retry` and `sent` are those of an OpenFailure. A reply that was lost was sent for.
    """

    def __init__(
        self,
        reason: str,
        *,
        retryable: bool = True,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        should_retry: bool | None = None,
        sent: Sent = "perhaps sent",
        usage: DecisionUsage | None = None,
    ) -> None:
        super().__init__(reason, usage=usage)
        self.should_retry = should_retry
        self.sent: Sent = sent
        self.retryable = retryable
        self.status = status
        self.code = code
        self.retry_after = retry_after


class EmptyResponseError(TransportError):
    """Raised when the server answered 200 with a body that is empty, blank or all NUL bytes."""


class StreamingUnsupportedError(DecisionFailure):
    """Raised when the server refuses to stream this request, or streams it unusably."""

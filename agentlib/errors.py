"""The root of every error that this package raises on purpose, and those that end no response.

    AgentlibError
    ├── EncodingError            a provider's request cannot carry this conversation
    ├── CatalogError             a tool, or a set of tools, is not usable
    ├── UnknownProvider          no adapter has this name
    ├── UnknownFlag              no tolerance of a server has this name
    ├── OpenFailure              no stream was acquired (may be retried)
    │   └── NotConfigured        no request can be made here: no SDK, or no key
    ├── DecisionFailure          a decision client got no decision (`decisions.failures`)
    │   ├── DecisionParseError   the reply is no decision (its fault goes back to the model)
    │   ├── TransportError       no whole reply arrived (the same request is sent again)
    │   │   └── EmptyResponseError      status 200, and a body of nothing
    │   └── StreamingUnsupportedError   the server cannot stream this (asked again without)
    └── ResponseFailure          a stream was acquired and gave no decision (`failures`)
        ├── StreamCut            it ended before its terminal event
        ├── ProviderStopped      the provider said failed, incomplete or error
        ├── ProtocolViolation    an event broke the rules of its API
        ├── LimitExceeded        a named limit was passed
        ├── IdleTimeout          nothing arrived in time
        ├── GateRejected         the response completed and a check of the gate failed
        ├── ObserverFailed       the caller's own observer raised
        └── CloseFailed          the stream could not be closed

The two families OpenFailure and ResponseFailure must never be confused: one is retried within a
budget, the other ends the response, and nothing of it is executed. So they live apart.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

# What is known of a request that came to nothing. Whether the provider took it can be known to its
# own side only; from here, a request that left, or began to, was perhaps taken.
Sent: TypeAlias = Literal["not sent", "perhaps sent", "answered"]

# RFC 9110, 15.6: a proxy answers so for a server behind it, which perhaps took the request.
FOR_ANOTHER = frozenset({502, 504})


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

    `sent` says what is known of the request. Unless it is given, an answer's status is its proof,
    and without one the request counts as perhaps sent: who does not know must not assume the best.

    `status` is the HTTP status, None where no answer came; `code` the provider's word for the
    reason and `param` the field of the request that it names, if it gave one; `retry_after` the
    seconds that it asks to wait, if it asked, and `should_retry` whether it says that a further
    try makes sense, None where it does not say. `retryable` says whether the same opening could
    succeed later. Where an opening loop raised it, `openings` is how often it was tried, `sent`
    the most that is known of any of them, and `given_up` why there was no further one, where that
    is no matter of course.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
        should_retry: bool | None = None,
        retryable: bool = False,
        sent: Sent | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent: Sent = sent or ("perhaps sent" if status is None else "answered")
        self.status = status
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.should_retry = should_retry
        self.retryable = retryable
        self.openings = 1
        self.given_up = ""

    def __str__(self) -> str:
        return f"{self.reason}; {self.given_up}" if self.given_up else self.reason

    @property
    def may_have_cost(self) -> bool:
        """Whether the provider may have done the work, and billed it: unknown is not nothing."""
        return self.sent == "perhaps sent" or self.status in FOR_ANOTHER


class NotConfigured(OpenFailure):
    """Raised when no request can be made here at all: no SDK, no key, or no client by them."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, sent="not sent")

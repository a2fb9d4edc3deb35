"""Open a stream, and retry that alone.

What may be retried is data, a RetryPolicy. Only acquiring the stream stands inside the loop:
whatever happens after the first byte belongs to one response, and a retry could do its work
twice. There is one retry owner, this one: the SDK's own retries are off.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from agentlib.clock import Clock
from agentlib.errors import OpenFailure

# Who has no money left gets the status of a rate limit, but waiting cannot help.
QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})

Stream_co = TypeVar("Stream_co", covariant=True)
T = TypeVar("T")


class NativeStream(Protocol):
    """An acquired stream. It yields decoded native events; None where bytes came without one.

    `[DONE]` is an event of it, `agentlib.sse.DONE_EVENT`.
    """

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any] | None]:
        """Return the iterator of its events; it raises a ResponseFailure where reading fails."""
        ...

    async def aclose(self) -> None:
        """Close it; afterwards no socket is left."""
        ...


class Transport(Protocol):
    """Opens streams for request bodies."""

    async def open(self, request: Mapping[str, Any]) -> NativeStream:
        """Acquire one stream, by one request. Raises OpenFailure."""
        ...


class Opening(NamedTuple):
    """One opening: its number from 1, what came of it, and the wait in seconds before the next."""

    number: int
    outcome: str
    wait: float | None = None


class Retryable(Protocol):
    """What a policy reads of a failure: an OpenFailure, or what `decisions` makes of one."""

    @property
    def status(self) -> int | None:
        """The HTTP status, None where no answer came."""
        ...

    @property
    def code(self) -> str | None:
        """The provider's word for the reason, if it gave one."""
        ...

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server asks to wait, if it asked."""
        ...

    @property
    def retryable(self) -> bool:
        """Whether the same opening could succeed later."""
        ...


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failed openings are tried again, and when.

    `openings` counts all of them. The wait before opening n + 1 is `first_delay` times 2 to the
    power n - 1, in seconds, with a `jitter` of plus or minus that part. Network failures and
    statuses from 500 on are retried; `rate_limits` adds 429, unless the quota is exhausted.
    `honour_retry_after` waits as long as the server asks, but at most `longest_wait`.
    """

    openings: int = 3
    first_delay: float = 0.25
    jitter: float = 0.10
    rate_limits: bool = False
    honour_retry_after: bool = False
    longest_wait: float = 20.0

    def may_retry(self, failure: Retryable) -> bool:
        """Return whether this failure is of a kind that is tried again."""
        if not failure.retryable or failure.code in QUOTA_CODES:
            return False
        if failure.status is None or failure.status >= 500:
            return True
        return self.rate_limits and failure.status == 429

    def wait(self, number: int, failure: Retryable, chance: float) -> float:
        """Return the seconds to wait after failed opening `number`; `chance` is in [0, 1)."""
        if self.honour_retry_after and failure.retry_after is not None:
            return min(failure.retry_after, self.longest_wait)
        backoff = self.first_delay * 2.0 ** (number - 1)
        # Clients that failed together would otherwise come back together.
        return backoff * (1 + self.jitter * (2 * chance - 1))

    def next_wait(
        self, number: int, failure: Retryable, random: Callable[[], float]
    ) -> float | None:
        """Return the seconds before the opening after `number`, None where there is none."""
        if number >= self.openings or not self.may_retry(failure):
            return None
        return self.wait(number, failure, random())


CONSERVATIVE = RetryPolicy()
PATIENT = RetryPolicy(rate_limits=True, honour_retry_after=True)


async def open_with_retry(
    open_once: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    clock: Clock,
    random: Callable[[], float],
    note: Callable[[Opening], None],
) -> T:
    """Call `open_once` until it returns, as often as the policy allows; return what it returned.

    `note` is called with every opening that failed. Raises the last OpenFailure, with the number
    of its `openings`.
    """
    number = 1
    while True:
        try:
            return await open_once()
        except OpenFailure as failure:
            failure.openings = number
            wait = policy.next_wait(number, failure, random)
            note(Opening(number, failure.reason, wait))
            if wait is None:
                raise
        await clock.sleep(wait)
        number += 1


def retry_after(headers: Mapping[str, str], wall_seconds: float) -> float | None:
    """Return the seconds that a response's headers ask to wait, or None.

    `retry-after-ms` counts milliseconds; `Retry-After` is seconds or an HTTP date (RFC 9110,
    section 10.2.3), which is compared with `wall_seconds`, seconds since the epoch.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        # A date without a zone is in UTC, as every HTTP date is.
        date = parsedate_to_datetime(text)
        date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - wall_seconds)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None

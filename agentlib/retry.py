"""Open a stream, and retry that alone.

What may be retried is data, a RetryPolicy. Only acquiring the stream stands inside the loop:
whatever happens after the first byte belongs to one response, and a retry could do its work
twice. There is one retry owner, this one: the SDK's own retries are off.

Nor is an opening safe in itself. A connection can fail after the provider took the request, and
no client can see that: at most once is not promised by anyone. So a failure says whether its
request was sent, and one that perhaps was goes out again only where the policy allows it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from agentlib.clock import Clock
from agentlib.errors import OpenFailure, Sent

# Who has no money left gets the status of a rate limit, but waiting cannot help.
QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
RATE_LIMIT = 429
# Refusals of this moment, besides a rate limit and every status from 500 on: the server gave up
# waiting for the request (RFC 9110, 15.5.9), something else holds what it needs (15.5.10; with an
# idempotency key that may be the first try), or it would not risk a replay (RFC 8470, 5.2).
PASSING = frozenset({408, 409, 425})

PerhapsSent: TypeAlias = Literal["with a key", "always", "never"]

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

    async def open(self, request: Mapping[str, Any], *, idempotency_key: str = "") -> NativeStream:
        """Acquire one stream, by one request. Raises OpenFailure, which says what was sent.

        A key is handed over only where there is one, and goes out with the request.
        """
        ...


class Opening(NamedTuple):
    """One opening: its number from 1, what came of it, and the wait in seconds before the next."""

    number: int
    outcome: str
    wait: float | None = None


class Retryable(Protocol):
    """What a policy reads of a failure: an OpenFailure, or what `decisions` makes of one."""

    @property
    def sent(self) -> Sent:
        """What is known of the request."""
        ...

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
    def should_retry(self) -> bool | None:
        """Whether the server says that a further try makes sense, None where it does not."""
        ...

    @property
    def retryable(self) -> bool:
        """Whether the same opening could succeed later."""
        ...


class Verdict(NamedTuple):
    """What a policy says of a failed opening.

    `wait` is the seconds before the next one, None where there is none; `why` then says why, where
    that is no matter of course.
    """

    wait: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failed openings are tried again, and when.

    `openings` counts all of them. The wait before opening n + 1 is `first_delay` times 2 to the
    power n - 1, in seconds, with a `jitter` of plus or minus that part. Retried are a request that
    was not sent, and an answer whose status passes: those of PASSING and from 500 on; `rate_limits`
    adds 429, unless the quota is exhausted. What the server says of it, x-should-retry, counts
    before the status. `honour_retry_after` waits as long as the server asks. Under any policy, a
    server that asks for more than `longest_wait` is not asked again: too early is no better than
    not at all.

    `perhaps_sent` is for a request that the provider may have taken. Sent again, it may be billed
    twice, stored twice, and run the provider's own tools twice; so by default it goes out again
    only with an idempotency key, by which a server that honours such keys does it once. "always"
    is for who has nothing to lose but tokens, "never" for a server that takes no key.
    """

    openings: int = 3
    first_delay: float = 0.25
    jitter: float = 0.10
    rate_limits: bool = False
    honour_retry_after: bool = False
    longest_wait: float = 20.0
    perhaps_sent: PerhapsSent = "with a key"

    def may_retry(self, failure: Retryable, *, keyed: bool = False) -> bool:
        """Return whether this failure is of a kind that is tried again.

        `keyed` is whether the request carries an idempotency key.
        """
        if not failure.retryable or failure.code in QUOTA_CODES:
            return False
        if failure.status is not None:
            if failure.status == RATE_LIMIT and failure.should_retry is None:
                return self.rate_limits
            return may_pass(failure.status, failure.should_retry)
        return failure.sent != "perhaps sent" or self._may_repeat(keyed=keyed)

    def _may_repeat(self, *, keyed: bool) -> bool:
        return self.perhaps_sent == "always" or (self.perhaps_sent == "with a key" and keyed)

    def wait(self, number: int, failure: Retryable, chance: float) -> float:
        """Return the seconds to wait after failed opening `number`; `chance` is in [0, 1)."""
        if self.honour_retry_after and failure.retry_after is not None:
            return failure.retry_after
        backoff = self.first_delay * 2.0 ** (number - 1)
        # Clients that failed together would otherwise come back together.
        return backoff * (1 + self.jitter * (2 * chance - 1))

    def judge(
        self,
        number: int,
        failure: Retryable,
        random: Callable[[], float],
        *,
        keyed: bool = False,
    ) -> Verdict:
        """Return what follows on failed opening `number`, from 1."""
        if number >= self.openings:
            return Verdict(None)
        if not self.may_retry(failure, keyed=keyed):
            doubtful = failure.retryable and failure.sent == "perhaps sent"
            return Verdict(None, f"not sent again: {DOUBT[keyed]}" if doubtful else "")
        asked = failure.retry_after
        if asked is not None and asked > self.longest_wait:
            longest = f"at most {self.longest_wait:g} s are waited"
            return Verdict(None, f"given up: the server asks to wait {asked:g} s, and {longest}")
        return Verdict(self.wait(number, failure, random()))


# Why a request that was perhaps sent is not sent again, by whether it has a key.
DOUBT = {
    False: "the provider may have taken it, and it has no idempotency key",
    True: "the provider may have taken it",
}
CONSERVATIVE = RetryPolicy()
PATIENT = RetryPolicy(rate_limits=True, honour_retry_after=True)


async def open_with_retry(
    open_once: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    clock: Clock,
    random: Callable[[], float],
    note: Callable[[Opening], None],
    *,
    keyed: bool = False,
) -> T:
    """Call `open_once` until it returns, as often as the policy allows; return what it returned.

    `keyed` is whether each call sends the same idempotency key. `note` is called with every
    opening that failed. Raises the last OpenFailure, with what is known of all its `openings`.
    """
    number, doubt = 1, False
    while True:
        try:
            return await open_once()
        except OpenFailure as failure:
            wait, failure.given_up = policy.judge(number, failure, random, keyed=keyed)
            failure.openings = number
            doubt = doubt or failure.sent == "perhaps sent"
            note(Opening(number, failure.reason, wait))
            if wait is None:
                # That the last one was not sent says nothing of the first.
                failure.sent = "perhaps sent" if doubt else failure.sent
                raise
        await clock.sleep(wait)
        number += 1


def may_pass(status: int, should_retry: bool | None = None) -> bool:
    """Return whether the same request could succeed later, by what the server answered."""
    if should_retry is not None:
        return should_retry
    return status in PASSING or status == RATE_LIMIT or status >= 500


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


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Return what x-should-retry says, as OpenAI's servers and their SDK use it, or None."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())

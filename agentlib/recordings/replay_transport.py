"""A transport that replays: openings and streams from a script, on a clock that waits for nothing.

It goes through the same `complete` as a live transport, so that a lesson about retries, time-outs
and closing needs no network. It counts what it opened and closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio.lowlevel

from agentlib.clock import Clock
from agentlib.errors import OpenFailure, Sent
from agentlib.failures import ProtocolViolation, StreamCut
from agentlib.recordings.events import CapturedResponse
from agentlib.retry import may_pass
from agentlib.sse import DONE_EVENT

WORDS: dict[Sent, str] = {
    "not sent": "no connection",
    "perhaps sent": "no answer to a request that was perhaps sent",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An opening that acquires nothing: an HTTP status, or None where no answer comes.

    `sent` is what is known of the request where none comes: by default there was no connection.
    """

    status: int | None
    code: str | None = None
    retry_after: float | None = None
    should_retry: bool | None = None
    sent: Sent = "not sent"

    def failure(self) -> OpenFailure:
        """Return the failure that a live transport would raise."""
        sent = self.sent if self.status is None else "answered"
        what = WORDS.get(sent, f"the server answered {self.status}")
        return OpenFailure(
            f"{what}: {self.code}" if self.code else what,
            status=self.status,
            code=self.code,
            retry_after=self.retry_after,
            should_retry=self.should_retry,
            retryable=self.status is None or may_pass(self.status, self.should_retry),
            sent=sent,
        )


@dataclass(frozen=True, slots=True)
class Playback:
    """An opening that streams a recorded response.

    `pauses` maps an event's number to the seconds that pass before it comes; a pause after the
    last event has the number of one more. `reset` is whether the connection breaks at the end,
    and `closing` the seconds that it takes to close the stream.
    """

    response: CapturedResponse
    pauses: Mapping[int, float] = field(default_factory=dict)
    reset: bool = False
    closing: float = 0.0


Scripted: TypeAlias = Refusal | Playback


class ReplayTransport:
    """Plays a script: one entry for each opening, in order.

    `opened` and `closed` count streams, `requests` keeps the request of each opening, and `keys`
    its idempotency key.
    """

    def __init__(self, script: Iterable[Scripted], clock: Clock) -> None:
        self.opened = 0
        self.closed = 0
        self.requests: list[Mapping[str, Any]] = []
        self.keys: list[str] = []
        self._script: Iterator[Scripted] = iter(script)
        self._clock = clock

    async def open(self, request: Mapping[str, Any], *, idempotency_key: str = "") -> ReplayStream:
        """Play the next opening. Raises OpenFailure where it is a refusal, or none is left."""
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        self.keys.append(idempotency_key)
        opening = next(self._script, None)
        if opening is None:
            reason = f"the script has no opening {len(self.requests)}"
            raise OpenFailure(reason, sent="not sent")
        if isinstance(opening, Refusal):
            raise opening.failure()
        self.opened += 1
        return ReplayStream(opening, self._clock, self)


class ReplayStream:
    """One recorded response, as a stream."""

    def __init__(self, playback: Playback, clock: Clock, owner: ReplayTransport) -> None:
        self._playback = playback
        self._clock = clock
        self._owner = owner
        self._read = 0
        self._open = True
        self._done = False

    def __aiter__(self) -> ReplayStream:
        """Return the stream itself: it can be read once."""
        return self

    async def __anext__(self) -> Mapping[str, Any] | None:
        """Return the next event. Raises a ResponseFailure where the recording says so."""
        await anyio.lowlevel.checkpoint()
        number = self._read + 1
        response = self._playback.response
        if number > len(response.events) and response.done_marker and not self._done:
            self._done = True
            return DONE_EVENT
        pause = self._playback.pauses.get(number)
        if pause is not None:
            await self._clock.sleep(pause)
        if number <= len(response.events):
            self._read = number
            event: Mapping[str, Any] = response.events[number - 1].data
            return event
        if response.fault is not None:
            raise ProtocolViolation(response.fault, check="lifecycle")
        if self._playback.reset:
            raise StreamCut("the connection was reset", check="completed")
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close it; a second close changes nothing."""
        await anyio.lowlevel.checkpoint()
        if self._open:
            if self._playback.closing:
                await self._clock.sleep(self._playback.closing)
            self._open = False
            self._owner.closed += 1

"""`complete(history, tools)`: the boundary that a loop awaits.

Behind it: open a stream (and retry only that), consume it through the assembly, close it, and
only then hand over the decision. Closing is part of finishing: on success, on failure and on
cancellation the stream is closed once, shielded and bounded in time, before anything is returned.
"""

from __future__ import annotations

import random as _random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import anyio
import anyio.lowlevel

from agentlib.assembly import Decision, Limits
from agentlib.clock import Clock, LoopClock
from agentlib.conversation import Catalog, Entry
from agentlib.errors import EncodingError, OpenFailure, Sent
from agentlib.failures import CloseFailed, IdleTimeout, ObserverFailed, ResponseFailure
from agentlib.providers.compat import check_flags
from agentlib.providers.registry import find_provider
from agentlib.providers.requests import bounded, refused_field
from agentlib.reader import ResponseReader
from agentlib.retry import (
    CONSERVATIVE,
    NativeStream,
    Opening,
    RetryPolicy,
    Transport,
    open_with_retry,
)
from agentlib.sse import DONE_EVENT
from agentlib.stopwatch import CLOSING, Stopwatch
from agentlib.vocabulary import Event


@dataclass(frozen=True, slots=True)
class Timers:
    """How long to wait, in seconds.

    `liveness` bounds the wait for any byte: a dead connection. `progress` bounds the wait for a
    meaningful event, which keep-alives are not, nor events that bring nothing, as each API's
    translator knows: a model that thinks is quiet for long. `total`
    bounds the whole response, opening included, and `closing` the close of its stream. Where a
    response is decided and only its usage can still come, `trailing` bounds the wait for that.
    """

    liveness: float = 30.0
    progress: float = 180.0
    total: float = 600.0
    closing: float = 0.75
    trailing: float = 2.0


@runtime_checkable
class KnowsSecret(Protocol):
    """A stream that knows the key of its request, which a server may send back in an ID."""

    def scrub(self, failure: ResponseFailure) -> None:
        """Take the key out of the texts of `failure`."""
        ...


class Encoding(NamedTuple):
    """Another way to encode a request than a provider's usual one: what goes in stays the same."""

    provider: str
    encode: Callable[..., dict[str, Any]]


class StreamingModel:
    """Asks one model, over one transport, for one decision at a time.

    `report` observes each opening and each neutral event, and can influence nothing: where it
    raises, the response ends. `openings` holds the openings of the latest call. `native` keeps
    items that only the provider understands, and sends them back verbatim; `compat` names what
    is tolerated of the server. `notes` list what was, in the latest call, and which field was left
    out of the request because the server refused it by name; it is not sent to it again.
    `stopwatch` measures where the time goes: opening, first event, streaming, closing.

    `idempotency_key` returns a new key for each request; all openings of that request carry it.
    Give one only for a server or a gateway that honours such keys: whoever ignores them does the
    work of each opening.
    """

    def __init__(
        self,
        transport: Transport,
        model: str,
        *,
        provider: str = "responses",
        policy: RetryPolicy = CONSERVATIVE,
        timers: Timers | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        random: Callable[[], float] = _random.random,  # noqa: S311 - spreads retries, no secret
        report: Callable[[Event | Opening], None] | None = None,
        native: bool = False,
        compat: Iterable[str] = (),
        stopwatch: Stopwatch | None = None,
        idempotency_key: Callable[[], str] | None = None,
    ) -> None:
        self.openings: list[Opening] = []
        self.notes: list[str] = []
        self._transport = transport
        self.model = model
        self.provider = find_provider(provider)
        self._policy = policy
        self._timers = timers or Timers()
        self._limits = limits
        self._clock = clock or LoopClock()
        self._random = random
        self._report = report
        self.native = native
        self._compat = check_flags(compat)
        self._left_out: dict[str, str] = {}
        self._stopwatch = stopwatch or Stopwatch(self._clock)
        self._make_key = idempotency_key

    async def complete(
        self,
        history: Sequence[Entry],
        tools: Catalog,
        *,
        most_output_tokens: int | None = None,
        encoding: Encoding | None = None,
    ) -> Decision:
        """Return the decision of one response to `history`, with `tools` exposed.

        The request asks for `most_output_tokens` at most, and never for more than usual; it is
        encoded by `encoding`, where there is one. Raises EncodingError where it cannot carry them,
        OpenFailure where no stream was acquired, and a ResponseFailure where one was and gave no
        decision. In every case the stream is closed by then, and nothing was executed.
        """
        if encoding is not None and encoding.provider != self.provider.name:
            raise EncodingError(f"{self.provider.title} takes no request of {encoding.provider}")
        encode = self.provider.encode if encoding is None else encoding.encode
        request = encode(
            self.model,
            history,
            tools,
            max_output_tokens=bounded(most_output_tokens),
            native=self.native,
        )
        return await self.ask(request, tools)

    async def ask(self, request: Mapping[str, Any], tools: Catalog) -> Decision:
        """Return the decision of one response to `request`, a native body that exposes `tools`.

        Raises as `complete` does, but for EncodingError.
        """
        start = self._clock.now()
        # Two calls at once have each their own; the attribute holds the latest one's.
        openings = self.openings = []
        self._stopwatch.switch("opening")
        stream = await self._acquire(request, start, openings)
        self._stopwatch.switch("first event")
        try:
            self._note(openings, Opening(len(openings) + 1, "opened"))
            decision = await self._consume(stream, tools, start)
        except BaseException as failure:
            if isinstance(failure, ResponseFailure) and isinstance(stream, KnowsSecret):
                stream.scrub(failure)
            problem = await self._close(stream)
            if problem is not None:
                failure.add_note(f"closing the stream failed too: {problem!r}")
            raise
        problem = await self._close(stream)
        if problem is not None:
            reason = f"the stream could not be closed, so nothing is dispatched: {problem}"
            late = CloseFailed(reason, check="closing", usage=decision.usage)
            late.draft = decision.text
            raise late from problem
        # Who was cancelled during the close gets no decision.
        await anyio.lowlevel.checkpoint_if_cancelled()
        return decision

    async def _acquire(
        self, request: Mapping[str, Any], start: float, openings: list[Opening]
    ) -> NativeStream:
        sent = {name: request[name] for name in request if name not in self._left_out}
        try:
            return await self._open(sent, start, openings)
        except OpenFailure as failure:
            field = refused_field(sent, failure)
            if field is None:
                raise
        self._left_out[field] = f"the server refuses the field {field}: it is left out"
        del sent[field]
        return await self._open(sent, start, openings)

    async def _open(
        self, request: Mapping[str, Any], start: float, openings: list[Opening]
    ) -> NativeStream:
        tries = _Tries(self._transport, request, self._make_key and self._make_key())
        with self._clock.timer(start + self._timers.total):
            return await open_with_retry(
                tries.open_once,
                self._policy,
                self._clock,
                self._random,
                partial(self._note, openings),
                keyed=bool(tries.key),
            )
        raise tries.late(self._timers.total)

    async def _consume(self, stream: NativeStream, tools: Catalog, start: float) -> Decision:
        reader = ResponseReader(
            self.provider.name,
            tools,
            self._limits,
            self._observe,
            native=self.native,
            compat=self._compat,
        )
        self.notes = reader.notes
        self.notes.extend(self._left_out.values())
        try:
            return await self._read(reader, stream, start)
        except ResponseFailure as failure:
            reader.discard(failure)

    async def _read(self, reader: ResponseReader, stream: NativeStream, start: float) -> Decision:
        waits = _Waits(self._timers, start, self._clock.now())
        with self._clock.timer(waits.deadline) as timer:
            async for native in stream:
                waits.alive = self._clock.now()
                if native is not None:
                    step = reader.step(native)
                    if step.decision is not None:
                        return step.decision
                    if step.meaningful:
                        waits.progress = waits.alive
                        if not waits.begun:
                            waits.begun = True
                            self._stopwatch.switch("streaming")
                    if step.trailing and waits.decided is None:
                        waits.decided = waits.alive
                    if native is DONE_EVENT and self.provider.ends_at_done:
                        break
                timer.move(waits.deadline)
        if timer.expired and waits.decided is None:
            raise IdleTimeout(waits.expired(), check="completed")
        decision = reader.end()
        if decision is None:
            raise AssertionError("a stream that ended without a decision has failed")
        return decision

    def _note(self, openings: list[Opening], opening: Opening) -> None:
        # A repaired request is opened anew, but its openings are counted on.
        counted = opening._replace(number=len(openings) + 1)
        openings.append(counted)
        self._observe(counted)

    def _observe(self, event: Event | Opening) -> None:
        if self._report is None:
            return
        try:
            self._report(event)
        except Exception as error:
            reason = f"the observer raised {type(error).__name__}: {error}"
            raise ObserverFailed(reason, check="observer") from error

    async def _close(self, stream: NativeStream) -> Exception | None:
        """Close `stream`, once; return what went wrong, or None.

        It runs in a task of its own, so that no cancellation, not even a second one, gets at it.
        """
        self._stopwatch.switch(CLOSING)
        closing = _Closing(stream, self._clock, self._timers.closing)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(closing.run)
        self._stopwatch.stop()
        return closing.problem


class _Tries:
    """The openings of one request, with its key, and the most that is known of any of them."""

    def __init__(self, transport: Transport, request: Mapping[str, Any], key: str | None) -> None:
        self.key: Any = {"idempotency_key": key} if key else {}
        self._transport = transport
        self._request = request
        self._begun = 0
        self._sent: Sent = "not sent"

    async def open_once(self) -> NativeStream:
        """Open the stream once. Raises OpenFailure."""
        before, self._sent = self._sent, "perhaps sent"
        self._begun += 1
        try:
            return await self._transport.open(self._request, **self.key)
        except OpenFailure as failure:
            # What is known of an opening is known once it has failed, and not while it hangs.
            self._sent = before if before == "perhaps sent" else failure.sent
            raise

    def late(self, seconds: float) -> OpenFailure:
        """Return the failure of openings that took too long in all."""
        reason = f"no stream was acquired within {seconds:g} s in all"
        failure = OpenFailure(reason, sent=self._sent)
        failure.openings = self._begun
        return failure


class _Waits:
    """When the latest byte and the latest meaningful event came, and when it is too late."""

    def __init__(self, timers: Timers, start: float, now: float) -> None:
        self.alive = self.progress = now
        self.decided: float | None = None
        self.begun = False
        self._timers = timers
        self._start = start

    @property
    def deadline(self) -> float:
        return min(self._moments())[0]

    def expired(self) -> str:
        return min(self._moments())[1]

    def _moments(self) -> tuple[tuple[float, str], ...]:
        t = self._timers
        if self.decided is not None:
            return ((self.decided + t.trailing, "only the usage was awaited"),)
        return (
            (self.alive + t.liveness, f"no byte came for {t.liveness:g} s"),
            (self.progress + t.progress, f"only keep-alives came for {t.progress:g} s"),
            (self._start + t.total, f"the response took longer than {t.total:g} s in all"),
        )


class _Closing:
    def __init__(self, stream: NativeStream, clock: Clock, seconds: float) -> None:
        self.problem: Exception | None = RuntimeError("the close was interrupted")
        self._stream = stream
        self._clock = clock
        self._seconds = seconds

    async def run(self) -> None:
        until = self._clock.now() + self._seconds
        with anyio.CancelScope(shield=True), self._clock.timer(until) as timer:
            try:
                await self._stream.aclose()
                self.problem = None
            except Exception as error:  # noqa: BLE001 - whatever a transport raises, it is told
                self.problem = error
        if timer.expired:
            self.problem = TimeoutError(f"closing took longer than {self._seconds:g} s")

"""A decision client for every server that speaks Chat Completions, on the OpenAI SDK.

`decide` blocks, and asks for a whole reply. `adecide` streams: a stall shows at once, however
long the generation is, and a caller who is cancelled leaves no connection open. Nothing of a
stream is shown or carried out before its end, so a reply that was lost may be asked for again.
"""

from __future__ import annotations

import random as _random
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from agentlib.assembly import Limits
from agentlib.blocking import run_blocking
from agentlib.clock import BlockingClock, Clock, LoopClock
from agentlib.decisions.attempts import Attempts, Rules
from agentlib.decisions.client import ModelClient
from agentlib.decisions.context import DecisionContext
from agentlib.decisions.failures import DecisionAttempt, DecisionFailure, StreamingUnsupportedError
from agentlib.decisions.model import ModelDecision
from agentlib.decisions.reading import (
    Seen,
    opening_failure,
    read_decision,
    read_whole,
    reply_failure,
)
from agentlib.decisions.streaming import WatchedTransport
from agentlib.errors import OpenFailure
from agentlib.failures import IdleTimeout, ResponseFailure
from agentlib.model import StreamingModel, Timers
from agentlib.openai_clients import make_client, make_sync_client
from agentlib.openai_transport import OpenAITransport
from agentlib.openai_whole import Opened, WholeReply, ask_whole, awaited, blocking
from agentlib.providers.requests import MAX_OUTPUT_TOKENS
from agentlib.retry import RetryPolicy
from agentlib.scrubbing import without_secret

if TYPE_CHECKING:
    from agentlib.openai_clients import AsyncSDKClient, SDKClient

Client = TypeVar("Client")
# The retries of a decision have one owner, and it is not the model's opening loop.
ONCE = RetryPolicy(openings=1)


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Which model an OpenAIModelClient asks, at which server, and how.

    `api_key` and `base_url` stand for OPENAI_API_KEY and OPENAI_BASE_URL. `native_tool_calls` off
    keeps the protocol of one JSON object, for servers without functions. `timers` are those of a
    stream; where a whole reply is awaited, `progress` bounds the wait for it and for each piece of
    it, and `total` the whole. `compat` names what is tolerated of the server.
    """

    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)  # it may hold a password
    native_tool_calls: bool = True
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    timers: Timers = field(default_factory=Timers)
    limits: Limits = field(default_factory=Limits)
    compat: tuple[str, ...] = ()


class OpenAIModelClient(ModelClient):
    """Decides by one model of an OpenAI-compatible server.

    `client` and `aclient` are the SDK's, used as they are given and closed by their owner. Without
    them, each is made at its first use, so that none of this needs the SDK or a key to be
    constructed. `sleep` and `asleep` wait between requests, in seconds; `clock` is the time-outs'
    own, in `adecide`.

    `attempts` are the requests of the latest decision. `streams` is whether `adecide` streams: it
    ends, for the rest of this client's life, where a server turns out to be unable.
    """

    def __init__(
        self,
        config: ClientConfig,
        client: SDKClient | None = None,
        aclient: AsyncSDKClient | None = None,
        *,
        max_parse_retries: int = 2,
        transport_max_retries: int = 2,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] | None = None,
        clock: Clock | None = None,
        random: Callable[[], float] = _random.random,  # noqa: S311 - spreads retries, no secret
    ) -> None:
        self.config = config
        self.attempts: list[DecisionAttempt] = []
        self.streams = True
        self._rules = Rules(
            config.model,
            config.native_tool_calls,
            config.max_output_tokens,
            max_parse_retries,
            transport_max_retries,
        )
        self._clock = clock or LoopClock()
        self._sleep = sleep
        self._asleep = asleep or self._clock.sleep
        self._random = random
        key, url = config.api_key, config.base_url
        self._client: _Held[SDKClient] = _Held(client, lambda: make_sync_client(key, url))
        self._aclient: _Held[AsyncSDKClient] = _Held(aclient, lambda: make_client(key, url))

    def decide(self, context: DecisionContext) -> ModelDecision:
        """Return one decision, from replies that are not streamed; see ModelClient."""
        turn = self._begin(context, streaming=False)
        clock = BlockingClock(self._sleep)
        # No timer interrupts a read that blocks: the SDK bounds each one.
        way = _Way(blocking, clock, self.config.timers.progress)
        return run_blocking(self._decide(turn, self._client.get(), way, clock.sleep))

    async def adecide(self, context: DecisionContext) -> ModelDecision:
        """Return one decision, streamed where the server can; see ModelClient."""
        turn = self._begin(context, streaming=self.streams)
        way = _Way(awaited, self._clock, self.config.timers.total)
        return await self._decide(turn, self._aclient.get(), way, self._asleep)

    def close(self) -> None:
        """Close the client that `decide` made."""
        own = self._client.release()
        if own is not None:
            own.close()

    async def aclose(self) -> None:
        """Close both clients, where this one made them."""
        self.close()
        own = self._aclient.release()
        if own is not None:
            await own.close()

    def _begin(self, context: DecisionContext, *, streaming: bool) -> Attempts:
        # Two decisions at once have each their own log; the attribute holds the latest one's.
        log = self.attempts = []
        return Attempts(context, self._rules, self._random, log, streaming=streaming)

    async def _decide(
        self,
        turn: Attempts,
        client: Any,
        way: _Way,
        sleep: Callable[[float], Awaitable[None]],
    ) -> ModelDecision:
        while True:
            try:
                if turn.streaming:
                    return turn.succeed(await self._ask_streamed(client, turn))
                return turn.succeed(await self._ask_whole(client, turn, way))
            except DecisionFailure as failure:
                self.streams &= not isinstance(failure, StreamingUnsupportedError)
                wait = turn.fail(without_secret(failure, client.api_key))
            if wait:
                await sleep(wait)

    async def _ask_whole(self, client: Any, turn: Attempts, way: _Way) -> ModelDecision:
        timers, request, clock = self.config.timers, turn.request(), way.clock
        last = clock.now() + timers.total

        def deadline() -> float:
            return min(last, clock.now() + timers.progress)

        with clock.timer(deadline()) as timer:
            try:
                reply = await ask_whole(
                    client, request, way.opened, idle=way.idle, alive=lambda: timer.move(deadline())
                )
            except (OpenFailure, ResponseFailure) as failure:
                raise _classified(failure, streamed=False) from failure
        if timer.expired:
            late = IdleTimeout(_waited(timers, in_all=clock.now() >= last), check="completed")
            raise _classified(late, streamed=False) from late
        return self._read(reply, turn)

    def _read(self, reply: WholeReply, turn: Attempts) -> ModelDecision:
        return read_whole(
            reply,
            turn.context,
            native_tools=self.config.native_tool_calls,
            limits=self.config.limits,
            compat=self.config.compat,
        )

    async def _ask_streamed(self, client: AsyncSDKClient, turn: Attempts) -> ModelDecision:
        config, request = self.config, turn.request()
        transport = WatchedTransport(OpenAITransport(client, provider="chat"))
        model = StreamingModel(
            transport,
            config.model,
            provider="chat",
            policy=ONCE,
            timers=config.timers,
            limits=config.limits,
            clock=self._clock,
            compat=config.compat,
        )
        catalog = turn.context.catalog(native_tools=config.native_tool_calls)
        try:
            decision = await model.ask(request, catalog)
        except (OpenFailure, ResponseFailure) as failure:
            raise _classified(failure, transport.seen, streamed=True) from failure
        return read_decision(decision, turn.context, native_tools=config.native_tool_calls)


class _Way(NamedTuple):
    """How whole replies are awaited, on an event loop or blocking; `idle` as in `ask_whole`."""

    opened: Opened
    clock: Clock
    idle: float


class _Held(Generic[Client]):
    """A client of the SDK: the one that was given, or one that is made at its first use."""

    def __init__(self, given: Client | None, make: Callable[[], Client]) -> None:
        self._client = given
        self._is_own = given is None
        self._make = make
        self._making = threading.Lock()

    def get(self) -> Client:
        """Return the client. Raises a DecisionFailure where none can be made."""
        with self._making:
            if self._client is None:
                try:
                    self._client = self._make()
                except OpenFailure as failure:
                    raise opening_failure(failure, streamed=False) from failure
            return self._client

    def release(self) -> Client | None:
        """Forget the client that was made here, and return it, to be closed; None for no such."""
        if not self._is_own:
            return None
        own, self._client = self._client, None
        return own


def _waited(timers: Timers, *, in_all: bool) -> str:
    if in_all:
        return f"the reply took longer than {timers.total:g} s in all"
    return f"no byte of the reply came for {timers.progress:g} s"


def _classified(
    failure: OpenFailure | ResponseFailure, seen: Seen | None = None, *, streamed: bool
) -> DecisionFailure:
    if isinstance(failure, OpenFailure):
        return opening_failure(failure, streamed=streamed)
    # Without a reader in between, whatever failed failed in the bytes.
    found = seen if seen is not None else Seen(fault=failure)
    return reply_failure(failure, found, streamed=streamed)

"""Play a symptom to a decision client: a real server, the real SDK, and no waiting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import anyio.to_thread

from agentlib.clock import MockClock
from agentlib.decisions.failures import DecisionAttempt, DecisionFailure, Result
from agentlib.decisions.openai_client import ClientConfig, OpenAIModelClient
from agentlib.faultserver.server import LoopbackServer
from agentlib.model import Timers
from workbook.pages.decision_replies import CONTEXT
from workbook.pages.symptoms import Symptom

NO_KEY = "no-key-is-needed-here"


@dataclass(frozen=True, slots=True)
class Observed:
    """What came of a symptom: the client's attempts, the bodies that the server saw, the waits."""

    attempts: tuple[DecisionAttempt, ...]
    requests: tuple[dict[str, Any], ...]
    waits: tuple[float, ...]
    failure: DecisionFailure | None = None
    streams: bool = True

    @property
    def results(self) -> tuple[Result, ...]:
        """What each request came to."""
        return tuple(attempt.result for attempt in self.attempts)


async def observe(symptom: Symptom, *, decisions: int = 1) -> Observed:
    """Play a symptom to `adecide`, asked for so many decisions; `attempts` are the last one's."""
    clock = MockClock()
    with LoopbackServer(symptom.streamed) as server:
        client = OpenAIModelClient(_config(server), clock=clock, random=lambda: 0.5)
        failure = None
        async with anyio.create_task_group() as tasks:
            if symptom.stalls:
                tasks.start_soon(_let_time_pass, server, clock)
            try:
                for _ in range(decisions):
                    await client.adecide(CONTEXT)
            except DecisionFailure as error:
                failure = error
            finally:
                tasks.cancel_scope.cancel()
        await client.aclose()
        await anyio.to_thread.run_sync(server.wait_idle)
    return _observed(client, server, clock.slept, failure)


def observe_blocking(symptom: Symptom) -> Observed:
    """Play a symptom to `decide`; a stall lasts for as long as the client has patience."""
    if symptom.whole is None:
        raise ValueError(f"only a stream can show this: {symptom.name}")
    waits: list[float] = []
    patience = Timers(progress=1.0) if symptom.stalls else Timers()
    failure = None
    with LoopbackServer(symptom.whole) as server:
        config = replace(_config(server), timers=patience)
        client = OpenAIModelClient(config, sleep=waits.append, random=lambda: 0.5)
        try:
            client.decide(CONTEXT)
        except DecisionFailure as error:
            failure = error
        client.close()
        server.wait_idle()
    return _observed(client, server, waits, failure)


class Cancelled(NamedTuple):
    """What a cancellation in a stall left: the seconds until the end, and the server's counts."""

    seconds: float
    requests: int
    opened: int
    closed: int


async def cancel_in_stall(symptom: Symptom) -> Cancelled:
    """Ask for a decision, and cancel that as soon as the server stalls."""
    with LoopbackServer(symptom.streamed) as server:
        client = OpenAIModelClient(_config(server))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.adecide, CONTEXT)
            await anyio.to_thread.run_sync(partial(server.wait_until, _is_stalled))
            begun = anyio.current_time()
            tasks.cancel_scope.cancel()
        took = anyio.current_time() - begun
        await anyio.to_thread.run_sync(server.wait_idle)
        await client.aclose()
        return Cancelled(took, len(server.requests), server.opened, server.closed)


async def _let_time_pass(server: LoopbackServer, clock: MockClock) -> None:
    wait = partial(server.wait_until, _is_stalled)
    await anyio.to_thread.run_sync(wait, abandon_on_cancel=True)
    # Not before the client has read what came before the stall.
    while clock.moves == 0:
        await anyio.lowlevel.checkpoint()
    clock.jump(Timers().liveness)


def _is_stalled(server: LoopbackServer) -> bool:
    return server.stalled > 0


def _config(server: LoopbackServer) -> ClientConfig:
    return ClientConfig("example-model", api_key=NO_KEY, base_url=server.base_url)


def _observed(
    client: OpenAIModelClient,
    server: LoopbackServer,
    waits: list[float],
    failure: DecisionFailure | None,
) -> Observed:
    bodies = tuple(request.body or {} for request in server.requests)
    return Observed(tuple(client.attempts), bodies, tuple(waits), failure, client.streams)

"""What a page shows of openings: each opening, each wait, and what came of the whole.

They come from a script, or from a server on this machine that was asked through the real SDK.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentlib.clock import MockClock
from agentlib.conversation import user
from agentlib.errors import AgentlibError
from agentlib.faultserver.server import LoopbackServer
from agentlib.fixtures import tools
from agentlib.model import StreamingModel, Timers
from agentlib.openai_transport import OpenAITransport
from agentlib.recordings.replay_transport import ReplayTransport, Scripted
from agentlib.retry import CONSERVATIVE, Opening, RetryPolicy
from agentlib.wording import plural


@dataclass(frozen=True, repr=False)
class Openings:
    """One `complete`, as it went: its openings, the requests and streams it took, its result.

    `waited` is the time on the mock clock, in seconds; nobody waited for it.
    """

    openings: tuple[Opening, ...]
    requests: int
    opened: int
    closed: int
    waited: float
    result: str

    @property
    def counted(self) -> str:
        """What the transport counted."""
        streams = f"{plural(self.opened, 'stream')} opened, {self.closed} closed"
        return f"{plural(self.requests, 'request')} · {streams}"

    def __repr__(self) -> str:
        lines = [_told(opening) for opening in self.openings]
        lines.append(f"{self.counted} · {self.waited:.2f} s waited")
        return "\n".join([*lines, self.result])


@dataclass(frozen=True, repr=False)
class Served(Openings):
    """The same of a real server: it says what it took. `keys` are the requests' own."""

    keys: tuple[str, ...] = ()

    @property
    def counted(self) -> str:
        """What the server counted."""
        keys = ", ".join(key or "none" for key in self.keys)
        return f"the server took {plural(self.requests, 'request')} · idempotency keys: {keys}"


def _told(opening: Opening) -> str:
    wait = f", then a wait of {opening.wait:.2f} s" if opening.wait is not None else ""
    return f"opening {opening.number}: {opening.outcome}{wait}"


async def complete(
    *script: Scripted,
    policy: RetryPolicy = CONSERVATIVE,
    timers: Timers | None = None,
    chance: float = 0.5,
) -> Openings:
    """Ask a model whose openings follow `script` for one decision, on a mock clock.

    `chance`, in [0, 1), takes the place of randomness in the waits: 0.5 is no jitter.
    """
    clock = MockClock()
    transport = ReplayTransport(script, clock)
    model = StreamingModel(
        transport, "replay", policy=policy, timers=timers, clock=clock, random=lambda: chance
    )
    result = await _asked(model)
    return Openings(
        tuple(model.openings),
        len(transport.requests),
        transport.opened,
        transport.closed,
        clock.now(),
        result,
    )


async def complete_at(
    server: LoopbackServer, policy: RetryPolicy = CONSERVATIVE, *, key: str = ""
) -> Served:
    """Ask a model behind `server` for one decision, through the real SDK.

    `key` is the idempotency key of its request. The waits pass on a mock clock.
    """
    clock = MockClock()
    transport = OpenAITransport(base_url=server.base_url, api_key="any")
    model = StreamingModel(
        transport,
        "any",
        policy=policy,
        clock=clock,
        random=lambda: 0.5,
        idempotency_key=lambda: key,
    )
    result = await _asked(model)
    await transport.aclose()
    return Served(
        tuple(model.openings),
        len(server.requests),
        server.opened,
        server.closed,
        sum(clock.slept),
        result,
        tuple(request.idempotency_key for request in server.requests),
    )


async def _asked(model: StreamingModel) -> str:
    try:
        decision = await model.complete([user("Please repair add().")], tools())
    except AgentlibError as error:
        return f"{type(error).__name__}: {error}"
    return f"released: {', '.join(call.name for call in decision.calls) or 'an answer'}"

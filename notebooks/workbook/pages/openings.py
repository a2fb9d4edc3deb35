"""What a page shows of openings: each opening, each wait, and what came of the whole."""

from __future__ import annotations

from dataclasses import dataclass

from agentlib.clock import MockClock
from agentlib.conversation import user
from agentlib.errors import AgentlibError
from agentlib.fixtures import tools
from agentlib.model import StreamingModel, Timers
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

    def __repr__(self) -> str:
        lines = [_told(opening) for opening in self.openings]
        streams = f"{plural(self.opened, 'stream')} opened, {self.closed} closed"
        lines.append(f"{plural(self.requests, 'request')} · {streams} · {self.waited:.2f} s waited")
        return "\n".join([*lines, self.result])


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
    try:
        decision = await model.complete([user("Please repair add().")], tools())
        calls = ", ".join(call.name for call in decision.calls) or "an answer"
        result = f"released: {calls}"
    except AgentlibError as error:
        result = f"{type(error).__name__}: {error}"
    return Openings(
        tuple(model.openings),
        len(transport.requests),
        transport.opened,
        transport.closed,
        clock.now(),
        result,
    )

"""What a decision client is: a context packet in, one validated decision out."""

from __future__ import annotations

from typing import Protocol

import anyio.to_thread

from agentlib.decisions.context import DecisionContext
from agentlib.decisions.model import ModelDecision


class ModelClient(Protocol):
    """Decides. Whoever inherits from it and writes `decide` is async as well.

    Both methods raise a DecisionFailure where there is no decision, and EncodingError where no
    request can carry the context. Nothing is executed by either.
    """

    def decide(self, context: DecisionContext) -> ModelDecision:
        """Return one decision; this blocks."""
        ...

    async def adecide(self, context: DecisionContext) -> ModelDecision:
        """Return one decision, by default from `decide` in a worker thread.

        Who is cancelled does not wait for that thread: its result is dropped.
        """
        return await anyio.to_thread.run_sync(self.decide, context, abandon_on_cancel=True)

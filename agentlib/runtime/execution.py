"""What came of a call: exactly one Execution for each, whatever happens.

It ran, it failed, it was shown, denied, never begun, or it was interrupted and what it did is
unknown. Each has a text for the model, so that a call is never without a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from agentlib.conversation import ToolCall, ToolResult

Status: TypeAlias = Literal[
    "executed", "failed", "timed_out", "shown", "denied", "not_executed", "unknown"
]
RunsIn: TypeAlias = Literal["task", "thread", "process"]


class Executor(Protocol):
    """All that the loop knows of tools."""

    async def execute(self, call: ToolCall) -> ToolResult:
        """Execute one released call; an ordinary failure of a tool is in its result."""
        ...

    def runs_in(self, call: ToolCall) -> RunsIn:
        """Say where the call runs: only a thread goes on after a cancellation."""
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of one call: `waited` for a place and `ran`, in seconds of the loop's clock.

    `beside` names the tools of its batch whose calls had not ended when it began.
    """

    call: ToolCall
    status: Status
    output: str
    waited: float = 0.0
    ran: float = 0.0
    beside: frozenset[str] = frozenset()

    def result(self) -> ToolResult:
        """Return the result that stands for it in the history."""
        return ToolResult(self.call.call_id, self.output)

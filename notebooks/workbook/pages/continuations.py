"""What a page shows of a talk in several turns: each request, what it held, what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentlib.assembly import Decision
from agentlib.clock import MockClock
from agentlib.conversation import Entry, ToolCall, ToolResult, Usage, user
from agentlib.fixtures import tools, workspace_files
from agentlib.model import StreamingModel
from agentlib.recordings.replay_transport import Refusal, ReplayTransport, Scripted
from agentlib.runtime.continuation import ContinuingModel
from agentlib.wording import plural

QUESTION = user("The test of add() fails. Why?")


@dataclass(frozen=True, repr=False)
class Talk:
    """A talk, as it went: each request, and the decision of each that was answered.

    `refused` maps the number of a request, from 1, to why it was not answered. `executed` are
    the calls that were executed, in order.
    """

    requests: tuple[Mapping[str, Any], ...]
    decisions: tuple[Decision, ...]
    refused: Mapping[int, str]
    executed: tuple[ToolCall, ...]

    @property
    def usage(self) -> tuple[Usage | None, ...]:
        """What each answered request reports as billed."""
        return tuple(decision.usage for decision in self.decisions)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        decisions = iter(self.decisions)
        for number, request in enumerate(self.requests, 1):
            cursor = request.get("previous_response_id")
            yield f"request {number} · {f'continues {cursor}' if cursor else 'the whole history'}"
            yield f"  sent      {', '.join(map(item_name, request['input']))}"
            if number in self.refused:
                yield f"  refused   {self.refused[number]}"
                continue
            decision = next(decisions, None)
            if decision is not None:
                yield f"  released  {_released(decision)} as {decision.response_id}"
        executed = ", ".join(f"{call.name} ({call.call_id})" for call in self.executed)
        yield f"{plural(len(self.requests), 'request')} · executed {executed or 'nothing'}"


def item_name(item: Mapping[str, Any]) -> str:
    """Return what an input item is, in two words: its kind, and the ID by which it is known."""
    if item.get("role") and "id" not in item:
        return str(item["role"])
    known = item.get("id") or item.get("call_id")
    return f"{item.get('type', 'item')} {known}" if known else str(item.get("type"))


def _released(decision: Decision) -> str:
    calls = ", ".join(call.name for call in decision.calls)
    return calls or "an answer"


def _execute(call: ToolCall) -> ToolResult:
    """Read a file of the fixture project; whatever else is asked for is an observation."""
    path = str(call.arguments.get("path"))
    return ToolResult(call.call_id, workspace_files().get(path, f"error: there is no {path}"))


async def talk(*script: Scripted, by_id: bool = True) -> Talk:
    """Ask a model whose openings follow `script`, turn by turn, until it answers.

    `by_id` says whether it continues by response ID, or sends the whole history each time. Both
    replay natively. Nothing waits: the clock is a mock one. Raises what `complete` raises.
    """
    clock = MockClock()
    transport = ReplayTransport(script, clock)
    model = StreamingModel(transport, "example-model", clock=clock, native=True)
    asked = ContinuingModel(model) if by_id else model
    history: list[Entry] = [QUESTION]
    decisions: list[Decision] = []
    executed: list[ToolCall] = []
    while not decisions or decisions[-1].calls:
        decision = await asked.complete(tuple(history), tools())
        decisions.append(decision)
        executed += decision.calls
        history += [decision.message(), *map(_execute, decision.calls)]
    tried = enumerate(script[: len(transport.requests)], 1)
    return Talk(
        requests=tuple(transport.requests),
        decisions=tuple(decisions),
        refused={n: str(each.failure()) for n, each in tried if isinstance(each, Refusal)},
        executed=tuple(executed),
    )

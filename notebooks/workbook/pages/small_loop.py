"""The small loop: decide, run what was decided, tell the model what came of it, again.

It is synchronous, has no limits and no permission: the smallest loop that can be read in one
glance, with two models that need no network. What it has from the start is the boundary: it
knows nothing of a provider but `complete(history, tools)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from agentlib.assembly import Decision
from agentlib.conversation import Catalog, Entry, ToolCall, ToolResult
from agentlib.reader import ResponseReader
from agentlib.recordings.capture import Capture


class Model(Protocol):
    """The provider boundary: all that the loop knows of a model."""

    def complete(self, history: Sequence[Entry], tools: Catalog) -> Decision:
        """Return one whole decision. Raises a ResponseFailure where the stream gave none."""
        ...


class Tools(Protocol):
    """What the loop needs of tools: what is exposed, and a way to run one call."""

    @property
    def catalog(self) -> Catalog:
        """The tools that the model may ask for."""
        ...

    def run(self, call: ToolCall) -> ToolResult:
        """Run one call and return what came of it, an ordinary failure included."""
        ...


def run(model: Model, history: Iterable[Entry], tools: Tools) -> list[Entry]:
    """Run turns until the model asks for nothing more; return the whole history.

    Whatever `complete` raises passes through: nothing of that turn was run or recorded.
    """
    history = list(history)
    while True:
        decision = model.complete(history, tools.catalog)
        history.append(decision.message())
        if not decision.calls:
            return history
        for call in decision.calls:
            history.append(tools.run(call))


class ScriptedModel:
    """A model that gives prepared decisions, one a turn, whatever it is told."""

    def __init__(self, *decisions: Decision) -> None:
        self._decisions = decisions
        self.turns = 0

    def complete(self, history: Sequence[Entry], tools: Catalog) -> Decision:
        """Return the next decision of the script; IndexError where the script is over."""
        del history, tools
        self.turns += 1
        return self._decisions[self.turns - 1]


class RecordedModel:
    """A model whose turns are recorded streams, read through the same gate as a live one."""

    def __init__(self, *captures: Capture) -> None:
        self._captures = captures
        self.turns = 0

    def complete(self, history: Sequence[Entry], tools: Catalog) -> Decision:
        """Return the decision that the next recording releases, or raise why it releases none."""
        del history
        self.turns += 1
        stream = self._captures[self.turns - 1]
        reader = ResponseReader(stream.provider, tools)
        for event in stream.events:
            decision = reader.accept(event.data)
            if decision is not None:
                return decision
        # In Chat Completions it is the clean end that releases.
        decision = reader.end()
        if decision is None:
            raise AssertionError("end() returns a decision or raises")
        return decision


def said(text: str = "", *calls: ToolCall) -> Decision:
    """Return a decision for a script: a text, or calls, or both."""
    return Decision("scripted", text, "", calls, None)


def wants(call_id: str, name: str, **arguments: str) -> ToolCall:
    """Return a call for a script."""
    return ToolCall(call_id, name, arguments)  # type: ignore[arg-type]

"""What the gate looks at: the buffers and texts of a response, and how it ended. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentlib.conversation import Catalog
from agentlib.jsonvalues import FrozenObject, StrictJSONError, join_surrogates, strict_loads
from agentlib.vocabulary import Completed, Stopped, TerminalCall, TerminalOther


@dataclass(frozen=True, slots=True)
class Buffer:
    """A call as it was streamed: its argument text so far, never parsed."""

    call_id: str
    name: str
    item_id: str
    text: str
    done: bool
    caller: FrozenObject | None = None


@dataclass(frozen=True, slots=True)
class StreamedText:
    """A text or refusal as it was streamed."""

    part: str
    text: str
    refusal: bool


@dataclass(frozen=True, slots=True)
class Violation:
    """The reason why reading stopped before a terminal event, under the check that it failed."""

    check: str
    reason: str


@dataclass(frozen=True)
class Evidence:
    """All that is known of a response when the gate looks at it.

    `end` is its terminal event, None while it streams; `violation` why reading stopped without
    one. `catalog` None means that no catalog was given: two checks are then not made.
    """

    response_id: str | None
    buffers: tuple[Buffer, ...] = ()
    texts: tuple[StreamedText, ...] = ()
    end: Completed | Stopped | None = None
    violation: Violation | None = None
    catalog: Catalog | None = None

    @cached_property
    def calls(self) -> tuple[TerminalCall, ...]:
        """The calls in the order in which they would run."""
        items = self.end.items if isinstance(self.end, Completed) else None
        if items is None:
            return tuple(TerminalCall(b.call_id, b.name, b.text, b.item_id) for b in self.buffers)
        return tuple(item for item in items if isinstance(item, TerminalCall))

    @cached_property
    def others(self) -> tuple[TerminalOther, ...]:
        """The items that are neither text nor call."""
        return self.end.others if isinstance(self.end, Completed) else ()

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """Each call's arguments: a plain JSON value, or the StrictJSONError of its text."""
        return tuple(self._parse(call) for call in self.calls)

    def _parse(self, call: TerminalCall) -> Any:
        text = join_surrogates(call.arguments)
        tool = self.catalog.get(call.name) if self.catalog is not None else None
        # Some servers send an empty text, some `null`, where a call takes no arguments.
        nothing = not text or text.strip() == "null"
        if nothing and tool is not None and tool.takes_nothing:
            return {}
        try:
            return strict_loads(text)
        except StrictJSONError as error:
            return error

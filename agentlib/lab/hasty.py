"""The counterfactual: an adapter that acts at the item's done, as real frameworks have shipped.

It looks at one event at a time and asks nothing of the response as a whole. The stepper counts
what it would have executed; no tool is ever called here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class HastyAction(NamedTuple):
    """A call that a hasty adapter would have executed at this event (number, from 1)."""

    event: int
    call_id: str
    name: str


class HastyAdapter:
    """Acts as soon as one call's arguments are said to be done.

    That is the item's done in the Responses API, and the end of its block in Messages. Chat
    Completions says no such thing: there it acts at a finish reason, whichever it is.
    """

    def __init__(self) -> None:
        self.actions: list[HastyAction] = []
        self._names: dict[str, tuple[str, str]] = {}
        self._acted: set[str] = set()

    def accept(self, number: int, native: Mapping[str, Any]) -> None:
        """Look at event `number`, a decoded native event, and note an action where it would act."""
        kind = native.get("type")
        item = native.get("item")
        if kind == "response.output_item.added" and isinstance(item, dict):
            self._names[str(item.get("id"))] = _identity(item)
        elif kind == "response.output_item.done" and isinstance(item, dict):
            if item.get("type") == "function_call":
                self._act(number, *_identity(item))
        elif kind == "response.function_call_arguments.done":
            self._act(number, *self._names.get(str(native.get("item_id")), ("", "")))
        elif kind == "content_block_start":
            self._name_block(native)
        elif kind == "content_block_stop":
            self._act(number, *self._names.get(f"block {native.get('index')}", ("", "")))
        elif "choices" in native:
            self._read_chunk(number, native["choices"])

    def _name_block(self, native: Mapping[str, Any]) -> None:
        block = native.get("content_block")
        if isinstance(block, dict) and block.get("type") == "tool_use":
            identity = str(block.get("id", "")), str(block.get("name", ""))
            self._names[f"block {native.get('index')}"] = identity

    def _read_chunk(self, number: int, choices: object) -> None:
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta")
        calls = delta.get("tool_calls") if isinstance(delta, dict) else None
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and call.get("id") and function.get("name"):
                self._names[str(call["id"])] = str(call["id"]), str(function["name"])
        if choice.get("finish_reason"):
            for call_id, name in self._names.values():
                self._act(number, call_id, name)

    def _act(self, number: int, call_id: str, name: str) -> None:
        if name and call_id not in self._acted:
            self._acted.add(call_id)
            self.actions.append(HastyAction(number, call_id, name))


def _identity(item: Mapping[str, Any]) -> tuple[str, str]:
    return str(item.get("call_id", "")), str(item.get("name", ""))

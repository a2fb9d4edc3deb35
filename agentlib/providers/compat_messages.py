"""The filters for what servers of the Messages API are known to get wrong (see `compat`)."""

from __future__ import annotations

from agentlib.jsonvalues import dumps
from agentlib.providers.fields import Native
from agentlib.providers.translator import Filter
from agentlib.vocabulary import Event


class WholeInput(Filter):
    """Takes a tool's input that stands whole in the start of its block as its one fragment."""

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the event; an input in the start of a call becomes a delta after it."""
        block = native.get("content_block")
        if native.get("type") != "content_block_start" or not isinstance(block, dict):
            return super().translate(native)
        whole = block.get("input")
        if block.get("type") != "tool_use" or not isinstance(whole, dict) or not whole:
            return super().translate(native)
        if block.get("caller"):
            return super().translate(native)
        self.note("whole-input: a call's input came whole in the start of its block")
        delta = {"type": "input_json_delta", "partial_json": dumps(whole)}
        more = {"type": "content_block_delta", "index": native.get("index"), "delta": delta}
        start = {**native, "content_block": {**block, "input": {}}}
        return (*super().translate(start), *super().translate(more))

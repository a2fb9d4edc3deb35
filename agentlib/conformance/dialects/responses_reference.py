"""The reference reader of the Responses dialect, written from OpenAI's API reference.

`response.created` comes once and before any item; the response ID is the same throughout;
sequence numbers, where given, rise. An item is added once, by an ID and an output index of its
own, and each later event of it agrees on both, on its kind, its call ID and its name. A fragment
comes between added and done. Every restatement (text done, part done, arguments done, item done,
terminal output) holds what was streamed. The terminal event restates every item, completed, in the
order of their indexes (where they have none, in the order in which they were added), and none
besides.

So everything is sent at least twice, in two events: no mutation to one event alone can go unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentlib.conformance.dialects.common import Native
from agentlib.conformance.dialects.reference import (
    NotAllowed,
    content,
    joined,
    objects,
    require,
    string,
    whole,
)
from agentlib.conformance.script import Content


def decode(events: Sequence[Native]) -> Content:
    """Return what the stream expresses; raises where the API does not allow it."""
    reader = _ReferenceReader()
    for event in events:
        if event["type"] == "response.completed":
            reader.follow(event)
            return reader.completed(event["response"])
        reader.take(event)
    raise NotAllowed


@dataclass(slots=True)
class _Item:
    """An item as the reference reader saw it added, and what was streamed of it."""

    kind: str
    index: int | None
    call_id: str = ""
    name: str = ""
    parts: dict[int, str] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    done: bool = False


class _ReferenceReader:
    """Reads event by event."""

    def __init__(self) -> None:
        self.response_id: str | None = None
        self.created = False
        self.sequence: int | None = None
        self.items: dict[str, _Item] = {}

    def follow(self, event: Native) -> None:
        number = event.get("sequence_number")
        if number is not None:
            require(self.sequence is None or whole(number) > self.sequence)
            self.sequence = whole(number)

    def take(self, event: Native) -> None:
        self.follow(event)
        kind = string(event["type"])
        if kind in ("response.created", "response.queued", "response.in_progress"):
            self.named(event["response"]["id"])
            require(not (kind == "response.created" and self.created))
            self.created = self.created or kind == "response.created"
        elif kind == "response.output_item.added":
            self.added(event)
        elif kind == "response.output_item.done":
            self.done(event)
        elif kind in ("response.failed", "response.incomplete", "error"):
            raise NotAllowed
        elif kind in _OF_AN_ITEM:
            self.inside(kind, event)

    def named(self, response_id: object) -> None:
        require(string(response_id) and self.response_id in (None, response_id))
        self.response_id = string(response_id)

    def added(self, event: Native) -> None:
        require(self.created)
        native, index = event["item"], event.get("output_index")
        require(string(native["id"]) and native["id"] not in self.items)
        require(index is None or all(whole(index) != item.index for item in self.items.values()))
        item = self.items[native["id"]] = _Item(string(native["type"]), index)
        if item.kind == "function_call":
            item.call_id, item.name = string(native["call_id"]), string(native["name"])
            require(item.call_id not in [i.call_id for i in self.items.values() if i is not item])
            if native.get("arguments"):
                item.parts[0] = string(native["arguments"])

    def find(self, item_id: object, event: Native) -> _Item:
        item = self.items[string(item_id)]
        require(event.get("output_index") in (None, item.index))
        return item

    def inside(self, kind: str, event: Native) -> None:
        item = self.find(event["item_id"], event)
        require(not item.done)
        wanted, field_name = _OF_AN_ITEM[kind]
        require(item.kind == wanted)
        if wanted == "reasoning" or not field_name:
            return
        index = event.get("content_index")
        place = 0 if index is None else whole(index)
        if kind.endswith("refusal.delta"):
            item.refused.add(place)
        if field_name == "delta":
            require(place not in item.ended)
            item.parts[place] = item.parts.get(place, "") + string(event["delta"])
        else:
            sent = event["part"] if field_name == "part" else event
            self.agree(item, event)
            self.restate(item, place, _text_of(sent))

    def restate(self, item: _Item, place: int, text: str) -> None:
        if not item.parts.get(place) and place not in item.ended:
            item.parts[place] = text
        require(joined(item.parts[place]) == joined(text))
        item.ended.add(place)

    def agree(self, item: _Item, native: Mapping[str, Any]) -> None:
        require(native.get("call_id") in (None, item.call_id))
        require(native.get("name") in (None, item.name))

    def done(self, event: Native) -> None:
        native = event["item"]
        item = self.find(native["id"], event)
        require(item.kind == native["type"] and not item.done)
        self.whole(item, native)
        item.done = True

    def whole(self, item: _Item, native: Mapping[str, Any]) -> None:
        if item.kind == "function_call":
            require(native["call_id"] == item.call_id and native["name"] == item.name)
            self.restate(item, 0, string(native["arguments"]))
        elif item.kind == "message":
            parts = objects(native["content"])
            require(set(item.parts) <= set(range(len(parts))))
            for place, part in enumerate(parts):
                self.restate(item, place, _text_of(part))
                require((part["type"] == "refusal") == (place in item.refused))

    def completed(self, body: Mapping[str, Any]) -> Content:
        require(body["status"] == "completed" and body.get("error") is None and self.created)
        self.named(body["id"])
        output = objects(body["output"])
        order = [string(native["id"]) for native in output]
        ranks = []
        for place, (item_id, item) in enumerate(self.items.items()):
            rank = place if item.index is None else item.index
            ranks.append((rank, item_id))
        require(order == [item_id for _, item_id in sorted(ranks)])
        calls: list[tuple[str, str, str]] = []
        texts: tuple[list[str], list[str]] = ([], [])
        for native in output:
            item = self.items[native["id"]]
            require(item.kind == native["type"])
            self.whole(item, native)
            if item.kind == "function_call":
                require(native["status"] == "completed")
                calls.append((item.call_id, item.name, item.parts[0]))
            elif item.kind == "message":
                for place, text in sorted(item.parts.items()):
                    texts[place in item.refused].append(text)
        return content(calls, *texts)


# Which kind of item each event is about, and under which key it sends or restates its text.
_OF_AN_ITEM: dict[str, tuple[str, str]] = {
    "response.function_call_arguments.delta": ("function_call", "delta"),
    "response.function_call_arguments.done": ("function_call", "arguments"),
    "response.content_part.added": ("message", ""),
    "response.output_text.delta": ("message", "delta"),
    "response.output_text.done": ("message", "text"),
    "response.refusal.delta": ("message", "delta"),
    "response.refusal.done": ("message", "refusal"),
    "response.content_part.done": ("message", "part"),
    "response.reasoning_summary_text.delta": ("reasoning", ""),
    "response.reasoning_summary_text.done": ("reasoning", ""),
}


def _text_of(native: Mapping[str, Any]) -> str:
    key = next(key for key in ("arguments", "text", "refusal", "") if key in native or not key)
    return string(native[key])

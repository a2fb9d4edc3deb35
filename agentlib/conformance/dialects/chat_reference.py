"""The reference reader of the Chat dialect, from OpenAI's API reference, "Chat Completions".

The habits of compatible servers are part of it. The call ID is the key. An index is only a hint,
to which call a fragment without an ID belongs: servers send gaps, always 0, or none, so it
numbers nothing. A name stands once, or the same again, or comes in two parts. A finish reason
`stop` or `tool_calls` completes, the latter only with calls; an empty one is none; after it comes
the usage and nothing else. The chunk's own ID means nothing: some servers change it on every chunk.

Nothing is restated, numbered or counted: mutation that leaves a valid stream goes unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_START,
    OPENING,
    TEXT,
    WHOLE_CALL,
    Native,
)
from agentlib.conformance.dialects.reference import Unseen, content, objects, require, string, whole
from agentlib.conformance.script import TOOLS, Content

NAMES = frozenset(tool.name for tool in TOOLS)

_ANYWHERE = frozenset({CALL_START, ARGUMENTS, WHOLE_CALL})
_CALL = frozenset({CALL_START, WHOLE_CALL})
_TEXT = frozenset({TEXT})

UNSEEN: tuple[Unseen, ...] = (
    Unseen(
        "arguments",
        "arguments are sent once and chunks have no number: a fragment lost, doubled, moved, put "
        "to another call or altered, that still parses and fits the schema, stays",
        {
            "alter": _ANYWHERE,
            "drop": frozenset({ARGUMENTS}),
            "double": frozenset({ARGUMENTS}),
            "swap": frozenset({ARGUMENTS}),
            "number": frozenset({ARGUMENTS}),
            "field": frozenset({ARGUMENTS}),
        },
    ),
    Unseen(
        "a call less",
        "nothing counts the calls: one that is lost with all its chunks was never there",
        {"lost": frozenset({WHOLE_CALL}), "drop": _CALL, "field": _CALL},
    ),
    Unseen(
        "a call more",
        "nothing counts the calls: one that comes from nowhere, or from a changed ID, is one more",
        {"extra": frozenset({"before the end"}), "id": frozenset({CALL_START, ARGUMENTS})},
    ),
    Unseen(
        "the order",
        "an index is a hint that servers get wrong: calls have no order but that of appearance",
        {"swap": _CALL, "drop": frozenset({CALL_START}), "field": frozenset({CALL_START})},
    ),
    Unseen("a call ID", "a call's ID is sent once, or used as it first comes", {"id": _CALL}),
    Unseen(
        "a name",
        "a tool's name is sent once: another exposed tool that takes the same is as good",
        {"name": _CALL},
    ),
    Unseen(
        "its end",
        "the finish reason is sent once: a router that rewrites length to stop is believed",
        {"stop": frozenset({"end"})},
    ),
    Unseen(
        "the text",
        "text is sent once and chunks have no number",
        {
            "alter": _TEXT,
            "drop": _TEXT,
            "double": _TEXT,
            "swap": _TEXT,
            "field": frozenset({OPENING, TEXT}),
        },
    ),
)


def decode(events: Sequence[Native]) -> Content:
    """Return what the stream expresses; raises where the API does not allow it."""
    reader = _ReferenceReader()
    for event in events:
        reader.take(event)
    return reader.ended()


class _ReferenceReader:
    """Reads chunk by chunk."""

    def __init__(self) -> None:
        self.calls: dict[str, list[str]] = {}
        self.indexes: dict[str, int] = {}
        self.latest: dict[int, str] = {}
        self.texts: dict[str, list[str]] = {"content": [], "refusal": []}
        self.reason: str | None = None

    def take(self, chunk: Native) -> None:
        require(chunk.get("error") is None and chunk.get("object") != "error")
        choices = chunk.get("choices")
        if not choices:
            return
        require(len(choices) == 1 and choices[0].get("index") in (None, 0))
        delta = choices[0].get("delta") or {}
        sent = [value for key, value in delta.items() if value and key != "role"]
        require(self.reason is None or not sent)
        for key, texts in self.texts.items():
            if delta.get(key) is not None:
                texts.append(string(delta[key]))
        for fragment in objects(delta["tool_calls"]) if delta.get("tool_calls") else ():
            self.fragment(fragment)
        reason = choices[0].get("finish_reason")
        if reason not in (None, ""):
            require(reason in ("stop", "tool_calls") and self.reason in (None, reason))
            self.reason = reason

    def fragment(self, fragment: Mapping[str, Any]) -> None:
        require(fragment.get("type") in (None, "", "function"))
        index, call_id = fragment.get("index"), fragment.get("id") or ""
        if not call_id:
            call_id = self.latest[whole(index)]
        call = self.calls.setdefault(string(call_id), ["", ""])
        if index is not None:
            require(self.indexes.setdefault(call_id, whole(index)) == index)
            self.latest[index] = call_id
        function = fragment.get("function") or {}
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        if string(name) and name != call[0]:
            require(not call[1] and call[0] not in NAMES)
            call[0] += name
        require(not string(arguments) or call[0])
        call[1] += arguments

    def ended(self) -> Content:
        require(self.reason == "stop" or (self.reason == "tool_calls" and self.calls))
        calls = [(call_id, name, text) for call_id, (name, text) in self.calls.items()]
        return content(calls, self.texts["content"], self.texts["refusal"])

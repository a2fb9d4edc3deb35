"""The law of the Chat dialect: the referee, from OpenAI's API reference, "Chat Completions".

The habits of compatible servers are part of it. The call ID is the key. An index is only a hint,
to which call a fragment without an ID belongs: servers send gaps, always 0, or none, so it
numbers nothing. A name stands once, or the same again, or comes in two parts. A finish reason
`stop` or `tool_calls` completes, the latter only with calls; an empty one is none; after it comes
the usage and nothing else. The chunk's own ID says nothing: some servers change it on every chunk.

Nothing is restated, numbered or counted: harm that leaves a lawful stream goes unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentlib.lab.dialects.common import Native
from agentlib.lab.dialects.law import Unseen, content, law, objects, string, whole
from agentlib.lab.story import TOOLS, Content

NAMES = frozenset(tool.name for tool in TOOLS)

UNSEEN: tuple[Unseen, ...] = ()


def read_lawful(events: Sequence[Native]) -> Content:
    """Return what the stream tells; raises where the law does not allow it."""
    referee = _Referee()
    for event in events:
        referee.take(event)
    return referee.ended()


class _Referee:
    """The law, chunk by chunk."""

    def __init__(self) -> None:
        self.calls: dict[str, list[str]] = {}
        self.indexes: dict[str, int] = {}
        self.latest: dict[int, str] = {}
        self.texts: dict[str, list[str]] = {"content": [], "refusal": []}
        self.reason: str | None = None

    def take(self, chunk: Native) -> None:
        law(chunk.get("error") is None and chunk.get("object") != "error")
        choices = chunk.get("choices")
        if not choices:
            return
        law(len(choices) == 1 and choices[0].get("index") in (None, 0))
        delta = choices[0].get("delta") or {}
        said = [value for key, value in delta.items() if value and key != "role"]
        law(self.reason is None or not said)
        for key, texts in self.texts.items():
            if delta.get(key) is not None:
                texts.append(string(delta[key]))
        for fragment in objects(delta["tool_calls"]) if delta.get("tool_calls") else ():
            self.fragment(fragment)
        reason = choices[0].get("finish_reason")
        if reason not in (None, ""):
            law(reason in ("stop", "tool_calls") and self.reason in (None, reason))
            self.reason = reason

    def fragment(self, fragment: Mapping[str, Any]) -> None:
        law(fragment.get("type") in (None, "", "function"))
        index, call_id = fragment.get("index"), fragment.get("id") or ""
        if not call_id:
            call_id = self.latest[whole(index)]
        told = self.calls.setdefault(string(call_id), ["", ""])
        if index is not None:
            law(self.indexes.setdefault(call_id, whole(index)) == index)
            self.latest[index] = call_id
        function = fragment.get("function") or {}
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        if string(name) and name != told[0]:
            law(not told[1] and told[0] not in NAMES)
            told[0] += name
        law(not string(arguments) or told[0])
        told[1] += arguments

    def ended(self) -> Content:
        law(self.reason == "stop" or (self.reason == "tool_calls" and self.calls))
        calls = [(call_id, name, text) for call_id, (name, text) in self.calls.items()]
        return content(calls, self.texts["content"], self.texts["refusal"])

"""What an agent asked: its API, its tools, its conversation and the results in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentlib.attack.apis import Api
from agentlib.faultserver.server import Request

# Longest first: the end of a path says which API it is.
_ENDINGS: tuple[tuple[str, Api], ...] = (
    ("/chat/completions", "chat"),
    ("/responses", "responses"),
    ("/messages", "messages"),
)
_NAME_JOINTS = ("-", ".", "_", "/")


@dataclass(frozen=True)
class Asked:
    """One request to a model.

    `tools` maps each tool's name to its schema; `calls` are the IDs of the calls in the
    conversation, `results` the ID and the text of each result, in order. `entries` is the
    conversation as JSON text, and `continues` whether it goes on from an earlier response by ID.
    """

    api: Api
    streams: bool
    tools: Mapping[str, Mapping[str, Any]]
    calls: tuple[str, ...]
    results: tuple[tuple[str, str], ...]
    entries: str
    continues: bool

    def named(self, tool: str) -> str | None:
        """Return the name under which `tool` is offered: exact, or one that only it ends."""
        if tool in self.tools:
            return tool
        ends = tuple(joint + tool for joint in _NAME_JOINTS)
        found = [name for name in self.tools if name.endswith(ends)]
        return found[0] if len(found) == 1 else None


def read_asked(request: Request) -> Asked | None:
    """Return what a request asks of a model, or None where it asks something else."""
    api = next((api for end, api in _ENDINGS if request.path.endswith(end)), None)
    body = request.body
    if api is None or body is None or request.method != "POST":
        return None
    key = "input" if api == "responses" else "messages"
    entries = [each for each in _list(body.get(key)) if isinstance(each, dict)]
    return Asked(
        api,
        body.get("stream") is True,
        dict(_tools(body.get("tools"))),
        tuple(_calls(entries)),
        tuple(_results(entries)),
        json.dumps(body.get(key), sort_keys=True),
        bool(body.get("previous_response_id") or body.get("conversation")),
    )


def _tools(tools: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in _list(tools):
        if not isinstance(tool, dict):
            continue
        spec = tool["function"] if isinstance(tool.get("function"), dict) else tool
        schema = spec.get("parameters", spec.get("input_schema"))
        if isinstance(spec.get("name"), str):
            empty = {"type": "object", "properties": {}}
            yield spec["name"], schema if isinstance(schema, dict) else empty


def _calls(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        if entry.get("type") == "function_call":
            yield str(entry.get("call_id"))
        for call in _list(entry.get("tool_calls")):
            if isinstance(call, dict):
                yield str(call.get("id"))
        for block in _blocks(entry, "tool_use"):
            yield str(block.get("id"))


def _results(entries: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if entry.get("type") == "function_call_output":
            yield str(entry.get("call_id")), _text(entry.get("output"))
        if entry.get("role") == "tool":
            yield str(entry.get("tool_call_id")), _text(entry.get("content"))
        for block in _blocks(entry, "tool_result"):
            yield str(block.get("tool_use_id")), _text(block.get("content"))


def _blocks(entry: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    for block in _list(entry.get("content")):
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in _list(content) if isinstance(part, dict)]
    if parts and all(isinstance(part, str) for part in parts):
        return "".join(str(part) for part in parts)
    return json.dumps(content)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def history_problem(asked: Asked) -> str:
    """Return what is wrong with the calls and results of a conversation, or ""."""
    results = [call_id for call_id, _ in asked.results]
    for call_id in dict.fromkeys(results):
        if results.count(call_id) > max(1, asked.calls.count(call_id)):
            return "one call has two results"
        if call_id not in asked.calls and not asked.continues:
            return "a result stands there for a call that is not in the conversation"
    if any(call_id not in results for call_id in asked.calls):
        return "a call stands there without a result"
    return ""

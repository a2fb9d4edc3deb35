"""Replies of a server that speaks Chat Completions, streamed and whole: for tests and lessons.

Both are authored here; nothing is recorded from a service.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from agentlib.decisions.context import DecisionContext, DecisionTool
from agentlib.faultserver.replies import Reply

Call: TypeAlias = tuple[str, Mapping[str, Any] | str]
USAGE = {"prompt_tokens": 90, "completion_tokens": 10}


class Edit(BaseModel):
    """What the tool `edit` takes."""

    path: str
    old: str
    new: str


class Read(BaseModel):
    """What the tool `read` takes."""

    path: str
    lines: int = 20


TOOLS = (
    DecisionTool("edit", "Replace a text in a file.", Edit),
    DecisionTool("read", "Read the first lines of a file.", Read),
)
CONTEXT = DecisionContext("Please repair add().", TOOLS)
EDIT: Call = ("edit", {"path": "calculator.py", "old": "return a - b", "new": "return a + b"})


def streamed(
    *calls: Call,
    text: str = "",
    finish: str | None = None,
    usage: Mapping[str, int] | None = USAGE,
) -> Reply:
    """Return a reply as a stream of chunks, its arguments in two fragments each."""
    chunks = [_chunk({"role": "assistant", "content": text})]
    for index, (name, arguments) in enumerate(calls):
        written = _written(arguments)
        half = len(written) // 2
        first = {"name": name, "arguments": written[:half]}
        call = {"index": index, "id": f"call_{index + 1}", "type": "function", "function": first}
        rest = {"index": index, "function": {"arguments": written[half:]}}
        chunks += [_chunk({"tool_calls": [call]}), _chunk({"tool_calls": [rest]})]
    chunks.append(_chunk({}, finish or _finish(calls)))
    if usage is not None:
        chunks.append({**_head("chat.completion.chunk"), "choices": [], "usage": dict(usage)})
    return events(chunks)


def whole(
    *calls: Call,
    text: str = "",
    finish: str | None = None,
    usage: Mapping[str, int] | None = USAGE,
) -> Reply:
    """Return the same reply as one JSON object, not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": _written(arguments)},
            }
            for number, (name, arguments) in enumerate(calls, 1)
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish or _finish(calls)}
    body = {**_head("chat.completion"), "choices": [choice]}
    return as_json({**body, "usage": dict(usage)} if usage is not None else body)


def as_json(value: object) -> Reply:
    """Return a JSON value as an answer with status 200."""
    headers = {"content-type": "application/json"}
    return Reply(headers=headers, body=json.dumps(value).encode(), framing="length")


def events(values: Iterable[object], *, done: bool = True) -> Reply:
    """Return JSON values as a stream of events, by default with its `[DONE]`."""
    lines = [*map(json.dumps, values), *(["[DONE]"] if done else [])]
    return Reply(body="".join(f"data: {line}\n\n" for line in lines).encode())


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl_authored", "object": kind, "created": 1, "model": "example-model"}


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {**_head("chat.completion.chunk"), "choices": [choice]}


def _written(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _finish(calls: Sequence[Call]) -> str:
    return "tool_calls" if calls else "stop"

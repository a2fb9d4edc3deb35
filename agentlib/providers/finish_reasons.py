"""Which reason for its end may come with calls, which must, and which must not: one table.

Sources, by the pages' own names. OpenAI, "Chat Completions", the chunk object: a finish reason is
`stop` at a natural end and `tool_calls` where a tool was called; its guide "Function calling" adds
that a call forced by `tool_choice` ends with `stop`, and compatible endpoints say `stop` always.
Anthropic, "Handling stop reasons": `tool_use` is the one with which a client tool is called.
Google, "Generating content", `FinishReason`: `STOP` is the natural end, with calls and without.
OpenAI, "Responses": there is no reason but the status, `completed` with calls and without.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from agentlib.jsonvalues import quote

Calls: TypeAlias = Literal["may", "must", "never"]


class Reason(NamedTuple):
    """A reason with which a response of `api` is complete, and whether it then holds calls."""

    api: str
    name: str
    calls: Calls


_TABLE = (
    Reason("responses", "completed", "may"),
    Reason("chat", "stop", "may"),
    Reason("chat", "tool_calls", "must"),
    Reason("gemini", "STOP", "may"),
    Reason("messages", "end_turn", "never"),
    Reason("messages", "stop_sequence", "never"),
    Reason("messages", "tool_use", "must"),
)
# Any other reason completes nothing, with calls or without.
COMPLETING: dict[str, dict[str, Calls]] = {}
for _row in _TABLE:
    COMPLETING.setdefault(_row.api, {})[_row.name] = _row.calls


def disagreement(api: str, reason: str, *, calls: bool) -> str:
    """Return how a reason of the table disagrees with the presence of calls; empty where not."""
    expected = COMPLETING[api][reason]
    if expected == "may" or (expected == "must") is calls:
        return ""
    word = "finish reason" if api == "chat" else "stop reason"
    held = "calls" if calls else "no call: it announces one, and none came"
    return f"its {word} is {quote(reason)} and it holds {held}"

"""The reference reader of the Messages dialect, from Anthropic's page "Streaming messages".

`message_start` comes once and first. Blocks begin in the order
of their indexes, which count from 0 without a gap, since an index is the block's place in the
finished content; each ends once, and a fragment comes between, of its block's own kind.
`message_stop` completes a message whose blocks have all ended and whose stop reason agrees with
what it holds: `tool_use` with calls, `end_turn` or `stop_sequence` without.

Blocks are numbered, so a lost one leaves a gap, unless it is the last: nothing counts them.
Fragments are not numbered, and nothing is restated: a mutation into a valid stream goes unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentlib.conformance.dialects.common import ARGUMENTS, CALL_START, TEXT, Native
from agentlib.conformance.dialects.reference import (
    NotAllowed,
    Unseen,
    content,
    require,
    string,
    whole,
)
from agentlib.conformance.script import Content

_ARGUMENTS, _TEXT = frozenset({ARGUMENTS}), frozenset({TEXT})

UNSEEN: tuple[Unseen, ...] = (
    Unseen(
        "arguments",
        "input is sent once and fragments have no number: one lost, doubled, moved, put to another "
        "open block or altered, that still parses and fits the schema, stays",
        {
            "alter": _ARGUMENTS,
            "drop": _ARGUMENTS,
            "double": _ARGUMENTS,
            "swap": _ARGUMENTS,
            "number": _ARGUMENTS,
        },
    ),
    Unseen(
        "a call less",
        "nothing counts the blocks: where the last call is lost with all its events, and another "
        "is left, it was never there",
        {"lost": frozenset({"whole call"})},
    ),
    Unseen(
        "a call more",
        "nothing counts the blocks: a call from nowhere, at the next index, is one more",
        {"extra": frozenset({"before the end"})},
    ),
    Unseen("a call ID", "a call's ID is sent once", {"id": frozenset({CALL_START})}),
    Unseen(
        "a name",
        "a tool's name is sent once: another exposed tool that takes the same is as good",
        {"name": frozenset({CALL_START})},
    ),
    Unseen(
        "its end",
        "the stop reason is sent once: a gateway that rewrites max_tokens to tool_use is believed",
        {"stop": frozenset({"end"})},
    ),
    Unseen(
        "the text",
        "text is sent once and fragments have no number",
        {"alter": _TEXT, "drop": _TEXT, "double": _TEXT, "swap": _TEXT, "number": _TEXT}
        | {"field": _TEXT},
    ),
)


@dataclass(slots=True)
class _Block:
    """A block as the reference reader saw it start, and what was streamed of it."""

    kind: str
    call_id: str = ""
    name: str = ""
    sent: list[str] = field(default_factory=list)
    ended: bool = False


def decode(events: Sequence[Native]) -> Content:
    """Return what the stream expresses; raises where the API does not allow it."""
    blocks: list[_Block] = []
    opened, reason = False, None
    for event in events:
        kind = string(event["type"])
        require(kind != "error" and (opened or kind == "message_start" or kind not in _KINDS))
        if kind == "message_stop":
            return _stopped(blocks, reason)
        if kind == "message_start":
            require(not opened and string(event["message"]["id"]))
            opened = True
        elif kind == "content_block_start":
            require(whole(event["index"]) == len(blocks))
            blocks.append(_started(event["content_block"]))
        elif kind in ("content_block_delta", "content_block_stop"):
            require(whole(event["index"]) >= 0)
            _continue(blocks[event["index"]], event)
        elif kind == "message_delta":
            new = event["delta"].get("stop_reason")
            require(new is None or reason in (None, new))
            reason = new if new is not None else reason
    raise NotAllowed


_KINDS = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    }
)
# Which kind of block each kind of fragment belongs to, and the key of what counts of it. What
# concerns neither text nor call, such as a signature, is not judged.
_FRAGMENTS = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("tool_use", "partial_json"),
    "thinking_delta": ("thinking", ""),
}


def _started(native: Native) -> _Block:
    block = _Block(string(native["type"]))
    if block.kind == "tool_use":
        require(native.get("input") in (None, {}))
        block.call_id, block.name = string(native["id"]), string(native["name"])
    elif block.kind == "text" and native.get("text") is not None:
        block.sent.append(string(native["text"]))
    return block


def _continue(block: _Block, event: Native) -> None:
    require(not block.ended)
    if event["type"] == "content_block_stop":
        block.ended = True
        return
    delta = event["delta"]
    if string(delta["type"]) in _FRAGMENTS:
        kind, key = _FRAGMENTS[delta["type"]]
        require(kind == block.kind)
        block.sent.append(string(delta[key]) if key else "")


def _stopped(blocks: Sequence[_Block], reason: str | None) -> Content:
    require(all(block.ended for block in blocks))
    calls = [(b.call_id, b.name, "".join(b.sent)) for b in blocks if b.kind == "tool_use"]
    require(reason in (("tool_use",) if calls else ("end_turn", "stop_sequence")))
    require(len({call_id for call_id, _, _ in calls}) == len(calls))
    inputs = [(call_id, name, sent or "{}") for call_id, name, sent in calls]
    return content(inputs, ("".join(b.sent) for b in blocks if b.kind == "text"))

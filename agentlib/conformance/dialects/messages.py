"""The Anthropic Messages dialect. Source: Anthropic's API reference, "Streaming messages".

Its reference reader is in `messages_reference`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_END,
    CALL_START,
    OPENING,
    REASONING,
    STOP_REASON,
    TERMINAL,
    TEXT,
    TEXT_END,
    USAGE,
    Dialect,
    EncodedEvent,
    Encoding,
    Native,
    Variant,
    changed,
    merged,
    pieces,
    with_keep_alives,
)
from agentlib.conformance.dialects.messages_reference import UNSEEN, decode
from agentlib.conformance.script import Content, Script
from agentlib.conversation import Usage

STOPPED = {"length": "max_tokens", "filter": "refusal"}
ERROR: Native = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
KEEP_ALIVES: tuple[Native, ...] = ({"type": "ping"}, {"type": "something_new", "index": 99})


@dataclass(frozen=True, slots=True)
class MessagesFraming:
    """How a server of this API cuts a script into events.

    `piece` is the size of a fragment in characters, or UTF-16 code units where `units` is set.
    `first` says how a tool's input begins: with an "empty" fragment, or "none"; "nothing" sends
    no fragment at all where the input is empty. `usage` stands at the "start" and in the delta,
    only in the "delta", or in a "second" delta.
    """

    name: str
    piece: int = 6
    units: bool = False
    first: str = "empty"
    interleaved: bool = False
    in_start: bool = False
    end: str = "end_turn"
    usage: str = "start"
    keep_alives: bool = False


def _framings() -> Iterator[MessagesFraming]:
    plain = MessagesFraming("plain")
    yield plain
    for piece, first, interleaved in product(
        (1, 4, 10_000), ("empty", "none", "nothing"), (False, True)
    ):
        name = f"pieces of {piece}, first {first}{', interleaved' if interleaved else ''}"
        yield MessagesFraming(name, piece, first=first, interleaved=interleaved)
    yield replace(plain, name="pieces of UTF-16", piece=1, units=True)
    yield replace(plain, name="text in the block's start", in_start=True)
    yield replace(plain, name="end stop_sequence", end="stop_sequence")
    yield replace(plain, name="usage delta", usage="delta")
    yield replace(plain, name="usage second", usage="second")
    yield replace(plain, name="pings and unknown kinds", keep_alives=True)


class Messages(Dialect):
    """Nothing restated; blocks numbered, fragments not."""

    name = "messages"
    title = "Anthropic Messages"
    ids = frozenset({"id"})
    numbers = frozenset({"index"})
    names = frozenset({"name"})
    fragments = frozenset({"text", "partial_json"})
    unseen = UNSEEN

    framings = tuple(_framings())
    mutated = (
        framings[0],
        MessagesFraming("interleaved, no empty fragment", 3, first="none", interleaved=True),
        MessagesFraming("one fragment each", 10_000, first="nothing", usage="second"),
    )

    def expresses(self, script: Script) -> bool:
        """Say whether there are words for it: a refusal is no complete message here."""
        return not script.refusal

    def usage(self, script: Script) -> Usage | None:
        """Return the usage: the part of the thinking in it is not reported."""
        usage = script.usage
        return usage and replace(usage, reasoning_tokens=None if script.reasoning else 0)

    def encode(self, script: Script, framing: MessagesFraming) -> Encoding:
        """Return the script's native events."""
        counters = _usage(script.usage)
        message: Native = {"id": "msg_1", "role": "assistant", "content": []}
        if framing.usage != "delta" and counters:
            message["usage"] = {**counters, "output_tokens": 1}
        tracks = [_block(place, *parts) for place, parts in enumerate(_parts(script, framing))]
        encoding = [
            EncodedEvent(OPENING, {"type": "message_start", "message": message}),
            *merged(tracks, interleaved=framing.interleaved),
            *_end(script, framing, counters),
        ]
        return with_keep_alives(encoding, KEEP_ALIVES) if framing.keep_alives else encoding

    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether it stops, without an error before, for a reason that fits its blocks."""
        reason, calls = None, False
        for event in events:
            delta, block = event.get("delta"), event.get("content_block")
            if event.get("type") == "error":
                return False
            calls = calls or (isinstance(block, dict) and block.get("type") == "tool_use")
            if event.get("type") == "message_delta" and isinstance(delta, dict):
                reason = delta.get("stop_reason") or reason
            if event.get("type") == "message_stop":
                return reason in (("tool_use",) if calls else ("end_turn", "stop_sequence"))
        return False

    def stops(self, encoding: Encoding) -> Iterator[Variant]:
        """Yield the encoding with each other stop reason, and with an error at its end."""
        for at, sent in enumerate(encoding):
            before, after = encoding[:at], encoding[at + 1 :]
            delta = sent.event.get("delta")
            if sent.event.get("type") == "message_delta" and isinstance(delta, dict):
                for reason in (*_REASONS, None):
                    if reason != delta.get("stop_reason"):
                        other = changed(sent, delta={**delta, "stop_reason": reason})
                        yield f"stop reason {reason}", [*before, other, *after]
            if sent.event.get("type") == "message_stop":
                yield "an error event", [*before, EncodedEvent(TERMINAL, dict(ERROR)), sent, *after]

    def decode(self, events: Sequence[Native]) -> Content:
        """Return what the stream expresses; raises where the API does not allow it."""
        return decode(events)


_REASONS = (
    "tool_use",
    "end_turn",
    "stop_sequence",
    "max_tokens",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "",
)


def _parts(script: Script, framing: MessagesFraming) -> Iterator[tuple[Native, list[Native], str]]:
    """Yield each block of the script: its start, its deltas, and its call ID, if it is a call."""
    if script.reasoning:
        fragments = pieces(script.reasoning, framing.piece, units=framing.units)
        deltas: list[Native] = [{"type": "thinking_delta", "thinking": f} for f in fragments]
        deltas.append({"type": "signature_delta", "signature": "c2ln"})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas, ""
    for text in script.text:
        fragments = pieces(text, framing.piece, units=framing.units)
        start = fragments.pop(0) if framing.in_start else ""
        yield {"type": "text", "text": start}, _text_deltas(fragments), ""
    for call in script.calls:
        fragments = pieces(call.arguments, framing.piece, units=framing.units)
        if framing.first == "empty":
            fragments.insert(0, "")
        if framing.first == "nothing" and call.arguments == "{}":
            fragments = []
        deltas = [{"type": "input_json_delta", "partial_json": f} for f in fragments]
        block = {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}
        yield block, deltas, call.call_id


def _text_deltas(fragments: Sequence[str]) -> list[Native]:
    return [{"type": "text_delta", "text": fragment} for fragment in fragments]


def _block(index: int, content_block: Native, deltas: Sequence[Native], call: str) -> Encoding:
    start, inside, end = _PLACES[content_block["type"]]
    track: list[tuple[str, Native]] = [
        (start, {"type": "content_block_start", "content_block": content_block}),
        *((inside, {"type": "content_block_delta", "delta": delta}) for delta in deltas),
        (end, {"type": "content_block_stop"}),
    ]
    return [EncodedEvent(place, {**event, "index": index}, call) for place, event in track]


_PLACES = {
    "thinking": (REASONING, REASONING, REASONING),
    "text": (TEXT, TEXT, TEXT_END),
    "tool_use": (CALL_START, ARGUMENTS, CALL_END),
}


def _end(
    script: Script, framing: MessagesFraming, counters: Native | None
) -> Iterator[EncodedEvent]:
    reason = STOPPED.get(script.stop) or ("tool_use" if script.calls else framing.end)
    event: Native = {"type": "message_delta", "delta": {"stop_reason": reason}}
    first = counters if framing.usage == "delta" else _output(counters)
    place = STOP_REASON
    if framing.usage == "second":
        yield EncodedEvent(STOP_REASON, event)
        event, place = {"type": "message_delta", "delta": {}}, USAGE
    yield EncodedEvent(place, {**event, "usage": first} if first else event)
    if script.stop == "failed":
        yield EncodedEvent(TERMINAL, dict(ERROR))
    else:
        yield EncodedEvent(TERMINAL, {"type": "message_stop"})


def _output(counters: Native | None) -> Native | None:
    return counters and {"output_tokens": counters["output_tokens"]}


def _usage(usage: Usage | None) -> Native | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }

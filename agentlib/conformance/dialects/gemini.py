"""The Gemini dialect. Source: Google's API reference, "Generating content" and `FunctionCall`.

Its reference reader is in `gemini_reference`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any, Literal

from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_END,
    CALL_START,
    KEEP_ALIVE,
    REASONING,
    STOP_REASON,
    TERMINAL,
    TEXT,
    USAGE,
    WHOLE_CALL,
    Dialect,
    EncodedEvent,
    Encoding,
    Native,
    Variant,
    pieces,
    with_keep_alives,
)
from agentlib.conformance.dialects.gemini_reference import UNSEEN, decode
from agentlib.conformance.script import Content, Script, ScriptCall
from agentlib.conversation import Usage
from agentlib.jsonvalues import has_surrogate
from agentlib.mutations import follow, put

STOPPED = {"length": "MAX_TOKENS", "filter": "SAFETY"}
ERROR: Native = {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}
KEEP_ALIVES: tuple[Native, ...] = ({"candidates": []}, {"modelVersion": "gemini"})
RESPONSE_ID = "r_1"
_REASON = ("candidates", 0, "finishReason")


@dataclass(frozen=True, slots=True)
class GeminiFraming:
    """How a server of this API cuts a script into events.

    `piece` is the size of a fragment in characters, or UTF-16 code units where `units` is set.
    Arguments come whole where `whole` is set; else `end` says how a call ends: with an "empty"
    part, with one that says so ("false"), or with its "last" piece. `quoted` is how paths are
    written. The finish reason stands `beside` the last part, or in a chunk of its own. `usage`
    stands in "every" chunk, cumulative, in the "last", or in a chunk "after" it.
    """

    name: str
    piece: int = 6
    units: bool = False
    whole: bool = True
    end: Literal["empty", "false", "last"] = "empty"
    quoted: bool = False
    beside: bool = False
    usage: Literal["every", "last", "after"] = "last"
    signed: bool = False
    keep_alives: bool = False


def _framings() -> Iterator[GeminiFraming]:
    plain = GeminiFraming("plain")
    yield plain
    yield replace(plain, name="all in few chunks", piece=10_000, beside=True)
    for piece, end in product((1, 4, 10_000), ("empty", "false", "last")):
        name = f"arguments in pieces of {piece}, end {end}"
        yield GeminiFraming(name, piece, whole=False, end=end)  # type: ignore[arg-type]
    yield replace(plain, name="quoted paths", whole=False, quoted=True)
    yield replace(plain, name="pieces of UTF-16", piece=1, units=True, whole=False)
    yield replace(plain, name="finish reason beside the last part", beside=True)
    yield replace(plain, name="usage in every chunk", usage="every")
    yield replace(plain, name="usage after", usage="after")
    yield replace(plain, name="signed", signed=True)
    yield replace(plain, name="chunks without content", keep_alives=True)


class Gemini(Dialect):
    """Nothing restated, numbered or counted; calls whole, or in pieces with an end."""

    name = "gemini"
    title = "Google Gemini"
    ids = frozenset({"id", "responseId"})
    numbers = frozenset({"index"})
    names = frozenset({"name"})
    fragments = frozenset({"text", "stringValue", "jsonPath", "path", "old", "new"})
    unseen = UNSEEN

    framings = tuple(_framings())
    mutated = (
        framings[0],
        GeminiFraming("in pieces", 3, whole=False, usage="every"),
        GeminiFraming("last piece ends, reason beside", 3, whole=False, end="last", beside=True),
        GeminiFraming("signed, reason beside", 10_000, beside=True, signed=True),
    )

    def expresses(self, script: Script) -> bool:
        """Say whether there are words for it: arguments are an object here, and IDs optional."""
        return not script.refusal and all(
            call.call_id and isinstance(_object(call), dict) for call in script.calls
        )

    def usage(self, script: Script) -> Usage | None:
        """Return the usage: thinking is counted beside the candidates, so no less is billed."""
        usage = script.usage
        if usage is None:
            return None
        thought = usage.reasoning_tokens or 0
        return replace(usage, output_tokens=max(usage.output_tokens or 0, thought))

    def encode(self, script: Script, framing: GeminiFraming) -> Encoding:
        """Return the script's native events."""
        sent = [*_words(script, framing)]
        sent += chain.from_iterable(_call(call, framing) for call in script.calls)
        encoding = [_chunk(place, call, part) for place, call, part in sent]
        if script.stop == "failed":
            encoding.append(EncodedEvent(TERMINAL, dict(ERROR)))
        else:
            encoding = _finished(encoding, STOPPED.get(script.stop, "STOP"), framing)
            encoding = _billed(encoding, script.usage, framing)
        return with_keep_alives(encoding, KEEP_ALIVES) if framing.keep_alives else encoding

    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether its last finish reason is STOP, and no error and no block came."""
        reason = None
        for event in events:
            feedback = event.get("promptFeedback")
            if event.get("error") is not None:
                return False
            if isinstance(feedback, dict) and feedback.get("blockReason") is not None:
                return False
            reason = _reason(event) or reason
        return reason == "STOP"

    def stops(self, encoding: Encoding) -> Iterator[Variant]:
        """Yield the encoding with each other finish reason, an error and a block at its end."""
        for at, sent in enumerate(encoding):
            before, after = encoding[:at], encoding[at + 1 :]
            own = _reason(sent.event)
            if own is None:
                continue
            for reason in (*REASONS, None):
                if reason != own:
                    other = sent.with_event(put(sent.event, _REASON, reason))
                    yield f"finish reason {reason}", [*before, other, *after]
            for name, event in (("an error", ERROR), ("a block", _BLOCK)):
                yield name, [*before, EncodedEvent(TERMINAL, dict(event)), sent, *after]

    def decode(self, events: Sequence[Native]) -> Content:
        """Return what the stream expresses; raises where the API does not allow it."""
        return decode(events)


REASONS = (
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "FINISH_REASON_UNSPECIFIED",
    "",
)
_BLOCK: Native = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}


def _reason(event: Native) -> Any:
    try:
        return follow(event, _REASON)
    except (LookupError, TypeError):
        return None


def _object(call: ScriptCall) -> Any:
    try:
        return json.loads(call.arguments, object_pairs_hook=_once)
    except ValueError:
        return None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any] | None:
    return dict(pairs) if len(dict(pairs)) == len(pairs) else None


def _chunk(place: str, call: str, part: Native) -> EncodedEvent:
    candidate: Native = {"content": {"parts": [part], "role": "model"}, "index": 0}
    return EncodedEvent(place, {"candidates": [candidate], "responseId": RESPONSE_ID}, call)


def _words(script: Script, framing: GeminiFraming) -> Iterator[tuple[str, str, Native]]:
    for fragment in pieces(script.reasoning, framing.piece, units=framing.units):
        yield REASONING, "", {"text": fragment, "thought": True}
    for fragment in pieces("".join(script.text), framing.piece, units=framing.units):
        yield TEXT, "", {"text": fragment}
    if framing.signed and script.text:
        yield KEEP_ALIVE, "", {"text": "", "thoughtSignature": "c2ln"}


def _call(call: ScriptCall, framing: GeminiFraming) -> Iterator[tuple[str, str, Native]]:
    begun: Native = {"id": call.call_id, "name": call.name}
    signature = {"thoughtSignature": "c2ln"} if framing.signed else {}
    arguments = _object(call)
    if framing.whole:
        whole = {**begun, "args": arguments} if arguments else begun
        yield WHOLE_CALL, call.call_id, {"functionCall": whole, **signature}
        return
    parts: list[tuple[str, Native]] = [(CALL_START, begun)]
    for name, value in arguments.items():
        path = f"$['{name}']" if framing.quoted else f"$.{name}"
        found = _pieces(value, framing)
        parts += [(ARGUMENTS, {"partialArgs": [{"jsonPath": path, **piece}]}) for piece in found]
    if framing.end == "empty":
        parts.append((CALL_END, {}))
    elif framing.end == "false":
        parts.append((CALL_END, {"willContinue": False}))
    if len(parts) == 1:
        parts = [(WHOLE_CALL, begun)]
    for number, (place, part) in enumerate(parts, 1):
        goes_on = {"willContinue": True} if number < len(parts) else {}
        yield place, call.call_id, {"functionCall": {**part, **goes_on}, **signature}


def _pieces(value: Any, framing: GeminiFraming) -> Iterator[Native]:
    if isinstance(value, bool):
        yield {"boolValue": value}
    elif isinstance(value, str):
        units = framing.units and not has_surrogate(value)
        fragments = pieces(value, framing.piece, units=units) or [""]
        for number, fragment in enumerate(fragments, 1):
            goes_on = {"willContinue": True} if number < len(fragments) else {}
            yield {"stringValue": fragment, **goes_on}
    else:
        yield {"numberValue": value}


def _finished(encoding: Encoding, reason: str, framing: GeminiFraming) -> Encoding:
    if not encoding or not framing.beside:
        chunk: Native = {"candidates": [{"finishReason": reason}], "responseId": RESPONSE_ID}
        return [*encoding, EncodedEvent(STOP_REASON, chunk)]
    last = encoding[-1]
    candidate = {**last.event["candidates"][0], "finishReason": reason}
    return [*encoding[:-1], last.with_event({**last.event, "candidates": [candidate]})]


def _billed(encoding: Encoding, usage: Usage | None, framing: GeminiFraming) -> Encoding:
    if usage is None:
        return encoding
    thought = usage.reasoning_tokens or 0
    counters: Native = {
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "candidatesTokenCount": max(0, (usage.output_tokens or 0) - thought),
        "thoughtsTokenCount": thought,
    }
    if framing.usage == "after":
        last: Native = {"usageMetadata": counters, "responseId": RESPONSE_ID}
        return [*encoding, EncodedEvent(USAGE, last)]
    before = {"promptTokenCount": usage.input_tokens, "candidatesTokenCount": 0}
    billed = [
        sent.with_event({**sent.event, "usageMetadata": dict(before)})
        if framing.usage == "every"
        else sent
        for sent in encoding[:-1]
    ]
    last = {**encoding[-1].event, "usageMetadata": counters}
    return [*billed, encoding[-1].with_event(last)]

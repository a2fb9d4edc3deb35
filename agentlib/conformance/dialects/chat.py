"""The OpenAI Chat Completions dialect. Source: OpenAI's API reference, "Chat Completions".

Its reference reader is in `chat_reference`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from agentlib.conformance.dialects.chat_reference import UNSEEN, decode
from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_START,
    OPENING,
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
    changed,
    merged,
    pieces,
    with_keep_alives,
)
from agentlib.conformance.script import Content, Script, ScriptCall
from agentlib.conversation import Usage

FINISHED = {"length": "length", "filter": "content_filter"}
ERROR: Native = {"error": {"code": "server_error", "message": "The server broke."}}


@dataclass(frozen=True, slots=True)
class ChatFraming:
    """How a server of this API cuts a script into chunks.

    `piece` is the size of a fragment in characters, or UTF-16 code units where `units` is set.
    `identity` says whether a call's ID and name stand "once" or in "every" chunk. `index` is how
    calls are numbered: "from 0", "from 1", with "gaps", always "zero", or "none". `call` says how
    a call begins: "empty" or "null" arguments, with its "first" fragment, "whole" in one chunk,
    all in one "batch", or with its name in "two" parts. `usage` stands in a "last" chunk without
    choices, on the "finish" chunk, on "every" chunk or on every chunk but the last as "null".
    `unfinished` is the finish reason of the chunks before the last.
    """

    name: str
    piece: int = 6
    units: bool = False
    identity: str = "once"
    index: str = "from 0"
    call: str = "empty"
    interleaved: bool = False
    opening: str = "role"
    finish: str = "tool_calls"
    on_last: bool = False
    unfinished: str | None = None
    usage: str = "last"
    reasoning: str = "reasoning_content"
    keep_alives: bool = False


def _framings() -> Iterator[ChatFraming]:
    plain = ChatFraming("plain")
    yield plain
    for piece, call, interleaved in product(
        (1, 4, 10_000), ("empty", "null", "first", "whole", "batch", "two"), (False, True)
    ):
        name = f"pieces of {piece}, {call}{', interleaved' if interleaved else ''}"
        yield ChatFraming(name, piece, call=call, interleaved=interleaved)
    for identity, index in product(("once", "every"), ("from 1", "gaps", "zero", "none")):
        if (identity, index) != ("once", "none"):
            name = f"identity {identity}, index {index}"
            yield replace(plain, name=name, identity=identity, index=index)
            yield replace(
                plain, name=f"{name}, whole", identity=identity, index=index, call="whole"
            )
    yield replace(plain, name="no index, whole", index="none", call="whole")
    for usage in ("finish", "every", "null"):
        yield replace(plain, name=f"usage {usage}", usage=usage)
        yield replace(plain, name=f"usage {usage}, on last", usage=usage, on_last=True)
    for opening in ("content", "null", "no choices", "none"):
        yield replace(plain, name=f"opening {opening}", opening=opening)
    yield replace(plain, name="pieces of UTF-16", piece=1, units=True)
    yield replace(plain, name="finish stop", finish="stop")
    yield replace(plain, name="finish stop, whole", finish="stop", call="whole")
    yield replace(plain, name="finish on the last chunk", on_last=True)
    yield replace(plain, name="reasoning", reasoning="reasoning")
    yield replace(plain, name="keep-alives", keep_alives=True)
    yield replace(plain, name="empty finish reasons", unfinished="")


class Chat(Dialect):
    """Nothing restated, nothing numbered."""

    name = "chat"
    title = "OpenAI Chat Completions"
    ids = frozenset({"id"})
    numbers = frozenset({"index"})
    names = frozenset({"name"})
    fragments = frozenset({"content", "refusal", "arguments"})
    unseen = UNSEEN

    framings = tuple(_framings())
    mutated = (
        framings[0],
        ChatFraming("interleaved, all sent in every chunk", 3, identity="every", interleaved=True),
        ChatFraming("whole, usage on finish", call="whole", finish="stop", usage="finish"),
    )

    def usage(self, script: Script) -> Usage | None:
        """Return the usage: this API reports all of it."""
        return script.usage

    def encode(self, script: Script, framing: ChatFraming) -> Encoding:
        """Return the script's native events; `[DONE]` is none."""
        encoding = [*_opening(framing), *_words(script, framing), *_calls(script, framing)]
        encoding = [_unfinished(sent, framing.unfinished) for sent in encoding]
        reason = FINISHED.get(script.stop) or (framing.finish if script.calls else "stop")
        if framing.on_last and encoding and encoding[-1].event["choices"]:
            last = encoding[-1]
            choice = {**last.event["choices"][0], "finish_reason": reason}
            encoding[-1] = changed(last, choices=[choice])
        else:
            encoding.append(EncodedEvent(STOP_REASON, _chunk({}, reason)))
        if script.stop == "failed":
            encoding[-1] = EncodedEvent(TERMINAL, dict(ERROR))
        encoding = _with_usage(encoding, script, framing)
        if not framing.keep_alives:
            return encoding
        return with_keep_alives(encoding, (_empty(), {**_empty(), "choices": None}, _chunk(None)))

    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether a finish reason that completes stands there, and no other, and no error."""
        reasons, calls = set(), False
        for event in events:
            if event.get("error") is not None or event.get("object") == "error":
                return False
            choices = event.get("choices")
            for choice in choices if isinstance(choices, list) else ():
                native = choice if isinstance(choice, dict) else {}
                delta = native.get("delta")
                calls = calls or (isinstance(delta, dict) and bool(delta.get("tool_calls")))
                if native.get("finish_reason") not in (None, ""):
                    reasons.add(str(native["finish_reason"]))
        return reasons == {"stop"} or (reasons == {"tool_calls"} and calls)

    def stops(self, encoding: Encoding) -> Iterator[Variant]:
        """Yield the encoding with each other finish reason, and with an error instead."""
        for at, sent in enumerate(encoding):
            choices = sent.event.get("choices")
            if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
                continue
            known = choices[0].get("finish_reason")
            if not known:
                continue
            before, after = encoding[:at], encoding[at + 1 :]
            for reason in (*_REASONS, None):
                if reason != known:
                    choice = {**choices[0], "finish_reason": reason}
                    other = changed(sent, choices=[choice])
                    yield f"finish reason {reason}", [*before, other, *after]
            yield "an error object", [*before, sent.with_event(dict(ERROR)), *after]

    def decode(self, events: Sequence[Native]) -> Content:
        """Return what the stream expresses; raises where the API does not allow it."""
        return decode(events)


_REASONS = ("stop", "tool_calls", "length", "content_filter", "function_call", "error", "")


def _chunk(delta: Native | None, reason: str | None = None) -> Native:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def _unfinished(sent: EncodedEvent, reason: str | None) -> EncodedEvent:
    choices = sent.event["choices"]
    if reason is None or not choices:
        return sent
    return changed(sent, choices=[{**choices[0], "finish_reason": reason}])


def _empty() -> Native:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": []}


def _opening(framing: ChatFraming) -> Iterator[EncodedEvent]:
    role: Native = {"role": "assistant"}
    deltas = {"content": {**role, "content": ""}, "null": {**role, "content": None}, "role": role}
    if framing.opening == "no choices":
        yield EncodedEvent(OPENING, {**_empty(), "id": "", "prompt_filter_results": []})
    elif framing.opening in deltas:
        yield EncodedEvent(OPENING, _chunk(deltas[framing.opening]))


def _words(script: Script, framing: ChatFraming) -> Iterator[EncodedEvent]:
    for place, key, text in (
        (REASONING, framing.reasoning, script.reasoning),
        (TEXT, "content", "".join(script.text)),
        (TEXT, "refusal", script.refusal),
    ):
        for piece in pieces(text, framing.piece, units=framing.units):
            yield EncodedEvent(place, _chunk({key: piece}))


def _calls(script: Script, framing: ChatFraming) -> Encoding:
    indexes = {"from 1": 1, "gaps": 2}
    tracks = []
    for number, call in enumerate(script.calls):
        index: int | None = number * (3 if framing.index == "gaps" else 1)
        index = (index or 0) + indexes.get(framing.index, 0)
        index = {"zero": 0, "none": None}.get(framing.index, index)
        tracks.append(_track(call, index, framing))
    if framing.call != "batch":
        return merged(tracks, interleaved=framing.interleaved)
    fragments = [
        fragment
        for track in tracks
        for sent in track
        for fragment in sent.event["choices"][0]["delta"]["tool_calls"]
    ]
    return [EncodedEvent(WHOLE_CALL, _chunk({"tool_calls": fragments}))] if fragments else []


def _track(call: ScriptCall, index: int | None, framing: ChatFraming) -> Encoding:
    where = {} if index is None else {"index": index}
    identity = {"id": call.call_id, "type": "function"}

    def sent(place: str, named: str | None, arguments: str | None) -> EncodedEvent:
        every = framing.identity == "every"
        function: Native = {"arguments": arguments}
        if named or every:
            function["name"] = named or call.name
        fragment = {**where, **(identity if named or every else {}), "function": function}
        return EncodedEvent(place, _chunk({"tool_calls": [fragment]}), call.call_id)

    if framing.call in ("whole", "batch"):
        return [sent(WHOLE_CALL, call.name, call.arguments)]
    cut = pieces(call.arguments, framing.piece, units=framing.units)
    if framing.call == "first":
        start = [sent(CALL_START, call.name, cut.pop(0) if cut else "")]
    elif framing.call == "two":
        start = [sent(CALL_START, part, "") for part in (call.name[:2], call.name[2:])]
    else:
        start = [sent(CALL_START, call.name, None if framing.call == "null" else "")]
    return [*start, *(sent(ARGUMENTS, None, piece) for piece in cut)]


def _with_usage(encoding: Encoding, script: Script, framing: ChatFraming) -> Encoding:
    usage = _usage(script.usage)
    if usage is None or script.stop == "failed":
        return encoding
    if framing.usage == "finish":
        return [*encoding[:-1], changed(encoding[-1], usage=usage)]
    if framing.usage == "every":
        few = {**usage, "completion_tokens": 1}
        return [*(changed(s, usage=few) for s in encoding[:-1]), changed(encoding[-1], usage=usage)]
    if framing.usage == "null":
        encoding = [changed(sent, usage=None) for sent in encoding]
    return [*encoding, EncodedEvent(USAGE, {**_empty(), "usage": usage})]


def _usage(usage: Usage | None) -> Native | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens": usage.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }

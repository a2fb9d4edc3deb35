"""The OpenAI Chat Completions dialect. Source: OpenAI's API reference, "Chat Completions".

Its law is in `chat_law`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from agentlib.conformance.dialects.chat_reference import UNSEEN, read_lawful
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
    Native,
    Said,
    Telling,
    Variant,
    changed,
    merged,
    pieces,
    with_nothings,
)
from agentlib.conformance.script import Content, Story, StoryCall
from agentlib.conversation import Usage

FINISHED = {"length": "length", "filter": "content_filter"}
ERROR: Native = {"error": {"code": "server_error", "message": "The server broke."}}


@dataclass(frozen=True, slots=True)
class ChatFraming:
    """How a server of this API cuts a story into chunks.

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
    nothings: bool = False


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
    yield replace(plain, name="keep-alives", nothings=True)
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
    harmed = (
        framings[0],
        ChatFraming("interleaved, all said in every chunk", 3, identity="every", interleaved=True),
        ChatFraming("whole, usage on finish", call="whole", finish="stop", usage="finish"),
    )

    def usage(self, story: Story) -> Usage | None:
        """Return the usage: this API reports all of it."""
        return story.usage

    def tell(self, story: Story, framing: ChatFraming) -> Telling:
        """Return the story's native events; `[DONE]` is none."""
        telling = [*_opening(framing), *_words(story, framing), *_calls(story, framing)]
        telling = [_unfinished(said, framing.unfinished) for said in telling]
        reason = FINISHED.get(story.stop) or (framing.finish if story.calls else "stop")
        if framing.on_last and telling and telling[-1].event["choices"]:
            last = telling[-1]
            choice = {**last.event["choices"][0], "finish_reason": reason}
            telling[-1] = changed(last, choices=[choice])
        else:
            telling.append(Said(STOP_REASON, _chunk({}, reason)))
        if story.stop == "failed":
            telling[-1] = Said(TERMINAL, dict(ERROR))
        telling = _with_usage(telling, story, framing)
        if not framing.nothings:
            return telling
        return with_nothings(telling, (_empty(), {**_empty(), "choices": None}, _chunk(None)))

    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether a finish reason that completes stands there, and no other, and no error."""
        reasons, calls = set(), False
        for event in events:
            if event.get("error") is not None or event.get("object") == "error":
                return False
            choices = event.get("choices")
            for choice in choices if isinstance(choices, list) else ():
                told = choice if isinstance(choice, dict) else {}
                delta = told.get("delta")
                calls = calls or (isinstance(delta, dict) and bool(delta.get("tool_calls")))
                if told.get("finish_reason") not in (None, ""):
                    reasons.add(str(told["finish_reason"]))
        return reasons == {"stop"} or (reasons == {"tool_calls"} and calls)

    def stops(self, telling: Telling) -> Iterator[Variant]:
        """Yield the telling with each other finish reason, and with an error instead."""
        for at, said in enumerate(telling):
            choices = said.event.get("choices")
            if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
                continue
            known = choices[0].get("finish_reason")
            if not known:
                continue
            before, after = telling[:at], telling[at + 1 :]
            for reason in (*_REASONS, None):
                if reason != known:
                    choice = {**choices[0], "finish_reason": reason}
                    told = changed(said, choices=[choice])
                    yield f"finish reason {reason}", [*before, told, *after]
            yield "an error object", [*before, said.saying(dict(ERROR)), *after]

    def judge(self, events: Sequence[Native]) -> Content:
        """Return what the stream tells; raises where the law does not allow it."""
        return read_lawful(events)


_REASONS = ("stop", "tool_calls", "length", "content_filter", "function_call", "error", "")


def _chunk(delta: Native | None, reason: str | None = None) -> Native:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def _unfinished(said: Said, reason: str | None) -> Said:
    choices = said.event["choices"]
    if reason is None or not choices:
        return said
    return changed(said, choices=[{**choices[0], "finish_reason": reason}])


def _empty() -> Native:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": []}


def _opening(framing: ChatFraming) -> Iterator[Said]:
    role: Native = {"role": "assistant"}
    deltas = {"content": {**role, "content": ""}, "null": {**role, "content": None}, "role": role}
    if framing.opening == "no choices":
        yield Said(OPENING, {**_empty(), "id": "", "prompt_filter_results": []})
    elif framing.opening in deltas:
        yield Said(OPENING, _chunk(deltas[framing.opening]))


def _words(story: Story, framing: ChatFraming) -> Iterator[Said]:
    for place, key, text in (
        (REASONING, framing.reasoning, story.reasoning),
        (TEXT, "content", "".join(story.text)),
        (TEXT, "refusal", story.refusal),
    ):
        for piece in pieces(text, framing.piece, units=framing.units):
            yield Said(place, _chunk({key: piece}))


def _calls(story: Story, framing: ChatFraming) -> Telling:
    indexes = {"from 1": 1, "gaps": 2}
    tracks = []
    for number, call in enumerate(story.calls):
        index: int | None = number * (3 if framing.index == "gaps" else 1)
        index = (index or 0) + indexes.get(framing.index, 0)
        index = {"zero": 0, "none": None}.get(framing.index, index)
        tracks.append(_track(call, index, framing))
    if framing.call != "batch":
        return merged(tracks, interleaved=framing.interleaved)
    fragments = [
        fragment
        for track in tracks
        for said in track
        for fragment in said.event["choices"][0]["delta"]["tool_calls"]
    ]
    return [Said(WHOLE_CALL, _chunk({"tool_calls": fragments}))] if fragments else []


def _track(call: StoryCall, index: int | None, framing: ChatFraming) -> Telling:
    where = {} if index is None else {"index": index}
    identity = {"id": call.call_id, "type": "function"}

    def said(place: str, named: str | None, arguments: str | None) -> Said:
        every = framing.identity == "every"
        function: Native = {"arguments": arguments}
        if named or every:
            function["name"] = named or call.name
        fragment = {**where, **(identity if named or every else {}), "function": function}
        return Said(place, _chunk({"tool_calls": [fragment]}), call.call_id)

    if framing.call in ("whole", "batch"):
        return [said(WHOLE_CALL, call.name, call.arguments)]
    cut = pieces(call.arguments, framing.piece, units=framing.units)
    if framing.call == "first":
        start = [said(CALL_START, call.name, cut.pop(0) if cut else "")]
    elif framing.call == "two":
        start = [said(CALL_START, part, "") for part in (call.name[:2], call.name[2:])]
    else:
        start = [said(CALL_START, call.name, None if framing.call == "null" else "")]
    return [*start, *(said(ARGUMENTS, None, piece) for piece in cut)]


def _with_usage(telling: Telling, story: Story, framing: ChatFraming) -> Telling:
    usage = _usage(story.usage)
    if usage is None or story.stop == "failed":
        return telling
    if framing.usage == "finish":
        return [*telling[:-1], changed(telling[-1], usage=usage)]
    if framing.usage == "every":
        few = {**usage, "completion_tokens": 1}
        return [*(changed(s, usage=few) for s in telling[:-1]), changed(telling[-1], usage=usage)]
    if framing.usage == "null":
        telling = [changed(said, usage=None) for said in telling]
    return [*telling, Said(USAGE, {**_empty(), "usage": usage})]


def _usage(usage: Usage | None) -> Native | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens": usage.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }

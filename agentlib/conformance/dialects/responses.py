"""The OpenAI Responses dialect. Source: OpenAI's API reference, "Responses", streaming events.

Its law is in `responses_law`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_END,
    CALL_START,
    OPENING,
    REASONING,
    TERMINAL,
    TEXT,
    TEXT_END,
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
from agentlib.conformance.dialects.responses_reference import read_lawful
from agentlib.conformance.script import Content, Story
from agentlib.conversation import Usage

RESPONSE_ID = "resp_1"
KEEP_ALIVES: tuple[Native, ...] = (
    {"type": "keepalive"},
    {"type": "response.something_new.delta", "item_id": "nobody", "delta": "{"},
)


@dataclass(frozen=True, slots=True)
class ResponsesFraming:
    """How a server of this API cuts a story into events.

    `piece` is the size of a fragment in characters, or UTF-16 code units where `units` is set.
    `whole` says where a call's arguments stand: in "deltas", or whole at "added", at "done"
    (arguments.done) or only in the "item" that is done. `first` is the first sequence number,
    None where there are none, and `stride` the step between them.
    """

    name: str
    piece: int = 6
    units: bool = False
    whole: str = "deltas"
    interleaved: bool = False
    first: int | None = 0
    stride: int = 1
    indexed: bool = True
    parts: bool = True
    nothings: bool = False
    queued: bool = False


def _framings() -> Iterator[ResponsesFraming]:
    yield ResponsesFraming("plain")
    wholes = ("deltas", "added", "done", "item")
    for piece, where, interleaved in product((1, 4, 10_000), wholes, (False, True)):
        name = f"pieces of {piece}, {where}{', interleaved' if interleaved else ''}"
        yield ResponsesFraming(name, piece, whole=where, interleaved=interleaved)
        yield ResponsesFraming(
            f"{name}, not numbered, keep-alives",
            piece,
            whole=where,
            interleaved=interleaved,
            first=None,
            nothings=True,
        )
        yield ResponsesFraming(
            f"{name}, no indexes or parts, queued",
            piece,
            whole=where,
            interleaved=interleaved,
            indexed=False,
            parts=False,
            queued=True,
        )
    yield ResponsesFraming("pieces of UTF-16", 1, units=True)
    yield ResponsesFraming("numbered from 7 by threes", first=7, stride=3)


class Responses(Dialect):
    """Everything restated, most of it numbered."""

    name = "responses"
    title = "OpenAI Responses"
    ids = frozenset({"id", "item_id", "call_id"})
    numbers = frozenset({"output_index", "content_index", "summary_index", "sequence_number"})
    names = frozenset({"name"})
    fragments = frozenset({"delta", "arguments", "text", "refusal"})

    framings = tuple(_framings())
    harmed = (
        framings[0],
        ResponsesFraming("interleaved, not numbered", interleaved=True, first=None),
        ResponsesFraming("bare, whole in the item", whole="item", indexed=False, parts=False),
    )

    def usage(self, story: Story) -> Usage | None:
        """Return the usage: this API reports all of it."""
        return story.usage

    def tell(self, story: Story, framing: ResponsesFraming) -> Telling:
        """Return the story's native events."""
        items = list(_items(story))
        created = _body(story, "in_progress")
        telling = [Said(OPENING, {"type": "response.queued", "response": created})]
        telling = telling if framing.queued else []
        telling += [
            Said(OPENING, {"type": f"response.{kind}", "response": created})
            for kind in ("created", "in_progress")
        ]
        tracks = [_track(item, place, framing) for place, item in enumerate(items)]
        telling += merged(tracks, interleaved=framing.interleaved)
        telling.append(Said(TERMINAL, _terminal(story, items)))
        if framing.nothings:
            telling = with_nothings(telling, KEEP_ALIVES)
        if framing.first is None:
            return telling
        numbers = range(framing.first, framing.first + framing.stride * len(telling))
        steps = numbers[:: framing.stride]
        return [changed(said, sequence_number=n) for said, n in zip(telling, steps, strict=True)]

    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether the first terminal event and its body both say completed, without error."""
        for event in events:
            if event.get("type") in ("response.failed", "response.incomplete", "error"):
                return False
            if event.get("type") == "response.completed":
                body = event.get("response")
                told = body if isinstance(body, dict) else {}
                return told.get("status") == "completed" and told.get("error") is None
        return False

    def is_its_own(self, events: Sequence[Native]) -> bool:
        """Say whether the first response.completed has the response's own ID."""
        bodies = (e.get("response") for e in events if e.get("type") == "response.completed")
        body = next(bodies, None)
        return isinstance(body, dict) and body.get("id") == RESPONSE_ID

    def stops(self, telling: Telling) -> Iterator[Variant]:
        """Yield the telling with each other terminal event, status and error."""
        last = telling[-1]
        if last.place != TERMINAL or not isinstance(last.event.get("response"), dict):
            return
        before, body = telling[:-1], last.event["response"]
        for kind in ("completed", "failed", "incomplete", "done", "cancelled"):
            if last.event.get("type") != f"response.{kind}":
                yield f"response.{kind}", [*before, changed(last, type=f"response.{kind}")]
        for status in ("completed", "failed", "incomplete", "in_progress", "cancelled", None):
            if body.get("status") != status:
                told = {**body, "status": status}
                yield f"status {status}", [*before, changed(last, response=told)]
        broken = {**body, "error": {"code": "server_error", "message": "It broke."}}
        yield "an error in the body", [*before, changed(last, response=broken)]
        error: Native = {"type": "error", "code": "server_error", "message": "It broke."}
        yield "an error event", [*before, Said(TERMINAL, error), last]

    def judge(self, events: Sequence[Native]) -> Content:
        """Return what the stream tells; raises where the law does not allow it."""
        return read_lawful(events)


def _items(story: Story) -> Iterator[Native]:
    if story.reasoning:
        summary = [{"type": "summary_text", "text": story.reasoning}]
        yield {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"}
    if story.text or story.refusal:
        parts = [
            *({"type": "output_text", "text": text, "annotations": []} for text in story.text),
            *({"type": "refusal", "refusal": text} for text in (story.refusal,) if text),
        ]
        yield {"type": "message", "id": "msg_1", "status": "completed", "content": parts}
    for number, call in enumerate(story.calls, 1):
        yield {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }


def _body(story: Story, status: str) -> Native:
    del story
    return {"id": RESPONSE_ID, "status": status, "error": None, "output": [], "usage": None}


def _terminal(story: Story, items: Sequence[Native]) -> Native:
    kind = {"complete": "completed", "failed": "failed"}.get(story.stop, "incomplete")
    body = {**_body(story, kind), "output": list(items), "usage": _usage(story.usage)}
    if kind == "failed":
        body["error"] = {"code": "server_error", "message": "The server broke."}
    if kind == "incomplete":
        reason = "max_output_tokens" if story.stop == "length" else "content_filter"
        body["incomplete_details"] = {"reason": reason}
    return {"type": f"response.{kind}", "response": body}


def _usage(usage: Usage | None) -> Native | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _track(item: Native, place: int, framing: ResponsesFraming) -> Telling:
    where: Native = {"output_index": place} if framing.indexed else {}
    inner = {**where, "item_id": item["id"]}
    tell = {"reasoning": _reasoning, "message": _message, "function_call": _call}[item["type"]]
    empty = {"reasoning": "summary", "message": "content", "function_call": "arguments"}
    begun = {**item, empty[item["type"]]: "" if item["type"] == "function_call" else []}
    if item["type"] == "function_call" and framing.whole == "added":
        begun["arguments"] = item["arguments"]
    if "status" in item:
        begun["status"] = "in_progress"
    start, end = _EDGES[item["type"]]
    call = item.get("call_id", "")
    return [
        Said(start, {"type": "response.output_item.added", **where, "item": begun}, call),
        *tell(item, inner, framing),
        Said(end, {"type": "response.output_item.done", **where, "item": item}, call),
    ]


_EDGES = {
    "reasoning": (REASONING, REASONING),
    "message": (TEXT, TEXT_END),
    "function_call": (CALL_START, CALL_END),
}


def _reasoning(item: Native, where: Native, framing: ResponsesFraming) -> Iterator[Said]:
    place = {**where, "summary_index": 0}
    kind = "response.reasoning_summary_text"
    text = item["summary"][0]["text"]
    for piece in pieces(text, framing.piece, units=framing.units):
        yield Said(REASONING, {"type": f"{kind}.delta", **place, "delta": piece})
    yield Said(REASONING, {"type": f"{kind}.done", **place, "text": text})


def _message(item: Native, where: Native, framing: ResponsesFraming) -> Iterator[Said]:
    for number, part in enumerate(item["content"]):
        field_name = "refusal" if part["type"] == "refusal" else "text"
        kind = "response.refusal" if part["type"] == "refusal" else "response.output_text"
        place = {**where, "content_index": number}
        if framing.parts:
            begun = {**part, field_name: ""}
            yield Said(TEXT, {"type": "response.content_part.added", **place, "part": begun})
        for piece in pieces(part[field_name], framing.piece, units=framing.units):
            yield Said(TEXT, {"type": f"{kind}.delta", **place, "delta": piece})
        yield Said(TEXT_END, {"type": f"{kind}.done", **place, field_name: part[field_name]})
        if framing.parts:
            yield Said(TEXT_END, {"type": "response.content_part.done", **place, "part": part})


def _call(item: Native, where: Native, framing: ResponsesFraming) -> Iterator[Said]:
    kind, call = "response.function_call_arguments", item["call_id"]
    if framing.whole == "deltas":
        for piece in pieces(item["arguments"], framing.piece, units=framing.units):
            yield Said(ARGUMENTS, {"type": f"{kind}.delta", **where, "delta": piece}, call)
    if framing.whole != "item":
        told = {"arguments": item["arguments"]}
        yield Said(CALL_END, {"type": f"{kind}.done", **where, **told}, call)

"""The OpenAI Responses dialect. Source: OpenAI's API reference, "Responses", streaming events.

Its reference reader is in `responses_reference`.
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
    EncodedEvent,
    Encoding,
    Native,
    Variant,
    changed,
    merged,
    pieces,
    with_keep_alives,
)
from agentlib.conformance.dialects.responses_reference import decode
from agentlib.conformance.script import Content, Script
from agentlib.conversation import Usage

RESPONSE_ID = "resp_1"
KEEP_ALIVES: tuple[Native, ...] = (
    {"type": "keepalive"},
    {"type": "response.something_new.delta", "item_id": "nobody", "delta": "{"},
)


@dataclass(frozen=True, slots=True)
class ResponsesFraming:
    """How a server of this API cuts a script into events.

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
    keep_alives: bool = False
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
            keep_alives=True,
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
    mutated = (
        framings[0],
        ResponsesFraming("interleaved, not numbered", interleaved=True, first=None),
        ResponsesFraming("bare, whole in the item", whole="item", indexed=False, parts=False),
    )

    def usage(self, script: Script) -> Usage | None:
        """Return the usage: this API reports all of it."""
        return script.usage

    def encode(self, script: Script, framing: ResponsesFraming) -> Encoding:
        """Return the script's native events."""
        items = list(_items(script))
        created = _body(script, "in_progress")
        encoding = [EncodedEvent(OPENING, {"type": "response.queued", "response": created})]
        encoding = encoding if framing.queued else []
        encoding += [
            EncodedEvent(OPENING, {"type": f"response.{kind}", "response": created})
            for kind in ("created", "in_progress")
        ]
        tracks = [_track(item, place, framing) for place, item in enumerate(items)]
        encoding += merged(tracks, interleaved=framing.interleaved)
        encoding.append(EncodedEvent(TERMINAL, _terminal(script, items)))
        if framing.keep_alives:
            encoding = with_keep_alives(encoding, KEEP_ALIVES)
        if framing.first is None:
            return encoding
        numbers = range(framing.first, framing.first + framing.stride * len(encoding))
        steps = numbers[:: framing.stride]
        return [changed(sent, sequence_number=n) for sent, n in zip(encoding, steps, strict=True)]

    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether the first terminal event and its body both say completed, without error."""
        for event in events:
            if event.get("type") in ("response.failed", "response.incomplete", "error"):
                return False
            if event.get("type") == "response.completed":
                body = event.get("response")
                native = body if isinstance(body, dict) else {}
                return native.get("status") == "completed" and native.get("error") is None
        return False

    def is_its_own(self, events: Sequence[Native]) -> bool:
        """Say whether the first response.completed has the response's own ID."""
        bodies = (e.get("response") for e in events if e.get("type") == "response.completed")
        body = next(bodies, None)
        return isinstance(body, dict) and body.get("id") == RESPONSE_ID

    def stops(self, encoding: Encoding) -> Iterator[Variant]:
        """Yield the encoding with each other terminal event, status and error."""
        last = encoding[-1]
        if last.place != TERMINAL or not isinstance(last.event.get("response"), dict):
            return
        before, body = encoding[:-1], last.event["response"]
        for kind in ("completed", "failed", "incomplete", "done", "cancelled"):
            if last.event.get("type") != f"response.{kind}":
                yield f"response.{kind}", [*before, changed(last, type=f"response.{kind}")]
        for status in ("completed", "failed", "incomplete", "in_progress", "cancelled", None):
            if body.get("status") != status:
                other = {**body, "status": status}
                yield f"status {status}", [*before, changed(last, response=other)]
        broken = {**body, "error": {"code": "server_error", "message": "It broke."}}
        yield "an error in the body", [*before, changed(last, response=broken)]
        error: Native = {"type": "error", "code": "server_error", "message": "It broke."}
        yield "an error event", [*before, EncodedEvent(TERMINAL, error), last]

    def decode(self, events: Sequence[Native]) -> Content:
        """Return what the stream expresses; raises where the API does not allow it."""
        return decode(events)


def _items(script: Script) -> Iterator[Native]:
    if script.reasoning:
        summary = [{"type": "summary_text", "text": script.reasoning}]
        yield {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"}
    if script.text or script.refusal:
        parts = [
            *({"type": "output_text", "text": text, "annotations": []} for text in script.text),
            *({"type": "refusal", "refusal": text} for text in (script.refusal,) if text),
        ]
        yield {"type": "message", "id": "msg_1", "status": "completed", "content": parts}
    for number, call in enumerate(script.calls, 1):
        yield {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }


def _body(script: Script, status: str) -> Native:
    del script
    return {"id": RESPONSE_ID, "status": status, "error": None, "output": [], "usage": None}


def _terminal(script: Script, items: Sequence[Native]) -> Native:
    kind = {"complete": "completed", "failed": "failed"}.get(script.stop, "incomplete")
    body = {**_body(script, kind), "output": list(items), "usage": _usage(script.usage)}
    if kind == "failed":
        body["error"] = {"code": "server_error", "message": "The server broke."}
    if kind == "incomplete":
        reason = "max_output_tokens" if script.stop == "length" else "content_filter"
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


def _track(item: Native, place: int, framing: ResponsesFraming) -> Encoding:
    where: Native = {"output_index": place} if framing.indexed else {}
    inner = {**where, "item_id": item["id"]}
    encode = {"reasoning": _reasoning, "message": _message, "function_call": _call}[item["type"]]
    empty = {"reasoning": "summary", "message": "content", "function_call": "arguments"}
    begun = {**item, empty[item["type"]]: "" if item["type"] == "function_call" else []}
    if item["type"] == "function_call" and framing.whole == "added":
        begun["arguments"] = item["arguments"]
    if "status" in item:
        begun["status"] = "in_progress"
    start, end = _EDGES[item["type"]]
    call = item.get("call_id", "")
    return [
        EncodedEvent(start, {"type": "response.output_item.added", **where, "item": begun}, call),
        *encode(item, inner, framing),
        EncodedEvent(end, {"type": "response.output_item.done", **where, "item": item}, call),
    ]


_EDGES = {
    "reasoning": (REASONING, REASONING),
    "message": (TEXT, TEXT_END),
    "function_call": (CALL_START, CALL_END),
}


def _reasoning(item: Native, where: Native, framing: ResponsesFraming) -> Iterator[EncodedEvent]:
    place = {**where, "summary_index": 0}
    kind = "response.reasoning_summary_text"
    text = item["summary"][0]["text"]
    for piece in pieces(text, framing.piece, units=framing.units):
        yield EncodedEvent(REASONING, {"type": f"{kind}.delta", **place, "delta": piece})
    yield EncodedEvent(REASONING, {"type": f"{kind}.done", **place, "text": text})


def _message(item: Native, where: Native, framing: ResponsesFraming) -> Iterator[EncodedEvent]:
    for number, part in enumerate(item["content"]):
        field_name = "refusal" if part["type"] == "refusal" else "text"
        kind = "response.refusal" if part["type"] == "refusal" else "response.output_text"
        place = {**where, "content_index": number}
        if framing.parts:
            begun = {**part, field_name: ""}
            yield EncodedEvent(
                TEXT, {"type": "response.content_part.added", **place, "part": begun}
            )
        for piece in pieces(part[field_name], framing.piece, units=framing.units):
            yield EncodedEvent(TEXT, {"type": f"{kind}.delta", **place, "delta": piece})
        yield EncodedEvent(
            TEXT_END, {"type": f"{kind}.done", **place, field_name: part[field_name]}
        )
        if framing.parts:
            yield EncodedEvent(
                TEXT_END, {"type": "response.content_part.done", **place, "part": part}
            )


def _call(item: Native, where: Native, framing: ResponsesFraming) -> Iterator[EncodedEvent]:
    kind, call = "response.function_call_arguments", item["call_id"]
    if framing.whole == "deltas":
        for piece in pieces(item["arguments"], framing.piece, units=framing.units):
            yield EncodedEvent(ARGUMENTS, {"type": f"{kind}.delta", **where, "delta": piece}, call)
    if framing.whole != "item":
        whole = {"arguments": item["arguments"]}
        yield EncodedEvent(CALL_END, {"type": f"{kind}.done", **where, **whole}, call)

"""An encoded script as a server sends it: every documented field, named events, `[DONE]`.

A dialect sends only what a script needs. The clients of real frameworks read more of each event,
and must not fail on a field that any real server sends. Sources: the API references of OpenAI
("Responses" and "Chat Completions", streaming) and of Anthropic ("Streaming messages").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from agentlib.attack.apis import Api
from agentlib.conformance.dialects.common import Native
from agentlib.jsonvalues import freeze, thaw

CREATED = 1_767_225_600  # the first second of 2026, so that every stream is the same
_DONE = b"data: [DONE]\n\n"


def as_served(events: Sequence[Native], api: Api, request: Mapping[str, Any]) -> list[Native]:
    """Return the events with all that their API documents; `request` is what they answer."""
    model = request.get("model")
    named = {"model": model if isinstance(model, str) else "model"}
    if api == "responses":
        tools = request.get("tools")
        numbers = count()
        body = {**_RESPONSE, **named, "tools": tools if isinstance(tools, list) else []}
        return [_responses_event(event, body, next(numbers)) for event in events]
    served = _chunk if api == "chat" else _message_event
    return [served(event, named) for event in events]


def as_stream(events: Iterable[Native], api: Api, *, done: bool) -> bytes:
    """Return the bytes of an event stream; `done` is whether Chat's last line comes."""
    lines = []
    for event in events:
        name = "" if api == "chat" else f"event: {event['type']}\n"
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
    return b"".join(lines) + (_DONE if done and api == "chat" else b"")


def as_body(events: Sequence[Native], api: Api) -> Native:
    """Return the answer that these events of a whole text or call stream, as one JSON body."""
    if api == "responses":
        body: Native = events[-1]["response"]
        return body
    return _chat_body(events) if api == "chat" else _message_body(events)


# ------------------------------------------------------------------------------- Responses

_RESPONSE: Native = {
    "object": "response",
    "created_at": CREATED,
    "background": False,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


def _responses_event(event: Native, body: Native, number: int) -> Native:
    served = {**event, "sequence_number": number}
    if isinstance(event.get("response"), dict):
        full = {**body, **event["response"]}
        full["output"] = [_item(item) for item in full["output"]]
        if full["usage"]:
            usage = full["usage"]
            details = {"cache_write_tokens": 0, **usage["input_tokens_details"]}
            total = usage["input_tokens"] + usage["output_tokens"]
            full["usage"] = {**usage, "input_tokens_details": details, "total_tokens": total}
        served["response"] = full
    if isinstance(event.get("item"), dict):
        served["item"] = _item(event["item"])
    if isinstance(event.get("part"), dict):
        served["part"] = {**event["part"], "logprobs": []}
    if event["type"].startswith("response.output_text."):
        served["logprobs"] = []
    return served


def _item(item: Native) -> Native:
    if item["type"] != "message":
        return item
    content = [{**part, "logprobs": []} for part in item["content"]]
    return {**item, "role": "assistant", "content": content}


# ------------------------------------------------------------------------- Chat Completions


def _chunk(event: Native, named: Native) -> Native:
    if "error" in event:
        return {"error": {"type": "server_error", "param": None, **event["error"]}}
    choices = [{**choice, "logprobs": None} for choice in event["choices"]]
    full = {**event, "created": CREATED, **named, "service_tier": "default"}
    full |= {"system_fingerprint": "fp_agentlib", "choices": choices, "usage": event.get("usage")}
    if full["usage"]:
        usage = full["usage"]
        total = usage["prompt_tokens"] + usage["completion_tokens"]
        full["usage"] = {**usage, "total_tokens": total}
    return full


def _chat_body(events: Sequence[Native]) -> Native:
    content, calls, reason, usage = "", [], "stop", None
    for event in events:
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            delta = choice["delta"] or {}
            content += delta.get("content") or ""
            for part in delta.get("tool_calls", ()):
                if part.get("id"):
                    calls.append(thaw(freeze(part)))
                else:
                    calls[-1]["function"]["arguments"] += part["function"]["arguments"]
            reason = choice["finish_reason"] or reason
    message: Native = {"role": "assistant", "content": content or None, "refusal": None}
    if calls:
        keys = ("id", "type", "function")
        message["tool_calls"] = [{key: call[key] for key in keys} for call in calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    first = events[0]
    head = {"id": first["id"], "object": "chat.completion", "created": CREATED}
    return {**head, "model": first["model"], "choices": [choice], "usage": usage}


# ---------------------------------------------------------------------------------- Messages


def _message_event(event: Native, named: Native) -> Native:
    if event["type"] == "message_start":
        stops = {"stop_reason": None, "stop_sequence": None}
        usage = {"input_tokens": 0, "output_tokens": 1, "cache_creation_input_tokens": 0}
        usage |= {"cache_read_input_tokens": 0, **event["message"].get("usage", {})}
        message = {**event["message"], "type": "message", **named, **stops, "usage": usage}
        return {**event, "message": message}
    if event["type"] == "message_delta":
        delta = {"stop_sequence": None, **event["delta"]}
        return {**event, "delta": delta, "usage": event.get("usage") or {"output_tokens": 1}}
    return event


def _message_body(events: Sequence[Native]) -> Native:
    body: Native = dict(events[0]["message"])
    content: list[Native] = []
    texts: list[str] = []
    for event in events:
        if event["type"] == "content_block_start":
            content.append(dict(event["content_block"]))
            texts.append("")
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            texts[event["index"]] += delta.get("text", "") or delta.get("partial_json", "")
        elif event["type"] == "message_delta":
            body |= event["delta"]
            body["usage"] = {**body["usage"], **event["usage"]}
    for block, text in zip(content, texts, strict=True):
        key, value = ("text", text) if block["type"] == "text" else ("input", json.loads(text))
        block[key] = value
    return {**body, "content": content}

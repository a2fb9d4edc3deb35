"""What the body of a terminal Responses event says: its status, usage, texts and calls."""

from __future__ import annotations

from collections.abc import Iterable

from agentlib.conversation import Usage
from agentlib.jsonvalues import quote
from agentlib.providers.fields import Native, count, item_list, string
from agentlib.providers.responses_items import NOT_PORTABLE, is_whole
from agentlib.vocabulary import TerminalCall, TerminalOther, TerminalText


def terminal_call(native_item: Native, *, native: bool) -> TerminalCall:
    """Return a function call as the terminal event restates it. Raises ProtocolViolation."""
    return TerminalCall(
        call_id=string(native_item, "call_id"),
        name=string(native_item, "name"),
        arguments=string(native_item, "arguments"),
        item_id=string(native_item, "id"),
        completed=is_whole(native_item, native=native),
    )


def message_parts(item_id: str, native_item: Native) -> Iterable[TerminalText | TerminalOther]:
    """Yield the parts of a message, each under its key: the item's ID and its place."""
    for place, part in enumerate(item_list(native_item, "content")):
        yield message_part(f"{item_id}/{place}", part)


def message_part(key: str, part: Native) -> TerminalText | TerminalOther:
    """Return one part of a message: a text, a refusal, or what cannot be sent back."""
    kind = string(part, "type")
    field = _TEXT_FIELDS.get(kind)
    if field is None:
        return TerminalOther(kind, NOT_PORTABLE)
    return TerminalText(key, string(part, field), refusal=kind == "refusal")


_TEXT_FIELDS = {"output_text": "text", "refusal": "refusal"}


def body_problem(body: Native) -> str:
    """Return how the body of a completed response disagrees with that; empty where it agrees."""
    if body.get("status") != "completed":
        return f"the event says completed and its body says {quote(body.get('status'))}"
    for name in ("error", "incomplete_details"):
        if body.get(name) is not None:
            return f"the body says completed and carries {name}: {quote(body[name])}"
    return ""


def read_usage(native: object) -> Usage | None:
    """Return the usage that a body reports; None where it reports none, never zero."""
    if not isinstance(native, dict):
        return None
    details = native.get("input_tokens_details")
    return Usage(
        input_tokens=count(native, "input_tokens"),
        cached_tokens=count(details, "cached_tokens"),
        cache_creation_tokens=count(details, "cache_write_tokens"),
        output_tokens=count(native, "output_tokens"),
        reasoning_tokens=count(native.get("output_tokens_details"), "reasoning_tokens"),
    )

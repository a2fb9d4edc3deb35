"""What the body of a terminal Responses event says: its status, usage, texts and calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet

from agentlib.conversation import Usage
from agentlib.jsonvalues import quote
from agentlib.providers.fields import (
    Native,
    count,
    has_content,
    item_list,
    said,
    string,
    violation,
)
from agentlib.providers.responses_items import NOT_PORTABLE, is_whole
from agentlib.vocabulary import Stopped, TerminalCall, TerminalOther, TerminalText


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


def refuse_missing(parts: AbstractSet[str]) -> None:
    """Refuse a state of a message that restates not all of its parts that were streamed."""
    if parts:
        missing = quote(min(parts))
        raise violation(f"text {missing} was streamed and is missing", check="texts_equal")


def refuse_other_beginning(
    begun: Iterable[TerminalText | TerminalOther], items: Collection[object]
) -> None:
    """Refuse a text that does not begin as it was added, or is of another kind than that."""
    texts = {item.part: item for item in items if isinstance(item, TerminalText)}
    for part in begun:
        if not isinstance(part, TerminalText):
            if part not in items:
                raise violation(f"a part {quote(part.kind)} was added and is missing at the end")
            continue
        whole = texts.get(part.part)
        # A part that begins empty may stay so, and is then often left out at the end.
        text, refusal = (whole.text, whole.refusal) if whole is not None else ("", part.refusal)
        if refusal is not part.refusal or not text.startswith(part.text):
            why = f"text {quote(part.part)} was added as {quote(part.text)} and ends as another"
            raise violation(why, check="texts_equal")


# What a body may say of itself before the end, by the kind of its event; None where it is silent.
_BEFORE_THE_END = {
    "response.created": (None, "queued", "in_progress"),
    "response.queued": (None, "queued", "in_progress"),
    "response.in_progress": (None, "in_progress"),
}
# `response.done` of the Realtime API says completed, and completes nothing here.
_UNKNOWN_KIND = (None, "queued", "in_progress", "completed")
TERMINAL_KINDS = frozenset(
    (
        *("response.completed", "response.failed", "response.incomplete"),
        *("response.cancelled", "response.error", "error"),
    )
)


def unfinished_problem(kind: str, body: Native) -> str:
    """Return how a body that comes before the end says that it ended; empty where it does not."""
    status = body.get("status")
    if status not in _BEFORE_THE_END.get(kind, _UNKNOWN_KIND):
        return f"expected the response in progress in {quote(kind)}, saw status {quote(status)}"
    for name in ("error", "incomplete_details"):
        if body.get(name) is not None:
            return f"expected no {name} in {quote(kind)}, saw {quote(body[name])}"
    return ""


def body_problem(body: Native) -> str:
    """Return how the body of a completed response disagrees with that; empty where it agrees."""
    if body.get("status") != "completed":
        return f"the event says completed and its body says {quote(body.get('status'))}"
    for name in ("error", "incomplete_details"):
        if body.get(name) is not None:
            return f"the body says completed and carries {name}: {quote(body[name])}"
    return ""


def read_stop(native: Native) -> Stopped:
    """Return the end that an event says, whatever its kind, where it is not that of a whole one."""
    body = native.get("response")
    body = body if isinstance(body, dict) else {}
    flat = {name: native[name] for name in ("code", "message") if native.get(name)}
    error = body.get("error") or native.get("error") or flat
    details = body.get("incomplete_details") or {}
    found = [said(source) for source in (details, error) if source]
    cut = isinstance(details, dict) and details.get("reason") == "max_output_tokens"
    return Stopped(
        string(native, "type", "error"),
        ", ".join(found) or said(None),
        read_usage(body.get("usage")),
        cut_by_length=cut,
    )


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


# Of the events that hold no delta, these show progress, and those that name a place in the output.
# What says only that the response waits or still runs (`response.queued`, `response.in_progress`,
# an event that is not known here) can be sent for ever.
OF_THE_WHOLE = frozenset(
    {"response.created", "response.completed", "response.failed", "response.incomplete"}
)
PLACES = frozenset({"item", "item_id", "output_index"})


def shows_progress(native: Native) -> bool:
    """Say whether an event shows that the response goes on; a keep-alive does not."""
    kind = native.get("type")
    if "delta" in native:
        return has_content(native["delta"])
    if isinstance(kind, str) and kind.startswith("response."):
        return kind in OF_THE_WHOLE or not PLACES.isdisjoint(native)
    return kind == "error" or "error" in native

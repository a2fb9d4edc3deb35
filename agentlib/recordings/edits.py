"""Edit a recorded response on purpose: cut it, drop, double or swap events, change a text.

An edit is plain data: its name, its arguments and the response that it acts on. It is applied to
a capture and gives a new one, so that a list of edits can be undone, kept and written as code.
Events are counted from 1. What is not there cannot be edited: that is an error, so that no
experiment changes nothing without saying so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from agentlib import mutations
from agentlib.errors import AgentlibError
from agentlib.jsonvalues import loads_unique, one_line, quote, shorten
from agentlib.mutations import Path, follow, put
from agentlib.recordings.events import CapturedEvent, CapturedResponse
from agentlib.recordings.writing import DONE_BLOCK, as_block, as_comments, written

# In the text form of a capture a longer argument is cut; `code` writes it whole.
MAX_SHOWN_CHARACTERS = 48
# No capture has as many events; a longer number could not even be written in a message.
MAX_NUMBER = 10**9

# Where an event carries its text fragment, by API: the first of these that is there and a string.
PLACES: dict[str, tuple[Path, ...]] = {
    "responses": (
        ("delta",),
        ("arguments",),
        ("text",),
        ("refusal",),
        ("item", "arguments"),
        ("item", "content", 0, "text"),
        ("part", "text"),
    ),
    "chat": (
        ("choices", 0, "delta", "tool_calls", 0, "function", "arguments"),
        ("choices", 0, "delta", "content"),
        ("choices", 0, "delta", "refusal"),
        ("choices", 0, "delta", "reasoning_content"),
    ),
    "messages": (
        ("delta", "partial_json"),
        ("delta", "text"),
        ("delta", "thinking"),
        ("content_block", "text"),
    ),
    "gemini": (
        ("candidates", 0, "content", "parts", 0, "functionCall", "partialArgs", 0, "stringValue"),
        ("candidates", 0, "content", "parts", 0, "text"),
    ),
}

# The reasons for which a response may stop, by API, in the words of its own reference.
REASONS: dict[str, tuple[str, ...]] = {
    "responses": ("completed", "incomplete", "failed"),
    "chat": ("stop", "length", "tool_calls", "content_filter", "function_call"),
    "messages": (
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
    ),
    "gemini": (
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "OTHER",
    ),
}
_ENDINGS: dict[str, dict[str, Any]] = {
    "completed": {"error": None, "incomplete_details": None},
    "incomplete": {"error": None, "incomplete_details": {"reason": "max_output_tokens"}},
    "failed": {
        "error": {"code": "server_error", "message": "changed by an edit"},
        "incomplete_details": None,
    },
}
_TERMINAL = frozenset(f"response.{reason}" for reason in REASONS["responses"])


class EditError(AgentlibError, ValueError):
    """Raised when a capture cannot be edited as asked; says what it has instead."""


class Edit(NamedTuple):
    """One edit: the name of a method of Capture, its arguments, and the response, from 1."""

    name: str
    arguments: tuple[Any, ...]
    response: int = 1

    @property
    def code(self) -> str:
        """The call that makes this edit, as Python: `.cut(after=7)`."""
        return self._written(repr)

    def __str__(self) -> str:
        return self._written(lambda value: one_line(shorten(repr(value), MAX_SHOWN_CHARACTERS)))

    def _written(self, write: Callable[[Any], str]) -> str:
        names = _EDITS[self.name].keywords
        values = zip(names, self.arguments, strict=True)
        parts = [f"{name}={write(v)}" if name else write(v) for name, v in values if v is not None]
        if self.response != 1:
            parts.append(f"response={self.response}")
        return f".{self.name}({', '.join(parts)})"


def chain(edits: Iterable[Edit]) -> str:
    """Return the edits as a reader sees them, one after the other, long texts cut."""
    return "".join(str(edit) for edit in edits)


def apply(
    edits: Iterable[Edit], name: str, responses: Iterable[CapturedResponse]
) -> tuple[CapturedResponse, ...]:
    """Return the responses of the capture `name` as these edits leave them, made in order.

    Raises EditError where one cannot be made.
    """
    # Nothing but events is written: what was dropped is no part of what is edited.
    changed = [replace(each, last=None) if each.last else each for each in responses]
    for edit in edits:
        _check_number("response", edit.response)
        if not 1 <= edit.response <= len(changed):
            has = f"{name} has responses 1 to {len(changed)}"
            raise EditError(f"{has}, no response {edit.response}")
        place = edit.response - 1
        changed[place] = _changed(_Target(name, changed[place].provider, changed[place]), edit)
    return tuple(changed)


def as_stream(comments: Iterable[str], responses: Iterable[CapturedResponse]) -> bytes:
    """Return edited responses as one event stream, below these comments."""
    return as_comments(comments) + b"".join(_blocks(responses))


class _Target(NamedTuple):
    """What an edit acts on: the response's events, and what an error calls it."""

    name: str
    provider: str
    response: CapturedResponse

    @property
    def events(self) -> tuple[CapturedEvent, ...]:
        return self.response.events

    def place(self, number: object) -> int:
        """Return the place of event `number`, from 0."""
        _check_number("event", number)
        if isinstance(number, int) and 1 <= number <= len(self.events):
            return number - 1
        raise EditError(f"{self.has}, no event {number}")

    @property
    def has(self) -> str:
        count = len(self.events)
        return f"{self.name} has {f'events 1 to {count}' if count else 'no events'}"


_Events: TypeAlias = Sequence[CapturedEvent]


def _cut(target: _Target, after: int) -> _Events:
    _check_number("after", after)
    if not 0 <= after <= len(target.events):
        raise EditError(f"{target.has}; cannot cut after {after}")
    return mutations.cut(target.events, after)


def _drop(target: _Target, event: int) -> _Events:
    return mutations.drop(target.events, target.place(event))


def _double(target: _Target, event: int) -> _Events:
    return mutations.double(target.events, target.place(event))


def _swap(target: _Target, event: int) -> _Events:
    first, _ = target.place(event), target.place(event + 1)
    return mutations.swap(target.events, first)


def _edit(target: _Target, event: int, fragment: str) -> _Events:
    place = target.place(event)
    if not isinstance(fragment, str):
        raise EditError(f"expected the new fragment as text, saw {quote(fragment)}")
    data = target.events[place].data
    for path in PLACES.get(target.provider, ()):
        if isinstance(follow(data, path), str):
            return _with(target, place, put(data, path, fragment))
    raise EditError(f"event {event} of {target.name} carries no text fragment; use replace")


def _stop(target: _Target, reason: str) -> _Events:
    known = REASONS.get(target.provider, ("(the API is not known)",))
    if reason not in known:
        raise EditError(f"expected as reason one of {', '.join(known)}; saw {quote(reason)}")
    for place in reversed(range(len(target.events))):
        data = deepcopy(target.events[place].data)
        if _STOPPERS[target.provider](data, reason):
            return _with(target, place, data)
    raise EditError(f"no event of {target.name} says why the response stopped")


def _replace(target: _Target, old: str, new: str, event: int | None) -> _Events:
    places = range(len(target.events)) if event is None else (target.place(event),)
    found = [place for place in places if old and old in target.events[place].raw]
    if not found:
        where = f"event {event}" if event is not None else "any event"
        raise EditError(f"{quote(old)} does not stand in {where} of {target.name}")
    events = list(target.events)
    for place in found:
        events[place] = _reread(events[place], events[place].raw.replace(old, new))
    return events


def _changed(target: _Target, edit: Edit) -> CapturedResponse:
    try:
        events = _EDITS[edit.name].act(target, *edit.arguments)
    except EditError:
        raise
    except AgentlibError as error:
        raise EditError(f"{edit.name} cannot be done: {error}") from error
    changed = replace(target.response, events=_numbered(events))
    if edit.name == "cut":
        changed = replace(changed, fault=None, done_marker=False, notes=(), dropped=0, page="")
    return changed


class _Row(NamedTuple):
    """How an edit acts, and under which keywords its arguments are written; "" is by place."""

    act: Callable[..., _Events]
    keywords: tuple[str, ...]


_EDITS: dict[str, _Row] = {
    "cut": _Row(_cut, ("after",)),
    "drop": _Row(_drop, ("",)),
    "double": _Row(_double, ("",)),
    "swap": _Row(_swap, ("",)),
    "edit": _Row(_edit, ("", "")),
    "stop": _Row(_stop, ("",)),
    "replace": _Row(_replace, ("", "", "event")),
}


def _stop_response(data: dict[str, Any], reason: str) -> bool:
    if data.get("type") not in _TERMINAL:
        return False
    data["type"] = f"response.{reason}"
    if isinstance(data.get("response"), dict):
        data["response"] |= {"status": reason, **deepcopy(_ENDINGS[reason])}
    return True


def _stop_chunk(data: dict[str, Any], reason: str) -> bool:
    choice = follow(data, ("choices", 0))
    if not isinstance(choice, dict) or not choice.get("finish_reason"):
        return False
    choice["finish_reason"] = reason
    return True


def _stop_message(data: dict[str, Any], reason: str) -> bool:
    delta = data.get("delta")
    if not isinstance(delta, dict) or not delta.get("stop_reason"):
        return False
    delta["stop_reason"] = reason
    return True


def _stop_candidate(data: dict[str, Any], reason: str) -> bool:
    candidate = follow(data, ("candidates", 0))
    if not isinstance(candidate, dict) or not candidate.get("finishReason"):
        return False
    candidate["finishReason"] = reason
    return True


_STOPPERS: dict[str, Callable[[dict[str, Any], str], bool]] = {
    "responses": _stop_response,
    "chat": _stop_chunk,
    "messages": _stop_message,
    "gemini": _stop_candidate,
}


def _check_number(what: str, number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool):
        raise EditError(f"expected a whole number as {what}, saw {quote(number)}")
    if abs(number) > MAX_NUMBER:
        raise EditError(f"expected at most {MAX_NUMBER:,} as {what}, saw {quote(number)}")


def _with(target: _Target, place: int, data: dict[str, Any]) -> _Events:
    events = list(target.events)
    new = written(data, place + 1)
    events[place] = events[place]._replace(data=new.data, raw=new.raw)
    return events


def _reread(event: CapturedEvent, raw: str) -> CapturedEvent:
    try:
        data = loads_unique(raw)
    except ValueError as error:
        raise EditError(
            f"event {event.number} would be no JSON any more: {error}; inside an argument string "
            "a quotation mark has a backslash before it"
        ) from error
    if not isinstance(data, dict):
        raise EditError(f"event {event.number} would be no JSON object any more")
    if "type" not in loads_unique(event.raw) and "type" in event.data:
        data = {"type": event.data["type"], **data}
    new = written(data, event.number, raw)
    return event._replace(data=new.data, raw=new.raw)


def _numbered(events: _Events) -> tuple[CapturedEvent, ...]:
    return tuple(
        event if event.number == number else event._replace(number=number)
        for number, event in enumerate(events, 1)
    )


def _blocks(responses: Iterable[CapturedResponse]) -> Iterable[bytes]:
    for response in responses:
        for event in response.events:
            # Data that came in several lines is written as one.
            several = "\n" in event.raw or "\r" in event.raw
            raw = written(event.data, event.number).raw if several else event.raw
            yield as_block(event.data, raw)
        if response.done_marker:
            yield DONE_BLOCK

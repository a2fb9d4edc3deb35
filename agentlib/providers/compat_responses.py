"""The filters for what servers of the Responses API are known to get wrong (see `compat`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agentlib.conversation import NativeTurn
from agentlib.gate import difference
from agentlib.jsonvalues import FrozenObject, quote, same_text
from agentlib.providers.fields import Native
from agentlib.providers.synthetic import LOCAL, LOCAL_RESPONSE, local_call, made_call, refuse_local
from agentlib.providers.translator import Filter, Note, Translator
from agentlib.vocabulary import (
    Completed,
    Corrected,
    Event,
    RefusalDelta,
    TerminalCall,
    TextDelta,
    TextDone,
    ToolArgsDelta,
    ToolArgsDone,
    ToolStart,
)

# Events that may come before the response exists, or that end it whether it does or not.
_NEEDS_NO_OPENING = frozenset(
    {
        "response.created",
        "response.queued",
        "response.failed",
        "response.incomplete",
    }
)


# Events that must name their item.
_TELL_ITEM = (
    "response.function_call_arguments.",
    "response.output_text.",
    "response.refusal.",
    "response.reasoning",
    "response.content_part.",
)


TERMINAL = "the terminal event"
_TELL_CONTENT = ("response.content_part.", "response.output_text.", "response.refusal.")


class MissingOpening(Filter):
    """Opens a response that its server never opened, at its first event of content."""

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._opened = False
        self._local = False
        self._response_id = ""

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the event; before the first one of content, the missing opening."""
        kind, response_id = native.get("type"), _response_id(native)
        self._response_id = self._response_id or response_id
        if kind == "response.created":
            self._opened = True
        content = isinstance(kind, str) and kind.startswith("response.")
        if self._opened or not content or kind in _NEEDS_NO_OPENING:
            return super().translate(self._with_local_id(native, response_id))
        self._opened = True
        self._local = not self._response_id
        body = {"id": LOCAL_RESPONSE if self._local else self._response_id}
        opened = super().translate({"type": "response.created", "response": body})
        self.note(f"missing-opening: {kind} came before response.created")
        return (*opened, *self.translate(native))

    def _with_local_id(self, native: Native, response_id: str) -> Native:
        if not self._local or not response_id or response_id != self._response_id:
            return native
        return {**native, "response": {**native["response"], "id": LOCAL_RESPONSE}}


class TerminalRestatesNothing(Filter):
    """Rebuilds an empty terminal output from the items that were done."""

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._done: list[tuple[int, dict[str, Any]]] = []

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the event; `response.completed` restates at least what was done."""
        kind = native.get("type")
        item, body = native.get("item"), native.get("response")
        if kind == "response.output_item.done" and isinstance(item, dict):
            index = native.get("output_index")
            self._done.append((index if type(index) is int else len(self._done), item))
        elif kind == "response.completed" and isinstance(body, dict) and not _restates(body):
            output = [item for _, item in sorted(self._done, key=lambda done: done[0])]
            native = {**native, "response": {**body, "output": output}}
            if output:
                self.note("terminal-restates-nothing: the output is rebuilt from the items' done")
        return super().translate(native)


class RotatingIDs(Filter):
    """Gives each item the ID with which it was added, by its output index.

    The response keeps its first ID. What is kept verbatim for the next request keeps the IDs that
    the terminal event gave: a server may have bound what is encrypted to just these.
    """

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._response_id = ""
        self._rotated = False
        self._ids: dict[int, str] = {}

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the event, with the first ID of its response and of its item."""
        events = super().translate(self._settled(native))
        if self._rotated and events and isinstance(events[-1], Completed):
            # What was put in the place of another ID agrees with it, and says nothing.
            events = (*events[:-1], replace(events[-1], response_id=None))
        if events and isinstance(events[-1], Completed) and events[-1].native is not None:
            kept = _own_ids(events[-1].native, native["response"].get("output") or ())
            return (*events[:-1], replace(events[-1], native=kept))
        return events

    def _settled(self, native: Native) -> Native:
        body = native.get("response")
        if isinstance(body, dict) and isinstance(body.get("id"), str):
            self._response_id = self._response_id or body["id"]
            self._rotated = self._rotated or body["id"] != self._response_id
            body = {**body, "id": self._response_id}
            if isinstance(body.get("output"), list):
                body["output"] = [self._item(item, n) for n, item in enumerate(body["output"])]
            return self._changed(native, response=body)
        if isinstance(native.get("response_id"), str) and self._response_id:
            self._rotated = self._rotated or native["response_id"] != self._response_id
            native = self._changed(native, response_id=self._response_id)
        index = native.get("output_index")
        if type(index) is not int:
            return native
        item = native.get("item")
        if not isinstance(item, dict):
            item_id = self._ids.get(index)
            if item_id is None or _tells_no_item(native):
                return native
            return self._changed(native, item_id=item_id)
        if native.get("type") == "response.output_item.added" and index not in self._ids:
            self._ids[index] = _text(item.get("id")) or f"{LOCAL}item_{index}"
        return self._changed(native, item=self._item(item, index))

    def _item(self, item: Any, index: int) -> Any:
        known = index in self._ids and isinstance(item, dict)
        return {**item, "id": self._ids[index]} if known else item

    def _changed(self, native: Native, **fields: Any) -> Native:
        changed = {**native, **fields}
        if changed != native:
            self.note("rotating-ids: IDs changed or were absent; output_index says what belongs")
        return changed


class CallWithoutID(Filter):
    """Gives a local call ID to each function call whose item comes without one."""

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._made: dict[str, str] = {}

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the event, with a call ID on each function call that lacks one."""
        item, body = native.get("item"), native.get("response")
        if isinstance(item, dict):
            added = native.get("type") == "response.output_item.added"
            native = {**native, "item": self._named(item, added=added)}
        elif isinstance(body, dict) and isinstance(body.get("output"), list):
            output = [self._named(item, added=False) for item in body["output"]]
            native = {**native, "response": {**body, "output": output}}
        return super().translate(native)

    def _named(self, item: Any, *, added: bool) -> Any:
        if not isinstance(item, dict) or item.get("type") != "function_call":
            return item
        if item.get("call_id"):
            refuse_local(item["call_id"])
            return item
        item_id = _text(item.get("id"))
        if added and item_id and item_id not in self._made:
            self._made[item_id] = local_call(len(self._made) + 1)
            self.note(made_call(self._made[item_id]))
        call_id = self._made.get(item_id)
        return item if call_id is None else {**item, "call_id": call_id}


class ContentIndexAcrossItems(Filter):
    """Counts the contents of each item anew, from 0, in the order in which they begin."""

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._places: dict[str, dict[int, int]] = {}

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the event, with the place of its content within its own item."""
        item, index = native.get("item_id"), native.get("content_index")
        if type(index) is not int or not isinstance(item, str) or not _of_a_content(native):
            return super().translate(native)
        places = self._places.setdefault(item, {})
        # A content that comes late is out of order, and stays so.
        if index not in places and index < max(places, default=0):
            return super().translate(native)
        place = places.setdefault(index, len(places))
        if place == index:
            return super().translate(native)
        self.note("content-index-across-items: the contents of each item are counted from 0")
        return super().translate({**native, "content_index": place})


class CorrectedByDone(Filter):
    """Replaces what was streamed by what a later authority says, and notes each difference."""

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._calls: dict[str, list[str]] = {}
        self._texts: dict[str, list[str]] = {}

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the event; before one that restates otherwise, the correction."""
        return tuple(out for event in super().translate(native) for out in self._follow(event))

    def _follow(self, event: Event) -> Iterable[Event]:
        if isinstance(event, ToolArgsDelta):
            self._calls.setdefault(event.call_id, []).append(event.text)
        elif isinstance(event, TextDelta | RefusalDelta):
            self._texts.setdefault(event.part, []).append(event.text)
        elif isinstance(event, ToolStart):
            self._calls[event.call_id] = [event.arguments]
        elif isinstance(event, ToolArgsDone):
            yield from self._correct_call(event.call_id, event.arguments, "its done")
        elif isinstance(event, TextDone):
            yield from self._correct_text(event.part, event.text, "its done")
        elif isinstance(event, Completed):
            for item in event.items or ():
                if isinstance(item, TerminalCall):
                    yield from self._correct_call(item.call_id, item.arguments, TERMINAL)
                else:
                    yield from self._correct_text(item.part, item.text, TERMINAL)
        yield event

    def _correct_call(self, call_id: str, text: str, authority: str) -> Iterable[Event]:
        streamed = self._replaced(self._calls, call_id, text, authority)
        if streamed is not None:
            yield Corrected(call_id, streamed, text)

    def _correct_text(self, part: str, text: str, authority: str) -> Iterable[Event]:
        streamed = self._replaced(self._texts, part, text, authority)
        if streamed is not None:
            yield Corrected(part, streamed, text, of_text=True)

    def _replaced(
        self, known: dict[str, list[str]], key: str, text: str, authority: str
    ) -> str | None:
        streamed = "".join(known[key]) if key in known else None
        known[key] = [text]
        if streamed is None or same_text(streamed, text):
            return None
        self.note(f"corrected-by-done: {quote(key)} by {authority}: {difference(streamed, text)}")
        return streamed


def _of_a_content(native: Native) -> bool:
    kind = native.get("type")
    return isinstance(kind, str) and kind.startswith(_TELL_CONTENT)


def _tells_no_item(native: Native) -> bool:
    # Some events name an output_index alone, by their own definition.
    kind = native.get("type")
    return "item_id" not in native and not (isinstance(kind, str) and kind.startswith(_TELL_ITEM))


def _restates(body: Native) -> bool:
    return body.get("output") not in (None, [])


def _own_ids(turn: NativeTurn, output: Iterable[Any]) -> NativeTurn:
    items = []
    for item, own in zip(turn.items, output, strict=False):
        rest = {name: value for name, value in item.items() if name != "id"}
        items.append({"id": own["id"], **rest} if "id" in own else rest)
    return NativeTurn(turn.provider, tuple(FrozenObject(item) for item in items))


def _response_id(native: Native) -> str:
    body = native.get("response")
    return _text(body.get("id")) if isinstance(body, dict) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

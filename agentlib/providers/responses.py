"""The OpenAI Responses API: the translator of its stream.

Source of the rules: OpenAI's API reference, "Responses", streaming events. An item ID (`fc_…`)
names a place in the output, a call ID (`call_…`) names the call; the vocabulary's key is the
call ID, and this translator holds the table from the one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Never

from agentlib.conversation import NativeTurn, Usage
from agentlib.jsonvalues import quote
from agentlib.providers.fields import (
    MAX_COUNT,
    Native,
    TranslatorOptions,
    item_list,
    record,
    string,
    violation,
    whole,
)
from agentlib.providers.responses_body import (
    TERMINAL_KINDS,
    body_problem,
    message_part,
    message_parts,
    read_stop,
    read_usage,
    refuse_missing,
    refuse_other_beginning,
    shows_progress,
    terminal_call,
    unfinished_problem,
)
from agentlib.providers.responses_items import (
    OF_A_PROGRAM,
    Item,
    agree,
    agree_at_the_end,
    answers,
    is_of_a_program,
    refusal,
    refuse_disorder,
    refuse_status,
    refuse_stopped,
    says_more,
    status_problem,
    take_done,
)
from agentlib.vocabulary import (
    Completed,
    Event,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    TerminalItem,
    TerminalOther,
    TerminalText,
    TextDelta,
    TextDone,
    ToolArgsDelta,
    ToolArgsDone,
    ToolStart,
)


class ResponsesTranslator:
    """Translates one response's native events, in order, into the vocabulary.

    It holds what identity needs: the response ID, the last sequence number, and the items. It
    raises ProtocolViolation where an event disagrees with what came before, and leaves what is
    common to all providers to the assembly. Unknown kinds are progress.
    """

    trailing = False

    def __init__(self, options: TranslatorOptions | None = None) -> None:
        self.usage: Usage | None = None
        self._native = (options or TranslatorOptions()).native
        self._response_id: str | None = None
        self._opened = False
        self._sequence = -1
        self._items: dict[str, Item] = {}
        self._indexes: set[int] = set()
        self._begun: list[TerminalText | TerminalOther] = []
        self._handlers: dict[str, Callable[[Native], tuple[Event, ...]]] = {
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.output_text.delta": self._text_delta,
            "response.refusal.delta": self._refusal_delta,
            "response.reasoning_text.delta": self._reasoning_delta,
            "response.reasoning_summary_text.delta": self._reasoning_delta,
            "response.created": self._created,
            "response.queued": self._named,
            "response.in_progress": self._in_progress,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.content_part.added": self._part_added,
            "response.content_part.done": self._part_done,
            "response.output_text.done": self._text_done,
            "response.refusal.done": self._refusal_done,
            "response.function_call_arguments.done": self._arguments_done,
            "response.completed": self._completed,
            "response.failed": self._stopped,
            "response.incomplete": self._stopped,
            "response.cancelled": self._stopped,
            "response.error": self._stopped,
            "error": self._stopped,
        }

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Return the neutral events that `native`, one decoded event, stands for: often one.

        Raises ProtocolViolation, without an event number; the reader knows it.
        """
        sequence = native.get("sequence_number")
        if type(sequence) is int and self._sequence < sequence < MAX_COUNT:
            self._sequence = sequence
        elif sequence is not None:
            self._refuse_sequence(native)
        kind = native.get("type")
        handler = self._handlers.get(kind) if type(kind) is str else None
        if native.get("error") is not None:
            return self._stopped(native)
        if "response" in native or "response_id" in native:
            self._compare_state(native)
        return handler(native) if handler is not None else self._unhandled(native)

    def finish(self) -> tuple[Event, ...]:
        """Take the end of the stream: it completes nothing, `response.completed` does."""
        return ()

    def is_meaningful(self, native: Native) -> bool:
        """Say whether an event shows that the response goes on; a keep-alive does not."""
        return shows_progress(native)

    def _refuse_sequence(self, native: Native) -> Never:
        sequence = whole(native, "sequence_number")
        raise violation(
            f"expected a sequence_number above {self._sequence}, saw {sequence}: "
            "an event was repeated or out of order"
        )

    def _unhandled(self, native: Native) -> tuple[Event, ...]:
        string(native, "type")
        return ()

    def _arguments_delta(self, native: Native) -> tuple[Event, ...]:
        item = self._growing(native, "function_call")
        if "call_id" in native or "name" in native:
            agree(item, native)
        return (ToolArgsDelta(item.call_id, string(native, "delta")),)

    def _text_delta(self, native: Native) -> tuple[Event, ...]:
        part, text = self._more_text(native)
        return (TextDelta(part, text),)

    def _refusal_delta(self, native: Native) -> tuple[Event, ...]:
        part, text = self._more_text(native)
        return (RefusalDelta(part, text),)

    def _more_text(self, native: Native) -> tuple[str, str]:
        item = self._growing(native, "message")
        part, text = _part_key(item, native), string(native, "delta")
        if text:
            item.texts.add(part)
        return part, text

    def _reasoning_delta(self, native: Native) -> tuple[Event, ...]:
        item = self._growing(native, "reasoning")
        return (ReasoningDelta(item.item_id, string(native, "delta")),)

    def _created(self, native: Native) -> tuple[Event, ...]:
        self._named(native)
        self._opened = True
        return (Opened(self._response_id or ""),)

    def _in_progress(self, native: Native) -> tuple[Event, ...]:
        self._refuse_unopened("response.in_progress")
        return self._named(native)

    def _named(self, native: Native) -> tuple[Event, ...]:
        response_id = string(record(native, "response"), "id")
        if not response_id:
            raise violation("expected a nonempty response ID", check="opened")
        self._response_id = response_id
        return ()

    def _compare_state(self, native: Native) -> None:
        # Whatever the event: what it says of the whole response is what was said before.
        body, kind, seen_ids = (
            native.get("response"),
            native.get("type"),
            [native.get("response_id")],
        )
        if isinstance(body, dict) and isinstance(kind, str) and kind not in TERMINAL_KINDS:
            problem = unfinished_problem(kind, body)
            if problem:
                raise violation(problem)
            seen_ids.append(body.get("id"))
        known = self._response_id
        for seen in seen_ids:
            if known is not None and seen is not None and seen != known:
                raise violation(
                    f"expected response ID {quote(known)}, saw {quote(seen)}", check="response_id"
                )

    def _item_added(self, native: Native) -> tuple[Event, ...]:
        self._refuse_unopened("response.output_item.added")
        native_item = record(native, "item")
        item = Item(
            string(native_item, "id"), string(native_item, "type"), whole(native, "output_index")
        )
        if not item.item_id:
            raise violation(f"expected an item ID, saw none on the {quote(item.kind)} item")
        if item.item_id in self._items:
            raise violation(f"item {quote(item.item_id)} was added twice")
        if item.index is not None:
            if item.index in self._indexes:
                raise violation(f"output_index {quote(item.index)} is used by two items")
            self._indexes.add(item.index)
        self._items[item.item_id] = item
        refuse_status(native_item, done=False)
        if item.kind == "message" and native_item.get("content") is not None:
            self._begun += message_parts(item.item_id, native_item)
        if item.kind != "function_call":
            agree(item, native_item)
            return ()
        item.call_id, item.name = string(native_item, "call_id"), string(native_item, "name")
        item.caller = native_item.get("caller")
        agree(item, native_item)
        arguments = string(native_item, "arguments", "")
        return (ToolStart(item.call_id, item.name, item.item_id, arguments),)

    def _item_done(self, native: Native) -> tuple[Event, ...]:
        native_item = record(native, "item")
        kind = string(native_item, "type")
        item = self._find(string(native_item, "id"), whole(native, "output_index"))
        if item.kind != kind:
            kinds = f"was {quote(item.kind)}, is done as {quote(kind)}"
            raise violation(f"item {quote(item.item_id)} {kinds}")
        if item.done:
            raise violation(f"item {quote(item.item_id)} was done twice")
        item.done = True
        take_done(item, native_item)
        agree(item, native_item)
        if kind == "function_call":
            return (ToolArgsDone(item.call_id, string(native_item, "arguments")),)
        if kind == "message":
            parts = message_parts(item.item_id, native_item)
            texts = [part for part in parts if isinstance(part, TerminalText)]
            refuse_missing(item.texts - {part.part for part in texts})
            return tuple(map(_text_done, texts))
        return ()

    def _part_added(self, native: Native) -> tuple[Event, ...]:
        item = self._growing(native)
        if item.kind == "message":
            self._begun.append(message_part(_part_key(item, native), record(native, "part")))
        return ()

    def _part_done(self, native: Native) -> tuple[Event, ...]:
        item = self._item(native)
        if item.kind != "message":
            return ()
        key = _part_key(item, native)
        part = message_part(key, record(native, "part"))
        if isinstance(part, TerminalText):
            return (_text_done(part),)
        refuse_missing(item.texts & {key})
        return ()

    def _text_done(self, native: Native) -> tuple[Event, ...]:
        part = _part_key(self._item(native, "message"), native)
        return (TextDone(part, string(native, "text")),)

    def _refusal_done(self, native: Native) -> tuple[Event, ...]:
        part = _part_key(self._item(native, "message"), native)
        return (TextDone(part, string(native, "refusal"), refusal=True),)

    def _arguments_done(self, native: Native) -> tuple[Event, ...]:
        item = self._item(native, "function_call")
        agree(item, native)
        return (ToolArgsDone(item.call_id, string(native, "arguments")),)

    def _completed(self, native: Native) -> tuple[Event, ...]:
        body = record(native, "response")
        self.usage = read_usage(body.get("usage"))
        items = list(self._terminal_items(body))
        refuse_other_beginning(self._begun, items)
        problem = body_problem(body)
        return (
            Completed(
                response_id=string(body, "id"),
                problem=problem,
                items=tuple(item for item in items if not isinstance(item, TerminalOther)),
                others=tuple(item for item in items if isinstance(item, TerminalOther)),
                usage=self.usage,
                native=self._native_turn(body),
                # This API has no other word for it.
                stop_reason="" if problem else string(body, "status"),
            ),
        )

    def _native_turn(self, body: Native) -> NativeTurn | None:
        if self._native and any(says_more(item) for item in body["output"]):
            return NativeTurn("responses", tuple(body["output"]))
        return None

    def _stopped(self, native: Native) -> tuple[Event, ...]:
        end = read_stop(native)
        self.usage = end.usage
        return (end,)

    def _refuse_unopened(self, kind: str) -> None:
        if not self._opened:
            raise violation(f"expected response.created first, saw {kind}", check="opened")

    def _item(self, native: Native, kind: str | None = None) -> Item:
        item = self._find(string(native, "item_id"), whole(native, "output_index"))
        if kind is not None and item.kind != kind:
            seen = f"is a {quote(item.kind)}, saw {quote(native['type'])} for it"
            raise violation(f"item {quote(item.item_id)} {seen}")
        return item

    def _growing(self, native: Native, kind: str | None = None) -> Item:
        # Every delta comes through here: the common case is told at once, the rest in full.
        item_id, index = native.get("item_id"), native.get("output_index")
        known = self._items.get(item_id) if type(item_id) is str else None
        if (
            known is not None
            and known.kind == kind
            and not known.done
            and (index is None or index is known.index)
        ):
            return known
        item = self._item(native, kind)
        if item.done:
            raise violation(f"item {quote(item.item_id)} goes on after its done")
        return item

    def _find(self, item_id: str, index: int | None) -> Item:
        item = self._items.get(item_id)
        if item is None:
            self._refuse_unopened("an event of an item")
            raise violation(f"item {quote(item_id)} was never added")
        if index is not None and index != item.index:
            places = f"output_index {quote(item.index)}, saw {quote(index)}"
            raise violation(f"item {quote(item_id)} was added at {places}")
        return item

    def _terminal_items(self, body: Native) -> Iterable[TerminalItem | TerminalOther]:
        refuse_stopped(self._items.values())
        missing = dict(self._items)
        places = {item_id: place for place, item_id in enumerate(self._items)}
        output = item_list(body, "output")
        answered = answers(output)
        last = -1
        for native_item in output:
            kind = string(native_item, "type")
            item_id = string(native_item, "id", "")
            known = missing.get(item_id)
            if known is not None and known.kind == kind:
                del missing[item_id]
                last = refuse_disorder(known, places[item_id], last)
                agree_at_the_end(known, native_item)
            else:
                known = None
            if kind == "function_call":
                if known is not None and native_item.get("caller") != known.caller:
                    raise violation(f"item {quote(item_id)} has another caller at the end")
                if native_item.get("status") == "completed":
                    refuse_status(native_item, done=True)
                yield terminal_call(native_item, native=self._native)
                if is_of_a_program(native_item):
                    yield TerminalOther(kind, "" if self._native else OF_A_PROGRAM)
                continue
            refused = status_problem(native_item, done=True)
            if kind == "message":
                yield from message_parts(item_id, native_item)
            else:
                refused = refused or refusal(native_item, answered, native=self._native)
            if kind != "message" or refused or known is None:
                yield TerminalOther(kind, refused, "" if known else "invented")
        for item in missing.values():
            if item.kind != "function_call":
                yield TerminalOther(item.kind, fault="omitted")


def _part_key(item: Item, native: Native) -> str:
    place = native.get("content_index", 0)
    if type(place) is not int or not 0 <= place < MAX_COUNT:
        place = whole(native, "content_index", 0)
    return f"{item.item_id}/{place}"


def _text_done(part: TerminalText) -> TextDone:
    return TextDone(part.part, part.text, part.refusal)

"""What a diagnosis looks at: the events of one response, and what the gate found in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from agentlib.evidence import Evidence
from agentlib.failures import ResponseFailure
from agentlib.gate import Finding
from agentlib.reader import ResponseReader
from agentlib.recordings.events import CapturedResponse, with_last_event
from agentlib.sse import DONE_EVENT

Native = Mapping[str, Any]
ENDS = {
    "responses": ("response.completed", "response.failed", "response.incomplete"),
    "messages": ("message_stop",),
}


_RESTATING = (
    "response.function_call_arguments.done",
    "response.output_text.done",
    "response.output_item.done",
    "response.completed",
)


class Piece(NamedTuple):
    """A text of a Responses item in one of its places: a delta, a done, or a later restatement."""

    key: tuple[object, ...]
    text: str
    restated: bool


@dataclass(frozen=True)
class Seen:
    """One response of a provider, and what came of reading it: `failure` None where released.

    `helps` are the tolerances each of which alone would have released it.
    """

    provider: str
    response: CapturedResponse
    evidence: Evidence
    findings: tuple[Finding, ...] = ()
    failure: ResponseFailure | None = None
    unread: int = 0
    helps: frozenset[str] = frozenset()

    @property
    def check(self) -> str | None:
        """The check that refused it, or None."""
        return self.failure.check if self.failure is not None else None

    @property
    def is_responses(self) -> bool:
        """Whether it speaks OpenAI Responses."""
        return self.provider == "responses"

    @property
    def is_chat(self) -> bool:
        """Whether it speaks OpenAI Chat Completions."""
        return self.provider == "chat"

    @property
    def is_messages(self) -> bool:
        """Whether it speaks Anthropic Messages."""
        return self.provider == "messages"

    @property
    def is_gemini(self) -> bool:
        """Whether it speaks Google Gemini."""
        return self.provider == "gemini"

    @cached_property
    def events(self) -> tuple[Native, ...]:
        """Its native events."""
        return tuple(event.data for event in self.response.events)

    @cached_property
    def _by_kind(self) -> dict[str, list[Native]]:
        # The detectors ask for a few events of many: the many are gone through once.
        found: dict[str, list[Native]] = {}
        for event in self.events:
            kind = event.get("type")
            if type(kind) is str:
                if kind in found:
                    found[kind].append(event)
                else:
                    found[kind] = [event]
        return found

    def of_kind(self, *kinds: str) -> list[Native]:
        """Return its events of these kinds, those of one kind in their order."""
        return [event for kind in kinds for event in self._by_kind.get(kind, ())]

    @cached_property
    def choices(self) -> list[Native]:
        """Every choice of every chunk of a Chat stream."""
        held = [event["choices"] for event in self.events if "choices" in event]
        return [each for choices in held for each in objects(choices)]

    @cached_property
    def call_fragments(self) -> list[Native]:
        """Every fragment of a call in a Chat stream."""
        deltas = [record(choice.get("delta")) for choice in self.choices]
        return [call for delta in deltas for call in objects(delta.get("tool_calls"))]

    @cached_property
    def candidates(self) -> list[Native]:
        """Every candidate of every chunk of a Gemini stream."""
        held = [event["candidates"] for event in self.events if "candidates" in event]
        return [each for candidates in held for each in objects(candidates)]

    @cached_property
    def items(self) -> tuple[Native, ...]:
        """Every item of a Responses stream, wherever it stands: begun, done, restated."""
        own = [record(event["item"]) for event in self.events if "item" in event]
        return (*own, *(each for body in self.bodies for each in objects(body.get("output"))))

    @cached_property
    def bodies(self) -> tuple[Native, ...]:
        """The whole responses that events of a Responses stream carry."""
        return tuple(record(event["response"]) for event in self.events if "response" in event)

    @cached_property
    def stop(self) -> str:
        """The finish reason or stop reason that it gave last, "" where it gave none."""
        reasons = [choice.get("finish_reason") for choice in self.choices]
        reasons += [
            record(e.get("delta")).get("stop_reason") for e in self.of_kind("message_delta")
        ]
        reasons += [candidate.get("finishReason") for candidate in self.candidates]
        reasons += [
            record(event["promptFeedback"]).get("blockReason")
            for event in self.events
            if "promptFeedback" in event
        ]
        for body in self.bodies:
            reasons.append(record(body.get("incomplete_details")).get("reason"))
        return next((each for each in reversed(reasons) if isinstance(each, str) and each), "")

    @cached_property
    def errors(self) -> tuple[Native, ...]:
        """The errors that it reports in its midst."""
        found = (e for e in self.events if e.get("type") == "error" or record(e.get("error")))
        return tuple(record(event.get("error")) or event for event in found)

    @property
    def has_ended(self) -> bool:
        """Whether its own events end it, well or not."""
        if self.is_chat or self.is_gemini:
            return bool(self.stop)
        return bool(self.of_kind(*ENDS.get(self.provider, ())))

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Each text and each call's arguments of a Responses stream, in all their places."""
        places = self._places
        return tuple(piece for event in self.events for piece in _pieces(event, places))

    @cached_property
    def restated(self) -> list[Piece]:
        """The pieces that repeat what was streamed, or should have."""
        events = [event for event in self.events if event.get("type") in _RESTATING]
        pieces = [piece for event in events for piece in _pieces(event, self._places)]
        return [piece for piece in pieces if piece.restated]

    @cached_property
    def streamed_keys(self) -> set[tuple[object, ...]]:
        """The keys of the pieces that came in fragments."""
        text_deltas = self.of_kind("response.output_text.delta")
        keys = {(place(e), whole(e.get("content_index")) or 0) for e in text_deltas}
        calls = self.of_kind("response.function_call_arguments.delta")
        return keys | {(place(e), "arguments") for e in calls}

    @cached_property
    def _places(self) -> dict[str, object]:
        added = self.of_kind("response.output_item.added")
        return {text(record(event.get("item")).get("id")): place(event) for event in added}


def read_response(reader: ResponseReader, response: CapturedResponse) -> ResponseFailure | None:
    """Read a response to its end; return why it was refused, or None where it was released."""
    try:
        for event in with_last_event(response, reader.compat).events:
            reader.accept(event.data)
        if response.fault is not None:
            reader.fault(response.fault)
        if response.done_marker:
            reader.accept(DONE_EVENT)
        reader.end()
    except ResponseFailure as failure:
        return failure
    return None


def record(value: object) -> Native:
    """Return an object, or an empty one where the value is none."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Native]:
    """Return the objects of a list, none where the value is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a text, or an empty one where the value is none."""
    return value if isinstance(value, str) else ""


def whole(value: object) -> int | None:
    """Return a whole number, or None where the value is none."""
    return value if isinstance(value, int) else None


def place(event: Native) -> object:
    """Return what tells one item of a response from another: its index, or else its ID."""
    index = event.get("output_index")
    return index if isinstance(index, int) else text(event.get("item_id"))


def _pieces(event: Native, places: Mapping[str, object]) -> Iterator[Piece]:
    kind = text(event.get("type"))
    if kind == "response.completed":
        for index, item in enumerate(objects(record(event.get("response")).get("output"))):
            yield from _of_item(item, places.get(text(item.get("id")), index))
    elif kind == "response.output_item.done":
        yield from _of_item(record(event.get("item")), place(event))
    elif kind.startswith("response.function_call_arguments."):
        fragment = text(event.get("delta", event.get("arguments")))
        yield Piece((place(event), "arguments"), fragment, kind.endswith(".done"))
    elif kind.startswith("response.output_text.") and kind.endswith((".delta", ".done")):
        fragment = text(event.get("delta", event.get("text")))
        key = (place(event), whole(event.get("content_index")) or 0)
        yield Piece(key, fragment, kind.endswith(".done"))


def _of_item(item: Native, where: object) -> Iterator[Piece]:
    if item.get("type") == "function_call":
        yield Piece((where, "arguments"), text(item.get("arguments")), restated=True)
    for index, part in enumerate(objects(item.get("content"))):
        if part.get("type") == "output_text":
            yield Piece((where, index), text(part.get("text")), restated=True)

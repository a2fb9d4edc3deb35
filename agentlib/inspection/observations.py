"""What a diagnosis looks at: the events of one response, and what the gate said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from agentlib.failures import ResponseFailure
from agentlib.gate import Evidence, Finding
from agentlib.recordings.events import CapturedResponse

Native = Mapping[str, Any]
ENDS = {
    "responses": ("response.completed", "response.failed", "response.incomplete"),
    "messages": ("message_stop",),
}


class Piece(NamedTuple):
    """A text of a Responses item in one of its places: a delta, a done, or a later restatement."""

    key: tuple[object, ...]
    text: str
    restated: bool


@dataclass(frozen=True)
class Seen:
    """One response of a provider, and what came of reading it: `failure` None where released."""

    provider: str
    response: CapturedResponse
    evidence: Evidence
    findings: tuple[Finding, ...] = ()
    failure: ResponseFailure | None = None
    unread: int = 0

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

    @cached_property
    def events(self) -> tuple[Native, ...]:
        """Its native events."""
        return tuple(event.data for event in self.response.events)

    def of_kind(self, *kinds: str) -> Iterator[Native]:
        """Yield its events of these kinds."""
        return (event for event in self.events if event.get("type") in kinds)

    @cached_property
    def choices(self) -> tuple[Native, ...]:
        """Every choice of every chunk of a Chat stream."""
        return tuple(each for event in self.events for each in objects(event.get("choices")))

    @cached_property
    def call_fragments(self) -> tuple[Native, ...]:
        """Every fragment of a call in a Chat stream."""
        return tuple(
            call
            for choice in self.choices
            for call in objects(record(choice.get("delta")).get("tool_calls"))
        )

    @cached_property
    def items(self) -> tuple[Native, ...]:
        """Every item of a Responses stream, wherever it stands: begun, done, restated."""
        own = [record(event.get("item")) for event in self.events if "item" in event]
        return (*own, *(each for body in self.bodies for each in objects(body.get("output"))))

    @cached_property
    def bodies(self) -> tuple[Native, ...]:
        """The whole responses that events of a Responses stream carry."""
        return tuple(record(event["response"]) for event in self.events if "response" in event)

    @cached_property
    def stop(self) -> str:
        """The finish reason or stop reason that it gave, "" where it gave none."""
        told = [choice.get("finish_reason") for choice in self.choices]
        told += [record(e.get("delta")).get("stop_reason") for e in self.of_kind("message_delta")]
        for body in self.bodies:
            told.append(record(body.get("incomplete_details")).get("reason"))
        return next((reason for reason in reversed(told) if isinstance(reason, str) and reason), "")

    @cached_property
    def errors(self) -> tuple[Native, ...]:
        """The errors that it reports in its midst."""
        told = (e for e in self.events if e.get("type") == "error" or record(e.get("error")))
        return tuple(record(event.get("error")) or event for event in told)

    @property
    def has_ended(self) -> bool:
        """Whether its own words end it, well or not."""
        if self.is_chat:
            return bool(self.stop)
        return any(self.of_kind(*ENDS.get(self.provider, ())))

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Each text and each call's arguments of a Responses stream, in all their places."""
        added = self.of_kind("response.output_item.added")
        places = {text(record(event.get("item")).get("id")): place(event) for event in added}
        return tuple(piece for event in self.events for piece in _pieces(event, places))


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
        said = text(event.get("delta", event.get("arguments")))
        yield Piece((place(event), "arguments"), said, kind.endswith(".done"))
    elif kind.startswith("response.output_text.") and kind.endswith((".delta", ".done")):
        said = text(event.get("delta", event.get("text")))
        key = (place(event), whole(event.get("content_index")) or 0)
        yield Piece(key, said, kind.endswith(".done"))


def _of_item(item: Native, where: object) -> Iterator[Piece]:
    if item.get("type") == "function_call":
        yield Piece((where, "arguments"), text(item.get("arguments")), restated=True)
    for index, part in enumerate(objects(item.get("content"))):
        if part.get("type") == "output_text":
            yield Piece((where, index), text(part.get("text")), restated=True)

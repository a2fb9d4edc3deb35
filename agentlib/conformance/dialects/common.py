"""What a dialect is: one API's way to tell a story as native events, and its law.

A dialect is also the referee of its API: `read` says which story a stream tells, if it is, word
for word, one that the API allows. The referee is written from the API's reference and apart from
the translators that the kit tries; it is strict, since what it accepts wrongly would excuse a leak.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

from agentlib.conformance.dialects.reference import Illegal, Unseen
from agentlib.conformance.script import Content, Story
from agentlib.conversation import Usage

Native: TypeAlias = dict[str, Any]

# What an event is within the telling of a story: the same words for every dialect.
OPENING = "opening"
NOTHING = "keep-alive"
TEXT = "text"
TEXT_END = "text end"
REASONING = "reasoning"
CALL_START = "call start"
ARGUMENTS = "arguments"
CALL_END = "call end"
WHOLE_CALL = "whole call"
STOP_REASON = "stop reason"
USAGE = "usage"
TERMINAL = "terminal"


class Said:
    """One native event of a telling: what it is, and the call ID that it belongs to, if any."""

    __slots__ = ("call", "event", "place")

    def __init__(self, place: str, event: Native, call: str = "") -> None:
        self.place = place
        self.event = event
        self.call = call

    def saying(self, event: Native) -> Said:
        """Return another event at the same place."""
        return Said(self.place, event, self.call)


Telling: TypeAlias = list[Said]
Variant: TypeAlias = tuple[str, Telling]


class Framing(Protocol):
    """How a dialect cuts a story into events; `name` says in which way it is special."""

    @property
    def name(self) -> str:
        """A few words, unique within its dialect."""
        ...


class Dialect(ABC):
    """One API's way to tell a story, and its law."""

    name: ClassVar[str]
    title: ClassVar[str]
    # Keys of the events, by what harm can be done to what stands there.
    ids: ClassVar[frozenset[str]]
    numbers: ClassVar[frozenset[str]]
    names: ClassVar[frozenset[str]]
    fragments: ClassVar[frozenset[str]]
    # What of a stream no client of this API can see, and why.
    unseen: ClassVar[tuple[Unseen, ...]] = ()

    @property
    @abstractmethod
    def framings(self) -> Sequence[Framing]:
        """Every framing, the plain one first."""

    @property
    @abstractmethod
    def harmed(self) -> Sequence[Framing]:
        """The few framings whose every harm is tried; the others are harmed at random."""

    def tells(self, story: Story) -> bool:
        """Say whether this API has words for the story, with this end."""
        del story
        return True

    @abstractmethod
    def tell(self, story: Story, framing: Any) -> Telling:
        """Return the story's native events."""

    @abstractmethod
    def usage(self, story: Story) -> Usage | None:
        """Return the story's usage, as far as this API can report it."""

    @abstractmethod
    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether the stream, as it stands, says that its response completed."""

    def is_its_own(self, events: Sequence[Native]) -> bool:
        """Say whether the end in the stream, where it names a response, names this one."""
        del events
        return True

    @abstractmethod
    def stops(self, telling: Telling) -> Iterator[Variant]:
        """Yield the telling once with each other end that this API has a word for."""

    @abstractmethod
    def judge(self, events: Sequence[Native]) -> Content:
        """Return what the stream tells; raises where the API's law does not allow it."""

    def read(self, events: Sequence[Native]) -> Content | None:
        """Return the content of the story that the stream tells, or None where it tells none."""
        try:
            return self.judge(events)
        except (Illegal, LookupError, TypeError, ValueError, AttributeError, RecursionError):
            return None


def pieces(text: str, size: int, *, units: bool = False) -> list[str]:
    """Cut a text into fragments of `size` characters.

    `units` counts UTF-16 code units, as a server written in JavaScript would.
    """
    if not units:
        return [text[at : at + size] for at in range(0, len(text), size)]
    data = text.encode("utf-16-le")
    cuts = (data[at : at + 2 * size] for at in range(0, len(data), 2 * size))
    return [cut.decode("utf-16-le", "surrogatepass") for cut in cuts]


def merged(tracks: Iterable[Sequence[Said]], *, interleaved: bool) -> Telling:
    """Put the tracks one after the other, or begin them in order and then let each take turns."""
    if not interleaved:
        return [said for track in tracks for said in track]
    queues = [list(track) for track in tracks if track]
    telling = [queue.pop(0) for queue in queues]
    while any(queues):
        telling += [queue.pop(0) for queue in queues if queue]
    return telling


def with_nothings(telling: Telling, nothings: Sequence[Native]) -> Telling:
    """Put events that say nothing between the others, in turn."""
    spread: Telling = []
    for number, said in enumerate(telling):
        spread.append(said)
        if number < len(telling) - 1:
            spread.append(Said(NOTHING, dict(nothings[number % len(nothings)])))
    return spread


def changed(said: Said, **fields: Any) -> Said:
    """Return the event with some of its fields replaced."""
    return said.saying({**said.event, **fields})

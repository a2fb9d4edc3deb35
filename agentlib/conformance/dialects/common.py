"""What a dialect is: one API's way to encode a script as native events, and its reference reader.

The reference reader, `read`, returns the content that a stream expresses, if the stream is, word
for word, one that the API allows. It is written from the API's reference and apart from the
translators that the kit tries; it is strict, since what it accepts wrongly would excuse a leak.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

from agentlib.conformance.dialects.reference import NotAllowed, Unseen
from agentlib.conformance.script import Content, Script
from agentlib.conversation import Usage

Native: TypeAlias = dict[str, Any]

# What an event is within the encoding of a script: the same words for every dialect.
OPENING = "opening"
KEEP_ALIVE = "keep-alive"
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


class EncodedEvent:
    """One native event of a encoding: what it is, and the call ID that it belongs to, if any."""

    __slots__ = ("call", "event", "place")

    def __init__(self, place: str, event: Native, call: str = "") -> None:
        self.place = place
        self.event = event
        self.call = call

    def with_event(self, event: Native) -> EncodedEvent:
        """Return another event at the same place."""
        return EncodedEvent(self.place, event, self.call)


Encoding: TypeAlias = list[EncodedEvent]
Variant: TypeAlias = tuple[str, Encoding]


class Framing(Protocol):
    """How a dialect cuts a script into events; `name` is what is special about it."""

    @property
    def name(self) -> str:
        """A few words, unique within its dialect."""
        ...


class Dialect(ABC):
    """One API's way to encode a script, and its reference reader."""

    name: ClassVar[str]
    title: ClassVar[str]
    # Keys of the events, by what mutation can be done to what stands there.
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
    def mutated(self) -> Sequence[Framing]:
        """The few framings whose every mutation is tried; the others are mutated at random."""

    def expresses(self, script: Script) -> bool:
        """Say whether this API has words for the script, with this end."""
        del script
        return True

    @abstractmethod
    def encode(self, script: Script, framing: Any) -> Encoding:
        """Return the script's native events."""

    @abstractmethod
    def usage(self, script: Script) -> Usage | None:
        """Return the script's usage, as far as this API can report it."""

    @abstractmethod
    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether the stream, as it stands, says that its response completed."""

    def is_its_own(self, events: Sequence[Native]) -> bool:
        """Say whether the end in the stream, where it names a response, names this one."""
        del events
        return True

    @abstractmethod
    def stops(self, encoding: Encoding) -> Iterator[Variant]:
        """Yield the encoding once with each other end that this API has a word for."""

    @abstractmethod
    def decode(self, events: Sequence[Native]) -> Content:
        """Return what the stream expresses; raises where the API does not allow it."""

    def read(self, events: Sequence[Native]) -> Content | None:
        """Return the content that the stream expresses, None where it is no valid encoding."""
        try:
            return self.decode(events)
        except (NotAllowed, LookupError, TypeError, ValueError, AttributeError, RecursionError):
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


def merged(tracks: Iterable[Sequence[EncodedEvent]], *, interleaved: bool) -> Encoding:
    """Put the tracks one after the other, or begin them in order and then let each take turns."""
    if not interleaved:
        return [sent for track in tracks for sent in track]
    queues = [list(track) for track in tracks if track]
    encoding = [queue.pop(0) for queue in queues]
    while any(queues):
        encoding += [queue.pop(0) for queue in queues if queue]
    return encoding


def with_keep_alives(encoding: Encoding, keep_alives: Sequence[Native]) -> Encoding:
    """Put events without content between the others, in turn."""
    spread: Encoding = []
    for number, sent in enumerate(encoding):
        spread.append(sent)
        if number < len(encoding) - 1:
            spread.append(EncodedEvent(KEEP_ALIVE, dict(keep_alives[number % len(keep_alives)])))
    return spread


def changed(sent: EncodedEvent, **fields: Any) -> EncodedEvent:
    """Return the event with some of its fields replaced."""
    return sent.with_event({**sent.event, **fields})

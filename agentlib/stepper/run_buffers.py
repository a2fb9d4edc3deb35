"""The texts and arguments of a run as they grow, turn by turn: one buffer for each."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from agentlib.stepper.trace import TracedBuffer, shown

# What a buffer is found by within its turn: its kind, and a call ID or a text's part.
Key: TypeAlias = tuple[str, str]


class RunBuffer(NamedTuple):
    """A text or a call's arguments as they came in a turn."""

    turn: int
    buffer: TracedBuffer


class Buffers:
    """The buffers of a run; `at` is always the number of a moment."""

    def __init__(self) -> None:
        self._all: list[RunBuffer] = []
        self._texts: list[list[str]] = []
        self._places: dict[Key, int] = {}
        self._turn = 0

    def turn(self, number: int) -> None:
        """Begin a turn: its buffers are others, whatever they are called."""
        self._turn, self._places = number, {}

    def begin(self, key: Key, buffer: TracedBuffer, text: str) -> int:
        """Begin a buffer with `text`, or let it grow where it is there; return its place."""
        if key not in self._places:
            self._places[key] = len(self._all)
            self._all.append(RunBuffer(self._turn, buffer))
            self._texts.append([])
        return self.grow(key, buffer.start, text)

    def grow(self, key: Key, at: int, text: str) -> int:
        """Let a buffer grow and return its place; -1 where there is none."""
        place = self._places.get(key, -1)
        if place >= 0 and text:
            self._texts[place].append(text)
            buffer = self._all[place].buffer
            buffer.at.append(at)
            buffer.length.append((buffer.length[-1] if buffer.length else 0) + len(text))
        return place

    def finish(self, key: Key, at: int) -> int:
        """Note that a buffer is done and return its place; -1 where there is none."""
        place = self._places.get(key, -1)
        if place >= 0 and not self._all[place].buffer.done:
            self._all[place].buffer.done = at
        return place

    def name(self, place: int) -> str:
        """Return the name of the call in a place, or nothing."""
        return (self._all[place].buffer.name or "") if place >= 0 else ""

    def whole(self) -> tuple[RunBuffer, ...]:
        """Return the buffers, each with its final text."""
        for run_buffer, parts in zip(self._all, self._texts, strict=True):
            buffer = run_buffer.buffer
            buffer.text, buffer.length = shown("".join(parts), buffer.length)
        return tuple(self._all)

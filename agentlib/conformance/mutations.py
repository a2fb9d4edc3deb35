"""Harm: every hostile stream that one telling of a story gives, and any mixture of them.

`every_harm` yields each way to do each kind of harm, one at a time; `mixture` does several, chosen
by a seeded generator. A harmed telling shares the events that it did not change with the one that
it came from: nobody may change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple, TypeAlias

from agentlib.conformance.dialects.common import (
    STOP_REASON,
    TERMINAL,
    USAGE,
    Dialect,
    Framing,
    Native,
    Said,
    Telling,
)
from agentlib.conformance.script import Story, StoryCall
from agentlib.mutations import Path, cut, double, drop, nodes, put, remove, swap

KINDS: dict[str, str] = {
    "cut": "the stream ends early",
    "drop": "an event or a list's entry is lost",
    "double": "an event or a list's entry comes twice",
    "swap": "two neighbours change places",
    "move": "an event comes at another place",
    "id": "an ID is changed",
    "number": "an index or another number is changed",
    "name": "a tool's name is changed",
    "alter": "a text is altered by one character",
    "field": "a field is missing, null or mistyped",
    "stop": "the end says something else",
    "lost": "a whole call is lost",
    "extra": "a whole call comes from nowhere",
    "story": "the model asks for what must not run",
    "mixture": "several of these at once",
}

# One change inside of an event: its kind, what it does, and the event that it leaves.
Edit: TypeAlias = tuple[str, str, Native]
EXTRA = StoryCall("call_z", "remove", '{"path": "z"}')


class Told(NamedTuple):
    """A story as a dialect tells it in one framing."""

    dialect: Dialect
    story: Story
    framing: Framing
    telling: Telling

    @property
    def events(self) -> list[Native]:
        """The native events."""
        return [said.event for said in self.telling]


class Harm(NamedTuple):
    """What was done: the kind of harm, what the event was in the story, and the exact act."""

    kind: str
    place: str
    act: str

    def __str__(self) -> str:
        return f"{self.kind} · {self.place} · {self.act}"


Harmed: TypeAlias = tuple[Harm, Telling]


def every_harm(told: Told, *, fields: bool = True, letters: bool = True) -> Iterator[Harmed]:
    """Yield every harm of one kind at one place, with the telling that it leaves.

    `fields` is whether each field is also taken away, made null, and given another type, and
    `letters` whether each character of a text is also lost and doubled: these are most of all.
    """
    telling = told.telling
    for at, said in enumerate(telling):
        yield _cut(telling, at)
        yield from _around(telling, at)
        for path, value in nodes(said.event):
            for edit in _in_a_node(told.dialect, telling, said, path, value):
                if _is_meant(edit, fields=fields, letters=letters):
                    yield _edited(telling, at, edit)
    yield from _stops(told, telling)
    yield from _whole_calls(told, telling)


def _is_meant(edit: Edit, *, fields: bool, letters: bool) -> bool:
    kind, act, _ = edit
    if kind == "field":
        return fields
    return letters or kind != "alter" or act.endswith("replaced")


def mixture(told: Told, rng: Random) -> tuple[tuple[Harm, ...], Telling]:
    """Do one to four harms to a telling, by `rng`, one after the other.

    What finds nothing to harm is left out, so that there may be none.
    """
    harms: list[Harm] = []
    telling = told.telling
    for _ in range(rng.choice(_HOW_MANY)):
        if telling:
            harmed = rng.choice(_RANDOM)(told, telling, rng)
            if harmed is not None:
                harm, telling = harmed
                harms.append(harm)
    return tuple(harms), telling


_HOW_MANY = (1, 1, 2, 2, 2, 3, 3, 4)


def are_several(harms: Sequence[Harm]) -> bool:
    """Say whether it is more than one harm: a move is as many swaps as it goes places."""
    return len(harms) != 1 or harms[0].kind == "move"


def kind_of(harms: Sequence[Harm]) -> str:
    """Return the kind of harm that was done: a mixture where there were several."""
    return harms[0].kind if len(harms) == 1 else "mixture"


def _cut(telling: Telling, at: int) -> Harmed:
    return Harm("cut", telling[at].place, f"before event {at + 1}"), cut(telling, at)


def _around(telling: Telling, at: int) -> Iterator[Harmed]:
    said = telling[at]
    yield Harm("drop", said.place, f"event {at + 1}"), drop(telling, at)
    yield Harm("double", said.place, f"event {at + 1}"), double(telling, at)
    if at + 1 < len(telling):
        act = f"events {at + 1} and {at + 2}"
        yield Harm("swap", said.place, act), swap(telling, at)


def _stops(told: Told, telling: Telling) -> Iterator[Harmed]:
    for act, harmed in told.dialect.stops(telling):
        yield Harm("stop", "end", act), harmed


def _whole_calls(told: Told, telling: Telling) -> Iterator[Harmed]:
    for call in told.story.calls:
        rest = [said for said in telling if said.call != call.call_id]
        if len(rest) < len(telling):
            yield Harm("lost", "whole call", call.call_id), rest
    longer = replace(told.story, calls=(*told.story.calls, EXTRA))
    retold = told.dialect.tell(longer, told.framing)
    extra = [said for said in retold if said.call == EXTRA.call_id]
    end = next((at for at, s in enumerate(telling) if s.place in _ENDS), len(telling))
    before = [*telling[:end], *extra, *telling[end:]]
    yield Harm("extra", "before the end", EXTRA.call_id), before
    yield Harm("extra", "after the end", EXTRA.call_id), [*telling, *extra]
    ends = [said for said in retold if said.place in _ENDS]
    yield Harm("extra", "in the end alone", EXTRA.call_id), [*telling[:end], *ends]


_ENDS = frozenset({STOP_REASON, TERMINAL, USAGE})


# --------------------------------------------------------------------------- inside of one event


def _in_a_node(
    dialect: Dialect, telling: Telling, said: Said, path: Path, value: Any
) -> Iterator[Edit]:
    event, where = said.event, ".".join(map(str, path))
    for kind, what, new in _values(dialect, telling, path, value):
        yield kind, f"{where} {what}", put(event, path, new)
    if not isinstance(path[-1], int):
        yield "field", f"{where} missing", remove(event, path)
    if value is not None:
        yield "field", f"{where} null", put(event, path, None)
    yield "field", f"{where} of another type", put(event, path, _of_another_type(value))


def _values(
    dialect: Dialect, telling: Telling, path: Path, value: Any
) -> Iterator[tuple[str, str, Any]]:
    key = path[-1]
    if isinstance(value, list):
        yield from _lists(value)
    elif isinstance(value, str):
        if key in dialect.ids:
            yield from (("id", what, new) for what, new in _other_ids(telling, key, value))
        elif key in dialect.names:
            yield from (("name", what, new) for what, new in _other_names(value))
        elif key in dialect.fragments:
            for at in range(len(value)):
                yield from (("alter", what, new) for what, new in _altered(value, at))
    elif key in dialect.numbers and type(value) is int:
        yield "number", "one more", value + 1
        yield "number", "one less", value - 1


def _lists(value: list[Any]) -> Iterator[tuple[str, str, list[Any]]]:
    for at in range(len(value)):
        yield "drop", f"entry {at}", drop(value, at)
        yield "double", f"entry {at}", double(value, at)
        if at + 1 < len(value):
            yield "swap", f"entries {at} and {at + 1}", swap(value, at)


def _other_ids(telling: Telling, key: str | int, value: str) -> Iterator[tuple[str, str]]:
    yield "another", f"{value[:-1]}y"
    yield "empty", ""
    yield from (("one of the others", other) for other in _ids(telling, key) if other != value)


def _ids(telling: Telling, key: str | int) -> list[str]:
    found: dict[str, None] = {}
    for said in telling:
        for path, value in nodes(said.event):
            if path[-1] == key and isinstance(value, str) and value:
                found[value] = None
    return list(found)


def _other_names(value: str) -> Iterator[tuple[str, str]]:
    yield "unknown", f"{value}_"
    yield "empty", ""
    yield "of a tool that takes the same", "remove" if value == "read" else "read"


def _altered(value: str, at: int) -> Iterator[tuple[str, str]]:
    other = chr(ord(value[at]) ^ 1)
    yield f"character {at + 1} replaced", f"{value[:at]}{other}{value[at + 1 :]}"
    yield f"character {at + 1} lost", drop(value, at)
    yield f"character {at + 1} doubled", double(value, at)


def _of_another_type(value: Any) -> Any:
    if isinstance(value, str):
        return 7
    return "7" if isinstance(value, int | None) else (7 if isinstance(value, dict) else {"0": 7})


# ------------------------------------------------------------------------------------ at random


def _random_cut(_: Told, telling: Telling, rng: Random) -> Harmed:
    return _cut(telling, rng.randrange(len(telling)))


def _random_around(_: Told, telling: Telling, rng: Random) -> Harmed:
    return rng.choice(list(_around(telling, rng.randrange(len(telling)))))


def _random_move(_: Told, telling: Telling, rng: Random) -> Harmed:
    source, target = rng.randrange(len(telling)), rng.randrange(len(telling))
    said, rest = telling[source], drop(telling, source)
    rest.insert(target, said)
    return Harm("move", said.place, f"event {source + 1} to place {target + 1}"), rest


def _random_stop(told: Told, telling: Telling, rng: Random) -> Harmed | None:
    found = list(_stops(told, telling))
    return rng.choice(found) if found else None


def _random_call(told: Told, telling: Telling, rng: Random) -> Harmed:
    return rng.choice(list(_whole_calls(told, telling)))


def _random_field(told: Told, telling: Telling, rng: Random) -> Harmed | None:
    at = rng.randrange(len(telling))
    said = telling[at]
    found = list(nodes(said.event))
    if not found:
        return None
    path, value = rng.choice(found)
    edits = list(_in_a_node(told.dialect, telling, said, path, value))
    return _edited(telling, at, rng.choice(edits))


def _random_alter(told: Told, telling: Telling, rng: Random) -> Harmed | None:
    at = rng.randrange(len(telling))
    said = telling[at]
    fragments = told.dialect.fragments
    found = [
        (path, value)
        for path, value in nodes(said.event)
        if path[-1] in fragments and isinstance(value, str) and value
    ]
    if not found:
        return None
    path, value = rng.choice(found)
    what, new = rng.choice(list(_altered(value, rng.randrange(len(value)))))
    act = f"{'.'.join(map(str, path))} {what}"
    return _edited(telling, at, ("alter", act, put(said.event, path, new)))


def _random_identity(told: Told, telling: Telling, rng: Random) -> Harmed | None:
    at = rng.randrange(len(telling))
    said, dialect = telling[at], told.dialect
    keys = dialect.ids | dialect.names | dialect.numbers
    found = [
        (kind, f"{'.'.join(map(str, path))} {what}", put(said.event, path, new))
        for path, value in nodes(said.event)
        if path[-1] in keys
        for kind, what, new in _values(dialect, telling, path, value)
    ]
    return _edited(telling, at, rng.choice(found)) if found else None


def _edited(telling: Telling, at: int, edit: Edit) -> Harmed:
    kind, act, event = edit
    said = telling[at]
    return Harm(kind, said.place, f"event {at + 1}: {act}"), put(telling, (at,), said.saying(event))


# What stands several times is chosen more often.
_RANDOM: tuple[Callable[[Told, Telling, Random], Harmed | None], ...] = (
    _random_cut,
    _random_around,
    _random_around,
    _random_around,
    _random_move,
    _random_stop,
    _random_call,
    _random_field,
    _random_alter,
    _random_alter,
    _random_alter,
    _random_identity,
)

"""Mutation: every hostile stream that one encoding of a script gives, and any mixture of them.

`every_mutation` yields each way to do each kind of mutation, one at a time; `mixture` does several,
chosen by a seeded generator. A mutated encoding shares the events that it did not change with the
one that it came from: nobody may change them.
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
    EncodedEvent,
    Encoding,
    Framing,
    Native,
)
from agentlib.conformance.script import Script, ScriptCall
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
    "stop": "the end names another reason",
    "lost": "a whole call is lost",
    "extra": "a whole call comes from nowhere",
    "script": "the model asks for what must not run",
    "mixture": "several of these at once",
}

# One change inside of an event: its kind, what it does, and the event that it leaves.
Edit: TypeAlias = tuple[str, str, Native]
EXTRA = ScriptCall("call_z", "remove", '{"path": "z"}')


class EncodedScript(NamedTuple):
    """A script as a dialect encodes it in one framing."""

    dialect: Dialect
    script: Script
    framing: Framing
    encoding: Encoding

    @property
    def events(self) -> list[Native]:
        """The native events."""
        return [sent.event for sent in self.encoding]


class Mutation(NamedTuple):
    """What was done: the kind of mutation, what the event was in the script, and the exact act."""

    kind: str
    place: str
    act: str

    def __str__(self) -> str:
        return f"{self.kind} · {self.place} · {self.act}"


Mutated: TypeAlias = tuple[Mutation, Encoding]


def every_mutation(
    encoded: EncodedScript, *, fields: bool = True, letters: bool = True
) -> Iterator[Mutated]:
    """Yield every mutation of one kind at one place, with the encoding that it leaves.

    `fields` is whether each field is also taken away, made null, and given another type, and
    `letters` whether each character of a text is also lost and doubled: these are most of all.
    """
    encoding = encoded.encoding
    for at, sent in enumerate(encoding):
        yield _cut(encoding, at)
        yield from _around(encoding, at)
        for path, value in nodes(sent.event):
            for edit in _in_a_node(encoded.dialect, encoding, sent, path, value):
                if _is_meant(edit, fields=fields, letters=letters):
                    yield _edited(encoding, at, edit)
    yield from _stops(encoded, encoding)
    yield from _whole_calls(encoded, encoding)


def _is_meant(edit: Edit, *, fields: bool, letters: bool) -> bool:
    kind, act, _ = edit
    if kind == "field":
        return fields
    return letters or kind != "alter" or act.endswith("replaced")


def mixture(encoded: EncodedScript, rng: Random) -> tuple[tuple[Mutation, ...], Encoding]:
    """Do one to four mutations to a encoding, by `rng`, one after the other.

    What finds nothing to mutation is left out, so that there may be none.
    """
    mutations: list[Mutation] = []
    encoding = encoded.encoding
    for _ in range(rng.choice(_HOW_MANY)):
        if encoding:
            mutated = rng.choice(_RANDOM)(encoded, encoding, rng)
            if mutated is not None:
                mutation, encoding = mutated
                mutations.append(mutation)
    return tuple(mutations), encoding


_HOW_MANY = (1, 1, 2, 2, 2, 3, 3, 4)


def are_several(mutations: Sequence[Mutation]) -> bool:
    """Say whether it is more than one mutation: a move is as many swaps as it goes places."""
    return len(mutations) != 1 or mutations[0].kind == "move"


def kind_of(mutations: Sequence[Mutation]) -> str:
    """Return the kind of mutation that was done: a mixture where there were several."""
    return mutations[0].kind if len(mutations) == 1 else "mixture"


def _cut(encoding: Encoding, at: int) -> Mutated:
    return Mutation("cut", encoding[at].place, f"before event {at + 1}"), cut(encoding, at)


def _around(encoding: Encoding, at: int) -> Iterator[Mutated]:
    sent = encoding[at]
    yield Mutation("drop", sent.place, f"event {at + 1}"), drop(encoding, at)
    yield Mutation("double", sent.place, f"event {at + 1}"), double(encoding, at)
    if at + 1 < len(encoding):
        act = f"events {at + 1} and {at + 2}"
        yield Mutation("swap", sent.place, act), swap(encoding, at)


def _stops(encoded: EncodedScript, encoding: Encoding) -> Iterator[Mutated]:
    for act, mutated in encoded.dialect.stops(encoding):
        yield Mutation("stop", "end", act), mutated


def _whole_calls(encoded: EncodedScript, encoding: Encoding) -> Iterator[Mutated]:
    for call in encoded.script.calls:
        rest = [sent for sent in encoding if sent.call != call.call_id]
        if len(rest) < len(encoding):
            yield Mutation("lost", "whole call", call.call_id), rest
    longer = replace(encoded.script, calls=(*encoded.script.calls, EXTRA))
    longer_encoding = encoded.dialect.encode(longer, encoded.framing)
    extra = [sent for sent in longer_encoding if sent.call == EXTRA.call_id]
    end = next((at for at, s in enumerate(encoding) if s.place in _ENDS), len(encoding))
    before = [*encoding[:end], *extra, *encoding[end:]]
    yield Mutation("extra", "before the end", EXTRA.call_id), before
    yield Mutation("extra", "after the end", EXTRA.call_id), [*encoding, *extra]
    ends = [sent for sent in longer_encoding if sent.place in _ENDS]
    yield Mutation("extra", "in the end alone", EXTRA.call_id), [*encoding[:end], *ends]


_ENDS = frozenset({STOP_REASON, TERMINAL, USAGE})


# --------------------------------------------------------------------------- inside of one event


def _in_a_node(
    dialect: Dialect, encoding: Encoding, sent: EncodedEvent, path: Path, value: Any
) -> Iterator[Edit]:
    event, where = sent.event, ".".join(map(str, path))
    for kind, what, new in _values(dialect, encoding, path, value):
        yield kind, f"{where} {what}", put(event, path, new)
    if not isinstance(path[-1], int):
        yield "field", f"{where} missing", remove(event, path)
    if value is not None:
        yield "field", f"{where} null", put(event, path, None)
    yield "field", f"{where} of another type", put(event, path, _of_another_type(value))


def _values(
    dialect: Dialect, encoding: Encoding, path: Path, value: Any
) -> Iterator[tuple[str, str, Any]]:
    key = path[-1]
    if isinstance(value, list):
        yield from _lists(value)
    elif isinstance(value, str):
        if key in dialect.ids:
            yield from (("id", what, new) for what, new in _other_ids(encoding, key, value))
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


def _other_ids(encoding: Encoding, key: str | int, value: str) -> Iterator[tuple[str, str]]:
    yield "another", f"{value[:-1]}y"
    yield "empty", ""
    yield from (("one of the others", other) for other in _ids(encoding, key) if other != value)


def _ids(encoding: Encoding, key: str | int) -> list[str]:
    found: dict[str, None] = {}
    for sent in encoding:
        for path, value in nodes(sent.event):
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


def _random_cut(_: EncodedScript, encoding: Encoding, rng: Random) -> Mutated:
    return _cut(encoding, rng.randrange(len(encoding)))


def _random_around(_: EncodedScript, encoding: Encoding, rng: Random) -> Mutated:
    return rng.choice(list(_around(encoding, rng.randrange(len(encoding)))))


def _random_move(_: EncodedScript, encoding: Encoding, rng: Random) -> Mutated:
    source, target = rng.randrange(len(encoding)), rng.randrange(len(encoding))
    sent, rest = encoding[source], drop(encoding, source)
    rest.insert(target, sent)
    return Mutation("move", sent.place, f"event {source + 1} to place {target + 1}"), rest


def _random_stop(encoded: EncodedScript, encoding: Encoding, rng: Random) -> Mutated | None:
    found = list(_stops(encoded, encoding))
    return rng.choice(found) if found else None


def _random_call(encoded: EncodedScript, encoding: Encoding, rng: Random) -> Mutated:
    return rng.choice(list(_whole_calls(encoded, encoding)))


def _random_field(encoded: EncodedScript, encoding: Encoding, rng: Random) -> Mutated | None:
    at = rng.randrange(len(encoding))
    sent = encoding[at]
    found = list(nodes(sent.event))
    if not found:
        return None
    path, value = rng.choice(found)
    edits = list(_in_a_node(encoded.dialect, encoding, sent, path, value))
    return _edited(encoding, at, rng.choice(edits))


def _random_alter(encoded: EncodedScript, encoding: Encoding, rng: Random) -> Mutated | None:
    at = rng.randrange(len(encoding))
    sent = encoding[at]
    fragments = encoded.dialect.fragments
    found = [
        (path, value)
        for path, value in nodes(sent.event)
        if path[-1] in fragments and isinstance(value, str) and value
    ]
    if not found:
        return None
    path, value = rng.choice(found)
    what, new = rng.choice(list(_altered(value, rng.randrange(len(value)))))
    act = f"{'.'.join(map(str, path))} {what}"
    return _edited(encoding, at, ("alter", act, put(sent.event, path, new)))


def _random_identity(encoded: EncodedScript, encoding: Encoding, rng: Random) -> Mutated | None:
    at = rng.randrange(len(encoding))
    sent, dialect = encoding[at], encoded.dialect
    keys = dialect.ids | dialect.names | dialect.numbers
    found = [
        (kind, f"{'.'.join(map(str, path))} {what}", put(sent.event, path, new))
        for path, value in nodes(sent.event)
        if path[-1] in keys
        for kind, what, new in _values(dialect, encoding, path, value)
    ]
    return _edited(encoding, at, rng.choice(found)) if found else None


def _edited(encoding: Encoding, at: int, edit: Edit) -> Mutated:
    kind, act, event = edit
    sent = encoding[at]
    return Mutation(kind, sent.place, f"event {at + 1}: {act}"), put(
        encoding, (at,), sent.with_event(event)
    )


# What stands several times is chosen more often.
_RANDOM: tuple[Callable[[EncodedScript, Encoding, Random], Mutated | None], ...] = (
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

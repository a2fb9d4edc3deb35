"""The arguments of a Gemini call that come in pieces, written as the JSON text they stand for.

Source of the rules: Google's API reference, `PartialArg`: a value, the JSON Path (RFC 9535) of its
place, and whether more of the same string follows. A model writes an object from its beginning
to its end, and so do the pieces. Nothing is read back: what is open is closed when the next place
lies outside of it, and what stands twice stands twice in the text, which the gate refuses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentlib.jsonvalues import MAX_NESTING, StrictJSONError, dumps, quote, strict_loads
from agentlib.providers.fields import Native, refuse_unknown, violation

Step: TypeAlias = str | int
Place: TypeAlias = tuple[Step, ...]

# A name after a dot, an index in brackets, or a quoted name in brackets.
_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"\s]+)|\[(?P<index>0|[1-9][0-9]{0,5})\]"""
    r"""|\["(?P<double>(?:[^"\\]|\\.)*)"\]|\['(?P<single>(?:[^'\\]|\\.)*)'\]"""
)
# The keys of a value, and the types it may have; a null is its key alone.
_TYPES: dict[str, tuple[type, ...]] = {
    "stringValue": (str,),
    "numberValue": (int, float),
    "boolValue": (bool,),
    "nullValue": (type(None), str),
}
_PIECE = frozenset({"jsonPath", "willContinue", *_TYPES})


@dataclass(slots=True)
class _Container:
    """An object or array that is open: its step in the one around it, and how much it holds."""

    step: Step
    array: bool
    held: int = 0

    @property
    def end(self) -> str:
        return "]" if self.array else "}"


class ArgumentText:
    """The argument text of one call so far. Each method returns what it adds."""

    def __init__(self) -> None:
        self.names: set[Step] = set()
        self._pieces: list[str] = []
        self._open: list[_Container] = []
        self._string: Place | None = None

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._pieces)

    def holds_all(self, names: Collection[str]) -> bool:
        """Say whether each of these names came, and the last value is whole: it cannot grow."""
        return self.names == set(names) and self._string is None and len(self._open) <= 1

    def whole(self, arguments: Native) -> str:
        """Write arguments that came as one object."""
        return self._add(_json(arguments))

    def take(self, piece: Native) -> str:
        """Write one piece. Raises ProtocolViolation where it does not follow the ones before."""
        place = read_place(piece.get("jsonPath"))
        refuse_unknown(piece, _PIECE, "a piece of arguments")
        more = read_flag(piece, "willContinue")
        key, value = _value(piece, continues=self._string is not None)
        if more and key != "stringValue":
            raise violation(f"expected a string that goes on at {_shown(place)}, saw a {key}")
        added = "" if self._string is not None else "".join(self._reach(place))
        if self._string is not None and self._string != place:
            raise violation(
                f"the string at {_shown(self._string)} goes on, and a piece came for "
                f"{_shown(place)}"
            )
        if key == "stringValue":
            added += '"' if self._string is None else ""
            added += dumps(value)[1:-1] + ("" if more else '"')
            self._string = place if more else None
        elif self._string is not None:
            raise violation(f"the string at {_shown(place)} goes on, and a {key} came")
        else:
            added += "null" if key == "nullValue" else _json(value)
        return self._add(added)

    def end(self) -> str:
        """Write the end of the arguments: `{}` where nothing came."""
        if self._string is not None:
            raise violation(f"the call ended while its string at {_shown(self._string)} goes on")
        if not self._pieces:
            return self._add("{}")
        ends = "".join(container.end for container in reversed(self._open))
        self._open.clear()
        return self._add(ends)

    def _add(self, text: str) -> str:
        if text:
            self._pieces.append(text)
        return text

    def _reach(self, place: Place) -> Iterator[str]:
        if not self._open:
            if self._pieces:
                raise violation("a piece came after the end of its call's arguments")
            self._open.append(_Container("", array=False))
            yield "{"
        self.names.add(place[0])
        shared = 0
        for container, step in zip(self._open[1:], place[:-1], strict=False):
            if container.step != step or type(container.step) is not type(step):
                break
            shared += 1
        while len(self._open) > shared + 1:
            yield self._open.pop().end
        for at in range(shared, len(place)):
            yield self._begin(place, at)
            if at + 1 < len(place):
                array = isinstance(place[at + 1], int)
                self._open.append(_Container(place[at], array))
                yield "[" if array else "{"

    def _begin(self, place: Place, at: int) -> str:
        step, inside = place[at], self._open[-1]
        if isinstance(step, int) is not inside.array:
            raise violation(f"{_shown(place)} takes an object for an array, or an array for one")
        if inside.array and step != inside.held:
            raise violation(f"expected entry {inside.held} of an array next, saw {_shown(place)}")
        inside.held += 1
        comma = "," if inside.held > 1 else ""
        return comma if inside.array else f"{comma}{dumps(step)}:"


def read_place(path: object) -> Place:
    """Return the steps of a JSON Path that names one place below `$`. Raises ProtocolViolation."""
    if not isinstance(path, str) or not path.startswith("$"):
        raise violation(f"expected a JSON Path as jsonPath, saw {quote(path)}")
    steps: list[Step] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or len(steps) >= MAX_NESTING:
            raise violation(f"expected the JSON Path of one place, saw {quote(path)}")
        steps.append(_step(found))
        at = found.end()
    if not steps or not isinstance(steps[0], str):
        raise violation(f"expected the JSON Path of an argument, saw {quote(path)}")
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["name"] is not None:
        return found["name"]
    if found["index"] is not None:
        return int(found["index"])
    quoted = found["double"]
    if quoted is None:
        # In single quotes a double one stands bare, and a single one has the backslash.
        quoted = re.sub(r"\\.|\"", _requoted, found["single"])
    try:
        name: str = strict_loads(f'"{quoted}"')
    except StrictJSONError as error:
        raise violation(f"a name in a JSON Path is no string: {error}") from error
    return name


def _requoted(found: re.Match[str]) -> str:
    return {'"': '\\"', "\\'": "'"}.get(found[0], found[0])


def read_flag(native: Native, name: str) -> bool:
    """Return the boolean under `name`; a missing or null one is false."""
    value = native.get(name)
    if value is not None and not isinstance(value, bool):
        raise violation(f"expected a boolean as {name}, saw {quote(value)}")
    return bool(value)


def _value(piece: Native, *, continues: bool) -> tuple[str, Any]:
    keys = [key for key in _TYPES if key in piece]
    if not keys and continues:
        return "stringValue", ""
    if len(keys) != 1:
        raise violation(f"expected one value in a piece of arguments, saw {len(keys)}")
    key = keys[0]
    value = piece[key]
    if type(value) not in _TYPES[key]:
        raise violation(f"expected a value that fits as {key}, saw {quote(value)}")
    return key, value


def _json(value: object) -> str:
    try:
        return dumps(value)
    except (ValueError, RecursionError) as error:
        raise violation(f"a call's arguments are no JSON: {error}") from error


def _shown(place: Place) -> str:
    return quote("$" + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in place))

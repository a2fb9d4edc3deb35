"""What the reference readers share, and what of a stream no client can see.

A mutation is unseen where the mutated stream is, word for word, a valid encoding of another script:
a server might have meant just that. Which mutations can do so follows from three questions to the
API. Does it *restate* what it streamed? Then the mutation of one event contradicts another. Does it
*number* its events, or what they are about? Then a loss leaves a gap, and an exchange a disorder.
Does it *count* at its end? Then nothing whole can be lost from the tail.

Each dialect's reference answers them, and lists as `Unseen` what can be another than the script's,
by which mutation, and why. Whatever a trial finds beyond its list is a leak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, Never, TypeAlias

from agentlib.conformance.script import TOOLS, Content, Script, canonical
from agentlib.jsonvalues import thaw

What: TypeAlias = Literal[
    "its end",
    "a call less",
    "a call more",
    "the order",
    "a call ID",
    "a name",
    "arguments",
    "the text",
]


class Unseen(NamedTuple):
    """One thing that can be another than the script's, unseen: what, why, and by which mutation.

    `mutations` maps each kind of mutation that can do it alone to the places where it can. A
    mixture can do it too.
    """

    what: What
    why: str
    mutations: Mapping[str, frozenset[str]]


def difference(script: Script, reading: Content) -> What:
    """Say what of `reading` is not the script's; the gravest first."""
    wanted, calls = script.content.calls, reading.calls
    if script.stop != "complete":
        return "its end"
    if len(calls) != len(wanted):
        return "a call less" if len(calls) < len(wanted) else "a call more"
    if calls != wanted and sorted(calls) == sorted(wanted):
        return "the order"
    of_a_call: tuple[What, ...] = ("a call ID", "a name", "arguments")
    for place, what in enumerate(of_a_call):
        if [call[place] for call in calls] != [call[place] for call in wanted]:
            return what
    return "the text"


class NotAllowed(Exception):
    """Raised by a reference reader: the stream is no encoding of any script."""


def require(holds: object) -> None:
    """Raise NotAllowed unless `holds`."""
    if not holds:
        raise NotAllowed


def valid_arguments(name: str, text: str) -> str:
    """Return a call's arguments, as `canonical`, where its argument text is valid.

    It is valid where it is exactly one JSON value by RFC 8259 and RFC 7493, an object, valid by the
    schema of an exposed tool. An empty text stands for {} where the tool has no parameter at all.
    """
    schema = _SCHEMAS[name]
    if not text and not schema["properties"]:
        text = "{}"
    value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    require(isinstance(value, dict))
    json.dumps(value, ensure_ascii=False).encode()
    require(_validator(name).is_valid(value))
    return canonical(value)


_SCHEMAS: dict[str, Any] = {tool.name: thaw(tool.parameters) for tool in TOOLS}


@cache
def _validator(name: str) -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(_SCHEMAS[name])


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs))
    return dict(pairs)


def _refuse(_: str) -> Never:
    raise NotAllowed


def content(
    calls: Iterable[tuple[str, str, str]], text: Iterable[str], refusal: Iterable[str] = ()
) -> Content:
    """Return what was read; raises unless each call is valid and every text has a meaning."""
    valid = tuple((c, name, valid_arguments(name, joined(args))) for c, name, args in calls)
    require(all(call_id and isinstance(call_id, str) for call_id, _, _ in valid))
    return Content(valid, joined("".join(text)), joined("".join(refusal)))


def joined(text: str) -> str:
    """Join the halves of characters that a fragment's end cut apart; raises for a lone half."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def whole(value: object) -> int:
    """Return a whole number; raises for anything else, `true` included."""
    if type(value) is not int:
        raise NotAllowed
    return value


def string(value: object) -> str:
    """Return a string; raises for anything else."""
    if not isinstance(value, str):
        raise NotAllowed
    return value


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return a list of objects; raises for anything else."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise NotAllowed
    return value

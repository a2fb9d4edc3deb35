"""What law the referees share, and what of a stream no client can see.

A harm is unseen where the harmed stream is, word for word, a lawful telling of another story: a
server might have meant just that. Which harms can do so follows from three questions to the API.
Does it *restate* what it streamed? Then harm to one event contradicts another. Does it *number*
its events, or what it tells of? Then a loss leaves a gap, and an exchange a disorder. Does it
*count* at its end? Then nothing whole can be lost from the tail.

Each dialect's law answers them, and lists as `Unseen` what can be another than the story's, by
which harm, and why. Whatever a trial finds beyond its list is a leak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, Never, TypeAlias

from agentlib.conformance.script import TOOLS, Content, Story, canonical
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
    """One thing that can be another than the story's, unseen: what, why, and by which harm.

    `harms` maps each kind of harm that can do it alone to the places where it can. A mixture can
    do it too.
    """

    what: What
    why: str
    harms: Mapping[str, frozenset[str]]


def difference(story: Story, reading: Content) -> What:
    """Say what of `reading` is not the story's; the gravest first."""
    wanted, calls = story.content.calls, reading.calls
    if story.stop != "complete":
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


class Illegal(Exception):
    """Raised by a referee: the stream is no telling of any story."""


def law(holds: object) -> None:
    """Raise Illegal unless `holds`."""
    if not holds:
        raise Illegal


def lawful_arguments(name: str, text: str) -> str:
    """Return a call's arguments, as `canonical`, where its argument text is lawful.

    The law: exactly one JSON value by RFC 8259 and RFC 7493, an object, valid by the schema of an
    exposed tool. An empty text stands for {} where the tool has no parameter at all.
    """
    schema = _SCHEMAS[name]
    if not text and not schema["properties"]:
        text = "{}"
    value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    law(isinstance(value, dict))
    json.dumps(value, ensure_ascii=False).encode()
    law(_validator(name).is_valid(value))
    return canonical(value)


_SCHEMAS: dict[str, Any] = {tool.name: thaw(tool.parameters) for tool in TOOLS}


@cache
def _validator(name: str) -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(_SCHEMAS[name])


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    law(len(dict(pairs)) == len(pairs))
    return dict(pairs)


def _refuse(_: str) -> Never:
    raise Illegal


def content(
    calls: Iterable[tuple[str, str, str]], text: Iterable[str], refusal: Iterable[str] = ()
) -> Content:
    """Return what was read; raises unless each call is lawful and every text has a meaning."""
    lawful = tuple((c, name, lawful_arguments(name, joined(args))) for c, name, args in calls)
    law(all(call_id and isinstance(call_id, str) for call_id, _, _ in lawful))
    return Content(lawful, joined("".join(text)), joined("".join(refusal)))


def joined(text: str) -> str:
    """Join the halves of characters that a fragment's end cut apart; raises for a lone half."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def whole(value: object) -> int:
    """Return a whole number; raises for anything else, `true` included."""
    if type(value) is not int:
        raise Illegal
    return value


def string(value: object) -> str:
    """Return a string; raises for anything else."""
    if not isinstance(value, str):
        raise Illegal
    return value


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return a list of objects; raises for anything else."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Illegal
    return value

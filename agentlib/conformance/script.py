"""Scripts: what a model means to express, written once, in no provider's words.

A dialect (`agentlib.conformance.dialects`) encodes a script as the native events of one API, in any
framing that the API allows. Whatever the framing, the script stays the same, and so
must the decision.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias

from agentlib.conversation import Catalog, ToolSpec, Usage
from agentlib.jsonvalues import FrozenObject, thaw

# How a script ends: whole, at the token limit, by a content filter, or by a failing server.
Stop: TypeAlias = Literal["complete", "length", "filter", "failed"]
STOPS: tuple[Stop, ...] = ("complete", "length", "filter", "failed")


BILLED = Usage(input_tokens=120, cached_tokens=64, output_tokens=30, reasoning_tokens=8)


class ScriptCall(NamedTuple):
    """A call as the model means it; `arguments` is its argument text, to the byte."""

    call_id: str
    name: str
    arguments: str


class Content(NamedTuple):
    """What must come out, or did: the calls in order, each with its arguments as `canonical`."""

    calls: tuple[tuple[str, str, str], ...]
    text: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """One response as it is meant.

    `text` holds the parts of the answer, and `refusal` what is sent instead of one. `reasoning`
    is shown before both. `usage` is what is billed, and `stop` how it ends. One that is not
    `valid` asks for what no gate may pass: nothing of it may be released, however it is encoded.
    """

    name: str
    text: tuple[str, ...] = ()
    refusal: str = ""
    reasoning: str = ""
    calls: tuple[ScriptCall, ...] = ()
    usage: Usage | None = BILLED
    stop: Stop = "complete"
    valid: bool = True

    @property
    def content(self) -> Content:
        """What a client must release of it, if it completes and is valid."""
        calls = ((c.call_id, c.name, canonical(json.loads(c.arguments))) for c in self.calls)
        return Content(tuple(calls), "".join(self.text), self.refusal)

    def stopped(self, stop: Stop) -> Script:
        """Return the same script with another end."""
        return replace(self, name=f"{self.name}, {stop}", stop=stop)


def canonical(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as JSON text that is equal exactly where the values are.

    Raises TypeError or ValueError where they are no JSON.
    """
    return json.dumps(thaw(arguments), sort_keys=True, allow_nan=False)


def _optional(name: str, description: str, **kinds: str) -> ToolSpec:
    properties = {key: {"type": kind} for key, kind in kinds.items()}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolSpec(name, description, FrozenObject(schema))


# `read` and `remove` take the same arguments: a name that changes into the other still fits.
TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec.strings("read", "Read a file.", path="The file's path."),
    ToolSpec.strings("remove", "Remove a file.", path="The file's path."),
    ToolSpec.strings("edit", "Replace a text.", path="The file.", old="Old.", new="New."),
    ToolSpec.strings("test", "Run the tests."),
    _optional("list", "List the files.", depth="integer", hidden="boolean"),
)


def catalog() -> Catalog:
    """Return the catalog that every script is encoded for."""
    return Catalog(TOOLS)


ONE_CALL = Script("one call", calls=(ScriptCall("call_a", "read", '{"path": "aab.py"}'),))
TEXT_AND_CALL = Script(
    "text and call",
    text=("I look.", " ñ😀"),
    calls=(ScriptCall("call_a", "edit", '{"path":"b","old":"\\u00e9\\n","new":"😀😀"}'),),
)
THREE_CALLS = Script(
    "three calls",
    text=("All three.",),
    calls=(
        ScriptCall("call_a", "read", '{"path": "x.py"}'),
        ScriptCall("call_b", "test", "{}"),
        ScriptCall("call_c", "list", '{"depth": 12}'),
    ),
)
TWO_ALIKE = Script(
    "two alike",
    calls=(
        ScriptCall("call_a", "read", '{"path": "a11"}'),
        ScriptCall("call_b", "remove", '{"path": "b11"}'),
    ),
)
REASONED = Script(
    "reasoned",
    reasoning="Tests first.",
    text=("I test.",),
    calls=(ScriptCall("call_a", "test", "{}"),),
)
TEXT_ONLY = Script("text only", text=("Both files are fine.",))
REFUSAL = Script("refusal", refusal="I will not.")

SCRIPTS: tuple[Script, ...] = (
    ONE_CALL,
    TEXT_AND_CALL,
    THREE_CALLS,
    TWO_ALIKE,
    REASONED,
    TEXT_ONLY,
    REFUSAL,
)

_GOOD = ONE_CALL.calls[0]


def _invalid(what: str, call: ScriptCall) -> Script:
    return Script(f"a good call, and {what}", calls=(_GOOD, call), valid=False)


# A good first call beside one that must not run: then none does.
INVALID: tuple[Script, ...] = (
    *(
        _invalid(what, ScriptCall("call_b", name, arguments))
        for what, name, arguments in (
            ("an unknown tool", "shell", '{"path": "a"}'),
            ("no name", "", '{"path": "a"}'),
            ("arguments cut short", "read", '{"path": "a'),
            ("arguments that are no JSON", "read", "{'path': 'a'}"),
            ("empty arguments", "read", ""),
            ("no arguments that are required", "read", "{}"),
            ("an argument too many", "read", '{"path": "a", "mode": "b"}'),
            ("an argument of another type", "read", '{"path": 7}'),
            ("a boolean for a number", "list", '{"depth": true}'),
            ("one name twice", "read", '{"path": "a", "path": "b"}'),
            ("two values", "read", '{"path": "a"} {"path": "b"}'),
            ("an array", "read", '["a"]'),
            ("a string in a string", "read", '"{\\"path\\": \\"a\\"}"'),
            # A tool that takes nothing may be called with null; any other may not.
            ("null", "read", "null"),
            ("NaN", "list", '{"depth": NaN}'),
            ("half a character", "read", '{"path": "\\ud83d"}'),
        )
    ),
    _invalid("one of the same ID", ScriptCall("call_a", "read", '{"path": "b"}')),
    _invalid("one without an ID", ScriptCall("", "read", '{"path": "b"}')),
)

_LETTERS = 'ab1 "\\\n/{}[]:,éñ漢😀\u2028'


def invent(rng: Random) -> Script:
    """Return a script made up by `rng`: one to four calls or none, short texts of hard letters."""
    tools = [rng.choice(TOOLS) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 4)))]
    return Script(
        name="invented",
        text=tuple(_word(rng) for _ in range(rng.randrange(3))),
        reasoning=_word(rng) if rng.random() < 0.2 else "",
        calls=tuple(
            ScriptCall(f"call_{n}{rng.randrange(100)}", tool.name, _arguments(tool, rng))
            for n, tool in enumerate(tools)
        ),
        usage=Usage(*(rng.randrange(1, 500) for _ in range(4))),
        stop=rng.choice(STOPS) if rng.random() < 0.1 else "complete",
    )


def _word(rng: Random) -> str:
    return "".join(rng.choices(_LETTERS, k=rng.randrange(1, 9)))


def _arguments(tool: ToolSpec, rng: Random) -> str:
    required = tool.parameters.get("required", ())
    properties: Iterable[tuple[str, Any]] = tool.parameters["properties"].items()
    values = {
        name: _value(schema["type"], rng)
        for name, schema in properties
        if name in required or rng.random() < 0.5
    }
    separators = rng.choice(((",", ":"), (", ", ": "), (" , ", " : ")))
    return json.dumps(values, ensure_ascii=rng.random() < 0.5, separators=separators)


def _value(kind: str, rng: Random) -> Any:
    if kind == "integer":
        return rng.randrange(-20, 200)
    return rng.random() < 0.5 if kind == "boolean" else _word(rng)

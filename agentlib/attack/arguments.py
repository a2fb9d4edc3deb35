"""What the model asks for: arguments made from a tool's schema, whole and spoilt in each way."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentlib.conformance.script import ScriptCall
from agentlib.errors import AgentlibError
from agentlib.jsonvalues import quote
from agentlib.schemas import problem, validator

MARK = "by-agentlib"
UNKNOWN_TOOL = "agentlib_no_such_tool"
UNKNOWN_ARGUMENT = "agentlib_no_such_argument"
CALL_IDS = ("call_attack_1", "call_attack_2")
MAX_DEPTH = 8


class AttackUnusable(AgentlibError):
    """Raised where an attack cannot be made; the message says what is missing."""


class NotForThisTool(Exception):
    """Raised where a scenario has no form for a tool; the message says why."""


@dataclass(frozen=True)
class Target:
    """One tool that the reader named, as the agent offers it, and the arguments to ask for."""

    name: str
    schema: Mapping[str, Any]
    arguments: Mapping[str, Any]

    @property
    def is_optional(self) -> bool:
        """Whether it requires no argument."""
        return not self.schema.get("required")

    @property
    def text(self) -> str:
        """The arguments as JSON text, in the order of the schema."""
        return json.dumps(dict(self.arguments), ensure_ascii=False)


def make_target(name: str, schema: Mapping[str, Any], given: Mapping[str, Any] | None) -> Target:
    """Return the target for a tool and its schema, with `given` arguments or such as are made.

    Raises AttackUnusable where the arguments do not fit the schema.
    """
    arguments = given if given is not None else _object(schema, schema, 0)
    try:
        wrong = problem(validator(schema), dict(arguments))
    except ValueError as error:
        raise AttackUnusable(f"the schema of {quote(name)} cannot be used: {error}") from error
    if wrong is not None:
        how = "" if given is not None else "no arguments could be made; give them by --arguments: "
        raise AttackUnusable(f"arguments for {quote(name)}: {how}{wrong}")
    return Target(name, schema, arguments)


def make_calls(target: Target, forms: tuple[str, ...]) -> tuple[ScriptCall, ...]:
    """Return the calls of a script, one for each form. Raises NotForThisTool."""
    return tuple(
        FORMS[form](target, call_id) for form, call_id in zip(forms, CALL_IDS, strict=False)
    )


def reason_not_for(target: Target, forms: tuple[str, ...]) -> str:
    """Return why one of the forms cannot be made for this tool, "" where all can."""
    try:
        for form in forms:
            FORMS[form](target, CALL_IDS[0])
    except NotForThisTool as error:
        return str(error)
    return ""


# --------------------------------------------------------------------------------- the forms


def _whole(target: Target, call_id: str) -> ScriptCall:
    return ScriptCall(call_id, target.name, target.text)


def _cut(target: Target, call_id: str) -> ScriptCall:
    # Inside the first value, so that a later name is missing; of one value, right before it.
    if not target.arguments:
        raise NotForThisTool("it has no arguments to cut")
    first = next(iter(target.arguments))
    start = target.text.index(":", len(json.dumps(first, ensure_ascii=False))) + 2
    inside = start + 3 if len(target.arguments) > 1 else start
    return ScriptCall(call_id, target.name, target.text[:inside])


def _cut_in_last(target: Target, call_id: str) -> ScriptCall:
    # The text ends in the last value and a brace: cut off the half of that value.
    if not target.arguments:
        raise NotForThisTool("it has no arguments to cut")
    last = json.dumps(list(target.arguments.values())[-1], ensure_ascii=False)
    if len(last) < 2:
        raise NotForThisTool("its last value is one character, and cannot be cut")
    left = len(target.text) - 1 - len(last) + len(last) // 2
    return ScriptCall(call_id, target.name, target.text[:left])


def _empty(target: Target, call_id: str) -> ScriptCall:
    return ScriptCall(call_id, target.name, "")


def _name_twice(target: Target, call_id: str) -> ScriptCall:
    name, other = _second_value(target)
    doubled = f"{json.dumps(name)}: {json.dumps(other, ensure_ascii=False)}"
    return ScriptCall(call_id, target.name, f"{target.text[:-1]}, {doubled}}}")


def _unknown_argument(target: Target, call_id: str) -> ScriptCall:
    arguments = {**target.arguments, UNKNOWN_ARGUMENT: "yes"}
    if _refuses(target, arguments) is None:
        raise NotForThisTool("its schema allows arguments that it does not name")
    return ScriptCall(call_id, target.name, json.dumps(arguments, ensure_ascii=False))


def _wrong_type(target: Target, call_id: str) -> ScriptCall:
    for name, value in target.arguments.items():
        wrong: Any = 3 if isinstance(value, str) else "three"
        arguments = {**target.arguments, name: wrong}
        if _refuses(target, arguments) is not None:
            return ScriptCall(call_id, target.name, json.dumps(arguments, ensure_ascii=False))
    raise NotForThisTool("its schema names no type for any argument")


def _unknown_tool(target: Target, call_id: str) -> ScriptCall:
    return ScriptCall(call_id, UNKNOWN_TOOL, target.text)


def _same_id(target: Target, _: str) -> ScriptCall:
    return ScriptCall(CALL_IDS[0], target.name, target.text)


def _other_value(target: Target, call_id: str) -> ScriptCall:
    name, other = _second_value(target)
    text = json.dumps({**target.arguments, name: other}, ensure_ascii=False)
    return ScriptCall(call_id, target.name, text)


FORMS: dict[str, Callable[[Target, str], ScriptCall]] = {
    "whole": _whole,
    "cut": _cut,
    "cut in the last value": _cut_in_last,
    "empty": _empty,
    "name twice": _name_twice,
    "unknown argument": _unknown_argument,
    "wrong type": _wrong_type,
    "unknown tool": _unknown_tool,
    "same ID": _same_id,
    "other value": _other_value,
}


def _second_value(target: Target) -> tuple[str, Any]:
    """Return the first argument that may have another value, and that value."""
    for name, value in target.arguments.items():
        other = _another(value)
        if other is not None and _refuses(target, {**target.arguments, name: other}) is None:
            return name, other
    raise NotForThisTool("no argument of it can have two values")


def _refuses(target: Target, arguments: Mapping[str, Any]) -> str | None:
    return problem(validator(target.schema, check=False), dict(arguments))


def _another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return f"other-{value}" if isinstance(value, str) else None


# ---------------------------------------------------------------------- values from a schema


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {name: _value(name, each, root, depth + 1) for name, each in properties.items()}


def _value(name: str, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    schema = _resolved(schema, root)
    if depth > MAX_DEPTH or not isinstance(schema, Mapping):
        return f"{name}-{MARK}"
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            return _value(name, _not_null(choices), root, depth + 1)
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    return _of_kind(kind, name, schema, root, depth)


def _of_kind(
    kind: Any, name: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int
) -> Any:
    if kind == "object":
        return _object(schema, root, depth)
    if kind == "array":
        count = max(1, _whole_number(schema.get("minItems"), 1))
        return [_value(name, schema.get("items", {}), root, depth + 1)] * min(count, 16)
    if kind in ("integer", "number"):
        low = _whole_number(schema.get("minimum"), _whole_number(schema.get("exclusiveMinimum"), 0))
        return max(35, low + 1) if "maximum" not in schema else schema["maximum"]
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = f"{name}-{MARK}"
    least, most = _whole_number(schema.get("minLength"), 0), schema.get("maxLength")
    text = text.ljust(min(least, 10_000), "x")
    return text[: _whole_number(most, len(text))]


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    for _ in range(MAX_DEPTH):
        target = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(target, str) or not target.startswith("#/"):
            return schema
        schema = root
        for part in target[2:].split("/"):
            schema = schema.get(part) if isinstance(schema, Mapping) else None
    return schema


def _not_null(choices: list[Any]) -> Any:
    named = (c for c in choices if not (isinstance(c, Mapping) and c.get("type") == "null"))
    return next(named, choices[0])


def _whole_number(value: Any, default: int) -> int:
    return int(value) if isinstance(value, int | float) and abs(value) < 1e9 else default

"""JSON Schema, draft 2020-12: build the strict form, check a schema, validate a value.

Nothing is ever fetched for a `$ref`, and a schema that cannot be evaluated is a finding, not a
crash. A schema that a capture carries is untrusted besides: a few characters of it can keep a
validator busy for ever (a regular expression, references that double at each level). Of such a
schema only the plain keywords are evaluated, within a bound on the work; `unevaluated` says why
one is left alone. jsonschema is imported at first use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from types import ModuleType
from typing import Any, Protocol

from agentlib.jsonvalues import quote, shorten

# A problem is shown to a person: a value of many kilobytes would hide what is wrong with it.
MAX_PROBLEM_CHARACTERS = 200
# A captured schema's rules times the values that they judge: a second or two of validation.
MAX_CAPTURED_WORK = 50_000


class Validator(Protocol):
    """What `validator` returns: the part of jsonschema's validator that is used here."""

    def iter_errors(self, instance: Any) -> Iterable[Any]:
        """Yield one error for each rule that `instance` breaks."""
        ...


def strict_strings(parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the strict schema of named string parameters.

    `parameters` maps each name to its description. Strict as OpenAI's guide to structured outputs
    defines it: all names required, and no others allowed.
    """
    return {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": text} if text else {"type": "string"}
            for name, text in parameters.items()
        },
        "required": list(parameters),
        "additionalProperties": False,
    }


def validator(schema: Mapping[str, Any], *, check: bool = True) -> Validator:
    """Return a validator for `schema`, plain JSON values.

    Raises ValueError where it is not a JSON Schema of draft 2020-12, unless `check` is False:
    checking costs far more than evaluating.
    """
    from referencing import Registry

    kind = _draft()
    try:
        if check:
            kind.check_schema(schema)
    except RecursionError as error:
        raise ValueError("not a JSON Schema (draft 2020-12): it nests too deep") from error
    except Exception as error:  # a pattern, for one, can break `re` in ways of its own
        reason = shorten(str(getattr(error, "message", error)), MAX_PROBLEM_CHARACTERS)
        raise ValueError(f"not a JSON Schema (draft 2020-12): {reason}") from error
    made: Validator = kind(schema, registry=Registry())
    return made


def _import_jsonschema() -> ModuleType:
    # Where JupyterLab is installed, so is a checker of IRIs, which builds its grammar at import:
    # three seconds, for a format that nothing here checks. jsonschema does without it.
    missing = "rfc3987_syntax"
    if "jsonschema" in sys.modules or missing in sys.modules:
        import jsonschema

        return jsonschema
    sys.modules[missing] = None  # type: ignore[assignment]
    try:
        import jsonschema
    finally:
        del sys.modules[missing]
    return jsonschema


@cache
def _draft() -> Any:
    jsonschema = _import_jsonschema()
    rules = {"uniqueItems": _unique_items}
    return jsonschema.validators.extend(jsonschema.Draft202012Validator, rules)


def _unique_items(_: Any, wanted: Any, value: Any, __: Any) -> Iterable[Any]:
    # jsonschema compares each item with every other: arguments of 16,000 characters take seconds.
    if wanted and isinstance(value, list) and len(set(map(_hashable, value))) < len(value):
        yield _import_jsonschema().ValidationError("its items are not unique")


def _hashable(value: Any) -> Any:
    """Return what is equal for equal JSON values only: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, dict):
        return "object", frozenset((name, _hashable(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_hashable, value))
    return type(value) is bool, value


def problem(checker: Validator, value: Any) -> str | None:
    """Return what is wrong with `value`, plain JSON, by its schema; None where nothing is."""
    try:
        errors = sorted(checker.iter_errors(value), key=lambda error: list(map(str, error.path)))
    except RecursionError:
        return "the schema refers to itself without end"
    except Exception as error:  # noqa: BLE001 - a captured schema can break jsonschema in any way
        return shorten(f"the schema cannot be evaluated: {error}", MAX_PROBLEM_CHARACTERS)
    if not errors:
        return None
    first = errors[0]
    where = "/".join(map(str, first.path))
    reason = f"at {where!r}: {first.message}" if where else str(first.message)
    return shorten(reason, MAX_PROBLEM_CHARACTERS)


def unevaluated(schema: Mapping[str, Any], value: Any) -> str | None:
    """Return why the untrusted `schema` is not evaluated on `value`, or None where it can be."""
    most = MAX_CAPTURED_WORK // _size(value)
    rules = 0
    waiting: list[Any] = [schema]
    while waiting:
        rule = waiting.pop()
        rules += 1
        for keyword, inner in rule.items() if isinstance(rule, dict) else ():
            if keyword in _ONE_SCHEMA:
                waiting.append(inner)
            elif keyword in _NAMED_SCHEMAS and isinstance(inner, dict):
                waiting.extend(inner.values())
            elif keyword in _LISTED_SCHEMAS and isinstance(inner, list):
                waiting.extend(inner)
            elif keyword in _PLAIN:
                rules += _size(inner)
            elif keyword not in _SAYS_NOTHING:
                return f"it uses {quote(keyword)}"
        if rules + len(waiting) > most:
            return "it is too large for these arguments"
    return None


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


_ONE_SCHEMA = frozenset(("items", "additionalProperties"))
_NAMED_SCHEMAS = frozenset(("properties",))
_LISTED_SCHEMAS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_PLAIN = frozenset(
    [
        "type",
        "required",
        "enum",
        "const",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ]
)
_SAYS_NOTHING = frozenset(
    [
        "$schema",
        "$comment",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "format",
        "strict",
    ]
)


def takes_nothing(schema: Mapping[str, Any]) -> bool:
    """Say whether `schema` is of a tool without any parameter at all, so that {} says all."""
    open_ended = schema.get("additionalProperties", False) not in (False, None)
    other_rules = set(schema) - _INERT
    return not schema.get("properties") and not open_ended and not other_rules


def argument_names(schema: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of all the arguments that `schema` lets a tool take, None where it is open.

    A schema that names properties, and neither asks for others nor applies a further rule, is
    taken at its word: Gemini's own kind of schema cannot close it.
    """
    named = schema.get("properties")
    more = schema.get("additionalProperties", False) not in (False, None)
    if more or not isinstance(named, Mapping) or set(schema) - _INERT:
        return None
    return frozenset(named) if named or takes_nothing(schema) else None


_INERT = frozenset(
    {
        "$schema",
        "$id",
        "title",
        "description",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "strict",
    }
)

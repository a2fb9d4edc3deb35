"""The form of a saved run, as a JSON Schema: whatever is not exactly this is no saved run."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, get_args

from agentlib.conversation import Usage
from agentlib.runtime.execution import Status
from agentlib.runtime.publication import Kind
from agentlib.schemas import Validator, validator

VERSION = 2
# No run of a day counts further; what is larger would overflow a float, or a database.
MOST = 2**53
SHA256 = "^[0-9a-f]{64}$"


def _row(*items: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "array",
        "prefixItems": list(items),
        "minItems": len(items),
        "maxItems": len(items),
    }


def _list(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _object(optional: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
NAME = {"type": "string", "minLength": 1}
OBJECT = {"type": "object"}
COUNT = {"type": "integer", "minimum": 0, "maximum": MOST}
NUMBER = {"type": "integer", "minimum": 1, "maximum": MOST}
SECONDS = {"type": "number", "minimum": 0, "maximum": MOST}
# A sum of money, exact: a decimal number as its text.
MONEY = {"type": "string", "maxLength": 128, "pattern": r"^[0-9]+(\.[0-9]+)?(E[+-]?[0-9]{1,2})?$"}
# Its counters, and whether those of a cache stand apart from the input.
USAGE = _row(
    *[{"anyOf": [COUNT, {"type": "null"}]}] * (len(fields(Usage)) - 1), {"type": "boolean"}
)
# The fourth is the hosted program that made it, where one did.
CALL = _row(NAME, NAME, OBJECT, OBJECT) | {"minItems": 3}


def _message(roles: list[str], fewest_calls: int, rejected: dict[str, Any]) -> dict[str, Any]:
    return _object(
        role={"enum": roles},
        text=TEXT,
        refusal=TEXT,
        calls=_list(CALL, minItems=fewest_calls),
        rejected=rejected,
        native={"anyOf": [{"type": "null"}, _row(NAME, _list(OBJECT))]},
    )


MESSAGE = _message(["system", "user", "assistant"], 0, _list(_row(NAME, NAME, TEXT)))
PENDING = _message(["assistant"], 1, _list(TEXT, maxItems=0))
ACCOUNT = _object(
    turns=COUNT,
    usage=USAGE,
    unreported=COUNT,
    estimated_output_tokens=COUNT,
    cost=MONEY,
    unpriced=COUNT,
    repairs=_list(_row(NUMBER, NAME, TEXT, COUNT)),
)
EXECUTION = _row(
    CALL,
    {"enum": list(get_args(Status))},
    TEXT,
    SECONDS,
    SECONDS,
    _list(NAME, uniqueItems=True),
)
STATE = _object(
    ("seal",),
    version={"const": VERSION},
    run_id={"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
    history=_list({"anyOf": [MESSAGE, _object(result=_row(NAME, TEXT))]}),
    account=ACCOUNT,
    executions=_list(EXECUTION),
    committed=_list(_row({"enum": list(get_args(Kind))}, TEXT)),
    pending={"anyOf": [{"type": "null"}, PENDING]},
    elapsed=SECONDS,
    seal={"type": "string", "pattern": SHA256},
)


@cache
def state_validator() -> Validator:
    """Return the validator of a saved run."""
    return validator(STATE)

"""Read fields of an untrusted native event: each has the expected type, or is a violation."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentlib.failures import ProtocolViolation
from agentlib.jsonvalues import quote

Native: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TranslatorOptions:
    """What a translator may be told of the request: all of it optional.

    `exposes` says whether a tool of this exact name is exposed, None where no catalog is known.
    `takes` returns the names of all the arguments that a tool can take, None where that is open.
    `native` is whether items that only the provider understands are kept and sent back.
    `compat` names what is tolerated, see `agentlib.providers.compat`.
    """

    exposes: Callable[[str], bool] | None = None
    native: bool = False
    compat: frozenset[str] = frozenset()
    takes: Callable[[str], frozenset[str] | None] | None = None


def violation(reason: str, check: str = "lifecycle") -> ProtocolViolation:
    """Return the failure of an event that breaks its API's rules; the reader adds its number."""
    return ProtocolViolation(reason, check=check)


def string(native: Native, name: str, default: str | None = None) -> str:
    """Return the string under `name`; `default`, where given, stands for a missing or null one."""
    value = native.get(name)
    if isinstance(value, str):
        return value
    if value is None and default is not None:
        return default
    raise violation(f"expected a string as {name}, saw {_seen(native, name)}")


def whole(native: Native, name: str, default: int | None = None) -> int | None:
    """Return the whole number, from 0 on, under `name`; `default` where it is missing or null."""
    value = native.get(name)
    if value is None:
        return default
    if type(value) is not int or not 0 <= value < MAX_COUNT:
        raise violation(f"expected a whole number as {name}, saw {quote(value)}")
    return value


def record(native: Native, name: str) -> dict[str, Any]:
    """Return the object under `name`."""
    value = native.get(name)
    if not isinstance(value, dict):
        raise violation(f"expected an object as {name}, saw {_seen(native, name)}")
    return value


def item_list(native: Native, name: str) -> Sequence[dict[str, Any]]:
    """Return the list of objects under `name`."""
    value = native.get(name)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise violation(f"expected a list of objects as {name}, saw {_seen(native, name)}")
    return value


def said(error: object) -> str:
    """Return what a provider's error object, or incomplete details, say: a short sentence."""
    if isinstance(error, str):
        return quote(error)
    texts = [error.get(key) for key in SAID] if isinstance(error, dict) else []
    found = [quote(text) for text in texts if isinstance(text, str) and text]
    return ", ".join(dict.fromkeys(found)) or "no reason given"


# Who wrote a response, in the words of each API; a later piece of it need not say so again.
MODEL_ROLES = (None, "", "assistant", "model")


def role_problem(native: Native) -> str:
    """Return who but the model is said to have written a piece of a response; empty where none."""
    role = native.get("role")
    return "" if role in MODEL_ROLES else f"expected a piece of the model's, saw role {quote(role)}"


def refuse_role(native: Native) -> None:
    """Refuse a piece of a response that another than the model is said to have written."""
    problem = role_problem(native)
    if problem:
        raise violation(problem)


def refuse_unknown(native: Native, known: Container[str], where: str) -> None:
    """Refuse what is not known in a call's own content: unknown is progress everywhere else."""
    for name, value in native.items():
        if name not in known and value not in (None, ""):
            raise violation(f"{where} holds {quote(name)}, which is not known")


# RFC 7493 (I-JSON): a greater whole number is not the same to every reader.
MAX_COUNT = 2**53
SAID = ("reason", "type", "code", "message")


def count(native: object, name: str) -> int | None:
    """Return the counter under `name`, or None where it is missing or no counter."""
    value = native.get(name) if isinstance(native, dict) else None
    return value if type(value) is int and 0 <= value < MAX_COUNT else None


def has_content(value: object, labels: Container[str] = ()) -> bool:
    """Say whether JSON that may nest holds anything but null, empty texts, and its `labels`.

    Labels are the names of fields that say where a content stands, or of which kind it is.
    """
    waiting = [value]
    for each in waiting:
        if isinstance(each, dict):
            waiting += [inner for name, inner in each.items() if name not in labels]
        elif isinstance(each, list):
            waiting += each
        elif each not in (None, ""):
            return True
    return False


def _seen(native: Native, name: str) -> str:
    return quote(native[name]) if name in native else "none"

"""JSON text to values that nothing can change, by the strict reading of the standards.

The rules: RFC 8259 (JSON) for the syntax, and RFC 7493 (I-JSON) for what two readers could
understand differently: no duplicate names, no NaN or infinity, no lone surrogates. One rule is
ours: nesting deeper than MAX_NESTING is refused, since a parser may overflow its stack on it.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Never

# Real arguments nest less than ten deep; CPython's parser overflows near a thousand.
MAX_NESTING = 64

SURROGATE = re.compile("[\ud800-\udfff]")
SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# Characters that show nothing, or turn the text around: controls, zero widths, directions, tags.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
MAX_QUOTED_CHARACTERS = 48
_SPACE = " \t\n\r"
# What an error calls a JSON value that is no object.
JSON_NAMES: dict[type, str] = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


class StrictJSONError(ValueError):
    """Raised when a text is not exactly one JSON value by the strict rules."""


def strict_loads(text: str) -> Any:
    """Parse `text`, exactly one JSON value, and return it as plain Python values.

    Raises StrictJSONError, with a reason that names the position or the name in question.
    """
    value = loads_unique(text)
    if "\\u" in text or has_surrogate(text):
        _refuse_surrogates(value)
    return value


def loads_unique(text: str) -> Any:
    """Parse as `strict_loads`, but let lone surrogates pass.

    One event of a stream may hold half of an escape pair whose other half is in the next event.
    """
    try:
        value, end = _DECODER.raw_decode(text, _first(text))
    except json.JSONDecodeError as error:
        raise StrictJSONError(_explain(text, error)) from error
    except RecursionError:
        raise StrictJSONError(_TOO_DEEP) from None
    except ValueError as error:
        raise StrictJSONError(str(error)) from error
    rest = text[end:].lstrip(_SPACE)
    if rest:
        raise StrictJSONError(f"a second value follows the first: {quote(rest)}")
    _refuse_depth(text, value)
    return value


def has_surrogate(text: str) -> bool:
    """Say whether `text` holds half of an escape pair, which UTF-8 cannot carry."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def same_text(left: str, right: str) -> bool:
    """Say whether two texts are the same, wherever fragments cut their escape pairs apart."""
    return left == right or join_surrogates(left) == join_surrogates(right)


def join_surrogates(text: str) -> str:
    """Join escape pairs that two fragments cut apart; lone surrogates stay as they are."""
    if not has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def visible(text: str) -> str:
    """Return `text` with each lone surrogate written as its escape, so that it can be printed."""
    return SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable(text: str) -> str:
    """Return untrusted text with what would hide it or turn it around written as escapes."""
    return INVISIBLE.sub(_escape, text)


def one_line(text: str) -> str:
    """Return untrusted text as `printable` does, its line ends and tabs as escapes too."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def shorten(text: str, length: int) -> str:
    """Return `text`, cut to `length` characters where it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def quote(value: object, length: int = MAX_QUOTED_CHARACTERS) -> str:
    """Return an untrusted value as JSON text, short and printable, for an error message.

    A text stands in quotation marks; what JSON cannot say is named by its type.
    """
    if isinstance(value, str):
        text = json.dumps(shorten(value, length), ensure_ascii=False)
    else:
        text = shorten(_as_json(value), length)
    return printable(text)


def _as_json(value: object) -> str:
    try:
        return json.dumps(thaw(value), ensure_ascii=False)
    except TypeError:
        return f"a value of type {type(value).__name__}"
    except (RecursionError, ValueError):
        return f"{JSON_NAMES.get(type(value), 'an object')}, too large to be shown"


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class FrozenObject(Mapping[str, Any]):
    """A JSON object that cannot be changed, all the way down.

    It compares equal to a dict of the same content. `thaw` gives a plain copy to change.
    """

    __slots__ = ("_items",)
    _items: Mapping[str, Any]

    def __init__(self, items: Mapping[str, Any]) -> None:
        frozen = {name: freeze(value) for name, value in items.items()}
        object.__setattr__(self, "_items", MappingProxyType(frozen))

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return bool(thaw(self) == thaw(other))

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError("arguments that were validated cannot be changed; thaw() a copy")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError("arguments that were validated cannot be changed; thaw() a copy")

    def __reduce__(self) -> tuple[type[FrozenObject], tuple[dict[str, Any]]]:
        return FrozenObject, (thaw(self),)

    def __repr__(self) -> str:
        return repr(thaw(self))


def freeze(value: Any) -> Any:
    """Return an unchangeable copy: objects as FrozenObject, arrays as tuples."""
    if isinstance(value, FrozenObject):
        return value
    if isinstance(value, Mapping):
        return FrozenObject(value)
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Return a plain copy: objects as dicts, arrays as lists."""
    if isinstance(value, Mapping):
        return {name: thaw(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


def dumps(value: Any) -> str:
    """Write a frozen or plain value as compact JSON text."""
    return json.dumps(thaw(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


_TOO_DEEP = f"it nests deeper than {MAX_NESTING} levels"


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in value if counts[name] > 1)
        raise StrictJSONError(f"the name {quote(twice)} stands twice in one object")
    return value


def _refuse_constant(name: str) -> Never:
    raise StrictJSONError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise StrictJSONError(f"the number {quote(text)} is too large for a double")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
)


def _first(text: str) -> int:
    return len(text) - len(text.lstrip(_SPACE))


def _explain(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip(_SPACE):
        return "it is empty"
    if error.pos >= len(text.rstrip(_SPACE)) or error.msg.startswith("Unterminated"):
        return f"it ends early, after {len(text)} characters: {quote(text[-24:])}"
    near = quote(text[max(0, error.pos - 8) : error.pos + 16])
    return f"{error.msg[0].lower()}{error.msg[1:]} at character {error.pos + 1}, near {near}"


def _refuse_depth(text: str, value: Any) -> None:
    if text.count("{") + text.count("[") <= MAX_NESTING:
        return
    level = [value]
    for _ in range(MAX_NESTING):
        inside = (inner for outer in level for inner in _children(outer))
        level = [inner for inner in inside if isinstance(inner, dict | list)]
        if not level:
            return
    raise StrictJSONError(_TOO_DEEP)


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _refuse_surrogates(value: Any) -> None:
    if isinstance(value, str) and has_surrogate(value):
        raise StrictJSONError(f"a string holds a lone surrogate: {quote(value)}")
    if isinstance(value, dict):
        _refuse_surrogates(list(value))
    for inner in _children(value):
        _refuse_surrogates(inner)

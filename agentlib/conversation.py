"""The portable conversation: what was said, called and returned, in no provider's words.

Each provider's encoder turns a history of these entries, and a catalog, into its own request;
each translator brings a response back. Everything here is immutable: what was validated is what
runs, and what is replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentlib.errors import CatalogError, EncodingError
from agentlib.jsonvalues import FrozenObject, dumps, freeze, quote, thaw
from agentlib.schemas import (
    Validator,
    argument_names,
    problem,
    strict_strings,
    takes_nothing,
    unevaluated,
    validator,
)

Role: TypeAlias = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a gate released: `arguments` is a JSON object, deeply immutable.

    `caller` names the hosted program that made the call, as its API does, or is None where the
    model made it. The host answers both alike, and the caller goes back beside the call.
    """

    call_id: str
    name: str
    arguments: FrozenObject
    caller: FrozenObject | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", freeze(self.arguments))


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A call that no gate released: its argument text stays as it came, and is never executed.

    It stands in a history only beside a result that tells the model why.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool returned, or why it did not run, for the call of this ID."""

    call_id: str
    output: str


@dataclass(frozen=True, slots=True)
class NativeTurn:
    """An assistant's whole turn as its provider sent it: opaque, and of use to that one alone."""

    provider: str
    items: tuple[FrozenObject, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", freeze(self.items))


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said. Only an assistant's message may carry a refusal or calls.

    `native`, where it is kept, says the same in its provider's form, and is sent back as it is.
    `rejected` are calls that were not released, kept so that the model can be told why.
    """

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    refusal: str = ""
    native: NativeTurn | None = None
    rejected: tuple[RejectedCall, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", tuple(self.calls))
        if self.role not in ("system", "user", "assistant"):
            raise EncodingError(f"a message's role is system, user or assistant; not {self.role!r}")
        if self.role != "assistant" and (self.calls or self.refusal):
            raise EncodingError(f"only an assistant calls tools or refuses; this is {self.role}")

    def __repr__(self) -> str:
        said = ((name, getattr(self, name)) for name in self.__slots__)
        return f"Message({', '.join(f'{name}={value!r}' for name, value in said if value)})"

    @property
    def all_calls(self) -> tuple[ToolCall | RejectedCall, ...]:
        """The calls that need a result: the released ones, then the rejected ones."""
        return (*self.calls, *self.rejected)


Entry: TypeAlias = Message | ToolResult


def system(text: str) -> Message:
    """Return a system message."""
    return Message("system", text)


def user(text: str) -> Message:
    """Return a user's message."""
    return Message("user", text)


def assistant(text: str = "", calls: Iterable[ToolCall] = (), refusal: str = "") -> Message:
    """Return an assistant's message with its calls, in order."""
    return Message("assistant", text, tuple(calls), refusal)


def check_history(history: Sequence[Entry]) -> None:
    """Raise EncodingError unless each call has exactly one result, before anyone speaks again.

    Every provider answers a history that breaks this with status 400.
    """
    waiting: dict[str, None] = {}
    seen: set[str] = set()
    for number, entry in enumerate(history, 1):
        _refuse_foreign(entry, number)
        if isinstance(entry, ToolResult):
            if entry.call_id not in waiting:
                kind = "a second result" if entry.call_id in seen else "a result without a call"
                raise EncodingError(f"entry {number}: {kind}, call ID {quote(entry.call_id)}")
            del waiting[entry.call_id]
            continue
        _refuse_waiting(waiting, f"entry {number} comes before")
        for call in entry.all_calls:
            if not call.call_id or not call.name:
                raise EncodingError(f"entry {number}: a call needs an ID and a name: {quote(call)}")
            if call.call_id in seen:
                raise EncodingError(f"entry {number}: call ID {quote(call.call_id)} is used twice")
            seen.add(call.call_id)
            waiting[call.call_id] = None
    _refuse_waiting(waiting, "the history ends before")


def _refuse_foreign(entry: object, number: int) -> None:
    texts: tuple[object, ...] = (None,)
    if isinstance(entry, ToolResult):
        texts = (entry.call_id, entry.output)
    elif isinstance(entry, Message):
        texts = (entry.text, entry.refusal)
    if not all(isinstance(text, str) for text in texts):
        reason = "expected a message or a tool result, of text"
        raise EncodingError(f"entry {number}: {reason}; saw {quote(entry)}")


def _refuse_waiting(waiting: Mapping[str, None], when: str) -> None:
    if waiting:
        raise EncodingError(f"{when} the result of call ID {quote(next(iter(waiting)))}")


@dataclass(frozen=True, slots=True, repr=False)
class Usage:
    """Tokens that a provider says it billed; a counter that it did not report is None.

    `cached_tokens` were read from a cache and `cache_creation_tokens` written to it, of those
    `cache_creation_hour_tokens` for an hour. With OpenAI's APIs they are parts of the input
    tokens; `cached_apart` is where they are counted beside them, as Anthropic does ("Prompt
    caching": the input tokens are those after the last cache breakpoint).
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_creation_hour_tokens: int | None = None
    # How counters are added up is no counter: two that report the same are equal.
    cached_apart: bool = field(default=False, compare=False, kw_only=True)

    @property
    def counters(self) -> dict[str, int | None]:
        """The counters by name: four always, and those of writing to a cache where reported."""
        names = [name for name in self.__slots__ if name != "cached_apart"]
        every = {name: getattr(self, name) for name in names}
        return {
            name: value
            for name, value in every.items()
            if value is not None or not name.startswith("cache_creation")
        }

    def __repr__(self) -> str:
        counters = (f"{name}={value}" for name, value in self.counters.items())
        return f"Usage({', '.join(counters)})"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it: `parameters` is a JSON Schema (draft 2020-12) of an object."""

    name: str
    description: str
    parameters: FrozenObject

    def __post_init__(self) -> None:
        if not self.name:
            raise CatalogError("a tool needs a name, a nonempty string")
        object.__setattr__(self, "parameters", freeze(self.parameters))

    @classmethod
    def strings(cls, name: str, description: str, **parameters: str) -> ToolSpec:
        """Return a tool with named string parameters, each with its description."""
        return cls(name, description, FrozenObject(strict_strings(parameters)))

    @property
    def takes_nothing(self) -> bool:
        """Whether it has no parameter at all, not even one with a default."""
        return takes_nothing(self.parameters)


class Catalog:
    """The tools that are exposed for one request, by exact name, in order.

    `captured` tools come from a recording, which is untrusted: a schema is then looked at only
    when its tool is called, and evaluated only where that is safe (see `unevaluated`).

    Raises CatalogError where a name stands twice or, unless captured, a schema is not one.
    """

    __slots__ = ("_captured", "_tools", "_validators")

    def __init__(self, tools: Iterable[ToolSpec] = (), *, captured: bool = False) -> None:
        self._captured = captured
        self._tools: dict[str, ToolSpec] = {}
        self._validators: dict[str, Validator] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise CatalogError(f"tool {quote(tool.name)} stands twice in the catalog")
            self._tools[tool.name] = tool
            if not captured:
                self._validators[tool.name] = _checked(tool)

    @classmethod
    def from_json(cls, tools: object, *, captured: bool = False) -> Catalog:
        """Return the catalog that a plain JSON array describes.

        Each tool is an object with `name`, `description` and `parameters`, flat as the Responses
        API writes it, under `function` as Chat Completions does, or with `input_schema` as
        Messages does. An entry of a hosted kind, which the provider runs itself, is left out.
        Raises CatalogError, with the entry's number, for anything else.
        """
        if not isinstance(tools, list):
            raise CatalogError(
                "a catalog is a JSON array of tools, each with a name and parameters"
            )
        found = enumerate(tools, 1)
        return cls(
            (_tool_from_json(entry, number) for number, entry in found if not _is_hosted(entry)),
            captured=captured,
        )

    def get(self, name: str) -> ToolSpec | None:
        """Return the tool of exactly this name, or None."""
        return self._tools.get(name)

    def exposes(self, name: str) -> bool:
        """Say whether a tool of exactly this name is exposed."""
        return name in self._tools

    def takes(self, name: str) -> frozenset[str] | None:
        """Return the names of all arguments that the tool can take, None where that is open."""
        tool = self._tools.get(name)
        return argument_names(tool.parameters) if tool is not None else None

    def problem(self, name: str, arguments: Any) -> str | None:
        """Return what is wrong with plain JSON `arguments` by the tool's schema, or None."""
        checker = self._validators.get(name)
        if checker is None:
            checker = validator(thaw(self._tools[name].parameters), check=False)
        return problem(checker, arguments)

    def unevaluated(self, name: str, arguments: Any) -> str | None:
        """Return why the tool's schema is not evaluated on `arguments`, or None where it is."""
        return (
            unevaluated(thaw(self._tools[name].parameters), arguments) if self._captured else None
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The exposed names, in order."""
        return tuple(self._tools)

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Catalog({', '.join(self._tools)})"


def _checked(tool: ToolSpec) -> Validator:
    try:
        f"{tool.description}{dumps(tool.parameters)}".encode()
        return validator(thaw(tool.parameters))
    except (TypeError, ValueError, RecursionError) as error:
        raise CatalogError(f"tool {quote(tool.name)}: {error}") from error


def _is_hosted(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("type"), str)
        and entry["type"] != "function"
        and "parameters" not in entry
        and "input_schema" not in entry
    )


def _tool_from_json(entry: object, number: int) -> ToolSpec:
    inner = entry.get("function", entry) if isinstance(entry, dict) else entry
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        raise CatalogError(f"tool {number} of the catalog needs a `name`, a string")
    schema = inner.get("parameters", inner.get("input_schema"))
    if schema is None:
        schema = strict_strings({})
    if not isinstance(schema, dict):
        raise CatalogError(f"tool {number} ({quote(inner['name'])}): its schema must be an object")
    return ToolSpec(inner["name"], str(inner.get("description") or ""), FrozenObject(schema))

"""What a decision is: a thought, and exactly one action.

    action         what its caller does
    ToolCall       runs the tool, and observes its result
    FinalAnswer    hands it to a verifier: it is a proposal, and no success
    AskUser        asks the user; where there is none, the run is blocked

The models are strict and frozen: nothing is coerced on the way in, nothing changes afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
)

from agentlib.conversation import Usage
from agentlib.jsonvalues import FrozenObject, printable, thaw

# Enough to see what went wrong; a note is sent to the model, and paid for, in every later request.
MAX_EXCERPT_CHARACTERS = 240

Step: TypeAlias = Literal["act", "verify", "ask", "blocked"]


def _object(value: object) -> FrozenObject:
    if not isinstance(value, Mapping):
        raise ValueError("expected an object")  # noqa: TRY004 - pydantic reports a ValueError
    return FrozenObject(value)


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("expected some words, saw none")
    return text


JSONObject: TypeAlias = Annotated[
    FrozenObject, BeforeValidator(_object), PlainSerializer(thaw, when_used="json")
]
Words: TypeAlias = Annotated[str, AfterValidator(_said)]


class _Frozen(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        hide_input_in_errors=True,
        arbitrary_types_allowed=True,
    )


class ToolCall(_Frozen):
    """Run the tool `name` on `input`, a JSON object that its own schema has accepted."""

    kind: Literal["tool"] = "tool"
    name: Words
    input: JSONObject


class FinalAnswer(_Frozen):
    """The model proposes that the task is done. A verifier decides whether it is."""

    kind: Literal["final_answer"] = "final_answer"
    answer: Words


class AskUser(_Frozen):
    """The model cannot go on without an answer of the user."""

    kind: Literal["ask_user"] = "ask_user"
    question: Words


Action: TypeAlias = Annotated[ToolCall | FinalAnswer | AskUser, Field(discriminator="kind")]


class DecisionRetryNote(_Frozen):
    """One reply that was no decision: what was wrong, and how it began; the model got both."""

    problem: str
    excerpt: str


class DecisionUsage(_Frozen):
    """Tokens that were billed for one decision, over all its requests, lost ones included.

    A counter is the sum of what was reported, or None where no request reported it: never zero.
    `requests` counts them all, and `unreported` those that reported nothing, whose tokens the
    sums lack.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_creation_hour_tokens: int | None = None
    requests: int = 1
    unreported: int = 0

    @classmethod
    def of(cls, usage: Usage | None) -> DecisionUsage:
        """Return the usage of one request; `usage` is what the provider reported of it."""
        counters: dict[str, Any] = {name: getattr(usage, name, None) for name in COUNTERS}
        silent = all(value is None for value in counters.values())
        return cls(**counters, unreported=int(silent))

    @classmethod
    def total(cls, parts: Iterable[DecisionUsage]) -> DecisionUsage | None:
        """Return the sum, or None where there was no request at all."""
        found = list(parts)
        if not found:
            return None
        sums: dict[str, Any] = {
            name: _sum(getattr(part, name) for part in found) for name in COUNTERS
        }
        requests = sum(part.requests for part in found)
        return cls(**sums, requests=requests, unreported=sum(part.unreported for part in found))


COUNTERS = tuple(name for name in DecisionUsage.model_fields if name.endswith("_tokens"))


class ModelDecision(_Frozen):
    """One validated decision. `retry_trace` and `usage` are the client's words, not the model's."""

    thought: str
    action: Action
    retry_trace: tuple[DecisionRetryNote, ...] = ()
    usage: DecisionUsage | None = None

    def step(self, *, interactive: bool) -> Step:
        """Say what comes next; `interactive` is whether a user is there to be asked."""
        if isinstance(self.action, AskUser):
            return "ask" if interactive else "blocked"
        return "act" if isinstance(self.action, ToolCall) else "verify"

    def describe(self, *, interactive: bool) -> str:
        """Say the same in one sentence."""
        action = self.action
        if isinstance(action, ToolCall):
            return f"run {printable(action.name)}"
        if isinstance(action, FinalAnswer):
            return f"proposed, to be verified: {printable(action.answer)}"
        asks = f"asks the user: {printable(action.question)}"
        return asks if interactive else f"blocked, since nobody can be asked; it {asks}"


def excerpt(text: str) -> str:
    """Return the beginning of an untrusted text, printable, and marked where it is cut."""
    shown = printable(text[:MAX_EXCERPT_CHARACTERS])
    if len(text) <= MAX_EXCERPT_CHARACTERS:
        return shown
    return f"{shown}… [cut: {MAX_EXCERPT_CHARACTERS} of {len(text):,} characters]"


def _sum(counts: Iterable[Any]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None

"""What a run may use, as one frozen value, and the account of what it has used.

All classes of failure that are answered by asking the model again draw on one repair budget:
separate counters add up to a run that nobody bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from math import isnan
from typing import Any, Literal, TypeAlias

from agentlib.conversation import Usage
from agentlib.failures import CloseFailed, GateRejected, ProviderStopped, ResponseFailure
from agentlib.runtime.money import Amount, exact, for_tokens, total

# What a request asks for unless it is bounded: a turn that nobody reported may have used it.
UNREPORTED_OUTPUT_TOKENS = 2048

# Why the model is asked again; each costs one repair of the same budget.
RepairReason: TypeAlias = Literal[
    "malformed_arguments",
    "cut_by_length",
    "empty_answer",
    "wrong_format",
    "unsupported_claim",
    "unbacked_fact",
]
Budget: TypeAlias = Literal["turns", "repairs", "output_tokens", "spend"]


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for one million tokens, of each kind that has a price of its own.

    `cached` tokens are input read from a cache, `cache_creation` tokens are written to one, those
    for an hour at `cache_creation_hour`. A kind that was used and has no price makes a cost
    unknown. A price is a Decimal, a number, or its text.
    """

    input: Amount
    cached: Amount
    output: Amount
    cache_creation: Amount | None = None
    cache_creation_hour: Amount | None = None

    def __post_init__(self) -> None:
        for name in self.__slots__:
            price = getattr(self, name)
            exact(0 if price is None else price)

    def cost(self, usage: Usage) -> Decimal | None:
        """Return what `usage` costs, exactly, or None where it does not report enough to tell."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        fresh, cached = usage.input_tokens, usage.cached_tokens or 0
        created = usage.cache_creation_tokens or 0
        hour = min(usage.cache_creation_hour_tokens or 0, created)
        if not usage.cached_apart:
            cached = min(cached, fresh)
            created = min(created, fresh - cached)
            hour = min(hour, created)
            fresh -= cached + created
        parts: list[tuple[int, Amount | None]] = [
            (fresh, self.input),
            (cached, self.cached),
            (created - hour, self.cache_creation),
            (hour, self.cache_creation_hour),
            (usage.output_tokens, self.output),
        ]
        if any(price is None for count, price in parts if count):
            return None
        return total(for_tokens(count, price or 0) for count, price in parts)

    def most(self, input_tokens: int, output_tokens: int) -> Decimal:
        """Return the most that a request of so many tokens can cost, whatever a cache does."""
        prices = (self.input, self.cached, self.cache_creation, self.cache_creation_hour)
        dearest = max(exact(price or 0) for price in prices)
        return total((for_tokens(input_tokens, dearest), for_tokens(output_tokens, self.output)))


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The bounds of one run; None means that this one does not bind.

    `turns` and `repairs` count. `output_tokens` are for the whole run; what is left of them, and
    of `spend`, bounds each request. `spend` is money by `prices`. A turn whose usage nobody
    reported is charged `unreported_output_tokens`, or what its request was bounded to, if that is
    less: unknown is not zero. `deadline` bounds the run, `turn_deadline` one turn of the model and
    `tool_deadline` one tool, in seconds of the loop's clock. `parallel_tools` run at a time.
    Raises ValueError for what bounds nothing: NaN, a text, a fraction where something is counted.
    """

    turns: int = 10
    repairs: int = 2
    output_tokens: int | None = 20_000
    unreported_output_tokens: int = UNREPORTED_OUTPUT_TOKENS
    spend: Amount | None = None
    prices: Prices | None = None
    deadline: float | None = 600.0
    turn_deadline: float | None = 300.0
    tool_deadline: float | None = 60.0
    parallel_tools: int = 4

    def __post_init__(self) -> None:
        exact(0 if self.spend is None else self.spend)
        for name in _COUNTED:
            value = getattr(self, name)
            if type(value) is not int and not (value is None and name in _UNBOUND):
                raise ValueError(f"expected a whole number as {name}, saw {value!r}")
        if self.unreported_output_tokens < 0:
            raise ValueError("expected unreported_output_tokens from 0 on: unknown is not negative")
        for name in _SECONDS:
            value = getattr(self, name)
            if value is not None and (type(value) not in (int, float) or isnan(value)):
                raise ValueError(f"expected a number of seconds as {name}, or None, saw {value!r}")


_COUNTED = ("turns", "repairs", "output_tokens", "unreported_output_tokens", "parallel_tools")
_UNBOUND = frozenset({"output_tokens"})
_SECONDS = ("deadline", "turn_deadline", "tool_deadline")


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: why the model was asked again, in detail, and how many are left after it."""

    turn: int
    reason: RepairReason
    detail: str
    left: int


@dataclass(slots=True)
class Account:
    """What a run has used so far.

    `unreported` counts turns whose usage nobody reported, or not wholly, and
    `estimated_output_tokens` are charged for them; `unpriced` counts turns without a known cost.
    """

    turns: int = 0
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0, 0))
    unreported: int = 0
    estimated_output_tokens: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    repairs: list[Repair] = field(default_factory=list)

    @property
    def output_tokens(self) -> int:
        """The output tokens that are charged: those reported, and the estimates."""
        return (self.usage.output_tokens or 0) + self.estimated_output_tokens

    def charge(self, usage: Usage | None, limits: RunLimits) -> None:
        """Count one turn, also one that failed, with the estimate of `limits` for what is unknown.

        The estimate is never more than what the turn's request was bounded to.
        """
        most, estimate = self.most_output_tokens(limits), limits.unreported_output_tokens
        self.add(usage, limits.prices, estimate if most is None else min(estimate, most))

    def add(
        self,
        usage: Usage | None,
        prices: Prices | None,
        estimate: int = UNREPORTED_OUTPUT_TOKENS,
    ) -> None:
        """Count the usage of one turn; where its output was not reported, `estimate` is charged."""
        cost = prices.cost(usage) if prices is not None and usage is not None else None
        if usage is None or usage.output_tokens is None:
            self.unreported += 1
            self.estimated_output_tokens += estimate
        if usage is not None:
            self.usage = _sum(self.usage, usage)
        if cost is not None:
            self.cost = total((self.cost, cost))
        else:
            self.unpriced += 1

    def most_output_tokens(self, limits: RunLimits) -> int | None:
        """Return how many output tokens the next request may use; None where nothing binds it."""
        bounds = []
        if limits.output_tokens is not None:
            bounds.append(limits.output_tokens - self.output_tokens)
        if limits.spend is not None and limits.prices is not None and exact(limits.prices.output):
            left = (exact(limits.spend) - self.cost) / for_tokens(1, limits.prices.output)
            bounds.append(int(left))
        return max(1, min(bounds)) if bounds else None

    def repair(self, limits: RunLimits, reason: RepairReason, detail: str) -> Repair | None:
        """Take one repair from the shared budget and return it; None where none is left."""
        left = limits.repairs - len(self.repairs)
        if left <= 0:
            return None
        repair = Repair(self.turns, reason, detail, left - 1)
        self.repairs.append(repair)
        return repair

    def exhausted(self, limits: RunLimits) -> Budget | None:
        """Return the budget that allows no further turn, or None."""
        if self.turns >= limits.turns:
            return "turns"
        if limits.output_tokens is not None and self.output_tokens >= limits.output_tokens:
            return "output_tokens"
        if limits.spend is not None and (self.cost >= exact(limits.spend) or self.unpriced):
            return "spend"
        return None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "turns": self.turns,
            "usage": [*_counters(self.usage), self.usage.cached_apart],
            "unreported": self.unreported,
            "estimated_output_tokens": self.estimated_output_tokens,
            "cost": str(self.cost),
            "unpriced": self.unpriced,
            "repairs": [[r.turn, r.reason, r.detail, r.left] for r in self.repairs],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Account:
        """Return the account that `to_json` wrote."""
        repairs = [Repair(*row) for row in value["repairs"]]
        *counters, apart = value["usage"]
        return cls(
            turns=value["turns"],
            usage=Usage(*counters, cached_apart=apart),
            unreported=value["unreported"],
            estimated_output_tokens=value["estimated_output_tokens"],
            cost=exact(value["cost"]),
            unpriced=value["unpriced"],
            repairs=repairs,
        )

    def copy(self) -> Account:
        """Return an account of its own with the same content."""
        return replace(self, repairs=list(self.repairs))


def billed(failure: ResponseFailure) -> Usage | None:
    """Return what a failed response was billed; None where it was interrupted.

    The counters of a stream that did not come to its end still grew when they were last seen.
    """
    return failure.usage if isinstance(failure, _ENDED) else None


_ENDED = (ProviderStopped, GateRejected, CloseFailed)


def _counters(usage: Usage) -> list[int | None]:
    return [getattr(usage, each.name) for each in fields(usage) if each.name != "cached_apart"]


def _sum(left: Usage, right: Usage) -> Usage:
    # A counter that nobody reported is unknown; one that a turn did not report adds nothing.
    pairs = zip(_counters(left), _counters(right), strict=True)
    known = ([count for count in pair if count is not None] for pair in pairs)
    sums = [sum(counts) if counts else None for counts in known]
    return Usage(*sums, cached_apart=left.cached_apart or right.cached_apart)

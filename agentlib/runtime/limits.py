"""What a run may use, as one frozen value, and the account of what it has used.

All classes of failure that are answered by asking the model again draw on one repair budget:
separate counters add up to a run that nobody bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from agentlib.conversation import Usage

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
    """Money for one million tokens; cached input tokens have their own price."""

    input: float
    cached: float
    output: float

    def cost(self, usage: Usage) -> float | None:
        """Return what `usage` costs, or None where it does not report enough to tell."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        fresh = usage.input_tokens - cached
        tokens = fresh * self.input + cached * self.cached + usage.output_tokens * self.output
        return tokens / 1_000_000


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The bounds of one run; None means that this one does not bind.

    `turns` and `repairs` count. `output_tokens` are for the whole run. `spend` is money by
    `prices`. `deadline` bounds the run, `turn_deadline` one turn of the model and
    `tool_deadline` one tool, in seconds of the loop's clock. `parallel_tools` run at a time.
    """

    turns: int = 10
    repairs: int = 2
    output_tokens: int | None = 20_000
    spend: float | None = None
    prices: Prices | None = None
    deadline: float | None = 600.0
    turn_deadline: float | None = 300.0
    tool_deadline: float | None = 60.0
    parallel_tools: int = 4


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: why the model was asked again, in detail, and how many are left after it."""

    turn: int
    reason: RepairReason
    detail: str
    left: int


@dataclass(slots=True)
class Account:
    """What a run has used so far. `unreported` counts turns whose usage nobody reported."""

    turns: int = 0
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0, 0))
    unreported: int = 0
    cost: float = 0.0
    unpriced: int = 0
    repairs: list[Repair] = field(default_factory=list)

    def add(self, usage: Usage | None, prices: Prices | None) -> None:
        """Count the usage of one turn, also of one that failed; None was not reported."""
        if usage is None:
            self.unreported += 1
        else:
            self.usage = _sum(self.usage, usage)
        cost = prices.cost(usage) if prices is not None and usage is not None else None
        if cost is not None:
            self.cost += cost
        elif prices is not None:
            self.unpriced += 1

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
        used = self.usage.output_tokens or 0
        if limits.output_tokens is not None and used >= limits.output_tokens:
            return "output_tokens"
        if limits.spend is not None and (self.cost >= limits.spend or self.unpriced):
            return "spend"
        return None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "turns": self.turns,
            "usage": _counters(self.usage),
            "unreported": self.unreported,
            "cost": self.cost,
            "unpriced": self.unpriced,
            "repairs": [[r.turn, r.reason, r.detail, r.left] for r in self.repairs],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Account:
        """Return the account that `to_json` wrote."""
        repairs = [Repair(*row) for row in value["repairs"]]
        return cls(
            turns=value["turns"],
            usage=Usage(*value["usage"]),
            unreported=value["unreported"],
            cost=value["cost"],
            unpriced=value["unpriced"],
            repairs=repairs,
        )

    def copy(self) -> Account:
        """Return an account of its own with the same content."""
        return replace(self, repairs=list(self.repairs))


def _counters(usage: Usage) -> list[int | None]:
    return [
        usage.input_tokens,
        usage.cached_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
    ]


def _sum(left: Usage, right: Usage) -> Usage:
    # A counter that one turn did not report adds nothing; `unreported` tells of whole turns.
    pairs = zip(_counters(left), _counters(right), strict=True)
    return Usage(*((a or 0) + (b or 0) for a, b in pairs))

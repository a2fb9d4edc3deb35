"""Receipts: the evidence that an action happened, and what may be said because of it.

A claim in an answer stands on receipts of successful results, never on a tool's name in the
transcript. The wording of an answer can only raise a question: a pattern that matches asks for a
receipt, it does not give one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentlib.conversation import ToolCall
from agentlib.runtime.execution import Execution, Status

State: TypeAlias = Literal["proposed", "executed", "refused", "unknown"]

# What is known of a call, by what came of it, and what may be said of it by that alone.
KNOWN: Mapping[Status, tuple[State, str]] = {
    "executed": ("executed", "{} was executed, and returned what is recorded"),
    "failed": ("unknown", "{} failed, and whether it acted is unknown"),
    "timed_out": ("unknown", "{} was stopped, and whether it acted is unknown"),
    "unknown": ("unknown", "{} was begun, and whether it acted is unknown"),
    "shown": ("proposed", "{} was shown, and nothing was done"),
    "denied": ("refused", "{} was refused, and not executed"),
    "not_executed": ("proposed", "{} was proposed, and not executed"),
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is known of one call: what was recorded, whether it succeeded, what may be claimed.

    `recorded` is empty, and nothing is claimed, where the call was not executed, or nobody knows.
    """

    call_id: str
    name: str
    recorded: str
    succeeded: bool
    claims: frozenset[str]
    status: Status = "executed"

    @property
    def state(self) -> State:
        """Whether the call was only proposed, executed, refused, or what it did is unknown."""
        return KNOWN[self.status][0]

    @property
    def allowed_claim(self) -> str:
        """What may be said because of it: its claims, or else what came of the call."""
        return ", ".join(sorted(self.claims)) or KNOWN[self.status][1].format(self.name)


@dataclass(frozen=True, slots=True)
class ClaimRule:
    """What one tool's successful result entitles an answer to claim.

    `succeeded` judges the call and its output; `wording` is a pattern of an answer that makes the
    claim. A match without a receipt is an unsupported claim. A later call of a tool in
    `voided_by` voids the receipt: tests that passed before another edit prove nothing of it, and
    as little those that began while the edit of the same batch had not ended.
    """

    claim: str
    tool: str
    succeeded: Callable[[ToolCall, str], bool]
    wording: re.Pattern[str]
    voided_by: frozenset[str] = frozenset()


def receipts_of(executions: Iterable[Execution], rules: Sequence[ClaimRule]) -> tuple[Receipt, ...]:
    """Return a receipt for each call, in order."""
    every = tuple(executions)
    return tuple(
        _receipt(execution, rules, {later.call.name for later in every[place:] if _acted(later)})
        for place, execution in enumerate(every, 1)
    )


def _acted(execution: Execution) -> bool:
    return execution.status not in ("not_executed", "denied", "shown")


def _receipt(execution: Execution, rules: Sequence[ClaimRule], later: set[str]) -> Receipt:
    call, status = execution.call, execution.status
    output = execution.output if status == "executed" else ""
    judged = [rule for rule in rules if rule.tool == call.name] if status == "executed" else []
    earned = [rule for rule in judged if rule.succeeded(call, output)]
    claims = frozenset(
        rule.claim for rule in earned if not rule.voided_by & (later | execution.beside)
    )
    return Receipt(call.call_id, call.name, output, bool(earned), claims, status)


def unsupported(
    answer: str, held: Iterable[Receipt], rules: Sequence[ClaimRule]
) -> Mapping[str, str]:
    """Return the claims that `answer` makes without a receipt: the words that make each one."""
    supported = {claim for receipt in held for claim in receipt.claims}
    found = ((rule.claim, rule.wording.search(answer)) for rule in rules)
    return {
        claim: match[0] for claim, match in found if match is not None and claim not in supported
    }

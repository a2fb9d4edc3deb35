"""Receipts: the evidence that an action happened, and what may be said because of it.

A claim in an answer stands on receipts of successful results, never on a tool's name in the
transcript. The wording of an answer can only raise a question: a pattern that matches asks for a
receipt, it does not give one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentlib.conversation import ToolCall
from agentlib.runtime.execution import Execution


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was recorded of one executed call, whether it succeeded, and what may be claimed."""

    call_id: str
    name: str
    recorded: str
    succeeded: bool
    claims: frozenset[str]


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
    """Return a receipt for each call that was executed, in order."""
    acted = [each for each in executions if each.status not in ("not_executed", "denied", "shown")]
    return tuple(
        _receipt(execution, rules, {later.call.name for later in acted[place:]})
        for place, execution in enumerate(acted, 1)
        if execution.status == "executed"
    )


def _receipt(execution: Execution, rules: Sequence[ClaimRule], later: set[str]) -> Receipt:
    call, output = execution.call, execution.output
    earned = [rule for rule in rules if rule.tool == call.name and rule.succeeded(call, output)]
    claims = frozenset(
        rule.claim for rule in earned if not rule.voided_by & (later | execution.beside)
    )
    return Receipt(call.call_id, call.name, output, bool(earned), claims)


def unsupported(
    answer: str, held: Iterable[Receipt], rules: Sequence[ClaimRule]
) -> Mapping[str, str]:
    """Return the claims that `answer` makes without a receipt: the words that make each one."""
    supported = {claim for receipt in held for claim in receipt.claims}
    found = ((rule.claim, rule.wording.search(answer)) for rule in rules)
    return {
        claim: match[0] for claim, match in found if match is not None and claim not in supported
    }

"""What a host's rules and checks make of a text, by what was executed: asked with care."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from agentlib.conversation import ToolCall
from agentlib.runtime.execution import Execution
from agentlib.runtime.host import Host, Problem
from agentlib.runtime.parts import CHECKS, RULES, ask
from agentlib.runtime.receipts import ClaimRule, Receipt, receipts_of


def receipts(host: Host, executions: Iterable[Execution]) -> tuple[Receipt, ...]:
    """Return the receipts of a host's rules. Raises PartFailed."""
    rules = [replace(rule, succeeded=_guarded(rule)) for rule in host.rules]
    held: tuple[Receipt, ...] = ask(RULES, receipts_of, executions, rules)
    return held


def unbacked(host: Host, text: str, executions: Iterable[Execution]) -> Problem | None:
    """Return the first claim of a text that no receipt backs, or None. Raises PartFailed."""
    problem: Problem | None = ask(CHECKS, host.unbacked, text, receipts(host, executions))
    return problem


def _guarded(rule: ClaimRule) -> Callable[[ToolCall, str], bool]:
    return partial(ask, RULES, rule.succeeded)

"""What a run tells its observer, as it happens. An observer can influence nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from agentlib.assembly import Decision
from agentlib.errors import AgentlibError
from agentlib.runtime.approvals import Waiting
from agentlib.runtime.execution import Execution
from agentlib.runtime.limits import Budget, Repair


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn begins: its number from 1, and how many entries its request carries."""

    turn: int
    entries: int


@dataclass(frozen=True, slots=True)
class Turned:
    """A turn gave this decision."""

    turn: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class Executed:
    """A call of a decision ended: executed, refused, shown or interrupted."""

    turn: int
    execution: Execution


@dataclass(frozen=True, slots=True)
class Failed:
    """A turn gave no decision: nothing of it was executed."""

    turn: int
    failure: AgentlibError


@dataclass(frozen=True, slots=True)
class Repaired:
    """The model is asked again, at the cost of one repair of the shared budget."""

    repair: Repair


@dataclass(frozen=True, slots=True)
class BudgetWarning:
    """A budget is used up: the run ends, with a fallback text."""

    budget: Budget


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """Released calls wait for a person, each to be approved by its digest."""

    waiting: tuple[Waiting, ...]


LoopEvent: TypeAlias = (
    TurnStarted | Turned | Executed | Failed | Repaired | BudgetWarning | ApprovalNeeded
)

"""How a run can end: each outcome is a class with what its caller needs next.

Only `Finished` with a verified answer says that the task is solved. An evaluation that counts
`solved` cannot mistake a run out of budget, or an answer that nobody checked, for success.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentlib.conversation import Entry
from agentlib.errors import AgentlibError
from agentlib.runtime.approvals import Waiting
from agentlib.runtime.execution import Execution
from agentlib.runtime.limits import Account, Budget
from agentlib.runtime.publication import Committed


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What every outcome has.

    `history` is valid for a next request: each call in it has one result. `executions` are all
    calls of the run, in order. `times` are seconds by component, each second of the run in
    exactly one: opening, first event, streaming and closing of a stream, the rest of the model,
    queue (a call waits for a place while others run), tool, and the host.
    """

    run_id: str
    history: tuple[Entry, ...]
    account: Account
    executions: tuple[Execution, ...]
    committed: tuple[Committed, ...]
    times: Mapping[str, float]

    @property
    def solved(self) -> bool:
        """Whether a verified answer says that the task is solved."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Outcome):
    """The model answered, and the answer was committed. `verified` is whether a check passed it."""

    text: str
    verified: bool
    refused: bool = False

    @property
    def solved(self) -> bool:
        """Whether a verified answer says that the task is solved."""
        return self.verified and not self.refused


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForApproval(Outcome):
    """Released calls wait for a person; nothing of their batch was executed.

    `waiting` are the calls that need an approval, each with the reason and the digest
    by which it is answered. `saved` is the whole state as JSON text: another process can read it
    and resume the same run.
    """

    waiting: tuple[Waiting, ...]
    saved: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedBefore(Outcome):
    """The saved run was resumed before, here or elsewhere: nothing was asked or executed now.

    `executions` and `history` say what the journal knows of the calls that waited.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted(Outcome):
    """A budget is used up. `text` is the fallback that the user was shown."""

    budget: Budget
    text: str
    failure: AgentlibError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineExceeded(Outcome):
    """A deadline passed: which one, its seconds, and the component in which the time ran out."""

    deadline: str
    seconds: float
    component: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFailed(Outcome):
    """No decision came of a turn, and nothing of it was executed."""

    failure: AgentlibError


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFailed(Outcome):
    """A part of the host raised, or returned what it may not: `part` names it.

    The parts: model, approval, executor, journal, show, observe, rules, checks, verify, commit,
    and run for all else. What was executed by then keeps its result. `failure` is what the part
    raised, if it did.
    """

    part: str
    reason: str
    failure: BaseException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(Outcome):
    """The run was cancelled; what was executed, and what is unknown, stands in `executions`."""

    reason: str

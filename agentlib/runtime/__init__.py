"""From a history to an outcome: ask a model for one decision, run its calls, ask again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentlib.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from agentlib.runtime.batch import Batch as Batch
    from agentlib.runtime.continuation import ContinuingModel as ContinuingModel
    from agentlib.runtime.execution import Execution as Execution
    from agentlib.runtime.host import Host as Host
    from agentlib.runtime.host import Problem as Problem
    from agentlib.runtime.journal import FileJournal as FileJournal
    from agentlib.runtime.journal import MemoryJournal as MemoryJournal
    from agentlib.runtime.ledger import BudgetExceeded as BudgetExceeded
    from agentlib.runtime.ledger import Ledger as Ledger
    from agentlib.runtime.limits import Account as Account
    from agentlib.runtime.limits import Prices as Prices
    from agentlib.runtime.limits import RepairReason as RepairReason
    from agentlib.runtime.limits import RunLimits as RunLimits
    from agentlib.runtime.loop import Run as Run
    from agentlib.runtime.outcomes import WaitingForApproval as WaitingForApproval
    from agentlib.runtime.receipts import ClaimRule as ClaimRule
    from agentlib.runtime.receipts import receipts_of as receipts_of
    from agentlib.runtime.receipts import unsupported as unsupported
    from agentlib.runtime.routes import RoutedModel as RoutedModel
    from agentlib.runtime.state import RunState as RunState
    from agentlib.runtime.state import StateError as StateError
    from agentlib.runtime.tools import ToolExecutor as ToolExecutor
    from agentlib.runtime.workspace import Workspace as Workspace

__all__, __getattr__ = lazy_exports(
    __name__,
    {
        ".batch": ("Batch",),
        ".continuation": ("ContinuingModel",),
        ".execution": ("Execution",),
        ".host": ("Host", "Problem"),
        ".journal": ("FileJournal", "MemoryJournal"),
        ".ledger": ("BudgetExceeded", "Ledger"),
        ".limits": ("Account", "Prices", "RepairReason", "RunLimits"),
        ".loop": ("Run",),
        ".outcomes": ("WaitingForApproval",),
        ".receipts": ("ClaimRule", "receipts_of", "unsupported"),
        ".routes": ("RoutedModel",),
        ".state": ("RunState", "StateError"),
        ".tools": ("ToolExecutor",),
        ".workspace": ("Workspace",),
    },
)

"""All parts of the runtime at once, on real sockets, with a fault put in at one seam.

A run with tools, an approval, receipts and limits asks a continuation, which asks two routes under
one ledger, which ask the real SDK, which asks servers on 127.0.0.1. The servers answer as a
provider that stores responses does: by the ID that a request continues, or by its whole history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from typing import Any

from agentlib.clock import MockClock
from agentlib.conversation import Entry, ToolCall, ToolResult, user
from agentlib.faultserver.replies import Reply
from agentlib.faultserver.requests import Request
from agentlib.faultserver.server import LoopbackServer
from agentlib.fixtures import capture, tools
from agentlib.model import StreamingModel
from agentlib.openai_transport import OpenAITransport
from agentlib.runtime.continuation import ContinuingModel
from agentlib.runtime.execution import RunsIn
from agentlib.runtime.host import Host
from agentlib.runtime.journal import MemoryJournal
from agentlib.runtime.ledger import Ledger, LedgerFailed
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Outcome, WaitingForApproval
from agentlib.runtime.receipts import ClaimRule
from agentlib.runtime.routes import Route, RoutedModel
from workbook.pages.routes import NAMES, NO_KEY, PRICES, everyone, new_ledger

TASK: Sequence[Entry] = (user("Please repair add()."),)
# The turns of the repair, and the ID under which the provider stores each.
TURNS = ("success_1_read", "success_2_edit", "success_3_test", "success_4_answer")
STORED = tuple(capture(name).responses[0].events[0].data["response"]["id"] for name in TURNS)
OUTPUTS = {"read": "def add(a, b): return a - b", "edit": "edited", "test": "1 passed"}
TESTED = ClaimRule(
    claim="the test passes",
    tool="test",
    succeeded=lambda _, output: output == "1 passed",
    wording=re.compile("test passes"),
    voided_by=frozenset({"edit"}),
)


def answer(request: Request) -> Reply:
    """Return the next turn of the repair, as a provider that stores responses knows it."""
    body: dict[str, Any] = request.body or {}
    stored = body.get("previous_response_id")
    if stored is not None:
        turn = STORED.index(stored) + 1
    else:
        turn = sum(item["type"] == "function_call_output" for item in body["input"])
    return Reply.stream(capture(TURNS[turn]))


def forgotten() -> Reply:
    """Return the answer of a provider that does not know the response any more."""
    return Reply.error(400, code="previous_response_not_found")


@dataclass(slots=True)
class Tools:
    """An executor that repairs nothing, and keeps the IDs of the calls that it executed."""

    ran: list[str] = field(default_factory=list)

    async def execute(self, call: ToolCall) -> ToolResult:
        """Note the call, and return what its tool would."""
        self.ran.append(call.call_id)
        return ToolResult(call.call_id, OUTPUTS[call.name])

    def runs_in(self, _: ToolCall) -> RunsIn:
        """Return that every call runs in a task."""
        return "task"


class FailingLedger(Ledger):
    """A ledger whose use number `fails_at`, from 1, fails: a reservation or a settlement."""

    fails_at = 0
    uses = 0

    def reserve(self, *what: Any) -> int:
        """Reserve, or fail."""
        self._use()
        return super().reserve(*what)

    def settle(self, *what: Any) -> None:
        """Settle, or fail."""
        self._use()
        super().settle(*what)

    def _use(self) -> None:
        self.uses += 1
        if self.uses == self.fails_at:
            raise LedgerFailed("the disk is full")


@dataclass(frozen=True, repr=False)
class Repair:
    """How a repair ended: its outcomes (the last is the end), the calls that ran, what was asked.

    `requests` counts those that each server took; `fallbacks` how often the whole history went
    out since a response was forgotten.
    """

    outcomes: tuple[Outcome, ...]
    ran: tuple[str, ...]
    ledger: Ledger
    requests: Mapping[str, int]
    fallbacks: int

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        return self.outcomes[-1]

    def __repr__(self) -> str:
        requests = ", ".join(f"{name} {count}" for name, count in self.requests.items())
        why = getattr(self.outcome, "failure", None)
        lines = [
            f"{type(self.outcome).__name__}{f': {why}' if why is not None else ''}",
            f"ran {', '.join(self.ran) or 'nothing'}",
            f"requests: {requests} · fallbacks {self.fallbacks}",
            f"spent or reserved {self.ledger.spent():.6f}",
        ]
        return "\n".join(lines)


async def repair(
    faults: Mapping[int, Reply] | None = None,
    *,
    ledger: Ledger | None = None,
    approve: Callable[[ToolCall], bool] = lambda _: True,
    new_process: bool = False,
    idempotency_key: Callable[[], str] | None = None,
) -> Repair:
    """Let a run repair a file over sockets; `faults` are the gateway's replies by request, from 1.

    `approve` answers for the edit, which waits for it. `new_process` forgets, at that moment, all
    but what was saved: the models are made anew.
    """
    book = ledger or new_ledger()
    executor, outcomes = Tools(), list[Outcome]()
    host = Host(
        tools=tools(),
        executor=executor,
        approval=lambda call: "it changes a file" if call.name == "edit" else None,
        rules=(TESTED,),
        journal=MemoryJournal(),
    )

    def gateway(request: Request) -> Reply:
        return (faults or {}).get(request.number) or answer(request)

    with ExitStack() as running:
        servers = [running.enter_context(LoopbackServer(plan)) for plan in (gateway, answer)]
        async with AsyncExitStack() as stack:

            def connect() -> ContinuingModel:
                routes = []
                for name, server in zip(NAMES, servers, strict=True):
                    transport = OpenAITransport(api_key=NO_KEY, base_url=server.base_url)
                    stack.push_async_callback(transport.aclose)
                    model = StreamingModel(
                        transport, name, clock=MockClock(), idempotency_key=idempotency_key
                    )
                    routes.append(Route(name, model, name, PRICES, 1_000, 1_000))
                return ContinuingModel(RoutedModel(routes, book, "ann", everyone))

            model = connect()
            outcomes.append(await Run(model, host).start(TASK))
            while isinstance(waiting := outcomes[-1], WaitingForApproval):
                answers = {each.digest: approve(each.call) for each in waiting.waiting}
                model = connect() if new_process else model
                outcomes.append(await Run(model, host).resume(waiting.saved, answers))
        counts = [len(server.requests) for server in servers]
    requests = dict(zip(NAMES, counts, strict=True))
    return Repair(tuple(outcomes), tuple(executor.ran), book, requests, model.fallbacks)

"""The route taken: a gateway, and a direct route beside it, under one access check and one ledger.

A fallback is tempting where the gateway is down, and it is where access checks and accounting
get lost. Here both routes pass the same check and are metered by the same ledger, and a route
that cannot be metered is refused unless the caller says otherwise. Only a gateway that cannot be
reached moves on to the next route. What it answers is the answer, a refusal above all: access,
budgets, quotas and guardrails are why there is a gateway. So is the failure of a stream that was
acquired.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Literal, TypeAlias

import anyio
import anyio.to_thread

from agentlib.assembly import Decision
from agentlib.conversation import Catalog, Entry, Usage
from agentlib.errors import AgentlibError, NotConfigured, OpenFailure
from agentlib.failures import ResponseFailure
from agentlib.model import Encoding
from agentlib.retry import QUOTA_CODES
from agentlib.runtime.ledger import Ledger, LedgerFailed
from agentlib.runtime.limits import Prices, billed
from agentlib.runtime.models import Model, complete

# RFC 9110: what a proxy answers for a server behind it that is down, or that it cannot reach. Any
# other status is the word of the gateway itself.
UNREACHABLE = frozenset({502, 503, 504})

State: TypeAlias = Literal["ready", "degraded", "unready"]


class AccessDenied(AgentlibError):
    """Raised when this caller may not use a route."""


class UnmeteredRoute(AgentlibError):
    """Raised when a route has no prices, so that what it costs could not be accounted for."""


@dataclass(frozen=True, slots=True)
class Route:
    """A way to a model. `prices` None means that it cannot be metered.

    `most_input_tokens` and `most_output_tokens` bound one request, for the reservation.
    """

    name: str
    model: Model
    model_name: str
    prices: Prices | None
    most_input_tokens: int = 20_000
    most_output_tokens: int = 2048

    def reservation(self) -> Decimal:
        """Return the most that one request can cost."""
        if self.prices is None:
            return Decimal(0)
        return self.prices.most(self.most_input_tokens, self.most_output_tokens)

    def bounded(self, most_output_tokens: int | None) -> int:
        """Return how many output tokens one request may ask for: no more than are reserved."""
        if most_output_tokens is None:
            return self.most_output_tokens
        return min(most_output_tokens, self.most_output_tokens)

    def cost(self, usage: Usage | None) -> Decimal | None:
        """Return what `usage` costs here, None where it cannot be told."""
        if self.prices is None or usage is None:
            return None
        return self.prices.cost(usage)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served, by which route the last one went, and if it is accounted."""

    state: State
    route: str | None
    accounting: str


def is_unreachable(failure: OpenFailure) -> bool:
    """Say whether an opening failed since nobody was there, or a proxy answered in their place.

    An answer that gives a quota as its reason is the gateway's own, whatever its status. Who has
    no key for the gateway has not found out whether it can be reached. And a gateway that perhaps
    took the request was reached: another route would do its work a second time.
    """
    if isinstance(failure, NotConfigured) or failure.code in QUOTA_CODES:
        return False
    if failure.sent == "perhaps sent":
        return False
    return failure.sent == "not sent" or failure.status in UNREACHABLE


class RoutedModel:
    """A model behind several routes, tried in order. Fits the loop's boundary.

    `access(who, route)` is asked for every route alike. `taken` lists the route of each decision.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        ledger: Ledger,
        who: str,
        access: Callable[[str, str], bool],
        *,
        allow_unmetered: bool = False,
    ) -> None:
        self.taken: list[str] = []
        self._routes = tuple(routes)
        self._ledger = ledger
        self._who = who
        self._access = access
        self._allow_unmetered = allow_unmetered

    async def complete(
        self,
        history: Sequence[Entry],
        tools: Catalog,
        *,
        most_output_tokens: int | None = None,
        encoding: Encoding | None = None,
    ) -> Decision:
        """Return the decision of the first route that can be reached.

        A request asks for `most_output_tokens` at most, and for what its route reserves; it is
        encoded by `encoding`, where there is one. Raises
        the failure of the route that answered, or of the last one: OpenFailure, AccessDenied,
        UnmeteredRoute, BudgetExceeded, LedgerFailed, or a ResponseFailure.
        """
        failure = OpenFailure("there is no route")
        for route in self._routes:
            try:
                bound = route.bounded(most_output_tokens)
                asked = partial(complete, route.model, history, tools, bound, encoding)
                return await self._by(route, asked)
            except OpenFailure as error:
                if not is_unreachable(error):
                    raise
                failure = error
        raise failure

    async def readiness(self) -> Readiness:
        """Report the route of the last decision, and whether accounting works now.

        A provider that answers while the ledger is broken is degraded, not ready.
        """
        last = self.taken[-1] if self.taken else None
        try:
            await anyio.to_thread.run_sync(self._ledger.probe)
        except LedgerFailed as error:
            return Readiness("degraded" if last else "unready", last, str(error))
        direct = last is not None and last != self._routes[0].name
        return Readiness("degraded" if direct else "ready", last, "ok")

    async def _by(self, route: Route, ask: Callable[[], Awaitable[Decision]]) -> Decision:
        if not self._access(self._who, route.name):
            raise AccessDenied(f"{self._who} may not use the route {route.name}")
        if route.prices is None and not self._allow_unmetered:
            raise UnmeteredRoute(f"the route {route.name} has no prices and cannot be metered")
        number = await self._reserve(route)
        try:
            decision = await ask()
        except OpenFailure as error:
            cost = None if error.may_have_cost else Decimal(0)
            await self._settle(number, f"not opened: {error.reason}", cost, None)
            raise
        except ResponseFailure as error:
            await self._settle(number, error.reason, route.cost(billed(error)), error.usage)
            raise
        except BaseException:
            await self._settle(number, "cancelled, or failed in this process", None, None)
            raise
        await self._settle(number, "released", route.cost(decision.usage), decision.usage)
        self.taken.append(route.name)
        return decision

    async def _reserve(self, route: Route) -> int:
        amount = route.reservation()
        step = _Step(partial(self._ledger.reserve, self._who, route.name, route.model_name, amount))
        try:
            number: int = await step.whole()
        except BaseException:
            if step.result is not None:
                await self._settle(step.result, "cancelled before it was asked", Decimal(0), None)
            raise
        return number

    async def _settle(
        self, number: int, outcome: str, cost: Decimal | None, usage: Usage | None
    ) -> None:
        await _Step(partial(self._ledger.settle, number, outcome, cost, usage)).whole()


class _Step:
    """One transaction of the ledger, in a thread; `result` is what it returned.

    It has a task of its own, so that no cancellation gets at it, not even a second one or one of
    another library: no reservation is left of which nobody knows the number.
    """

    def __init__(self, transaction: Callable[[], Any]) -> None:
        self.result: Any = None
        self._transaction = transaction
        self._error: Exception | None = None

    async def whole(self) -> Any:
        """Return its result, and raise what it raised. A cancellation passes when it has ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
        if self._error is not None:
            raise self._error
        return self.result

    async def _run(self) -> None:
        with anyio.CancelScope(shield=True):
            try:
                self.result = await anyio.to_thread.run_sync(self._transaction)
            except Exception as error:  # noqa: BLE001 - who waits raises it
                self._error = error

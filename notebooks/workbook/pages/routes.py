"""Two routes to a model, set up for a page: what each opening brings, and what the ledger says.

The routes, the ledger and its file are the real ones. The transports are replays, or the real SDK
on sockets of two servers on 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path

from agentlib.clock import MockClock
from agentlib.conversation import user
from agentlib.errors import AgentlibError
from agentlib.faultserver.replies import Reply
from agentlib.faultserver.server import LoopbackServer
from agentlib.fixtures import tools
from agentlib.model import StreamingModel
from agentlib.openai_transport import OpenAITransport
from agentlib.recordings.replay_transport import ReplayTransport, Scripted
from agentlib.retry import Opening, RetryPolicy, Transport
from agentlib.runtime.host import Host
from agentlib.runtime.ledger import Ledger
from agentlib.runtime.limits import Prices
from agentlib.runtime.outcomes import Outcome
from agentlib.runtime.routes import Readiness, Route, RoutedModel
from agentlib.stepper.run_recorder import RunRecorder
from agentlib.tables import Table, table
from agentlib.vocabulary import Event
from workbook.pages.project import Project
from workbook.pages.simulation import StageTools

TASK = "Please repair add()."
NAMES = ("gateway", "direct")
# Prices by which the most that one request can cost is 0.25: sums of it are exact.
PRICES = Prices(input=10.0, cached=1.0, output=50.0)
MOST_INPUT_TOKENS, MOST_OUTPUT_TOKENS = 15_000, 2_000
ONCE = RetryPolicy(openings=1)
# The server looks at no key; the SDK insists on one.
NO_KEY = "sk-rehearsal"
_COUNT = itertools.count(1)
_SPEND = """
import sys
from agentlib.runtime.ledger import BudgetExceeded, Ledger
ledger, made = Ledger(sys.argv[1], float(sys.argv[2])), 0
try:
    while True:
        number = ledger.reserve("ann", "gateway", "example-model", 0.125)
        ledger.settle(number, "released", 0.125, None)
        made += 1
except BudgetExceeded:
    print(made)
"""

_LOOK = """
import sys
from agentlib.runtime.ledger import Ledger
print(Ledger(sys.argv[1], 1.0).spent())
"""


def everyone(who: str, route: str) -> bool:
    """Return True: everyone may use every route."""
    del who, route
    return True


def new_ledger(limit: float = 1.0) -> Ledger:
    """Return a new ledger in a temporary file of its own."""
    return Ledger(Path(_folder().name) / f"ledger-{next(_COUNT)}.sqlite", limit)


class Switchboard:
    """A model behind a gateway, with a direct route beside it.

    `gateway` and `direct` are what their openings bring, in order; `prices` are those of the
    direct route, None where it cannot be metered. `said` is what came of each question.
    """

    def __init__(
        self,
        gateway: Sequence[Scripted],
        direct: Sequence[Scripted] = (),
        *,
        ledger: Ledger | None = None,
        who: str = "ann",
        access: Callable[[str, str], bool] = everyone,
        prices: Prices | None = PRICES,
        allow_unmetered: bool = False,
    ) -> None:
        self._clock = clock = MockClock()
        self.moments = RunRecorder(clock)
        self.ledger = ledger or new_ledger()
        self.transports = [ReplayTransport(script, clock) for script in (gateway, direct)]
        report = self.moments.report
        models = [_model(transport, clock, report) for transport in self.transports]
        self.model = RoutedModel(
            _routes(models, prices), self.ledger, who, access, allow_unmetered=allow_unmetered
        )

    async def ask(self) -> str:
        """Ask for one decision, and return in a line what came of it."""
        return await _ask(self.model)

    async def run(self) -> Outcome:
        """Run the task to its end with the tools of a new project; its moments are in `moments`."""
        project = Project()
        host = Host(tools=project.catalog, executor=StageTools(project, self._clock, {}))
        return await self.moments.run(self.model, host).start([user(TASK)])

    async def readiness(self) -> Readiness:
        """Return what the routes report of themselves."""
        return await self.model.readiness()

    @property
    def requests(self) -> dict[str, int]:
        """How many requests went out on each route."""
        counts = (len(transport.requests) for transport in self.transports)
        return dict(zip(NAMES, counts, strict=True))


def entries(ledger: Ledger) -> Table:
    """Return the rows of a ledger as a table, with what is spent or reserved in the last line."""
    rows: list[tuple[object, ...]] = [
        (row.who, row.route, row.reserved, _money(row.cost), row.outcome or "under way")
        for row in ledger.rows()
    ]
    total = ("", "all", "", _money(ledger.spent()), f"of {ledger.limit:g}")
    return table("who, route, reserved, cost, outcome", [*rows, total])


def plain_model(*openings: Scripted) -> StreamingModel:
    """Return a model behind no switchboard: nothing is asked, and nothing is counted."""
    clock = MockClock()
    return _model(ReplayTransport(openings, clock), clock)


async def over_sockets(gateway: Reply, direct: Reply, ledger: Ledger) -> str:
    """Ask once by the real SDK, with a server on 127.0.0.1 at the end of each route."""
    with LoopbackServer([gateway]) as first, LoopbackServer([direct]) as second:
        servers = (first, second)
        async with contextlib.AsyncExitStack() as stack:
            models = []
            for server in servers:
                transport = OpenAITransport(api_key=NO_KEY, base_url=server.base_url)
                stack.push_async_callback(transport.aclose)
                models.append(_model(transport, None))
            result = await _ask(RoutedModel(_routes(models, PRICES), ledger, "ann", everyone))
        seen = zip(NAMES, (len(server.requests) for server in servers), strict=True)
    requests = ", ".join(f"{name} {count}" for name, count in seen)
    return f"{result}\nrequests that the servers saw: {requests}"


def spend_in_processes(ledger: Ledger, processes: int) -> int:
    """Let processes spend from one ledger until nothing fits; return how often they did, in all.

    Each attempt is reserved at 0.125 and costs that.
    """
    command = [sys.executable, "-c", _SPEND, str(ledger.path), str(ledger.limit)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own script
        for _ in range(processes)
    ]
    return sum(int(process.communicate()[0]) for process in running)


def spent_elsewhere(ledger: Ledger) -> Decimal:
    """Return what a new process finds spent in the file of a ledger."""
    command = [sys.executable, "-c", _LOOK, str(ledger.path)]
    found = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own script
    return Decimal(found.stdout.decode())


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="agentlib-")


def _model(
    transport: Transport,
    clock: MockClock | None,
    report: Callable[[Event | Opening], None] | None = None,
) -> StreamingModel:
    return StreamingModel(transport, "example-model", policy=ONCE, clock=clock, report=report)


def _routes(models: Sequence[StreamingModel], direct: Prices | None) -> list[Route]:
    return [
        Route(name, model, model.model, prices, MOST_INPUT_TOKENS, MOST_OUTPUT_TOKENS)
        for name, model, prices in zip(NAMES, models, (PRICES, direct), strict=True)
    ]


async def _ask(model: RoutedModel) -> str:
    try:
        decision = await model.complete([user(TASK)], tools())
    except AgentlibError as error:
        return f"{type(error).__name__}: {error}"
    calls = ", ".join(call.name for call in decision.calls) or "an answer"
    return f"released {calls}, by the route {model.taken[-1]}"


def _money(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"{amount:.6f}"

"""Routes and their ledger: one access check, one metering, one spend limit."""

import subprocess
import sys
from decimal import Decimal

import pytest
from runs import ASKED, TOOLS, Script, says

from agentlib.conversation import Usage
from agentlib.errors import NotConfigured, OpenFailure
from agentlib.failures import (
    CloseFailed,
    GateRejected,
    IdleTimeout,
    LimitExceeded,
    ObserverFailed,
    ProtocolViolation,
    ProviderStopped,
    StreamCut,
)
from agentlib.faultserver.replies import Reply
from agentlib.faultserver.server import LoopbackServer
from agentlib.fixtures import capture, tools
from agentlib.model import StreamingModel
from agentlib.openai_transport import OpenAITransport
from agentlib.retry import RetryPolicy
from agentlib.runtime.ledger import BudgetExceeded, Ledger, LedgerFailed
from agentlib.runtime.limits import Prices
from agentlib.runtime.routes import (
    AccessDenied,
    Route,
    RoutedModel,
    UnmeteredRoute,
    is_unreachable,
)

pytestmark = pytest.mark.anyio
PRICES = Prices(input=1.0, cached=0.5, output=2.0)


def route(name, *steps, prices=PRICES):
    return Route(name, Script(*steps), f"{name}-model", prices, 1000, 1000)


def everyone(_who, _route):
    return True


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite", 1.0, wall=lambda: 0.0)


async def test_the_first_route_that_opens_is_taken_and_paid(ledger):
    model = RoutedModel([route("gateway", says("Hi")), route("direct")], ledger, "ann", everyone)
    assert (await model.complete(ASKED, TOOLS)).text == "Hi"
    (row,) = ledger.rows()
    assert (row.route, row.who, row.outcome) == ("gateway", "ann", "released")
    assert row.usage == Usage(100, 40, 10, 0)
    assert row.cost * 10**6 == 60 * 1 + 40 * Decimal("0.5") + 10 * 2
    assert model.taken == ["gateway"]


async def test_an_opening_that_fails_moves_on_and_is_in_the_ledger_too(ledger):
    routes = [route("gateway", OpenFailure("down", sent="not sent")), route("direct", says("Hi"))]
    model = RoutedModel(routes, ledger, "ann", everyone)
    await model.complete(ASKED, TOOLS)
    assert [row.route for row in ledger.rows()] == ["gateway", "direct"]
    assert ledger.rows()[0].cost == 0.0
    assert (await model.readiness()).state == "degraded"


# What a gateway says for itself. None of it is a reason to go around it.
REFUSALS = {
    "no key": OpenFailure("no", status=401),
    "budget": OpenFailure("no", status=402, code="budget_exceeded"),
    "policy": OpenFailure("no", status=403),
    "guardrail": OpenFailure("no", status=400, code="content_policy_violation"),
    "not found": OpenFailure("no", status=404),
    "too large": OpenFailure("no", status=413),
    "not processable": OpenFailure("no", status=422),
    "rate": OpenFailure("no", status=429, code="rate_limit_exceeded", retryable=True),
    "quota": OpenFailure("no", status=429, code="insufficient_quota"),
    "quota, as a failure": OpenFailure("no", status=503, code="insufficient_quota"),
    "legal": OpenFailure("no", status=451),
    "a failure of its own": OpenFailure("no", status=500, retryable=True),
    "overloaded": OpenFailure("no", status=529, retryable=True),
    "redirected": OpenFailure("no", status=302),
    "no event stream": OpenFailure("no", status=200),
    "perhaps taken": OpenFailure("no answer", retryable=True, sent="perhaps sent"),
    "perhaps taken, then down": OpenFailure("no", status=503, sent="perhaps sent"),
    "too late to know": OpenFailure("no stream was acquired within 600 s in all"),
    "never configured": NotConfigured("no key: set it"),
}


@pytest.mark.parametrize("failure", REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_of_the_gateway_is_the_answer(ledger, failure):
    direct = route("direct", says("Hi"))
    model = RoutedModel([route("gateway", failure), direct], ledger, "ann", everyone)
    with pytest.raises(OpenFailure) as caught:
        await model.complete(ASKED, TOOLS)

    assert caught.value is failure
    assert direct.model.asked == []
    assert [row.route for row in ledger.rows()] == ["gateway"]


@pytest.mark.parametrize("status", range(400, 600))
async def test_only_three_statuses_say_that_a_gateway_cannot_be_reached(status):
    assert is_unreachable(OpenFailure("no", status=status)) is (status in {502, 503, 504})


@pytest.mark.parametrize(
    "failure",
    [
        OpenFailure("no connection", retryable=True, sent="not sent"),
        OpenFailure("no stream was acquired within 600 s in all", sent="not sent"),
        OpenFailure("bad gateway", status=502, retryable=True),
        OpenFailure("unavailable", status=503, retryable=True),
        OpenFailure("timed out", status=504, retryable=True),
    ],
    ids=str,
)
async def test_a_gateway_that_cannot_be_reached_is_passed_by(ledger, failure):
    routes = [route("gateway", failure), route("direct", says("Hi"))]
    assert (await RoutedModel(routes, ledger, "ann", everyone).complete(ASKED, TOOLS)).text == "Hi"


@pytest.mark.parametrize("status", [None, 400, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("sent", ["not sent", "perhaps sent", "answered"])
async def test_an_opening_costs_nothing_only_where_that_is_known(ledger, status, sent):
    failure = OpenFailure("no", status=status, sent=sent)
    gateway = route("gateway", failure)
    with pytest.raises(OpenFailure):
        await RoutedModel([gateway], ledger, "ann", everyone).complete(ASKED, TOOLS)
    (row,) = ledger.rows()
    unknown = sent == "perhaps sent" or status in {502, 504}
    assert row.cost == (None if unknown else 0)
    assert ledger.spent() == (gateway.reservation() if unknown else 0)


async def test_who_is_denied_the_gateway_is_denied(ledger):
    direct = route("direct", says("Hi"))
    model = RoutedModel([route("gateway"), direct], ledger, "ann", lambda _, name: name == "direct")
    with pytest.raises(AccessDenied, match="may not use the route gateway"):
        await model.complete(ASKED, TOOLS)
    assert direct.model.asked == []


async def test_a_gateway_that_cannot_be_metered_is_not_passed_by(ledger):
    direct = route("direct", says("Hi"))
    model = RoutedModel([route("gateway", prices=None), direct], ledger, "ann", everyone)
    with pytest.raises(UnmeteredRoute):
        await model.complete(ASKED, TOOLS)
    assert direct.model.asked == []


async def test_the_direct_route_is_under_the_same_limit(ledger):
    ledger.limit = route("x").reservation() / 2
    cheap = route("gateway", OpenFailure("down", sent="not sent"), prices=Prices(0, 0, 0))
    direct = route("direct", says("Hi"))
    with pytest.raises(BudgetExceeded):
        await RoutedModel([cheap, direct], ledger, "ann", everyone).complete(ASKED, TOOLS)
    assert direct.model.asked == []


INTERRUPTED = [StreamCut, IdleTimeout, ProtocolViolation, LimitExceeded, ObserverFailed]
ENDED = [GateRejected, ProviderStopped, CloseFailed]


@pytest.mark.parametrize("kind", [*INTERRUPTED, *ENDED])
async def test_an_interrupted_stream_costs_what_was_reserved(ledger, kind):
    failure = kind("no", check="completed", usage=Usage(120, 0, 1, 0))
    with pytest.raises(kind):
        await RoutedModel([route("gateway", failure)], ledger, "ann", everyone).complete(
            ASKED, TOOLS
        )
    (row,) = ledger.rows()
    assert row.cost == (None if kind in INTERRUPTED else PRICES.cost(failure.usage))


@pytest.mark.parametrize(("most", "asked"), [(None, 1000), (10, 10), (1000, 1000), (5000, 1000)])
async def test_a_route_asks_for_no_more_than_it_has_reserved(ledger, most, asked):
    bounds = []

    class Bounded(Script):
        async def complete(self, history, tools, *, most_output_tokens=None):
            bounds.append(most_output_tokens)
            return await super().complete(history, tools)

    only = Route("gateway", Bounded(says("Hi")), "m", PRICES, 1000, 1000)
    model = RoutedModel([only], ledger, "ann", everyone)
    await model.complete(ASKED, TOOLS, most_output_tokens=most)
    assert bounds == [asked]


async def test_a_stream_that_was_acquired_never_falls_back(ledger):
    direct = route("direct", says("Hi"))
    routes = [route("gateway", StreamCut("cut", check="completed")), direct]
    with pytest.raises(StreamCut):
        await RoutedModel(routes, ledger, "ann", everyone).complete(ASKED, TOOLS)
    assert direct.model.asked == []
    (row,) = ledger.rows()
    assert row.cost is None
    assert ledger.spent() == routes[0].reservation()


async def test_a_fallback_passes_the_same_access_check(ledger):
    direct = route("direct", says("Hi"))
    routes = [route("gateway", OpenFailure("down", sent="not sent")), direct]
    model = RoutedModel(routes, ledger, "ann", lambda _, name: name == "gateway")
    with pytest.raises(AccessDenied):
        await model.complete(ASKED, TOOLS)
    assert direct.model.asked == []


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_route_without_prices_is_refused_by_default(ledger, allowed):
    routes = [
        route("gateway", OpenFailure("down", sent="not sent")),
        route("direct", says("Hi"), prices=None),
    ]
    model = RoutedModel(routes, ledger, "ann", everyone, allow_unmetered=allowed)
    if allowed:
        assert (await model.complete(ASKED, TOOLS)).text == "Hi"
    else:
        with pytest.raises(UnmeteredRoute):
            await model.complete(ASKED, TOOLS)


async def test_a_budget_that_is_used_up_opens_nothing(ledger):
    ledger.limit = route("x").reservation() / 2
    gateway = route("gateway", says("Hi"))
    with pytest.raises(BudgetExceeded):
        await RoutedModel([gateway], ledger, "ann", everyone).complete(ASKED, TOOLS)
    assert gateway.model.asked == []


async def test_spend_survives_a_restart(ledger):
    await RoutedModel([route("gateway", says("Hi"))], ledger, "ann", everyone).complete(
        ASKED, TOOLS
    )
    again = Ledger(ledger.path, 1.0)
    assert again.spent() == ledger.spent() > 0


async def test_a_broken_ledger_refuses_and_is_not_ready(tmp_path):
    folder = tmp_path / "ledger.sqlite"
    folder.mkdir()
    gateway = route("gateway", says("Hi"))
    model = RoutedModel([gateway], Ledger(folder, 1.0), "ann", everyone)
    with pytest.raises(LedgerFailed):
        await model.complete(ASKED, TOOLS)
    assert gateway.model.asked == []
    assert (await model.readiness()).state == "unready"


async def test_a_healthy_provider_with_a_broken_ledger_is_degraded(ledger):
    model = RoutedModel([route("gateway", says("Hi"))], ledger, "ann", everyone)
    assert (await model.readiness()).state == "ready"
    await model.complete(ASKED, TOOLS)
    assert (await model.readiness()).route == "gateway"
    ledger.path.write_bytes(b"this is no database, whatever its name says" * 40)
    readiness = await model.readiness()
    assert (readiness.state, readiness.route) == ("degraded", "gateway")
    assert "ledger" in readiness.accounting


SPENDER = """
import sys
from agentlib.runtime.ledger import BudgetExceeded, Ledger
ledger, made = Ledger(sys.argv[1], 1.0), 0
for _ in range(40):
    try:
        number = ledger.reserve("ann", "gateway", "m", 0.05)
    except BudgetExceeded:
        break
    ledger.settle(number, "released", 0.05, None)
    made += 1
print(made)
"""


def test_two_processes_that_share_a_budget_cannot_overspend_it(tmp_path):
    path = tmp_path / "ledger.sqlite"
    command = [sys.executable, "-c", SPENDER, str(path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    made = [int(process.communicate(timeout=60)[0]) for process in both]
    assert sum(made) == 20
    assert Ledger(path, 1.0).spent() <= 1


async def test_a_gateway_that_is_down_is_passed_by_with_the_real_sdk(ledger):
    once = RetryPolicy(openings=1)
    good = Reply.stream(capture("success_2_edit"))
    with LoopbackServer([Reply.error(503)]) as gateway, LoopbackServer([good]) as direct:
        transports = [
            OpenAITransport(api_key="sk-local", base_url=server.base_url)
            for server in (gateway, direct)
        ]
        routes = [
            Route(name, StreamingModel(transport, name, policy=once), name, PRICES)
            for name, transport in zip(("gateway", "direct"), transports, strict=True)
        ]
        model = RoutedModel(routes, ledger, "ann", everyone)
        decision = await model.complete(ASKED, tools())
        for transport in transports:
            await transport.aclose()
        assert [each.name for each in decision.calls] == ["edit"]
        assert (len(gateway.requests), len(direct.requests)) == (1, 1)
    assert [(row.route, row.cost is not None) for row in ledger.rows()] == [
        ("gateway", True),
        ("direct", True),
    ]

"""A route that is cancelled: whenever it happens, each attempt in the ledger has its outcome."""

import asyncio
import sqlite3
import threading

import anyio
import anyio.lowlevel
import pytest
from runs import ASKED, TOOLS, says

from agentlib.runtime.ledger import Ledger, LedgerFailed
from agentlib.runtime.limits import Prices
from agentlib.runtime.routes import Route, RoutedModel

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
PRICES = Prices(input=1.0, cached=0.5, output=2.0)
STEPS = ("reserve", "complete", "settle")


def held(ledger, name):
    """Hold a method of the ledger, in its thread, before and after its work, until `go` is set."""
    inside, go, real = threading.Event(), threading.Event(), getattr(ledger, name)

    def method(*args):
        inside.set()
        assert go.wait(5)
        return real(*args)

    setattr(ledger, name, method)
    return inside, go


class Model:
    """A model that may wait for ever, and notes whether it was asked."""

    def __init__(self, *, waits):
        self.asked = threading.Event()
        self.waits = waits

    async def complete(self, *_):
        self.asked.set()
        await anyio.lowlevel.checkpoint()
        if self.waits:
            await anyio.sleep_forever()
        return says("Hi")


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("where", STEPS)
@pytest.mark.parametrize("how", ["task", "scope"])
async def test_no_reservation_is_left_without_an_outcome(tmp_path, where, how, times):
    ledger = Ledger(tmp_path / "ledger.sqlite", 1.0, wall=lambda: 0.0)
    model = Model(waits=where == "complete")
    inside, go = (model.asked, threading.Event())
    if where != "complete":
        inside, go = held(ledger, where)
    route = Route("gateway", model, "m", PRICES, 1000, 1000)
    routed = RoutedModel([route], ledger, "ann", lambda *_: True)
    scope = anyio.CancelScope()

    async def work():
        with scope:
            await routed.complete(ASKED, TOOLS)

    task = asyncio.create_task(work())
    assert await asyncio.to_thread(inside.wait, 5)
    for _ in range(times):
        task.cancel() if how == "task" else scope.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
    go.set()
    await asyncio.wait([task], timeout=5)
    assert task.done()
    (row,) = ledger.rows()
    assert row.outcome is not None
    assert model.asked.is_set() is (where != "reserve")
    assert (row.cost == 0) is (where == "reserve")


async def test_whenever_it_is_cancelled_no_row_is_without_an_outcome(tmp_path):
    for tick in range(40):
        ledger = Ledger(tmp_path / f"{tick}.sqlite", 1.0, wall=lambda: 0.0)
        route = Route("gateway", Model(waits=False), "m", PRICES, 1000, 1000)
        routed = RoutedModel([route], ledger, "ann", lambda *_: True)
        task = asyncio.create_task(routed.complete(ASKED, TOOLS))
        for _ in range(tick):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert all(row.outcome is not None for row in ledger.rows())


async def test_what_a_transaction_raises_is_raised_as_it_is(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite", 1.0)

    def broken(*_):
        raise LedgerFailed("the ledger cannot be used") from sqlite3.OperationalError("full")

    ledger.reserve = broken
    route = Route("gateway", Model(waits=False), "m", PRICES)
    with pytest.raises(LedgerFailed, match="cannot be used"):
        await RoutedModel([route], ledger, "ann", lambda *_: True).complete(ASKED, TOOLS)

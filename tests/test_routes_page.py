"""What a page shows of routes: the rows of the ledger, and what came of each question."""

import pytest

from agentlib.conversation import user
from agentlib.faultserver.replies import Reply
from agentlib.fixtures import capture, tools
from agentlib.recordings.replay_transport import Playback, Refusal
from workbook.pages.routes import (
    Switchboard,
    entries,
    new_ledger,
    over_sockets,
    plain_model,
    spend_in_processes,
    spent_elsewhere,
)

pytestmark = pytest.mark.anyio


def good():
    return Playback(capture("success_2_edit").responses[0])


async def test_a_switchboard_says_what_came_of_a_question():
    board = Switchboard([Refusal(503)], [good()])
    assert await board.ask() == "released edit, by the route direct"
    assert board.requests == {"gateway": 1, "direct": 1}
    assert (await board.readiness()).state == "degraded"
    lines = repr(entries(board.ledger)).splitlines()
    assert "not opened: the server answered 503" in lines[2]
    assert lines[-1].split() == ["all", "0.006580", "of", "1"]


async def test_a_failure_is_said_by_its_class():
    board = Switchboard([good()], ledger=new_ledger(limit=0.2))
    assert (await board.ask()).startswith("BudgetExceeded: ")
    assert board.requests == {"gateway": 0, "direct": 0}


async def test_an_attempt_under_way_and_an_unknown_cost_are_told_apart():
    ledger = new_ledger()
    ledger.reserve("ann", "gateway", "example-model", 0.25)
    await Switchboard([Playback(capture("disconnect").responses[0])], ledger=ledger).ask()
    first, second = repr(entries(ledger)).splitlines()[2:4]
    assert "under way" in first
    assert "ended before" in second
    assert ledger.spent() == 0.5


async def test_each_new_ledger_is_empty():
    assert new_ledger().spent() == 0.0
    assert new_ledger().path != new_ledger().path


async def test_a_plain_model_knows_no_ledger():
    decision = await plain_model(good()).complete([user("Please repair add().")], tools())
    assert [call.name for call in decision.calls] == ["edit"]


async def test_both_servers_are_asked_in_turn():
    ledger, edit = new_ledger(), Reply.stream(capture("success_2_edit"))
    said = await over_sockets(Reply.error(503), edit, ledger)
    assert said.splitlines()[1] == "requests that the servers saw: gateway 1, direct 1"
    assert [row.route for row in ledger.rows()] == ["gateway", "direct"]


def test_processes_spend_what_there_is_and_another_one_sees_it():
    ledger = new_ledger(limit=0.5)
    assert spend_in_processes(ledger, 2) == 4
    assert spent_elsewhere(ledger) == ledger.spent() == 0.5

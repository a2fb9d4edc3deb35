"""All parts at once: a continuation over routes over the real SDK over sockets, inside the loop.

A fault is put in at every seam. Whatever it is, the run ends in one outcome, each call ran at most
once, the history is valid, and the ledger adds up.
"""

import itertools
from collections import Counter

import anyio
import pytest
from raw_http import leaving_nothing

from agentlib.conversation import check_history
from agentlib.faultserver.replies import HEAD, Reply
from agentlib.fixtures import capture
from agentlib.runtime.outcomes import Finished, HostFailed, Outcome, ProviderFailed
from workbook.pages.routes import new_ledger
from workbook.pages.seams import TURNS, FailingLedger, forgotten, repair

pytestmark = pytest.mark.anyio
CALLS = ("call_read_1", "call_edit_1", "call_test_1")
SECONDS = 30
REFUSED = {
    "dropped": Reply.refuse(),
    "closed without a word": Reply().close(at=HEAD),
    "401": Reply.error(401),
    "408": Reply.error(408),
    "429": Reply.error(429),
    "500": Reply.error(500),
    "503": Reply.error(503),
    "forgotten": forgotten(),
    "a page": Reply.html(),
    "nothing": Reply.blank(),
}
# After these the same opening, another route or the whole history leads on.
HEALED = {"408", "500", "503"}


@pytest.fixture(autouse=True)
def _nothing_is_left():
    with leaving_nothing():
        yield


async def sound(*args, **options):
    """Let it repair, and hold what must hold whatever happened."""
    with anyio.fail_after(SECONDS):
        done = await repair(*args, **options)
    assert isinstance(done.outcome, Outcome)
    assert set(Counter(done.ran).values()) <= {1}
    assert done.ran == tuple(call for call in CALLS if call in done.ran)
    for outcome in done.outcomes:
        check_history(outcome.history)
    rows = done.ledger.rows()
    parts = (row.reserved if row.cost is None else row.cost for row in rows)
    assert done.ledger.spent() == sum(parts) <= done.ledger.limit
    return done


async def test_without_a_fault_it_continues_each_response_and_finishes():
    done = await sound()
    assert isinstance(done.outcome, Finished)
    assert (done.ran, done.requests, done.fallbacks) == (CALLS, {"gateway": 4, "direct": 0}, 0)
    assert [row.outcome for row in done.ledger.rows()] == ["released"] * 4
    assert done.outcome.committed[-1].text == "add() adds now, and the test passes."


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("name", REFUSED)
async def test_an_opening_that_comes_to_nothing(name, number):
    done = await sound({number: REFUSED[name]})
    forgets = name == "forgotten" and number > 1
    if name in HEALED or forgets:
        assert isinstance(done.outcome, Finished)
        assert done.ran == CALLS
        assert done.fallbacks == forgets
    else:
        assert isinstance(done.outcome, ProviderFailed)
        assert done.ran == CALLS[: number - 1]
        assert sum(done.requests.values()) == number, "no other request was made for it"


@pytest.mark.parametrize("number", [1, 2, 3, 4])
async def test_a_request_that_was_perhaps_sent_goes_out_again_with_its_key(number):
    keys = map("key-{}".format, itertools.count(1))
    done = await sound({number: Reply.refuse()}, idempotency_key=keys.__next__)
    assert isinstance(done.outcome, Finished)
    assert (done.ran, done.requests["gateway"]) == (CALLS, 5)


async def test_one_that_was_not_answered_is_booked_as_unknown():
    done = await sound({2: Reply.refuse()})
    last = done.ledger.rows()[-1]
    assert last.cost is None
    assert done.outcome.account.unreported == 1


@pytest.mark.parametrize("turn", range(4))
async def test_a_gateway_that_goes_down_is_passed_by_and_the_history_goes_along(turn):
    down = dict.fromkeys(range(turn + 1, 99), Reply.error(503))
    done = await sound(down)
    assert isinstance(done.outcome, Finished)
    assert done.ran == CALLS
    assert done.requests["direct"] == 4 - turn


def ends(name):
    reply = Reply.stream(capture(name))
    return [(name, number) for number in range(len(reply.ends))]


@pytest.mark.parametrize(("name", "number"), [end for name in TURNS for end in ends(name)])
async def test_a_stream_that_is_cut_at_any_event(name, number):
    reply = Reply.stream(capture(name))
    turn = TURNS.index(name) + 1
    for cut in (Reply.reset, Reply.close):
        done = await sound({turn: cut(reply, at=0 if number == 0 else reply.ends[number - 1])})
        assert isinstance(done.outcome, ProviderFailed)
        assert done.ran == CALLS[: turn - 1]
        assert sum(done.requests.values()) == turn


@pytest.mark.parametrize("use", range(1, 9))
async def test_a_ledger_that_fails_at_any_use(use):
    plain = new_ledger()
    ledger = FailingLedger(plain.path, plain.limit)
    ledger.fails_at = use
    done = await sound(ledger=ledger)
    assert isinstance(done.outcome, HostFailed | ProviderFailed)
    # What was not accounted for is not acted on.
    assert done.ran == CALLS[: (use - 1) // 2]


@pytest.mark.parametrize("new_process", [False, True])
@pytest.mark.parametrize("approved", [False, True])
async def test_an_approval_in_the_middle(approved, new_process):
    done = await sound(approve=lambda _: approved, new_process=new_process)
    assert len(done.outcomes) == 2
    assert ("call_edit_1" in done.ran) is approved


@pytest.mark.parametrize("name", REFUSED)
async def test_a_fault_after_an_approval_in_another_process(name):
    done = await sound({3: REFUSED[name]}, new_process=True)
    assert done.ran[:2] == CALLS[:2]

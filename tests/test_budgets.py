"""Budgets: what is left bounds the next request, and what nobody reported is not nothing."""

import anyio
import pytest
from runs import ASKED, TOOLS, Script, call, host, malformed, says

from agentlib.assembly import Decision
from agentlib.clock import LoopClock
from agentlib.conversation import Usage
from agentlib.failures import IdleTimeout, StreamCut
from agentlib.fixtures import capture, tools
from agentlib.model import StreamingModel
from agentlib.providers.requests import MAX_OUTPUT_TOKENS
from agentlib.recordings.replay_transport import Playback, ReplayTransport
from agentlib.runtime.continuation import ContinuingModel
from agentlib.runtime.limits import Account, Prices, RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Cancelled, DeadlineExceeded, Exhausted

pytestmark = pytest.mark.anyio


class Bounded(Script):
    """A scripted model that notes what it may use."""

    def __init__(self, *steps):
        super().__init__(*steps)
        self.bounds = []

    async def complete(self, history, tools, *, most_output_tokens=None):
        self.bounds.append(most_output_tokens)
        return await super().complete(history, tools)


def used(output, number):
    return says("", call(f"c{number}"), usage=Usage(0, 0, output, 0))


PRICES = Prices(0, 0, 1)
LEFT = {
    "tokens": (RunLimits(output_tokens=100), [100, 70, 10]),
    "money": (RunLimits(output_tokens=None, spend="0.0001", prices=PRICES), [100, 70, 10]),
    "the less of both": (RunLimits(output_tokens=80, spend="0.0001", prices=PRICES), [80, 50]),
    "nothing": (RunLimits(output_tokens=None), [None, None, None]),
    "money without a price of output": (
        RunLimits(output_tokens=None, spend=1, prices=Prices(1, 1, 0)),
        [None, None, None],
    ),
}


@pytest.mark.parametrize(("limits", "bounds"), LEFT.values(), ids=LEFT)
async def test_what_is_left_bounds_the_next_request(limits, bounds):
    model = Bounded(used(30, 1), used(60, 2), says("Done.", usage=Usage(0, 0, 5, 0)))
    await Run(model, host(), limits).start(ASKED)
    assert model.bounds == bounds


@pytest.mark.parametrize("left", [1, 10, 2047, 2048, 2049, 20_000])
@pytest.mark.parametrize("continuing", [False, True])
async def test_the_request_itself_is_bounded(left, continuing):
    transport = ReplayTransport([Playback(capture("success_1_read").responses[0])], LoopClock())
    model = StreamingModel(transport, "m")
    model = ContinuingModel(model) if continuing else model
    await model.complete(ASKED, tools(), most_output_tokens=left)
    assert transport.requests[0]["max_output_tokens"] == min(left, MAX_OUTPUT_TOKENS)


UNREPORTED = {
    "no usage": None,
    "no counters": Usage(),
    "no output": Usage(100, 0, None, None),
}


@pytest.mark.parametrize("usage", UNREPORTED.values(), ids=UNREPORTED)
async def test_a_turn_that_nobody_reported_is_charged_an_estimate(usage):
    limits = RunLimits(output_tokens=5000, unreported_output_tokens=2000)
    turns = [says("", call(f"c{n}"), usage=usage) for n in range(9)]
    model = Bounded(*turns)
    outcome = await Run(model, host(), limits).start(ASKED)

    assert isinstance(outcome, Exhausted)
    assert outcome.budget == "output_tokens"
    assert model.bounds == [5000, 3000, 1000]
    account = outcome.account
    assert (account.unreported, account.estimated_output_tokens) == (3, 5000)


async def test_a_budget_of_one_token_allows_one_turn():
    turns = [says("", call(f"c{n}"), usage=None) for n in range(9)]
    outcome = await Run(Bounded(*turns), host(), RunLimits(output_tokens=1)).start(ASKED)
    assert (outcome.budget, outcome.account.turns) == ("output_tokens", 1)


async def never():
    await anyio.sleep_forever()


async def interrupted(limits, *, cancel=False, step=never):
    run = Run(Script(says("", call("c1"), usage=Usage(1, 0, 1, 0)), step), host(), limits)
    async with anyio.create_task_group() as tasks:

        async def cancel_it():
            await anyio.wait_all_tasks_blocked()
            run.cancel()

        if cancel:
            tasks.start_soon(cancel_it)
        return await run.start(ASKED)


async def test_a_turn_that_was_interrupted_is_unreported():
    limits = [RunLimits(deadline=0.05), RunLimits(turn_deadline=0.05), RunLimits()]
    found = [await interrupted(each, cancel=number == 2) for number, each in enumerate(limits)]
    assert [type(each) for each in found] == [DeadlineExceeded, DeadlineExceeded, Cancelled]
    for outcome in found:
        account = outcome.account
        assert (account.turns, account.unreported) == (2, 1)
        assert account.estimated_output_tokens == 2048
        assert account.usage.output_tokens == 1


@pytest.mark.parametrize("kind", [StreamCut, IdleTimeout])
async def test_what_an_interrupted_stream_had_reported_is_not_what_it_used(kind):
    failure = kind("cut", check="completed", usage=Usage(100, 0, 1, 0))
    outcome = await Run(Script(failure), host()).start(ASKED)
    assert (outcome.account.unreported, outcome.account.estimated_output_tokens) == (1, 2048)


@pytest.mark.parametrize("cut", [False, True])
async def test_a_response_that_ended_and_failed_has_reported(cut):
    outcome = await Run(Script(malformed("c1", cut=cut)), host()).start(ASKED)
    assert (outcome.account.unreported, outcome.account.usage.output_tokens) == (0, 10)


async def test_a_model_without_a_bound_is_asked_as_before():
    class Plain:
        async def complete(self, history, tools):
            assert (history, tools) == (tuple(ASKED), TOOLS)
            return Decision("r", "Done.", "", (), None)

    outcome = await Run(Plain(), host(), RunLimits(output_tokens=5)).start(ASKED)
    assert outcome.text == "Done."


def test_a_spend_limit_without_prices_does_not_fail_open():
    account = Account()
    account.charge(Usage(1, 0, 1, 0), RunLimits(spend=1))
    assert account.exhausted(RunLimits(spend=1)) == "spend"

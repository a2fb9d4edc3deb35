"""Draft and committed text, receipts, and claims."""

import re
from typing import get_args

import anyio
import anyio.lowlevel
import pytest
from runs import ASKED, Script, Tools, call, host, says

from agentlib.conversation import ToolCall, ToolResult, assistant
from agentlib.jsonvalues import FrozenObject
from agentlib.runtime.execution import Execution, Status
from agentlib.runtime.limits import Account, RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Finished
from agentlib.runtime.publication import Publication
from agentlib.runtime.receipts import ClaimRule, receipts_of, unsupported
from agentlib.runtime.state import RunState
from agentlib.vocabulary import ReasoningDelta, TextDelta

pytestmark = pytest.mark.anyio

TESTS_PASS = ClaimRule(
    claim="the tests pass",
    tool="test",
    succeeded=lambda _, output: output == "test done",
    wording=re.compile(r"tests? (all )?pass", re.IGNORECASE),
    voided_by=frozenset({"edit"}),
)


@pytest.mark.parametrize("policy", ["publish", "drop"])
async def test_narration_before_a_call_is_published_or_dropped_by_policy(policy):
    publication = Publication(narration=policy)
    model = Script(says("I will edit it.", call("c1")), says("Done."))
    await Run(model, host(), publication=publication).start(ASKED)
    kinds = [each.kind for each in publication.committed]
    assert kinds == (["narration", "answer"] if policy == "publish" else ["answer"])
    assert publication.dropped == ([] if policy == "publish" else ["I will edit it."])


async def test_a_claim_is_committed_only_on_a_receipt():
    sent = []
    publication = Publication(commit=sent.append)
    model = Script(says("The tests pass."), says("", call("c1", "test")), says("The tests pass."))
    outcome = await Run(model, host(rules=(TESTS_PASS,)), publication=publication).start(ASKED)
    assert isinstance(outcome, Finished)
    assert [each.text for each in sent] == ["The tests pass."]
    assert [repair.reason for repair in outcome.account.repairs] == ["unsupported_claim"]
    assert "nothing that was executed supports" in model.asked[1][-1].text


async def test_a_naive_stream_has_sent_the_claim_before_it_can_be_checked():
    draft, sent = [], []
    publication = Publication(draft=draft.append, commit=sent.append)
    for fragment in ("The tests ", "pass."):
        publication.observe(TextDelta("msg/0", fragment))
    assert "".join(draft) == "The tests pass."
    assert sent == []


async def test_reasoning_is_no_draft():
    draft = []
    Publication(draft=draft.append).observe(ReasoningDelta("r", "secret thoughts"))
    assert draft == []


def done(call_id, name, output, status="executed", beside=()):
    return Execution(call(call_id, name), status, output, beside=frozenset(beside))


@pytest.mark.parametrize(
    ("executions", "supported"),
    [
        ([], False),
        ([done("c1", "test", "test done")], True),
        ([done("c1", "test", "1 failed")], False),
        ([done("c1", "test", "test done", "unknown")], False),
        ([done("c1", "test", "test done", "denied")], False),
        ([done("c1", "edit", "test done")], False),
        ([done("c1", "test", "test done"), done("c2", "edit", "edit done")], False),
        ([done("c1", "edit", "edit done"), done("c2", "test", "test done")], True),
        ([done("c1", "test", "test done"), done("c2", "edit", "no", "not_executed")], True),
        ([done("c1", "test", "test done"), done("c2", "edit", "no", "denied")], True),
        ([done("c1", "test", "test done"), done("c2", "edit", "?", "unknown")], False),
        ([done("c1", "edit", "ok"), done("c2", "test", "test done", beside=["edit"])], False),
    ],
)
def test_a_receipt_is_a_successful_result_that_nothing_voided(executions, supported):
    held = receipts_of(executions, (TESTS_PASS,))
    assert (not unsupported("All tests pass.", held, (TESTS_PASS,))) is supported


def test_wording_asks_for_a_receipt_and_gives_none():
    assert unsupported("I called test, and tests pass", (), (TESTS_PASS,)) == {
        "the tests pass": "tests pass"
    }
    assert unsupported("I looked at it.", (), (TESTS_PASS,)) == {}


@pytest.mark.parametrize(("places", "repairs"), [(1, 0), (2, 1)])
async def test_tests_that_ran_beside_an_edit_say_nothing_of_it(places, repairs):
    steps = [says("", call("c1"), call("c2", "test")), says("The tests pass."), says("I am done.")]
    limits = RunLimits(parallel_tools=places)
    outcome = await Run(Script(*steps), host(rules=(TESTS_PASS,)), limits).start(ASKED)
    assert len(outcome.account.repairs) == repairs


def test_what_a_call_ran_beside_outlives_a_saved_run():
    execution = done("c2", "test", "test done", beside=["edit"])
    history = [*ASKED, assistant("", [execution.call]), execution.result()]
    state = RunState(history, account=Account(turns=1), executions=[execution])
    assert RunState.from_json(state.to_json()).executions == [execution]


# ------------------------------------------------------------------- committed before it is true


def kinds(publication):
    return [(each.kind, each.text) for each in publication.committed]


def passes(output):
    class Testing(Tools):
        async def execute(self, asked):
            return ToolResult(asked.call_id, output if asked.name == "test" else "done")

    return Testing()


class Refused(Tools):
    async def execute(self, _):
        raise RuntimeError("no")


# what the tools do, and what of "The tests pass." beside the call may be committed
BESIDE = {
    "they pass": (passes("test done"), True),
    "they fail": (passes("1 failed"), False),
    "they raise": (Refused(), False),
}


@pytest.mark.parametrize("how", ["text", "refusal"])
@pytest.mark.parametrize(("tools", "true"), BESIDE.values(), ids=BESIDE)
async def test_what_stands_beside_calls_is_committed_when_it_is_true(tools, true, how):
    order = []
    publication = Publication(commit=lambda text: order.append(text.kind))
    beside = {"text": "", "refusal": "", how: "The tests pass."}
    turn = says(beside["text"], call("c1", "test"), refusal=beside["refusal"])
    run = Run(
        Script(turn, says("Done.")),
        host(tools, rules=(TESTS_PASS,)),
        publication=publication,
        observe=lambda event: order.append(type(event).__name__),
    )
    await run.start(ASKED)

    kind = "narration" if how == "text" else "refusal"
    assert (kind, "The tests pass.") in kinds(publication) or not true
    assert ("The tests pass." in publication.dropped) is not true
    if true:
        assert order.index("Executed") < order.index(kind)


async def test_harmless_narration_goes_out_at_once_and_only_once():
    order = []
    publication = Publication(
        commit=lambda text: order.append(text.kind), harmless=lambda text: text == "I will look."
    )
    model = Script(
        says("I will look.", call("c1")), says("I have looked.", call("c2")), says("Done.")
    )
    run = Run(
        model,
        host(),
        publication=publication,
        observe=lambda event: order.append(type(event).__name__),
    )
    await run.start(ASKED)
    acted = [each for each in order if each in {"Executed", "narration", "answer"}]
    assert acted == ["narration", "Executed", "Executed", "narration", "answer"]
    assert publication.dropped == []


@pytest.mark.parametrize("early", [False, True])
async def test_a_run_that_waits_commits_its_narration_once(early):
    asks = {"approval": lambda _: "it acts"}
    model = Script(says("I edit.", call("c1")))
    policy = {"harmless": lambda _: early}
    waiting = await Run(model, host(**asks), publication=Publication(**policy)).start(ASKED)
    assert [each.text for each in waiting.committed] == (["I edit."] if early else [])

    publication = Publication(**policy)
    again = Run(Script(says("Done.")), host(**asks), publication=publication)
    digests = {each.digest: True for each in waiting.waiting}
    await again.resume(waiting.saved, digests)
    assert kinds(publication) == [("narration", "I edit."), ("answer", "Done.")]


async def test_what_was_held_when_a_run_was_cancelled_is_dropped():
    publication = Publication()
    tools = Tools()
    run = Run(Script(says("I wait.", call("c1", "wait"))), host(tools), publication=publication)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.start, ASKED)
        while not tools.begun:
            await anyio.lowlevel.checkpoint()
        run.cancel()
    assert publication.committed == []
    assert publication.dropped == ["I wait."]


async def test_a_refusal_that_claims_is_checked_as_an_answer_is():
    publication = Publication()
    model = Script(says(refusal="I stop; the tests pass."), says(refusal="I stop."))
    outcome = await Run(model, host(rules=(TESTS_PASS,)), publication=publication).start(ASKED)
    assert kinds(publication) == [("refusal", "I stop.")]
    assert outcome.refused
    assert [each.reason for each in outcome.account.repairs] == ["unsupported_claim"]


# the tool beside a card, whether the card claims that the tests pass, and whether it is shown
CARDS = {
    "alone": (None, "", True),
    "alone, with a claim": (None, "tests pass", False),
    "beside what was executed": (passes("test done"), "", True),
    "with a claim that holds": (passes("test done"), "tests pass", True),
    "with a claim that does not": (passes("1 failed"), "tests pass", False),
    "beside what failed": (Refused(), "", False),
}


@pytest.mark.parametrize(("tools", "claim", "shown"), CARDS.values(), ids=CARDS)
async def test_a_card_waits_for_the_calls_beside_it(tools, claim, shown):
    order = []
    card = ToolCall("c1", "card", FrozenObject({"text": claim}))
    calls = [card] if tools is None else [card, call("c2", "test")]
    screen = host(
        tools,
        rules=(TESTS_PASS,),
        presentation=frozenset({"card"}),
        show=lambda _: order.append("shown"),
    )
    outcome = await Run(
        Script(says("", *calls), says("Done.")),
        screen,
        observe=lambda event: order.append(type(event).__name__),
    ).start(ASKED)

    assert ("shown" in order) is shown
    status = outcome.executions[0].status
    assert status == ("shown" if shown else "not_executed")
    if shown and tools is not None:
        assert order.index("Executed") < order.index("shown")
    if not shown:
        assert outcome.executions[0].output.startswith("not shown: ")


async def test_a_card_beside_a_denied_call_is_not_shown():
    screen = host(
        presentation=frozenset({"card"}), approval=lambda c: "?" if c.name == "edit" else None
    )
    first = await Run(Script(says("", call("c1"), call("c2", "card"))), screen).start(ASKED)
    digests = {each.digest: False for each in first.waiting}
    outcome = await Run(Script(says("Done.")), screen).resume(first.saved, digests)
    assert [each.status for each in outcome.executions] == ["denied", "not_executed"]


# ------------------------------------------------------------------------------- what is allowed

STATES = {
    "executed": ("executed", "the tests pass"),
    "failed": ("unknown", "test failed, and whether it acted is unknown"),
    "timed_out": ("unknown", "test was stopped, and whether it acted is unknown"),
    "unknown": ("unknown", "test was begun, and whether it acted is unknown"),
    "shown": ("proposed", "test was shown, and nothing was done"),
    "denied": ("refused", "test was refused, and not executed"),
    "not_executed": ("proposed", "test was proposed, and not executed"),
}


@pytest.mark.parametrize("status", get_args(Status))
def test_a_receipt_says_what_may_be_claimed(status):
    (receipt,) = receipts_of([done("c1", "test", "test done", status)], (TESTS_PASS,))
    assert (receipt.state, receipt.allowed_claim) == STATES[status]
    assert receipt.succeeded is bool(receipt.claims) is bool(receipt.recorded)
    assert receipt.succeeded is (status == "executed")


@pytest.mark.parametrize("status", get_args(Status))
def test_a_claim_that_its_call_does_not_back_is_an_unbacked_fact(status):
    held = receipts_of([done("c1", "test", "1 failed", status)], (TESTS_PASS,))
    problem = host(rules=(TESTS_PASS,)).problem("All tests pass.", held)
    assert problem.reason == "unbacked_fact"
    assert held[0].allowed_claim in problem.detail


def test_a_claim_without_any_call_is_unsupported():
    held = receipts_of([done("c1", "edit", "test done")], (TESTS_PASS,))
    assert host(rules=(TESTS_PASS,)).problem("Tests pass.", held).reason == "unsupported_claim"

"""Draft and committed text, receipts, and claims."""

import re

import pytest
from runs import ASKED, Script, call, host, says

from agentlib.runtime.execution import Execution
from agentlib.runtime.limits import RunLimits
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
    state = RunState(list(ASKED), executions=[execution])
    assert RunState.from_json(state.to_json()).executions == [execution]

"""A run: its outcomes, its budgets, its repairs, its approvals."""

import dataclasses

import pytest
from runs import ASKED, TOOLS, USAGE, Script, Tools, approve, call, host, malformed, says

from agentlib.clock import MockClock
from agentlib.conversation import Message, ToolResult, Usage, check_history
from agentlib.errors import OpenFailure
from agentlib.failures import StreamCut
from agentlib.runtime.events import BudgetWarning, Repaired, TurnStarted
from agentlib.runtime.host import Problem
from agentlib.runtime.limits import Prices, RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import (
    DeadlineExceeded,
    Exhausted,
    Finished,
    ProviderFailed,
    WaitingForApproval,
)
from agentlib.runtime.state import RunState, StateError

pytestmark = pytest.mark.anyio


async def run(*steps, tools=None, limits=None, observe=lambda _: None, **what):
    model = Script(*steps)
    outcome = await Run(model, host(tools, **what), limits, observe=observe).start(ASKED)
    check_history(outcome.history)
    return model, outcome


async def test_an_answer_finishes_a_run_and_solves_nothing_by_itself():
    _, outcome = await run(says("Done."))
    assert isinstance(outcome, Finished)
    assert (outcome.text, outcome.verified, outcome.solved) == ("Done.", False, False)


@pytest.mark.parametrize("passes", [True, False])
async def test_only_a_verifier_says_that_a_task_is_solved(passes):
    _, outcome = await run(says("Done."), verify=lambda *_: passes)
    assert outcome.solved is passes


async def test_a_refusal_is_an_end_and_never_a_solution():
    _, outcome = await run(says(refusal="I cannot."), verify=lambda *_: True)
    assert outcome.refused
    assert not outcome.solved
    assert outcome.committed[-1].kind == "refusal"


async def test_calls_run_and_their_results_follow_the_message_in_order():
    tools = Tools()
    _, outcome = await run(says("", call("c1"), call("c2", "test")), says("Done."), tools=tools)
    assert sorted(tools.ran) == ["c1", "c2"]
    _, message, first, second, answer = outcome.history
    assert isinstance(message, Message)
    assert [first, second] == [ToolResult("c1", "edit done"), ToolResult("c2", "test done")]
    assert answer.text == "Done."


async def test_one_failing_tool_does_not_lose_the_results_of_the_others():
    _, outcome = await run(says("", call("c1", "broken"), call("c2")), says("Done."))
    assert [each.status for each in outcome.executions] == ["failed", "executed"]
    assert "RuntimeError: out of paper" in outcome.executions[0].output


async def test_a_presentation_tool_is_shown_and_never_executed():
    tools, shown = Tools(), []
    what = {"presentation": frozenset({"card"}), "show": shown.append}
    _, outcome = await run(
        says("", call("c1", "card"), call("c2")), says("ok"), tools=tools, **what
    )
    assert [each.call_id for each in shown] == ["c1"]
    assert tools.ran == ["c2"]
    assert outcome.executions[0].status == "shown"
    assert "nothing was done" in outcome.executions[0].output


@pytest.mark.parametrize("sent", ["not sent", "perhaps sent", "answered"])
async def test_a_request_that_was_perhaps_sent_is_charged_as_unknown(sent):
    failure = OpenFailure("no", sent=sent)
    outcome = await Run(Script(failure), host()).start(ASKED)
    assert outcome.account.unreported == (sent == "perhaps sent")
    assert (outcome.account.estimated_output_tokens > 0) is (sent == "perhaps sent")


@pytest.mark.parametrize("failure", [OpenFailure("no"), StreamCut("cut", check="completed")])
async def test_a_turn_without_a_decision_ends_the_run(failure):
    tools = Tools()
    _, outcome = await run(failure, tools=tools)
    assert isinstance(outcome, ProviderFailed)
    assert outcome.failure is failure
    assert tools.begun == []


# ------------------------------------------------------------------------------- budgets


async def test_turns_are_bounded():
    steps = [says("", call(f"c{n}")) for n in range(9)]
    seen = []
    model, outcome = await run(*steps, limits=RunLimits(turns=3), observe=seen.append)
    assert isinstance(outcome, Exhausted)
    assert outcome.budget == "turns"
    assert len(model.asked) == 3
    assert outcome.committed[-1].kind == "fallback"
    assert outcome.committed[-1].text == outcome.text
    assert [event for event in seen if isinstance(event, BudgetWarning)] == [BudgetWarning("turns")]
    assert not outcome.solved


@pytest.mark.parametrize(
    ("limits", "budget"),
    [
        (RunLimits(output_tokens=20), "output_tokens"),
        (RunLimits(spend=0.0002, prices=Prices(1.0, 1.0, 1.0)), "spend"),
    ],
)
async def test_tokens_and_spend_are_bounded_over_the_run(limits, budget):
    steps = [says("", call(f"c{n}")) for n in range(9)]
    model, outcome = await run(*steps, limits=limits)
    assert outcome.budget == budget
    assert len(model.asked) == 2


async def test_what_cannot_be_priced_is_not_taken_for_free():
    steps = [says("", call("c1"), usage=None), says("Done.")]
    _, outcome = await run(*steps, limits=RunLimits(spend=1.0, prices=Prices(1.0, 1.0, 1.0)))
    assert isinstance(outcome, Exhausted)
    assert outcome.budget == "spend"
    assert outcome.account.unreported == 1


async def test_usage_adds_up_failed_turns_included():
    _, outcome = await run(malformed("c1"), says("Done."), on_malformed="repair")
    assert outcome.account.usage == Usage(200, 80, 20, 0)
    assert outcome.account.unreported == 0


# ------------------------------------------------------------------------------- repairs


async def test_malformed_arguments_stop_the_run_by_default():
    _, outcome = await run(malformed("c1"))
    assert isinstance(outcome, ProviderFailed)


@pytest.mark.parametrize("cut", [False, True])
async def test_malformed_arguments_can_be_repaired_and_nothing_of_the_batch_runs(cut):
    tools, seen = Tools(), []
    model, outcome = await run(
        malformed("c1", "c2", cut=cut),
        says("Done."),
        tools=tools,
        on_malformed="repair",
        observe=seen.append,
    )
    assert tools.begun == []
    assert isinstance(outcome, Finished)
    message, first, second = model.asked[1][1:]
    assert [each.arguments for each in message.rejected] == ['{"path": "a', '{"path": "a']
    assert [first.call_id, second.call_id] == ["c1", "c2"]
    assert "not executed" in first.output
    (repair,) = [event.repair for event in seen if isinstance(event, Repaired)]
    assert (repair.reason, repair.left) == ("cut_by_length" if cut else "malformed_arguments", 1)


async def test_a_text_cut_by_its_limit_is_asked_for_again():
    model, outcome = await run(malformed(cut=True), says("Done."), on_malformed="repair")
    assert isinstance(outcome, Finished)
    assert "output limit" in model.asked[1][-1].text


async def test_all_classes_of_failure_draw_on_one_budget():
    def check(text, _held):
        return Problem("wrong_format", "Answer in one word.") if " " in text else None

    model, outcome = await run(
        malformed("c1"),
        says(""),
        says("two words"),
        says("Done."),
        on_malformed="repair",
        checks=(check,),
        limits=RunLimits(repairs=2),
    )
    assert isinstance(outcome, Exhausted)
    assert outcome.budget == "repairs"
    assert len(model.asked) == 3
    reasons = [repair.reason for repair in outcome.account.repairs]
    assert reasons == ["malformed_arguments", "empty_answer"]
    assert [repair.left for repair in outcome.account.repairs] == [1, 0]
    assert "two words" not in [each.text for each in outcome.committed]


async def test_an_answer_that_fails_its_check_is_never_committed():
    def check(text, _held):
        return Problem("unbacked_fact", "Say where 42 is from.") if "42" in text else None

    model, outcome = await run(says("It is 42."), says("I do not know."), checks=(check,))
    assert [each.text for each in outcome.committed] == ["I do not know."]
    assert model.asked[1][-1].text == "Say where 42 is from."


# ----------------------------------------------------------------------------- approvals


def needs(*call_ids):
    return lambda each: "it changes a file" if each.call_id in call_ids else None


async def waiting(tools):
    _, outcome = await run(
        says("I will.", call("c1"), call("c2", "test")), tools=tools, approval=needs("c1")
    )
    return outcome


async def test_nothing_of_a_batch_runs_before_its_approval():
    tools = Tools()
    outcome = await waiting(tools)
    assert isinstance(outcome, WaitingForApproval)
    ((waiting_call, reason, digest),) = outcome.waiting
    assert (waiting_call.call_id, reason) == ("c1", "it changes a file")
    assert len(digest) == 64
    assert tools.begun == []
    assert outcome.history == tuple(ASKED)


@pytest.mark.parametrize("answer", [True, False, "not this file"])
async def test_an_approved_call_runs_and_a_denied_one_does_not(answer):
    first = await waiting(Tools())
    tools, model = Tools(), Script(says("Done."))
    again = Run(model, host(tools, approval=needs("c1")))
    outcome = await again.resume(first.saved, approve(first, answer))
    assert isinstance(outcome, Finished)
    assert sorted(tools.ran) == (["c1", "c2"] if answer is True else ["c2"])
    result = model.asked[0][-2]
    assert result.call_id == "c1"
    if answer is not True:
        assert "denied" in result.output
    if isinstance(answer, str):
        assert answer in result.output
    assert outcome.account.turns == 2


@pytest.mark.parametrize("answers", [{}, {"c1": True, "c2": True}, {"c9": True}])
async def test_every_waiting_call_needs_its_own_answer(answers):
    saved = (await waiting(Tools())).saved
    tools = Tools()
    with pytest.raises(StateError, match="expected an answer for each"):
        await Run(Script(), host(tools, approval=needs("c1"))).resume(saved, answers)
    assert tools.begun == []


async def test_a_saved_call_is_judged_again_before_it_runs():
    saved = (await waiting(Tools())).saved
    tools = Tools()
    changed = saved.replace('"path": "a.py"', '"path": 1')
    assert changed != saved
    with pytest.raises(StateError, match="arguments of 'edit'"):
        await Run(Script(), host(tools, approval=needs("c1"))).resume(changed, {"c1": True})
    renamed = saved.replace('"edit"', '"rm"')
    with pytest.raises(StateError, match="not exposed"):
        await Run(Script(), host(tools, approval=needs("c1"))).resume(renamed, {"c1": True})
    assert tools.begun == []


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 2}', "null", '{"version": 1}'])
async def test_what_is_no_saved_run_is_refused_in_words(text):
    with pytest.raises(StateError):
        await Run(Script(), host()).resume(text, {})


async def test_a_state_survives_json():
    outcome = await waiting(Tools())
    state = RunState.from_json(outcome.saved)
    assert RunState.from_json(state.to_json()) == state


# ------------------------------------------------------------------------------ deadlines


class Sleeper:
    """A model that takes its time on the clock of the run."""

    def __init__(self, clock, seconds, *steps):
        self.clock, self.seconds, self.script = clock, seconds, Script(*steps)

    async def complete(self, history, tools):
        await self.clock.sleep(self.seconds)
        return await self.script.complete(history, tools)


@pytest.mark.parametrize(
    ("limits", "which"),
    [
        (RunLimits(deadline=5.0, turn_deadline=None), "deadline"),
        (RunLimits(deadline=None, turn_deadline=2.0), "turn_deadline"),
        (RunLimits(deadline=3.0, turn_deadline=3.5), "deadline"),
    ],
)
async def test_deadlines_compose_and_name_the_one_that_passed(limits, which):
    clock = MockClock()
    steps = [says("", call(f"c{n}")) for n in range(9)]
    outcome = await Run(Sleeper(clock, 3.0, *steps), host(), limits, clock=clock).start(ASKED)
    assert isinstance(outcome, DeadlineExceeded)
    assert outcome.deadline == which
    check_history(outcome.history)


async def test_time_that_passed_before_an_approval_counts():
    clock = MockClock()
    what = {"approval": needs("c1")}
    limits = RunLimits(deadline=5.0)
    first = Run(Sleeper(clock, 3.0, says("", call("c1"))), host(**what), limits, clock=clock)
    asked = await first.start(ASKED)
    again = Run(Sleeper(clock, 3.0, says("Done.")), host(**what), limits, clock=clock)
    assert isinstance(await again.resume(asked.saved, approve(asked)), DeadlineExceeded)


async def test_what_a_run_reports_cannot_be_changed():
    _, outcome = await run(says("Done."))
    with pytest.raises(dataclasses.FrozenInstanceError):
        outcome.text = "Solved."
    seen = []
    await run(says("", call("c1")), says("Done."), observe=seen.append)
    assert [event.turn for event in seen if isinstance(event, TurnStarted)] == [1, 2]


def test_the_usage_of_the_fakes_is_what_the_tests_add_up():
    assert (USAGE.input_tokens, USAGE.output_tokens) == (100, 10)
    assert TOOLS.exposes("edit")

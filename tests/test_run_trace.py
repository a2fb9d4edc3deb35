"""The trace of a run: each moment's facts, of runs that end in every way, by hand and by rule."""

import anyio
import pytest

from agentlib.conversation import ToolResult
from agentlib.recordings.replay_transport import Refusal
from agentlib.runtime.host import Problem
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Outcome
from agentlib.stepper.run_builder import build_run_trace
from agentlib.stepper.run_frame import RunFrame
from agentlib.stepper.run_trace import DELTAS, KINDS, LANES, entry_words, placed
from workbook import capture
from workbook.pages.simulation import TASK, Stage, paced
from workbook.pages.small_loop import said, wants

READ, LIST = wants("call_1", "read", path="calculator.py"), wants("call_2", "list")
EDIT = wants("call_3", "edit", path="calculator.py", old="return a - b", new="return a + b")
TEST = wants("call_4", "test")
LOOKS, EDITS = said("I will look at the file.", READ, LIST), said("", EDIT)
TESTS, ANSWER = said("", TEST), said("add() adds now.")


def changes_files(call):
    return "it changes a file" if call.name == "edit" else None


def one_word(answer, _):
    return Problem("wrong_format", "Answer in one word.") if " " in answer else None


def full_disk(*_):
    raise OSError("No space left on device")


async def started(*script, **how):
    return await Stage(*script, **how).start()


async def resumed(answer, times=1, after=0.0):
    stage = await started(EDITS, ANSWER, approval=changes_files)
    saved = stage.outcome.saved
    answers = {each.digest: answer for each in stage.outcome.waiting}
    for _ in range(times):
        await stage.resume(saved, answers, after=after)
    return stage


async def elsewhere():
    first = await started(EDITS, approval=changes_files)
    answers = {each.digest: "no" for each in first.outcome.waiting}
    return await Stage(ANSWER, approval=changes_files).resume(first.outcome.saved, answers)


MANY = [wants(f"call_{n}", "list") for n in range(6)]
RUNS = {
    "answers": lambda: started(ANSWER),
    "works": lambda: started(Refusal(500), LOOKS, EDITS, TESTS, ANSWER, seconds={"read": 2.0}),
    "one place": lambda: started(LOOKS, ANSWER, limits=RunLimits(parallel_tools=1)),
    "many calls": lambda: started(said("", *MANY), ANSWER),
    "stops": lambda: started(capture("malformed"), ANSWER),
    "repairs": lambda: started(capture("malformed"), EDITS, ANSWER, on_malformed="repair"),
    "is cut": lambda: started(capture("disconnect"), ANSWER),
    "exhausted": lambda: started(said(""), said(""), ANSWER, limits=RunLimits(repairs=1)),
    "wrong form": lambda: started(ANSWER, said("Done."), checks=(one_word,)),
    "slow tool": lambda: started(
        TESTS, ANSWER, seconds={"test": 9.0}, limits=RunLimits(tool_deadline=4.0)
    ),
    "deadline": lambda: started(LOOKS, seconds={"read": 30.0}, limits=RunLimits(deadline=8.0)),
    "slow turn": lambda: started(paced(ANSWER, rest=60.0), limits=RunLimits(turn_deadline=5.0)),
    "waits": lambda: started(EDITS, approval=changes_files),
    "approved": lambda: resumed(True, after=3600.0),
    "denied": lambda: resumed("not this file"),
    "resumed twice": lambda: resumed(True, times=2),
    "elsewhere": elsewhere,
    "stopped in the stream": lambda: Stage(LOOKS).stop(at=1.0),
    "stopped in a tool": lambda: Stage(LOOKS, seconds={"read": 9.0}).stop(at=4.0),
    "host fails": lambda: started(EDITS, ANSWER, verify=full_disk),
    "claims": lambda: started(said("The tests pass.", TEST), ANSWER),
}


def recorded(name):
    return anyio.run(RUNS[name])


@pytest.fixture(params=RUNS)
def stage(request):
    return recorded(request.param)


def test_the_last_moment_agrees_with_the_outcome(stage):
    trace = build_run_trace(stage.moments)
    outcome, last = stage.outcome, RunFrame(trace, trace.last)
    assert isinstance(outcome, Outcome)
    assert [(e.kind, e.text) for e in last.history] == [entry_words(e) for e in outcome.history]
    shown = [(p.kind, p.text) for p in last.published if p.kind != "kept back"]
    assert shown == [(text.kind, text.text) for text in outcome.committed]
    states = {call.call_id: call.state for call in last.calls}
    for execution in outcome.executions:
        assert states[execution.call.call_id] == execution.status
    used = trace.used[-1]
    account = outcome.account
    assert (used.turns, used.repairs, used.tokens, used.cost) == (
        account.turns,
        len(account.repairs),
        account.output_tokens,
        account.cost,
    )


def test_each_moment_is_of_a_known_kind_and_every_bar_in_a_lane(stage):
    trace = build_run_trace(stage.moments)
    assert {moment.kind for moment in trace.moments} <= set(KINDS)
    assert [moment.at for moment in trace.moments] == sorted(m.at for m in trace.moments)
    assert list(trace.places) == sorted(trace.places)
    assert len(set(trace.places)) == trace.last + 1
    for bar in trace.bars:
        assert bar.lane in LANES
        assert 1 <= bar.start <= bar.end <= trace.last


def test_a_moment_shows_nothing_of_what_comes_after_it(stage):
    notes = list(stage.moments.notes)
    whole = build_run_trace(stage.moments)
    for index in range(1, whole.last + 1):
        # The trace of the notes up to here has, at its end, what the whole has at this moment.
        stage.moments.notes = notes[:index]
        part = build_run_trace(stage.moments)
        stage.moments.notes = notes
        here, there = RunFrame(part, index), RunFrame(whole, index)
        assert (here.label, here.change, here.gate) == (there.label, there.change, there.gate)
        assert [(e.kind, e.text) for e in here.history] == [(e.kind, e.text) for e in there.history]
        assert here.calls == there.calls
        assert here.pending == there.pending
        assert here.left == there.left


def test_a_history_that_is_shown_has_a_result_for_each_call(stage):
    trace = build_run_trace(stage.moments)
    for index in range(trace.last + 1):
        texts = [span.text for span in RunFrame(trace, index).history]
        called = sum(text.count(" as call_") for text in texts)
        kinds = [span.kind for span in RunFrame(trace, index).history]
        assert called <= kinds.count("result") or "calls" not in "".join(texts)


def test_changes_go_there_and_back(stage):
    trace = build_run_trace(stage.moments)
    index, forward = 0, []
    while index < trace.last:
        index = trace.next_change(index)
        forward.append(index)
    back = []
    while index:
        back.append(index)
        index = trace.previous_change(index)
    assert set(back) <= {*forward, trace.last}
    skipped = set(range(1, trace.last + 1)) - set(forward)
    assert all(trace.moments[k - 1].kind in DELTAS for k in skipped)


@pytest.mark.parametrize("name", RUNS)
def test_two_recordings_of_one_run_say_the_same(name):
    texts = []
    for _ in range(2):
        stage = recorded(name)
        trace = build_run_trace(stage.moments)
        texts.append([RunFrame(trace, index).text for index in range(trace.last + 1)])
        assert all(stage.outcome.run_id not in text for text in texts[-1])
    assert texts[0] == texts[1]


def test_a_frame_in_html_has_no_markup_of_a_run():
    hostile = said("<img src=x onerror=alert(1)>", wants("<b>", "list"))
    stage = anyio.run(lambda: started(hostile, ANSWER))
    trace = build_run_trace(stage.moments, title="<script>")
    for index in range(trace.last + 1):
        html = RunFrame(trace, index)._repr_html_()
        assert not {"<img", "<b>", "<script>"} & {part for part in html.split() if "<" in part}
        assert "<img" not in html
        assert "<script" not in html


async def plainly(stage):
    run = Run(stage.model, stage.host, stage.limits, clock=stage.clock)
    from agentlib.conversation import user

    return await run.start([user(TASK)])


def test_a_recorder_changes_nothing_of_a_run():
    how = {"seconds": {"read": 2.0}}
    recorded_run = anyio.run(lambda: started(LOOKS, EDITS, ANSWER, **how)).outcome
    plain = anyio.run(plainly, Stage(LOOKS, EDITS, ANSWER, **how))
    assert (recorded_run.history, recorded_run.executions) == (plain.history, plain.executions)


def test_a_wait_for_a_person_takes_little_of_the_axis():
    places = placed([0.0, 1.0, 3601.0, 3602.0], frozenset({3}))
    assert places[3] - places[2] < 0.4
    assert places[-1] == pytest.approx(1.0)


def test_the_moments_of_a_run_with_an_approval():
    trace = build_run_trace(recorded("approved").moments)
    labels = [moment.label for moment in trace.moments]
    wanted = ["approval asked", "saved", "resumed", "edit begins", "edit ends", "results appended"]
    found = [label for label in labels if label in wanted]
    assert found == wanted
    asked = RunFrame(trace, labels.index("saved") + 1)
    assert asked.gate.state == "waiting"
    assert asked.calls[0].state == "waits for approval"
    assert asked.counts == (0, 1, 0)


def test_what_was_interrupted_is_unknown_at_the_end():
    trace = build_run_trace(recorded("stopped in a tool").moments)
    last = RunFrame(trace, trace.last)
    assert {call.name: call.state for call in last.calls} == {"read": "unknown", "list": "executed"}
    assert isinstance(recorded("stopped in a tool").outcome.history[-1], ToolResult)

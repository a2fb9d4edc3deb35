"""The run stepper as an object: its moments, its text form, its page, and its what-if."""

import re
import threading

import anyio
import pytest
import traitlets

from agentlib.conversation import check_history
from agentlib.stepper.html_export import CannotSave
from agentlib.stepper.run_builder import build_run_trace
from agentlib.stepper.run_frame import RunFrame
from agentlib.stepper.run_payload import run_to_wire
from agentlib.stepper.run_recorder import RunRecorder
from agentlib.stepper.run_replay import CHANGES, run_again, run_apart
from agentlib.stepper.run_whatif import targets
from agentlib.stepper.run_widget import RunStepper
from tests.test_run_trace import ANSWER, EDITS, LOOKS, RUNS, recorded, started

# What these end by is no part of the recording: a stop from outside says who stopped it, and a
# run that goes on from a text was begun elsewhere.
NOT_PLAYED = {"stopped in the stream", "stopped in a tool"}


def texts(trace):
    return [RunFrame(trace, index).text for index in range(trace.last + 1)]


def facts(trace, index):
    frame = RunFrame(trace, index)
    history = [(entry.kind, entry.text) for entry in frame.history]
    published = [(text.kind, text.text) for text in frame.published]
    moment = frame.label, frame.change, frame.at, frame.turn
    return *moment, frame.gate, frame.calls, frame.pending, frame.left, history, published


@pytest.fixture
def approved():
    return RunStepper(recorded("approved").moments)


@pytest.mark.parametrize("name", sorted(set(RUNS) - NOT_PLAYED))
def test_a_recording_that_is_played_again_is_the_same_run(name):
    recorder = recorded(name).moments
    again = anyio.run(run_again, recorder)
    assert texts(build_run_trace(again)) == texts(build_run_trace(recorder))
    assert run_to_wire(build_run_trace(again)) == run_to_wire(build_run_trace(recorder))


@pytest.mark.parametrize("name", sorted(NOT_PLAYED))
def test_a_run_that_was_stopped_ends_the_same_way_when_it_is_played_again(name):
    recorder = recorded(name).moments
    again = anyio.run(run_again, recorder)
    old, new = (build_run_trace(each).outcomes[-1] for each in (recorder, again))
    assert type(old) is type(new)
    assert (old.history, old.executions) == (new.history, new.executions)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", RUNS)
def test_every_change_of_every_run_ends_in_an_outcome_with_a_valid_history(name, change):
    stepper = RunStepper(recorded(name).moments)
    places = sorted({target for _, _, target in targets(stepper.recorded)[change]})
    for moment in places[:: max(1, len(places) // 6)]:
        stepper.change = [change, moment]
        outcome = stepper.run.outcomes[-1]
        check_history(outcome.history)
        # Up to where it is made, a change changes nothing.
        for index in range(moment):
            assert facts(stepper.run, index) == facts(stepper.recorded, index)
        first = stepper.digest
        stepper.change = []
        assert stepper.run is stepper.recorded
        stepper.change = [change, moment]
        assert stepper.digest == first


def test_a_denial_runs_nothing(approved):
    ((_, _, moment),) = targets(approved.recorded)["deny"]
    approved.change = ["deny", moment]
    assert {call.state for call in approved.seek(approved.last).calls} == {"denied"}
    assert "finished" in repr(approved)


def test_an_approval_that_nobody_answered_can_be_denied():
    stepper = RunStepper(recorded("waits").moments)
    stepper.change = ["deny", targets(stepper.recorded)["deny"][0][2]]
    assert {call.state for call in stepper.seek(stepper.last).calls} == {"denied"}


def test_a_tool_that_fails_is_read_by_the_model(approved):
    ((_, _, moment),) = targets(approved.recorded)["fail"]
    approved.change = ["fail", moment]
    assert [call.state for call in approved.seek(approved.last).calls] == ["failed"]


def test_a_run_that_is_resumed_twice_runs_nothing_twice(approved):
    approved.change = ["twice", approved.last]
    assert [moment.label for moment in approved.run.moments].count("edit begins") == 1
    assert type(approved.run.outcomes[-1]).__name__ == "ResumedBefore"


def test_a_stream_that_is_cut_releases_nothing():
    stepper = RunStepper(anyio.run(lambda: started(LOOKS, ANSWER)).moments)
    for moment, _, _ in targets(stepper.recorded)["cut"]:
        stepper.change = ["cut", moment]
        turn = stepper.recorded.turn_at(moment)
        released = [m for m in stepper.run.moments if m.kind == "released" and m.turn == turn]
        assert not released


def test_nothing_runs_a_second_time_for_a_what_if():
    stage = anyio.run(lambda: started(LOOKS, EDITS, ANSWER))
    ran = list(stage.project.ran)
    stepper = RunStepper(stage.moments)
    for name, places in targets(stepper.recorded).items():
        if places:
            stepper.change = [name, places[-1][2]]
    assert stage.project.ran == ran


@pytest.mark.parametrize(
    "change", [["stop"], ["erase", 3], ["stop", 0], ["stop", 999], ["deny", 1], ["cut", "x"], [3]]
)
def test_a_change_that_cannot_be_made_says_so_and_changes_nothing(change):
    stepper = RunStepper(recorded("works").moments)
    with pytest.raises(traitlets.TraitError, match=r"expected|cannot"):
        stepper.change = change
    stepper.set_state({"change": change})
    assert stepper.change == []
    assert stepper.whatif["error"]


def test_it_steps_by_its_methods_and_stays_inside(approved):
    assert approved.back().index == 0
    assert approved.step().label == "started"
    assert approved.next_turn().label == "turn 1 begins"
    assert approved.next_tool().label == "edit begins"
    assert approved.seek(10**6).index == approved.last
    assert approved.next_tool().index == approved.last
    approved.index = -4
    assert approved.frame.index == 0


def test_its_text_form_is_stable():
    first, second = (RunStepper(recorded("works").moments) for _ in range(2))
    first.seek(30), second.seek(30)
    assert repr(first) == repr(second)
    bundle, _ = first._repr_mimebundle_()
    assert set(bundle) > {"text/plain", "text/html"}
    assert all(line == line.rstrip() for line in repr(first).splitlines())


def test_a_recording_that_goes_on_changes_no_stepper_that_is_there():
    stage = recorded("waits")
    stepper = RunStepper(stage.moments)
    before = stepper.digest
    answers = {each.digest: True for each in stage.outcome.waiting}
    anyio.run(stage.resume, stage.outcome.saved, answers)
    stepper.change = ["stop", 2]
    stepper.change = []
    assert stepper.digest == before


def test_a_saved_page_holds_the_run_and_allows_nothing_else(approved, tmp_path):
    approved.seek(12)
    text = approved.save_html(tmp_path / "run.html").read_text("utf-8")
    assert re.search(r"default-src &#x27;none&#x27;|default-src 'none'", text)
    assert "moment 12 of" in text
    with pytest.raises(CannotSave):
        approved.save_html(tmp_path / "run.txt")


def test_what_runs_apart_raises_where_it_is_waited_for():
    with pytest.raises(LookupError, match="nothing was recorded"):
        run_apart(lambda: run_again(RunRecorder()))
    assert threading.active_count() >= 1

"""What if: edits of a stepper, both verdicts, and the code that makes the same capture."""

import json
import re

import ipywidgets
import pytest
import traitlets

from agentlib.fixtures import capture, tools
from agentlib.recordings import edits as edits_module
from agentlib.recordings.capture import Capture
from agentlib.stepper.replay import Replay
from agentlib.stepper.whatif import MAX_EDITS, MAX_FRAGMENT_CHARACTERS
from agentlib.stepper.widget import Stepper


@pytest.fixture(autouse=True)
def close_widgets():
    yield
    ipywidgets.Widget.close_all()


@pytest.fixture
def stepper():
    return Stepper(capture("success_2_edit"), index=13)


def sendable(stepper):
    """Whether what the page is sent can be written as UTF-8, as the messages of Jupyter are."""
    state = {name: stepper.get_state(name)[name] for name in ("edits", "whatif", "index", "trace")}
    return json.dumps(state, ensure_ascii=False, default=len).encode()


def made_by(stepper, original):
    code = stepper.whatif["code"]
    return eval(code, {"capture": original if code.startswith("capture.") else capture})


# Both verdicts


def test_both_verdicts_stand_side_by_side_with_where_they_differ(stepper):
    stepper.edits = [["cut", [17]], ["drop", [3]]]
    *_, edits, before, now, differ, trace = repr(stepper).splitlines()
    assert edits == "  what if  capture('success_2_edit').cut(after=17).drop(3)"
    assert before == "  before   RELEASED at event 18: 1 call released"
    assert now == '  now      DISCARDED at event 3: item "msg_2" was never added'
    assert differ == "  differ   first at event 3"
    assert trace.startswith("  trace    16 events")
    assert stepper.whatif["differs"] == 3


@pytest.mark.parametrize(
    ("name", "edits", "differs", "difference"),
    [
        ("success_2_edit", [["cut", [17]]], 18, "first at the end of the stream, after event 17"),
        (
            "success_2_edit",
            [["cut", [0]]],
            1,
            (
                "first at the end of the stream, after event 0; a hasty adapter at the end of the "
                "stream, after event 0: it executes 0 calls instead of 1"
            ),
        ),
        (
            "disconnect",
            [["cut", [6]]],
            7,
            (
                "not in the verdict; a hasty adapter at the end of the stream, after event 6: "
                "it executes 0 calls instead of 1"
            ),
        ),
        (
            "success_2_edit",
            [["edit", [13, 'ator.py", "old": "return b']], ["cut", [17]]],
            16,
            "first at event 16",
        ),
        ("success_2_edit", [["double", [13]]], 14, "first at event 14"),
        ("success_2_edit", [["stop", ["failed"]]], 18, "first at event 18"),
        ("success_2_edit", [["drop", [9]]], None, "nowhere: the verdict is the same"),
        ("disconnect", [["drop", [1]]], 1, "first at event 1"),
        ("disconnect", [["cut", [8]]], None, "nowhere: the verdict is the same"),
        (
            "chat_edit",
            [["edit", [9, '* b"}']]],
            10,
            (
                "first at the end of the stream, after event 11: both are released, "
                "and not the same; a hasty adapter at event 10: it executes 1 call too, "
                "not the same"
            ),
        ),
    ],
)
def test_the_first_event_at_which_they_differ_is_found(name, edits, differs, difference):
    stepper = Stepper(capture(name), tools())
    stepper.edits = edits
    assert stepper.whatif["differs"] == differs
    assert stepper.whatif["difference"] == difference
    before, now = Replay(capture(name), tools()), Replay(stepper.capture, tools())
    for index in range(differs or 0):
        assert now.seek(index).verdict == before.seek(index).verdict
        assert now.frame.hasty == before.frame.hasty


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("name", ["disconnect", "success_2_edit", "chat_edit", "messages_edit"])
def test_nowhere_is_said_only_where_gate_and_hasty_adapter_did_the_same(name):
    events = len(capture(name).events)
    edits = [[each, [at]] for at in range(1, events) for each in ("cut", "drop", "double", "swap")]
    for edit in edits:
        stepper = Stepper(capture(name), tools())
        stepper.edits = [edit]
        before, now = Replay(capture(name), tools()).run(), stepper.replay.run()
        counts = [(frame.verdict, frame.gate.headline, frame.hasty) for frame in (before, now)]
        if counts[0] != counts[1]:
            assert stepper.whatif["differs"] is not None, edit
            assert "nowhere" not in stepper.whatif["difference"]
        for which, frame in (("before", before), ("now", now)):
            assert len(stepper.whatif[which]["hasty"]) == frame.hasty


def test_the_tools_stay_exposed_where_the_event_that_echoes_them_is_gone():
    stepper = Stepper(capture("success_2_edit"))
    stepper.edits = [["drop", [1]]]
    assert stepper.decision is None
    stepper.edits = [["drop", [2]]]
    assert [f.status for f in stepper.run().findings if f.check == "exposed"] == ["pass"]


# The stepper


def test_the_edited_capture_is_stepped_and_the_next_cell_can_use_it(stepper):
    stepper.edits = [["drop", [15]]]
    assert stepper.capture == capture("success_2_edit").drop(15)
    assert stepper.frame.index == 13
    assert stepper.last == 17
    assert stepper.failure is not None
    assert repr(stepper).startswith("success_2_edit.drop(15) · event 13 of 17")
    assert stepper.trace["count"] == 17


def test_the_index_stays_inside(stepper):
    stepper.run()
    stepper.edits = [["cut", [4]]]
    assert stepper.index == stepper.frame.index == 5


def test_without_edits_it_is_what_it_was(stepper):
    text, digest = repr(stepper), stepper.digest
    stepper.edits = [["double", [13]], ["drop", [2]]]
    assert stepper.digest != digest
    stepper.edits = stepper.edits[:-1]
    assert stepper.capture == capture("success_2_edit").double(13)
    stepper.edits = []
    assert (repr(stepper), stepper.digest) == (text, digest)
    assert stepper.capture == capture("success_2_edit")


def test_the_response_that_is_shown_is_the_one_that_is_edited():
    stepper = Stepper(capture("two_responses"), response=2)
    stepper.edits = [["cut", [2]]]
    assert stepper.whatif["code"] == "capture('two_responses').cut(after=2, response=2)"
    assert stepper.capture == capture("two_responses").cut(2, response=2)
    assert stepper.last == 3


# The code


@pytest.mark.parametrize(
    "edits",
    [
        [["cut", [7]]],
        [["edit", [13, "'\"\\\n\u202e😀"]], ["swap", [3]]],
        [["stop", ["incomplete"]], ["double", [17]], ["drop", [1]]],
    ],
)
def test_the_code_makes_the_same_capture(edits):
    for original in (
        capture("success_2_edit"),
        capture("success_2_edit").drop(2),
        Capture.from_events(capture("success_2_edit").events, "of my own"),
    ):
        stepper = Stepper(original)
        stepper.edits = edits
        assert made_by(stepper, original) == stepper.capture


def test_a_capture_of_the_book_is_named_in_the_code_and_any_other_is_a_variable():
    same_name = Capture.from_events(capture("disconnect").events, "disconnect")
    named, own = Stepper(capture("disconnect")), Stepper(same_name)
    for stepper in (named, own):
        stepper.edits = [["cut", [7]], ["drop", [3]]]
    assert named.whatif["code"] == "capture('disconnect').cut(after=7).drop(3)"
    assert own.whatif["code"] == "capture.cut(after=7).drop(3)"


# What a page may ask


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([["cut", [99]]], "cannot cut after 99"),
        ([["drop", [0]]], "no event 0"),
        ([["cut", [7]], ["drop", [8]]], "has events 1 to 7, no event 8"),
        ([["explode", [1]]], "with one of cut, drop, double, swap, edit, stop"),
        ([["replace", ["a", "b"]]], "with one of cut"),
        ([["cut"]], "expected .name, .arguments.."),
        (["cut"], "expected .name, .arguments.."),
        ([["cut", []]], "cut takes a whole number"),
        ([["cut", [1, 2]]], "cut takes a whole number"),
        ([["cut", [True]]], "cut takes a whole number"),
        ([["cut", ["1"]]], "cut takes a whole number"),
        ([["edit", [5, 5]]], "edit takes a whole number and a text"),
        ([["edit", [5, "x" * (MAX_FRAGMENT_CHARACTERS + 1)]]], "at most 2,000 characters"),
        ([["double", [1]]] * (MAX_EDITS + 1), "at most 50 edits"),
        ([["stop", ["<img src=x>"]]], "one of completed, incomplete, failed"),
        ([["edit", [5, "a\ud83d"]]], "half of an escape pair is edited by code"),
        ([["edit", [5, "\ude00\ud83d"]]], "half of an escape pair is edited by code"),
        ([["stop", ["\ud83d"]]], "half of an escape pair"),
        ([["cut", [10**5_000]]], "too large to be shown"),
        ([["swap", [-(10**5_000)]]], "too large to be shown"),
        ([["edit", [10**4_000, "a"]]], "at most 1,000,000,000 as event"),
    ],
)
def test_what_cannot_be_done_is_answered_and_changes_nothing(stepper, edits, said):
    stepper.edits = [["stop", ["incomplete"]]]
    kept, text = stepper.edits, repr(stepper)
    with pytest.raises(traitlets.TraitError, match=said):
        stepper.edits = edits
    assert (stepper.edits, repr(stepper)) == (kept, text)

    answers = stepper.whatif.get("answer", 0)
    stepper.set_state({"edits": edits, "index": 4})
    assert (stepper.edits, stepper.index) == (kept, 4)
    assert stepper.whatif["answer"] == answers + 1
    assert re.search(said, stepper.whatif["error"])
    assert stepper.whatif["edits"] == kept
    assert sendable(stepper)


def test_what_a_page_asks_is_answered_with_a_new_trace(stepper):
    before = stepper.trace
    stepper.set_state({"edits": [["cut", [13]]]})
    assert stepper.edits == [["cut", [13]]]
    assert stepper.trace != before
    assert stepper.whatif["now"]["state"] == "discarded"
    assert stepper.whatif["error"] == ""


def test_a_fragment_that_hides_something_is_shown_in_the_code(stepper):
    stepper.edits = [["edit", [13, "\u202e\x00"]]]
    assert "\u202e" not in stepper.whatif["code"]
    assert "\u202e" not in repr(stepper)
    assert made_by(stepper, None) == stepper.capture


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", ["unicode", "hostile", "chat_edit", "messages_edit"])
def test_whatever_is_asked_of_a_stream_the_answer_can_be_sent(name):
    stream = capture(name)
    for original in (stream, Capture.from_events(stream.events, "\ud800")):
        stepper = Stepper(original)
        for event in stream.events:
            for fragment in (event.raw[:60], str(event.data.get("delta")), "\ud83d", "\U0001f600"):
                stepper.set_state({"edits": [["edit", [event.number, fragment]]]})
                assert sendable(stepper)
            stepper.set_state({"edits": [["drop", [event.number]]]})
            assert sendable(stepper)


@pytest.mark.exhaustive(keep=12)
@pytest.mark.parametrize("held", [[], [["cut", [3]]], [["double", [1]], ["double", [1]]]])
@pytest.mark.parametrize("edits", [[], [["cut", [3]]], [["cut", [99]]], [["double", [1]]]])
@pytest.mark.parametrize("index", [-1, 2, 9, 18, 19, 10**6])
def test_a_step_that_is_sent_with_edits_is_one_of_the_response_that_they_make(held, edits, index):
    for order in (("edits", "index"), ("index", "edits")):
        stepper = Stepper(capture("success_2_edit"), index=18)
        stepper.edits = held
        asked = {"edits": edits, "index": index}
        stepper.set_state({name: asked[name] for name in order})
        assert stepper.index == max(0, min(index, stepper.last)) == stepper.frame.index

        with stepper.hold_trait_notifications():
            stepper.edits, stepper.index = held, index
        assert stepper.index == stepper.replay.index == stepper.frame.index <= stepper.last


def test_a_change_writes_the_source_once_however_many_edits_it_has(monkeypatch):
    written = []
    monkeypatch.setattr(edits_module, "as_comments", lambda _: written.append(1) or b"")
    stepper = Stepper(Capture.from_events(capture("success_2_edit").events, "of my own"))
    stepper.set_state({"edits": [["double", [1]]] * MAX_EDITS})
    assert (len(written), stepper.last) == (1, 18 + MAX_EDITS)

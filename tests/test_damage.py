"""Damage on purpose: each does what its name says, to a copy; and the gate holds."""

import pytest

from agentlib.gate import CHECK_NAMES
from agentlib.lab import damage
from agentlib.lab.compose import composed
from agentlib.lab.faults import one_fault_each
from agentlib.lab.replay import Replay
from agentlib.lab.scenarios import capture, tools


@pytest.fixture
def good():
    return capture("success_2_edit")


def kinds(stream):
    return [event.data["type"] for event in stream.events]


def test_each_damage_does_what_it_says(good):
    before = kinds(good)

    assert kinds(damage.cut(good, 7)) == before[:7]
    assert kinds(damage.cut(good, 0)) == []
    assert kinds(damage.drop(good, 3)) == before[:2] + before[3:]
    assert kinds(damage.twice(good, 3)) == [*before[:3], *before[2:]]
    swapped = [*before[:2], before[3], before[2], *before[4:]]
    assert kinds(damage.swap(good, 3)) == swapped
    assert kinds(good) == before


def test_a_replacement_stands_in_one_event_or_in_all(good):
    one = damage.replace(good, "resp_edit_1", "resp_edit_2", event=18)
    every = damage.replace(good, "resp_edit_1", "resp_edit_2")

    assert [event.number for event in one.events if "resp_edit_2" in event.raw] == [18]
    assert not any("resp_edit_1" in event.raw for event in every.events)
    assert "resp_edit_1" in good.events[17].raw


def test_the_name_says_what_was_done(good):
    assert damage.cut(good, 7).name == "success_2_edit, cut after 7"
    assert damage.drop(good, 7).name == "success_2_edit, event 7 dropped"
    assert damage.replace(good, "a - b", "a", event=18).name == (
        "success_2_edit, a - b → a in event 18"
    )
    assert len(damage.replace(good, "I can see the bug in add(): ", "x" * 900).name) < 80


@pytest.mark.parametrize("event", [0, 19, -1])
def test_what_is_not_there_cannot_be_damaged(good, event):
    for harm in (damage.drop, damage.twice, damage.swap):
        with pytest.raises(ValueError, match="has events 1 to 18"):
            harm(good, event)
    with pytest.raises(ValueError, match="no event 19"):
        damage.swap(good, 18)
    with pytest.raises(ValueError, match="cannot cut after 19"):
        damage.cut(good, 19)


def test_a_replacement_that_changes_nothing_or_breaks_the_event_is_refused(good):
    with pytest.raises(ValueError, match='"nowhere" does not stand in any event of success_2_edit'):
        damage.replace(good, "nowhere", "x")
    with pytest.raises(ValueError, match="does not stand in event 1"):
        damage.replace(good, "a + b", "a * b", event=1)
    with pytest.raises(ValueError, match="event 18 would be no JSON any more"):
        damage.replace(good, "I will repair it.", 'I "will" repair it.', event=18)


def test_only_the_whole_stream_releases_whatever_the_cut(good):
    for after in range(len(good.events) + 1):
        replay = Replay(damage.cut(good, after), tools())
        assert (replay.decision is not None) is (after == len(good.events))


def test_there_is_one_fault_for_each_check_in_the_tables_order():
    assert tuple(fault.check for fault in one_fault_each()) == CHECK_NAMES


@pytest.mark.parametrize("fault", one_fault_each(), ids=lambda fault: fault.check)
def test_each_fault_is_refused_by_its_own_check_and_no_other(fault):
    replay = Replay(fault.capture, tools())

    assert [f.check for f in replay.run().findings if f.status == "fail"] == [fault.check]
    assert replay.decision is None


def test_a_composed_stream_is_released_as_it_was_said():
    stream = composed("both", ("list", "{}"), ("read", '{"path": "a.py"}'), text="I will look.")
    decision = Replay(stream, tools()).decision

    assert decision.text == "I will look."
    assert [(call.call_id, call.name, dict(call.arguments)) for call in decision.calls] == [
        ("call_1", "list", {}),
        ("call_2", "read", {"path": "a.py"}),
    ]
    assert Replay(composed("nothing"), tools()).decision.calls == ()


@pytest.mark.parametrize("text", ["", "{", '{"path": "a', "[]", '{"path": 1, "path": 2}'])
def test_a_composed_stream_carries_arguments_exactly_as_given(text):
    replay = Replay(composed("odd", ("read", text)), tools())

    assert replay.run().pending == {"call_1": text}
    assert replay.decision is None

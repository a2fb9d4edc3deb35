"""Faults and composed streams: each fault is refused by its own check, and by no other."""

import pytest

from agentlib.fixtures import capture, tools
from agentlib.gate import CHECK_NAMES
from agentlib.stepper.replay import Replay
from workbook.pages.compose import composed
from workbook.pages.faults_by_check import one_fault_each


def test_only_the_whole_stream_releases_whatever_the_cut():
    good = capture("success_2_edit")
    for after in range(len(good.events) + 1):
        replay = Replay(good.cut(after=after), tools())
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

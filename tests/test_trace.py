"""The trace: the state after event k is made of the first k events, and of nothing else."""

import json
import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import (
    BARE,
    ONE_CALL,
    STORIES,
    TEXT_THEN_CALL,
    THREE_CALLS,
    TOOLS,
    Call,
    Framing,
    Say,
    Story,
    edited,
    output,
    read,
    recorded,
    tell,
)

from agentlib import Limits
from agentlib.jsonvalues import join_surrogates
from agentlib.recordings.capture import Capture
from agentlib.stepper import payload as wire_module
from agentlib.stepper.payload import to_wire
from agentlib.stepper.replay import Replay
from agentlib.stepper.trace import (
    ARGUMENTS,
    COMPLETED,
    DONE,
    LIFECYCLE,
    NOT_READ,
    OTHER,
    STOPPED,
    TEXT,
    shown,
)

REASONING = [
    {"type": "response.output_item.added", "item": {"type": "reasoning", "id": "rs_1"}},
    *(
        {"type": "response.reasoning_text.delta", "item_id": "rs_1", "delta": piece}
        for piece in ("I ", "think.")
    ),
]
LONE = Story((Say(("a\ud83d",)), Call("t", '"\ud83d\ud83d\ude00\ude00', "call_\ud83d")))
STREAMS = {
    **{name: tell(story) for name, story in STORIES.items()},
    "interleaved": tell(THREE_CALLS, Framing(piece=7, interleaved=True, extras=True)),
    "cut pairs": tell(THREE_CALLS, Framing(piece=1, units=True)),
    "lone surrogates": tell(LONE, Framing(piece=1, units=True)),
    "whole at added": tell(THREE_CALLS, Framing(whole="added")),
    "whole at done": tell(THREE_CALLS, Framing(whole="done", numbered=False)),
    "cut": tell(TEXT_THEN_CALL)[:-3],
    "reasoning": [*tell(ONE_CALL, BARE)[:2], *REASONING, *tell(ONE_CALL, BARE)[2:]],
    "violation in the middle": edited(TEXT_THEN_CALL, "function_call_arguments.done", dict.clear),
    "rejected at the end": output(TEXT_THEN_CALL, lambda items: items[:1]),
    "more after the end": [*tell(ONE_CALL), *tell(ONE_CALL)[3:], {"type": "ping"}],
    "failed": [*tell(ONE_CALL, BARE)[:6], {"type": "response.failed"}, {"type": "ping"}],
    "never opened": tell(ONE_CALL)[2:],
    "nothing": [],
}
each_stream = pytest.mark.parametrize("events", STREAMS.values(), ids=STREAMS)


def replay(events, **options):
    return Replay(recorded(events), TOOLS, **options)


def state(trace, k):
    """Return all that a trace knows of step k."""
    buffers = [
        (
            b.kind,
            b.part,
            b.call_id,
            b.name,
            b.text[: b.length_at(k)],
            b.grown_at(k),
            0 < b.done <= k,
        )
        for b in trace.buffers
        if b.start <= k
    ]
    event = ()
    if k:
        columns = (trace.labels, trace.raws, trace.roles, trace.touched, trace.sizes)
        event = tuple(column[k - 1] for column in columns)
    return event, buffers, trace.gate_at(k), trace.hasty_at(k), trace.starts_run(k)


@each_stream
def test_the_state_after_event_k_is_made_of_the_first_k_events(events):
    whole = replay(events).trace
    for k in range(len(events) + 1):
        assert state(replay(events[:k]).trace, k) == state(whole, k)


@pytest.mark.exhaustive(keep=6)
@each_stream
def test_stepping_any_way_equals_a_fresh_replay(events):
    fresh = [replay(events).seek(k).text for k in range(replay(events).last + 1)]
    player = replay(events)
    walk = random.Random(7)
    assert player.frame.text == fresh[0]
    for _ in range(60):
        before = player.index
        move = walk.choice(["step", "back", "seek"])
        target = walk.randint(-2, player.last + 2)
        frame = player.seek(target) if move == "seek" else getattr(player, move)()
        expected = {"step": before + 1, "back": before - 1, "seek": target}[move]
        assert player.index == frame.index == max(0, min(expected, player.last))
        assert frame.text == player.frame.text == repr(player) == fresh[player.index]
    assert player.run().index == player.last
    assert player.step().index == player.last
    assert player.seek(0) == player.back()


@each_stream
def test_changes_are_the_same_forward_and_back(events):
    player = replay(events)
    forward = []
    while not forward or forward[-1] < player.last:
        if player.last == 0:
            return
        forward.append(player.next_change().index)
    assert forward == sorted(set(forward))
    backward = []
    while player.index:
        backward.append(player.previous_change().index)
    # Going back stops at the first event of a run; going on, too; the end is always reached.
    assert set(backward[:-1]) <= set(forward)
    assert {n for n in forward if player.trace.starts_run(n)} - {player.last} <= set(backward)


def test_a_run_of_deltas_is_one_change():
    player = replay(tell(TEXT_THEN_CALL, Framing(piece=1)))
    labels = []
    while player.index < player.last:
        labels.append(player.next_change().label)
    assert len(labels) == 17
    assert labels.count("output_text.delta") == 2
    assert labels.count("arguments.delta") == 1


def test_the_columns_say_what_each_event_was():
    events = [*tell(TEXT_THEN_CALL, Framing(piece=100)), {"type": "ping"}]
    trace = replay(events).trace
    named = dict(zip(trace.labels, trace.roles, strict=True))
    assert named["response.created"] == LIFECYCLE
    assert named["response.in_progress"] == OTHER
    assert named["output_item.added count"] == LIFECYCLE
    assert named["output_text.delta"] == TEXT
    assert named["output_text.done"] == DONE
    assert named["arguments.delta"] == ARGUMENTS
    assert named["arguments.done"] == DONE
    assert named["response.completed"] == COMPLETED
    assert named["ping"] == NOT_READ
    assert replay(tell(ONE_CALL)[2:]).trace.roles[0] == STOPPED
    assert trace.notes == ["1 event after the end of the response, not read"]


def test_the_gate_stays_closed_until_the_last_event_and_changes_a_few_times():
    events = tell(THREE_CALLS, Framing(piece=1))
    trace = replay(events).trace
    assert [(gate.at, gate.state) for gate in trace.gate] == [
        (0, "closed"),
        (1, "closed"),
        (len(events), "released"),
    ]
    assert trace.gate_at(len(events) - 1).state == "closed"
    assert trace.decision == read(events, TOOLS).decision
    assert trace.failure is None
    assert trace.end is None


def test_the_end_of_a_cut_stream_is_a_step_of_its_own():
    events = tell(ONE_CALL)[:-1]
    player = replay(events)
    assert player.last == len(events) + 1
    assert player.seek(len(events)).verdict == "closed"
    frame = player.run()
    assert (frame.verdict, frame.label) == ("discarded", "stream ended")
    assert player.failure.check == "completed"
    nothing = replay([])
    assert nothing.last == 1
    assert nothing.run().verdict == "discarded"


def test_a_fault_of_the_recording_is_a_step_of_its_own():
    source = b'data: {"type": "ping"}\n\ndata: {broken\n\n'
    trace = Replay(Capture.from_bytes(source), TOOLS).trace
    assert (trace.count, trace.last) == (1, 2)
    assert trace.end[0] == "not readable"
    assert trace.gate[-1].state == "discarded"


def test_what_a_hasty_adapter_would_have_run_is_told_at_the_event():
    events = tell(THREE_CALLS, Framing(interleaved=True))
    trace = replay(events[:-1]).trace
    dones = [n for n, e in enumerate(events, 1) if e["type"].endswith("arguments.done")]
    assert [action.event for action in trace.hasty] == dones
    assert {action.name for action in trace.hasty} == {"read_file", "edit", "run_tests"}
    assert trace.hasty_at(dones[0] - 1) == ()
    assert len(trace.hasty_at(dones[1])) == 2
    assert trace.decision is None


def test_no_buffer_shows_what_belongs_to_another():
    # Names that a careless table would mix up: of a call, of a text, of reasoning.
    call = Call("run_tests", "{}", "reasoning rs_1")
    events = tell(Story((call,)), BARE)
    trace = replay([*events[:2], *REASONING, *events[2:]]).trace
    assert [(b.kind, b.text) for b in trace.buffers] == [
        ("reasoning", "I think."),
        ("arguments", "{}"),
    ]


def reference(text, length):
    """What may be shown of a prefix by itself: pairs joined, a last first half kept back."""
    prefix = join_surrogates(text[:length])
    return prefix[:-1] if prefix[-1:] and "\ud800" <= prefix[-1] <= "\udbff" else prefix


@settings(deadline=None)
@given(st.text(st.sampled_from("ab\ud83d\ude00\ud83e\udd16é")), st.sets(st.integers(1, 40)))
def test_what_is_shown_of_a_prefix_depends_on_nothing_after_it(text, cuts):
    lengths = sorted(cut for cut in cuts if cut <= len(text))
    visible, columns = shown(text, array("I", lengths))
    visible.encode()
    for length, column in zip(lengths, columns, strict=True):
        alone, _ = shown(reference(text, length), array("I"))
        assert visible[:column] == alone


def test_showing_many_cut_pairs_costs_no_more_than_their_number():
    text = "\ud83d\ude00" * 50_000 + "\ud83d"
    visible, columns = shown(text, array("I", range(1, len(text) + 1)))
    assert len(visible) == 50_001
    assert columns[-1] == 50_000


def test_memory_is_a_few_numbers_for_each_event():
    for n in (1_000, 10_000):
        trace = replay(tell(Story((Say(("x" * n,)),)), Framing(piece=1))).trace
        columns = [trace.roles, trace.touched, trace.sizes]
        columns += [column for b in trace.buffers for column in (b.at, b.length)]
        cost = sum(column.itemsize * len(column) for column in columns)
        assert cost < 20 * trace.count
        assert sum(len(buffer.text) for buffer in trace.buffers) == n
        assert len(trace.gate) == 3


# ------------------------------------------------------------------------------------ the wire


def numbers(code, column):
    values = array(code)
    values.frombytes(column)
    return list(values)


@each_stream
def test_the_wire_says_what_the_trace_says(events):
    trace = replay(events).trace
    wire = to_wire(trace)
    assert wire["count"] == len(events)
    assert [wire["names"][n] for n in numbers("H", wire["kind"])] == trace.labels
    assert numbers("B", wire["role"]) == list(trace.roles)
    assert numbers("i", wire["buffer"]) == list(trace.touched)
    assert numbers("I", wire["size"]) == list(trace.sizes)
    offsets = numbers("I", wire["offset"])
    assert len(offsets) == len(events) + 1
    for raw, first, last in zip(trace.raws, offsets, offsets[1:], strict=False):
        assert json.loads(wire["raw"][first:last]) == json.loads(raw)
    for sent, buffer in zip(wire["buffers"], trace.buffers, strict=True):
        assert (sent["kind"], sent["text"]) == (buffer.kind, buffer.text)
        assert numbers("I", sent["at"]) == list(buffer.at)
        assert numbers("I", sent["length"]) == list(buffer.length)
        assert (sent["start"], sent["done"]) == (buffer.start, buffer.done)
    assert [(gate["at"], gate["state"]) for gate in wire["gate"]] == [
        (gate.at, gate.state) for gate in trace.gate
    ]
    assert all(len(gate["findings"]) == len(wire["checks"]) == 15 for gate in wire["gate"])
    calls = trace.decision.calls if trace.decision is not None else ()
    assert [json.loads(call["arguments"]) for call in wire["released"]] == [
        call.arguments for call in calls
    ]
    assert [action["at"] for action in wire["hasty"]] == [a.event for a in trace.hasty]
    assert (wire["end"] is None) == (trace.last == trace.count)
    rest = {name: value for name, value in wire.items() if not isinstance(value, bytes)}
    text = json.dumps(rest, ensure_ascii=False, default=len)
    text.encode()


def test_more_kinds_than_a_column_can_name_share_one(monkeypatch):
    assert wire_module.MAX_NAMES == 2**16
    monkeypatch.setattr(wire_module, "MAX_NAMES", 10)
    for count, named in ((9, 9), (10, 10), (11, 10), (500, 10)):
        events = [{"type": f"kind {n}"} for n in range(count)]
        wire = to_wire(replay(events).trace)
        assert len(wire["names"]) == named
        kinds = [wire["names"][n] for n in numbers("H", wire["kind"])]
        assert kinds[:9] == [event["type"] for event in events[:9]]
        assert len(set(kinds[9:])) <= 1


def test_a_limit_that_is_passed_is_a_step_too():
    player = replay(tell(ONE_CALL, Framing(piece=1)), limits=Limits(argument_characters=10))
    frame = player.run()
    assert frame.verdict == "discarded"
    assert player.trace.buffers[0].text == ONE_CALL.calls[0].arguments[:10]
    assert player.trace.buffers[0].limit == 10


def test_a_response_of_several_is_picked_by_its_number():
    other = Story((Say(("Second.",)),), response_id="resp_2")
    capture = recorded([*tell(ONE_CALL), *tell(other)])
    assert Replay(capture, TOOLS).decision.calls
    assert Replay(capture, TOOLS, response=2).decision.text == "Second."
    for wrong in (0, 3, -1):
        with pytest.raises(ValueError, match="expected a response from 1 to 2"):
            Replay(capture, TOOLS, response=wrong)

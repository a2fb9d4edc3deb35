"""The assembly: a table of states, buffers that only grow, limits, and one outcome."""

import copy
import dataclasses
import pickle

import pytest
from streams import TOOLS

from agentlib import Assembly, Limits, Usage
from agentlib.failures import (
    GateRejected,
    LimitExceeded,
    ProtocolViolation,
    ProviderStopped,
    ResponseFailure,
    StreamCut,
)
from agentlib.gate import CHECK_NAMES
from agentlib.jsonvalues import FrozenObject
from agentlib.vocabulary import (
    Completed,
    Corrected,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    TerminalCall,
    TerminalText,
    TextDelta,
    TextDone,
    ToolArgsDelta,
    ToolArgsDone,
    ToolStart,
)

ARGUMENTS = '{"path": "a.py"}'
CALL = TerminalCall("call_a", "read_file", ARGUMENTS, "fc_1")
ITEMS = (TerminalText("m/0", "Hi."), CALL)
USAGE = Usage(1, 2, 3, 4)
COMPLETED = Completed("resp_1", items=ITEMS, usage=USAGE)
GROWING = [
    Opened("resp_1"),
    TextDelta("m/0", "Hi"),
    TextDelta("m/0", "."),
    ToolStart("call_a", "read_file", "fc_1"),
    ToolArgsDelta("call_a", ARGUMENTS[:5]),
    ToolArgsDelta("call_a", ARGUMENTS[5:]),
]
REJECTED = Completed("resp_2", items=ITEMS)


def fed(*events, catalog=TOOLS, limits=None):
    """Return an assembly that took these events, and its last answer."""
    assembly = Assembly(catalog, limits)
    answers = [assembly.accept(event) for event in events]
    return assembly, answers[-1] if answers else None


def failed(*events, catalog=TOOLS, limits=None):
    """Return the failure that the last of these events is, and none before it."""
    assembly, _ = fed(*events[:-1], catalog=catalog, limits=limits)
    with pytest.raises(ResponseFailure) as caught:
        assembly.accept(events[-1])
    assert assembly.failure is caught.value
    assert assembly.decision is None
    assert assembly.state == "discarded"
    return caught.value


# Each state, and what brings an assembly into it.
def new():
    return fed()[0]


def opened():
    return fed(*GROWING)[0]


def released():
    return fed(*GROWING, COMPLETED)[0]


def discarded():
    assembly = opened()
    with pytest.raises(GateRejected):
        assembly.accept(REJECTED)
    return assembly


EVENTS = {
    "opened": Opened("resp_1"),
    "text": TextDelta("m/0", "x"),
    "refusal": RefusalDelta("m/1", "x"),
    "reasoning": ReasoningDelta("r", "x"),
    "text done": TextDone("m/0", "Hi."),
    "start": ToolStart("call_b", "run_tests", "fc_2"),
    "arguments": ToolArgsDelta("call_a", "x"),
    "arguments done": ToolArgsDone("call_a", ARGUMENTS),
    "corrected": Corrected("call_a", ARGUMENTS, "{}"),
    "completed": COMPLETED,
    "rejected": REJECTED,
    "stopped": Stopped("response.failed", "why"),
}
# What each event makes of each state; the other states refuse it and are discarded.
NEXT = {
    (new, "opened"): "open",
    **{(opened, kind): "open" for kind in EVENTS if kind not in ("opened", "rejected", "stopped")},
    (opened, "completed"): "released",
    **{(released, kind): "released" for kind in EVENTS},
}
CHECKS = {
    **{(new, kind): "opened" for kind in EVENTS},
    (new, "stopped"): "completed",
    (opened, "opened"): "opened",
    (opened, "rejected"): "response_id",
    (opened, "stopped"): "completed",
    **{(discarded, kind): "response_id" for kind in EVENTS},
}


@pytest.mark.parametrize("state", [new, opened, released, discarded])
@pytest.mark.parametrize("kind", EVENTS)
def test_every_event_in_every_state(state, kind):
    assembly = state()
    before = assembly.decision
    expected = NEXT.get((state, kind))
    if expected is None:
        with pytest.raises(ResponseFailure) as caught:
            assembly.accept(EVENTS[kind])
        assert caught.value.check == CHECKS[state, kind]
        assert assembly.decision is None
    else:
        answer = assembly.accept(EVENTS[kind])
        assert (answer is not None) == (expected == "released" and state is opened)
    assert assembly.state == (expected or "discarded")
    if state is released:
        assert assembly.decision is before


def test_every_kind_of_event_is_in_the_table():
    from typing import get_args

    from agentlib.vocabulary import Event

    assert {type(event) for event in EVENTS.values()} == set(get_args(Event))


def test_progress_answers_nothing_and_completion_decides_once():
    assembly = Assembly(TOOLS)
    assert [assembly.accept(event) for event in GROWING] == [None] * len(GROWING)
    decision = assembly.accept(COMPLETED)
    assert assembly.decision is decision
    assert (decision.response_id, decision.text, decision.refusal) == ("resp_1", "Hi.", "")
    assert decision.calls[0].arguments == {"path": "a.py"}
    assert decision.usage == USAGE
    message = decision.message()
    assert (message.role, message.text, message.calls) == ("assistant", "Hi.", decision.calls)
    assembly.end()


def test_the_end_is_said_and_is_a_cut_before_the_terminal_event():
    for length in range(len(GROWING) + 1):
        assembly, _ = fed(*GROWING[:length])
        with pytest.raises(StreamCut) as caught:
            assembly.end()
        assert caught.value.check == ("completed" if length else "opened")
        with pytest.raises(StreamCut) as again:
            assembly.end()
        assert again.value is caught.value
        with pytest.raises(StreamCut) as late:
            assembly.accept(COMPLETED)
        assert late.value is caught.value
        assert assembly.decision is None


FAILURES = {
    "opened twice": ([*GROWING, Opened("resp_1")], ProtocolViolation, "opened"),
    "no response ID": ([Opened("")], ProtocolViolation, "opened"),
    "a call twice": ([*GROWING, ToolStart("call_a", "edit")], ProtocolViolation, "call_ids"),
    "no call ID": ([*GROWING, ToolStart("", "edit")], ProtocolViolation, "call_ids"),
    "no name": ([*GROWING, ToolStart("call_b", "")], ProtocolViolation, "call_ids"),
    "unknown call": ([*GROWING, ToolArgsDelta("call_x", "")], ProtocolViolation, "lifecycle"),
    "unknown call done": ([*GROWING, ToolArgsDone("call_x", "")], ProtocolViolation, "lifecycle"),
    "done differs": ([*GROWING, ToolArgsDone("call_a", "{}")], ProtocolViolation, "lifecycle"),
    "text done differs": ([*GROWING, TextDone("m/0", "Hi")], ProtocolViolation, "lifecycle"),
    "refusal of a text": (
        [*GROWING, TextDone("m/0", "Hi.", refusal=True)],
        ProtocolViolation,
        "lifecycle",
    ),
    "text and refusal": ([*GROWING, RefusalDelta("m/0", "x")], ProtocolViolation, "lifecycle"),
    "after its done": (
        [*GROWING, ToolArgsDone("call_a", ARGUMENTS), ToolArgsDelta("call_a", "")],
        ProtocolViolation,
        "lifecycle",
    ),
    "text after its done": (
        [*GROWING, TextDone("m/0", "Hi."), TextDelta("m/0", "")],
        ProtocolViolation,
        "lifecycle",
    ),
    "text after an empty done": (
        [*GROWING, TextDone("m/1", ""), TextDelta("m/1", "x")],
        ProtocolViolation,
        "lifecycle",
    ),
    "correction of nothing": ([*GROWING, Corrected("x", "", "")], ProtocolViolation, "lifecycle"),
    "stopped": ([*GROWING, Stopped("error", "why", USAGE)], ProviderStopped, "completed"),
    "gate": ([*GROWING, REJECTED], GateRejected, "response_id"),
}


@pytest.mark.parametrize(("events", "kind", "check"), FAILURES.values(), ids=FAILURES)
def test_a_failure_has_its_kind_and_its_check_and_lasts(events, kind, check):
    failure = failed(*events)
    assert type(failure) is kind
    assert failure.check == check
    assembly, _ = fed(*events[:-1])
    for event in (events[-1], *GROWING, COMPLETED, *EVENTS.values()):
        with pytest.raises(kind) as caught:
            assembly.accept(event)
        assert caught.value is assembly.failure
        assert assembly.decision is None
    with pytest.raises(kind):
        assembly.end()
    findings = {finding.check: finding for finding in assembly.findings()}
    assert tuple(findings) == CHECK_NAMES
    assert findings[check].status == "fail"
    assert findings[check].detail == failure.reason


def test_the_failure_that_lasts_does_not_grow():
    assembly = discarded()
    for _ in range(50):
        with pytest.raises(GateRejected) as caught:
            assembly.accept(COMPLETED)
    trace, depth = caught.value.__traceback__, 0
    while trace is not None:
        trace, depth = trace.tb_next, depth + 1
    assert depth < 10


def test_a_failure_found_outside_discards_too():
    assembly = opened()
    failure = ProtocolViolation("a line that is no JSON", check="lifecycle")
    with pytest.raises(ProtocolViolation) as caught:
        assembly.discard(failure)
    assert caught.value is failure
    with pytest.raises(ProtocolViolation):
        assembly.accept(COMPLETED)
    assert assembly.decision is None


def test_limits_hold_at_exactly_their_number():
    open_call = [Opened("r"), ToolStart("c", "t")]
    limits = Limits(text_characters=5, argument_characters=4, calls=2)
    fine = [
        [*open_call, ToolArgsDelta("c", "abc"), ToolArgsDelta("c", "d")],
        [*open_call, ToolArgsDone("c", "abcd")],
        [Opened("r"), ToolStart("c", "t", "", "abcd")],
        [*open_call, Corrected("c", "", "abcd")],
        [Opened("r"), TextDelta("a", "abc"), RefusalDelta("b", "de")],
        [Opened("r"), TextDelta("a", "abc"), TextDone("b", "de")],
        [Opened("r"), TextDelta("a", "abc"), TextDelta("b", "de"), Corrected("a", "abc", "xyz")],
        [Opened("r"), ToolStart("c", "t"), ToolStart("d", "t")],
    ]
    over = [
        [*open_call, ToolArgsDelta("c", "abc"), ToolArgsDelta("c", "de")],
        [*open_call, ToolArgsDone("c", "abcde")],
        [Opened("r"), ToolStart("c", "t", "", "abcde")],
        [*open_call, Corrected("c", "", "abcde")],
        [Opened("r"), TextDelta("a", "abc"), RefusalDelta("b", "def")],
        [Opened("r"), TextDelta("a", "abc"), TextDone("b", "def")],
        [Opened("r"), TextDelta("a", "abc"), TextDelta("b", "de"), Corrected("a", "abc", "wxyz")],
        [Opened("r"), ToolStart("c", "t"), ToolStart("d", "t"), ToolStart("e", "t")],
    ]
    for events in fine:
        assert fed(*events, limits=limits)[0].state == "open"
    for events in over:
        failure = failed(*events, limits=limits)
        assert type(failure) is LimitExceeded
        assert failure.check == "limits"
        assert failure.reason.count("expected at most") == 1


def test_the_default_limits_are_those_that_are_documented():
    assert Limits() == Limits(text_characters=64_000, argument_characters=16_000, calls=8)


def test_a_restatement_and_a_whole_at_done_are_accepted():
    for events in (
        [*GROWING, ToolArgsDone("call_a", ARGUMENTS), ToolArgsDone("call_a", ARGUMENTS)],
        [*GROWING[:4], ToolArgsDone("call_a", ARGUMENTS)],
        [*GROWING[:3], ToolStart("call_a", "read_file", "fc_1", ARGUMENTS)],
        [Opened("resp_1"), TextDone("m/0", "Hi."), *GROWING[3:], TextDone("m/0", "Hi.")],
    ):
        assert fed(*events, COMPLETED)[1] is not None


def test_an_api_that_restates_nothing_is_taken_by_what_was_streamed():
    decision = fed(*GROWING, Completed("resp_1", usage=USAGE))[1]
    assert (decision.text, decision.usage) == ("Hi.", USAGE)
    assert [call.call_id for call in decision.calls] == ["call_a"]
    broken = [*GROWING[:-1], Completed("resp_1")]
    assert failed(*broken).check == "strict_json"


DECISION = fed(*GROWING, COMPLETED)[1]


@pytest.mark.parametrize("thing", [DECISION, DECISION.calls[0], DECISION.usage, DECISION.message()])
def test_what_was_validated_cannot_be_changed(thing):
    for field in dataclasses.fields(thing):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field.name, "other")
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(thing, field.name)
    with pytest.raises((AttributeError, TypeError)):
        thing.other = 1
    assert not hasattr(thing, "__dict__")
    for other in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
        assert other == thing
        assert type(other) is type(thing)


def test_the_calls_of_a_decision_cannot_be_changed():
    assert isinstance(DECISION.calls, tuple)
    arguments = pickle.loads(pickle.dumps(DECISION)).calls[0].arguments
    for value in (DECISION.calls[0].arguments, arguments):
        assert isinstance(value, FrozenObject)
        with pytest.raises(TypeError):
            value["path"] = "/etc/passwd"


def test_the_size_of_a_buffer_is_that_of_what_came():
    assembly = opened()
    assert (assembly.size("call_a"), assembly.size("m/0"), assembly.size("x")) == (16, 3, 0)


def test_a_hundred_thousand_characters_one_by_one():
    limits = Limits(argument_characters=200_000, text_characters=200_000)
    assembly, _ = fed(Opened("resp_1"), ToolStart("call_a", "read_file"), limits=limits)
    text = f'{{"path": "{"x" * 100_000}"}}'
    for letter in text:
        assembly.accept(ToolArgsDelta("call_a", letter))
        assembly.accept(TextDelta("m/0", letter))
    decision = assembly.accept(Completed("resp_1"))
    assert decision.text == text
    assert len(decision.calls[0].arguments["path"]) == 100_000

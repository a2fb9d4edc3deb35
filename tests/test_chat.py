"""Chat Completions: the call ID is the key, and only a finish reason and a clean end complete."""

import json

import anyio
import pytest
from wires import (
    ARGUMENTS,
    END,
    READ,
    READ_FILE,
    RUN_TESTS,
    STOP,
    TOOLS,
    call,
    chunk,
    fragment,
    one_call,
    read,
    rejected,
    released,
    text,
    usage_chunk,
)

from agentlib import Catalog, Usage, user
from agentlib.clock import MockClock
from agentlib.failures import ProtocolViolation, ProviderStopped, StreamCut
from agentlib.faultserver.replies import Reply
from agentlib.faultserver.server import LoopbackServer
from agentlib.model import StreamingModel, Timers
from agentlib.openai_transport import OpenAITransport
from agentlib.recordings.capture import Capture
from agentlib.recordings.replay_transport import Playback, ReplayTransport
from agentlib.stepper.replay import Replay
from agentlib.vocabulary import ReasoningDelta, RefusalDelta, TextDelta

ONE = [("call_a", "read_file", {"path": "src/app.py"})]
TWO = [*ONE, ("call_b", "run_tests", {})]


# ------------------------------------------------------------------------- identity of a call


def test_a_call_in_fragments_is_one_call():
    assert released("chat", one_call()).calls == ONE


def test_the_call_id_joins_what_no_index_tells():
    events = [
        call("call_a", "read_file", ARGUMENTS[:9], index=None),
        call("call_a", arguments=ARGUMENTS[9:], index=None),
        END,
    ]
    assert released("chat", events).calls == ONE


def test_interleaved_fragments_go_to_the_call_at_their_index():
    events = [
        call("call_a", "read_file", "", index=0),
        call("call_b", "run_tests", "", index=1),
        call(arguments=ARGUMENTS[:9], index=0),
        call(arguments="{", index=1),
        call(arguments=ARGUMENTS[9:], index=0),
        call(arguments="}", index=1),
        END,
    ]
    assert released("chat", events).calls == TWO


def test_interleaved_fragments_with_their_ids_need_no_index():
    events = [
        call("call_a", "read_file", "", index=None),
        call("call_b", "run_tests", "{", index=None),
        call("call_a", arguments=ARGUMENTS, index=None),
        call("call_b", arguments="}", index=None),
        END,
    ]
    assert released("chat", events).calls == TWO


@pytest.mark.parametrize("index", [0, 1, 7])
def test_where_an_index_begins_does_not_matter(index):
    events = [call("call_a", "read_file", "", index=index), call(arguments=ARGUMENTS, index=index)]
    assert released("chat", [*events, END]).calls == ONE


def test_a_new_id_at_a_used_index_is_a_new_call():
    events = [
        call("call_a", "read_file", ARGUMENTS, index=0),
        call("call_b", "run_tests", "{", index=0),
        call(arguments="}", index=0),
        END,
    ]
    assert released("chat", events).calls == TWO


def test_one_id_at_two_indexes_is_a_failure():
    events = [
        call("call_a", "read_file", ARGUMENTS, index=0),
        call("call_a", arguments="", index=1),
    ]
    failure = rejected("chat", [*events, END])
    assert isinstance(failure, ProtocolViolation)
    assert "stands at index 0 and 1" in failure.reason


@pytest.mark.parametrize("call_id", [None, ""])
@pytest.mark.parametrize("index", [None, 0])
def test_a_call_without_any_id_is_a_failure(call_id, index):
    failure = rejected("chat", [call(call_id, "read_file", ARGUMENTS, index=index), END])
    assert (failure.check, failure.event) == ("call_ids", 1)


def test_a_fragment_without_index_and_id_belongs_nowhere():
    failure = rejected("chat", [call("call_a", "read_file", ""), call(arguments="{}", index=None)])
    assert (failure.check, failure.event) == ("call_ids", 2)


def test_an_index_that_no_call_began_at_is_a_failure():
    failure = rejected("chat", [call("call_a", "read_file", ""), call(arguments="{}", index=1)])
    assert failure.check == "call_ids"


@pytest.mark.parametrize("index", ["0", 0.0, True, [0]])
def test_an_index_is_a_whole_number(index):
    assert "index" in rejected("chat", [call("call_a", "read_file", "", index=index)]).reason


def test_an_id_and_a_name_in_every_chunk_are_the_same_call():
    pieces = [ARGUMENTS[:5], ARGUMENTS[5:12], ARGUMENTS[12:]]
    events = [call("call_a", "read_file", piece) for piece in pieces]
    assert released("chat", [*events, END]).calls == ONE


def test_an_empty_id_and_name_on_later_chunks_say_nothing_new():
    events = [call("call_a", "read_file", ""), call("", "", ARGUMENTS)]
    assert released("chat", [*events, END]).calls == ONE


def test_two_whole_calls_in_one_chunk_without_indexes():
    calls = [
        fragment("call_a", "read_file", ARGUMENTS, index=None),
        fragment("call_b", "run_tests", "{}", index=None),
    ]
    assert released("chat", [chunk({"tool_calls": calls}, "tool_calls")]).calls == TWO


def test_two_fragments_of_one_call_in_one_chunk():
    calls = [fragment("call_a", "read_file", ARGUMENTS[:9]), fragment(arguments=ARGUMENTS[9:])]
    assert released("chat", [chunk({"tool_calls": calls}), END]).calls == ONE


def test_a_whole_call_with_text_and_finish_reason_in_one_chunk():
    whole = {"content": "Now.", "tool_calls": [fragment("call_a", "read_file", ARGUMENTS)]}
    outcome = released("chat", [chunk(whole, "tool_calls")])
    assert (outcome.calls, outcome.decision.text) == (ONE, "Now.")


def test_calls_keep_the_order_in_which_they_began():
    events = [
        call("call_b", "run_tests", "{}", index=1),
        call("call_a", "read_file", ARGUMENTS, index=0),
        END,
    ]
    assert released("chat", events).calls == [TWO[1], TWO[0]]


# ----------------------------------------------------------------------------------- arguments


def test_null_arguments_mean_none_yet():
    first = {"index": 0, "id": "call_a", "function": {"name": "read_file", "arguments": None}}
    events = [chunk({"tool_calls": [first]}), call(arguments=ARGUMENTS), END]
    assert released("chat", events).calls == ONE


def test_a_tool_without_parameters_needs_no_arguments():
    assert released("chat", [call("call_b", "run_tests"), END]).calls == [TWO[1]]


def test_missing_arguments_of_a_tool_that_needs_some_are_a_failure():
    assert rejected("chat", [call("call_a", "read_file"), END]).check == "strict_json"


@pytest.mark.parametrize("arguments", [{"path": "a"}, ["a"], 1, False])
def test_arguments_are_text_and_nothing_else(arguments):
    event = {"index": 0, "id": "call_a", "function": {"name": "read_file", "arguments": arguments}}
    failure = rejected("chat", [chunk({"tool_calls": [event]}), END])
    assert isinstance(failure, ProtocolViolation)
    assert "expected a string as arguments" in failure.reason


@pytest.mark.parametrize(
    ("arguments", "check"),
    [
        (json.dumps(ARGUMENTS), "object"),
        (ARGUMENTS[:-1], "strict_json"),
        (ARGUMENTS + "}", "strict_json"),
        (ARGUMENTS * 2, "strict_json"),
        ('{"path": "/safe", "path": "/danger"}', "strict_json"),
        ('{"path": NaN}', "strict_json"),
        ("[]", "object"),
        ('{"file": "a"}', "schema"),
    ],
)
def test_the_gate_judges_the_arguments(arguments, check):
    assert rejected("chat", [call("call_a", "read_file", arguments), END]).check == check


def test_every_split_of_the_arguments_is_the_same_call():
    for at in range(len(ARGUMENTS) + 1):
        events = [
            call("call_a", "read_file", ARGUMENTS[:at]),
            call(arguments=ARGUMENTS[at:]),
            END,
        ]
        assert released("chat", events).calls == ONE


# --------------------------------------------------------------------------------------- names


def test_a_name_in_two_parts_is_joined_where_only_the_whole_is_exposed():
    events = [call("call_a", "read_"), call("call_a", "file", ARGUMENTS), END]
    assert released("chat", events).calls == ONE


@pytest.mark.parametrize(
    ("parts", "tools"),
    [
        (("read", "_file"), [READ, READ_FILE, RUN_TESTS]),
        (("read_", "other"), [READ_FILE, RUN_TESTS]),
        (("re", "ad_", "file"), [READ_FILE]),
        (("read_file", "run_tests"), [READ_FILE, RUN_TESTS]),
        (("read_", "read_file"), [READ_FILE]),
    ],
)
def test_any_other_change_of_a_name_is_a_failure(parts, tools):
    events = [*(call("call_a", part) for part in parts), call(arguments=ARGUMENTS), END]
    failure = rejected("chat", events, Catalog(tools))
    assert isinstance(failure, ProtocolViolation)
    assert "expected the name" in failure.reason


def test_a_name_is_not_joined_once_its_arguments_began():
    events = [call("call_a", "read_", "{"), call("call_a", "file", "}"), END]
    assert "expected the name" in rejected("chat", events).reason


def test_without_a_catalog_no_name_is_joined():
    events = [call("call_a", "read_"), call("call_a", "file", ARGUMENTS), END]
    assert "expected the name" in rejected("chat", events, None).reason


def test_half_a_name_is_no_tool():
    failure = rejected("chat", [call("call_a", "read_"), call(arguments=ARGUMENTS), END])
    assert failure.check == "exposed"


def test_a_call_that_never_gets_a_name_is_a_failure():
    assert rejected("chat", [call("call_a"), END]).check == "call_ids"
    assert "before it has a name" in rejected("chat", [call("call_a", None, "{}"), END]).reason


# ------------------------------------------------------------------------------ how it completes


def test_stop_with_calls_is_what_a_forced_tool_gives():
    assert released("chat", one_call(reason="stop")).calls == ONE


def test_a_text_completes_with_stop():
    outcome = released("chat", [text("Both "), text("are fine."), STOP])
    assert (outcome.decision.text, outcome.calls) == ("Both are fine.", [])
    assert outcome.decision.response_id == "chat_1"


@pytest.mark.parametrize("done", [False, True])
def test_it_completes_at_the_clean_end_with_or_without_a_done_marker(done):
    outcome = released("chat", one_call(), done=done)
    assert outcome.calls == ONE


def test_nothing_is_released_before_the_end():
    seen = []
    outcome = released("chat", [*one_call(), usage_chunk()], report=seen.append)
    assert type(seen[-1]).__name__ == "Completed"
    assert outcome.reader.events == len(one_call()) + 1


@pytest.mark.parametrize("reason", ["length", "content_filter", "function_call", "cancelled"])
def test_any_other_finish_reason_completes_nothing(reason):
    failure = rejected("chat", one_call(reason=reason))
    assert isinstance(failure, ProviderStopped)
    assert (failure.check, reason in failure.reason) == ("completed", True)


def test_the_token_limit_is_told_apart():
    assert rejected("chat", one_call(reason="length")).cut_by_length
    assert not rejected("chat", one_call(reason="content_filter")).cut_by_length


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("reason", [None, ""])
def test_without_a_finish_reason_it_was_cut(done, reason):
    failure = rejected("chat", one_call(reason=reason), done=done)
    assert isinstance(failure, StreamCut)


def test_an_empty_finish_reason_on_every_chunk_is_none_yet():
    events = [chunk({"content": "Hi"}, ""), chunk({"content": " there."}, ""), STOP]
    assert released("chat", events).decision.text == "Hi there."


def test_tool_calls_without_a_call_is_a_failure():
    failure = rejected("chat", [text("I call it now."), END])
    assert (failure.check, "none came" in failure.reason) == ("completed", True)


@pytest.mark.parametrize("reason", [True, 3, ["stop"], {}])
def test_a_finish_reason_is_text(reason):
    assert isinstance(rejected("chat", one_call(reason=reason)), ProtocolViolation)


@pytest.mark.parametrize(
    "more",
    [
        text("and more"),
        call("call_b", "run_tests", "{}"),
        call(arguments=" "),
        chunk({"refusal": "no"}),
        chunk({"reasoning_content": "hm"}),
        chunk(reason="length"),
        chunk(reason="stop"),
        chunk({"function_call": {"name": "x"}}),
    ],
)
def test_data_after_the_finish_reason_is_a_failure(more):
    failure = rejected("chat", [*one_call(), more])
    assert isinstance(failure, ProtocolViolation)
    assert "after finish reason" in failure.reason


@pytest.mark.parametrize(
    "more", [END, chunk({"role": "assistant", "content": ""}), chunk({}), usage_chunk()]
)
def test_nothing_new_after_the_finish_reason_is_no_failure(more):
    assert released("chat", [*one_call(), more]).calls == ONE


def test_every_prefix_releases_nothing():
    events = one_call()
    for length in range(len(events)):
        assert rejected("chat", events[:length], done=False).event == length


# ------------------------------------------------------------------------- choices and chunks


def test_a_second_choice_is_a_failure():
    choices = [{"index": 0, "delta": {}}, {"index": 1, "delta": {}}]
    assert "a second one" in rejected("chat", [chunk(choices=choices), STOP]).reason
    alone = [{"index": 1, "delta": {"content": "x"}}]
    assert "a second one" in rejected("chat", [chunk(choices=alone), STOP]).reason


@pytest.mark.parametrize("choices", ["x", {"index": 0}, [None], ["x"], [[]]])
def test_choices_are_a_list_of_objects(choices):
    assert isinstance(rejected("chat", [chunk(choices=choices), STOP]), ProtocolViolation)


def test_the_retired_function_call_is_a_failure():
    failure = rejected("chat", [chunk({"function_call": {"name": "read_file"}}), STOP])
    assert "function_call" in failure.reason


@pytest.mark.parametrize("kind", ["custom", "mcp"])
def test_a_call_of_another_kind_is_a_failure(kind):
    other = {"index": 0, "id": "call_a", "type": kind, kind: {"name": "x"}}
    assert kind in rejected("chat", [chunk({"tool_calls": [other]}), END]).reason


def test_a_null_delta_says_nothing():
    null = {"id": "chat_1", "choices": [{"index": 0, "delta": None, "finish_reason": None}]}
    assert released("chat", [null, *one_call(), null]).calls == ONE


def test_a_first_chunk_without_choices_and_with_an_empty_id():
    filtered = {"id": "", "object": "", "choices": [], "prompt_filter_results": []}
    outcome = released("chat", [filtered, *one_call()])
    assert (outcome.calls, outcome.decision.response_id) == (ONE, "chat_1")


def test_an_id_that_changes_on_every_chunk_is_one_response_where_that_is_tolerated():
    events = [{**event, "id": f"chat_{n}"} for n, event in enumerate(one_call())]
    assert rejected("chat", events).check == "response_id"
    outcome = released("chat", events, compat=["rotating-ids"])
    assert (outcome.calls, outcome.decision.response_id) == (ONE, "chat_0")
    findings = {finding.check: finding for finding in outcome.reader.assembly.findings()}
    assert findings["response_id"].status == "not_applicable"


ADDS = {
    "content": {"content": "x"},
    "content in parts": {"content": [{"type": "text", "text": "x"}]},
    "refusal": {"refusal": "x"},
    "reasoning": {"reasoning": "x"},
    "reasoning content": {"reasoning_content": "x"},
    "a call": {"tool_calls": [fragment("call_z", "run_tests", "{}", index=7)]},
    "a fragment": {"tool_calls": [fragment(arguments=" ")]},
    "a field that is not known": {"audio": {"data": "x"}},
    "a finish reason": {},
}


@pytest.mark.parametrize("other", ["chat_2", "chat_1 ", 7, True, ["chat_1"], {"id": "chat_1"}])
@pytest.mark.parametrize("what", ADDS)
def test_what_adds_to_a_response_has_its_id(what, other):
    reason = "tool_calls" if what == "a finish reason" else None
    foreign = {**chunk(ADDS[what], reason), "id": other}
    events = one_call()
    for place in range(2, len(events) + 1):
        failure = rejected("chat", [*events[:place], foreign, *events[place:]])
        assert (failure.check, failure.event) == ("response_id", place + 1)


@pytest.mark.parametrize("other", ["chat_2", "", None, 7])
def test_what_adds_nothing_may_have_any_id_and_is_not_compared(other):
    events = one_call()
    for extra in (usage_chunk(), chunk(), {"id": "x", "choices": [], "prompt_filter_results": []}):
        for place in range(1, len(events) + 1):
            foreign = {**extra, "id": other}
            assert released("chat", [*events[:place], foreign, *events[place:]]).calls == ONE


def test_the_id_agrees_only_where_a_later_chunk_restates_it():
    events = one_call()
    for silent in ("", None):
        later = [{**event, "id": silent} for event in events[1:]]
        outcome = released("chat", [events[0], *later])
        findings = {f.check: f.status for f in outcome.reader.assembly.findings()}
        assert findings["response_id"] == "not_applicable"
        outcome = released("chat", [events[0], *later[:-1], events[-1]])
        findings = {f.check: f.status for f in outcome.reader.assembly.findings()}
        assert findings["response_id"] == "pass"


@pytest.mark.parametrize("call_id", ["text", "refusal", "reasoning", "block/0", "chat_1"])
def test_a_call_may_have_any_id(call_id):
    events = [text("Hi."), call(call_id, "run_tests", "{}"), END]
    outcome = released("chat", events)
    assert outcome.calls == [(call_id, "run_tests", {})]
    assert outcome.decision.text == "Hi."
    assert Replay(Capture.from_events(events)).run().trace.decision is not None


def test_a_response_without_any_id_never_opened():
    events = [{**event, "id": None} for event in one_call()]
    assert rejected("chat", events).check == "opened"


@pytest.mark.parametrize("calls", [{}, "x", [None], ["x"]])
def test_tool_calls_are_a_list_of_objects(calls):
    assert isinstance(rejected("chat", [chunk({"tool_calls": calls})]), ProtocolViolation)


@pytest.mark.parametrize("form", ["message", "text"])
def test_what_is_no_stream_of_this_api_is_no_empty_answer(form):
    whole = {"role": "assistant", "content": "All done."} if form == "message" else "All done."
    event = {"id": "c", "choices": [{"index": 0, form: whole, "finish_reason": "stop"}]}
    assert f"saw a whole {form}" in rejected("chat", [event]).reason


def test_a_keep_alive_shows_nothing():
    reader = read("chat", one_call()).reader
    assert not reader.step({"id": "chat_1", "choices": []}).meaningful
    assert reader.step(text("x")).meaningful
    assert reader.step(usage_chunk()).meaningful


# --------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"error": {"message": "overloaded", "code": "busy"}}, "overloaded"),
        ({"error": "overloaded"}, "overloaded"),
        ({"error": {}}, "no reason given"),
        ({"object": "error", "message": "overloaded", "code": 503}, "overloaded"),
        ({"type": "error", "message": "overloaded"}, "overloaded"),
        ({"message": "overloaded", "code": "busy"}, "overloaded"),
        ({**text("x"), "error": {"message": "overloaded"}}, "overloaded"),
    ],
)
@pytest.mark.parametrize("at", [0, 2, -1])
def test_an_error_object_ends_it_nested_or_flat_wherever_it_stands(event, told, at):
    events = one_call()
    events = [*events, event] if at < 0 else [*events[:at], event, *events[at:]]
    failure = rejected("chat", events)
    assert isinstance(failure, ProviderStopped)
    assert told in failure.reason


def test_what_was_billed_is_on_the_failure():
    events = [{**event, "usage": usage_chunk(10, n)["usage"]} for n, event in enumerate(one_call())]
    assert rejected("chat", events[:3], done=False).usage == Usage(10, None, 2, None)
    assert rejected("chat", [*events[:3], {"error": {}}]).usage == Usage(10, None, 2, None)
    assert rejected("chat", one_call()[:3], done=False).usage is None


# ------------------------------------------------------------------------------ text and usage


def test_a_refusal_is_told_apart_from_an_answer():
    seen = []
    events = [chunk({"refusal": "I will "}), chunk({"refusal": "not."}), STOP]
    outcome = released("chat", events, report=seen.append)
    assert (outcome.decision.refusal, outcome.decision.text) == ("I will not.", "")
    assert any(isinstance(event, RefusalDelta) for event in seen)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_is_never_part_of_the_answer(name):
    seen = []
    events = [chunk({name: "Let me see. "}), text("Fine."), STOP]
    outcome = released("chat", events, report=seen.append)
    assert outcome.decision.text == "Fine."
    assert [e.text for e in seen if isinstance(e, ReasoningDelta)] == ["Let me see. "]


def test_content_as_a_list_of_parts():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = [
        thinking,
        {"type": "text", "text": "Fine"},
        {"type": "reference", "reference_ids": [1]},
    ]
    seen = []
    outcome = released("chat", [chunk({"content": parts}), text("."), STOP], report=seen.append)
    assert outcome.decision.text == "Fine."
    assert [e.text for e in seen if isinstance(e, ReasoningDelta)] == ["Hm."]
    assert [e.text for e in seen if isinstance(e, TextDelta)] == ["Fine", "."]


@pytest.mark.parametrize("part", ["x", None, {"type": "image_url"}, {"type": "text", "text": 1}])
def test_a_content_part_of_another_kind_is_a_failure(part):
    assert isinstance(rejected("chat", [chunk({"content": [part]}), STOP]), ProtocolViolation)


@pytest.mark.parametrize("content", [{"text": "x"}, 7, True])
def test_content_is_text_or_a_list(content):
    assert isinstance(rejected("chat", [chunk({"content": content}), STOP]), ProtocolViolation)


def test_usage_in_a_last_chunk_without_choices():
    decision = released("chat", [*one_call(), usage_chunk(120, 33, 64, 5)]).decision
    assert decision.usage == Usage(120, 64, 33, 5)


def test_usage_in_every_chunk_is_never_summed():
    events = [{**event, "usage": usage_chunk(10, n)["usage"]} for n, event in enumerate(one_call())]
    assert released("chat", events).decision.usage == Usage(10, None, len(events) - 1, None)


def test_the_last_usage_that_is_not_null_counts():
    events = [{**event, "usage": None} for event in one_call()]
    events[1]["usage"] = {"prompt_tokens": 0, "completion_tokens": 0}
    events[3]["usage"] = {"prompt_tokens": 10, "completion_tokens": 9}
    assert released("chat", events).decision.usage == Usage(10, None, 9, None)


def test_a_missing_usage_is_none_and_never_zero():
    assert released("chat", one_call()).decision.usage is None
    blank = {**one_call()[-1], "usage": {"prompt_tokens": None, "prompt_tokens_details": None}}
    assert released("chat", [*one_call()[:-1], blank]).decision.usage == Usage()


# ----------------------------------------------------------------- several responses of a capture


def sse(*events):
    lines = ("[DONE]" if event is None else json.dumps(event) for event in events)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def renamed(events, response_id):
    return [{**event, "id": response_id} for event in events]


def test_a_capture_is_split_at_done():
    capture = Capture.from_bytes(sse(*one_call(), None, *one_call(), usage_chunk(), None))
    assert capture.provider == "chat"
    assert [len(r.events) for r in capture.responses] == [len(one_call()), len(one_call()) + 1]
    assert [r.done_marker for r in capture.responses] == [True, True]
    assert capture.notes == ()


def test_a_capture_is_split_at_a_new_id_after_a_finish_reason():
    second = renamed(one_call(), "chat_2")
    capture = Capture.from_bytes(sse(*one_call(), usage_chunk(), *second))
    assert [len(r.events) for r in capture.responses] == [len(one_call()) + 1, len(second)]
    for response in capture.responses:
        assert released("chat", [e.data for e in response.events], done=False).calls == ONE


def test_a_capture_is_not_split_where_only_the_usage_has_another_id():
    last = {**usage_chunk(), "id": "chat_2"}
    capture = Capture.from_bytes(sse(*one_call(), last))
    assert [len(r.events) for r in capture.responses] == [len(one_call()) + 1]


def test_a_capture_is_not_split_at_ids_that_change_before_the_finish_reason():
    events = [{**event, "id": f"chat_{n}"} for n, event in enumerate(one_call())]
    assert len(Capture.from_bytes(sse(*events)).responses) == 1


# ---------------------------------------------------------------------------- through a transport


def playback(*events, pauses=None):
    (response,) = Capture.from_bytes(sse(*events)).responses
    return Playback(response, pauses or {})


async def test_done_ends_it_though_the_connection_stays_open():
    clock = MockClock()
    script = [playback(*one_call(), usage_chunk(120, 33), None, pauses={len(one_call()) + 2: 99.0})]
    transport = ReplayTransport(script, clock)
    model = StreamingModel(transport, "m", provider="chat", clock=clock)
    decision = await model.complete([user("Read it.")], TOOLS)
    assert decision.usage == Usage(120, None, 33, None)
    assert (clock.now(), transport.opened, transport.closed) == (0.0, 1, 1)


async def test_without_done_the_usage_is_awaited_for_a_bounded_time():
    clock = MockClock()
    script = [playback(*one_call(), pauses={len(one_call()) + 1: 99.0})]
    transport = ReplayTransport(script, clock)
    model = StreamingModel(transport, "m", provider="chat", clock=clock)
    decision = await model.complete([user("Read it.")], TOOLS)
    assert (decision.usage, len(decision.calls)) == (None, 1)
    assert (clock.now(), transport.opened, transport.closed) == (Timers().trailing, 1, 1)


async def test_the_sdk_opens_it_and_the_same_rules_read_it():
    with LoopbackServer(
        Reply(body=sse(*one_call(), usage_chunk(120, 33), None)).split_every(7)
    ) as server:
        transport = OpenAITransport(
            provider="chat", api_key="sk-test-key", base_url=server.base_url
        )
        model = StreamingModel(transport, "m", provider="chat")
        with anyio.fail_after(20):
            decision = await model.complete([user("Read it.")], TOOLS)
        await transport.aclose()
    assert [(c.call_id, c.name) for c in decision.calls] == [("call_a", "read_file")]
    assert decision.usage == Usage(120, None, 33, None)
    assert server.requests[0].path.endswith("/chat/completions")
    assert server.requests[0].body["stream_options"] == {"include_usage": True}

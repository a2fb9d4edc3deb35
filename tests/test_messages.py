"""Messages: blocks by index, and only message_stop with a reason that agrees completes."""

import json

import pytest
from wires import (
    ARGUMENTS,
    TOOLS,
    block,
    message_end,
    message_start,
    one_call,
    one_tool,
    read,
    rejected,
    released,
    text_block,
    tool_block,
)

from agentlib import Catalog, ToolResult, ToolSpec, Usage, user
from agentlib.failures import GateRejected, ProtocolViolation, ProviderStopped, StreamCut
from agentlib.jsonvalues import FrozenObject
from agentlib.providers.messages_request import encode_request
from agentlib.recordings.capture import Capture
from agentlib.vocabulary import ReasoningDelta

PING = {"type": "ping"}
ONE = [("toolu_a", "read_file", {"path": "src/app.py"})]
THINKING = {"type": "thinking", "thinking": "", "signature": ""}


def thought(index, *pieces):
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    return block(index, THINKING, *deltas, {"type": "signature_delta", "signature": "c2ln"})


# --------------------------------------------------------------------------------------- blocks


def test_a_text_and_a_call():
    outcome = released("messages", one_tool())
    assert (outcome.decision.text, outcome.calls) == ("Looking at it.", ONE)
    assert outcome.decision.response_id == "msg_1"


def test_every_split_of_the_input_is_the_same_call():
    for at in range(len(ARGUMENTS) + 1):
        block = tool_block(0, "toolu_a", "read_file", ARGUMENTS[:at], ARGUMENTS[at:])
        assert (
            released("messages", [message_start(), *block, *message_end("tool_use")]).calls == ONE
        )


def test_texts_are_joined_in_the_order_of_their_blocks():
    events = [
        message_start(),
        *text_block(0, "One. "),
        *text_block(1, "Two."),
        *message_end("end_turn"),
    ]
    assert released("messages", events).decision.text == "One. Two."


def test_a_text_may_stand_in_the_start_of_its_block():
    first = block(0, {"type": "text", "text": "Fine"}, {"type": "text_delta", "text": "."})
    events = [message_start(), *first, *message_end("end_turn")]
    assert released("messages", events).decision.text == "Fine."


def test_several_calls_keep_their_order():
    calls = [
        *tool_block(0, "toolu_b", "run_tests"),
        *tool_block(1, "toolu_a", "read_file", ARGUMENTS),
    ]
    outcome = released("messages", [message_start(), *calls, *message_end("tool_use")])
    assert outcome.calls == [("toolu_b", "run_tests", {}), *ONE]


def test_pings_and_unknown_kinds_are_progress_at_most():
    unknown = {"type": "something_new", "index": 9, "delta": {"type": "text_delta"}}
    events = [e for event in one_tool() for e in (PING, event, unknown)]
    assert released("messages", events).calls == ONE
    reader = read("messages", one_tool()).reader
    assert not reader.step(PING).meaningful
    assert not reader.step(unknown).meaningful
    assert reader.step(message_start()).meaningful


def test_a_delta_of_an_unknown_kind_says_nothing():
    citation = {"type": "citations_delta", "citation": {"cited_text": "x"}}
    first = block(
        0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Fine."}, citation
    )
    events = [message_start(), *first, *message_end("end_turn")]
    assert released("messages", events).decision.text == "Fine."


def test_a_call_without_any_fragment_has_the_empty_input():
    events = [message_start(), *tool_block(0, "toolu_b", "run_tests"), *message_end("tool_use")]
    assert released("messages", events).calls == [("toolu_b", "run_tests", {})]
    empty = tool_block(0, "toolu_b", "run_tests", "", "")
    assert released("messages", [message_start(), *empty, *message_end("tool_use")]).calls == [
        ("toolu_b", "run_tests", {})
    ]


def test_the_empty_input_still_has_to_fit_the_schema():
    events = [message_start(), *tool_block(0, "toolu_a", "read_file"), *message_end("tool_use")]
    assert rejected("messages", events).check == "schema"


def test_the_empty_input_counts_only_once_its_block_is_closed():
    unclosed = tool_block(0, "toolu_b", "run_tests", stop=False)
    failure = rejected("messages", [message_start(), *unclosed, *message_end("tool_use")])
    assert "not closed" in failure.reason


@pytest.mark.parametrize(
    ("arguments", "check"),
    [
        (ARGUMENTS[:-1], "strict_json"),
        (ARGUMENTS + "}", "strict_json"),
        ('{"path": "/safe", "path": "/danger"}', "strict_json"),
        ("[]", "object"),
        ("null", "object"),
        ('{"path": 1}', "schema"),
    ],
)
def test_the_gate_judges_the_input(arguments, check):
    call = tool_block(0, "toolu_a", "read_file", arguments)
    failure = rejected("messages", [message_start(), *call, *message_end("tool_use")])
    assert (type(failure), failure.check) == (GateRejected, check)


def test_a_tool_that_is_not_exposed_is_refused():
    call = tool_block(0, "toolu_a", "remove", "{}")
    failure = rejected("messages", [message_start(), *call, *message_end("tool_use")])
    assert failure.check == "exposed"


def test_an_input_that_stands_whole_in_the_start_is_refused():
    content = {"type": "tool_use", "id": "toolu_a", "name": "read_file", "input": {"path": "a"}}
    failure = rejected("messages", [message_start(), *block(0, content), *message_end("tool_use")])
    assert "saw a whole one" in failure.reason


def test_a_call_that_a_hosted_program_made_is_refused():
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    content = {"type": "tool_use", "id": "toolu_a", "name": "run_tests", "input": {}}
    for who, fine in ((caller, False), ({"type": "direct"}, True), (None, True)):
        call = block(0, {**content, "caller": who})
        outcome = read("messages", [message_start(), *call, *message_end("tool_use")])
        assert (outcome.failure is None) is fine
        assert fine or outcome.failure.check == "replayable"


OF_A_PROGRAM = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}


def made_by(caller, **fields):
    content = {"type": "tool_use", "id": "toolu_a", "name": "read_file", "input": {"path": "a.py"}}
    return {**content, "caller": caller, **fields}


def test_the_whole_call_of_a_hosted_program_is_released_and_keeps_its_caller():
    call = block(0, made_by(OF_A_PROGRAM))
    events = [message_start(), *call, *message_end("tool_use")]
    outcome = released("messages", events, native=True)
    assert outcome.calls == [("toolu_a", "read_file", {"path": "a.py"})]
    assert outcome.decision.calls[0].caller == OF_A_PROGRAM
    history = [user("Go."), outcome.decision.message(), ToolResult("toolu_a", "It is empty.")]
    body = encode_request("m", history, TOOLS)
    assert body["messages"][1]["content"] == [made_by(OF_A_PROGRAM)]
    assert released("messages", one_tool(), native=True).decision.calls[0].caller is None


def test_a_further_call_of_a_hosted_program_comes_in_the_start_of_its_message():
    further = made_by(OF_A_PROGRAM, id="toolu_b")
    start = message_start(content=[made_by(OF_A_PROGRAM), further], stop_reason="tool_use")
    outcome = released("messages", [start, {"type": "message_stop"}], native=True)
    assert [call[0] for call in outcome.calls] == ["toolu_a", "toolu_b"]
    assert rejected("messages", [start], native=True).check == "completed"


@pytest.mark.parametrize(
    "content",
    [
        [made_by(None)],
        [made_by({"type": "direct"})],
        [made_by(OF_A_PROGRAM), {"type": "text", "text": "Hi."}],
        [made_by(OF_A_PROGRAM, input="{}")],
        [made_by(OF_A_PROGRAM, input=[1])],
        {"type": "text"},
        "Hi.",
    ],
)
def test_no_other_content_comes_in_the_start_of_a_message(content):
    start = message_start(content=content, stop_reason="tool_use")
    assert rejected("messages", [start, {"type": "message_stop"}], native=True)


@pytest.mark.parametrize("reason", [None, "end_turn", "max_tokens", "pause_turn", 7])
def test_the_whole_content_of_a_start_ends_for_its_reason_and_no_other(reason):
    start = message_start(content=[made_by(OF_A_PROGRAM)], stop_reason=reason)
    assert rejected("messages", [start, {"type": "message_stop"}], native=True)


def test_the_whole_input_of_a_program_does_not_go_on():
    delta = {"type": "input_json_delta", "partial_json": "{}"}
    call = block(0, made_by(OF_A_PROGRAM), delta)
    failure = rejected("messages", [message_start(), *call], native=True)
    assert "goes on" in failure.reason


@pytest.mark.parametrize("arguments", ["null", " null "])
def test_null_is_no_arguments_where_the_tool_takes_none(arguments):
    def ask(name):
        call = tool_block(0, "toolu_a", name, arguments)
        return read("messages", [message_start(), *call, *message_end("tool_use")])

    assert ask("run_tests").calls == [("toolu_a", "run_tests", {})]
    assert ask("read_file").failure.check == "object"


# ------------------------------------------------------------------------------- the lifecycle


@pytest.mark.parametrize("at", range(len(one_tool())))
def test_every_prefix_releases_nothing(at):
    failure = rejected("messages", one_tool()[:at])
    assert isinstance(failure, StreamCut)
    assert failure.event == at


@pytest.mark.parametrize("at", range(len(one_tool())))
def test_every_lost_event_but_a_text_and_an_empty_fragment_is_noticed(at):
    events = one_tool()
    lost = events.pop(at)
    delta = lost.get("delta", {})
    unseen = delta.get("type") == "text_delta" or delta.get("partial_json") == ""
    assert (read("messages", events).failure is None) is unseen


@pytest.mark.parametrize("at", range(len(one_tool()) - 1))
def test_every_pair_of_neighbours_that_changes_places_releases_nothing_else(at):
    events = one_tool()
    events[at], events[at + 1] = events[at + 1], events[at]
    outcome = read("messages", events)
    assert outcome.failure is not None or outcome.calls == ONE


def test_nothing_may_come_before_the_message():
    for early in (*one_tool()[1:3], *message_end("end_turn")):
        failure = rejected("messages", [early, *one_tool()])
        assert (failure.check, failure.event) == ("opened", 1)
    assert released("messages", [PING, *one_tool()]).calls == ONE


def test_a_second_message_start_is_a_failure():
    for at in range(1, len(one_tool())):
        events = one_tool()
        events.insert(at, message_start())
        assert rejected("messages", events).check == "opened"


def test_a_message_needs_an_id():
    events = [message_start(""), *one_tool()[1:]]
    assert rejected("messages", events).check == "opened"
    events = [message_start(None), *one_tool()[1:]]
    assert isinstance(rejected("messages", events), ProtocolViolation)


def test_content_that_stands_whole_in_the_message_is_refused_and_not_lost():
    content = [{"type": "tool_use", "id": "toolu_a", "name": "run_tests", "input": {}}]
    start = message_start(content=content, stop_reason="tool_use")
    for rest in ([{"type": "message_stop"}], [*text_block(0, "x"), *message_end("end_turn")]):
        assert "whole in message_start" in rejected("messages", [start, *rest]).reason


def test_a_block_that_is_not_closed_is_a_failure():
    events = [event for event in one_tool() if event["type"] != "content_block_stop"]
    assert "not closed at message_stop" in rejected("messages", events).reason


@pytest.mark.parametrize("index", [None, "0", 0.0, True, -1])
def test_an_index_is_a_whole_number_that_is_known(index):
    for at in (1, 2, 4):
        events = one_tool()
        events[at] = {**events[at], "index": index}
        assert isinstance(rejected("messages", events), ProtocolViolation)


def test_a_block_starts_and_stops_once():
    for at in (1, 4):
        events = one_tool()
        events.insert(at, events[at])
        assert isinstance(rejected("messages", events), ProtocolViolation)


def test_a_block_goes_on_only_between_its_start_and_its_stop():
    start, delta, stop = text_block(0, "x")
    for events in ([delta, start, stop], [start, stop, delta], [start, stop, stop]):
        stream = [message_start(), *events, *message_end("end_turn")]
        assert isinstance(rejected("messages", stream), ProtocolViolation)


@pytest.mark.parametrize(
    ("content", "delta"),
    [
        ({"type": "text", "text": ""}, {"type": "input_json_delta", "partial_json": "{}"}),
        ({"type": "text", "text": ""}, {"type": "thinking_delta", "thinking": "hm"}),
        (THINKING, {"type": "input_json_delta", "partial_json": "{}"}),
        (THINKING, {"type": "text_delta", "text": "x"}),
        ({"type": "tool_use", "id": "t", "name": "run_tests"}, {"type": "text_delta", "text": "x"}),
    ],
)
def test_a_delta_has_the_kind_of_its_block(content, delta):
    reason = "tool_use" if content["type"] == "tool_use" else "end_turn"
    events = [message_start(), *block(0, content, delta), *message_end(reason)]
    assert "expected a" in rejected("messages", events, native=True).reason


def test_a_call_id_stands_once():
    calls = [*tool_block(0, "toolu_b", "run_tests"), *tool_block(1, "toolu_b", "run_tests")]
    failure = rejected("messages", [message_start(), *calls, *message_end("tool_use")])
    assert failure.check == "call_ids"


@pytest.mark.parametrize(
    ("call_id", "name"), [("", "run_tests"), ("t", ""), (None, "run_tests"), ("t", None), (1, "x")]
)
def test_a_call_needs_an_id_and_a_name(call_id, name):
    call = tool_block(0, call_id, name)
    failure = rejected("messages", [message_start(), *call, *message_end("tool_use")])
    assert isinstance(failure, ProtocolViolation)


@pytest.mark.parametrize("event", [*text_block(2, "x"), one_tool()[2]])
def test_content_after_the_stop_reason_is_a_failure(event):
    events = one_tool()
    events.insert(-1, event)
    assert isinstance(rejected("messages", events), ProtocolViolation)


def test_what_follows_message_stop_is_not_read():
    outcome = released("messages", [*one_tool(), *one_tool()])
    assert (outcome.calls, outcome.reader.unread) == (ONE, len(one_tool()))


# ---------------------------------------------------------------------------- how it completes


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence"])
def test_a_text_completes_with_a_reason_that_holds_no_call(reason):
    events = [message_start(), *text_block(0, "Fine."), *message_end(reason)]
    assert released("messages", events).decision.text == "Fine."


def test_an_empty_answer_is_an_answer():
    assert released("messages", [message_start(), *message_end("end_turn")]).decision.text == ""


@pytest.mark.parametrize(
    "reason", ["max_tokens", "pause_turn", "refusal", "model_context_window_exceeded", "new_reason"]
)
def test_any_other_stop_reason_completes_nothing(reason):
    failure = rejected("messages", one_tool(reason))
    assert isinstance(failure, ProviderStopped)
    assert (failure.check, reason in failure.reason) == ("completed", True)
    assert failure.cut_by_length is (reason == "max_tokens")
    assert failure.usage == Usage(120, None, 30, 0)


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence"])
def test_a_reason_without_calls_beside_a_call_is_a_failure(reason):
    failure = rejected("messages", one_tool(reason))
    assert (failure.check, "it holds calls" in failure.reason) == ("completed", True)


def test_tool_use_without_a_call_is_a_failure():
    failure = rejected("messages", [message_start(), *text_block(0, "x"), *message_end("tool_use")])
    assert (failure.check, "it holds no call" in failure.reason) == ("completed", True)


def test_a_message_without_a_stop_reason_is_a_failure():
    assert "without a stop reason" in rejected("messages", one_tool(None)).reason
    assert (
        "without a stop reason" in rejected("messages", [*one_tool()[:-2], one_tool()[-1]]).reason
    )


def test_a_stop_reason_does_not_change():
    events = one_tool()
    events.insert(-1, message_end("end_turn")[0])
    assert "changed to" in rejected("messages", events).reason
    events = one_tool()
    events.insert(-1, message_end(None)[0])
    events.insert(-1, message_end("tool_use")[0])
    assert released("messages", events).calls == ONE


@pytest.mark.parametrize("reason", [1, True, ["tool_use"], {}])
def test_a_stop_reason_is_text(reason):
    assert isinstance(rejected("messages", one_tool(reason)), ProtocolViolation)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "overloaded"),
        ({"type": "error", "message": "busy"}, "busy"),
        ({"error": {"message": "busy"}}, "busy"),
        ({"type": "error"}, "no reason given"),
    ],
)
@pytest.mark.parametrize("at", [0, 3, len(one_tool()) - 1])
def test_an_error_ends_it_wherever_it_stands(error, told, at):
    failure = rejected("messages", [*one_tool()[:at], error])
    assert isinstance(failure, ProviderStopped)
    assert told in failure.reason
    assert failure.usage == (Usage(120, None, 1, 0) if 0 < at < 9 else failure.usage)


# -------------------------------------------------------------------------- reasoning and hosted


def test_thinking_is_never_part_of_the_answer():
    seen = []
    events = [
        message_start(),
        *thought(0, "Let me ", "see."),
        *text_block(1, "Fine."),
        *message_end("end_turn"),
    ]
    outcome = released("messages", events, native=True, report=seen.append)
    assert outcome.decision.text == "Fine."
    assert [e.text for e in seen if isinstance(e, ReasoningDelta)] == ["Let me ", "see."]


@pytest.mark.parametrize(
    "content",
    [
        THINKING,
        {"type": "redacted_thinking", "data": "x"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ],
)
def test_what_only_the_provider_understands_is_refused_in_the_portable_form(content):
    events = [
        message_start(),
        *block(0, content),
        *text_block(1, "Fine."),
        *message_end("end_turn"),
    ]
    assert rejected("messages", events).check == "replayable"
    assert released("messages", events, native=True).decision.text == "Fine."


def test_the_input_of_a_hosted_tool_is_no_call_of_ours():
    content = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "read_file", "input": {}}
    hosted = block(0, content, {"type": "input_json_delta", "partial_json": ARGUMENTS})
    events = [message_start(), *hosted, *text_block(1, "Fine."), *message_end("end_turn")]
    assert released("messages", events, native=True).calls == []


# ---------------------------------------------------------------------------------------- usage


def test_the_last_cumulative_usage_counts_with_its_cache_reads():
    start = message_start(
        usage={"input_tokens": 120, "cache_read_input_tokens": 64, "output_tokens": 1}
    )
    middle = message_end(None, {"output_tokens": 20})[0]
    events = [start, *one_tool()[1:-2], middle, *message_end("tool_use", {"output_tokens": 33})]
    assert released("messages", events).decision.usage == Usage(120, 64, 33, 0)


def test_a_later_usage_replaces_what_it_reports_and_nothing_else():
    start = message_start(
        usage={"input_tokens": 1, "cache_read_input_tokens": 64, "output_tokens": 1}
    )
    last = {"input_tokens": 120, "cache_read_input_tokens": None, "output_tokens": 33}
    events = [start, *one_tool()[1:-2], *message_end("tool_use", last)]
    assert released("messages", events).decision.usage == Usage(120, 64, 33, 0)


def test_a_missing_usage_is_none_and_never_zero():
    events = [message_start(usage={}), *one_tool()[1:-2], *message_end("tool_use", {})]
    assert released("messages", events).decision.usage is None


def test_the_tokens_of_thinking_are_known_only_where_they_are_reported():
    def usage(last):
        events = [message_start(), *thought(0, "hm"), *message_end("end_turn", last)]
        return released("messages", events, native=True).decision.usage

    assert usage({"output_tokens": 30}).reasoning_tokens is None
    reported = {"output_tokens": 30, "output_tokens_details": {"thinking_tokens": 12}}
    assert usage(reported) == Usage(120, None, 30, 12)


def test_what_was_billed_is_on_the_failure():
    assert rejected("messages", one_tool()[:4]).usage == Usage(120, None, 1, 0)
    assert rejected("messages", [*one_tool()[:4], message_start()]).usage == Usage(120, None, 1, 0)


# ----------------------------------------------------------------- several messages of a capture


def sse(*events):
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


def test_a_capture_is_split_at_message_start_after_message_stop():
    second = [message_start("msg_2"), *one_tool()[1:]]
    capture = Capture.from_bytes(sse(*one_tool(), PING, *second))
    assert capture.provider == "messages"
    assert [len(r.events) for r in capture.responses] == [len(one_tool()) + 1, len(second)]
    for number, response in enumerate(capture.responses, 1):
        decision = released("messages", [e.data for e in response.events]).decision
        assert decision.response_id == f"msg_{number}"


def test_a_capture_is_split_after_an_error_too():
    error = {"type": "error", "error": {"type": "overloaded_error"}}
    capture = Capture.from_bytes(sse(*one_tool()[:4], error, *one_tool()))
    assert [len(r.events) for r in capture.responses] == [5, len(one_tool())]


def test_a_message_start_before_message_stop_stays_with_its_message_and_fails_it():
    capture = Capture.from_bytes(sse(*one_tool()[:4], *one_tool()))
    (response,) = capture.responses
    assert rejected("messages", [e.data for e in response.events]).check == "opened"


def test_a_tool_with_only_optional_parameters_takes_the_empty_input():
    schema = {"type": "object", "properties": {"depth": {"type": "integer"}}}
    tools = Catalog([ToolSpec("list", "List.", FrozenObject(schema))])
    events = [message_start(), *tool_block(0, "toolu_a", "list"), *message_end("tool_use")]
    assert released("messages", events, tools).calls == [("toolu_a", "list", {})]


# ------------------------------------------------------------- unknown is progress, save in a call


UNKNOWN_DELTAS = ["text_delta", "thinking_delta", "signature_delta", "citations_delta", "", "new"]


@pytest.mark.parametrize("kind", [*UNKNOWN_DELTAS, None, 7, [], {}])
def test_a_call_is_made_of_its_own_deltas_alone(kind):
    events = one_tool()
    inside = [n for n, e in enumerate(events) if e.get("index") == 1]
    delta = {"type": kind, "text": "", "thinking": "", "partial_json": ""}
    event = {"type": "content_block_delta", "index": 1, "delta": delta}
    for place in inside[1:]:
        failure = rejected("messages", [*events[:place], event, *events[place:]])
        assert (failure.check, failure.event) == ("lifecycle", place + 1)


def test_an_unknown_delta_elsewhere_is_progress():
    events = one_tool()
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "new", "x": 1}}
    assert released("messages", [*events[:2], delta, *events[2:]]).calls


@pytest.mark.parametrize("error", [True, 0, "", "x", [], {}, {"type": "overloaded_error"}])
@pytest.mark.parametrize("provider", ["messages", "chat"])
def test_an_event_that_carries_an_error_ends_the_response(provider, error):
    events = one_tool() if provider == "messages" else one_call()
    for place, event in enumerate(events):
        broken = [*events[:place], {**event, "error": error}, *events[place + 1 :]]
        assert rejected(provider, broken).check == "completed"
        if event.get("choices"):
            choice = {**event["choices"][0], "error": error}
            broken[place] = {**event, "choices": [choice]}
            assert rejected(provider, broken).check == "completed"


def test_a_stop_reason_at_the_start_is_one():
    for reason in ("end_turn", "tool_use", "refusal", "max_tokens"):
        assert rejected("messages", [message_start(stop_reason=reason), *one_tool()[1:]])

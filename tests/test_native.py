"""Native replay: what only the provider understands goes back verbatim, or not at all."""

import copy
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter
from sampling import examples
from streams import BODY_USAGE, TOOLS
from wires import read

from agentlib import ToolResult, Usage, user
from agentlib.inspection.report import run_inspect
from agentlib.jsonvalues import thaw
from agentlib.providers.registry import PROVIDERS, find_provider
from agentlib.providers.responses_items import ANSWERED_BY, ASKS_THE_HOST, HOSTED, OF_X_SEARCH
from agentlib.recordings.capture import Capture
from agentlib.vocabulary import ReasoningDelta

REQUEST = TypeAdapter(ResponseCreateParamsStreaming)
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "I look first."}],
    "encrypted_content": "gAAAA=",
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "read_file",
    "arguments": '{"path": "a.py"}',
    "status": "completed",
}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Fine.", "annotations": []}],
}
PROGRAM_CALL = {
    **CALL,
    "status": "in_progress",
    "caller": {"type": "program", "caller_id": "call_p"},
}
HOSTED_ITEMS = {
    "web_search_call": {"status": "completed", "action": {"type": "search", "query": "x"}},
    "file_search_call": {"status": "completed", "queries": ["x"], "results": None},
    "code_interpreter_call": {
        "status": "completed",
        "code": "1",
        "container_id": "cntr_1",
        "outputs": None,
    },
    "image_generation_call": {"status": "completed", "result": "aGk="},
    "mcp_list_tools": {"server_label": "docs", "tools": []},
    "mcp_call": {"server_label": "docs", "name": "find", "arguments": "{}", "output": "x"},
    "compaction": {"encrypted_content": "gAAAA="},
    "reasoning": {"summary": [], "encrypted_content": "gAAAA="},
}


def stream(*items, status="completed", kind="response.completed", **body):
    """A response whose output is `items`, as the API streams it."""
    created = {"id": "resp_1", "status": "in_progress", "output": []}
    events = [{"type": "response.created", "response": created}]
    for index, item in enumerate(items):
        events += _streamed(copy.deepcopy(item), {"output_index": index})
    done = {"id": "resp_1", "status": status, "output": list(items), "usage": BODY_USAGE, **body}
    events.append({"type": kind, "response": copy.deepcopy(done)})
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


def _streamed(item, place):
    where = {**place, "item_id": item["id"]}
    begun = {**item, "status": "in_progress"}
    begun |= {"arguments": ""} if item["type"] == "function_call" else {}
    begun |= {"content": []} if item["type"] == "message" else {}
    yield {"type": "response.output_item.added", **place, "item": begun}
    if item["type"] == "function_call":
        kind = "response.function_call_arguments"
        for piece in (item["arguments"][:4], item["arguments"][4:]):
            yield {"type": f"{kind}.delta", **where, "delta": piece}
        yield {"type": f"{kind}.done", **where, "arguments": item["arguments"]}
    elif item["type"] == "message":
        text = item["content"][0]["text"]
        yield {"type": "response.output_text.delta", **where, "content_index": 0, "delta": text}
    elif item["type"] == "reasoning":
        for part in item["summary"]:
            kind = "response.reasoning_summary_text.delta"
            yield {"type": kind, **where, "summary_index": 0, "delta": part["text"]}
    yield {"type": "response.output_item.done", **place, "item": item}


def replayed(events, *, native=True, report=None):
    outcome = read("responses", events, TOOLS, native=native, report=report)
    assert outcome.failure is None, outcome.failure
    return outcome.decision


def refused(events, *, native):
    outcome = read("responses", events, TOOLS, native=native)
    assert outcome.decision is None
    return outcome.failure


def consumed(value):
    if isinstance(value, dict):
        return {name: consumed(inner) for name, inner in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [consumed(inner) for inner in value]


def next_request(decision, *, native=True):
    """Encode the request that follows a decision whose calls were all executed."""
    results = [ToolResult(call.call_id, f"result of {call.call_id}") for call in decision.calls]
    history = [user("Go."), decision.message(), *results]
    request = find_provider("responses").encode("m", history, TOOLS, native=native)
    consumed(REQUEST.validate_python(request))
    return request


# -------------------------------------------------------------------------- kept, and sent back


def test_reasoning_goes_back_verbatim_before_its_follower():
    decision = replayed(stream(REASONING, CALL))
    assert decision.native.provider == "responses"
    assert thaw(decision.native.items) == [REASONING, CALL]
    request = next_request(decision)
    assert request["input"][1:] == [
        REASONING,
        CALL,
        {"type": "function_call_output", "call_id": "call_1", "output": "result of call_1"},
    ]


def test_a_request_asks_for_the_reasoning_that_nothing_stores():
    encode = find_provider("responses").encode
    asked = encode("m", [user("Go.")], TOOLS, native=True)
    assert (asked["store"], asked["include"]) == (False, ["reasoning.encrypted_content"])
    assert "include" not in encode("m", [user("Go.")], TOOLS)


@pytest.mark.parametrize("kind", HOSTED_ITEMS)
def test_each_hosted_item_goes_back_verbatim_and_in_its_place(kind):
    hosted = {"type": kind, "id": "hosted_1", **HOSTED_ITEMS[kind]}
    other = {**hosted, "id": "hosted_2", "more": {"deep": [1, None, "\u00e9"]}}
    items = [hosted, MESSAGE, other, CALL]
    decision = replayed(stream(*items))
    assert (decision.text, [c.call_id for c in decision.calls]) == ("Fine.", ["call_1"])
    assert thaw(decision.native.items) == items
    assert next_request(decision)["input"][1:-1] == items


def test_several_reasoning_items_stay_apart_and_in_order():
    items = [{**REASONING, "id": f"rs_{n}", "encrypted_content": str(n)} for n in range(3)]
    assert next_request(replayed(stream(*items, CALL)))["input"][1:-1] == [*items, CALL]


def test_what_is_kept_cannot_be_changed():
    events = stream(REASONING, CALL)
    decision = replayed(events)
    events[-1]["response"]["output"][0]["encrypted_content"] = "forged"
    assert thaw(decision.native.items) == [REASONING, CALL]
    with pytest.raises((TypeError, AttributeError)):
        decision.native.items[0]["id"] = "x"


def test_what_the_portable_form_says_as_well_is_not_kept():
    assert replayed(stream(MESSAGE, CALL)).native is None


@pytest.mark.parametrize("phase", ["commentary", "final_answer"])
def test_the_phase_of_a_message_is_kept(phase):
    message = {**MESSAGE, "phase": phase}
    decision = replayed(stream(message, CALL))
    assert next_request(decision)["input"][1] == message
    assert replayed(stream(message, CALL), native=False).native is None


def test_reasoning_is_an_event_of_its_own_and_never_part_of_the_answer():
    seen = []
    decision = replayed(stream(REASONING, MESSAGE), report=seen.append)
    assert decision.text == "Fine."
    assert [e.text for e in seen if isinstance(e, ReasoningDelta)] == ["I look first."]


# ------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize("kind", sorted(HOSTED))
def test_the_portable_form_refuses_what_only_the_provider_understands(kind):
    item = {"type": kind, "id": "x_1", "call_id": "call_x", "summary": []}
    failure = refused(stream(item, CALL), native=False)
    assert (failure.check, "portable" in failure.reason) == ("replayable", True)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("kind", sorted(ASKS_THE_HOST))
def test_an_item_that_asks_the_host_to_act_is_refused(kind, native):
    item = {"type": kind, "id": "x_1", "call_id": "call_x", "name": "read_file", "input": "{}"}
    failure = refused(stream(item, CALL), native=native)
    assert (failure.check, "asks the host" in failure.reason) == ("replayable", True)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("kind", ["something_new", "", "computer_call_output"])
def test_an_item_of_an_unknown_kind_is_refused(kind, native):
    assert refused(stream({"type": kind, "id": "x_1"}), native=native).check == "replayable"


@pytest.mark.parametrize(
    ("call_id", "name", "hosted"),
    [
        *(("xs_call_1", name, True) for name in sorted(OF_X_SEARCH)),
        *(("call_1", name, False) for name in sorted(OF_X_SEARCH)),
        ("xs_call_1", "write_sql", False),
        (None, "x_keyword_search", False),
    ],
)
def test_the_steps_of_xais_own_search_ask_nobody(call_id, name, hosted):
    item = {"type": "custom_tool_call", "id": "x_1", "call_id": call_id, "name": name}
    if hosted:
        assert thaw(replayed(stream(item, CALL)).native.items)[0] == item
        assert refused(stream(item, CALL), native=False).check == "replayable"
    else:
        assert "asks the host" in refused(stream(item, CALL), native=True).reason


@pytest.mark.parametrize(("kind", "answer"), list(ANSWERED_BY.items()))
def test_what_the_provider_answered_itself_asks_nobody(kind, answer):
    asks = {"type": kind, "id": "x_1", "call_id": "call_x"}
    answered = {"type": answer, "id": "x_2", "call_id": "call_x", "output": []}
    assert thaw(replayed(stream(asks, answered)).native.items) == [asks, answered]
    other = {**answered, "call_id": "call_y"}
    assert refused(stream(asks, other), native=True).check == "replayable"
    assert refused(stream(asks, answered), native=False).check == "replayable"


def test_a_message_part_of_another_kind_is_refused():
    message = {**MESSAGE, "content": [*MESSAGE["content"], {"type": "output_audio"}]}
    events = stream(MESSAGE)
    events[-1]["response"]["output"] = [message]
    assert refused(events, native=True).check == "replayable"


@pytest.mark.parametrize("native", [False, True])
def test_an_item_that_the_end_omits_or_invents_is_refused(native):
    events = stream(REASONING, CALL)
    del events[-1]["response"]["output"][0]
    assert refused(events, native=native).check == "none_omitted"
    events = stream(CALL)
    events[-1]["response"]["output"].insert(0, REASONING)
    assert "none_invented" in [
        finding.check
        for finding in read("responses", events, TOOLS, native=native).reader.assembly.findings()
        if finding.status == "fail"
    ]


# ------------------------------------------------------------- a call that a hosted program made


def test_a_call_of_a_hosted_program_waits_in_progress_and_is_released():
    program = {"type": "program", "id": "cm_1", "call_id": "call_p", "code": "", "fingerprint": "f"}
    decision = replayed(stream(REASONING, program, PROGRAM_CALL))
    assert [call.call_id for call in decision.calls] == ["call_1"]
    result = next_request(decision)["input"][-1]
    assert result == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": "result of call_1",
        "caller": PROGRAM_CALL["caller"],
    }


def test_a_later_call_of_a_program_stands_alone_and_is_kept_too():
    decision = replayed(stream(PROGRAM_CALL))
    assert thaw(decision.native.items) == [PROGRAM_CALL]
    assert next_request(decision)["input"][-1]["caller"] == PROGRAM_CALL["caller"]


def test_the_portable_form_cannot_say_who_called():
    for status in ("in_progress", "completed"):
        failure = refused(stream({**PROGRAM_CALL, "status": status}), native=False)
        assert (failure.check, "hosted program" in failure.reason) == ("replayable", True)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("caller", [None, {"type": "direct"}, {"type": "other"}, "program"])
def test_any_other_call_in_progress_is_not_whole(caller, native):
    failure = refused(stream({**PROGRAM_CALL, "caller": caller}), native=native)
    assert failure.check == "calls_equal"


def test_an_incomplete_call_of_a_program_is_not_whole():
    assert refused(stream({**PROGRAM_CALL, "status": "incomplete"}), native=True)


def test_who_called_a_call_directly_is_not_told():
    decision = replayed(stream(REASONING, {**CALL, "caller": {"type": "direct"}}))
    assert "caller" not in next_request(decision)["input"][-1]


# -------------------------------------------------------------- what was not released stays away


def endings():
    events = stream(REASONING, MESSAGE, CALL)
    yield from (events[:length] for length in range(len(events)))
    for kind, status in (("response.incomplete", "incomplete"), ("response.failed", "failed")):
        reason = {"incomplete_details": {"reason": "max_output_tokens"}}
        yield stream(REASONING, MESSAGE, CALL, kind=kind, status=status, **reason)
    yield stream(REASONING, MESSAGE, CALL, status="incomplete")
    yield stream(REASONING, MESSAGE, {**CALL, "arguments": '{"path": '})
    yield stream(REASONING, MESSAGE, {**CALL, "name": "remove"})
    yield stream(REASONING, MESSAGE, CALL, {"type": "computer_call", "id": "cu_1"})


@pytest.mark.parametrize("events", list(endings()))
def test_items_of_a_response_that_was_not_released_are_never_replayed(events):
    outcome = read("responses", events, TOOLS, native=True)
    assert outcome.decision is None
    assert outcome.reader.assembly.decision is None
    kept = f"{vars(outcome.failure)} {outcome.failure}"
    assert not any(name in kept for name in ("rs_1", "msg_1", "fc_1", "gAAAA="))


def test_a_native_turn_is_of_no_use_to_another_provider():
    decision = replayed(stream(REASONING, MESSAGE, CALL))
    history = [user("Go."), decision.message(), ToolResult("call_1", "text")]
    for provider in ("chat", "messages"):
        sent = json.dumps(find_provider(provider).encode("m", history, TOOLS))
        assert all(word in sent for word in ("Fine.", "call_1", "a.py"))
        assert not any(word in sent for word in ("rs_1", "fc_1", "msg_1", "gAAAA=", "summary"))


# ----------------------------------------------------------------- two kinds of ID, never exchanged

IDS = st.integers(0, 10**9).map(str)


def at_keys(value, *names):
    """Yield what stands under any of these names, however deep."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in names:
                yield inner
            else:
                yield from at_keys(inner, *names)
    elif isinstance(value, list):
        for inner in value:
            yield from at_keys(inner, *names)


@given(
    item_ids=st.lists(IDS, min_size=2, max_size=4, unique=True),
    call_ids=st.lists(IDS, min_size=2, max_size=4, unique=True),
    native=st.booleans(),
    thinks=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_item_ids_and_call_ids_are_never_exchanged(item_ids, call_ids, native, thinks):
    calls = [
        {**CALL, "id": f"fc_{item_id}", "call_id": f"call_{call_id}"}
        for item_id, call_id in zip(item_ids, call_ids, strict=False)
    ]
    items = [REASONING, *calls] if native and thinks else calls
    decision = replayed(stream(*items), native=native)
    meant = [call["call_id"] for call in calls]
    assert [call.call_id for call in decision.calls] == meant
    history = [user("Go."), decision.message(), *(ToolResult(c, "ok") for c in meant)]
    for provider in PROVIDERS:
        request = find_provider(provider).encode("m", history, TOOLS, native=native)
        joined = [*at_keys(request, "call_id", "tool_call_id", "tool_use_id")]
        if provider != "responses":
            joined += at_keys(request, "id")
            assert "fc_" not in json.dumps(request)
        else:
            own = list(at_keys(request, "id"))
            kept = [item["id"] for item in items] if decision.native is not None else []
            assert own == kept
        assert sorted(joined) == sorted(meant * 2)


# ------------------------------------------------------------------------------ usage, and inspect


def test_usage_tells_cached_and_reasoning_tokens_apart():
    assert replayed(stream(REASONING, CALL)).usage == Usage(120, 64, 30, 8)


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": None}, "none", []])
def test_a_missing_usage_is_none_and_never_zero(usage):
    decision = replayed(stream(REASONING, CALL, usage=usage))
    assert decision.usage in (None, Usage())


@pytest.mark.parametrize(("native", "status"), [(True, 0), (False, 1)])
def test_inspect_replays_natively_unless_it_is_told_not_to(tmp_path, native, status):
    path = tmp_path / "reasoning.sse"
    Capture.from_events(stream(REASONING, CALL)).save(path)
    out = io.StringIO()
    assert run_inspect([str(path)], None, "auto", as_json=True, out=out, native=native) == status
    row = json.loads(out.getvalue())
    assert row["check"] == (None if native else "replayable")

"""Progress: which events show that a response goes on, for each API; and what one leaves behind."""

from itertools import pairwise

import pytest
from fakes import counted, failure_of
from hypothesis import given, settings
from hypothesis import strategies as st
from wires import (
    TOOLS,
    call,
    chunk,
    message_end,
    message_start,
    one_call,
    one_tool,
    read,
    text,
    text_block,
    tool_block,
    usage_chunk,
)

from agentlib import ResponseReader
from agentlib.clock import MockClock
from agentlib.failures import CloseFailed, IdleTimeout
from agentlib.fixtures import capture, capture_names
from agentlib.model import StreamingModel
from agentlib.providers.fields import has_content
from agentlib.vocabulary import TextDelta

pytestmark = pytest.mark.anyio
ITEM = {"id": "fc_1", "type": "function_call", "call_id": "call_a", "name": "read_file"}
ITEM |= {"arguments": "", "status": "in_progress"}
PLACE = {"item_id": "fc_1", "output_index": 0}
CREATED = {"type": "response.created", "response": {"id": "resp_1"}}


def response(kind, **fields):
    return {"type": f"response.{kind}", **fields}


def candidate(*parts, **fields):
    content = {"role": "model", "parts": list(parts)}
    return {"responseId": "r", "candidates": [{"content": content, "index": 0, **fields}]}


# What comes before, and then what may come for ever and shows nothing, or shows progress.
BEFORE = {
    "chat": [chunk({"role": "assistant"}), call("call_a", "read_file", "")],
    "responses": [CREATED, response("output_item.added", item=ITEM, output_index=0)],
    "messages": [message_start(), *tool_block(0, "toolu_a", "read_file", stop=False)],
    "gemini": [candidate({"text": "Hi"})],
}
QUIET = {
    "chat": [
        {"id": "chat_1", "choices": []},
        chunk(),
        chunk({"role": "assistant"}),
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": None, "refusal": None, "reasoning_content": ""}),
        chunk({"tool_calls": []}),
        call(arguments=""),
        call("call_a", "read_file", ""),
        chunk({"content": ""}, logprobs=None),
        chunk({"content": ""}, usage={"prompt_tokens": 3, "completion_tokens": 0}),
        chunk({"content": [{"type": "text", "text": ""}]}),
        chunk({}, reason=""),
    ],
    "responses": [
        response("queued", response={"id": "resp_1"}),
        response("in_progress", response={"id": "resp_1"}),
        response("heartbeat"),
        response("function_call_arguments.delta", delta="", **PLACE),
        response("function_call_arguments.delta", delta="", obfuscation="xyz", **PLACE),
        response("unknown_kind.delta", delta="", **PLACE),
        response("unknown_kind.delta", delta={"text": ""}, **PLACE),
        {"type": "keepalive"},
        {"type": "ping"},
    ],
    "messages": [
        {"type": "ping"},
        {"type": "unknown"},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": ""},
        },
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 1}},
    ],
    "gemini": [
        candidate(),
        candidate({"text": ""}),
        {**candidate({"text": ""}), "usageMetadata": {"promptTokenCount": 3}},
        candidate({"text": "", "thought": True}),
    ],
}
PROGRESS = {
    "chat": [
        text("x"),
        chunk({"reasoning_content": "so"}),
        chunk({"reasoning": "so"}),
        chunk({"reasoning_details": [{"type": "reasoning.text", "text": "so"}]}),
        chunk({"refusal": "no"}),
        call(arguments="{"),
        call("call_b", "run_tests", "", index=1),
        chunk(reason="tool_calls"),
        usage_chunk(),
    ],
    "responses": [
        response("function_call_arguments.delta", delta="{", **PLACE),
        response("function_call_arguments.done", arguments="", **PLACE),
        response("web_search_call.searching", item_id="ws_1", output_index=1),
        response("unknown_kind.delta", delta="x", **PLACE),
        response("audio.delta", delta="UklGRg=="),
    ],
    "messages": [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "{"},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
    ],
    "gemini": [
        candidate({"text": "x"}),
        candidate({"text": "so", "thought": True}),
        candidate({"functionCall": {"name": "run_tests", "args": {}}}),
        candidate(finishReason="STOP"),
    ],
}


def rows(table):
    return [(name, event) for name, events in table.items() for event in events]


@pytest.mark.parametrize(("name", "event"), rows(QUIET), ids=str)
async def test_what_brings_nothing_keeps_nothing_alive(name, event):
    clock = MockClock()

    async def quiet():
        await clock.sleep(20)
        return event

    with counted() as transport:
        model = StreamingModel(
            transport([*BEFORE[name], *[quiet] * 99]), "m", provider=name, clock=clock
        )
        with pytest.raises(IdleTimeout) as raised:
            await model.ask({}, TOOLS)
    assert "only keep-alives came for 180 s" in raised.value.reason
    assert clock.now() == 180


@pytest.mark.parametrize(("name", "event"), rows(PROGRESS), ids=str)
def test_what_brings_something_shows_progress(name, event):
    reader = ResponseReader(name, TOOLS)
    for before in BEFORE[name]:
        reader.step(before)
    assert reader.step(event).meaningful


@pytest.mark.parametrize("name", BEFORE)
def test_the_start_of_a_call_shows_progress_once(name):
    steps = [ResponseReader(name, TOOLS).step(event) for event in BEFORE[name][:1]]
    assert [step.meaningful for step in steps] == [name != "chat"]


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.just("") | st.just([]),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nothing_in_any_nesting_is_no_content(value):
    assert not has_content(value)
    assert has_content([value, {"a": [value, "x"]}])
    assert not has_content([value, {"a": [value, "x"]}], {"a"})


def test_however_deep_it_nests_it_is_looked_at():
    deep = "x"
    for _ in range(100_000):
        deep = [deep]
    assert has_content(deep)


# ---------------------------------------------------------------------------- what is left behind

TEXTS = {
    "chat": [chunk({"role": "assistant"}), text("Half a "), text("sentence")],
    "responses": [event.data for event in capture("success_4_answer").responses[0].events][:6],
    "messages": [message_start(), *text_block(0, "Half a ", "sentence")],
    "gemini": [candidate({"text": "Half a "}), candidate({"text": "sentence"})],
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_failure_keeps_the_text_that_had_come_as_a_draft(name):
    said = []
    for end in range(len(TEXTS[name]) + 1):
        outcome = read(name, TEXTS[name][:end])
        assert outcome.decision is None
        said.append(outcome.failure.draft)
    assert said[0] == ""
    assert said[-1]
    assert all(later.startswith(earlier) for earlier, later in pairwise(said))
    if name != "responses":
        assert said[-1] == "Half a sentence"


@pytest.mark.parametrize("name", capture_names())
def test_a_draft_is_what_the_events_brought_whatever_ends_the_response(name):
    for recorded in capture(name).responses:
        seen = []
        outcome = read("responses", [e.data for e in recorded.events], None, report=seen.append)
        if outcome.failure is not None:
            said = [event.text for event in seen if isinstance(event, TextDelta)]
            assert outcome.failure.draft == "".join(said)


async def test_a_response_that_cannot_be_closed_keeps_its_text():
    async def never():
        raise RuntimeError("no")

    events = [event.data for event in capture("success_4_answer").responses[0].events]
    with counted() as transport:
        model = StreamingModel(transport(events, closing=never), "m", clock=MockClock())
        failure = await failure_of(model, CloseFailed)
    assert failure.draft == "add() adds now, and the test passes."


async def test_a_time_out_keeps_its_text():
    clock = MockClock()

    async def late():
        await clock.sleep(40)

    with counted() as transport:
        model = StreamingModel(transport([*TEXTS["responses"], late]), "m", clock=clock)
        failure = await failure_of(model, IdleTimeout)
    assert failure.draft


STOPS = {
    "chat": ([text("Hi"), chunk(reason="stop")], "stop"),
    "chat, calls": (one_call(), "tool_calls"),
    "messages": ([message_start(), *text_block(0, "Hi"), *message_end("end_turn")], "end_turn"),
    "messages, sequence": (
        [message_start(), *text_block(0, "Hi"), *message_end("stop_sequence")],
        "stop_sequence",
    ),
    "messages, calls": (one_tool(), "tool_use"),
    "gemini": ([candidate({"text": "Hi"}, finishReason="STOP")], "STOP"),
    "responses": (
        [event.data for event in capture("success_4_answer").responses[0].events],
        "completed",
    ),
}


@pytest.mark.parametrize("row", STOPS)
def test_a_decision_keeps_why_the_model_stopped(row):
    events, reason = STOPS[row]
    catalog = None if row == "responses" else TOOLS
    assert read(row.partition(",")[0], events, catalog).decision.stop_reason == reason

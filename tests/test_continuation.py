"""Continuation by response ID: only what is new goes out, and the whole history where it must."""

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter
from streams import BODY_USAGE, TOOLS, Call, Say, Story, tell
from test_native import REASONING, consumed, stream

from agentlib import ToolResult, Usage, assistant, system, user
from agentlib.clock import MockClock
from agentlib.errors import EncodingError, OpenFailure
from agentlib.failures import ProviderStopped, StreamCut
from agentlib.model import StreamingModel
from agentlib.providers.responses_request import encode_continuation, encode_request
from agentlib.recordings.capture import Capture
from agentlib.recordings.replay_transport import Playback, Refusal, ReplayTransport
from agentlib.runtime.continuation import ContinuingModel, is_forgotten

REQUEST = TypeAdapter(ResponseCreateParamsStreaming)
CALLS = Story((Call("read_file", '{"path": "a.py"}', "call_a"), Call("run_tests", "{}", "call_b")))
ANSWER = Story((Say(("It is repaired.",)),), response_id="resp_2")
GONE = Refusal(400, code="previous_response_not_found")
RESULTS = [ToolResult("call_a", "text of a.py"), ToolResult("call_b", "1 failed")]


def playback(events):
    (response,) = Capture.from_events(events).responses
    return Playback(response)


def continuing(*script, **options):
    clock = MockClock()
    openings = [step if isinstance(step, Refusal) else playback(step) for step in script]
    transport = ReplayTransport(openings, clock)
    model = StreamingModel(transport, "m", clock=clock, random=lambda: 0.5, **options)
    return ContinuingModel(model), transport


def kinds(request):
    return [item.get("role") or item["type"] for item in request["input"]]


def checked(request):
    consumed(REQUEST.validate_python(dict(request)))
    return request


# ----------------------------------------------------------------------------------- the encoder


def known_history():
    return [
        system("Be brief."),
        user("Repair it."),
        assistant("", [*_calls()]),
        *RESULTS,
        user("Hurry."),
    ]


def _calls():
    from agentlib import ToolCall

    return ToolCall("call_a", "read_file", {"path": "a.py"}), ToolCall("call_b", "run_tests", {})


def test_only_new_results_and_user_messages_go_out():
    request = encode_continuation("m", known_history(), TOOLS, known=3, response_id="resp_1")
    assert checked(request)["previous_response_id"] == "resp_1"
    assert request["input"] == [
        {"type": "function_call_output", "call_id": "call_a", "output": "text of a.py"},
        {"type": "function_call_output", "call_id": "call_b", "output": "1 failed"},
        {"type": "message", "role": "user", "content": "Hurry."},
    ]
    assert request["store"] is True
    assert [tool["name"] for tool in request["tools"]] == list(TOOLS.names)


def test_without_a_response_id_the_whole_history_goes_out_and_is_stored():
    request = encode_continuation("m", known_history(), TOOLS)
    assert checked(request) == {**encode_request("m", known_history(), TOOLS), "store": True}
    assert "previous_response_id" not in request


def test_what_is_stored_nowhere_has_no_response_id():
    request = encode_request("m", known_history(), TOOLS)
    assert request["store"] is False
    assert "previous_response_id" not in request


@pytest.mark.parametrize(
    ("history", "known"),
    [
        (known_history(), 0),
        (known_history(), 2),
        (known_history(), 6),
        (known_history(), 7),
        (known_history(), -4),
        ([*known_history(), assistant("x"), user("y")], 3),
        ([*known_history(), system("Be long.")], 3),
    ],
)
def test_what_no_continuation_can_say_is_an_error(history, known):
    with pytest.raises(EncodingError):
        encode_continuation("m", history, TOOLS, known=known, response_id="resp_1")


def test_the_whole_history_has_to_be_valid_so_that_it_can_go_out_instead():
    history = known_history()
    del history[4]
    with pytest.raises(EncodingError, match="call_b"):
        encode_continuation("m", history, TOOLS, known=3, response_id="resp_1")


# ------------------------------------------------------------------------------------- the model


async def test_the_second_turn_continues_the_first():
    model, transport = continuing(tell(CALLS), tell(ANSWER))
    history = [user("Repair it.")]
    first = await model.complete(history, TOOLS)
    history += [first.message(), *RESULTS]
    second = await model.complete(history, TOOLS)
    assert second.text == "It is repaired."
    asked = [checked(request) for request in transport.requests]
    assert [request.get("previous_response_id") for request in asked] == [None, "resp_1"]
    assert [request["store"] for request in asked] == [True, True]
    assert kinds(asked[1]) == ["function_call_output", "function_call_output"]
    history += [second.message(), user("And now?")]
    assert model.cursor.response_id == "resp_2"
    assert (transport.opened, transport.closed, model.fallbacks) == (2, 2, 0)


async def test_a_further_user_message_continues_too():
    model, transport = continuing(tell(ANSWER), tell(ANSWER))
    history = [system("Be brief."), user("Hello.")]
    first = await model.complete(history, TOOLS)
    await model.complete([*history, first.message(), user("And?"), user("Well?")], TOOLS)
    assert kinds(transport.requests[1]) == ["user", "user"]
    assert transport.requests[1]["previous_response_id"] == "resp_2"


@pytest.mark.parametrize("status", [400, 404])
async def test_a_forgotten_response_falls_back_to_the_whole_history(status):
    gone = Refusal(status, code="previous_response_not_found")
    model, transport = continuing(tell(CALLS), gone, tell(ANSWER))
    history = [user("Repair it.")]
    first = await model.complete(history, TOOLS)
    history += [first.message(), *RESULTS]
    second = await model.complete(history, TOOLS)
    assert second.text == "It is repaired."
    whole = checked(transport.requests[2])
    assert "previous_response_id" not in whole
    assert kinds(whole) == [
        "user",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert (model.fallbacks, model.cursor.response_id) == (1, "resp_2")
    assert (transport.opened, transport.closed) == (2, 2)


async def test_the_fallback_carries_the_reasoning_along():
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_a",
        "name": "read_file",
        "arguments": '{"path": "a.py"}',
        "status": "completed",
    }
    model, transport = continuing(stream(REASONING, call), GONE, tell(ANSWER), native=True)
    first = await model.complete([user("Repair it.")], TOOLS)
    await model.complete([user("Repair it."), first.message(), RESULTS[0]], TOOLS)
    assert kinds(transport.requests[1]) == ["function_call_output"]
    assert transport.requests[2]["input"][1:3] == [REASONING, call]
    assert all(r["include"] == ["reasoning.encrypted_content"] for r in transport.requests)


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(400, code="invalid_request_error"),
        Refusal(401, code="previous_response_not_found"),
        Refusal(404, code="model_not_found"),
        Refusal(429, code="rate_limit_exceeded"),
    ],
)
async def test_any_other_refusal_is_no_reason_to_send_everything(refusal):
    model, transport = continuing(tell(CALLS), refusal, tell(ANSWER))
    first = await model.complete([user("Repair it.")], TOOLS)
    with pytest.raises(OpenFailure):
        await model.complete([user("Repair it."), first.message(), *RESULTS], TOOLS)
    assert (len(transport.requests), model.fallbacks) == (2, 0)
    assert model.cursor.response_id == "resp_1"


async def test_a_whole_history_that_is_refused_so_is_not_sent_again():
    model, transport = continuing(tell(CALLS), GONE, GONE, tell(ANSWER))
    first = await model.complete([user("Repair it.")], TOOLS)
    with pytest.raises(OpenFailure):
        await model.complete([user("Repair it."), first.message(), *RESULTS], TOOLS)
    assert (len(transport.requests), model.fallbacks, model.cursor) == (3, 1, None)


def test_a_server_that_stores_nothing_says_404_in_its_own_words():
    assert is_forgotten(Refusal(404).failure())
    assert not is_forgotten(Refusal(400).failure())
    assert not is_forgotten(Refusal(None).failure())


@pytest.mark.parametrize(
    "change",
    [
        lambda history: history[1:],
        lambda history: [user("Repair something else."), *history[1:]],
        lambda history: [*history[:1], assistant("No call."), user("Why?")],
        lambda history: [*history, assistant("Never said."), user("Well?")],
        lambda history: [system("Late."), *history],
        lambda history: [*history, system("From now on, be long.")],
    ],
)
async def test_another_history_is_sent_whole(change):
    model, transport = continuing(tell(CALLS), tell(ANSWER))
    first = await model.complete([user("Repair it."), user("Now.")], TOOLS)
    history = change([user("Repair it."), user("Now."), first.message(), *RESULTS])
    await model.complete(history, TOOLS)
    assert "previous_response_id" not in transport.requests[1]


@pytest.mark.parametrize(
    ("events", "failure"),
    [
        (tell(CALLS)[:-1], StreamCut),
        (
            [*tell(CALLS)[:-1], {**tell(CALLS)[-1], "type": "response.incomplete"}],
            ProviderStopped,
        ),
    ],
)
async def test_a_response_that_was_not_released_is_never_continued_from(events, failure):
    model, transport = continuing(tell(ANSWER), events, tell(ANSWER))
    first = await model.complete([user("Hello.")], TOOLS)
    history = [user("Hello."), first.message(), user("Repair it.")]
    with pytest.raises(failure):
        await model.complete(history, TOOLS)
    await model.complete(history, TOOLS)
    asked = [request.get("previous_response_id") for request in transport.requests]
    assert asked == [None, "resp_2", "resp_2"]
    assert transport.opened == transport.closed == 3


async def test_a_local_response_id_is_no_cursor():
    events = [e for e in tell(ANSWER) if "output" in e["type"]]
    model, _ = continuing([*events, tell(ANSWER)[-1]], compat=["missing-opening"])
    decision = await model.complete([user("Hello.")], TOOLS)
    assert (decision.response_id, model.cursor) == ("local_response", None)


async def test_token_accounting_knows_nothing_of_the_cursor():
    model, _ = continuing(tell(CALLS), tell(ANSWER))
    first = await model.complete([user("Repair it.")], TOOLS)
    second = await model.complete([user("Repair it."), first.message(), *RESULTS], TOOLS)
    billed = Usage(BODY_USAGE["input_tokens"], 64, 30, 8)
    assert (first.usage, second.usage) == (billed, billed)


@pytest.mark.parametrize("provider", ["chat", "messages"])
def test_other_apis_have_no_such_thing(provider):
    model = StreamingModel(None, "m", provider=provider)
    with pytest.raises(EncodingError, match="no continuation"):
        ContinuingModel(model)

"""What the page on native continuation shows: talks, and what the API objects to in an input."""

import pytest

from agentlib.errors import OpenFailure
from agentlib.fixtures import capture
from agentlib.recordings.replay_transport import Playback, Refusal
from workbook.pages.continuations import item_name, talk
from workbook.pages.input_rules import objection

READ, ANSWER = (Playback(capture(n).responses[0]) for n in ("native_1_read", "native_2_answer"))
OUTPUT = capture("native_1_read").events[-1].data["response"]["output"]
RESULT = {"type": "function_call_output", "call_id": "call_read_1", "output": "text"}
INPUT = [{"role": "user", "content": "Why?"}, *OUTPUT, RESULT]


async def test_a_talk_by_id_sends_what_is_new():
    by_id = await talk(READ, ANSWER)

    assert [len(request["input"]) for request in by_id.requests] == [1, 1]
    assert by_id.requests[1]["previous_response_id"] == "resp_native_1"
    assert [call.call_id for call in by_id.executed] == ["call_read_1"]
    assert "continues resp_native_1" in repr(by_id)
    assert repr(by_id).endswith("2 requests · executed read (call_read_1)")


async def test_a_talk_with_the_whole_history_sends_each_item_back_verbatim():
    whole = await talk(READ, ANSWER, by_id=False)

    assert whole.requests[1]["input"][1:5] == OUTPUT
    assert [request["store"] for request in whole.requests] == [False, False]
    assert [usage.cached_tokens for usage in whole.usage] == [0, 1152]


async def test_a_talk_falls_back_and_executes_nothing_twice():
    gone = Refusal(400, code="previous_response_not_found")
    told = await talk(READ, gone, ANSWER)

    assert told.refused == {2: "the server answered 400: previous_response_not_found"}
    assert told.requests[2]["input"][1:5] == OUTPUT
    assert len(told.executed) == 1


async def test_a_talk_without_a_script_for_it_raises():
    with pytest.raises(OpenFailure):
        await talk(READ)


def test_the_whole_turn_in_order_meets_no_objection():
    assert objection(INPUT, [OUTPUT]) is None
    assert objection([], [OUTPUT]) is None


OBJECTIONS = {
    "the reasoning is missing": ([0, 2, 3, 4, 5], "'ws_1' of type 'web_search_call' was provided"),
    "its follower is missing": ([0, 1, 3, 4, 5], "'rs_1' of type 'reasoning' was provided without"),
    "another comes between": ([0, 1, 3, 2, 4, 5], "'rs_1' of type 'reasoning' was provided"),
    "the follower comes first": ([0, 2, 1, 3, 4, 5], "required following item"),
    "an item twice": ([0, 1, 2, 3, 4, 4, 5], "Duplicate item found with id fc_1"),
    "no result": ([0, 1, 2, 3, 4], "No tool output found for function call call_read_1"),
    "no call": ([0, 1, 2, 5], "No tool call found for function call output"),
    "the result comes first": ([0, 5, 1, 2, 3, 4], "No tool call found for function call output"),
}


@pytest.mark.parametrize("case", OBJECTIONS)
def test_what_the_api_objects_to(case):
    places, said = OBJECTIONS[case]

    assert said in objection([INPUT[place] for place in places], [OUTPUT])


def test_reasoning_that_was_changed_is_refused():
    changed = [{**item, "encrypted_content": "x"} if "summary" in item else item for item in INPUT]

    assert objection(changed, [OUTPUT]).endswith("'rs_1' could not be verified.")


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"role": "user", "content": "Why?"}, "user"),
        ({"id": "msg_1", "type": "message", "role": "assistant"}, "message msg_1"),
        (RESULT, "function_call_output call_read_1"),
        ({"type": "reasoning"}, "reasoning"),
    ],
)
def test_an_item_has_a_name(item, name):
    assert item_name(item) == name

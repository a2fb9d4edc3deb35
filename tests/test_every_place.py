"""What contradicts a response is refused wherever it stands, in each API: one table of the kinds.

The healthy streams are the authored fixtures. Each row puts one value in every place of its kind,
one place at a time, and none of the streams so made releases anything.
"""

import copy
import json

import pytest
from streams import TEXT_THEN_CALL, rejected, tell

from agentlib.failures import ResponseFailure
from agentlib.fixtures import capture
from agentlib.reader import ResponseReader

STREAMS = {
    "responses": "success_2_edit",
    "chat": "chat_edit",
    "messages": "messages_edit",
    "gemini": "gemini_edit",
}
ROLES = ("user", "system", "tool", "zzz", 0, 7, True, [], ["assistant"], {}, {"role": "model"})
ERROR = ({"message": "overloaded"}, "overloaded", {}, [], 0, False)
UNKNOWN = ("zzz", 7, False, 0, [1], {"z": 1}, {}, [])
FILTERED = ({"hate": {"filtered": True, "severity": "high"}},)
BLOCKED = ([{"category": "HARM_CATEGORY_HARASSMENT", "blocked": True}],)
MESSAGE = ("message", "function_call")


def is_item(place):
    return isinstance(place, dict) and place.get("type") in MESSAGE and "id" in place


def has(*names):
    return lambda place: isinstance(place, dict) and all(name in place for name in names)


def of_type(*kinds):
    return lambda place: isinstance(place, dict) and place.get("type") in kinds


def adds_to_a_call(place):
    return has("delta", "index")(place) and place["delta"]["type"] == "input_json_delta"


# The API, the places, the name and the values of which each is refused there.
KINDS = (
    ("responses", is_item, "role", ROLES),
    ("responses", is_item, "error", ERROR),
    ("responses", is_item, "incomplete_details", ERROR),
    ("responses", of_type("response.content_part.added"), "part", (None, [], "x", 7)),
    ("responses", of_type("response.content_part.added"), "content_index", (-1, "x", 1.5, [])),
    ("responses", has("text", "annotations"), "type", ("refusal", "zzz", "")),
    ("responses", has("text", "annotations"), "text", ("zzz", "completed")),
    ("responses", of_type("message"), "content", ([{"type": "output_text", "text": "zzz"}],)),
    ("chat", has("delta"), "error", ERROR),
    ("chat", has("delta"), "content_filter_results", FILTERED),
    ("chat", lambda place: has("content")(place) or has("tool_calls")(place), "role", ROLES),
    ("chat", lambda place: has("content")(place) or has("tool_calls")(place), "error", ERROR),
    ("chat", has("role", "content"), "content", (0, False, {}, 7, [7])),
    ("chat", has("arguments"), "zzz", UNKNOWN),
    ("messages", has("role"), "role", ROLES),
    ("messages", has("role"), "type", ("zzz", "error", "completion", 0, [], {})),
    ("messages", lambda place: has("type")(place) or has("stop_reason")(place), "error", ERROR),
    ("messages", has("stop_reason"), "stop_sequence", ("zzz", "", 0, False)),
    ("messages", has("stop_reason"), "stop_details", ({"type": "refusal"}, {}, "zzz", 0)),
    ("messages", of_type("input_json_delta"), "zzz", UNKNOWN),
    ("messages", adds_to_a_call, "type", ("content_block_patch", "zzz")),
    ("gemini", has("content"), "error", ERROR),
    ("gemini", has("content"), "safetyRatings", BLOCKED),
    ("gemini", has("parts"), "role", ROLES),
    ("gemini", has("responseId"), "type", ("error",)),
    ("gemini", has("willContinue"), "zzz", UNKNOWN),
    ("gemini", has("jsonPath"), "zzz", UNKNOWN),
)


def events_of(api):
    return [event.data for event in capture(STREAMS[api]).events]


def places(value):
    yield value
    inner = value.values() if isinstance(value, dict) else value
    for each in inner if isinstance(value, dict | list) else ():
        yield from places(each)


def changed(events, matches, name, value):
    """Yield the stream with this value in each of its places, one at a time."""
    for number, event in enumerate(events):
        for place, found in enumerate(places(event)):
            if matches(found):
                other = copy.deepcopy(event)
                [*places(other)][place][name] = value
                yield [*events[:number], other, *events[number + 1 :]]


def released(api, events):
    reader = ResponseReader(api)
    try:
        decisions = [*map(reader.accept, events), reader.end()]
    except ResponseFailure:
        return None
    return next(filter(None, decisions), None)


@pytest.mark.parametrize("api", STREAMS)
def test_the_streams_as_they_are_release_their_call(api):
    assert released(api, events_of(api)).calls


def names(value):
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("api", "matches", "name", "values"), KINDS, ids=names)
def test_a_contradiction_is_refused_wherever_it_stands(api, matches, name, values):
    events = events_of(api)
    for value in values:
        streams = [*changed(events, matches, name, value)]
        assert streams
        for stream in streams:
            assert released(api, stream) is None, json.dumps(stream)


@pytest.mark.parametrize("name", ["namespace", "phase"])
def test_what_lasts_may_be_left_out_and_not_changed(name):
    kinds = ("output_item.added", "output_item.done", "completed")
    for kind, index in ((kind, index) for kind in kinds for index in (0, 1)):
        events = tell(TEXT_THEN_CALL)
        items = [
            (event["type"], item)
            for event in events
            for item in [event.get("item"), *event.get("response", {}).get("output", [])]
            if item is not None and item["type"] == MESSAGE[index]
        ]
        for at, item in items:
            item[name] = "one"
            if at == f"response.{kind}":
                item.pop(name)
        assert released("responses", events)
        for at, item in items:
            item[name] = "other" if at == f"response.{kind}" else "one"
        rejected(events)


def test_a_message_that_is_done_restates_each_part_that_was_streamed():
    for short in ([], [{"type": "output_text", "text": "I look at it first. "}]):
        events = tell(TEXT_THEN_CALL)
        done = next(e for e in events if e["type"] == "response.output_item.done")
        done["item"]["content"] = short
        assert rejected(events).check == "texts_equal"


def test_a_part_may_begin_with_words_that_stay():
    events = tell(TEXT_THEN_CALL)
    added = next(e for e in events if e["type"] == "response.content_part.added")
    added["part"]["text"] = "I look"
    assert released("responses", events)


def test_what_says_nothing_is_no_contradiction():
    events = events_of("chat")
    for event in events:
        for choice in event.get("choices", []):
            choice["content_filter_results"] = {"hate": {"filtered": False, "severity": "safe"}}
            choice["error"] = choice["delta"]["error"] = None
    assert released("chat", events)

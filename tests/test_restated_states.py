"""Every state that a Responses stream states again is compared, wherever it stands."""

import copy

import pytest
from streams import BARE, TEXT_THEN_CALL, TOOLS, Framing, after, read, refused, rejected, said, tell

from agentlib.providers.finish_reasons import COMPLETING

QUEUED = Framing(numbered=False, before=("response.queued",))
# A value of each JSON type, and each status that the API's reference names.
VALUES = (
    *(True, False, 0, 7, 1.5, "", "x", [], ["completed"], {}, {"code": "x"}),
    *("completed", "in_progress", "queued", "incomplete", "failed", "cancelled"),
)
# What may stand in a place besides what stands there: all else of VALUES is refused.
PLACES = {
    ("response.queued", "response.status"): {None, "queued", "in_progress"},
    ("response.created", "response.status"): {None, "queued", "in_progress"},
    ("response.in_progress", "response.status"): {None, "in_progress"},
    ("response.completed", "response.status"): {"completed"},
    ("response.output_item.added", "item.status"): {None, "in_progress", "completed"},
    ("response.output_item.done", "item.status"): {None, "completed"},
    **{
        (f"response.{kind}", f"response.{name}"): {None}
        for kind in ("queued", "created", "in_progress", "completed")
        for name in ("error", "incomplete_details")
    },
}
EVERYWHERE = ("error", "response_id")
STOPS = ("failed", "incomplete", "cancelled", "error")


def put(event, path, value):
    *outer, name = path.split(".")
    for step in outer:
        event = event[step]
    event[name] = value


def is_one_of(value, allowed):
    return any(type(value) is type(each) and value == each for each in allowed)


def changed(kind, path, value):
    """Yield the stream with this value in each of its places, one at a time."""
    for number, event in enumerate(tell(TEXT_THEN_CALL, QUEUED)):
        if event["type"] == kind:
            events = copy.deepcopy(tell(TEXT_THEN_CALL, QUEUED))
            put(events[number], path, value)
            yield number, events


@pytest.mark.parametrize(("kind", "path"), PLACES)
@pytest.mark.parametrize("value", [None, *VALUES], ids=repr)
def test_each_state_is_compared_wherever_it_stands(kind, path, value):
    found = [*changed(kind, path, value)]
    assert found
    for number, events in found:
        outcome = read(events, TOOLS)
        assert (outcome.decision is not None) is is_one_of(value, PLACES[kind, path]), number
        if outcome.failure is not None:
            # An item that stopped announces that its response will: the end decides that.
            waits = path == "item.status" and value == "incomplete" and kind.endswith("done")
            assert outcome.failure.event == (len(events) if waits else number + 1)


def test_an_item_that_stopped_before_its_response_leaves_the_reason_to_the_end():
    for number, events in changed("response.output_item.done", "item.status", "incomplete"):
        end = {**events[-1]["response"], "status": "incomplete", "output": []}
        end["incomplete_details"] = {"reason": "max_output_tokens"}
        stop = {"type": "response.incomplete", "response": end}
        outcome = read([*events[:-1], stop], TOOLS)
        assert outcome.failure.check == "completed", number
        assert outcome.failure.cut_by_length


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_no_event_carries_an_error_or_the_id_of_another_response(name, value):
    events = tell(TEXT_THEN_CALL, BARE)
    for number in range(name == "response_id", len(events)):
        foreign = [*events[:number], {**events[number], name: value}, *events[number + 1 :]]
        check = "response_id" if name == "response_id" else "completed"
        assert refused(foreign, check).event == number + 1


def test_an_event_may_have_the_id_of_its_own_response():
    events = [{**e, "response_id": "resp_1", "error": None} for e in tell(TEXT_THEN_CALL, BARE)]
    assert said(read(events, TOOLS).decision) == said(read(tell(TEXT_THEN_CALL), TOOLS).decision)


@pytest.mark.parametrize("kind", [*(f"response.{name}" for name in STOPS), "error"])
def test_what_stops_a_response_stops_it_at_any_place(kind):
    events = tell(TEXT_THEN_CALL, BARE)
    for number in range(1, len(events)):
        stopped = [*events[:number], {"type": kind}, *events[number:]]
        assert refused(stopped, "completed").event == number + 1


@pytest.mark.parametrize("status", ["failed", "incomplete", "cancelled"])
def test_an_unknown_event_that_says_so_stops_it_too(status):
    body = {"id": "resp_1", "status": status}
    event = {"type": "response.something_new", "response": body}
    assert rejected(after(tell(TEXT_THEN_CALL, BARE), "created", event), TOOLS)


def test_the_table_of_reasons_names_each_api_once():
    assert COMPLETING["chat"] == {"stop": "may", "tool_calls": "must"}
    assert COMPLETING["messages"] == {
        "end_turn": "never",
        "stop_sequence": "never",
        "tool_use": "must",
    }

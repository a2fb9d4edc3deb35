"""The detector of one diagnosis, item IDs that change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from agentlib.fixtures import capture, fixtures
from agentlib.recordings.capture import Capture
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong
from workbook.pages.recordings import recording

Events = list[dict[str, Any]]
HEALTHY = ("success_2_edit", "interleaved", "text_only", "whole_at_done", "disconnect")
NOT_ONE = "Each item keeps its ID, which is another than its neighbour's."
NO_ITEM = "Some events are of no item: they have no `output_index`."
ONE = "One item, at one output_index, has more than one ID."


def _events(stream: Capture) -> Events:
    loaded: Events = json.loads(json.dumps([event.data for event in stream.events]))
    return loaded


def _of_second_item(events: Events) -> Events:
    changed = [event for event in events if event.get("output_index") == 1 and "item_id" in event]
    changed[-1]["item_id"] = "another"
    return events


def _at_done_only(events: Events) -> Events:
    done = next(event for event in events if event["type"] == "response.output_item.done")
    done["item"]["id"] = "another"
    return events


def _swapped(events: Events) -> Events:
    """Let two items change their IDs with each other: as many IDs as items, and none that stays."""
    changed = {"fc_1": "fc_2", "fc_2": "fc_1"}
    for event in events:
        if event["type"] == "response.function_call_arguments.delta":
            event["item_id"] = changed[event["item_id"]]
    return events


def _in_deltas_only(events: Events) -> Events:
    for event in events:
        if event.get("output_index") == 0 and "item_id" in event:
            event["item_id"] = "another"
    return events


_MUTATIONS: dict[str, Callable[[Events], Events]] = {
    "interleaved, the second item changes": _of_second_item,
    "interleaved, its item's done changes": _at_done_only,
    "interleaved, its deltas have another": _in_deltas_only,
    "interleaved, two items swap their IDs": _swapped,
}


def _judge(outcome: Outcome, *, rotates: bool) -> Wrong | None:
    if isinstance(outcome.error, KeyError) and outcome.error.args == ("output_index",):
        return Wrong(NO_ITEM, str(rotates))
    if outcome.error is not None:
        return Wrong("It takes a list of events and answers True or False.", str(rotates))
    if bool(outcome.value) == rotates:
        return None
    return Wrong(ONE if rotates else NOT_ONE, str(rotates))


def _trial(name: str, events: Events, stream: Capture, *, rotates: bool) -> Trial:
    text = json.dumps(events)
    return Trial(
        stream=name,
        place=f"{len(events)} events",
        prepare=lambda: (json.loads(text),),
        judge=lambda outcome: _judge(outcome, rotates=rotates),
        hostile=rotates,
        capture=stream,
        event=len(stream.events),
    )


def _trials() -> Iterator[Trial]:
    for name in HEALTHY:
        stream = capture(name)
        yield _trial(name, _events(stream), stream, rotates=False)
    rotating = Capture.load(fixtures() / "diagnoses" / "rotating-item-ids.sse")
    for stream in (rotating, Capture.load(recording("curl.sse"))):
        yield _trial(stream.name, _events(stream), stream, rotates=True)
    for name, mutate in _MUTATIONS.items():
        events = mutate(_events(capture("interleaved")))
        yield _trial(name, events, Capture.from_events(events, "interleaved"), rotates=True)


HINTS = (
    "Which events have no output_index? Skip these first.",
    "An event of an item has an output_index. Its ID is its item_id, or the id of its item.",
    (
        "Collect the IDs of each index in a set of its own: `ids.setdefault(index, set())`. "
        "Then look for a set with more than one."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="rotates(events)",
        trials=_trials,
        hint_texts=HINTS,
    )

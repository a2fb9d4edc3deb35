"""Damage a recorded stream on purpose: cut it, drop, double or swap events, replace a text.

Each function takes a capture and returns a new one, made of the events of its first response;
the name of the new one says what was done. Events are counted from 1. What is not there cannot
be damaged: that is a ValueError, so that no experiment changes nothing without saying so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentlib.jsonvalues import quote
from agentlib.transport.capture import Capture, CapturedEvent

# What was done stands in the new capture's name, which is a heading: a longer text is cut.
MAX_NAMED = 24


def cut(capture: Capture, after: int) -> Capture:
    """End the stream after event `after`; 0 leaves nothing."""
    events = capture.events
    if not 0 <= after <= len(events):
        raise ValueError(f"{capture.name} has events 1 to {len(events)}; cannot cut after {after}")
    return _made(capture, events[:after], f"cut after {after}")


def drop(capture: Capture, event: int) -> Capture:
    """Leave out event `event`."""
    place = _place(capture, event)
    events = capture.events
    return _made(capture, events[:place] + events[place + 1 :], f"event {event} dropped")


def twice(capture: Capture, event: int) -> Capture:
    """Send event `event` twice."""
    place = _place(capture, event)
    events = capture.events
    return _made(capture, events[: place + 1] + events[place:], f"event {event} twice")


def swap(capture: Capture, event: int) -> Capture:
    """Send event `event` after the one that follows it."""
    first, second = _place(capture, event), _place(capture, event + 1)
    events = list(capture.events)
    events[first], events[second] = events[second], events[first]
    return _made(capture, events, f"events {event} and {event + 1} swapped")


def replace(capture: Capture, old: str, new: str, event: int | None = None) -> Capture:
    """Replace `old` by `new` in the JSON text of event `event`, or of every event.

    The text is the event as it was sent: inside an argument string, a quotation mark has a
    backslash before it.
    """
    place = None if event is None else _place(capture, event)
    events = [
        _replaced(each, old, new) if place in (None, number) and old in each.raw else each
        for number, each in enumerate(capture.events)
    ]
    if all(after is before for after, before in zip(events, capture.events, strict=True)):
        where = f"event {event}" if event is not None else "any event"
        raise ValueError(f"{quote(old)} does not stand in {where} of {capture.name}")
    at = f" in event {event}" if event is not None else ""
    return _made(capture, events, f"{_short(old)} → {_short(new)}{at}")


def _place(capture: Capture, event: int) -> int:
    if not 1 <= event <= len(capture.events):
        raise ValueError(f"{capture.name} has events 1 to {len(capture.events)}, no event {event}")
    return event - 1


def _replaced(event: CapturedEvent, old: str, new: str) -> CapturedEvent:
    raw = event.raw.replace(old, new)
    try:
        data = json.loads(raw)
    except ValueError as error:
        raise ValueError(
            f"event {event.number} would be no JSON any more: {error}; inside an argument string "
            "a quotation mark has a backslash before it"
        ) from error
    return CapturedEvent(event.number, data, raw)


def _short(text: str) -> str:
    return text if len(text) <= MAX_NAMED else f"{text[: MAX_NAMED - 1]}…"


def _made(capture: Capture, events: Sequence[CapturedEvent], what: str) -> Capture:
    return Capture.from_events(events, f"{capture.name}, {what}", capture.provider)

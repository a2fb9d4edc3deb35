"""What a capture consists of: its responses, and the events of each. Plain data, nothing read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

# The tolerance of a recording's last event (see `agentlib.providers.compat`).
LAST_BLANK_LINE = "missing-last-blank-line"
# How the note of an unfinished event begins.
UNFINISHED = "an unfinished event"


class CapturedEvent(NamedTuple):
    """One native event: its number within its response (from 1), its object, its text.

    `raw` is the JSON text as it was received; `data` has the kind of the event under "type" also
    where only the stream's `event:` field named it.
    """

    number: int
    data: dict[str, Any]
    raw: str


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """One response of a capture: its number (from 1) and its events, in order.

    `fault` says in one sentence why reading stopped, at event number `len(events) + 1`, or is
    None. `done_marker` is whether `[DONE]` stood among its events. `notes` are for a reader.
    `tools` is the catalog of its request, as the API writes it, where that was recorded too.
    `dropped` is the size in bytes of an unfinished event at its end, 0 where there is none, and
    `last` that event, where only the blank line after it is missing. `page` is the first line of
    a page of HTML that stands among its events, or behind them, "" where there is none.
    `provider` is the API that it speaks.
    """

    number: int
    events: tuple[CapturedEvent, ...]
    fault: str | None = None
    done_marker: bool = False
    notes: tuple[str, ...] = ()
    tools: list[dict[str, Any]] | None = field(default=None, repr=False)
    dropped: int = 0
    last: CapturedEvent | None = None
    page: str = ""
    provider: str = "unknown"


def with_last_event(response: CapturedResponse, compat: Collection[str]) -> CapturedResponse:
    """Return `response` as it is to be read where `compat` names what is tolerated.

    The standard drops an event without a blank line after it. Its JSON is whole all the same, so
    a tool that strips a recording's end can be told from a connection that was cut.
    """
    last = response.last
    if last is None or LAST_BLANK_LINE not in compat:
        return response
    note = f"{LAST_BLANK_LINE}: the last event is read without a blank line after it"
    notes = (*(each for each in response.notes if not each.startswith(UNFINISHED)), note)
    events = (*response.events, last)
    return replace(response, events=events, notes=notes, dropped=0, last=None)

"""What a capture consists of: its responses, and the events of each. Plain data, nothing read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


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
    """

    number: int
    events: tuple[CapturedEvent, ...]
    fault: str | None = None
    done_marker: bool = False
    notes: tuple[str, ...] = ()
    tools: list[dict[str, Any]] | None = field(default=None, repr=False)

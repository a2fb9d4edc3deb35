"""Which API a recording speaks, and where in it the next response begins.

What ends a response is asked of `agentlib.providers.boundaries`, as a reader of a live stream asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from agentlib.providers.boundaries import Extent, api_of, identity_of
from agentlib.sse import DONE_EVENT

Provider: TypeAlias = Literal["responses", "chat", "messages", "gemini", "unknown"]
Native: TypeAlias = Mapping[str, Any]
_HINTS: dict[str, Provider] = {"error": "responses", "ping": "messages"}


class Start(NamedTuple):
    """A further response of `provider` begins; `cut` where the one before it had not ended."""

    position: int
    cut: bool
    provider: Provider


def detect_provider(events: Iterable[Native]) -> Provider:
    """Return the API whose words the first telling event uses, "unknown" where none tells.

    `error` and `ping` tell little: any server may send them. They count where nothing else does.
    """
    hint: Provider = "unknown"
    for event in events:
        api = api_of(event)
        if api:
            return cast("Provider", api)
        kind = event.get("type")
        if hint == "unknown" and isinstance(kind, str):
            hint = _HINTS.get(kind, hint)
    return hint


def find_starts(provider: Provider, events: Sequence[Native | None]) -> list[Start]:
    """Return where each response after the first begins; None among the events is `[DONE]`.

    A response that is still added to behind the beginning of the next one is not cut there: the
    two are interleaved, and judged as one.
    """
    starts: list[Start] = []
    extent, whole = Extent(provider), False
    apis = _apis(provider, events)
    # Those that `[DONE]` did not close, by their ID, each with the number of starts before it.
    earlier: dict[str, tuple[Extent, int]] = {}
    for position, event in enumerate(events):
        native = DONE_EVENT if event is None else event
        if event is None:
            for known, _ in earlier.values():
                known.next_begins(native)
            earlier = {name: known for name, known in earlier.items() if not known[0].done}
        again, count = earlier.get(identity_of(native), (None, 0))
        if again is not None and again.claims(native):
            del starts[count:]
            extent, whole = again, True
            earlier = {name: known for name, known in earlier.items() if known[1] < count}
        if not extent.next_begins(native) or (whole and not extent.done):
            continue
        if extent.done:
            earlier.clear()
        elif extent.identity:
            earlier.setdefault(extent.identity, (extent, len(starts)))
        cut, api = not (extent.ended or extent.done), apis[position]
        starts.append(Start(position, cut, api))
        extent, whole = Extent(api), False
        extent.next_begins(native)
    return starts


def _apis(provider: Provider, events: Sequence[Native | None]) -> list[Provider]:
    """Return for each place the API whose words come next; the last one where none come."""
    known, found = provider, [provider] * len(events)
    for position in range(len(events) - 1, -1, -1):
        event = events[position]
        known = cast("Provider", (api_of(event) if event is not None else "") or known)
        found[position] = known
    return found

"""What the Responses API objects to in a request's input, offline: a stand-in for its status 400.

It knows the six objections to `input` that agents meet most, in the API's own words as its users
report them, and nothing else: that it does not object says little, that it does says enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

Item: TypeAlias = Mapping[str, Any]


def objection(items: Sequence[Item], outputs: Iterable[Sequence[Item]] = ()) -> str | None:
    """Return what the API would answer to `items` as a request's input, or None.

    `outputs` are the outputs of the responses that came before: the server knows what it sent.
    """
    return next(_objections(items, list(outputs)), None)


def _objections(items: Sequence[Item], outputs: Sequence[Sequence[Item]]) -> Iterator[str]:
    places = {item["id"]: place for place, item in enumerate(items) if "id" in item}
    for item_id, times in Counter(item["id"] for item in items if "id" in item).items():
        if times > 1:
            yield f"Duplicate item found with id {item_id}."
    for output in outputs:
        for item, after in pairwise(output):
            if item.get("type") == "reasoning":
                yield from _torn(places, item, after)
        for item in output:
            place = places.get(item.get("id"))
            if item.get("type") == "reasoning" and place is not None and items[place] != item:
                yield f"The encrypted content of item '{item['id']}' could not be verified."
    yield from _unpaired(items)


def _torn(places: Mapping[str, int], item: Item, after: Item) -> Iterator[str]:
    """A reasoning item and the item that followed it come together, in order, or not at all."""
    place, place_after = places.get(item["id"]), places.get(after.get("id", ""))
    kind = after.get("type")
    if place is None and place_after is not None:
        yield (
            f"Item '{after['id']}' of type '{kind}' was provided without its required "
            f"'reasoning' item: '{item['id']}'."
        )
    elif place is not None and place_after != place + 1:
        yield (
            f"Item '{item['id']}' of type 'reasoning' was provided without its required "
            "following item."
        )


def _unpaired(items: Sequence[Item]) -> Iterator[str]:
    """A call and its output come together, the call first."""
    waiting: dict[str, None] = {}
    for item in items:
        if item.get("type") == "function_call":
            waiting[item["call_id"]] = None
        elif item.get("type") == "function_call_output":
            call_id = item["call_id"]
            if call_id not in waiting:
                yield f"No tool call found for function call output with call_id {call_id}."
            waiting.pop(call_id, None)
    for call_id in waiting:
        yield f"No tool output found for function call {call_id}."

"""Call IDs that are unique in a whole run, whatever the provider numbers.

An ID is unique in its response only: some servers begin at 0 in each. The history needs more,
since providers refuse one in which two calls share an ID, and so does the journal. So where an ID
was used before, the call gets the first free number behind it, in the native turn too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from agentlib.assembly import Decision
from agentlib.conversation import Entry, Message, NativeTurn, RejectedCall
from agentlib.jsonvalues import FrozenObject

# The APIs take no longer one.
MAX_CHARACTERS = 64
UNNAMED = "call"


def renumbered(decision: Decision, history: Sequence[Entry]) -> Decision:
    """Return `decision` with IDs that no call of `history` has; itself where none was used."""
    taken = _taken(history)
    ids = [_free(call.call_id, taken) for call in decision.calls]
    if ids == [call.call_id for call in decision.calls]:
        return decision
    new: dict[str, list[str]] = defaultdict(list)
    for call, call_id in zip(decision.calls, ids, strict=True):
        new[call.call_id].append(call_id)
    calls = zip(decision.calls, ids, strict=True)
    return replace(
        decision,
        calls=tuple(replace(call, call_id=call_id) for call, call_id in calls),
        native=_native(decision.native, new),
    )


def renumbered_rejected(
    calls: Iterable[RejectedCall], history: Sequence[Entry]
) -> tuple[RejectedCall, ...]:
    """Return the rejected calls that a history can hold: each with a name and an ID of its own."""
    taken = _taken(history)
    named = (call for call in calls if call.name)
    return tuple(replace(call, call_id=_free(call.call_id or UNNAMED, taken)) for call in named)


def _taken(history: Iterable[Entry]) -> set[str]:
    messages = (entry for entry in history if isinstance(entry, Message))
    return {call.call_id for message in messages for call in message.all_calls}


def _free(call_id: str, taken: set[str]) -> str:
    suffixes = (f"_{number}" if number > 1 else "" for number in count(1))
    numbered = (f"{call_id[: MAX_CHARACTERS - len(s)]}{s}" if s else call_id for s in suffixes)
    free = next(each for each in numbered if each not in taken)
    taken.add(free)
    return free


def _native(native: NativeTurn | None, new: dict[str, list[str]]) -> NativeTurn | None:
    if native is None:
        return None
    left = {call_id: iter(ids) for call_id, ids in new.items()}
    return replace(native, items=tuple(_item(item, left) for item in native.items))


def _item(item: FrozenObject, left: dict[str, Iterator[str]]) -> FrozenObject:
    part = item.get("functionCall")
    if isinstance(part, FrozenObject):  # a part of a Gemini turn
        return FrozenObject({**item, "functionCall": _renamed(part, "id", left)})
    return _renamed(item, "call_id", left) if item.get("type") == "function_call" else item


def _renamed(call: FrozenObject, key: str, left: dict[str, Iterator[str]]) -> FrozenObject:
    call_id = call.get(key)
    ids = left.get(call_id) if isinstance(call_id, str) else None
    return call if ids is None else FrozenObject({**call, key: next(ids, call_id)})

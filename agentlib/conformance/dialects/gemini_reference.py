"""The reference reader of the Gemini dialect, from Google's API reference.

`GenerateContentResponse`: every response of a stream carries the same ID and holds one candidate,
whose parts go on where the last one's ended. `FunctionCall` and `PartialArg`: a call's arguments
come whole, or piece by piece, each at the path of one argument; a string goes on while its piece
says so, a call while its part does, and no other call begins meanwhile. A candidate is complete
when its finish reason is STOP and no call goes on. Nothing comes after it but the usage, or
another response, by its ID.

Nothing is numbered, counted or restated, and a call without an ID is not at fault: it goes by its
place, which is written `local_call_1` and so on. What a mutation leaves of a valid stream goes
unseen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_START,
    REASONING,
    TEXT,
    WHOLE_CALL,
    Native,
)
from agentlib.conformance.dialects.reference import (
    Unseen,
    content,
    objects,
    require,
    string,
)
from agentlib.conformance.script import Content

_TEXT, _CALL = frozenset({TEXT}), frozenset({WHOLE_CALL})
_ARGUMENTS = frozenset({ARGUMENTS})
_ID = frozenset({CALL_START, WHOLE_CALL})

UNSEEN: tuple[Unseen, ...] = (
    Unseen(
        "arguments",
        "arguments are sent once and pieces have no number: what is lost or altered and still fits "
        "the schema stays",
        {
            "alter": _ARGUMENTS | _CALL,
            "drop": _ARGUMENTS,
            "double": _ARGUMENTS,
            "swap": _ARGUMENTS,
            "field": _ARGUMENTS | _CALL,
        },
    ),
    Unseen(
        "a call less",
        "nothing counts the calls, and no finish reason announces them: a lost one was never there",
        {
            "lost": frozenset({"whole call"}),
            "drop": _CALL,
            "field": _CALL,
        },
    ),
    Unseen(
        "a call more",
        "nothing counts the calls: one from nowhere is one more",
        {"extra": frozenset({"before the end"})},
    ),
    Unseen("the order", "calls have no number", {"swap": _CALL}),
    Unseen(
        "a call ID",
        "a call's ID is sent once, if at all",
        {"id": _ID, "field": _ID},
    ),
    Unseen(
        "a name",
        "a tool's name is sent once: another exposed tool that takes the same is as good",
        {"name": _ID},
    ),
    Unseen(
        "its end",
        "the finish reason is sent once: a gateway that rewrites MAX_TOKENS to STOP is believed",
        {"stop": frozenset({"end"})},
    ),
    Unseen(
        "the text",
        "text is sent once and its pieces have no number; a flag alone says that it is a thought",
        {
            "alter": _TEXT,
            "drop": _TEXT,
            "double": _TEXT,
            "swap": _TEXT,
            "field": _TEXT | frozenset({REASONING}),
        },
    ),
)
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_PATH = re.compile(r"\$(?:\.(\w+)|\['(\w+)'\])")


@dataclass(slots=True)
class _Call:
    """A call as the reference reader saw it begin, and its arguments so far."""

    call_id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    string: str = ""


@dataclass(slots=True)
class _Reply:
    """What the stream expressed so far."""

    response_id: str = ""
    reason: str = ""
    texts: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    goes_on: bool = False


def decode(events: Sequence[Native]) -> Content:
    """Return what the stream expresses; raises where the API does not allow it."""
    reply = _Reply()
    over = False
    for event in events:
        named = event.get("responseId")
        if reply.reason and isinstance(named, str) and named not in ("", reply.response_id):
            over = True  # another response begins, and the rest is its own
        if over:
            adds = event.get("candidates") or event.get("promptFeedback")
            require(named != reply.response_id or not adds)
            continue
        require(event.get("error") is None)
        _identify(reply, event.get("responseId"))
        feedback = event.get("promptFeedback")
        require(not isinstance(feedback, dict) or feedback.get("blockReason") is None)
        if event.get("candidates") not in (None, []):
            (candidate,) = objects(event["candidates"])
            require(candidate.get("index") in (None, 0))
            _take(reply, candidate)
    require(reply.response_id and reply.reason == "STOP" and not reply.goes_on)
    require(len({call.call_id for call in reply.calls}) == len(reply.calls))
    calls = ((call.call_id, call.name, json.dumps(call.arguments)) for call in reply.calls)
    return content(calls, reply.texts)


def _identify(reply: _Reply, response_id: object) -> None:
    if response_id is not None and string(response_id):
        require(reply.response_id in ("", response_id))
        reply.response_id = string(response_id)


def _take(reply: _Reply, candidate: Mapping[str, Any]) -> None:
    held = candidate.get("content")
    parts = held.get("parts") if held is not None else None
    for part in objects(parts) if parts is not None else ():
        filled = {key for key in ("text", "functionCall") if part.get(key) is not None}
        require(len(filled) <= 1)
        require(not reply.reason or not (part.get("text") or part.get("functionCall") is not None))
        require(part.get("thought") in (None, True, False))
        if "text" in filled and string(part["text"]):
            require(reply.response_id)
            reply.texts += [] if part.get("thought") else [part["text"]]
        if "functionCall" in filled:
            require(reply.response_id and not part.get("thought"))
            _call(reply, part["functionCall"])
    reason = candidate.get("finishReason")
    if reason is not None:
        require(reply.reason in ("", string(reason)) and not reply.goes_on)
        reply.reason = reason


def _call(reply: _Reply, native: Mapping[str, Any]) -> None:
    require(native.get("willContinue") in (None, True, False))
    if not reply.goes_on:
        call_id = native.get("id")
        require(call_id is None or not string(call_id).startswith("local_"))
        place = f"local_call_{len(reply.calls) + 1}"
        reply.calls.append(_Call(call_id or place, string(native["name"])))
    call = reply.calls[-1]
    if reply.goes_on:
        require(native.get("name") is None and native.get("id") in (None, "", call.call_id))
    reply.goes_on = bool(native.get("willContinue"))
    whole, pieces = native.get("args"), native.get("partialArgs")
    require(whole is None or isinstance(whole, dict))
    if whole:
        require(not (reply.goes_on or pieces or call.arguments))
        call.arguments = whole
    for piece in objects(pieces) if pieces is not None else ():
        _piece(call, piece)
    require(reply.goes_on or not call.string)


def _piece(call: _Call, piece: Mapping[str, Any]) -> None:
    found = _PATH.fullmatch(piece["jsonPath"])
    require(found)
    name = (found[1] or found[2]) if found else ""
    values = [key for key in _VALUES if key in piece]
    require(piece.get("willContinue") in (None, True, False))
    if call.string:
        require(name == call.string and values in ([], ["stringValue"]))
        call.arguments[name] += string(piece.get("stringValue", ""))
    else:
        require(name not in call.arguments and len(values) == 1)
        call.arguments[name] = _value(values[0], piece)
    require(not piece.get("willContinue") or isinstance(call.arguments[name], str))
    call.string = name if piece.get("willContinue") else ""


def _value(key: str, piece: Mapping[str, Any]) -> Any:
    value = piece[key]
    if key == "stringValue":
        return string(value)
    if key == "numberValue":
        require(type(value) in (int, float))
    elif key == "boolValue":
        require(type(value) is bool)
    else:
        require(value is None or isinstance(value, str))
        return None
    return value

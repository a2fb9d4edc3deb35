"""What a decision client meets on the wire, by symptom: one table for the tests and the chapter.

Each row is played on a real server, by the real SDK. What must come of it stands in the row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from agentlib.decisions.failures import Result
from agentlib.faultserver.replies import Reply
from agentlib.tables import Table, table
from workbook.pages.decision_replies import EDIT, USAGE, as_json, events, streamed, whole


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something seen on the wire, and what each request of the decision comes to.

    `streamed` is what the server answers `adecide`, and `whole` what it answers `decide`, None
    where it can only happen in a stream. `stalls` says that the first reply never ends.
    """

    name: str
    results: tuple[Result, ...]
    streamed: tuple[Reply, ...]
    whole: tuple[Reply, ...] | None
    stalls: bool = False

    @property
    def kind(self) -> Result:
        """The class of the symptom."""
        return self.results[0]

    @property
    def told(self) -> bool:
        """Whether the model is told of it."""
        return self.kind == "parse"


STREAM, WHOLE = streamed(EDIT), whole(EDIT)
FIRST, SECOND = STREAM.ends[:2]
BROKEN = ("edit", '{"path": "calculator.py", "old": "return')
MISTYPED = ("edit", {"path": 3, "old": "return a - b", "new": "return a + b"})
TRAILING = {"error": {"message": "the server is overloaded", "type": "overloaded_error"}}
NO_STREAMING = "Streaming is not supported together with tools."


def _reply(name: str, kind: Result, first: Reply, plain: Reply | None, **more: Any) -> Symptom:
    # It happens once, and the next reply is good.
    last = WHOLE if kind == "capability" else STREAM
    both = None if plain is None else (plain, WHOLE)
    return Symptom(name, (kind, "decision"), (first, last), both, **more)


def _said(name: str, *calls: Any, **said: Any) -> Symptom:
    return _reply(name, "parse", streamed(*calls, **said), whole(*calls, **said))


def _both(name: str, kind: Result, reply: Reply) -> Symptom:
    return _reply(name, kind, reply, reply)


def _final(name: str, *results: Result, first: Reply, plain: Reply | None = None) -> Symptom:
    # It happens every time, and ends the decision.
    return Symptom(name, results, (first,), (plain or first,))


def _without_ids() -> Reply:
    call = {"index": 0, "function": {"name": "edit", "arguments": "{}"}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
    return events([{"id": "c", "choices": [choice], "usage": USAGE}])


def _inserted(event: bytes) -> Reply:
    return replace(STREAM, body=STREAM.body[:FIRST] + event + STREAM.body[FIRST:])


def _mislabelled() -> Reply:
    return replace(WHOLE, headers={"content-type": "text/event-stream"})


SYMPTOMS: tuple[Symptom, ...] = (
    _said("words, and no call", text="I would repair it."),
    _said("a reply with nothing in it"),
    _said("two calls in one reply", EDIT, EDIT),
    _said("arguments that are cut", BROKEN),
    _said("arguments of a wrong type", MISTYPED),
    _said("a tool that is not admitted", ("delete", {"path": "calculator.py"})),
    _said("an answer without words", ("final_answer", {"answer": " "})),
    _said("cut at the limit of output tokens", BROKEN, finish="length"),
    _said("stopped by a content filter", text="I would", finish="content_filter"),
    _final(
        "two calls, three times",
        "parse",
        "parse",
        "parse",
        first=streamed(EDIT, EDIT),
        plain=whole(EDIT, EDIT),
    ),
    _both("the connection is reset", "transport", Reply.refuse()),
    _reply(
        "a reset within the reply",
        "transport",
        STREAM.reset(at=SECOND),
        WHOLE.reset(at=20),
    ),
    _reply(
        "an end within the reply",
        "transport",
        STREAM.close(at=SECOND),
        WHOLE.close(at=20),
    ),
    _reply(
        "a stall within the reply",
        "transport",
        STREAM.stall(at=FIRST),
        WHOLE.stall(at=20),
        stalls=True,
    ),
    _reply(
        "a damaged piece of the reply",
        "transport",
        _inserted(b'data: {"id": "ch\xff\n\n'),
        replace(WHOLE, body=WHOLE.body.replace(b"edit", b"\xff\xff\xff\xff")),
    ),
    _reply(
        "an error in place of the rest",
        "transport",
        _inserted(b"data: " + json.dumps(TRAILING).encode() + b"\n\n"),
        as_json(TRAILING),
    ),
    _both("status 200, and a proxy's page", "transport", Reply.html()),
    _both("status 503", "transport", Reply.error(503)),
    _both(
        "status 429, come back in 7 s", "transport", Reply.error(429, headers={"retry-after": "7"})
    ),
    _final(
        "status 503, three times", "transport", "transport", "transport", first=Reply.error(503)
    ),
    _final(
        "status 429, no money left", "transport", first=Reply.error(429, code="insufficient_quota")
    ),
    _final("status 401, a wrong key", "transport", first=Reply.error(401)),
    _final(
        "status 400, for some reason", "transport", first=Reply.error(400, message="stream broke")
    ),
    _both("status 200, and no body", "empty", Reply.blank()),
    _both("status 200, and a blank body", "empty", Reply.blank(b" \r\n\r\n")),
    _both("status 200, and NUL bytes", "empty", Reply.blank(bytes(3000))),
    _both(
        "status 200, no body, called JSON", "empty", Reply.blank().content_type("application/json")
    ),
    _reply(
        "status 400, no streaming with tools",
        "capability",
        Reply.error(400, message=NO_STREAMING),
        None,
    ),
    _reply("one JSON object in place of a stream", "capability", WHOLE, None),
    _reply("one JSON object, called a stream", "capability", _mislabelled(), None),
    _reply("streamed calls without call IDs", "capability", _without_ids(), None),
    _reply("calls announced, and none streamed", "capability", streamed(finish="tool_calls"), None),
)


NEXT: dict[Result, str] = {
    "parse": "with a message that says what is wrong",
    "transport": "the same, after a wait",
    "empty": "the same, after a wait",
    "capability": "the same, not streamed from now on",
}


def symptom(name: str) -> Symptom:
    """Return the symptom of this name. Raises ValueError, with those there are."""
    found = next((each for each in SYMPTOMS if each.name == name), None)
    if found is None:
        names = ", ".join(each.name for each in SYMPTOMS)
        raise ValueError(f"no symptom {name!r}; there are: {names}")
    return found


def symptom_table() -> Table:
    """Return every symptom with its class, and how many requests the server sees in all."""
    rows = []
    for each in SYMPTOMS:
        count = len(each.results)
        following = NEXT[each.kind] if count > 1 else "none: it would be answered alike"
        rows.append((each.name, each.kind, count, following))
    return table("symptom, class, requests, the next request", rows)

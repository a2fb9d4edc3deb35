"""Authored Responses streams: a small story, written in every framing that the API allows.

The oracle of the tests: it stands apart from `agentlib.conformance.dialects` on purpose, and
imports nothing of them. Where the two disagree, one of them has misread the API's reference.

A story is what the model means to express: texts, refusals and calls, in order. A framing is how
a server cuts it into events. Whatever the framing, the story stays the same, and so must the
decision.
"""

import copy
import json
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from agentlib import Catalog, Limits, ResponseFailure, ResponseReader, ToolSpec
from agentlib.gate import CHECK_NAMES
from agentlib.jsonvalues import FrozenObject, one_line
from agentlib.recordings.capture import Capture

BODY_USAGE = {
    "input_tokens": 120,
    "input_tokens_details": {"cached_tokens": 64},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 8},
    "total_tokens": 150,
}


@dataclass(frozen=True)
class Say:
    """A message: its text parts, or its refusals."""

    parts: tuple[str, ...]
    refusal: bool = False


@dataclass(frozen=True)
class Call:
    """A function call; `arguments` is its argument text."""

    name: str
    arguments: str
    call_id: str


@dataclass(frozen=True)
class Story:
    items: tuple[Say | Call, ...]
    response_id: str = "resp_1"
    usage: dict | None = field(default_factory=lambda: BODY_USAGE)

    @property
    def calls(self):
        return [item for item in self.items if isinstance(item, Call)]


@dataclass(frozen=True)
class Framing:
    """How a story becomes events.

    `piece` is the size of a delta in characters, or in UTF-16 code units where `units` is set,
    as a server written in JavaScript would cut. `whole` says where a call's arguments stand: in
    "deltas", or whole at "added", at "done" (arguments.done) or only in the "item" that is done.
    `before` are the kinds that precede response.created.
    """

    piece: int = 4
    units: bool = False
    whole: str = "deltas"
    interleaved: bool = False
    numbered: bool = True
    indexed: bool = True
    parts: bool = True
    extras: bool = False
    before: tuple[str, ...] = ()


PLAIN = Framing()
BARE = Framing(numbered=False)
KEEP_ALIVE = {"type": "keepalive"}
UNKNOWN = {"type": "response.something_new.delta", "item_id": "nobody", "delta": "{"}


def every_framing():
    """Yield every combination that tells one thing apart from another."""
    wholes = ("deltas", "added", "done", "item")
    for piece, whole, interleaved in product((1, 3, 10_000), wholes, (False, True)):
        plain = Framing(piece=piece, whole=whole, interleaved=interleaved)
        yield plain
        yield replace(plain, numbered=False, extras=True)
        yield replace(plain, indexed=False, parts=False, before=("response.queued",))
    yield replace(PLAIN, piece=1, units=True)
    yield replace(PLAIN, before=("keepalive", "response.queued", "response.queued"))


def tell(story, framing=PLAIN):
    """Return the story's native events in this framing, each a fresh plain dict."""
    tracks = [_track(item, number, framing) for number, item in enumerate(story.items)]
    created = _body(story, "in_progress")
    events = [_before(kind, story) for kind in framing.before]
    events.append({"type": "response.created", "response": created})
    events.append({"type": "response.in_progress", "response": created})
    events += _round_robin(tracks) if framing.interleaved else [e for t in tracks for e in t]
    completed = _body(story, "completed")
    completed["output"] = [whole_item(item, n) for n, item in enumerate(story.items)]
    completed["usage"] = story.usage
    events.append({"type": "response.completed", "response": completed})
    if framing.extras:
        events = [e for event in events for e in (event, KEEP_ALIVE, UNKNOWN)][:-2]
    events = [copy.deepcopy(event) for event in events]
    return renumbered(events) if framing.numbered else events


def renumbered(events):
    """Give each event its sequence number, from 0."""
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return events


def unnumbered(events):
    """Take the sequence numbers away: a server need not send them."""
    return [{k: v for k, v in event.items() if k != "sequence_number"} for event in events]


def whole_item(item, number):
    """Return an item as it stands when it is done."""
    if isinstance(item, Call):
        return {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": item.call_id,
            "name": item.name,
            "arguments": item.arguments,
            "status": "completed",
        }
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [_part(item, text) for text in item.parts],
    }


def _body(story, status):
    return {
        "id": story.response_id,
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "output": [],
        "usage": None,
    }


def _before(kind, story):
    if kind.startswith("response."):
        return {"type": kind, "response": _body(story, kind.removeprefix("response."))}
    return {"type": kind}


def _part(item, text):
    if item.refusal:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": []}


def _track(item, number, framing):
    where = {"item_id": whole_item(item, number)["id"]}
    place = {"output_index": number} if framing.indexed else {}
    make = _call_events if isinstance(item, Call) else _message_events
    whole = whole_item(item, number)
    started = {**whole, "status": "in_progress"}
    started |= {"arguments": ""} if isinstance(item, Call) else {"content": []}
    if isinstance(item, Call) and framing.whole == "added":
        started["arguments"] = item.arguments
    inner = make(item, framing)
    return [
        {"type": "response.output_item.added", **place, "item": started},
        *({"type": kind, **where, **place, **rest} for kind, rest in inner),
        {"type": "response.output_item.done", **place, "item": whole},
    ]


def _call_events(item, framing):
    events = []
    if framing.whole == "deltas":
        kind = "response.function_call_arguments.delta"
        events += [(kind, {"delta": piece}) for piece in pieces(item.arguments, framing)]
    if framing.whole != "item":
        restated = {"arguments": item.arguments, "name": item.name}
        events.append(("response.function_call_arguments.done", restated))
    return events


def _message_events(item, framing):
    kind, name = ("refusal", "refusal") if item.refusal else ("output_text", "text")
    events = []
    for number, text in enumerate(item.parts):
        place = {"content_index": number}
        if framing.parts:
            empty = {"part": _part(item, "")}
            events.append(("response.content_part.added", {**place, **empty}))
        delta = f"response.{kind}.delta"
        events += [(delta, {**place, "delta": piece}) for piece in pieces(text, framing)]
        events.append((f"response.{kind}.done", {**place, name: text}))
        if framing.parts:
            events.append(("response.content_part.done", {**place, "part": _part(item, text)}))
    return events


def pieces(text, framing):
    """Cut a text into the framing's fragments."""
    size = framing.piece
    if not framing.units:
        return [text[at : at + size] for at in range(0, len(text), size)]
    units = text.encode("utf-16-le", "surrogatepass")
    cuts = (units[at : at + 2 * size] for at in range(0, len(units), 2 * size))
    return [cut.decode("utf-16-le", "surrogatepass") for cut in cuts]


def _round_robin(tracks):
    # Items begin in order and then take turns, so that each is open while the others are.
    tracks = [list(track) for track in tracks]
    merged = [track.pop(0) for track in tracks]
    while any(tracks):
        merged += [track.pop(0) for track in tracks if track]
    return merged


@dataclass
class Outcome:
    """What came of a stream: exactly one of `decision` and `failure`, and the reader."""

    decision: object
    failure: ResponseFailure | None
    reader: ResponseReader
    released_at: int | None


def read(events, catalog=None, limits=None, **options):
    """Read every event, also those after the end, then the end of the stream."""
    reader = ResponseReader("responses", catalog, limits, **options)
    decision = released_at = None
    failures = []
    steps = [*(partial(reader.accept, event) for event in events), reader.end]
    for number, step in enumerate(steps, 1):
        try:
            found = step()
        except ResponseFailure as error:
            failures.append(error)
            continue
        if found is not None:
            assert decision is None, "a response is released once"
            decision, released_at = found, number
    failure = failures[0] if failures else None
    assert all(error is failure for error in failures), "a response fails once"
    assert (decision is None) != (failure is None)
    assert reader.assembly.decision is decision
    assert reader.assembly.failure is failure
    return Outcome(decision, failure, reader, released_at)


def rejected(events, catalog=None, limits=None):
    """Return the failure of a stream that must release nothing."""
    outcome = read(events, catalog, limits)
    assert outcome.decision is None, f"released {outcome.decision}"
    failure = outcome.failure
    assert failure.check in CHECK_NAMES
    assert 0 < len(failure.reason) < 2500
    assert one_line(str(failure)) == str(failure)
    assert str(failure).encode()
    return failure


def refused(events, check="lifecycle", limits=None):
    """Return the failure of a stream that releases nothing, by this check."""
    failure = rejected(events, TOOLS, limits)
    assert failure.check == check
    return failure


def edited(story, kind, change, framing=None):
    """Return the story's events, those of this kind changed in place by `change`."""
    events = tell(story, framing or BARE)
    hits = [event for event in events if event["type"] == f"response.{kind}"]
    assert hits, kind
    for event in hits:
        change(event)
    return events


def output(story, change):
    """Return the story's events, with what `change` makes of the final output's items."""

    def apply(event):
        items = event["response"]["output"]
        event["response"]["output"] = change(items) or items

    return edited(story, "completed", apply)


def after(events, kind, *more, last=False):
    """Return the events with more of them after the first, or last, of this kind."""
    places = [n for n, event in enumerate(events) if event["type"] == f"response.{kind}"]
    place = places[-1 if last else 0] + 1
    return [*events[:place], *more, *events[place:]]


def said(decision):
    """Return what a decision says, as plain values to compare."""
    calls = [(c.call_id, c.name, json.dumps(plain(c.arguments))) for c in decision.calls]
    return decision.response_id, decision.text, decision.refusal, calls, decision.usage


def plain(value):
    """Return a plain copy of a frozen value."""
    if isinstance(value, FrozenObject):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, tuple) else value


def recorded(events, name="stream"):
    """Return the events as a capture."""
    return Capture.from_events(events, name)


READ_FILE = ToolSpec.strings("read_file", "Read a file.", path="The file's path.")
EDIT = ToolSpec.strings("edit", "Replace a text.", path="The file.", old="Old.", new="New.")
RUN_TESTS = ToolSpec.strings("run_tests", "Run the tests.")
COUNT = ToolSpec(
    "count",
    "Count to a number.",
    FrozenObject(
        {
            "type": "object",
            "properties": {"to": {"type": "integer"}, "step": {"type": "integer", "default": 1}},
            "required": ["to"],
        }
    ),
)
TOOLS = Catalog([READ_FILE, EDIT, RUN_TESTS, COUNT])
LIMITS = Limits()

ONE_CALL = Story((Call("read_file", '{"path": "src/app.py"}', "call_a"),))
TEXT_ONLY = Story((Say(("Both files are fine.",)),))
REFUSAL = Story((Say(("I will not do that.",), refusal=True),))
TEXT_THEN_CALL = Story(
    (Say(("I look at it first. ", "Then: ñ, 漢, 😀.")), Call("count", '{"to": 3}', "call_c"))
)
THREE_CALLS = Story(
    (
        Say(("Three at once.",)),
        Call("read_file", '{"path": "a\\u00e9\\ud83d\\ude00.py"}', "call_a"),
        Call("edit", '{"path": "b.py", "old": "😀\\n", "new": ""}', "call_b"),
        Call("run_tests", "{}", "call_c"),
    )
)
STORIES = {
    "one call": ONE_CALL,
    "text only": TEXT_ONLY,
    "refusal": REFUSAL,
    "text then call": TEXT_THEN_CALL,
    "three calls": THREE_CALLS,
}

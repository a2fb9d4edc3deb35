r"""Tally: an invented API, for a reader who writes an adapter. This is its whole reference.

A reply is a stream of events. Each is an object with a number `n` and a word `says`:

    {"n": 1, "says": "hello", "reply": "r_1"}
    {"n": 2, "says": "words", "words": "I look."}
    {"n": 3, "says": "ask", "ask": "a1", "tool": "read"}
    {"n": 4, "says": "input", "ask": "a1", "piece": "{\"path\": "}
    {"n": 5, "says": "wait"}
    {"n": 6, "says": "input", "ask": "a1", "piece": "\"a.py\"}"}
    {"n": 7, "says": "goodbye", "why": "done", "asks": 1,
     "tokens": {"in": 120, "cached": 64, "out": 30, "thought": 8}}

- `n` counts every event from 1, without a gap.
- `hello` comes first, once, and has the reply's ID, which is not empty.
- `words` is more of the answer, `thought` (with `words` too) more of the reasoning.
- `ask` begins a call of a tool. Its ID is not empty, and no other ask of the reply has it.
- `input` is more of the JSON text of an ask that began before. Those of several asks may take
  turns. An ask of a tool without parameters may have none, which means {}.
- `goodbye` ends the reply. `why` is `done`, or `full` (no more tokens), `blocked` (by a filter) or
  `broken`; `asks` is how many asks there were. What comes after it belongs to no reply.
- Any other word may come, says nothing, and is counted like the rest.

It numbers its events and counts its calls, so that nothing can be lost, doubled or exchanged
unseen. It restates nothing, so that what is altered in its place can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentlib.conformance.dialects.common import (
    ARGUMENTS,
    CALL_START,
    OPENING,
    REASONING,
    TERMINAL,
    TEXT,
    Dialect,
    EncodedEvent,
    Encoding,
    Native,
    Variant,
    changed,
    merged,
    pieces,
    with_keep_alives,
)
from agentlib.conformance.dialects.reference import (
    NotAllowed,
    Unseen,
    content,
    require,
    string,
    whole,
)
from agentlib.conformance.script import Content, Script
from agentlib.conversation import Usage

# What chapter 07 hands to its reader, who has no other documentation of this API.
TALLY_REFERENCE = __doc__

ENDS = {"complete": "done", "length": "full", "filter": "blocked", "failed": "broken"}


@dataclass(frozen=True, slots=True)
class TallyFraming:
    """How a server of this API cuts a script into events; `piece` is the size of a fragment.

    `empty` is whether an ask without parameters has no input.
    """

    name: str
    piece: int = 6
    units: bool = False
    interleaved: bool = False
    empty: bool = False
    keep_alives: bool = False


class Tally(Dialect):
    """Everything numbered and counted, nothing restated."""

    name = "tally"
    title = "Tally, an invented API"
    ids = frozenset({"reply", "ask"})
    numbers = frozenset({"n", "asks"})
    names = frozenset({"tool"})
    fragments = frozenset({"words", "piece"})
    unseen = (
        Unseen("its end", "why it ended is sent once", {"stop": frozenset({"end"})}),
        Unseen(
            "a call ID",
            "an ask without input has its ID once",
            {"id": frozenset({CALL_START})},
        ),
        Unseen("a name", "a tool's name is sent once", {"name": frozenset({CALL_START})}),
        Unseen(
            "arguments",
            "a piece is sent once: where it is altered, put to another ask, or given a word that "
            "nobody knows, what still fits the schema stays",
            {
                "alter": frozenset({ARGUMENTS}),
                "id": frozenset({ARGUMENTS}),
                "field": frozenset({ARGUMENTS}),
            },
        ),
        Unseen(
            "the text",
            "words are sent once",
            {"alter": frozenset({TEXT}), "field": frozenset({TEXT})},
        ),
    )

    framings = (
        TallyFraming("plain"),
        *(
            TallyFraming(
                f"pieces of {piece}{', interleaved' if turns else ''}", piece, False, turns
            )
            for piece in (1, 4, 10_000)
            for turns in (False, True)
        ),
        TallyFraming("pieces of UTF-16", 1, units=True),
        TallyFraming("no empty input", empty=True),
        TallyFraming("unknown words", keep_alives=True),
    )
    mutated = (framings[0], TallyFraming("interleaved", 3, interleaved=True, empty=True))

    def expresses(self, script: Script) -> bool:
        """Say whether there are words for it: there are none for a refusal."""
        return not script.refusal

    def usage(self, script: Script) -> Usage | None:
        """Return the usage: this API reports all of it."""
        return script.usage

    def encode(self, script: Script, framing: TallyFraming) -> Encoding:
        """Return the script's native events."""
        encoding = [
            EncodedEvent(OPENING, {"says": "hello", "reply": "r_1"}),
            *_words(REASONING, "thought", script.reasoning, framing),
            *_words(TEXT, "words", "".join(script.text), framing),
            *merged(_asks(script, framing), interleaved=framing.interleaved),
            EncodedEvent(TERMINAL, _goodbye(script)),
        ]
        if framing.keep_alives:
            encoding = with_keep_alives(
                encoding, ({"says": "wait"}, {"says": "sing", "words": "la"})
            )
        return [sent.with_event({"n": n, **sent.event}) for n, sent in enumerate(encoding, 1)]

    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether the first goodbye says that it is done."""
        for event in events:
            if event.get("says") == "goodbye":
                return event.get("why") == "done"
        return False

    def stops(self, encoding: Encoding) -> Iterator[Variant]:
        """Yield the encoding with each other reason for its end."""
        for at, sent in enumerate(encoding):
            if sent.event.get("says") == "goodbye":
                for why in (*ENDS.values(), None, "bored"):
                    if sent.event.get("why") != why:
                        other = changed(sent, why=why)
                        yield f"why {why}", [*encoding[:at], other, *encoding[at + 1 :]]

    def decode(self, events: Sequence[Native]) -> Content:
        """Return what the stream expresses; raises where the API does not allow it."""
        asks: dict[str, list[str]] = {}
        words: list[str] = []
        for number, event in enumerate(events, 1):
            says = event["says"]
            require(whole(event["n"]) == number and (says == "hello") == (number == 1))
            if says == "hello":
                require(string(event["reply"]))
            elif says == "words":
                words.append(string(event["words"]))
            elif says == "ask":
                require(string(event["ask"]) and event["ask"] not in asks)
                asks[event["ask"]] = [string(event["tool"]), ""]
            elif says == "input":
                asks[event["ask"]][1] += string(event["piece"])
            elif says == "goodbye":
                require(event["why"] == "done" and whole(event["asks"]) == len(asks))
                return content(((i, tool, text) for i, (tool, text) in asks.items()), words)
        raise NotAllowed


def _words(place: str, says: str, text: str, framing: TallyFraming) -> Iterator[EncodedEvent]:
    for piece in pieces(text, framing.piece, units=framing.units):
        yield EncodedEvent(place, {"says": says, "words": piece})


def _asks(script: Script, framing: TallyFraming) -> Iterator[Encoding]:
    for call in script.calls:
        cut = pieces(call.arguments, framing.piece, units=framing.units)
        if framing.empty and call.name == "test" and call.arguments == "{}":
            cut = []
        ask = {"ask": call.call_id}
        yield [
            EncodedEvent(CALL_START, {"says": "ask", **ask, "tool": call.name}, call.call_id),
            *(
                EncodedEvent(ARGUMENTS, {"says": "input", **ask, "piece": p}, call.call_id)
                for p in cut
            ),
        ]


def _goodbye(script: Script) -> Native:
    event: Native = {"says": "goodbye", "why": ENDS[script.stop], "asks": len(script.calls)}
    if script.usage is not None:
        event["tokens"] = {
            "in": script.usage.input_tokens,
            "cached": script.usage.cached_tokens,
            "out": script.usage.output_tokens,
            "thought": script.usage.reasoning_tokens,
        }
    return event

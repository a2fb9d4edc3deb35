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
    Native,
    Said,
    Telling,
    Variant,
    changed,
    merged,
    pieces,
    with_nothings,
)
from agentlib.conformance.dialects.reference import Illegal, Unseen, content, law, string, whole
from agentlib.conformance.script import Content, Story
from agentlib.conversation import Usage

# What chapter 07 hands to its reader, who has no other documentation of this API.
TALLY_REFERENCE = __doc__

ENDS = {"complete": "done", "length": "full", "filter": "blocked", "failed": "broken"}


@dataclass(frozen=True, slots=True)
class TallyFraming:
    """How a server of this API cuts a story into events; `piece` is the size of a fragment.

    `empty` is whether an ask without parameters has no input.
    """

    name: str
    piece: int = 6
    units: bool = False
    interleaved: bool = False
    empty: bool = False
    nothings: bool = False


class Tally(Dialect):
    """Everything numbered and counted, nothing restated."""

    name = "tally"
    title = "Tally, an invented API"
    ids = frozenset({"reply", "ask"})
    numbers = frozenset({"n", "asks"})
    names = frozenset({"tool"})
    fragments = frozenset({"words", "piece"})
    unseen = (
        Unseen("its end", "why it ended is said once", {"stop": frozenset({"end"})}),
        Unseen(
            "a call ID",
            "an ask without input says its ID once",
            {"id": frozenset({CALL_START})},
        ),
        Unseen("a name", "a tool's name is said once", {"name": frozenset({CALL_START})}),
        Unseen(
            "arguments",
            "a piece is said once: where it is altered, put to another ask, or given a word that "
            "nobody knows, what still fits the schema stays",
            {
                "alter": frozenset({ARGUMENTS}),
                "id": frozenset({ARGUMENTS}),
                "field": frozenset({ARGUMENTS}),
            },
        ),
        Unseen(
            "the text",
            "words are said once",
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
        TallyFraming("unknown words", nothings=True),
    )
    harmed = (framings[0], TallyFraming("interleaved", 3, interleaved=True, empty=True))

    def tells(self, story: Story) -> bool:
        """Say whether there are words for it: there are none for a refusal."""
        return not story.refusal

    def usage(self, story: Story) -> Usage | None:
        """Return the usage: this API reports all of it."""
        return story.usage

    def tell(self, story: Story, framing: TallyFraming) -> Telling:
        """Return the story's native events."""
        telling = [
            Said(OPENING, {"says": "hello", "reply": "r_1"}),
            *_words(REASONING, "thought", story.reasoning, framing),
            *_words(TEXT, "words", "".join(story.text), framing),
            *merged(_asks(story, framing), interleaved=framing.interleaved),
            Said(TERMINAL, _goodbye(story)),
        ]
        if framing.nothings:
            telling = with_nothings(telling, ({"says": "wait"}, {"says": "sing", "words": "la"}))
        return [said.saying({"n": n, **said.event}) for n, said in enumerate(telling, 1)]

    def completes(self, events: Sequence[Native]) -> bool:
        """Say whether the first goodbye says that it is done."""
        for event in events:
            if event.get("says") == "goodbye":
                return event.get("why") == "done"
        return False

    def stops(self, telling: Telling) -> Iterator[Variant]:
        """Yield the telling with each other reason for its end."""
        for at, said in enumerate(telling):
            if said.event.get("says") == "goodbye":
                for why in (*ENDS.values(), None, "bored"):
                    if said.event.get("why") != why:
                        told = changed(said, why=why)
                        yield f"why {why}", [*telling[:at], told, *telling[at + 1 :]]

    def judge(self, events: Sequence[Native]) -> Content:
        """Return what the stream tells; raises where the reference does not allow it."""
        asks: dict[str, list[str]] = {}
        words: list[str] = []
        for number, event in enumerate(events, 1):
            says = event["says"]
            law(whole(event["n"]) == number and (says == "hello") == (number == 1))
            if says == "hello":
                law(string(event["reply"]))
            elif says == "words":
                words.append(string(event["words"]))
            elif says == "ask":
                law(string(event["ask"]) and event["ask"] not in asks)
                asks[event["ask"]] = [string(event["tool"]), ""]
            elif says == "input":
                asks[event["ask"]][1] += string(event["piece"])
            elif says == "goodbye":
                law(event["why"] == "done" and whole(event["asks"]) == len(asks))
                return content(((i, tool, text) for i, (tool, text) in asks.items()), words)
        raise Illegal


def _words(place: str, says: str, text: str, framing: TallyFraming) -> Iterator[Said]:
    for piece in pieces(text, framing.piece, units=framing.units):
        yield Said(place, {"says": says, "words": piece})


def _asks(story: Story, framing: TallyFraming) -> Iterator[Telling]:
    for call in story.calls:
        cut = pieces(call.arguments, framing.piece, units=framing.units)
        if framing.empty and call.name == "test" and call.arguments == "{}":
            cut = []
        ask = {"ask": call.call_id}
        yield [
            Said(CALL_START, {"says": "ask", **ask, "tool": call.name}, call.call_id),
            *(Said(ARGUMENTS, {"says": "input", **ask, "piece": p}, call.call_id) for p in cut),
        ]


def _goodbye(story: Story) -> Native:
    event: Native = {"says": "goodbye", "why": ENDS[story.stop], "asks": len(story.calls)}
    if story.usage is not None:
        event["tokens"] = {
            "in": story.usage.input_tokens,
            "cached": story.usage.cached_tokens,
            "out": story.usage.output_tokens,
            "thought": story.usage.reasoning_tokens,
        }
    return event

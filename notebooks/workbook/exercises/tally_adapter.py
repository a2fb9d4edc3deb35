"""An adapter for the invented API Tally, tried on the contract's hostile streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from agentlib.conformance.dialects.common import CALL_START, TERMINAL, Native
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.mutations import EncodedScript, Mutation, every_mutation
from agentlib.conformance.script import (
    ONE_CALL,
    SCRIPTS,
    STOPS,
    TEXT_ONLY,
    THREE_CALLS,
    TWO_ALIKE,
    Content,
    Script,
    catalog,
)
from agentlib.conformance.trials import Maker, Outcome, judge, maker, run
from agentlib.providers.fields import TranslatorOptions
from agentlib.vocabulary import Event
from agentlib.wording import short_line
from workbook.grading.grader import Exercise, Trial, Wrong
from workbook.grading.grader import Outcome as Returned
from workbook.grading.verdict import Verdict

TALLY = DIALECTS["tally"]
PLAIN, TURNS = TALLY.mutated

# What is done to a stream, and what a reader of Tally's reference has to say to that, in the order
# in which it is tried: first what a first draft forgets.
MUTATIONS = {
    "cut": (
        "the stream ends early",
        "It never said goodbye, so nobody knows what would have come.",
    ),
    "stop": ("another end", "It did not end because it was done."),
    "drop": (
        "an event is lost",
        "The numbers have a gap, and an adapter sees it if it looks.",
    ),
    "double": ("an event comes twice", "Its number came with it, and is the wrong one now."),
    "swap": ("two events change places", "Their numbers say so."),
    "lost": ("a whole ask is lost", "The numbers have a gap, and the goodbye counts it."),
    "extra": (
        "an ask comes from nowhere",
        "Its numbers are those of another reply, and the goodbye does not count it.",
    ),
    "number": ("a number is wrong", "An event has a number, and the goodbye counts the asks."),
    "id": ("an ID is changed", "An ask and its input no longer agree."),
    "name": ("a name is changed", "No such tool is exposed."),
    "field": (
        "a field is damaged",
        "The stream no longer says what the goodbye counts, or what the reference asks for.",
    ),
    "alter": ("a text is altered", "The arguments are no longer what their tool takes."),
}
# Each script, with what is done to it besides the mutations to events, numbers and IDs.
SCRIPTS_MUTATED = (
    (ONE_CALL, PLAIN, {"alter"}),
    (TWO_ALIKE, TURNS, set[str]()),
    (THREE_CALLS, TURNS, {"field"}),
)


class SmallTranslator:
    """What a translator of a small API need not write itself; `translate` is left to write.

    It is made once for each response. Its stream completes nothing by ending.
    """

    trailing = False

    def __init__(self, options: TranslatorOptions) -> None:
        self.options = options

    def is_meaningful(self, native: Native) -> bool:
        """Say whether an event shows that the response goes on."""
        del native
        return True

    def translate(self, native: Native) -> Iterable[Event]:
        """Return or yield the neutral events that one native event stands for."""
        raise NotImplementedError

    def finish(self) -> Iterable[Event]:
        """Return the neutral events that the clean end of the stream stands for: none."""
        return ()


class TranslatorExercise(Exercise):
    """An exercise whose answer is a class: a translator, or a whole adapter, of one stream."""

    def check(self, function: object) -> Verdict:
        """Try the reader's class on every stream, and return the verdict. Never raises."""
        problem = self._unusable(function)
        try:
            make = maker(function)
        except TypeError as error:
            problem = problem or f"{error}: write a class with translate(event)"
        if problem is not None:
            return self._verdict(why=problem)
        return super().check(_reading(make))


def _reading(make: Maker) -> Callable[[Sequence[Native]], Outcome]:
    exposed = catalog()
    return lambda events: run(make, exposed, events)


def _intact(encoded: EncodedScript) -> Trial:
    expected = encoded.script.content

    def judged(returned: Returned) -> Wrong | None:
        outcome = _outcome(returned)
        if outcome is not None and outcome.matches(expected):
            return None
        why = "Nothing is wrong with this reply."
        if outcome is not None and outcome.calls is None and not outcome.refused:
            why = "It said goodbye, and was done: now its calls are released."
        elif outcome is not None and outcome.calls is not None:
            why = "What is released is not what the reply says. Compare it with the reference."
            if len(outcome.calls) < len(expected.calls):
                why = "The reply has an ask, and no call is released for it."
        return Wrong(why, _told(expected), _shown(returned))

    return Trial(
        stream=f"{encoded.script.name}, encoded as {encoded.framing.name}",
        place=f"{len(encoded.events)} events",
        prepare=lambda: (encoded.events,),
        judge=judged,
    )


def _hostile(
    encoded: EncodedScript, kind: str, act: str, place: str, events: list[Native]
) -> Trial:
    what, why = MUTATIONS[kind]

    def judged(returned: Returned) -> Wrong | None:
        outcome = _outcome(returned)
        if outcome is not None and judge(encoded, events, outcome)[0] != "leaked":
            return None
        return Wrong(why, "nothing is released", _shown(returned))

    return Trial(
        stream=f"{encoded.script.name}, {what} ({act})",
        place=place,
        prepare=lambda: (events,),
        judge=judged,
        hostile=True,
    )


def _outcome(returned: Returned) -> Outcome | None:
    return returned.value if isinstance(returned.value, Outcome) else None


def _told(content: Content) -> str:
    calls = ", ".join(f"{name} {arguments}" for _, name, arguments in content.calls)
    text = f"the text {content.text!r}" if content.text else "no text"
    return f"{calls or 'no call'}, and {text}, are released"


def _shown(returned: Returned) -> str:
    outcome = _outcome(returned)
    if outcome is None:
        return returned.shown
    if outcome.calls is None:
        return f"refused: {short_line(outcome.refused)}" if outcome.refused else "released nothing"
    calls = ", ".join(f"{name} {arguments}" for _, name, arguments in outcome.calls)
    text = f" and the text {outcome.text!r}" if outcome.text else ""
    return f"released {short_line(calls) or 'no call'}{text} at event {outcome.at}"


def _trials() -> Iterator[Trial]:
    for script in (TEXT_ONLY, *SCRIPTS):
        if TALLY.expresses(script):
            yield from (_intact(_encoded(script, framing)) for framing in TALLY.framings)
    order = list(MUTATIONS)
    hostile = sorted(_mutated(), key=lambda found: order.index(found[0]))
    yield from (trial for _, trial in hostile)


def _mutated() -> Iterator[tuple[str, Trial]]:
    for script, framing, further in SCRIPTS_MUTATED:
        encoded = _encoded(script, framing)
        for mutation, encoding in every_mutation(encoded):
            events = [sent.event for sent in encoding]
            if events != encoded.events and _is_tried(mutation, further):
                yield (
                    mutation.kind,
                    _hostile(encoded, mutation.kind, mutation.act, mutation.place, events),
                )
        for stop in STOPS[1:]:
            ended = _encoded(script.stopped(stop), framing)
            yield "stop", _hostile(ended, "stop", stop, "at its end", ended.events)


def _is_tried(mutation: Mutation, further: set[str]) -> bool:
    if mutation.kind == "field" and mutation.place not in (CALL_START, TERMINAL):
        return False
    return mutation.kind not in ("field", "alter") or mutation.kind in further


def _encoded(script: Script, framing: Any) -> EncodedScript:
    return EncodedScript(TALLY, script, framing, TALLY.encode(script, framing))


HINTS = (
    (
        "An `ask` becomes ToolStart(call_id, name), an `input` ToolArgsDelta(call_id, text). "
        "The ask's ID is the call ID. Both are already in the vocabulary, and so is Stopped, "
        "for a goodbye whose `why` is not `done`."
    ),
    (
        "Tally restates nothing, and it numbers and counts. Count the events yourself: "
        "where `n` is not your own number, raise an error. Unknown words count as well."
    ),
    (
        "At the goodbye compare its `asks` with the number of asks that you saw. Completed has "
        "a second argument, `problem`: what disagrees, or an empty text."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return TranslatorExercise(
        number,
        title,
        size=3,
        minutes=20,
        signature="TallyTranslator(options)",
        trials=_trials,
        hint_texts=HINTS,
    )

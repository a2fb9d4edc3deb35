"""The contract that every adapter must keep, tried on hostile streams without number.

Two properties. *Safety*: a call is released only if the script completed and every byte of it is
the script's: its ID, its name, its arguments, its place in the order, and no other call of the
script is missing. *Liveness*: the intact stream, in every framing that the API allows, is
released with exactly the script's calls, text and usage.

What no client of an API can see is no leak, and is counted: each dialect's reference lists
what that is, and why. A trial is judged by the script and by the dialect's own reference reader,
never by what another adapter makes of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from agentlib.conformance.dialects.common import Dialect, Encoding, Native
from agentlib.conformance.dialects.reference import Unseen, difference
from agentlib.conformance.mutations import (
    EncodedScript,
    Mutation,
    are_several,
    every_mutation,
    kind_of,
    mixture,
)
from agentlib.conformance.report import MAX_KEPT, Dead, Leak, Report, calls_line
from agentlib.conformance.script import INVALID, SCRIPTS, STOPS, Script, catalog, invent
from agentlib.conformance.trials import Maker, Outcome, Verdict, judge, run
from agentlib.conversation import Usage

# A script that stopped must release nothing, and its prefixes are those of the whole one.
OF_A_STOPPED_SCRIPT = frozenset({"stop"})
# How many mixtures are made of one encoding before the next one is encoded.
MIXTURES_OF_ONE = 20

NOT_COMPLETED = "the stream does not say that the response completed"
NOT_VALID = "one call of the response must not run, so none may"
NOT_THE_SCRIPT = "the stream encodes no valid script, and the real one was another"


def check(
    make: Maker, dialect: Dialect, *, mixtures: int = 5_000, seed: int = 1, strict: bool = True
) -> Report:
    """Try an adapter on every encoding, every single mutation, and `mixtures` random mixtures.

    `make` is called with the catalog and returns an adapter for one response: see
    `agentlib.conformance.trials`. `strict` is as `Trials` says.
    """
    trials = Trials(make, dialect, strict=strict)
    trials.intact()
    trials.every_mutation()
    trials.mixtures(mixtures, seed)
    return trials.report


class Trials:
    """Tries one adapter in one dialect, and keeps the report.

    `strict` holds both properties. Without it only what stands even for one that is allowed
    to tolerate things is held: nothing is released unless the stream says that its script
    completed.
    """

    def __init__(self, make: Maker, dialect: Dialect, *, strict: bool = True) -> None:
        self.report = Report(dialect.name)
        self._make = make
        self._dialect = dialect
        self._strict = strict
        self._catalog = catalog()
        self._shown: set[str] = set()
        self._unseen: dict[str, Unseen] = {row.what: row for row in dialect.unseen}

    def intact(self, scripts: Sequence[Script] = (*SCRIPTS, *INVALID)) -> None:
        """Try every script in every framing; those that are not valid must not be released."""
        for script in scripts:
            if self._dialect.expresses(script):
                for framing in self._dialect.framings:
                    encoded = EncodedScript(
                        self._dialect, script, framing, self._dialect.encode(script, framing)
                    )
                    self._whole(encoded)

    def every_mutation(self) -> None:
        """Try every single mutation of every script, with every end, in a few framings."""
        for encoded in encodings(self._dialect):
            complete = encoded.script.stop == "complete"
            if not complete:
                self._whole(encoded)
            thorough = complete and encoded.framing is self._dialect.mutated[0]
            for mutation, encoding in every_mutation(encoded, fields=thorough, letters=thorough):
                if complete or mutation.kind in OF_A_STOPPED_SCRIPT:
                    self._hostile(encoded, (mutation,), encoding)

    def mixtures(self, count: int, seed: object) -> None:
        """Try `count` mixtures of mutations of scripts, given or invented, in any framing."""
        rng = Random(f"{self._dialect.name}, {seed}")  # noqa: S311 - seeded, nothing secret
        before = self.report.tried
        while self.report.tried < before + count:
            encoded = random_encoding(self._dialect, rng)
            self._whole(encoded)
            for _ in range(MIXTURES_OF_ONE):
                if self.report.tried < before + count:
                    self._hostile(encoded, *mixture(encoded, rng))

    def _whole(self, encoded: EncodedScript) -> None:
        if not encoded.script.valid:
            self._try(encoded, (Mutation("script", "intact", encoded.script.name),), encoded.events)
            return
        if encoded.script.stop != "complete":
            self._try(encoded, (Mutation("stop", "end", encoded.script.stop),), encoded.events)
            return
        self.report.intact += 1
        outcome = run(self._make, self._catalog, encoded.events)
        why = _not_live(encoded, outcome)
        if why and self._strict:
            self.report.deaths += 1
            dead = Dead(
                encoded.dialect.name,
                encoded.script,
                encoded.framing.name,
                tuple(encoded.events),
                why,
            )
            self.report.dead = [*self.report.dead, dead][:MAX_KEPT]

    def _hostile(
        self, encoded: EncodedScript, mutations: tuple[Mutation, ...], encoding: Encoding
    ) -> None:
        events = [sent.event for sent in encoding]
        if events != encoded.events:
            self._try(encoded, mutations, events)

    def _try(
        self, encoded: EncodedScript, mutations: tuple[Mutation, ...], events: list[Native]
    ) -> None:
        verdict, why, _ = self._tried(encoded, mutations, events)
        kind = kind_of(mutations)
        self.report.counts[kind, verdict] += 1
        if verdict == "unseen":
            self.report.unseen[why] += 1
        if verdict == "leaked" and kind not in self._shown:
            self._shown.add(kind)
            self.report.leaks.append(self._leak(encoded, mutations, events))

    def _tried(
        self, encoded: EncodedScript, mutations: tuple[Mutation, ...], events: Sequence[Native]
    ) -> tuple[Verdict, str, Outcome]:
        """Return the verdict, what it means, and the outcome."""
        outcome = run(self._make, self._catalog, events)
        if outcome.calls is None:
            return "refused", "", outcome
        if not self._strict and encoded.script.valid:
            completed = encoded.dialect.completes(events)
            return ("right", "", outcome) if completed else ("leaked", NOT_COMPLETED, outcome)
        verdict, reading = judge(encoded, events, outcome)
        if reading is not None and verdict == "unseen":
            what = difference(encoded.script, reading)
            if self._cannot_be_seen(what, mutations):
                return "unseen", what, outcome
            return "leaked", f"it is another script ({what}), and this API shows that", outcome
        if verdict == "leaked":
            if not encoded.script.valid:
                return "leaked", NOT_VALID, outcome
            completed = encoded.dialect.completes(events)
            return "leaked", NOT_THE_SCRIPT if completed else NOT_COMPLETED, outcome
        return verdict, "", outcome

    def _cannot_be_seen(self, what: str, mutations: tuple[Mutation, ...]) -> bool:
        # Mutations of several events may agree with one another: then the reader alone decides.
        row = self._unseen.get(what)
        single = row.mutations.get(mutations[0].kind, ()) if row is not None else ()
        return are_several(mutations) or mutations[0].place in single

    def _leak(
        self, encoded: EncodedScript, mutations: tuple[Mutation, ...], events: list[Native]
    ) -> Leak:
        released = self._tried(encoded, mutations, events)[2].calls

        def leaks(fewer: list[Native]) -> bool:
            verdict, _, outcome = self._tried(encoded, mutations, fewer)
            return verdict == "leaked" and outcome.calls == released

        events = smallest(events, leaks)
        _, why, outcome = self._tried(encoded, mutations, events)
        return Leak(
            provider=encoded.dialect.name,
            script=encoded.script,
            framing=encoded.framing.name,
            mutations=mutations,
            events=tuple(events),
            released=tuple(outcome.calls or ()),
            at=outcome.at,
            why=why,
        )


def encodings(dialect: Dialect) -> Iterator[EncodedScript]:
    """Yield each script, and each of its ends, in the framings whose every mutation is tried."""
    for script in SCRIPTS:
        for ended in (script, *(script.stopped(stop) for stop in STOPS if stop != "complete")):
            if dialect.expresses(ended):
                for framing in dialect.mutated:
                    yield EncodedScript(dialect, ended, framing, dialect.encode(ended, framing))


def random_encoding(dialect: Dialect, rng: Random) -> EncodedScript:
    """Return a script, given or invented, as it is encoded in any framing."""
    while True:
        script: Script = rng.choice(SCRIPTS) if rng.random() < 0.5 else invent(rng)
        if dialect.expresses(script):
            framing = rng.choice(dialect.framings)
            return EncodedScript(dialect, script, framing, dialect.encode(script, framing))


def smallest(events: list[Native], leaks: Callable[[list[Native]], bool]) -> list[Native]:
    """Take away whatever can go while the rest still leaks: first halves, at last single events."""
    size, before = max(1, len(events) // 2), len(events)
    while size:
        at = 0
        while at < len(events):
            fewer = [*events[:at], *events[at + size :]]
            if leaks(fewer):
                events = fewer
            else:
                at += size
        size //= 2
        if not size and len(events) < before:
            before, size = len(events), 1
    return events


def _not_live(encoded: EncodedScript, outcome: Outcome) -> str:
    if outcome.calls is None:
        if not outcome.refused and not encoded.script.calls:
            return ""
        return f"refused, {outcome.refused}" if outcome.refused else "nothing was released"
    wanted = encoded.script.content
    if tuple(outcome.calls) != wanted.calls:
        return f"released {calls_line(outcome.calls)}; the script is {calls_line(wanted.calls)}"
    if not outcome.matches(wanted):
        texts = f"{outcome.text!r} and {outcome.refusal!r}"
        return f"released the text and refusal {texts}; the script is {wanted[1:]}"
    usage = encoded.dialect.usage(encoded.script)
    if isinstance(outcome.usage, Usage) and outcome.usage != usage:
        return f"expected {usage}, released {outcome.usage}"
    return ""

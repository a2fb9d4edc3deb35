"""The contract that every adapter must keep, tried on hostile streams without number.

Two properties. *Safety*: a call is released only if the story completed and every byte of it is
the story's: its ID, its name, its arguments, its place in the order, and no other call of the
story is missing. *Liveness*: the unharmed stream, in every framing that the API allows, is
released with exactly the story's calls, text and usage.

What no client of an API can see is held against nobody, and counted: each dialect's law lists
what that is, and why. A trial is judged by the story and by the dialect's own referee, never by
what another adapter makes of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from agentlib.conformance.dialects.common import Dialect, Native, Telling
from agentlib.conformance.dialects.reference import Unseen, difference
from agentlib.conformance.mutations import Harm, Told, are_several, every_harm, kind_of, mixture
from agentlib.conformance.report import MAX_KEPT, Dead, Leak, Report, calls_told
from agentlib.conformance.script import STOPS, STORIES, UNLAWFUL, Story, catalog, invent
from agentlib.conformance.trials import Maker, Outcome, Verdict, judge, run
from agentlib.conversation import Usage

# A story that stopped must release nothing, and its prefixes are those of the whole one.
OF_A_STOPPED_STORY = frozenset({"stop"})
# How many mixtures are made of one telling before the next one is told.
MIXTURES_OF_ONE = 20

NOT_COMPLETED = "the stream does not say that the response completed"
NOT_LAWFUL = "one call of the response must not run, so none may"
NOT_THE_STORY = "the stream tells no lawful story, and the real one was another"


def check(
    make: Maker, dialect: Dialect, *, mixtures: int = 5_000, seed: int = 1, strict: bool = True
) -> Report:
    """Try an adapter on every telling, on every single harm, and on `mixtures` random mixtures.

    `make` is called with the catalog and returns an adapter for one response: see
    `agentlib.conformance.trials`. `strict` is as `Trials` says.
    """
    trials = Trials(make, dialect, strict=strict)
    trials.unharmed()
    trials.every_harm()
    trials.mixtures(mixtures, seed)
    return trials.report


class Trials:
    """Tries one adapter in one dialect, and keeps the report.

    `strict` holds both properties. Without it only what stands even for an adapter that is told
    to tolerate things is held: nothing is released unless the stream says that its story completed.
    """

    def __init__(self, make: Maker, dialect: Dialect, *, strict: bool = True) -> None:
        self.report = Report(dialect.name)
        self._make = make
        self._dialect = dialect
        self._strict = strict
        self._catalog = catalog()
        self._shown: set[str] = set()
        self._unseen: dict[str, Unseen] = {row.what: row for row in dialect.unseen}

    def unharmed(self, stories: Sequence[Story] = (*STORIES, *UNLAWFUL)) -> None:
        """Try every story in every framing; those that are not lawful must not be released."""
        for story in stories:
            if self._dialect.tells(story):
                for framing in self._dialect.framings:
                    told = Told(self._dialect, story, framing, self._dialect.tell(story, framing))
                    self._whole(told)

    def every_harm(self) -> None:
        """Try every single harm to every story, with every end, in the dialect's few framings."""
        for told in tellings(self._dialect):
            complete = told.story.stop == "complete"
            if not complete:
                self._whole(told)
            thorough = complete and told.framing is self._dialect.harmed[0]
            for harm, telling in every_harm(told, fields=thorough, letters=thorough):
                if complete or harm.kind in OF_A_STOPPED_STORY:
                    self._hostile(told, (harm,), telling)

    def mixtures(self, count: int, seed: object) -> None:
        """Try `count` mixtures of harms to stories, told or invented, in any framing."""
        rng = Random(f"{self._dialect.name}, {seed}")  # noqa: S311 - seeded, nothing secret
        before = self.report.tried
        while self.report.tried < before + count:
            told = random_telling(self._dialect, rng)
            self._whole(told)
            for _ in range(MIXTURES_OF_ONE):
                if self.report.tried < before + count:
                    self._hostile(told, *mixture(told, rng))

    def _whole(self, told: Told) -> None:
        if not told.story.lawful:
            self._try(told, (Harm("story", "unharmed", told.story.name),), told.events)
            return
        if told.story.stop != "complete":
            self._try(told, (Harm("stop", "end", told.story.stop),), told.events)
            return
        self.report.told += 1
        outcome = run(self._make, self._catalog, told.events)
        why = _not_live(told, outcome)
        if why and self._strict:
            self.report.deaths += 1
            dead = Dead(told.dialect.name, told.story, told.framing.name, tuple(told.events), why)
            self.report.dead = [*self.report.dead, dead][:MAX_KEPT]

    def _hostile(self, told: Told, harms: tuple[Harm, ...], telling: Telling) -> None:
        events = [said.event for said in telling]
        if events != told.events:
            self._try(told, harms, events)

    def _try(self, told: Told, harms: tuple[Harm, ...], events: list[Native]) -> None:
        verdict, said, _ = self._tried(told, harms, events)
        kind = kind_of(harms)
        self.report.counts[kind, verdict] += 1
        if verdict == "unseen":
            self.report.unseen[said] += 1
        if verdict == "leaked" and kind not in self._shown:
            self._shown.add(kind)
            self.report.leaks.append(self._leak(told, harms, events))

    def _tried(
        self, told: Told, harms: tuple[Harm, ...], events: Sequence[Native]
    ) -> tuple[Verdict, str, Outcome]:
        """Return the verdict, what it means, and the outcome."""
        outcome = run(self._make, self._catalog, events)
        if outcome.calls is None:
            return "refused", "", outcome
        if not self._strict and told.story.lawful:
            completed = told.dialect.completes(events)
            return ("right", "", outcome) if completed else ("leaked", NOT_COMPLETED, outcome)
        verdict, reading = judge(told, events, outcome)
        if reading is not None and verdict == "unseen":
            what = difference(told.story, reading)
            if self._cannot_be_seen(what, harms):
                return "unseen", what, outcome
            return "leaked", f"it is another story ({what}), and this API shows that", outcome
        if verdict == "leaked":
            if not told.story.lawful:
                return "leaked", NOT_LAWFUL, outcome
            completed = told.dialect.completes(events)
            return "leaked", NOT_THE_STORY if completed else NOT_COMPLETED, outcome
        return verdict, "", outcome

    def _cannot_be_seen(self, what: str, harms: tuple[Harm, ...]) -> bool:
        # Harms to several events may agree with one another: then the referee alone decides.
        row = self._unseen.get(what)
        single = row.harms.get(harms[0].kind, ()) if row is not None else ()
        return are_several(harms) or harms[0].place in single

    def _leak(self, told: Told, harms: tuple[Harm, ...], events: list[Native]) -> Leak:
        released = self._tried(told, harms, events)[2].calls

        def leaks(fewer: list[Native]) -> bool:
            verdict, _, outcome = self._tried(told, harms, fewer)
            return verdict == "leaked" and outcome.calls == released

        events = smallest(events, leaks)
        _, why, outcome = self._tried(told, harms, events)
        return Leak(
            provider=told.dialect.name,
            story=told.story,
            framing=told.framing.name,
            harms=harms,
            events=tuple(events),
            released=tuple(outcome.calls or ()),
            at=outcome.at,
            why=why,
        )


def tellings(dialect: Dialect) -> Iterator[Told]:
    """Yield each story, and each of its ends, in the framings whose every harm is tried."""
    for story in STORIES:
        for ended in (story, *(story.stopped(stop) for stop in STOPS if stop != "complete")):
            if dialect.tells(ended):
                for framing in dialect.harmed:
                    yield Told(dialect, ended, framing, dialect.tell(ended, framing))


def random_telling(dialect: Dialect, rng: Random) -> Told:
    """Return a story, told or invented, in any framing."""
    while True:
        story: Story = rng.choice(STORIES) if rng.random() < 0.5 else invent(rng)
        if dialect.tells(story):
            framing = rng.choice(dialect.framings)
            return Told(dialect, story, framing, dialect.tell(story, framing))


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


def _not_live(told: Told, outcome: Outcome) -> str:
    if outcome.calls is None:
        if not outcome.refused and not told.story.calls:
            return ""
        return f"refused, {outcome.refused}" if outcome.refused else "nothing was released"
    wanted = told.story.content
    if tuple(outcome.calls) != wanted.calls:
        return f"released {calls_told(outcome.calls)}; the story is {calls_told(wanted.calls)}"
    if not outcome.says(wanted):
        said = f"{outcome.text!r} and {outcome.refusal!r}"
        return f"released the text and refusal {said}; the story is {wanted[1:]}"
    usage = told.dialect.usage(told.story)
    if isinstance(outcome.usage, Usage) and outcome.usage != usage:
        return f"expected {usage}, released {outcome.usage}"
    return ""

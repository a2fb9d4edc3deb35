"""What came of trying an adapter on the contract: counts, examples, and how they are shown."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from agentlib.conformance.dialects.common import Native
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.mutations import KINDS, Mutation, kind_of
from agentlib.conformance.script import Script
from agentlib.conformance.trials import VERDICTS, Verdict
from agentlib.jsonvalues import printable
from agentlib.recordings.capture import Capture
from agentlib.wording import plural, short_line

# How many examples a report keeps, and how many it shows.
MAX_KEPT = 20
MAX_SHOWN = 3
# How many events of a leak's stream are shown; the capture has them all.
MAX_EVENTS = 40
WIDTH = 90
# The reason where a dialect's reference gives none: no single mutation can do it.
AGREEING = "mutations to several events agree with one another"


@dataclass(frozen=True)
class Leak:
    """A hostile stream on which an adapter released what it must not: the smallest found.

    `mutations` say what was done to the script's encoding, `events` are what is left of it after
    everything that the leak does not need was taken away. `released` are the calls, with their
    arguments as canonical JSON text, the first of them at event `at` (from 1; one more than there
    are events: at the end). `why` says in one sentence what is wrong.
    """

    provider: str
    script: Script
    framing: str
    mutations: tuple[Mutation, ...]
    events: tuple[Native, ...]
    released: tuple[tuple[str, str, str], ...]
    at: int
    why: str

    @property
    def kind(self) -> str:
        """The kind of mutation."""
        return kind_of(self.mutations)

    @cached_property
    def capture(self) -> Capture:
        """The stream as a capture, to step through."""
        return Capture.from_events(self.events, f"leak, {self.kind}, {self.script.name}")

    def __repr__(self) -> str:
        return "\n".join(_leak_lines(self))


@dataclass(frozen=True)
class Dead:
    """An intact encoding that was not released as the script says, and why."""

    provider: str
    script: Script
    framing: str
    events: tuple[Native, ...]
    why: str

    @cached_property
    def capture(self) -> Capture:
        """The stream as a capture, to step through."""
        return Capture.from_events(self.events, f"intact, {self.script.name}")

    def __repr__(self) -> str:
        return f"{self.script.name}, encoded as {self.framing}: {short_line(self.why)}"


@dataclass(repr=False)
class Report:
    """What came of all trials of one adapter; reports of the same one can be added up.

    `counts` has, by kind of mutation and verdict, the number of hostile streams; `unseen` counts,
    by what is not the script's, those that no client could have seen. `intact` is the number of
    intact encodings, `deaths` how many of them were not released. `dead` and `leaks` are examples.
    """

    provider: str
    intact: int = 0
    deaths: int = 0
    counts: Counter[tuple[str, Verdict]] = field(default_factory=Counter)
    unseen: Counter[str] = field(default_factory=Counter)
    dead: list[Dead] = field(default_factory=list)
    leaks: list[Leak] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """How many hostile streams were tried."""
        return sum(self.counts.values())

    @property
    def leaked(self) -> int:
        """How many of them leaked."""
        return self.count("leaked")

    @property
    def passed(self) -> bool:
        """Whether nothing leaked, and everything intact was released."""
        return not self.leaked and not self.deaths

    @property
    def smallest_leaks(self) -> list[Leak]:
        """The shortest leak by each kind of mutation, in the order of the kinds."""
        leaks = sorted(self.leaks, key=lambda leak: len(leak.events), reverse=True)
        shortest = {leak.kind: leak for leak in leaks}
        return [shortest[kind] for kind in KINDS if kind in shortest]

    @property
    def smallest_dead(self) -> list[Dead]:
        """The few shortest of the intact encodings that were not released."""
        return sorted(self.dead, key=lambda dead: len(dead.events))[:MAX_SHOWN]

    def count(self, verdict: Verdict, kind: str | None = None) -> int:
        """Return the number of streams with this verdict, of all kinds of mutation or of one."""
        return sum(
            number
            for (of, judged), number in self.counts.items()
            if judged == verdict and kind in (None, of)
        )

    def add(self, other: Report) -> None:
        """Add what came of other trials."""
        self.intact += other.intact
        self.deaths += other.deaths
        self.counts += other.counts
        self.unseen += other.unseen
        self.dead = [*self.dead, *other.dead][:MAX_KEPT]
        self.leaks = [*self.leaks, *other.leaks][:MAX_KEPT]

    def __repr__(self) -> str:
        return "\n".join((*_live_lines(self), *_table(self), *_unseen_lines(self), *_ends(self)))


def _live_lines(report: Report) -> Iterator[str]:
    dialect = DIALECTS.get(report.provider)
    yield f"{dialect.title if dialect is not None else report.provider}"
    right = report.intact - report.deaths
    yield f"  intact: {right:,} of {plural(report.intact, 'encoding')} released as the script says"
    for dead in report.smallest_dead:
        yield from _wrapped(f"dead: {dead!r}", "    ")


def _table(report: Report) -> Iterator[str]:
    yield ""
    yield _row("mutation", "", "tried", "refused", "rightly", "unseen", "leaked")
    for kind, meaning in KINDS.items():
        counts = [report.count(verdict, kind) for verdict in VERDICTS]
        if sum(counts):
            yield _row(kind, meaning, sum(counts), *counts)
    yield _row("all", "", report.tried, *(report.count(verdict) for verdict in VERDICTS))


def _row(kind: str, meaning: str, *numbers: object) -> str:
    cells = "".join(f"{n:>8,}" if isinstance(n, int) else f"{n:>8}" for n in numbers)
    return f"  {kind:<8} {meaning:<39}{cells}"


def _unseen_lines(report: Report) -> Iterator[str]:
    if not report.unseen:
        return
    total = sum(report.unseen.values())
    yield ""
    yield f"  unseen: {plural(total, 'stream')} as any server might send for another script"
    dialect = DIALECTS.get(report.provider)
    rows = dialect.unseen if dialect is not None else ()
    reasons: dict[str, str] = {row.what: row.why for row in rows}
    for what, number in sorted(report.unseen.items(), key=lambda pair: -pair[1]):
        reason = reasons.get(what, AGREEING)
        yield from _wrapped(f"{number:>7,}  {what}: {reason}", "  ", " " * 11)


def _ends(report: Report) -> Iterator[str]:
    yield ""
    leaks = report.smallest_leaks
    for leak in leaks[:MAX_SHOWN]:
        yield from _leak_lines(leak)
        yield ""
    further = ", ".join(leak.kind for leak in leaks[MAX_SHOWN:])
    if further:
        yield from _wrapped(f"and leaks by these kinds of mutation: {further}", "  ")
    dead = f", {report.deaths:,} dead" if report.deaths else ""
    yield f"  {plural(report.tried, 'hostile stream')} tried, {report.leaked:,} leaked{dead}"


def _leak_lines(leak: Leak) -> Iterator[str]:
    yield f"  leak by {leak.kind} · script {leak.script.name!r}, encoded as {leak.framing!r}"
    for mutation in leak.mutations:
        yield from _wrapped(
            f"mutation  {KINDS[mutation.kind]}: {mutation.act} ({mutation.place})", "    "
        )
    place = f"event {leak.at}" if leak.at <= len(leak.events) else "the end"
    yield from _wrapped(f"released  at {place}: {short_line(calls_line(leak.released))}", "    ")
    yield from _wrapped(f"wrong     {leak.why}", "    ")
    show = "shows" if len(leak.events) == 1 else "show"
    yield f"    smallest  {plural(len(leak.events), 'event')} that {show} it:"
    for number, event in enumerate(leak.events[:MAX_EVENTS], 1):
        yield f"      {number:>3}  {printable(json.dumps(event))}"
    if len(leak.events) > MAX_EVENTS:
        yield f"           and {plural(len(leak.events) - MAX_EVENTS, 'event')} more"


def calls_line(calls: Iterable[tuple[str, str, str]]) -> str:
    """Return calls, each with its ID, its name and its arguments, in one line."""
    return "; ".join(" ".join(call) for call in calls) or "no call"


def _wrapped(text: str, indent: str, further: str = "") -> list[str]:
    further = further or f"{indent}          "
    return textwrap.wrap(printable(text), WIDTH, initial_indent=indent, subsequent_indent=further)

"""Execute a call at most once, with a journal, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentlib.jsonvalues import dumps
from agentlib.runtime.journal import MemoryJournal
from workbook.exercises.settle_calls import claims
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

RUN, CALL = "run_1", "call_pay"
PAID = "paid 10"
ANY_TEXT = "any text that says that the result is unknown"

FIRST = "The call is new: it is executed, and its output is returned."
RECORD = "What the call returned is recorded, or the next one to ask cannot know it."
AGAIN = "The call ran before, and its output is in the journal. It is not run again."
EMPTY = "An empty output is a result too: the call ran. Only None means that none was recorded."
CLAIMED = (
    "Somebody began this call and left no result. It may have acted, so it does not run again."
)
OTHER = "The same call ID in another run is another call."
BEFORE = (
    "While the call ran, a second process asked for it, and ran it too. It must be claimed before "
    "it runs, not after."
)
THROUGH = "A cancellation passes through: who swallows it cannot be stopped."
NO_RESULT = "The call was interrupted. It has no output, so none is recorded."


class Interrupted(BaseException):
    """Stands for a cancellation; no `except Exception` stops it."""


class Desk:
    """A journal, and a call that counts how often it was executed."""

    def __init__(self, output: str = PAID, *, cut: bool = False) -> None:
        self.journal = MemoryJournal()
        self.ran = 0
        self._output = output
        self._cut = cut

    def execute(self) -> str:
        """Run the call, and count it. Raises Interrupted where that is the trial."""
        self.ran += 1
        if self._cut:
            raise Interrupted
        return self._output


class _Trial:
    """One trial: `prepare` fits the desk, `right` judges what came of it."""

    def __init__(
        self,
        make: Callable[[], Desk],
        before: Callable[[Desk], None],
        right: Callable[[Desk, Outcome], bool],
        expected: str,
        why: str,
    ) -> None:
        self._make = make
        self._before = before
        self._right = right
        self._expected = expected
        self._why = why
        self._desk = make()

    def prepare(self) -> tuple[object, ...]:
        self._desk = self._make()
        self._before(self._desk)
        self._desk.ran = 0
        return self._desk.journal, RUN, CALL, self._desk.execute

    def judge(self, outcome: Outcome) -> Wrong | None:
        if self._right(self._desk, outcome):
            return None
        recorded = self._desk.journal.output(RUN, CALL)
        kept = "nothing" if recorded is None else dumps(recorded)
        seen = f"{outcome.shown}, executed it {_times(self._desk.ran)}, recorded {kept}"
        return Wrong(self._why, self._expected, seen)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _trial(
    stream: str,
    place: str,
    right: Callable[[Desk, Outcome], bool],
    expected: str,
    why: str,
    *,
    make: Callable[[], Desk] = Desk,
    before: Callable[[Desk], None] = lambda _: None,
    hostile: bool = False,
) -> Trial:
    tried = _Trial(make, before, right, expected, why)
    return Trial(stream, place, tried.prepare, tried.judge, hostile)


def _ran_before(desk: Desk, run: str = RUN, output: str | None = PAID) -> None:
    desk.journal.claim(run, CALL)
    if output is not None:
        desk.journal.record(run, CALL, output)


def _gives(output: str, ran: int) -> Callable[[Desk, Outcome], bool]:
    def right(desk: Desk, outcome: Outcome) -> bool:
        known = desk.journal.output(RUN, CALL)
        return outcome.error is None and (outcome.value, desk.ran, known) == (output, ran, output)

    return right


def _says_unknown(desk: Desk, outcome: Outcome) -> bool:
    text = outcome.value
    honest = isinstance(text, str) and bool(text) and text != PAID and not claims(text)
    return honest and desk.ran == 0 and desk.journal.output(RUN, CALL) is None


def _let_through(desk: Desk, outcome: Outcome) -> bool:
    claimed = not desk.journal.claim(RUN, CALL)
    nothing = desk.journal.output(RUN, CALL) is None
    return isinstance(outcome.error, Interrupted) and desk.ran == 1 and claimed and nothing


def _claimed_when_it_ran(desk: Desk, outcome: Outcome) -> bool:
    return isinstance(desk, _Watched) and desk.claimed and _gives(PAID, 1)(desk, outcome)


class _Watched(Desk):
    """A call that looks, while it runs, whether somebody else could claim it."""

    claimed = False

    def execute(self) -> str:
        self.claimed = not self.journal.claim(RUN, CALL)
        return super().execute()


def _trials() -> Iterator[Trial]:
    new, once = "not claimed yet", f"executed once, recorded and returned {dumps(PAID)}"
    yield _trial("a new call", new, _gives(PAID, 1), once, RECORD)
    yield _trial(
        "the same run resumed",
        "claimed and recorded",
        _gives(PAID, 0),
        f"not executed, returned {dumps(PAID)}",
        AGAIN,
        before=_ran_before,
        hostile=True,
    )
    yield _trial(
        "resumed after a cancellation",
        "claimed, nothing recorded",
        _says_unknown,
        f"not executed, returned {ANY_TEXT}",
        CLAIMED,
        before=lambda desk: _ran_before(desk, output=None),
        hostile=True,
    )
    yield _trial(
        "two processes", "asked for while it ran", _claimed_when_it_ran, once, BEFORE,
        make=_Watched, hostile=True,
    )  # fmt: skip
    yield _trial(
        "a cancellation",
        "while the call ran",
        _let_through,
        "executed once, claimed, nothing recorded, the interruption raised",
        f"{THROUGH} {NO_RESULT}",
        make=lambda: Desk(cut=True),
        hostile=True,
    )
    yield _trial(
        "a silent tool",
        "claimed, the empty text recorded",
        _gives("", 0),
        'not executed, returned ""',
        EMPTY,
        before=lambda desk: _ran_before(desk, output=""),
        hostile=True,
    )
    yield _trial(
        "a silent tool",
        new,
        _gives("", 1),
        'executed once, recorded and returned ""',
        FIRST,
        make=lambda: Desk(""),
    )
    yield _trial(
        "another run",
        "its call has the same ID",
        _gives(PAID, 1),
        once,
        OTHER,
        before=lambda desk: _ran_before(desk, run="run_0", output="paid 7"),
    )


HINTS = (
    (
        "`journal.claim(run, call_id)` is True for one caller only, ever. Only that one "
        "executes, and it claims before it does."
    ),
    (
        "Where the claim is taken, `journal.output(run, call_id)` is what was recorded, or "
        "None. Compare with None: an empty text is a result."
    ),
    "An interruption needs no `except` at all: nothing is recorded when `execute()` raises.",
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="run_once(journal, run, call_id, execute)",
        trials=_trials,
        hint_texts=HINTS,
    )

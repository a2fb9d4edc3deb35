"""Whether an answer may say that the tests pass, by what was executed."""

from __future__ import annotations

from collections.abc import Iterator

from agentlib.runtime.execution import Execution, Status
from agentlib.wording import plural
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong
from workbook.pages.small_loop import wants

GREEN = "the tests pass"
RED = "the tests fail (exit status 1)"
MAY_HAVE_ACTED: tuple[Status, ...] = ("unknown", "timed_out", "failed")
DID_NOTHING: tuple[Status, ...] = ("denied", "not_executed", "shown")

NOTHING = "Nothing was executed: there is no evidence."
PLAIN = "The tests ran, they passed, and nothing happened after that."
FAILED = "The tool ran, and what it returned is that the tests fail."
STALE = "The tests passed before the latest edit. Of the code as it is now nobody knows."
MAYBE = "Nobody knows whether this edit happened. If it did, the result is of another code."
LATEST = "The tests were run again, and the latest result counts."
LOST = "The latest test run left no result. It may have failed."
NOTHING_DONE = "This edit did not happen, so it changed nothing."
WORDS = "The words stand in the output of another tool: a file says them, no test run."
AT_ONCE = "The tests began while the edit had not ended: they may have seen the old code."
HARMLESS = "A reader that ran at the same time changes nothing: the tests saw this code."
OTHERWISE = "The words stand inside of the output, and the output says something else."
REPAIRED = "The edit ended, and then the tests passed."


def _ended(
    name: str, output: str, status: Status = "executed", beside: tuple[str, ...] = ()
) -> Execution:
    call = wants(f"call_{name}", name)
    return Execution(call, status, output, beside=frozenset(beside))


def _trial(
    stream: str, executions: tuple[Execution, ...], wanted: bool, why: str, *, hostile: bool = False
) -> Trial:
    def judge(outcome: Outcome) -> Wrong | None:
        right = outcome.error is None and outcome.value is wanted
        return None if right else Wrong(why, repr(wanted))

    return Trial(
        stream=stream,
        place=plural(len(executions), "execution"),
        prepare=lambda: (executions,),
        judge=judge,
        hostile=hostile,
    )


def _trials() -> Iterator[Trial]:
    passed, failed = _ended("test", GREEN), _ended("test", RED)
    edited, read = _ended("edit", "edited calculator.py"), _ended("read", GREEN)
    yield _trial("no call", (), False, NOTHING)
    yield _trial("a passing test", (passed,), True, PLAIN)
    yield _trial("an edit, then a passing test", (edited, passed), True, REPAIRED)
    yield _trial("a failing test", (failed,), False, FAILED, hostile=True)
    yield _trial("a file that says so", (read,), False, WORDS, hostile=True)
    yield _trial("an edit after the test", (passed, edited), False, STALE, hostile=True)
    yield _trial("tested again", (passed, edited, passed), True, REPAIRED)
    yield _trial("a failure, then an edit", (failed, edited, passed), True, REPAIRED)
    yield _trial("passed, then failed", (passed, failed), False, LATEST, hostile=True)
    lost = _ended("test", "unknown: it was interrupted", "unknown")
    yield _trial("a test interrupted", (lost,), False, LOST, hostile=True)
    yield _trial("passed, then interrupted", (passed, lost), False, LOST, hostile=True)
    for status in MAY_HAVE_ACTED:
        maybe = _ended("edit", "no result", status)
        yield _trial(f"an edit {status}", (passed, maybe), False, MAYBE, hostile=True)
    for status in DID_NOTHING:
        never = _ended("edit", "nothing was done", status)
        yield _trial(f"an edit {status}", (passed, never), True, NOTHING_DONE)
    beside = _ended("test", GREEN, beside=("edit",))
    yield _trial("an edit at the same time", (edited, beside), False, AT_ONCE, hostile=True)
    reading = _ended("test", GREEN, beside=("read", "list"))
    yield _trial("read at the same time", (edited, reading), True, HARMLESS)
    for text in ("it is not so that the tests pass", "the tests pass or fail: no test was found"):
        said = _ended("test", text)
        yield _trial("words inside of others", (edited, said), False, OTHERWISE, hostile=True)
    late = (_ended("edit", "edited"), beside, passed)
    yield _trial("tested once more", late, True, REPAIRED)


HINTS = (
    (
        "Go through the executions in order, and keep one fact: whether the tests are known "
        "to pass at this point. A test run sets it anew, an edit makes it False."
    ),
    (
        "Leave out what never happened: the statuses denied, not_executed and shown. An edit "
        "of any other status may have acted, also without a result."
    ),
    (
        'A test run counts if it is "executed", its output is "the tests pass", and has no "edit" '
        "in its `beside`."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="tests_pass(executions)",
        trials=_trials,
        hint_texts=HINTS,
    )

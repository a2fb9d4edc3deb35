"""Which failures may be tried again, and after how many seconds.

The rule is written down once, in `_wanted`, and tried on far more failures than anyone would list.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product
from typing import NamedTuple

from agentlib.errors import AgentlibError, OpenFailure, Sent
from agentlib.failures import GateRejected, IdleTimeout, StreamCut
from agentlib.retry import PASSING, PATIENT, RATE_LIMIT, may_pass
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

LONGEST = PATIENT.longest_wait
FINAL = "A stream was acquired: a second one could do its work twice."
SPENT = "Three openings is the bound; this was the last."
QUOTA = "An exhausted quota has the status of a rate limit, and no wait refills it."
REFUSED = "The same request is refused again: nothing about it changed."
TAKEN = "The provider may have taken it, and without a key nobody can tell it from a second one."
LATER = f"Too early is no better than not at all: beyond {LONGEST:g} s it is given up, and said."
BACKOFF = "The cause may pass: it is tried again, after 0.25 s and then 0.5 s."
PASSES = "A refusal of this moment (408, 409, 425) says nothing of the next."
KEYED = "The server tells a second try by its key, and does the work once."
ASKED = "The server asks for a wait, and is given it; zero is an answer too."


class _Case(NamedTuple):
    """One failure for the reader's function, and the name that a verdict gives it."""

    name: str
    failure: AgentlibError
    number: int = 1
    keyed: bool = False


def _opening(
    status: int | None,
    *,
    code: str | None = None,
    retry_after: float | None = None,
    sent: Sent | None = None,
) -> OpenFailure:
    return OpenFailure(
        "no answer" if status is None else f"the server answered {status}",
        status=status,
        code=code,
        retry_after=retry_after,
        retryable=status is None or may_pass(status),
        sent=sent,
    )


def _wanted(failure: AgentlibError, number: int, *, keyed: bool) -> tuple[float | None, str]:
    """Return the seconds to wait, or None, and why."""
    if not isinstance(failure, OpenFailure):
        return None, FINAL
    if number >= 3:
        return None, SPENT
    if failure.code == "insufficient_quota":
        return None, QUOTA
    if failure.status is not None and not may_pass(failure.status):
        return None, REFUSED
    if failure.sent == "perhaps sent" and not keyed:
        return None, TAKEN
    asked = failure.retry_after
    if asked is not None:
        return (asked, ASKED) if asked <= LONGEST else (None, LATER)
    why = KEYED if failure.sent == "perhaps sent" else BACKOFF
    return 0.25 * 2 ** (number - 1), PASSES if failure.status in PASSING else why


def _trial(case: _Case) -> Trial:
    wanted, why = _wanted(case.failure, case.number, keyed=case.keyed)

    def judge(outcome: Outcome) -> Wrong | None:
        seen = outcome.value
        if wanted is None:
            right = outcome.error is None and seen is None
            return None if right else Wrong(why, "None: it is not tried again")
        numeric = isinstance(seen, int | float) and not isinstance(seen, bool)
        if outcome.error is None and numeric and abs(seen - wanted) < 1e-9:
            return None
        return Wrong(why, f"{wanted:g} seconds")

    return Trial(
        stream=case.name,
        place=f"opening {case.number}{', with a key' if case.keyed else ''}",
        prepare=lambda: (case.failure, case.number, case.keyed),
        judge=judge,
        hostile=wanted is None,
    )


def _taught() -> Iterator[_Case]:
    yield _Case("no connection", _opening(None, sent="not sent"))
    yield _Case("status 500", _opening(500))
    yield _Case("status 503", _opening(503), 2)
    yield _Case("perhaps sent", _opening(None))
    yield _Case("perhaps sent", _opening(None), keyed=True)
    yield _Case("status 429", _opening(429, retry_after=2.0))
    yield _Case("status 503, asks", _opening(503, retry_after=3.0), 2)
    yield _Case("status 429, asks for no wait", _opening(429, retry_after=0.0), 2)
    yield _Case("status 429, asks for an hour", _opening(429, retry_after=3600.0))
    yield _Case("no connection", _opening(None, sent="not sent"), 3)
    yield _Case("status 401", _opening(401))
    yield _Case("status 401", _opening(401), keyed=True)
    quota = _opening(RATE_LIMIT, code="insufficient_quota", retry_after=2.0)
    yield _Case("quota exhausted", quota)
    yield _Case("stream cut", StreamCut("the stream ended", check="completed"))
    yield _Case("stream cut", StreamCut("the stream ended", check="completed"), keyed=True)
    yield _Case("idle time-out", IdleTimeout("no byte came for 30 s", check="completed"))
    yield _Case("gate rejected", GateRejected("arguments are no object", check="object"))


def _all() -> Iterator[_Case]:
    """Yield every status, each at some opening, with some wait, some code and some key."""
    waits = cycle((None, 0.0, 0.125, None, 7.5, LONGEST, LONGEST + 0.5))
    codes = cycle((None, "server_error", "rate_limit_exceeded"))
    for status, number, keyed in product(range(400, 600), (1, 2), (False, True)):
        failure = _opening(status, code=next(codes), retry_after=next(waits))
        yield _Case(f"status {status}", failure, number, keyed)
    for number, keyed in product((1, 2), (False, True)):
        failure = _opening(RATE_LIMIT, code="insufficient_quota", retry_after=next(waits))
        yield _Case("quota exhausted", failure, number, keyed)
    sents: tuple[Sent, ...] = ("not sent", "perhaps sent")
    for sent, number, keyed in product(sents, (1, 2, 3, 4), (False, True)):
        yield _Case(sent, _opening(None, sent=sent), number, keyed)


def _trials() -> Iterator[Trial]:
    yield from map(_trial, (*_taught(), *_all()))


HINTS = (
    (
        "Ask first what kind of failure it is: only an OpenFailure may be tried again, and "
        "only while `number` is below 3. It has `status`, `sent`, `code` and `retry_after`."
    ),
    (
        'Where there is a `status`, it decides. Where there is none, `sent` does: "not sent" is '
        'tried again, "perhaps sent" only if `keyed`.'
    ),
    (
        "The wait is `retry_after` where it is not None; above 20 there is none. Where it is None, "
        "the wait is 0.25 * 2 ** (number - 1)."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="wait_before_retry(failure, number, keyed)",
        trials=_trials,
        tried_on="case",
        hint_texts=HINTS,
    )

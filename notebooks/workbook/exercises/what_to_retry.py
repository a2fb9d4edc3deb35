"""Which failures may be tried again, and after how many seconds."""

from __future__ import annotations

from collections.abc import Iterator

from agentlib.errors import AgentlibError, OpenFailure
from agentlib.failures import GateRejected, IdleTimeout, StreamCut
from agentlib.retry import PATIENT
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

FINAL = "A stream was acquired: a second one could do its work twice."
SPENT = "Three openings is the bound; this was the last."
QUOTA = "An exhausted quota has the status of a rate limit, and no wait refills it."
REFUSED = "The same request is refused again: nothing about it changed."


def _opening(
    status: int | None, *, code: str | None = None, retry_after: float | None = None
) -> OpenFailure:
    reason = "no connection" if status is None else f"the server answered {status}"
    retryable = status is None or status == 429 or status >= 500
    return OpenFailure(
        reason, status=status, code=code, retry_after=retry_after, retryable=retryable
    )


def _trial(name: str, failure: AgentlibError, number: int, wanted: float | None, why: str) -> Trial:
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
        stream=name,
        place=f"opening {number}",
        prepare=lambda: (failure, number),
        judge=judge,
        hostile=wanted is None,
    )


def _trials() -> Iterator[Trial]:
    backoff = "A failed opening did nothing: it is tried again, after 0.25 s and then 0.5 s."
    asked = "The server asks for a wait, and is given it."
    longest = f"A server may ask for hours; {PATIENT.longest_wait:g} s is the longest wait here."
    yield _trial("no connection", _opening(None), 1, 0.25, backoff)
    yield _trial("status 500", _opening(500), 1, 0.25, backoff)
    yield _trial("status 503", _opening(503), 2, 0.5, backoff)
    yield _trial("status 429", _opening(429, retry_after=2.0), 1, 2.0, asked)
    yield _trial("status 503, asks", _opening(503, retry_after=3.0), 2, 3.0, asked)
    yield _trial(
        "status 429, asks for an hour", _opening(429, retry_after=3600.0), 1, 20.0, longest
    )
    yield _trial("no connection", _opening(None), 3, None, SPENT)
    yield _trial("status 500", _opening(500, retry_after=1.0), 3, None, SPENT)
    yield _trial("status 401", _opening(401), 1, None, REFUSED)
    yield _trial("status 400", _opening(400), 1, None, REFUSED)
    quota = _opening(429, code="insufficient_quota", retry_after=2.0)
    yield _trial("quota exhausted", quota, 1, None, QUOTA)
    yield _trial("stream cut", StreamCut("the stream ended", check="completed"), 1, None, FINAL)
    idle = IdleTimeout("no byte came for 30 s", check="completed")
    yield _trial("idle time-out", idle, 1, None, FINAL)
    rejected = GateRejected("arguments are no object", check="object")
    yield _trial("gate rejected", rejected, 1, None, FINAL)


HINTS = (
    (
        "Ask first what kind of failure it is: only an OpenFailure may be tried again, and "
        "only while `number` is below 3. It has `status`, `code` and `retry_after`."
    ),
    (
        "Three things are retried: no status at all, a status from 500 on, and 429 unless "
        '`code` is "insufficient_quota". The wait is `retry_after`, at most 20, where the '
        "server gave one, and 0.25 * 2 ** (number - 1) where not."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="wait_before_retry(failure, number)",
        trials=_trials,
        tried_on="case",
        hint_texts=HINTS,
    )

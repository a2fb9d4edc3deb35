"""What a client does after a request that gave no decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from agentlib.decisions.failures import (
    DecisionFailure,
    DecisionParseError,
    EmptyResponseError,
    StreamingUnsupportedError,
    TransportError,
)
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

ANSWERS = ("tell", "again", "unstreamed", "stop")


class Case(NamedTuple):
    """A failure, what is left of both budgets, what comes next, and why."""

    name: str
    make: Callable[[], DecisionFailure]
    parse_left: int
    transport_left: int
    wanted: str
    why: str


_TWO_CALLS = partial(DecisionParseError, "expected exactly one function call, saw 2")
_RESET = partial(TransportError, "the connection is reset")
_WRONG_KEY = partial(TransportError, "the server answered 401", retryable=False, status=401)
_EMPTY = partial(EmptyResponseError, "the server answered 200 with an empty body")
_NO_STREAM = partial(StreamingUnsupportedError, "the server cannot stream with tools")

_MEND = "The model said it, so the model can mend it, if it is told what was wrong."
_SPENT = "The budget for this kind of failure is used up, and the other one is not for it."
_OTHER = "This kind of failure has a retry left. The other kind's budget does not count here."
_NOT_TOLD = (
    "The model never said anything wrong: telling it would only confuse it, and costs tokens."
)
_NEVER_REACHED = (
    "An empty page never reached the model: ask the same again. (EmptyResponseError is a "
    "TransportError.)"
)
_ALIKE = "The same request would be refused alike: `retryable` says so."
_PLAIN = "The server cannot stream this. It costs no budget, and the model has nothing to mend."

CASES = (
    Case("two calls in one reply", _TWO_CALLS, 2, 2, "tell", _MEND),
    Case("a reset connection", _RESET, 2, 2, "again", _NOT_TOLD),
    Case("two calls again, no parse retry left", _TWO_CALLS, 0, 2, "stop", _SPENT),
    Case("a reset, no transport retry left", _RESET, 2, 0, "stop", _SPENT),
    Case("two calls, no transport retry left", _TWO_CALLS, 1, 0, "tell", _OTHER),
    Case("a reset, no parse retry left", _RESET, 0, 1, "again", _OTHER),
    Case("status 200 and no body", _EMPTY, 2, 2, "again", _NEVER_REACHED),
    Case("status 200 and no body, no parse retry left", _EMPTY, 0, 2, "again", _NEVER_REACHED),
    Case("a wrong key", _WRONG_KEY, 2, 2, "stop", _ALIKE),
    Case("no streaming with tools", _NO_STREAM, 2, 2, "unstreamed", _PLAIN),
    Case("no streaming with tools, nothing left", _NO_STREAM, 0, 0, "unstreamed", _PLAIN),
)


def _judge(case: Case, outcome: Outcome) -> Wrong | None:
    # A value with an equality of its own can agree with anything.
    answer = outcome.value if type(outcome.value) is str else None
    if answer == case.wanted:
        return None
    if answer not in ANSWERS:
        return Wrong(f"It returns one of {', '.join(ANSWERS)}.", repr(case.wanted))
    return Wrong(case.why, repr(case.wanted))


def _trials() -> Iterator[Trial]:
    for case in CASES:
        yield Trial(
            stream=case.name,
            place=f"parse retries left {case.parse_left}, transport {case.transport_left}",
            prepare=lambda case=case: (case.make(), case.parse_left, case.transport_left),  # type: ignore[misc]
            judge=partial(_judge, case),
            hostile=case.wanted == "stop",
        )


HINTS = (
    "Ask for the class of the failure first, with isinstance; only then for what is left.",
    (
        "A DecisionParseError looks at parse_left alone. A TransportError looks at "
        "failure.retryable and transport_left. A StreamingUnsupportedError looks at neither."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="next_request(failure, parse_left, transport_left)",
        trials=_trials,
        tried_on="case",
        hint_texts=HINTS,
    )

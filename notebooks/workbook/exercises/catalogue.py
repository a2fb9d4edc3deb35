"""The exercises by number: `exercise("03").check(your_function)` says what it did and where.

Each has trials on good and hostile streams, hints that unfold, and a solution in
`notebooks/solutions`. A check never marks a right answer wrong for its style, and never raises.
"""

from __future__ import annotations

from workbook.exercises.attacked import ATTACKED
from workbook.exercises.bounded_run import BOUNDED_RUN
from workbook.exercises.fragments import FRAGMENTS
from workbook.exercises.may_claim import MAY_CLAIM
from workbook.exercises.may_run import MAY_RUN
from workbook.exercises.may_spend import MAY_SPEND
from workbook.exercises.name_the_server import NAME_THE_SERVER
from workbook.exercises.next_input import NEXT_INPUT
from workbook.exercises.no_doubles import NO_DOUBLES
from workbook.exercises.one_decision import ONE_DECISION
from workbook.exercises.own_fault import OWN_FAULT
from workbook.exercises.redact import REDACT
from workbook.exercises.run_once import RUN_ONCE
from workbook.exercises.settle_calls import SETTLE_CALLS
from workbook.exercises.tally_adapter import TALLY_ADAPTER
from workbook.exercises.what_to_retry import WHAT_TO_RETRY
from workbook.grading.grader import Exercise

EXERCISES: dict[str, Exercise] = {
    each.number: each
    for each in (
        BOUNDED_RUN,
        FRAGMENTS,
        MAY_RUN,
        NO_DOUBLES,
        WHAT_TO_RETRY,
        OWN_FAULT,
        TALLY_ADAPTER,
        NEXT_INPUT,
        SETTLE_CALLS,
        MAY_CLAIM,
        RUN_ONCE,
        ONE_DECISION,
        MAY_SPEND,
        REDACT,
        NAME_THE_SERVER,
        ATTACKED,
    )
}


def exercise(number: str) -> Exercise:
    """Return the exercise of this number, the chapter's, for example "03".

    Raises ValueError, with those there are, where there is none.
    """
    if number not in EXERCISES:
        raise ValueError(f"no exercise {number!r}; there are: {', '.join(EXERCISES)}")
    return EXERCISES[number]

"""The exercises by number: `exercise("03").check(your_function)` says what it did and where.

Each has trials on good and hostile streams, hints that unfold, and a solution in
`notebooks/solutions`. A check never marks a right answer wrong for its style, and never raises.
"""

from __future__ import annotations

from agentlib.lab.checking import Exercise
from agentlib.lab.tasks.attacked import ATTACKED
from agentlib.lab.tasks.bounded_run import BOUNDED_RUN
from agentlib.lab.tasks.fragments import FRAGMENTS
from agentlib.lab.tasks.may_claim import MAY_CLAIM
from agentlib.lab.tasks.may_run import MAY_RUN
from agentlib.lab.tasks.may_spend import MAY_SPEND
from agentlib.lab.tasks.name_the_server import NAME_THE_SERVER
from agentlib.lab.tasks.next_input import NEXT_INPUT
from agentlib.lab.tasks.no_doubles import NO_DOUBLES
from agentlib.lab.tasks.one_decision import ONE_DECISION
from agentlib.lab.tasks.own_fault import OWN_FAULT
from agentlib.lab.tasks.redact import REDACT
from agentlib.lab.tasks.run_once import RUN_ONCE
from agentlib.lab.tasks.settle_calls import SETTLE_CALLS
from agentlib.lab.tasks.tally_adapter import TALLY_ADAPTER
from agentlib.lab.tasks.what_to_retry import WHAT_TO_RETRY

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

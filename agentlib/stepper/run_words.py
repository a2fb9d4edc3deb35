"""How the outcomes, calls and seconds of a run are worded for a person to read."""

from __future__ import annotations

from agentlib.assembly import Decision
from agentlib.jsonvalues import one_line, shorten
from agentlib.runtime.execution import Execution, Status
from agentlib.runtime.outcomes import (
    Cancelled,
    DeadlineExceeded,
    Exhausted,
    Finished,
    HostFailed,
    Outcome,
    ResumedBefore,
    WaitingForApproval,
)

# Names and reasons come from a stream: what is shown of them is short.
MAX_DETAIL_CHARACTERS = 72
DID: dict[Status, str] = {
    "executed": "executed",
    "failed": "failed",
    "timed_out": "timed out, may have acted",
    "shown": "shown, nothing was done",
    "denied": "denied, not executed",
    "not_executed": "not executed",
    "unknown": "unknown, may have acted",
}


def outcome_words(outcome: Outcome) -> str:
    """Return in a few words how a run ended."""
    match outcome:
        case Finished(refused=True):
            return "finished: refused"
        case Finished():
            return f"finished: {'verified' if outcome.verified else 'answered, not verified'}"
        case WaitingForApproval():
            return "waiting for approval"
        case Exhausted():
            return f"exhausted: {outcome.budget.replace('_', ' ')}"
        case DeadlineExceeded():
            what = outcome.deadline.replace("_", " ")
            return f"{what} of {outcome.seconds:g} s exceeded, in: {outcome.component or 'model'}"
        case ResumedBefore():
            return "resumed before: nothing was done now"
        case HostFailed():
            return f"the host failed: {outcome.part}, {short(outcome.reason)}"
        case Cancelled():
            return f"cancelled: {short(outcome.reason)}"
        case _:
            return "provider failed"


def gave(decision: Decision) -> str:
    """Return what a decision is: its calls by name, a refusal or an answer."""
    if decision.calls:
        return f"released {', '.join(short(call.name) for call in decision.calls)}"
    if decision.refusal:
        return "a refusal"
    return "an answer" if decision.text.strip() else "an empty answer"


def took(execution: Execution) -> str:
    """Return how long a call waited and ran, as ", waited 1 s, ran 2 s"; empty where neither."""
    waited = f", waited {seconds(execution.waited)} for a place" if execution.waited > 0 else ""
    return f"{waited}, {seconds(execution.ran)}" if execution.ran > 0 else waited


def short(text: str, length: int = MAX_DETAIL_CHARACTERS) -> str:
    """Return untrusted text in one line, printable, at most `length` characters."""
    return shorten(one_line(text), length)


def seconds(value: float) -> str:
    """Return seconds with up to two decimals, for example "0.25 s"."""
    return f"{round(value, 2):,.10g} s"


def answered(answer: bool | str) -> str:
    """Return what a person answered: approved, or denied and why."""
    if answer is True:
        return "approved"
    return f"denied: {short(answer)}" if isinstance(answer, str) else "denied"

"""What the host decides, and no model can: tools, approvals, checks of an answer, and policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agentlib.conversation import Catalog, ToolCall
from agentlib.runtime.execution import Executor
from agentlib.runtime.journal import Journal, MemoryJournal
from agentlib.runtime.limits import RepairReason
from agentlib.runtime.receipts import ClaimRule, Receipt, unsupported

FALLBACK = "I could not finish this within the limits that I was given."

# The classes of a problem that make any committed text untrue, and not an answer alone.
UNBACKED = frozenset({"unsupported_claim", "unbacked_fact"})

OnMalformed: TypeAlias = Literal["stop", "repair"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with an answer: the class of the failure, and what the model is told."""

    reason: RepairReason
    detail: str


AnswerCheck: TypeAlias = Callable[[str, Sequence[Receipt]], Problem | None]


# A host that names no journal has that of the process: one of its own would let two hosts of one
# process run the same saved call.
PROCESS_JOURNAL = MemoryJournal()
# As many bytes as a guess cannot find.
FEWEST_KEY_BYTES = 16


def _no_approval(_: ToolCall) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The host's side of a run.

    `approval` returns why a call needs a person's approval, or None. `checks` look at an answer
    and the receipts before it is committed; `rules` say what may be claimed on which receipt.
    `verify`, where given, is the only thing that can call a task solved. Calls of `presentation`
    tools are never executed: they go to `show`, once the calls beside them have been executed and
    what they claim is backed. `on_malformed` says whether a response whose arguments are wrong,
    or that was cut by its output limit, ends the run or costs a repair.
    `journal` is by default one for this process; a FileJournal is one for all that share its file.
    `key`, where given, seals what is saved, so that who only can write the store can change
    nothing; raises ValueError where it is short.
    """

    tools: Catalog
    executor: Executor
    approval: Callable[[ToolCall], str | None] = _no_approval
    checks: tuple[AnswerCheck, ...] = ()
    rules: tuple[ClaimRule, ...] = ()
    verify: Callable[[str, Sequence[Receipt]], bool] | None = None
    presentation: frozenset[str] = frozenset()
    show: Callable[[ToolCall], None] = lambda _: None
    journal: Journal = PROCESS_JOURNAL
    on_malformed: OnMalformed = "stop"
    fallback: str = FALLBACK
    key: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.key is not None and len(self.key) < FEWEST_KEY_BYTES:
            raise ValueError(f"expected a key of at least {FEWEST_KEY_BYTES} random bytes")

    def problem(self, answer: str, held: Sequence[Receipt]) -> Problem | None:
        """Return the first thing that is wrong with an answer, or None."""
        if not answer.strip():
            return Problem("empty_answer", "Your answer was empty. Answer, or call a tool.")
        return next(self._problems(answer, held), None)

    def unbacked(self, text: str, held: Sequence[Receipt]) -> Problem | None:
        """Return the first claim of any text that no receipt backs, or None."""
        found = self._problems(text, held) if text.strip() else iter(())
        # What a check returns that is no Problem is returned too: whoever asks refuses it.
        reasons = ((problem, getattr(problem, "reason", None)) for problem in found)
        return next((problem for problem, why in reasons if why is None or why in UNBACKED), None)

    def _problems(self, text: str, held: Sequence[Receipt]) -> Iterator[Problem]:
        for claim, words in unsupported(text, held, self.rules).items():
            yield self._claimed(claim, words, held)
        found = (check(text, held) for check in self.checks)
        yield from (problem for problem in found if problem is not None)

    def _claimed(self, claim: str, words: str, held: Sequence[Receipt]) -> Problem:
        # A call that was made and does not back the claim is a fact that can be named.
        tools = {rule.tool for rule in self.rules if rule.claim == claim}
        made = [receipt for receipt in held if receipt.name in tools]
        if made:
            detail = f"Your answer says {words!r}; what can be said is: {made[-1].allowed_claim}."
            return Problem("unbacked_fact", f"{detail} Say that, or do what you claim.")
        detail = f"Your answer says {words!r}; nothing that was executed supports {claim}."
        return Problem("unsupported_claim", f"{detail} Do it, or do not claim it.")

"""Draft and committed text: what observers may see, and what the user may.

A draft goes out as it comes, to observers who know that it is one. Committed text is what the
user sees: bytes that were sent cannot be unsent, so it goes out only when the turn is known.
Text beside calls is held until their results are in and its claims are checked as an answer's are:
"I have cancelled your booking" is said before anything was. What a policy calls harmless may go
out at once. An answer is held until its checks have passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentlib.runtime.parts import COMMIT, DRAFT, HARMLESS, ask
from agentlib.vocabulary import TextDelta

Kind: TypeAlias = Literal["narration", "answer", "refusal", "fallback"]
Narration: TypeAlias = Literal["publish", "drop"]


@dataclass(frozen=True, slots=True)
class Committed:
    """A text that the user may see, and what kind of text it is."""

    kind: Kind
    text: str


class Publication:
    """The two streams of one run.

    `draft` is handed fragments of text, `commit` whole committed texts. `narration` is the policy
    for what the model says in a turn that acts, and `harmless` says which of it claims nothing and
    may go out before the calls have run; by default nothing is. `committed` and `dropped` keep
    what was decided. Raises PartFailed where one of the three raises, or returns what it may not:
    an awaitable would be nobody's, and is no answer.
    """

    def __init__(
        self,
        *,
        draft: Callable[[str], None] = lambda _: None,
        commit: Callable[[Committed], None] = lambda _: None,
        narration: Narration = "publish",
        harmless: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.committed: list[Committed] = []
        self.dropped: list[str] = []
        self._draft = draft
        self._commit = commit
        self._narration = narration
        self._harmless = harmless

    def blank(self) -> Publication:
        """Return one with the same policies that shows nobody anything: for a run played again."""
        return Publication(narration=self._narration, harmless=self._harmless)

    def observe(self, event: object) -> None:
        """Take an event of the stream: text goes to the draft. Fits a model's `report`."""
        if isinstance(event, TextDelta):
            ask(DRAFT, self._draft, event.text)

    def announce(self, text: str) -> bool:
        """Commit at once a text beside calls that is harmless; return whether that was done."""
        if not text or self._narration == "drop" or not ask(HARMLESS, self._harmless, text):
            return False
        self.publish("narration", text)
        return True

    def narrate(self, text: str) -> None:
        """Decide about a text beside calls whose results are in, and whose claims are backed."""
        if text and self._narration == "publish":
            self.publish("narration", text)
        else:
            self.drop(text)

    def publish(self, kind: Kind, text: str) -> None:
        """Commit a text whose evidence has been checked."""
        if text:
            committed = Committed(kind, text)
            self.committed.append(committed)
            ask(COMMIT, self._commit, committed)

    def drop(self, text: str) -> None:
        """Keep a text from the user: nothing of it was ever committed."""
        if text:
            self.dropped.append(text)

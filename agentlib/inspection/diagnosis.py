"""What a diagnosis is: a row of the table, and what was seen of it in one response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from agentlib.inspection.observations import Seen

PAGE = "notebooks/diagnoses.md"
NOT_ALONE = "run nothing of it; no named tolerance alone reads it"


class Diagnosis(NamedTuple):
    """One kind of server, or of accident: what it does, who does it, and what to do.

    `flag` is the `--compat` name that reads it all the same, "" where none does; `otherwise` is
    what to do where that does not release the response. `find` returns what it sees in a
    response, in a few words, or None. `released` rows are asked of a response that was released
    too. `last` rows count only where no other row explains a refusal.
    """

    name: str
    title: str
    server: str
    to_do: str
    find: Callable[[Seen], str | None]
    flag: str = ""
    released: bool = False
    last: bool = False
    otherwise: str = NOT_ALONE

    @property
    def anchor(self) -> str:
        """Where it stands on the page."""
        return f"{PAGE}#{self.name}"


class Diagnosed(NamedTuple):
    """A diagnosis of one response, and what of it was seen there.

    `helps` are the flags which released the response when it was read again with them, all
    together: advice names no other.
    """

    diagnosis: Diagnosis
    seen: str
    helps: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The stable name of the diagnosis."""
        return self.diagnosis.name

    @property
    def to_do(self) -> str:
        """What to do about this response; a flag is named only where it was tried and helps."""
        row = self.diagnosis
        if not row.flag:
            return row.to_do
        if not self.helps:
            return row.otherwise
        others = [flag for flag in self.helps if flag != row.flag]
        together = "".join(f", together with --compat {flag}" for flag in others)
        return f"{row.to_do}{together}"

    @property
    def text(self) -> str:
        """It in one line: its name, what was seen, and what to do."""
        return f"{self.name}: {self.seen} → {self.to_do}"

    def row(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "name": self.name,
            "title": self.diagnosis.title,
            "seen": self.seen,
            "to_do": self.to_do,
            "compat": self.diagnosis.flag if self.helps else None,
            "page": self.diagnosis.anchor,
        }

    def __repr__(self) -> str:
        return self.text

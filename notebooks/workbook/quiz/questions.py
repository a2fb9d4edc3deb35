"""The questions of the *predict* beats: for each chapter a question, its choices, and why.

Their texts stand in `questions.toml`, by the chapter's number.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

LETTERS = "abcdef"


class Choice(NamedTuple):
    """One answer to choose: its words, why it is right or wrong, and which of the two."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A question with two to six choices, of which one is right; `number` is its chapter's.

    Raises ValueError where the choices are too few, too many, or not one of them is right.
    """

    number: str
    text: str
    choices: tuple[Choice, ...]

    def __post_init__(self) -> None:
        right = sum(choice.right for choice in self.choices)
        if not 2 <= len(self.choices) <= len(LETTERS) or right != 1:
            seen = f"{len(self.choices)}, {right} of them right"
            raise ValueError(f"expected 2 to {len(LETTERS)} choices, one right; saw {seen}")

    @property
    def by_letter(self) -> dict[str, Choice]:
        """The choices, in order, by their letters."""
        return dict(zip(LETTERS, self.choices, strict=False))


def read(path: Path) -> dict[str, Question]:
    """Return the questions of a TOML file, by the numbers of their chapters.

    Raises ValueError, with the number, where one is no question.
    """
    found = {}
    for number, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
        try:
            choices = tuple(Choice(**choice) for choice in row["choices"])
            found[number] = Question(number, row["text"], choices)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path.name}, question {number}: {error}") from error
    return found


QUESTIONS: dict[str, Question] = read(Path(__file__).with_name("questions.toml"))

"""A prediction: the form in which the reader commits to a guess before anything runs.

Every explanation is already in the browser, so choosing asks no kernel; the `choice` trait
follows, so that a later cell can say what was guessed. Text and HTML say the same without a
widget.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from agentlib.stepper.front_end import front_style, read_front
from agentlib.stepper.widget import WIDGET_VIEW
from workbook.progress_file import keep
from workbook.quiz.questions import QUESTIONS, Choice, Question

FRONT = Path(__file__).with_name("front")
WIDTH = 88


@dataclass(frozen=True, repr=False)
class Explained:
    """Each choice of a question with its explanation, and which one the reader chose."""

    question: Question
    choice: str = ""

    def __repr__(self) -> str:
        lines = [_wrapped("", self.question.text)]
        for letter, choice in self.question.by_letter.items():
            lines += [
                f"{_mark(choice)} {letter}  {choice.text}",
                _wrapped("      ", choice.why),
            ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<li style="margin-bottom:6px"><strong>{_mark(choice)} {escape(choice.text)}'
            f"</strong>{' · your choice' if letter == self.choice else ''}"
            f"<br>{escape(choice.why)}</li>"
            for letter, choice in self.question.by_letter.items()
        )
        listed = f'<ol style="list-style-type:lower-alpha">{rows}</ol>'
        return f"<p>{escape(self.question.text)}</p>{listed}"


class Prediction(anywidget.AnyWidget):
    """The form of one question. `choice` is the letter that the reader chose last, or ""."""

    _esm = f"{read_front('host.js')}\n{(FRONT / 'predict.js').read_text(encoding='utf-8')}"
    _css = f"{front_style()}\n{(FRONT / 'predict.css').read_text(encoding='utf-8')}"

    asked: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    choice: traitlets.Unicode[str, str | bytes] = traitlets.Unicode("").tag(sync=True)

    def __init__(self, question: Question) -> None:
        self.question = question
        choices = [choice._asdict() for choice in question.choices]
        super().__init__(asked={"text": question.text, "choices": choices})

    @traitlets.validate("choice")
    def _known(self, proposal: dict[str, Any]) -> str:
        chosen = str(proposal["value"])
        if chosen not in ("", *self.question.by_letter):
            letters = ", ".join(self.question.by_letter)
            raise traitlets.TraitError(f"expected one of {letters}, saw {chosen[:20]!r}")
        return chosen

    @traitlets.observe("choice")
    def _keep(self, change: dict[str, Any]) -> None:
        if change["new"]:
            keep("predicted", self.question.number)

    def choose(self, letter: str) -> Prediction:
        """Commit to a choice by its letter, as the form does.

        Raises traitlets.TraitError for a letter that is none.
        """
        self.choice = letter
        return self

    @property
    def right(self) -> bool | None:
        """Whether the choice is right; None where none was made."""
        made = self._made
        return made.right if made is not None else None

    @property
    def _made(self) -> Choice | None:
        return self.question.by_letter.get(str(self.choice))

    def explain(self) -> Explained:
        """Return every choice with its explanation: to be shown when the answer has been seen."""
        return Explained(self.question, self.choice)

    def __repr__(self) -> str:
        lines = [_wrapped("", f"predict · {self.question.text}")]
        for letter, choice in self.question.by_letter.items():
            lines.append(f"  {'●' if letter == self.choice else '○'} {letter}  {choice.text}")
        made = self._made
        if made is not None:
            lines.append(_wrapped("  ", f"{'right' if made.right else 'not so'}: {made.why}"))
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the form as text, as HTML that unfolds, and as the live widget's view."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"text/plain": repr(self), "text/html": self._html(), WIDGET_VIEW: view}, {}

    def _html(self) -> str:
        folds = "".join(
            f"<details><summary>{escape(choice.text)}</summary>"
            f"<p>{'Right' if choice.right else 'Not so'}. {escape(choice.why)}</p></details>"
            for choice in self.question.choices
        )
        return (
            f"<p><strong>{escape(self.question.text)}</strong> Open the one you choose.</p>{folds}"
        )


def predict(question: str | Question) -> Prediction:
    """Return the form of a chapter's question, by the chapter's number, or of one of your own.

    Raises ValueError, with those there are, where there is no question of that number.
    """
    if isinstance(question, Question):
        return Prediction(question)
    if question not in QUESTIONS:
        raise ValueError(f"no question {question!r}; there are: {', '.join(QUESTIONS)}")
    return Prediction(QUESTIONS[question])


def _wrapped(indent: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")


def _mark(choice: Choice) -> str:
    return "✓" if choice.right else "✗"

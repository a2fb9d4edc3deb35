"""What a check of an exercise answers, and its hints: as text and as escaped HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from agentlib.jsonvalues import printable
from agentlib.recordings.capture import Capture
from agentlib.tables import Cell, Table
from agentlib.wording import plural

if TYPE_CHECKING:
    from agentlib.stepper.frame import Frame

WIDTH = 88
_INDENT = " " * 13


@dataclass(frozen=True, repr=False)
class Verdict:
    """What came of the reader's code.

    `passed` says whether every trial held. Otherwise `where` names the stream and the event,
    `expected` and `seen` what should have come of it and what did, `why` what it means, and
    `printed` what the code printed there. `held` counts the trials that held before. `tried_on`
    is what `where` is called, mostly a stream.
    """

    title: str
    passed: bool = False
    why: str = ""
    where: str = ""
    expected: str = ""
    seen: str = ""
    printed: str = ""
    held: int = 0
    streams: int = 0
    hostile: int = 0
    capture: Capture | None = field(default=None, repr=False)
    event: int | None = None
    tried_on: str = "stream"

    @property
    def frame(self) -> Frame | None:
        """The frame of the event at which it failed, or None where there is none."""
        if self.capture is None:
            return None
        # Only a reader who looks at a failure pays for the stepper.
        from agentlib.stepper.replay import Replay

        return Replay(self.capture).seek(self.event or 0)

    @property
    def text(self) -> str:
        """The whole verdict as text."""
        lines = [self._heading()]
        for word, said in self._rows():
            first = f"  {word:<{len(_INDENT) - 2}}"
            lines += textwrap.wrap(
                said,
                WIDTH,
                initial_indent=first,
                subsequent_indent=_INDENT,
                break_long_words=False,
                break_on_hyphens=False,
            )
        return "\n".join(lines)

    def _heading(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self.title} · {self._word()}"

    def _word(self) -> str:
        return "passed" if self.passed else "not yet"

    def _rows(self) -> Iterator[tuple[str, str]]:
        if self.passed:
            held = f"{plural(self.held, 'trial')} on {plural(self.streams, self.tried_on)}"
            yield "held in", f"{held}, {self.hostile} of them hostile"
            return
        rows = {
            self.tried_on: self.where,
            "expected": self.expected,
            "your code": self.seen,
            "printed": self.printed,
            "why": self.why,
        }
        yield from ((word, printable(said)) for word, said in rows.items() if said)
        if self.held:
            yield "before it", f"{plural(self.held, 'trial')} held"

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        color = (
            "var(--jp-success-color1,#2e7d32)" if self.passed else "var(--jp-warn-color1,#b26a00)"
        )
        cells = tuple((Cell(word, "vertical-align:top"), said) for word, said in self._rows())
        table = Table((), cells, named_rows=True)
        return (
            f'<div style="border-left:4px solid {color};padding:2px 0 2px 10px;max-width:60rem">'
            f"<strong>{escape(self._heading())}</strong>{table._repr_html_()}</div>"
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the view that a live page shows: the verdict, and a stepper at the event."""
        if self.capture is None:
            return {}
        from ipywidgets import HTML, VBox

        from agentlib.stepper.widget import WIDGET_VIEW, Stepper

        box = VBox([HTML(self._repr_html_()), Stepper(self.capture, index=self.event or 0)])
        view = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
        return {WIDGET_VIEW: view}


@dataclass(frozen=True, repr=False)
class Hint:
    """One hint, by number."""

    number: int
    text: str

    def __repr__(self) -> str:
        return textwrap.fill(f"hint {self.number}: {self.text}", WIDTH, subsequent_indent="  ")

    def _repr_html_(self) -> str:
        return f"<details><summary>Hint {self.number}</summary><p>{escape(self.text)}</p></details>"


@dataclass(frozen=True, repr=False)
class Hints:
    """All hints of an exercise; in a notebook each unfolds when it is opened."""

    hints: tuple[Hint, ...]

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.hints))

    def _repr_html_(self) -> str:
        return "".join(hint._repr_html_() for hint in self.hints)

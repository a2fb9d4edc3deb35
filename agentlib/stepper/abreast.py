"""Several steppers side by side, stepped together, for what several APIs express in their ways."""

from __future__ import annotations

from typing import Any

import ipywidgets

from agentlib.stepper.widget import RUN_ME, WIDGET_VIEW, Stepper

# Narrower than this a stepper cannot show a line of arguments; the next one then goes below.
COLUMN = "15rem"


class Abreast(ipywidgets.HBox):  # type: ignore[misc]  # ipywidgets is not typed
    """Shows steppers side by side; what the reader does to one, each of `steppers` does.

    Each does it by itself: where one goes to the gate's next change, so does every other, though
    that is another event in each. Their methods move one alone.
    """

    def __init__(self, *steppers: Stepper) -> None:
        for stepper in steppers:
            stepper.layout.flex = f"1 1 {COLUMN}"
            stepper.layout.min_width = f"min({COLUMN}, 100%)"
        self.steppers = steppers
        layout = ipywidgets.Layout(flex_flow="row wrap", grid_gap="8px", align_items="flex-start")
        super().__init__(steppers, layout=layout)
        for stepper in steppers:
            stepper.together = self.model_id

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.steppers))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the steppers as text and as HTML beside the live widget's view."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        frames = "".join(
            f'<div style="flex:1 1 {COLUMN}">{stepper.frame._repr_html_()}</div>'
            for stepper in self.steppers
        )
        snapshot = f'<div style="display:flex;flex-wrap:wrap;gap:8px">{frames}</div>{RUN_ME}'
        return {"text/plain": repr(self), "text/html": snapshot, WIDGET_VIEW: view}, {}

"""The run stepper: a recorded run as a widget, whose every moment is already in the browser.

A step costs no message to the kernel. The `index` trait follows the reader and drives the widget,
so that a later cell can ask for the moment at which the reader stopped. The `change` trait is what
the reader changed: only that asks the kernel, which runs the recording again with it.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from agentlib.jsonvalues import visible
from agentlib.stepper.run_builder import build_run_trace
from agentlib.stepper.run_frame import RunFrame
from agentlib.stepper.run_front import run_script, run_style
from agentlib.stepper.run_page import save_run_page
from agentlib.stepper.run_payload import run_to_wire
from agentlib.stepper.run_recorder import RunRecorder
from agentlib.stepper.run_replay import Change, run_again, run_apart
from agentlib.stepper.run_trace import Kind, RunTrace
from agentlib.stepper.run_whatif import ChangeError, checked, difference, targets

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class RunStepper(anywidget.AnyWidget):
    """Steps through a recorded run, by keys, buttons, the mouse or these methods.

    `recorder` is the RunRecorder that made the run; what is recorded later is not in it. `title`
    names the run, and `index` is the moment to open at: 0 is before the first. An index outside is
    the nearest one inside.

    `change` is [] or [name, moment]: "stop" the run at a moment, "cut" the stream after it, "deny"
    an approval where it is answered, let a tool "fail" where it begins, or resume "twice". It can
    be set, and the page sets it; one that cannot be made raises traitlets.TraitError and changes
    nothing.
    """

    _esm = run_script()
    _css = run_style()

    trace: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    index: traitlets.Int[int, int] = traitlets.Int(0).tag(sync=True)
    change: traitlets.List[Any] = traitlets.List().tag(sync=True)
    whatif: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)

    def __init__(self, recorder: RunRecorder, title: str = "a run", *, index: int = 0) -> None:
        self._recorder = recorder.copy()
        self.recorded = self.run = build_run_trace(self._recorder, title)
        self._change: Change | None = None
        super().__init__(trace=run_to_wire(self.run), index=index, whatif=self._answer())

    @traitlets.validate("index")
    def _clamp(self, proposal: dict[str, Any]) -> int:
        return max(0, min(int(proposal["value"]), self.run.last))

    @traitlets.validate("change")
    def _possible(self, proposal: dict[str, Any]) -> list[Any]:
        try:
            return list(checked(proposal["value"], self.recorded) or ())
        except ChangeError as error:
            raise traitlets.TraitError(str(error)) from error

    @traitlets.observe("change")
    def _rebuild(self, proposal: dict[str, Any]) -> None:
        self._change = change = checked(proposal["new"], self.recorded)
        self.run = self.recorded if change is None else self._changed(change)
        with self.hold_sync():
            self.trace = run_to_wire(self.run)
            self.index = min(self.index, self.run.last)
            self.whatif = self._answer()

    def _changed(self, change: Change) -> RunTrace:
        again = run_apart(partial(run_again, self._recorder, change))
        return build_run_trace(again, self.recorded.title)

    def _answer(self, error: str = "") -> dict[str, Any]:
        answer: dict[str, Any] = {"lines": [visible(line) for line in self._lines()]}
        if self._change is None:
            answer["targets"] = targets(self.recorded)
        else:
            answer["before"] = run_to_wire(self.recorded)
        return {**answer, "error": error}

    def _lines(self) -> list[str]:
        return difference(self._change, self.recorded, self.run) if self._change else []

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what a page sends; a change that cannot be made is answered with the reason."""
        if "change" in sync_data:
            try:
                checked(sync_data["change"], self.recorded)
            except ChangeError as error:
                sync_data = {name: value for name, value in sync_data.items() if name != "change"}
                self.send_state("change")
                self.whatif = self._answer(str(error))
        super().set_state(sync_data)

    @property
    def last(self) -> int:
        """The index of the last moment."""
        return self.run.last

    @property
    def frame(self) -> RunFrame:
        """What is so at the current moment: where the reader stopped."""
        return RunFrame(self.run, self.index)

    def seek(self, index: int) -> RunFrame:
        """Go to a moment; one outside is the nearest one inside."""
        self.index = index
        return self.frame

    def step(self) -> RunFrame:
        """Go one moment forward; at the last, stay."""
        return self.seek(self.index + 1)

    def back(self) -> RunFrame:
        """Go one moment back; at the start, stay."""
        return self.seek(self.index - 1)

    def next_change(self) -> RunFrame:
        """Go to the next moment that is more than one further delta of the same buffer."""
        return self.seek(self.run.next_change(self.index))

    def next_turn(self) -> RunFrame:
        """Go to where the next turn begins, or to the end."""
        return self.next(("turn", "outcome"))

    def next_tool(self) -> RunFrame:
        """Go to where the next tool begins; where there is none, stay."""
        return self.next(("tool",))

    def next(self, kinds: tuple[Kind, ...]) -> RunFrame:
        """Go to the next moment of one of these kinds; where there is none, stay."""
        return self.seek(self.run.next_of(kinds, self.index))

    def save_html(self, path: str | Path) -> Path:
        """Write the run stepper to one file that opens in any browser without a network.

        It shows the run as it is now, with its change, and opens at the current moment. A file
        that is there is replaced. Returns the path. Raises CannotSave.
        """
        return save_run_page(path, self.run, self.index, self._lines(), self.frame.text)

    @property
    def digest(self) -> str:
        """A digest of all that the widget can show: twelve hexadecimal digits."""
        text = json.dumps(self.trace, sort_keys=True, default=bytes.hex)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __repr__(self) -> str:
        lines = [f"  {line}" for line in self._lines()]
        trace = f"  trace    {self.run.last:,} moments, {self.digest}"
        return "\n".join([self.frame.text, *lines, trace])

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the frame as text and as HTML beside the live widget's view, and no metadata."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        html = self.frame._repr_html_()
        return {"text/plain": repr(self), "text/html": html, WIDGET_VIEW: view}, {}

"""The stepper: a replay as a widget, whose every step is already in the browser.

A step costs no message to the kernel. The `index` trait follows the reader and drives the widget,
so that a later cell can ask for the frame at which the reader stopped. The `edits` trait is what
the reader changed in the stream to see what the gate says then. Only that asks the kernel, and a
file of the reader's own, which the page hands over to be opened as a Capture.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from agentlib.assembly import Decision, Limits
from agentlib.conversation import Catalog
from agentlib.failures import ResponseFailure
from agentlib.jsonvalues import one_line, shorten
from agentlib.recordings.capture import Capture
from agentlib.recordings.edits import Edit, EditError
from agentlib.stepper.frame import Frame
from agentlib.stepper.front_end import FRONT, SCRIPTS, deflated, front_script, front_style
from agentlib.stepper.html_export import SavedStepper, save_page
from agentlib.stepper.payload import to_wire
from agentlib.stepper.replay import Replay, Source, captured_catalog
from agentlib.stepper.whatif import WhatIf, checked

__all__ = [
    "FRONT",
    "SCRIPTS",
    "WIDGET_VIEW",
    "Stepper",
    "deflated",
    "front_script",
    "front_style",
]

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# The page asks no more of a kernel either.
MAX_FILE_BYTES = 32_000_000
# A page that shows no live widget shows the frame, and what would bring the widget.
RUN_ME = "<p><em>Run this cell to step it here: by keys, lanes and edits.</em></p>"


class Stepper(anywidget.AnyWidget):
    """Steps through one response of a capture, by keys, buttons, a scrubber or these methods.

    `source` is a Capture or the path of one; `tools` is the catalog that the request exposed, by
    default the one that the capture itself echoes; `response` picks the response, from 1; `index`
    is the step to open at. `index` counts events: 0 is before the first, and where the stream was
    cut, its end is one step more. An index outside is the nearest one inside.

    `edits` is what was changed in the response, a list of [name, [arguments]] with the names of
    Capture's methods, as [["cut", [7]], ["drop", [3]]]; it can be set, and the page sets it.
    Setting one that cannot be made raises traitlets.TraitError and changes nothing.

    Raises what `Replay` raises: CaptureNotFound for a missing file, ValueError for a response that
    the capture does not have.
    """

    _esm = front_script()
    _css = front_style()

    trace: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    index: traitlets.Int[int, int] = traitlets.Int(0).tag(sync=True)
    edits: traitlets.List[Any] = traitlets.List().tag(sync=True)
    whatif: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    # Those of one group are stepped together; see abreast.
    together: traitlets.Unicode[str, str | bytes] = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        source: Source,
        tools: Catalog | None = None,
        *,
        response: int = 1,
        limits: Limits | None = None,
        index: int = 0,
    ) -> None:
        original = source if isinstance(source, Capture) else Capture.load(source)
        self._limits = limits
        self._answers = 0
        self._open(original, tools, response)
        super().__init__(
            trace=deflated(to_wire(self.replay.trace)), index=index, whatif=self._what_if.wire()
        )

    def _open(
        self, original: Capture, tools: Catalog | None, response: int, name: str = "capture"
    ) -> None:
        replay = Replay(original, tools, response=response, limits=self._limits)
        # The tools that were exposed stay the same, also where the event that echoes them is gone.
        self._tools = tools if tools is not None else captured_catalog(original, response)
        self._response, self._name = response, name
        self._recorded = self.replay = replay
        self._what_if = WhatIf(replay, replay, (), name, response)
        self._tried: tuple[tuple[Edit, ...], Capture] = ((), original)

    @traitlets.validate("index")
    def _clamp(self, proposal: dict[str, Any]) -> int:
        return max(0, min(int(proposal["value"]), self.replay.last))

    @traitlets.observe("index")
    def _follow(self, change: dict[str, Any]) -> None:
        # Set at once with `edits`, it was checked against the response as it was before.
        self.index = self.replay.seek(change["new"]).index

    @traitlets.validate("edits")
    def _possible(self, proposal: dict[str, Any]) -> list[Any]:
        try:
            edits, _ = self._edited(proposal["value"])
        except EditError as error:
            raise traitlets.TraitError(str(error)) from error
        return [[edit.name, list(edit.arguments)] for edit in edits]

    def _edited(self, asked: object) -> tuple[tuple[Edit, ...], Capture]:
        # One change asks three times: what a page sent, what is valid, what to show.
        edits = checked(asked, self._response)
        if edits != self._tried[0]:
            self._tried = edits, self._recorded.capture.edited(*edits)
        return self._tried

    @traitlets.observe("edits")
    def _rebuild(self, change: dict[str, Any]) -> None:
        edits, capture = self._edited(change["new"])
        index, replay = self.replay.index, self._recorded
        if edits:
            options: dict[str, Any] = {"response": self._response, "limits": self._limits}
            replay = Replay(capture, self._tools, **options)
        replay.seek(index)
        self.replay = replay
        self._what_if = WhatIf(self._recorded, replay, edits, self._name, self._response)
        with self.hold_sync():
            self.trace = deflated(to_wire(replay.trace))
            self.index = replay.index
            self._answer()

    def _answer(self, error: str = "") -> None:
        self._answers += 1
        self.whatif = {**self._what_if.wire(error), "answer": self._answers}

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what a page sends; what cannot be done is answered with the reason.

        Edits come first: a step that is sent with them is one of the response that they make. A
        file comes last: it takes the place of what was shown.
        """
        rest = {name: value for name, value in sync_data.items() if name not in ("edits", "file")}
        if "edits" in sync_data:
            try:
                self._edited(sync_data["edits"])
                super().set_state({"edits": sync_data["edits"]})
            except EditError as error:
                self.send_state("edits")
                self._answer(str(error))
        super().set_state(rest)
        if "file" in sync_data:
            self._take_file(sync_data["file"])

    def _take_file(self, file: object) -> None:
        """Show the first response of a file of the page: a dict of its name and its data."""
        match file:
            case {"name": str(name), "data": bytes() | bytearray() | memoryview() as data}:
                pass
            case _:
                return self._answer("expected a file with its name and its bytes")
        if len(data) > MAX_FILE_BYTES:
            return self._answer(f"a file here may have at most {MAX_FILE_BYTES:,} bytes")
        capture = Capture.from_bytes(bytes(data), name=Path(name).stem or "capture")
        fault = capture.responses[0].fault
        if not capture.responses[0].events and fault is not None:
            return self._answer(f"{one_line(shorten(name, 80))} holds no stream: {fault}")
        with self.hold_sync():
            self.edits = []
            self._open(capture, None, 1, f"Capture.load({name!r})")
            self.trace = deflated(to_wire(self.replay.trace))
            self.index = 0
            self._answer()
        return None

    def _go(self, frame: Frame) -> Frame:
        self.index = frame.index
        return frame

    @property
    def capture(self) -> Capture:
        """The capture as it is shown: with the edits, if there are any."""
        return self.replay.capture

    @property
    def last(self) -> int:
        """The index of the last step."""
        return self.replay.last

    @property
    def frame(self) -> Frame:
        """The frame of the current step: where the reader stopped."""
        return self.replay.frame

    @property
    def decision(self) -> Decision | None:
        """What the gate released at the end of the response, or None."""
        return self.replay.decision

    @property
    def failure(self) -> ResponseFailure | None:
        """Why the gate released nothing, or None."""
        return self.replay.failure

    def step(self) -> Frame:
        """Go one step forward; at the last step, stay."""
        return self._go(self.replay.step())

    def back(self) -> Frame:
        """Go one step back; at the start, stay."""
        return self._go(self.replay.back())

    def seek(self, index: int) -> Frame:
        """Go to a step; one outside is the nearest one inside."""
        return self._go(self.replay.seek(index))

    def next_change(self) -> Frame:
        """Go to the next step that is more than one further delta of the same buffer."""
        return self._go(self.replay.next_change())

    def previous_change(self) -> Frame:
        """Go back to the last change before this step."""
        return self._go(self.replay.previous_change())

    def run(self) -> Frame:
        """Go to the last step."""
        return self._go(self.replay.run())

    def save_html(self, path: str | Path) -> Path:
        """Write the stepper to one file that opens in any browser without a network.

        It shows the response as it is now, with its edits, and opens at the current step. A file
        that is there is replaced. Returns the path. Raises CannotSave.
        """
        code = f"edited: {self._what_if.code}" if self.edits else ""
        text = "\n".join([self.replay.frame.text, *self._edits_lines()])
        title = self._recorded.trace.title
        heading = code or self.replay.trace.subtitle
        saved = SavedStepper(heading, self.replay, self.index, text)
        return save_page(path, title, [saved])

    def _edits_lines(self) -> list[str]:
        return [f"  {line}" for line in self._what_if.lines()]

    @property
    def digest(self) -> str:
        """A digest of all that the widget can show: twelve hexadecimal digits."""
        text = json.dumps(self.trace, sort_keys=True, default=_sha256)
        return _sha256(text.encode())[:12]

    def __repr__(self) -> str:
        trace = f"  trace    {self.replay.trace.count:,} events, {self.digest}"
        return "\n".join([self.frame.text, *self._edits_lines(), trace])

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the frame as text and as HTML beside the live widget's view, and no metadata."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        snapshot = f"{self.frame._repr_html_()}{RUN_ME}"
        return {"text/plain": repr(self), "text/html": snapshot, WIDGET_VIEW: view}, {}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

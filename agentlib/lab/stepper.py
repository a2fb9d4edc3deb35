"""The stepper: a replay as a widget, whose every step is already in the browser.

A step costs no message to the kernel. The `index` trait follows the reader and drives the widget,
so that a later cell can ask for the frame at which the reader stopped.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from agentlib.assembly import Decision, Limits
from agentlib.conversation import Catalog
from agentlib.errors import ResponseFailure
from agentlib.lab.frame import Frame
from agentlib.lab.replay import Replay, Source
from agentlib.lab.wire import to_wire

FRONT = Path(__file__).with_name("front")
# Each script uses the names of those before it; together they are one module.
SCRIPTS = ("state.js", "page.js", "track.js", "detail.js", "stepper.js")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def front_script() -> str:
    """Return the widget's script as one module, whose default export has `render`."""
    return "\n".join((FRONT / name).read_text(encoding="utf-8") for name in SCRIPTS)


def front_style() -> str:
    """Return the widget's style sheet."""
    return (FRONT / "stepper.css").read_text(encoding="utf-8")


def deflated(wire: dict[str, Any]) -> dict[str, Any]:
    """Return a trace's wire form with `raw` packed as zlib does (RFC 1950), and `deflated` set.

    Raw events repeat each other: they shrink to a tenth, for a kernel that is far away.
    """
    return {**wire, "raw": zlib.compress(wire["raw"], 1), "deflated": True}


class Stepper(anywidget.AnyWidget):
    """Steps through one response of a capture, by keys, buttons, a scrubber or these methods.

    `source` is a Capture or the path of one; `tools` is the catalog that the request exposed, by
    default the one that the capture itself echoes; `response` picks the response, from 1; `index`
    is the step to open at. `index` counts events: 0 is before the first, and where the stream was
    cut, its end is one step more. An index outside is the nearest one inside.

    Raises what `Replay` raises: CaptureNotFound for a missing file, ValueError for a response that
    the capture does not have.
    """

    _esm = front_script()
    _css = front_style()

    trace: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    index: traitlets.Int[int, int] = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        source: Source,
        tools: Catalog | None = None,
        *,
        response: int = 1,
        limits: Limits | None = None,
        index: int = 0,
    ) -> None:
        self.replay = Replay(source, tools, response=response, limits=limits)
        super().__init__(trace=deflated(to_wire(self.replay.trace)), index=index)

    @traitlets.validate("index")
    def _clamp(self, proposal: dict[str, Any]) -> int:
        return max(0, min(int(proposal["value"]), self.replay.last))

    @traitlets.observe("index")
    def _follow(self, change: dict[str, Any]) -> None:
        self.replay.seek(change["new"])

    def _go(self, frame: Frame) -> Frame:
        self.index = frame.index
        return frame

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

    @cached_property
    def digest(self) -> str:
        """A digest of all that the widget can show: twelve hexadecimal digits."""
        text = json.dumps(self.trace, sort_keys=True, default=_sha256)
        return _sha256(text.encode())[:12]

    def __repr__(self) -> str:
        return f"{self.frame.text}\n  trace    {self.replay.trace.count:,} events, {self.digest}"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the frame as text and as HTML beside the live widget's view, and no metadata."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        snapshot = self.frame._repr_html_()
        return {"text/plain": repr(self), "text/html": snapshot, WIDGET_VIEW: view}, {}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

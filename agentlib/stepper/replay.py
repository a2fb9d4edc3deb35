"""A replay: a recorded response that a reader steps through, forward and back.

It is a synchronous cursor over a trace: no kernel task waits, no clock runs, and the state at a
step is the same however the reader got there.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from agentlib.assembly import Decision, Limits
from agentlib.conversation import Catalog
from agentlib.errors import CatalogError
from agentlib.failures import ResponseFailure
from agentlib.providers.registry import PROVIDERS
from agentlib.recordings.capture import Capture
from agentlib.recordings.edits import chain
from agentlib.stepper.frame import Frame
from agentlib.stepper.trace import Trace, build_trace

Source: TypeAlias = Capture | str | Path


class Replay:
    """Steps through one response of a capture.

    `source` is a Capture or the path of one. `tools` is the catalog that the request exposed; by
    default the one that the capture itself echoes, if any. `response` picks the response, from 1.
    `native` False refuses what only the provider understands, such as reasoning; `compat` names
    what is tolerated of the server.
    """

    def __init__(
        self,
        source: Source,
        tools: Catalog | None = None,
        *,
        response: int = 1,
        limits: Limits | None = None,
        native: bool = True,
        compat: Iterable[str] = (),
    ) -> None:
        capture = source if isinstance(source, Capture) else Capture.load(source)
        if not 1 <= response <= len(capture.responses):
            raise ValueError(f"expected a response from 1 to {len(capture.responses)}: {response}")
        provider = capture.responses[response - 1].provider
        provider = provider if provider in PROVIDERS else "responses"
        self.capture = capture
        self.trace: Trace = build_trace(
            capture.responses[response - 1],
            provider,
            tools if tools is not None else captured_catalog(capture, response),
            limits,
            title=_title(capture, response),
            subtitle=_subtitle(capture, provider),
            native=native,
            compat=compat,
        )
        self.index = 0

    @property
    def last(self) -> int:
        """The index of the last step."""
        return self.trace.last

    @property
    def frame(self) -> Frame:
        """The frame of the current step."""
        return Frame(self.trace, self.index)

    @property
    def decision(self) -> Decision | None:
        """What the gate released at the end of the response, or None."""
        return self.trace.decision

    @property
    def failure(self) -> ResponseFailure | None:
        """Why the gate released nothing, or None."""
        return self.trace.failure

    def step(self) -> Frame:
        """Go one step forward; at the last step, stay."""
        return self.seek(self.index + 1)

    def back(self) -> Frame:
        """Go one step back; at the start, stay."""
        return self.seek(self.index - 1)

    def seek(self, index: int) -> Frame:
        """Go to a step: 0 is before the first event. A step outside is the nearest one inside."""
        self.index = max(0, min(index, self.last))
        return self.frame

    def next_change(self) -> Frame:
        """Go to the next step that is more than one further delta of the same buffer."""
        index = self.index + 1
        while index < self.last and not self.trace.starts_run(index):
            index += 1
        return self.seek(index)

    def previous_change(self) -> Frame:
        """Go back to the last change before this step."""
        index = self.index - 1
        while index > 0 and not self.trace.starts_run(index):
            index -= 1
        return self.seek(index)

    def run(self) -> Frame:
        """Go to the last step."""
        return self.seek(self.last)

    def __repr__(self) -> str:
        return self.frame.text


def captured_catalog(capture: Capture, response: int = 1) -> Catalog | None:
    """Return the catalog that a capture's own first event echoes, or None where it has none."""
    tools = capture.catalog_json(response)
    try:
        return Catalog.from_json(tools, captured=True) if tools else None
    except CatalogError:
        return None


def _title(capture: Capture, response: int) -> str:
    several = len(capture.responses) > 1
    name = f"{capture.name}{chain(capture.edits)}"
    return f"{name}, response {response}" if several else name


def _subtitle(capture: Capture, provider: str) -> str:
    authored = any("authored fixture" in comment for comment in capture.comments)
    title = PROVIDERS[provider].title
    return f"{title} · authored fixture" if authored else title

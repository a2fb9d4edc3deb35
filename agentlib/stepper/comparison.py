"""Compare adapters on one recorded response: what each would have executed, and when.

An adapter is what `agentlib check` tries too: a class that is called with the catalog, and whose
`accept(event)` and `end()` return the calls to execute now. No tool is ever called here. The
result is drawn on one timeline made of characters, which says the same in a terminal, on GitHub
and in a notebook.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from html import escape
from typing import Any

from agentlib.assembly import Decision
from agentlib.conformance.trials import maker
from agentlib.conversation import Catalog
from agentlib.jsonvalues import one_line, shorten, thaw
from agentlib.providers.registry import PROVIDERS
from agentlib.reader import ResponseReader
from agentlib.recordings.boundaries import detect_provider
from agentlib.recordings.capture import Capture
from agentlib.recordings.events import CapturedResponse
from agentlib.stepper.frame import where
from agentlib.stepper.hasty import HastyAction
from agentlib.stepper.replay import Replay, captured_catalog
from agentlib.stepper.trace import Trace
from agentlib.tables import Cell, Table, scrollable
from agentlib.wording import plural

# A longer stream is drawn with several events to a character.
MAX_BAR_CHARACTERS = 60
MAX_NAME_CHARACTERS = 24
MAX_ARGUMENT_CHARACTERS = 90
MAX_REASON_CHARACTERS = 200
MAX_SHOWN_ACTIONS = 20
QUIET, REFUSES, EXECUTES = "·", "✕", "█"
_CODE = "font-family:var(--jp-code-font-family,monospace);white-space:pre"
_CELL = "text-align:left;vertical-align:top"


class Gated:
    """The project's own way, as an adapter: the reader of the API, and behind it the gate.

    Its first event tells which API it reads. What it refuses it raises, as a ResponseFailure;
    what it releases it returns, all at once.
    """

    def __init__(self, catalog: Catalog | None = None) -> None:
        self.actions: list[HastyAction] = []
        self._catalog = catalog
        self._reader: ResponseReader | None = None
        self._events = 0

    def accept(self, event: Mapping[str, Any]) -> list[HastyAction]:
        """Take the next native event; return the calls that it releases. Raises ResponseFailure."""
        self._events += 1
        return self._released(self._reading(event).accept(event))

    def end(self) -> list[HastyAction]:
        """Take the end of the stream. Raises ResponseFailure where the response was not whole."""
        self._events += 1
        return self._released(self._reading({}).end())

    def fault(self, reason: str) -> None:
        """Take it that the stream could not be read further. Raises ResponseFailure."""
        self._reading({}).fault(reason)

    def _reading(self, event: Mapping[str, Any]) -> ResponseReader:
        if self._reader is None:
            provider = detect_provider([event])
            known = provider if provider in PROVIDERS else "responses"
            self._reader = ResponseReader(known, self._catalog, native=True)
        return self._reader

    def _released(self, decision: Decision | None) -> list[HastyAction]:
        calls = decision.calls if decision is not None else ()
        released = [HastyAction(self._events, c.call_id, c.name, {**c.arguments}) for c in calls]
        self.actions += released
        return released


@dataclass(frozen=True, slots=True)
class Compared:
    """What one adapter did: its name, what it executed, and where and why it refused, if it did."""

    name: str
    actions: tuple[HastyAction, ...]
    refused_at: int | None = None
    reason: str = ""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Adapters on one response, each with what it would have executed."""

    trace: Trace
    rows: tuple[Compared, ...]

    @property
    def text(self) -> str:
        """The whole comparison as text."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self._title()
        width = max(len(_named(row)) for row in self.rows)
        for row in self.rows:
            yield f"  {_named(row):{width}}  {self._bar(row)}  {_counted(row)}"
        for row in self.rows:
            yield from (f"  {_named(row):{width}}  {line}" for line in self._told(row))
        yield f"  {EXECUTES} executes   {REFUSES} refuses the response   {QUIET} neither"

    def _title(self) -> str:
        step = self._step()
        each = f", {step} events to a character" if step > 1 else ""
        return f"{_short(self.trace.title)} · {plural(self.trace.count, 'event')} and the end{each}"

    def _step(self) -> int:
        return -(-(self.trace.count + 1) // MAX_BAR_CHARACTERS)

    def _bar(self, row: Compared) -> str:
        step = self._step()
        bar = [QUIET] * -(-(self.trace.count + 1) // step)
        if row.refused_at is not None:
            bar[(row.refused_at - 1) // step] = REFUSES
        for action in row.actions:
            bar[(action.event - 1) // step] = EXECUTES
        return "".join(bar)

    def _told(self, row: Compared) -> Iterator[str]:
        for action in row.actions[:MAX_SHOWN_ACTIONS]:
            at = where(self.trace, action.event)
            yield f"at {at}: {_short(action.name)} {_written(action.arguments)}"
        left = len(row.actions) - MAX_SHOWN_ACTIONS
        if left > 0:
            yield f"and {plural(left, 'more call')}, not shown"
        if row.refused_at is not None:
            reason = one_line(shorten(row.reason, MAX_REASON_CHARACTERS))
            yield f"refuses at {where(self.trace, row.refused_at)}: {reason}"

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        table = Table(
            ("adapter", "event by event", "executed", "what, and when"),
            tuple(map(self._cells, self.rows)),
            title=self._title(),
            style=_CELL,
            named_rows=True,
        )
        legend = f"{EXECUTES} executes, {REFUSES} refuses the response, {QUIET} neither"
        return scrollable(self._title(), table._repr_html_(), f"<div>{legend}</div>")

    def _cells(self, row: Compared) -> tuple[str | Cell, ...]:
        lines = [*self._told(row)] or ["nothing"]
        return (
            _named(row),
            Cell(self._bar(row), _CODE),
            Cell(plural(len(row.actions), "tool"), "white-space:nowrap"),
            Cell("; ".join(lines), markup="<br>".join(map(escape, lines))),
        )


def compare(
    source: Capture, *adapters: Any, tools: Catalog | None = None, response: int = 1
) -> Comparison:
    """Give one response of a capture to each adapter, and return what each would have executed.

    `tools` is the catalog that they are made with, by default the one that the capture echoes.
    An adapter that raises refuses the response; what it returned before counts as executed.
    Raises TypeError for what is no adapter, and ValueError for a response that is not there.
    """
    replay = Replay(source, tools, response=response)
    catalog = tools if tools is not None else captured_catalog(source, response)
    recorded = source.responses[response - 1]
    rows = (_tried(adapter, catalog, recorded) for adapter in adapters)
    return Comparison(replay.trace, tuple(rows))


def _tried(adapter: Any, catalog: Catalog | None, response: CapturedResponse) -> Compared:
    make = maker(adapter)
    name = getattr(adapter, "__name__", type(adapter).__name__)
    actions: list[HastyAction] = []
    number = 0
    try:
        trying = Gated(catalog) if adapter is Gated else make(catalog or Catalog())
        for number, event in enumerate(response.events, 1):
            actions += _executed(trying.accept(deepcopy(event.data)), number)
        number = len(response.events) + 1
        if response.fault is not None and isinstance(trying, Gated):
            trying.fault(response.fault)
        actions += _executed(trying.end(), number)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever an adapter raises refuses
        said = getattr(error, "reason", None) or f"{type(error).__name__}: {error}"
        return Compared(name, tuple(actions), max(number, 1), said)
    return Compared(name, tuple(actions))


def _executed(released: Iterable[Any] | None, number: int) -> Iterator[HastyAction]:
    for each in released or ():
        if isinstance(each, tuple | list):
            call_id, name, arguments = each
        else:
            call_id, name, arguments = each.call_id, each.name, each.arguments
        yield HastyAction(number, call_id, name, arguments)


def _named(row: Compared) -> str:
    return one_line(shorten(row.name, MAX_NAME_CHARACTERS))


def _short(text: str) -> str:
    return one_line(shorten(str(text), MAX_ARGUMENT_CHARACTERS))


def _written(arguments: object) -> str:
    try:
        if not isinstance(arguments, Mapping):
            return _short(str(arguments))
        text = json.dumps(thaw(arguments), ensure_ascii=False, separators=(",", ":"), default=repr)
    except (RecursionError, TypeError, ValueError):
        # Nested too deep, a number too long, or a name that is no text: the call is shown still.
        return "…"
    return _short(text)


def _counted(row: Compared) -> str:
    return f"executed {plural(len(row.actions), 'tool')}"

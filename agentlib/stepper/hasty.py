"""Three hasty adapters, each a mistake that is easy to make.

Each looks at one event at a time and says what it would have executed by then; none asks anything
of the response as a whole, and no tool is ever called here. They are what the gate is compared
with, and the stepper counts what the first of them does.

They read the events of all four APIs, and are used like any adapter: made with a catalog, which
they do not look at, `accept(event)` for each decoded native event, and `end()` at the end of the
stream. Both return the list of what is executed now, mostly empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentlib.conversation import Catalog
from agentlib.failures import ProtocolViolation
from agentlib.providers.gemini_arguments import ArgumentText
from agentlib.providers.synthetic import local_call
from agentlib.stepper.call_signals import ALL_DONE, BEGINS, DONE, GROWS, STOPS, Signal, read
from agentlib.stepper.preview import Preview

Arguments: TypeAlias = dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class HastyAction:
    """A call that is executed at this event (number, from 1; at the end, one more than the last).

    `arguments` are the JSON object that is handed to the tool, or the text that is no such thing.
    """

    event: int
    call_id: str
    name: str
    arguments: Arguments = ""


@dataclass(slots=True)
class _Call:
    call_id: str
    name: str
    fragments: list[str] = field(default_factory=list)
    preview: Preview = field(default_factory=Preview)
    changed: bool = True
    pieces: ArgumentText = field(default_factory=ArgumentText)

    def added(self, piece: Mapping[str, Any] | None) -> str:
        """Return what a piece adds to the argument text, or their end where it is None."""
        try:
            return self.pieces.end() if piece is None else self.pieces.take(piece)
        except ProtocolViolation:
            return ""

    @property
    def text(self) -> str:
        return "".join(self.fragments)


class _Hasty:
    """Keeps the calls that events named, and executes each at most once, by its call ID."""

    def __init__(self, catalog: Catalog | None = None) -> None:
        self.catalog = catalog
        self.actions: list[HastyAction] = []
        self._events = 0
        self._calls: dict[str, _Call] = {}
        # Those that changed since they were looked at: however often a stream says that all calls
        # are done, none is parsed twice.
        self._changed: list[_Call] = []
        self._acted: set[str] = set()
        self._begun = 0

    def accept(self, event: Mapping[str, Any]) -> list[HastyAction]:
        """Take the next native event; return what is executed now. Raises nothing."""
        self._events += 1
        before = len(self.actions)
        for signal in read(event):
            self._take(signal)
        return self.actions[before:]

    def end(self) -> list[HastyAction]:
        """Take the end of the stream, whole or cut; return what is executed now."""
        self._events += 1
        before = len(self.actions)
        self._stop()
        return self.actions[before:]

    def _take(self, signal: Signal) -> None:
        if signal.what == BEGINS:
            self._begun += 1
            signal = signal._replace(call_id=signal.call_id or local_call(self._begun))
        call = self._calls.get(signal.key)
        if signal.name and (call is None or call.call_id != signal.call_id):
            call = self._calls[signal.key] = _Call(signal.call_id, signal.name)
            self._changed.append(call)
        if signal.what == STOPS:
            self._stop()
        elif signal.what == ALL_DONE:
            self._all_done()
        elif call is None or signal.what == BEGINS:
            return
        elif signal.what == DONE:
            if signal.text:
                call.fragments.clear()
                self._grow(call, signal.text)
            elif call.pieces.text:
                self._grow(call, call.added(None))
            self._look(call)
        elif signal.what == GROWS:
            text = signal.text or (call.added(signal.piece) if signal.piece is not None else "")
            if text:
                self._grow(call, text)
                self._grown(call, text)

    def _grow(self, call: _Call, text: str) -> None:
        call.fragments.append(text)
        if not call.changed:
            call.changed = True
            self._changed.append(call)

    def _look(self, call: _Call) -> None:
        if call.changed and call.call_id not in self._acted:
            self._done(call)
        call.changed = False

    def _take_changed(self) -> list[_Call]:
        changed, self._changed = self._changed, []
        return changed

    def _all_done(self) -> None:
        """All calls are said to be done at once."""
        for call in self._take_changed():
            self._look(call)

    def _grown(self, call: _Call, fragment: str) -> None:
        """A fragment came: by itself, this is nothing to act on."""

    def _done(self, call: _Call) -> None:
        """The call is said to be done, with the arguments that came last."""

    def _stop(self) -> None:
        """The response stops, for whatever reason, or the stream ends."""

    def _act(self, call: _Call, arguments: Arguments) -> None:
        if call.call_id not in self._acted:
            self._acted.add(call.call_id)
            action = HastyAction(self._events, call.call_id, call.name, arguments)
            self.actions.append(action)


class ActsAtItemDone(_Hasty):
    """Acts as soon as one call's arguments are said to be done.

    That is arguments.done in the Responses API, or the item's done where that comes first, and
    the end of its block in Messages; in Gemini a functionCall that is not to continue. Chat
    Completions says no such thing: there it acts at a finish reason, whichever it is.
    """

    def _done(self, call: _Call) -> None:
        self._act(call, _object_of(call.text or "{}", otherwise=call.text))


class ActsWhenItParses(_Hasty):
    """Acts as soon as the arguments so far can be read as an object that says something.

    It reads them as a preview does, which closes what is open: half a path is a path to it.
    """

    def _grown(self, call: _Call, fragment: str) -> None:
        if call.call_id in self._acted:
            return
        call.preview.feed(fragment)
        value = call.preview.value()
        if value is not None and (call.preview.closed or any(value.values())):
            self._act(call, value)

    def _done(self, call: _Call) -> None:
        value = _object_of(call.text or "{}", otherwise="")
        if not isinstance(value, str):
            self._act(call, value)


class FillsTheCut(_Hasty):
    """Takes any end for a completion, and arguments that are no object for `{}`.

    It waits, and so looks careful, and then asks neither how the response ended nor whether it
    did.
    """

    def _all_done(self) -> None:
        pass

    def _stop(self) -> None:
        for call in self._take_changed():
            if call.call_id not in self._acted:
                self._act(call, _object_of(call.text, otherwise={}))


HASTY = (ActsAtItemDone, ActsWhenItParses, FillsTheCut)
# The one that is meant where just a hasty adapter is spoken of, as in the stepper.
Hasty = ActsAtItemDone


def _object_of(text: str, *, otherwise: Arguments) -> Arguments:
    """Parse as most do: what names a thing twice, or holds NaN, passes."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
    return value if isinstance(value, dict) else otherwise

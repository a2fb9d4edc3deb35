"""What if the stream had been another: edits of a capture, and what the gate says then.

The reader plays in the stepper, or with `stepper.edits`: a list of edits, each its name and its
arguments, as [["cut", [7]], ["drop", [3]]]. They come from a page, so they are checked one by one
and bounded. The verdict on the edited response stands beside the one on the response as it was,
with the first event at which the two differ, and with the line of code that makes the same edits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

from agentlib.errors import AgentlibError
from agentlib.fixtures import capture as fixture
from agentlib.jsonvalues import has_surrogate, quote, visible
from agentlib.recordings.capture import Capture
from agentlib.recordings.edits import PLACES, REASONS, Edit, EditError, chain
from agentlib.stepper.frame import verdict_line, where
from agentlib.stepper.hasty import HastyAction
from agentlib.stepper.replay import Replay
from agentlib.stepper.trace import Trace
from agentlib.wording import plural

MAX_EDITS = 50
MAX_FRAGMENT_CHARACTERS = 2_000
# The edits that a reader can ask for, each with the types of its arguments.
_ASKED: dict[str, tuple[type, ...]] = {
    "cut": (int,),
    "drop": (int,),
    "double": (int,),
    "swap": (int,),
    "edit": (int, str),
    "stop": (str,),
}


def checked(asked: object, response: int = 1) -> tuple[Edit, ...]:
    """Return asked edits as Edits of this response. Raises EditError where one is malformed."""
    if not isinstance(asked, list | tuple):
        raise EditError(f"expected a list of edits, saw {quote(asked)}")
    if len(asked) > MAX_EDITS:
        raise EditError(f"expected at most {MAX_EDITS} edits, saw {len(asked):,}")
    return tuple(_checked(each, response) for each in asked)


def _checked(each: object, response: int) -> Edit:
    match each:
        case [str(name), [*arguments]] if name in _ASKED:
            types = _ASKED[name]
        case _:
            names = ", ".join(_ASKED)
            raise EditError(f"expected [name, [arguments]] with one of {names}; saw {quote(each)}")
    fits = len(arguments) == len(types) and all(map(_is, arguments, types))
    if not fits:
        expected = " and ".join("a text" if kind is str else "a whole number" for kind in types)
        raise EditError(f"{name} takes {expected}, saw {quote(arguments)}")
    for text in (each for each in arguments if isinstance(each, str)):
        if len(text) > MAX_FRAGMENT_CHARACTERS:
            raise EditError(f"a text may have at most {MAX_FRAGMENT_CHARACTERS:,} characters here")
        if has_surrogate(text):
            # UTF-8 cannot carry it, and the messages between a page and the kernel are UTF-8.
            raise EditError("a text with half of an escape pair is edited by code: capture.edit")
    return Edit(name, tuple(arguments), response)


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


@dataclass(frozen=True)
class WhatIf:
    """Two replays of one response: as it was recorded, and as it was edited.

    `name` is the expression that the code calls the recorded capture by, where it is none of the
    book's fixtures.
    """

    before: Replay
    now: Replay
    edits: tuple[Edit, ...]
    name: str = "capture"
    response: int = 1

    @cached_property
    def gate_differs(self) -> int | None:
        """The first step of the edited response at which the gate says something else, or None."""
        before, now = self.before.trace, self.now.trace
        if _says(before, before.last) == _says(now, now.last):
            return None
        steps = sorted({state.at for trace in (before, now) for state in trace.gate})
        differing = (at for at in steps if _says(before, at) != _says(now, at))
        return min(next(differing, now.last), now.last)

    @cached_property
    def hasty_differs(self) -> int | None:
        """The first step at which a hasty adapter acts otherwise than before, or None."""
        pairs = zip_longest(self.before.trace.hasty, self.now.trace.hasty)
        differing = (pair for pair in pairs if _act(pair[0]) != _act(pair[1]))
        first = next(differing, ())
        events = [action.event for action in first if action is not None]
        return min(*events, self.now.trace.last) if events else None

    @property
    def differs(self) -> int | None:
        """The first step at which the gate or a hasty adapter does something else, or None."""
        steps = [step for step in (self.gate_differs, self.hasty_differs) if step is not None]
        return min(steps, default=None)

    @property
    def code(self) -> str:
        """The expression that makes the edited capture, `capture` being the recorded one."""
        name, edits = self._base
        return name + "".join(edit.code for edit in (*edits, *self.edits))

    @cached_property
    def _base(self) -> tuple[str, tuple[Edit, ...]]:
        return _base(self.before.capture, self.name)

    def lines(self) -> Iterator[str]:
        """Yield it as a reader sees it in a text."""
        if self.edits:
            name, edits = self._base
            yield f"what if  {name}{chain(edits)}{chain(self.edits)}"
            yield f"before   {verdict_line(self.before.trace)}"
            yield f"now      {verdict_line(self.now.trace)}"
            yield f"differ   {self.difference}"

    @property
    def difference(self) -> str:
        """Where the two differ first, in words: in the verdict, and in a hasty adapter's acts."""
        if self.differs is None:
            return "nowhere: the verdict is the same"
        return f"{self._gate_words}{self._hasty_words}"

    @property
    def _gate_words(self) -> str:
        if self.gate_differs is None:
            return "not in the verdict"
        both = self.before.decision is not None and self.now.decision is not None
        what = ": both are released, and not the same" if both else ""
        return f"first at {where(self.now.trace, self.gate_differs)}{what}"

    @property
    def _hasty_words(self) -> str:
        if self.hasty_differs is None:
            return ""
        before, now = len(self.before.trace.hasty), len(self.now.trace.hasty)
        calls = plural(now, "call")
        what = f"{calls} instead of {before}" if before != now else f"{calls} too, not the same"
        place = where(self.now.trace, self.hasty_differs)
        return f"; a hasty adapter at {place}: it executes {what}"

    @property
    def _shown(self) -> str:
        """The expression that makes this stepper again, as far as its capture goes."""
        number = self.response
        return f"Stepper({self.code}{f', response={number}' if number > 1 else ''})"

    def wire(self, error: str = "") -> dict[str, Any]:
        """Return it as JSON values, for the stepper's page; `error` says what could not be done."""
        provider = self.before.capture.provider
        values: dict[str, Any] = {
            "edits": [[edit.name, list(edit.arguments)] for edit in self.edits],
            "places": [list(path) for path in PLACES.get(provider, ())],
            "reasons": list(REASONS.get(provider, ())),
            "limit": MAX_FRAGMENT_CHARACTERS,
            "error": visible(error),
            "shown": visible(self._shown),
        }
        if self.edits:
            values |= {
                "before": _verdict(self.before.trace),
                "now": _verdict(self.now.trace),
                "differs": self.differs,
                "difference": self.difference,
                "code": visible(self.code),
            }
        return values


def _base(capture: Capture, otherwise: str) -> tuple[str, tuple[Edit, ...]]:
    """Return an expression for a capture, and the edits that it needs.

    A fixture of the book is called by its name; any other is what it is `otherwise` called.
    """
    try:
        same = fixture(capture.name).edited(*capture.edits) == capture
    except (AgentlibError, OSError):
        same = False
    return (f"capture({capture.name!r})", capture.edits) if same else (otherwise, ())


def _says(trace: Trace, index: int) -> tuple[object, ...]:
    # Two releases are the same where they release the same calls and text.
    gate = trace.gate_at(index)
    decision = trace.decision if gate.state == "released" else None
    told = (decision.calls, decision.text) if decision is not None else None
    return gate.state, gate.headline if gate.state != "closed" else "", told


def _act(action: HastyAction | None) -> tuple[object, ...] | None:
    # The event is no part of it: an edit moves the events behind it, and nothing else.
    return (action.call_id, action.name, action.arguments) if action is not None else None


def _verdict(trace: Trace) -> dict[str, Any]:
    ran = plural(len(trace.hasty), "call")
    return {
        "state": trace.gate[-1].state,
        "text": verdict_line(trace),
        "hasty_text": f"hasty adapter ran {ran}",
        "last": trace.last,
        "gate": [{"at": state.at, "state": state.state} for state in trace.gate],
        "hasty": [{"at": action.event, "name": visible(action.name)} for action in trace.hasty],
    }

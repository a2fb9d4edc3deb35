"""One trial of an adapter: a stream in, what it released out, and the judgement of that.

What an adapter is: a class that is called with the catalog and makes one object per response,
with two methods. `accept(event)` takes one native event, a dict, and `end()` says that the stream
ended cleanly. Each returns None for progress, or a list of the calls to execute, each a tuple of
call ID, name and arguments (a dict, or JSON text); an empty list is the decision that there is
nothing to execute. One that raises refuses the response; what it returned before was executed.
It may have the attributes `text`, `refusal` (strings) and `usage` (a Usage), which are compared
too where it has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Literal, Protocol, TypeAlias

from agentlib.assembly import Assembly, Decision
from agentlib.conformance.dialects.common import Native
from agentlib.conformance.mutations import EncodedScript
from agentlib.conformance.script import Content, canonical
from agentlib.conversation import Catalog, Usage
from agentlib.providers.fields import TranslatorOptions
from agentlib.providers.translator import Translator
from agentlib.reader import ResponseReader
from agentlib.sse import DONE_EVENT

Released: TypeAlias = Iterable[Any] | None
Verdict: TypeAlias = Literal["refused", "right", "unseen", "leaked"]
VERDICTS: tuple[Verdict, ...] = ("refused", "right", "unseen", "leaked")


class Adapter(Protocol):
    """Reads one response; see the module's own text."""

    def accept(self, event: Any, /) -> Released:
        """Take one native event; return the calls to execute, or None."""
        ...

    def end(self) -> Released:
        """Take the clean end of the stream; return the calls to execute, or None."""
        ...


Maker: TypeAlias = Callable[[Catalog], Adapter]


class ReaderAdapter:
    """The project's own reader of a provider as an adapter; `done` is whether `[DONE]` came."""

    def __init__(
        self, provider: str, catalog: Catalog, compat: Iterable[str] = (), *, done: bool = False
    ) -> None:
        self._reader = ResponseReader(provider, catalog, native=True, compat=compat)
        self._done = done
        self.decision: Decision | None = None

    def accept(self, event: Native) -> Released:
        """Take one native event."""
        return self._calls(self._reader.accept(event))

    def end(self) -> Released:
        """Take the clean end."""
        if self._done:
            self._reader.accept(DONE_EVENT)
        return self._calls(self._reader.end())

    def _calls(self, decision: Decision | None) -> Released:
        if decision is None:
            return None
        self.decision = decision
        return decision.calls

    @property
    def text(self) -> str | None:
        """The answer that was released."""
        return self.decision.text if self.decision is not None else None

    @property
    def refusal(self) -> str | None:
        """The refusal that was released."""
        return self.decision.refusal if self.decision is not None else None

    @property
    def usage(self) -> Usage | None:
        """The usage that came with it."""
        return self.decision.usage if self.decision is not None else None


class TranslatorAdapter:
    """A translator in front of the shared assembly and gate, as an adapter."""

    def __init__(self, make: Callable[[TranslatorOptions], Translator], catalog: Catalog) -> None:
        self._assembly = Assembly(catalog)
        self._translator = make(TranslatorOptions(catalog.exposes, native=True))

    def accept(self, event: Native) -> Released:
        """Take one native event; what follows the decision is not read."""
        if self._assembly.state == "released":
            return None
        return self._take(self._translator.translate(event))

    def end(self) -> Released:
        """Take the clean end."""
        released = None
        if self._assembly.state in ("new", "open"):
            released = self._take(self._translator.finish())
        self._assembly.end()
        return released

    def _take(self, events: Iterable[Any]) -> Released:
        decision = None
        for event in events:
            decision = self._assembly.accept(event) or decision
        return decision.calls if decision is not None else None

    @property
    def text(self) -> str | None:
        """The answer that was released."""
        decision = self._assembly.decision
        return decision.text if decision is not None else None

    @property
    def usage(self) -> Usage | None:
        """The usage that came with it."""
        decision = self._assembly.decision
        return decision.usage if decision is not None else None


def own(provider: str, compat: Iterable[str] = (), *, done: bool = False) -> Maker:
    """Return what makes the project's own adapter for a provider, with these tolerances."""
    flags = tuple(compat)
    return lambda catalog: ReaderAdapter(provider, catalog, flags, done=done)


def maker(thing: Any) -> Maker:
    """Return what makes adapters of a class: an adapter, or a translator for the shared assembly.

    Raises TypeError where it is neither, or async.
    """
    waits = [method for method in _METHODS if iscoroutinefunction(getattr(thing, method, None))]
    if waits:
        raise TypeError(f"its {waits[0]} is async, and nothing here waits: write a plain def")
    if callable(getattr(thing, "accept", None)) and callable(getattr(thing, "end", None)):
        made: Maker = thing
        return made
    if callable(getattr(thing, "translate", None)) and callable(getattr(thing, "finish", None)):
        return lambda catalog: TranslatorAdapter(thing, catalog)
    name = getattr(thing, "__name__", repr(thing))
    raise TypeError(f"{name} has neither accept and end, nor translate and finish")


_METHODS = ("accept", "end", "translate", "finish")


@dataclass(slots=True)
class Outcome:
    """What came of a stream.

    `calls` are those released, in order, with canonical arguments; None where nothing was. `text`
    and `refusal` are None where the adapter has no such attribute. `refused` says what it raised,
    `at` is the number of the event (from 1) of the first release, one more than the last at the
    end.
    """

    calls: list[tuple[str, str, str]] | None = None
    text: str | None = None
    refusal: str | None = None
    usage: object = None
    refused: str = ""
    at: int = 0

    def matches(self, content: Content) -> bool:
        """Say whether what was released is exactly this, as far as the adapter shows."""
        return (
            self.calls is not None
            and tuple(self.calls) == content.calls
            and self.text in (None, content.text)
            and self.refusal in (None, content.refusal)
        )


def run(make: Maker, catalog: Catalog, events: Sequence[Native]) -> Outcome:
    """Give the events and the end of the stream to a new adapter, and return what came of it."""
    outcome = Outcome()
    try:
        adapter = make(catalog)
        for number, event in enumerate(events, 1):
            released = adapter.accept(_fresh(event))
            if released is not None:
                _keep(outcome, released, number)
        released = adapter.end()
        if released is not None:
            _keep(outcome, released, len(events) + 1)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever an adapter raises refuses
        outcome.refused = f"{type(error).__name__}: {error}"
    if outcome.calls is not None:
        outcome.text = _text_of(adapter, "text")
        outcome.refusal = _text_of(adapter, "refusal")
        outcome.usage = getattr(adapter, "usage", None)
    return outcome


def _fresh(value: Any) -> Any:
    # An adapter may keep what it gets, or change it: it gets a copy of its own.
    if type(value) is dict:
        return {key: _fresh(v) if type(v) in _NODES else v for key, v in value.items()}
    return [_fresh(v) if type(v) in _NODES else v for v in value] if type(value) is list else value


_NODES = (dict, list)


def _keep(outcome: Outcome, released: Iterable[Any], number: int) -> None:
    if isinstance(released, Iterator):
        # A method that yields its calls decides nothing where it yields none.
        released = list(released)
        if not released:
            return
    if outcome.calls is None:
        outcome.calls, outcome.at = [], number
    outcome.calls += map(_call, released)


def _call(released: Any) -> tuple[str, str, str]:
    if isinstance(released, tuple | list):
        call_id, name, arguments = released
    else:
        call_id, name, arguments = released.call_id, released.name, released.arguments
    return call_id, name, _canonical(arguments)


def _canonical(arguments: Any) -> str:
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
        return canonical(value) if isinstance(value, Mapping) else repr(arguments)
    except (TypeError, ValueError, RecursionError):
        return repr(arguments)


def _text_of(adapter: object, name: str) -> str | None:
    value = getattr(adapter, name, None)
    return value if isinstance(value, str) else None


def judge(
    encoded: EncodedScript, events: Sequence[Native], outcome: Outcome
) -> tuple[Verdict, Content | None]:
    """Judge what came of a mutated encoding; also return what an unseen mutation made of it.

    Right is a release of exactly the script, which completed. Unseen is a release of what the
    stream, a valid encoding word for word, says. Any other release is a leak.
    """
    if outcome.calls is None:
        return "refused", None
    script = encoded.script
    if not script.valid:
        return "leaked", None
    completed = script.stop == "complete" and encoded.dialect.completes(events)
    if completed and encoded.dialect.is_its_own(events) and outcome.matches(script.content):
        return "right", None
    reading = encoded.dialect.read(events)
    if reading is not None and outcome.matches(reading):
        return "unseen", reading
    return "leaked", reading

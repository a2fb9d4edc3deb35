"""Read one response: native events in, by number, through a translator and the assembly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Never

from agentlib.assembly import Assembly, Decision, Limits
from agentlib.conversation import Catalog
from agentlib.failures import ProtocolViolation, ResponseFailure
from agentlib.jsonvalues import quote
from agentlib.providers.boundaries import Extent
from agentlib.providers.fields import Native, TranslatorOptions, violation
from agentlib.providers.registry import make_translator
from agentlib.providers.translator import reported_usage
from agentlib.sse import DONE_EVENT
from agentlib.vocabulary import Event, ToolStart


class Step(NamedTuple):
    """What one native event brought.

    `decision` is what it released, if anything. `meaningful` is whether it shows that the response
    goes on, which a keep-alive does not; `trailing` whether the response is decided by now, and
    only its usage can still come.
    """

    decision: Decision | None
    meaningful: bool
    trailing: bool


class ResponseReader:
    """Reads one response of a provider, one native event at a time.

    `native` is whether items that only the provider understands may be kept, and sent back.
    `report`, where given, observes each neutral event after the assembly accepted it. `compat`
    names what is tolerated of a server, and `notes` say what was. Raises UnknownProvider where
    no adapter has the name `provider`, UnknownFlag where `compat` names no flag, and TypeError
    where `catalog` is none: `Catalog.from_json` makes one of the tools of a request.
    """

    def __init__(
        self,
        provider: str,
        catalog: Catalog | None = None,
        limits: Limits | None = None,
        report: Callable[[Event], None] | None = None,
        *,
        native: bool = False,
        compat: Iterable[str] = (),
    ) -> None:
        _check_catalog(catalog)
        self.assembly = Assembly(catalog, limits)
        self.events = 0
        self.unread = 0
        self._call_started = False
        self.compat = frozenset(compat)
        self.notes: list[str] = []
        exposes = catalog.exposes if catalog is not None else None
        takes = catalog.takes if catalog is not None else None
        options = TranslatorOptions(exposes, native, self.compat, takes)
        self._translator = make_translator(provider, options, self.notes.append)
        self._report = report
        self._extent = Extent(provider)
        self._over = False

    def accept(self, native: Native) -> Decision | None:
        """Take one native event, a decoded JSON object; return the decision if it releases one.

        Raises a ResponseFailure that carries the event's number, from 1. Events after the end of
        the response, released or not, are counted as `unread` and change nothing. DONE_EVENT,
        which stands for `[DONE]`, has no number.
        """
        counts = native is not DONE_EVENT
        if self.assembly.state in ("released", "discarded"):
            self.unread += counts
            return None
        if self._extent.next_begins(native) or self._over:
            return self._beyond(native)
        self.events += counts
        try:
            if type(native) is not dict and not isinstance(native, Mapping):
                raise violation(f"expected a JSON object as event, saw {quote(native)}")
            return self._take(self._translator.translate(native))
        except ResponseFailure as failure:
            self.discard(failure)
        except RecursionError:
            self.discard(violation("the event nests too deep to be read"))

    def _beyond(self, native: Native) -> Decision | None:
        # Another response began: this one is judged as if the stream had ended before that.
        first, self._over = not self._over, True
        if not first and self._extent.claims(native):
            why = "the response goes on behind the beginning of another one"
            failure = violation(why, check="response_id")
            failure.event = self.events + self.unread + 1
            self.discard(failure)
        self.unread += native is not DONE_EVENT
        return self.end() if first and not (self._extent.ended or self._extent.done) else None

    def step(self, native: Native) -> Step:
        """Take one native event as `accept` does; return all that a driver has to know of it."""
        self._call_started = False
        decision = self.accept(native)
        translator = self._translator
        meaningful = self._call_started or translator.is_meaningful(native)
        return Step(decision, meaningful, translator.trailing)

    def end(self) -> Decision | None:
        """Take the clean end of the stream; return the decision where this end releases it.

        Raises StreamCut where the terminal event had not come.
        """
        try:
            decision = None
            if self.assembly.state in ("new", "open"):
                decision = self._take(self._translator.finish())
            self.assembly.end()
        except ResponseFailure as failure:
            self.discard(failure)
        return decision

    def _take(self, events: tuple[Event, ...]) -> Decision | None:
        decision = None
        for event in events:
            decision = self.assembly.accept(event)
            self._call_started = self._call_started or type(event) is ToolStart
            if self._report is not None:
                self._report(event)
        return decision

    def fault(self, reason: str) -> None:
        """Say that the next event could not be read at all; raises ProtocolViolation."""
        over = self._over or self._extent.done
        if over or self.assembly.state in ("released", "discarded"):
            self.unread += 1
            return
        self.events += 1
        self.discard(ProtocolViolation(reason, check="lifecycle"))

    def discard(self, failure: ResponseFailure) -> Never:
        """End the response by `failure`, found here or outside, and raise it with its event."""
        assembly = self.assembly
        if failure.event is None:
            failure.event = self.events
        if failure.usage is None:
            failure.usage = reported_usage(self._translator)
        if not failure.draft:
            failure.draft = assembly.draft()
        if assembly.failure is None:
            assembly.discard(failure)
        raise failure


def _check_catalog(catalog: object) -> None:
    if catalog is not None and not isinstance(catalog, Catalog):
        seen = type(catalog).__name__
        raise TypeError(f"expected a Catalog, saw {seen}: use Catalog.from_json(tools)")

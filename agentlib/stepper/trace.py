"""A trace: what a reader of one response knew after each of its events.

It is event-sourced. A buffer only grows, so its state after event k is a prefix of its final
text: one string, and two columns that say at which events it grew and how long it then was. The
gate changes at most three times. N events cost O(N) memory, and any step back or forward costs a
binary search; nothing is kept for each event but a few numbers.

Indexes: 0 is the state before anything was read, k the state after event k. Where the stream
ended before its terminal event, or could not be read further, that end is one more step.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias

from agentlib.assembly import Decision, Limits
from agentlib.conversation import Catalog
from agentlib.failures import ResponseFailure
from agentlib.gate import Finding
from agentlib.jsonvalues import SURROGATE, SURROGATE_PAIR, has_surrogate, join_surrogates, visible
from agentlib.providers.fields import Native
from agentlib.providers.registry import find_provider
from agentlib.reader import ResponseReader
from agentlib.recordings.events import CapturedResponse, with_last_event
from agentlib.sse import DONE_EVENT
from agentlib.stepper.hasty import ActsAtItemDone, HastyAction
from agentlib.stepper.labels import label
from agentlib.vocabulary import (
    Completed,
    Corrected,
    Event,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    TextDelta,
    TextDone,
    ToolArgsDelta,
    ToolArgsDone,
    ToolStart,
)
from agentlib.wording import plural

# What an event is to the reader of a trace; the stepper draws each with a colour and a shape.
LIFECYCLE, TEXT, ARGUMENTS, DONE, COMPLETED, STOPPED, OTHER, NOT_READ = range(8)

ROLES: dict[type, int] = {
    Opened: LIFECYCLE,
    TextDelta: TEXT,
    RefusalDelta: TEXT,
    ReasoningDelta: TEXT,
    ToolStart: LIFECYCLE,
    ToolArgsDelta: ARGUMENTS,
    TextDone: DONE,
    ToolArgsDone: DONE,
    Corrected: DONE,
    Completed: COMPLETED,
    Stopped: STOPPED,
}

# What a buffer is found by: a call ID or a text's part; reasoning is kept apart from both.
Key: TypeAlias = str | tuple[str, str]


class GateState(NamedTuple):
    """What the gate shows from event `at` on: closed, released or discarded, and why."""

    at: int
    state: str
    headline: str
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class TracedBuffer:
    """A call's arguments, or a text: its final text, and how long it was after which event."""

    kind: str
    limit: int
    start: int
    part: str = ""
    call_id: str | None = None
    item_id: str | None = None
    name: str | None = None
    text: str = ""
    done: int = 0
    at: array[int] = field(default_factory=lambda: array("I"))
    length: array[int] = field(default_factory=lambda: array("I"))

    def length_at(self, index: int) -> int:
        """Return its length, in characters, after event `index`."""
        place = bisect_right(self.at, index)
        return self.length[place - 1] if place else 0

    def grown_at(self, index: int) -> int:
        """Return how many characters event `index` added."""
        return self.length_at(index) - self.length_at(index - 1)


@dataclass(slots=True)
class Trace:
    """One response, read to its end. Columns hold one number for each event, from event 1 on.

    `decision` is what the gate released, `failure` why it released nothing; one of them is None.
    """

    title: str
    provider: str
    subtitle: str
    raws: tuple[str, ...]
    labels: list[str]
    roles: array[int]
    touched: array[int]
    sizes: array[int]
    buffers: list[TracedBuffer]
    gate: list[GateState]
    hasty: list[HastyAction]
    end: tuple[str, str] | None
    decision: Decision | None
    failure: ResponseFailure | None
    notes: list[str]

    @property
    def count(self) -> int:
        """How many events were recorded."""
        return len(self.raws)

    @property
    def last(self) -> int:
        """The last index: after the last event, or after the end of a stream that was cut."""
        return self.count + (self.end is not None)

    def gate_at(self, index: int) -> GateState:
        """Return what the gate shows after event `index`."""
        return next(state for state in reversed(self.gate) if state.at <= index)

    def hasty_at(self, index: int) -> tuple[HastyAction, ...]:
        """Return what a hasty adapter would have executed by then."""
        return tuple(action for action in self.hasty if action.event <= index)

    def starts_run(self, index: int) -> bool:
        """Say whether event `index` is a change: anything but one more delta of the same buffer."""
        if not 1 < index <= self.count:
            return True
        role, before = self.roles[index - 1], self.roles[index - 2]
        same = self.touched[index - 1] == self.touched[index - 2]
        return not (role in (TEXT, ARGUMENTS) and role == before and same)


def build_trace(
    response: CapturedResponse,
    provider: str,
    catalog: Catalog | None = None,
    limits: Limits | None = None,
    *,
    title: str = "capture",
    subtitle: str = "",
    native: bool = True,
    compat: Iterable[str] = (),
) -> Trace:
    """Read `response` through the reader of `provider` and return its trace.

    `native` lets items pass that only the provider understands, and that go back to it verbatim.
    `compat` names what is tolerated of the server. Raises UnknownFlag where it names no flag,
    and nothing else.
    """
    compat = frozenset(compat)
    reader = partial(ResponseReader, provider, catalog, limits, native=native, compat=compat)
    response = with_last_event(response, compat)
    builder = _Builder(response, provider, limits or Limits(), reader)
    return builder.build(title, subtitle)


class _Builder:
    def __init__(
        self,
        response: CapturedResponse,
        provider: str,
        limits: Limits,
        reader: Callable[..., ResponseReader],
    ) -> None:
        self.response = response
        self.provider = provider
        self.limits = limits
        self.reader = reader(report=self._observe)
        self.hasty = ActsAtItemDone()
        self.buffers: list[TracedBuffer] = []
        self.index_of: dict[Key, int] = {}
        self.reasoning: dict[Key, list[str]] = {}
        self.gate: list[GateState] = []
        self.roles, self.touched, self.sizes = array("B"), array("i"), array("I")
        self.labels: list[str] = []
        self.number = 0
        self.failure: ResponseFailure | None = None

    def build(self, title: str, subtitle: str) -> Trace:
        self._note_gate(0, "closed", "waiting for the response to open")
        for event in self.response.events:
            self._read(event.number, event.data)
        end = self._close()
        self._fill_texts()
        return Trace(
            title=title,
            provider=self.provider,
            subtitle=subtitle,
            raws=tuple(event.raw for event in self.response.events),
            labels=self.labels,
            roles=self.roles,
            touched=self.touched,
            sizes=self.sizes,
            buffers=self.buffers,
            gate=self.gate,
            hasty=self.hasty.actions,
            end=end,
            decision=self.reader.assembly.decision,
            failure=self.failure,
            notes=self._notes(),
        )

    def _read(self, number: int, native: Native) -> None:
        ended = self.reader.assembly.state in ("released", "discarded")
        self.number = number
        self.labels.append(label(native))
        self.roles.append(NOT_READ if ended else OTHER)
        self.touched.append(-1)
        self.sizes.append(0)
        self.hasty.accept(native)
        try:
            decision = self.reader.accept(native)
        except ResponseFailure as failure:
            self._fail(failure, number)
            self.roles[-1] = STOPPED
            return
        if decision is not None:
            self._release(decision, number)

    def _close(self) -> tuple[str, str] | None:
        last = len(self.response.events)
        fault = self.response.fault
        try:
            if fault is not None:
                self.reader.fault(fault)
            if self.response.done_marker:
                self.reader.accept(DONE_EVENT)
            decision = self.reader.end()
        except ResponseFailure as failure:
            if self.failure is None:
                self._fail(failure, last + 1)
                where = f"after event {last}, before its terminal event" if last else "at once"
                if fault is None:
                    return "stream ended", f"the stream ended {where}"
                return "not readable", f"event {last + 1} could not be read: {fault}"
            return None
        if decision is None:
            return None
        self._release(decision, last + 1)
        return "stream ended", "the stream ended cleanly, after its finish reason"

    def _release(self, decision: Decision, at: int) -> None:
        self._note_gate(at, "released", f"{plural(len(decision.calls), 'call')} released")

    def _fail(self, failure: ResponseFailure, at: int) -> None:
        self.failure = failure
        self._note_gate(at, "discarded", failure.reason)

    def _note_gate(self, at: int, state: str, headline: str) -> None:
        findings = self.reader.assembly.findings()
        self.gate.append(GateState(at, state, visible(headline), findings))

    def _observe(self, event: Event) -> None:
        kind = type(event)
        self.roles[-1] = ROLES[kind]
        if kind is Opened:
            terminal = find_provider(self.provider).terminal
            self._note_gate(self.number, "closed", f"waiting for {terminal}")
        elif isinstance(event, ToolStart):
            self._add(event.call_id, self._call_buffer(event))
            self._grow(event.call_id)
        elif isinstance(event, ToolArgsDelta | ToolArgsDone):
            self._grow(event.call_id)
        elif isinstance(event, ReasoningDelta):
            self._grow_reasoning(event)
        elif isinstance(event, TextDelta | RefusalDelta | TextDone):
            self._grow_text(event)
        elif isinstance(event, Corrected):
            self._replace(event)
        if isinstance(event, TextDone | ToolArgsDone):
            self._finish(_key_of(event))

    def _call_buffer(self, event: ToolStart) -> TracedBuffer:
        return TracedBuffer(
            "arguments",
            self.limits.argument_characters,
            self.number,
            call_id=event.call_id,
            item_id=event.item_id,
            name=event.name,
        )

    def _grow_text(self, event: TextDelta | RefusalDelta | TextDone) -> None:
        refusal = event.refusal if isinstance(event, TextDone) else type(event) is RefusalDelta
        kind = "refusal" if refusal else "text"
        key = _text_key(event.part)
        if key not in self.index_of and event.text:
            limit = self.limits.text_characters
            self._add(key, TracedBuffer(kind, limit, self.number, event.part))
        if key in self.index_of:
            self._touch(key, self.reader.assembly.size(event.part, of_text=True))

    def _grow_reasoning(self, event: ReasoningDelta) -> None:
        key = ("reasoning", event.part)
        if key not in self.index_of:
            self.reasoning[key] = []
            limit = self.limits.text_characters
            self._add(key, TracedBuffer("reasoning", limit, self.number, event.part))
        self.reasoning[key].append(event.text)
        buffer = self.buffers[self.index_of[key]]
        before = buffer.length[-1] if buffer.length else 0
        self._touch(key, before + len(event.text))

    def _replace(self, event: Corrected) -> None:
        # What was streamed stays as it was shown; what is meant instead is a buffer of its own.
        key = _key_of(event)
        old = self.buffers[self.index_of[key]]
        old.text, old.length = shown(event.streamed, old.length)
        self._finish(key)
        at, length = array("I"), array("I")
        self._add(key, replace(old, start=self.number, done=0, at=at, length=length))
        self._touch(key, len(event.text))

    def _add(self, key: Key, buffer: TracedBuffer) -> None:
        self.index_of[key] = len(self.buffers)
        self.buffers.append(buffer)

    def _grow(self, call_id: str) -> None:
        if call_id in self.index_of:
            self._touch(call_id, self.reader.assembly.size(call_id))

    def _touch(self, key: Key, size: int) -> None:
        place = self.index_of[key]
        buffer = self.buffers[place]
        self.touched[-1] = place
        before = buffer.length[-1] if buffer.length else 0
        if size > before:
            buffer.at.append(self.number)
            buffer.length.append(size)
            self.sizes[-1] += size - before

    def _finish(self, key: Key) -> None:
        place = self.index_of.get(key)
        if place is not None and not self.buffers[place].done:
            self.buffers[place].done = self.number

    def _fill_texts(self) -> None:
        evidence = self.reader.assembly.evidence()
        texts: dict[Key, str] = {buffer.call_id: buffer.text for buffer in evidence.buffers}
        texts |= {_text_key(text.part): text.text for text in evidence.texts}
        texts |= {key: "".join(parts) for key, parts in self.reasoning.items()}
        for key, place in self.index_of.items():
            buffer = self.buffers[place]
            buffer.text, buffer.length = shown(texts[key], buffer.length)

    def _notes(self) -> list[str]:
        unread = self.reader.unread
        late = [f"{plural(unread, 'event')} after the end of the response, not read"]
        return [*self.response.notes, *self.reader.notes, *(late if unread else [])]


def _text_key(part: str) -> Key:
    # A call may have the ID that a part is named by.
    return ("text", part)


def _key_of(event: TextDone | ToolArgsDone | Corrected) -> Key:
    if isinstance(event, Corrected):
        return _text_key(event.key) if event.of_text else event.key
    return _text_key(event.part) if isinstance(event, TextDone) else event.call_id


def shown(text: str, lengths: Iterable[int]) -> tuple[str, array[int]]:
    """Return `text` fit to be shown, and the lengths that go with it.

    An escape pair that two fragments cut apart is joined, and counts where its second half came;
    a lone surrogate is shown as U+FFFD, a first half once it is known what follows it.
    """
    if not has_surrogate(text):
        return text, array("I", lengths)
    ends = [pair.end() for pair in SURROGATE_PAIR.finditer(text)]
    columns, joined = array("I"), 0
    for length in lengths:
        while joined < len(ends) and ends[joined] <= length:
            joined += 1
        columns.append(length - joined - ("\ud800" <= text[length - 1] <= "\udbff"))
    return SURROGATE.sub("\ufffd", join_surrogates(text)), columns

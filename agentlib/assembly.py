"""Assembly: the events of one response in, one decision out, or one failure.

It keeps a lifecycle, the pending buffers and the limits, and at the terminal event asks the gate.
It does no input or output, has no clock, and never parses a fragment: a buffer is a string that
grows, and stays one until the response is whole.

The lifecycle is a table. A state that lacks an event's kind refuses it:

    state     event                                          next
    new       Opened                                         open
    new       Stopped                                        discarded
    open      text, refusal, reasoning and tool events       open
    open      Completed, every check of the gate passed      released
    open      Completed, a check failed                      discarded
    open      Stopped                                        discarded
    released  anything                                       released (not read)
    discarded anything                                       discarded (the failure again)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Never, TypeAlias

from agentlib.conversation import Catalog, Message, NativeTurn, ToolCall, Usage
from agentlib.evidence import Buffer, Evidence, StreamedText, Violation
from agentlib.failures import (
    GateRejected,
    LimitExceeded,
    ProtocolViolation,
    ProviderStopped,
    ResponseFailure,
    StreamCut,
)
from agentlib.gate import (
    ARGUMENT_CHECKS,
    Finding,
    examine,
    first_failure,
    not_releasable,
    rejected_calls,
    released_calls,
)
from agentlib.jsonvalues import has_surrogate, join_surrogates, quote, same_text
from agentlib.vocabulary import (
    Completed,
    Corrected,
    Event,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    TerminalText,
    TextDelta,
    TextDone,
    ToolArgsDelta,
    ToolArgsDone,
    ToolStart,
)

State: TypeAlias = Literal["new", "open", "released", "discarded"]

# An answer of this length fills some thirty screens; what is longer is a runaway.
MAX_TEXT_CHARACTERS = 64_000
# A whole source file as one argument fits; endless white space does not.
MAX_ARGUMENT_CHARACTERS = 16_000
# More calls than a person would approve in one glance.
MAX_CALLS = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """What one response may hold: characters of text, characters of one call's arguments, calls."""

    text_characters: int = MAX_TEXT_CHARACTERS
    argument_characters: int = MAX_ARGUMENT_CHARACTERS
    calls: int = MAX_CALLS


@dataclass(frozen=True, slots=True)
class Decision:
    """What a gate released: the answer's text, or a refusal, and the calls to run, in order.

    `stop_reason` is why the model stopped, in its provider's word, empty where it has none.
    """

    response_id: str
    text: str
    refusal: str
    calls: tuple[ToolCall, ...]
    usage: Usage | None
    native: NativeTurn | None = None
    stop_reason: str = field(default="", repr=False)

    def message(self) -> Message:
        """Return the assistant's message that stands for this decision in the history."""
        return Message("assistant", self.text, self.calls, self.refusal, self.native)


class _Pending:
    """A string that grows: fragments are kept, and joined once."""

    __slots__ = ("done", "kind", "parts", "size", "start")

    def __init__(self, kind: type, start: ToolStart | None = None) -> None:
        self.kind = kind
        self.start = start
        self.parts: list[str] = []
        self.size = 0
        self.done = False

    def text(self) -> str:
        joined = "".join(self.parts)
        self.parts = [joined]
        return joined


class Assembly:
    """Assembles one response. Feed it every event with `accept`, then, where it stopped, `end`.

    `catalog` is what was exposed to the model; without one, the two checks that need it show as
    not checked.
    """

    def __init__(self, catalog: Catalog | None = None, limits: Limits | None = None) -> None:
        self.catalog = catalog
        self.limits = limits if limits is not None else Limits()
        self.state: State = "new"
        self.decision: Decision | None = None
        self.failure: ResponseFailure | None = None
        self._response_id: str | None = None
        self._calls: dict[str, _Pending] = {}
        self._texts: dict[str, _Pending] = {}
        self._text_size = 0
        self._end: Completed | Stopped | None = None
        self._violation: Violation | None = None
        self._rows: dict[State, dict[type, Callable[[Any], Decision | None]]] = {
            "new": {Opened: self._open, Stopped: self._stop},
            "open": {
                ToolArgsDelta: self._grow_call,
                TextDelta: self._grow_text,
                RefusalDelta: self._grow_text,
                ReasoningDelta: self._ignore,
                TextDone: self._finish_text,
                ToolStart: self._start_call,
                ToolArgsDone: self._finish_call,
                Corrected: self._correct,
                Completed: self._complete,
                Stopped: self._stop,
            },
        }
        self._row = self._rows["new"]

    def accept(self, event: Event) -> Decision | None:
        """Take one event; return the decision where this event releases it, else None.

        Raises a ResponseFailure where the event ends the response in any other way, and the same
        one again for every event after that. What follows a release is not read: None.
        """
        handler = self._row.get(type(event))
        if handler is None:
            handler = self._out_of_place
        return handler(event)

    def end(self) -> None:
        """Say that the stream ended. Raises StreamCut unless its terminal event had come."""
        if self.state in ("new", "open"):
            check = "opened" if self.state == "new" else "completed"
            self.discard(StreamCut("the stream ended before its terminal event", check=check))
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    def discard(self, failure: ResponseFailure) -> Never:
        """End the response by `failure`, found here or by a translator or transport; raise it."""
        if self._end is None:
            self._violation = Violation(failure.check, failure.reason)
        self.failure = failure
        self.decision = None
        self._move("discarded")
        raise failure

    def evidence(self) -> Evidence:
        """Return what is known so far, as the gate sees it."""
        return Evidence(
            response_id=self._response_id,
            buffers=tuple(_buffer(p.start, p) for p in self._calls.values() if p.start),
            texts=tuple(
                StreamedText(part, pending.text(), pending.kind is RefusalDelta)
                for part, pending in self._texts.items()
            ),
            end=self._end,
            violation=self._violation,
            catalog=self.catalog,
        )

    def draft(self) -> str:
        """Return the answer's text as far as it has come: nothing has confirmed it."""
        texts = (each.text() for each in self._texts.values() if each.kind is TextDelta)
        return join_surrogates("".join(texts))

    def size(self, key: str, *, of_text: bool = False) -> int:
        """Return how many characters the buffer of this call ID, or this part, holds so far.

        `of_text` is whether the key is that of a part, where a call may have the same one.
        """
        pending = self._find(key, of_text=of_text)
        return pending.size if pending is not None else 0

    def findings(self) -> tuple[Finding, ...]:
        """Return what each check of the gate says at this moment."""
        return examine(self.evidence())

    def _find(self, key: str, *, of_text: bool) -> _Pending | None:
        call = None if of_text else self._calls.get(key)
        return call or self._texts.get(key)

    def _out_of_place(self, event: Event) -> None:
        if self.state == "released":
            return
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        name = type(event).__name__
        if self.state == "new":
            self._violate(f"expected the response to open first, saw {name}", check="opened")
        self._violate(f"the response opened already, saw {name} again", check="opened")

    def _open(self, event: Opened) -> None:
        if not event.response_id or has_surrogate(event.response_id):
            seen = quote(event.response_id)
            self._violate(f"expected the response to open with an ID, saw {seen}", check="opened")
        self._response_id = event.response_id
        self._move("open")

    def _ignore(self, event: ReasoningDelta) -> None:
        pass

    def _grow_call(self, event: ToolArgsDelta) -> None:
        pending = self._calls.get(event.call_id)
        if pending is None:
            self._violate(f"arguments for call {quote(event.call_id)}, which never started")
        if pending.done:
            self._violate(f"arguments for call {quote(event.call_id)} after its done")
        size = pending.size + len(event.text)
        if size > self.limits.argument_characters:
            self._exceed(f"arguments of call {quote(event.call_id)}", size)
        pending.size = size
        pending.parts.append(event.text)

    def _grow_text(self, event: TextDelta | RefusalDelta) -> None:
        pending = self._texts.get(event.part)
        if pending is None:
            pending = self._texts[event.part] = _Pending(type(event))
        if pending.done:
            self._violate(f"text {quote(event.part)} goes on after its done")
        if pending.kind is not type(event):
            self._violate(f"text {quote(event.part)} is both an answer and a refusal")
        size = self._text_size + len(event.text)
        if size > self.limits.text_characters:
            self._exceed("text", size)
        self._text_size = size
        pending.size += len(event.text)
        pending.parts.append(event.text)

    def _start_call(self, event: ToolStart) -> None:
        if not event.call_id or not event.name:
            missing = "name" if event.call_id else "call ID"
            self._violate(f"a call started without a {missing}", check="call_ids")
        if event.call_id in self._calls:
            self._violate(f"call ID {quote(event.call_id)} started twice", check="call_ids")
        if len(self._calls) >= self.limits.calls:
            self._limit(f"expected at most {self.limits.calls} calls, saw another")
        self._calls[event.call_id] = _Pending(ToolArgsDelta, event)
        if event.arguments:
            self._grow_call(ToolArgsDelta(event.call_id, event.arguments))

    def _finish_call(self, event: ToolArgsDone) -> None:
        pending = self._calls.get(event.call_id)
        if pending is None:
            self._violate(f"done for call {quote(event.call_id)}, which never started")
        if pending.size == 0 and not pending.done:
            self._grow_call(ToolArgsDelta(event.call_id, event.arguments))
        self._restate(pending, event.arguments, f"call {quote(event.call_id)}")

    def _finish_text(self, event: TextDone) -> None:
        kind = RefusalDelta if event.refusal else TextDelta
        if event.part not in self._texts:
            self._grow_text(kind(event.part, event.text))
        pending = self._texts[event.part]
        if pending.kind is not kind:
            self._violate(f"text {quote(event.part)} is both an answer and a refusal")
        self._restate(pending, event.text, f"text {quote(event.part)}")

    def _restate(self, pending: _Pending, restated: str, what: str) -> None:
        text = pending.text()
        if not same_text(restated, text):
            self._violate(f"the done of {what} restates another text than was streamed")
        pending.done = True

    def _correct(self, event: Corrected) -> None:
        pending = self._find(event.key, of_text=event.of_text)
        if pending is None:
            self._violate(f"a correction of {quote(event.key)}, which never started")
        more = len(event.text) - pending.size
        if pending.start is not None:
            if len(event.text) > self.limits.argument_characters:
                self._exceed(f"arguments of call {quote(event.key)}", len(event.text))
        else:
            self._text_size += more
            if self._text_size > self.limits.text_characters:
                self._exceed("text", self._text_size)
        pending.parts, pending.size = [event.text], len(event.text)

    def _complete(self, event: Completed) -> Decision:
        evidence = self._judge(event)
        self.decision = Decision(
            response_id=self._response_id or "",
            text=_joined(evidence, refusal=False),
            refusal=_joined(evidence, refusal=True),
            calls=released_calls(evidence),
            usage=event.usage,
            native=event.native,
            stop_reason=event.stop_reason,
        )
        self._move("released")
        return self.decision

    def _stop(self, event: Stopped) -> None:
        self._judge(event)

    def _judge(self, event: Completed | Stopped) -> Evidence:
        self._end = event
        evidence = self.evidence()
        failed = first_failure(examine(evidence))
        if failed is None and isinstance(event, Completed) and (why := not_releasable(evidence)):
            failed = Finding("object", "fail", why)
        if failed is not None:
            kind = ProviderStopped if failed.check == "completed" else GateRejected
            failure = kind(failed.detail, check=failed.check, usage=event.usage)
            failure.cut_by_length = isinstance(event, Stopped) and event.cut_by_length
            if failure.cut_by_length or failed.check in ARGUMENT_CHECKS:
                failure.calls = rejected_calls(evidence)
            self.discard(failure)
        return evidence

    def _violate(self, reason: str, check: str = "lifecycle") -> Never:
        self.discard(ProtocolViolation(reason, check=check))

    def _exceed(self, what: str, size: int) -> Never:
        limit = self.limits.text_characters if what == "text" else self.limits.argument_characters
        self._limit(f"{what}: expected at most {limit:,} characters, saw {size:,}")

    def _limit(self, reason: str) -> Never:
        self.discard(LimitExceeded(reason, check="limits"))

    def _move(self, state: State) -> None:
        self.state = state
        self._row = self._rows.get(state, {})


def _buffer(start: ToolStart, pending: _Pending) -> Buffer:
    text = pending.text()
    return Buffer(start.call_id, start.name, start.item_id, text, pending.done, start.caller)


def _joined(evidence: Evidence, *, refusal: bool) -> str:
    end = evidence.end
    items = end.items if isinstance(end, Completed) else None
    if items is None:
        found = [text.text for text in evidence.texts if text.refusal is refusal]
    else:
        found = [i.text for i in items if isinstance(i, TerminalText) and i.refusal is refusal]
    return join_surrogates("".join(found))

"""The Anthropic Messages API: the translator of its stream. It is read offline only.

Source of the rules: Anthropic's API reference, "Streaming messages", and its page on stop
reasons. Content comes in blocks, each by its index; a tool's input comes as fragments of JSON
text. The stream restates nothing: a message is complete at `message_stop`, with a stop reason
that agrees with what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentlib.conversation import Usage
from agentlib.jsonvalues import FrozenObject, dumps, quote
from agentlib.providers.fields import (
    Native,
    TranslatorOptions,
    count,
    has_content,
    record,
    refuse_role,
    refuse_unknown,
    said,
    string,
    violation,
    whole,
)
from agentlib.providers.finish_reasons import COMPLETING, disagreement
from agentlib.vocabulary import (
    Completed,
    Event,
    Opened,
    ReasoningDelta,
    Stopped,
    TerminalOther,
    TextDelta,
    ToolArgsDelta,
    ToolArgsDone,
    ToolStart,
)

TEXT, TOOL, THINKING = "text", "tool_use", ("thinking", "redacted_thinking")
# The counters that are read, by the object in `usage` that holds them.
COUNTERS = {
    None: (
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    ),
    "cache_creation": ("ephemeral_1h_input_tokens",),
    "output_tokens_details": ("thinking_tokens",),
}
# Where an error may stand besides the event itself.
_HOLDERS = ("message", "delta", "content_block")
_INPUT = frozenset({"type", "partial_json"})
# What may stand beside a stop reason, and with which alone.
_BESIDE_REASON = {"stop_sequence": ("stop_sequence",), "stop_details": ("refusal",)}
NOT_REPLAYABLE = "it cannot be sent back in the portable form"


@dataclass(slots=True)
class _Block:
    """A block of content; `call_id` is empty for all but calls of the host's own tools."""

    kind: str
    call_id: str = ""
    whole: str = ""  # the text of an input that stood in its start
    fragments: bool = False
    closed: bool = False


class MessagesTranslator:
    """Translates one message's native events, in order, into the vocabulary.

    Raises ProtocolViolation where an event breaks the rules.
    """

    trailing = False

    def __init__(self, options: TranslatorOptions | None = None) -> None:
        self._native = (options or TranslatorOptions()).native
        self._message_id = ""
        self._blocks: dict[int, _Block] = {}
        self._counters: dict[str, int] = {}
        self._stop_reason: str | None = None
        self._beside: dict[str, tuple[str, ...]] = {}
        self._handlers: dict[str, Callable[[Native], tuple[Event, ...]]] = {
            "content_block_delta": self._delta,
            "content_block_start": self._start,
            "content_block_stop": self._stop,
            "message_start": self._message_start,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "error": self._error,
        }
        self._deltas: dict[str, Callable[[_Block, str, Native], tuple[Event, ...]]] = {
            "text_delta": self._text,
            "input_json_delta": self._input,
            "thinking_delta": self._thinking,
        }

    def is_meaningful(self, native: Native) -> bool:
        """Say whether an event shows that the message goes on; a ping does not."""
        kind = native.get("type")
        if kind in ("content_block_delta", "message_delta"):
            return has_content(native.get("delta"), ("type",))
        return isinstance(kind, str) and kind in self._handlers

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Return the neutral events that `native`, one decoded event, stands for."""
        for holder in (native, *map(native.get, _HOLDERS)):
            if isinstance(holder, dict) and holder.get("error") is not None:
                return self._error(holder)
        kind = string(native, "type")
        handler = self._handlers.get(kind)
        if handler is None:
            self._refuse_unknown_of_call(kind, native.get("index"))
            return ()
        if not self._message_id and kind not in ("message_start", "error"):
            raise violation(f"expected message_start first, saw {kind}", check="opened")
        return handler(native)

    def finish(self) -> tuple[Event, ...]:
        """Take the end of the stream: it completes nothing, `message_stop` does."""
        return ()

    def _message_start(self, native: Native) -> tuple[Event, ...]:
        message = record(native, "message")
        refuse_role(message)
        if message.get("type") not in (None, "message"):
            raise violation(f"expected a message, saw {quote(message['type'])}", check="opened")
        self._count(message.get("usage"))
        self._message_id = string(message, "id")
        events = (Opened(self._message_id), *self._whole_content(message))
        self._note_reason(message)
        return events

    def _whole_content(self, message: Native) -> Iterable[Event]:
        # A hosted program that goes on sends its next calls so, and nothing else.
        content = message.get("content") or []
        of_a_program = isinstance(content, list) and all(map(_is_of_a_program, content))
        if not of_a_program:
            raise violation("expected the content in blocks, saw it whole in message_start")
        for index, block in enumerate(content):
            yield from self._start({"index": index, "content_block": block})
            yield from self._stop({"index": index})

    def _start(self, native: Native) -> tuple[Event, ...]:
        index = _index(native)
        if index != len(self._blocks):
            raise violation(
                f"expected block {len(self._blocks)} to start next, saw block {index}: "
                "one was lost, repeated or out of order"
            )
        self._refuse_after_stop("a further block")
        content = record(native, "content_block")
        block = self._blocks[index] = _Block(string(content, "type"))
        if block.kind == TEXT:
            return (TextDelta(_part(index), string(content, "text", "")),)
        if block.kind != TOOL:
            return ()
        caller = content["caller"] if _is_of_a_program(content) else None
        if caller is not None and not self._native:
            reason = f"a call of {quote(caller.get('type'))}, which the portable form cannot say"
            raise violation(reason, check="replayable")
        block.call_id = string(content, "id")
        # The call of a hosted program is whole when it is made; the model's comes in fragments.
        block.whole = _whole_input(content, caller)
        kept = FrozenObject(caller) if caller is not None else None
        name = string(content, "name")
        return (ToolStart(block.call_id, name, block.call_id, block.whole, kept),)

    def _delta(self, native: Native) -> tuple[Event, ...]:
        index = _index(native)
        block = self._open_block(index)
        self._refuse_after_stop("more content")
        delta = record(native, "delta")
        kind = string(delta, "type")
        handler = self._deltas.get(kind)
        if handler is None and block.kind == TOOL:
            # Unknown is progress, but not in what a call is made of.
            raise violation(f"expected input_json_delta in a tool_use block, saw {quote(kind)}")
        return handler(block, _part(index), delta) if handler is not None else ()

    def _text(self, block: _Block, part: str, delta: Native) -> tuple[Event, ...]:
        _expect(block, TEXT, "text_delta")
        return (TextDelta(part, string(delta, "text")),)

    def _input(self, block: _Block, _: str, delta: Native) -> tuple[Event, ...]:
        if block.kind in (TEXT, *THINKING):
            _expect(block, TOOL, "input_json_delta")
        if block.kind != TOOL:
            return ()
        refuse_unknown(delta, _INPUT, "a fragment of a tool's input")
        fragment = string(delta, "partial_json")
        if fragment and block.whole:
            raise violation("a tool's input came whole at its start, and goes on")
        block.fragments = block.fragments or bool(fragment)
        return (ToolArgsDelta(block.call_id, fragment),) if fragment else ()

    def _thinking(self, block: _Block, part: str, delta: Native) -> tuple[Event, ...]:
        _expect(block, "thinking", "thinking_delta")
        return (ReasoningDelta(part, string(delta, "thinking")),)

    def _stop(self, native: Native) -> tuple[Event, ...]:
        block = self._open_block(_index(native))
        block.closed = True
        if block.kind != TOOL or block.fragments:
            return ()
        # Without any fragment the input is the object that the block started with.
        return (ToolArgsDone(block.call_id, block.whole or "{}"),)

    def _message_delta(self, native: Native) -> tuple[Event, ...]:
        self._count(native.get("usage"))
        self._note_reason(record(native, "delta"))
        return ()

    def _note_reason(self, holder: Native) -> None:
        for name, reasons in _BESIDE_REASON.items():
            if holder.get(name) is not None:
                self._beside[name] = reasons
        reason = holder.get("stop_reason")
        if reason is not None and self._stop_reason not in (None, reason):
            raise violation(f"stop reason {quote(self._stop_reason)} changed to {quote(reason)}")
        if reason is not None:
            self._stop_reason = string(holder, "stop_reason")

    def _message_stop(self, _: Native) -> tuple[Event, ...]:
        unclosed = [index for index, block in self._blocks.items() if not block.closed]
        if unclosed:
            raise violation(f"block {unclosed[0]} is not closed at message_stop")
        reason = self._stop_reason
        if reason is not None and reason not in COMPLETING["messages"]:
            told, cut = "this stop reason completes nothing", reason == "max_tokens"
            return (Stopped(reason, told, self.usage, cut_by_length=cut),)
        others = tuple(
            TerminalOther(block.kind, "" if self._native else NOT_REPLAYABLE)
            for block in self._blocks.values()
            if block.kind not in (TEXT, TOOL)
        )
        problem = self._problem(reason)
        # The message's ID stands in message_start, and nowhere again.
        end = Completed(None, problem, others=others, usage=self.usage, stop_reason=reason or "")
        return (end,)

    def _problem(self, reason: str | None) -> str:
        if reason is None:
            return "it stopped without a stop reason"
        for name, reasons in self._beside.items():
            if reason not in reasons:
                return f"its stop reason is {quote(reason)}, and it carries {name}"
        calls = any(block.kind == TOOL for block in self._blocks.values())
        return disagreement("messages", reason, calls=calls)

    def _error(self, native: Native) -> tuple[Event, ...]:
        flat = {name: native.get(name) for name in ("code", "message")}
        return (Stopped("error", said(native.get("error") or flat), self.usage),)

    def _refuse_unknown_of_call(self, kind: str, index: object) -> None:
        block = self._blocks.get(index) if type(index) is int else None
        if block is not None and block.kind == TOOL:
            raise violation(f"saw {quote(kind)}, which is not known, for a tool_use block")

    def _refuse_after_stop(self, what: str) -> None:
        if self._stop_reason is not None:
            raise violation(f"after stop reason {quote(self._stop_reason)} came {what}")

    def _open_block(self, index: int) -> _Block:
        block = self._blocks.get(index)
        if block is None:
            raise violation(f"block {index} never started")
        if block.closed:
            raise violation(f"block {index} goes on after its stop")
        return block

    def _count(self, usage: object) -> None:
        # Counters are cumulative: the last one that is reported counts, and none is summed.
        if not isinstance(usage, dict):
            return
        for part, names in COUNTERS.items():
            counters = usage if part is None else usage.get(part)
            found = {name: count(counters, name) for name in names}
            self._counters |= {name: value for name, value in found.items() if value is not None}

    @property
    def usage(self) -> Usage | None:
        """What was reported as billed so far."""
        if not self._counters:
            return None
        thinks = any(block.kind in THINKING for block in self._blocks.values())
        return Usage(
            input_tokens=self._counters.get("input_tokens"),
            cached_tokens=self._counters.get("cache_read_input_tokens"),
            cache_creation_tokens=self._counters.get("cache_creation_input_tokens"),
            cache_creation_hour_tokens=self._counters.get("ephemeral_1h_input_tokens"),
            cached_apart=True,
            output_tokens=self._counters.get("output_tokens"),
            # Thinking is billed within the output tokens; its part is not always reported.
            reasoning_tokens=self._counters.get("thinking_tokens", None if thinks else 0),
        )


def _is_of_a_program(block: object) -> bool:
    caller = block.get("caller") if isinstance(block, dict) else None
    return isinstance(caller, dict) and caller.get("type") != "direct"


def _whole_input(content: Native, caller: object) -> str:
    value = content.get("input")
    if value in (None, {}):
        return ""
    if caller is None or not isinstance(value, dict):
        raise violation("expected a tool's input by input_json_delta, saw a whole one")
    return dumps(value)


def _index(native: Native) -> int:
    index = whole(native, "index")
    if index is None:
        raise violation("expected a whole number as index, saw none")
    return index


def _part(index: int) -> str:
    return f"block/{index}"


def _expect(block: _Block, kind: str, delta: str) -> None:
    if block.kind != kind:
        raise violation(f"expected a {kind} block for {delta}, saw {quote(block.kind)}")

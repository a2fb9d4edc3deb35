"""The OpenAI Chat Completions API: the translator of its stream.

Source of the rules: OpenAI's API reference, "Chat Completions", streaming; what compatible
servers do with it is read as they do it where nothing is lost. The stream restates nothing and
numbers nothing: the call ID is the key, and a `tool_calls` index is only a hint, to which call a
fragment without an ID belongs. A response is complete when it has a finish reason and then ends
cleanly; the usage may come after the finish reason, so the rest is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentlib.conversation import Usage
from agentlib.jsonvalues import quote
from agentlib.providers.boundaries import additions, chunk_adds
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
)
from agentlib.providers.finish_reasons import COMPLETING, disagreement
from agentlib.vocabulary import (
    Completed,
    Event,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    TextDelta,
    ToolArgsDelta,
    ToolStart,
)

COMPLETE = frozenset(COMPLETING["chat"])
# Fields in which compatible servers send the model's reasoning.
REASONING_FIELDS = ("reasoning_content", "reasoning")
TEXT, REFUSAL = "text", "refusal"
# What a choice may say again and again while nothing comes of it. The start of a call is known by
# its event, so its name counts as little as its ID: some servers send both with every fragment.
LABELS = frozenset(
    {
        *("id", "index", "name", "object", "role", "type"),
        *("content_filter_results", "content_filter_offsets", "logprobs"),
    }
)


_FUNCTION = frozenset({"name", "arguments"})


@dataclass(slots=True)
class _Call:
    """A call as far as it has come; it is not started while its name may still be half."""

    call_id: str
    index: int | None
    name: str = ""
    started: bool = False


class ChatTranslator:
    """Translates one response's chunks, in order, into the vocabulary.

    It completes only in `finish`, at the clean end of the stream. Raises ProtocolViolation where
    a chunk breaks the rules.
    """

    def __init__(self, options: TranslatorOptions | None = None) -> None:
        self._exposes = (options or TranslatorOptions()).exposes
        self._response_id = ""
        self._restated = False
        self._calls: dict[str, _Call] = {}
        self._at_index: dict[int, _Call] = {}
        self._finish_reason: str | None = None
        self._filtered = ""
        self.usage: Usage | None = None

    @property
    def trailing(self) -> bool:
        """Whether only the usage can still come."""
        return self._finish_reason is not None

    def is_meaningful(self, native: Native) -> bool:
        """Say whether a chunk shows that the response goes on; a keep-alive does not."""
        choices = native.get("choices")
        if choices:
            return has_content(choices, LABELS)
        return bool(native.get("usage")) or _error(native) is not None

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Return the neutral events that `native`, one decoded chunk, stands for."""
        error = _error(native)
        if error is not None:
            return (Stopped("error", said(error), self.usage),)
        usage = native.get("usage")
        if isinstance(usage, dict):
            self.usage = read_usage(usage)
        events = self._opened(native)
        choices = native.get("choices")
        if choices in (None, []):
            return events
        return (*events, *self._choice(_only(choices)))

    def finish(self) -> tuple[Event, ...]:
        """Take the clean end of the stream: it completes a response that has a finish reason."""
        reason = self._finish_reason
        if reason is None:
            return ()
        if reason not in COMPLETE:
            told = "this finish reason completes nothing"
            return (Stopped(reason, told, self.usage, cut_by_length=reason == "length"),)
        held = [self._start(call) for call in self._calls.values() if not call.started]
        problem = self._filtered or disagreement("chat", reason, calls=bool(self._calls))
        restated = self._response_id if self._restated else None
        return (*held, Completed(restated, problem, usage=self.usage, stop_reason=reason))

    def _opened(self, native: Native) -> tuple[Event, ...]:
        if self._response_id:
            seen = native.get("id")
            if seen == self._response_id:
                self._restated = True
            elif seen and chunk_adds(native):
                raise violation(
                    f"expected response ID {quote(self._response_id)}, saw {quote(seen)} on a "
                    "chunk that adds to the response",
                    check="response_id",
                )
            return ()
        self._response_id = string(native, "id", "")
        return (Opened(self._response_id),) if self._response_id else ()

    def _choice(self, choice: Native) -> Iterable[Event]:
        # Ollama once sent an empty reason where the API sends null.
        reason = choice.get("finish_reason") if choice.get("finish_reason") != "" else None
        delta = _delta(choice)
        refuse_role(delta)
        self._filtered = self._filtered or _filtered(choice)
        if self._finish_reason is not None:
            self._refuse_more(delta, reason)
            return
        if delta.get("function_call") is not None:
            raise violation("expected tool_calls, saw function_call, which the API has retired")
        yield from self._words(delta)
        for fragment in _fragments(delta):
            yield from self._call(fragment)
        if reason is not None:
            self._finish_reason = string(choice, "finish_reason")

    def _refuse_more(self, delta: Native, reason: object) -> None:
        extra = additions(delta)
        if extra or reason not in (None, self._finish_reason):
            what = ", ".join(extra) if extra else f"finish reason {quote(reason)}"
            raise violation(
                f"after finish reason {quote(self._finish_reason)} only the usage may come, "
                f"saw {quote(what)}"
            )

    def _words(self, delta: Native) -> Iterable[Event]:
        content = delta.get("content")
        if isinstance(content, list):
            yield from _content_parts(content)
        elif content not in (None, ""):
            yield TextDelta(TEXT, string(delta, "content"))
        if delta.get("refusal"):
            yield RefusalDelta(REFUSAL, string(delta, "refusal"))
        for name in REASONING_FIELDS:
            if isinstance(delta.get(name), str) and delta[name]:
                yield ReasoningDelta(TEXT, delta[name])
                break

    def _call(self, fragment: Native) -> Iterable[Event]:
        if fragment.get("type") not in (None, "", "function"):
            raise violation(f"expected a function call, saw {quote(fragment['type'])}")
        function = fragment.get("function")
        function = record(fragment, "function") if function is not None else {}
        refuse_unknown(function, _FUNCTION, "a call's function")
        call = self._find(fragment)
        name = string(function, "name", "")
        arguments = string(function, "arguments", "")
        if name and name != call.name:
            self._name(call, name)
        if not call.started and call.name and (arguments or self._is_whole(call.name)):
            yield self._start(call)
        if arguments:
            if not call.started:
                raise violation(f"call {quote(call.call_id)} has arguments before it has a name")
            yield ToolArgsDelta(call.call_id, arguments)

    def _find(self, fragment: Native) -> _Call:
        call_id = string(fragment, "id", "")
        index = fragment.get("index")
        if index is not None and type(index) is not int:
            raise violation(f"expected a whole index, saw {quote(index)}")
        if not call_id:
            call = self._at_index.get(index) if index is not None else None
            if call is None:
                raise violation("a call started without a call ID", check="call_ids")
            return call
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = _Call(call_id, index)
        elif index is not None and call.index is not None and index != call.index:
            raise violation(f"call ID {quote(call_id)} stands at index {call.index} and {index}")
        if index is not None:
            call.index = index
            self._at_index[index] = call
        return call

    def _name(self, call: _Call, name: str) -> None:
        joined = call.name + name
        if call.name and (call.started or self._exposes is None or not self._exposes(joined)):
            raise violation(
                f"call {quote(call.call_id)}: expected the name {quote(call.name)}, "
                f"saw {quote(name)}"
            )
        call.name = joined

    def _is_whole(self, name: str) -> bool:
        return self._exposes is None or self._exposes(name)

    def _start(self, call: _Call) -> Event:
        first = next(other for other in self._calls.values() if not other.started)
        if first is not call:
            raise violation(
                f"call {quote(call.call_id)} has arguments or a whole name before "
                f"call {quote(first.call_id)}, which came first, has its name"
            )
        call.started = True
        return ToolStart(call.call_id, call.name)


def _filtered(choice: Native) -> str:
    """Return how a filter of Azure says that it took something away; empty where none does."""
    results = choice.get("content_filter_results")
    for name, result in results.items() if isinstance(results, dict) else ():
        if isinstance(result, dict) and result.get("filtered") is True:
            return f"its filter {quote(name)} says that it took content away"
    return ""


def _only(choices: object) -> Native:
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise violation(f"expected a list with one choice, saw {quote(choices)}")
    if len(choices) > 1 or choices[0].get("index") not in (None, 0):
        raise violation("expected one choice, saw a second one")
    choice: Native = choices[0]
    return choice


def _error(native: Native) -> object:
    """Return the error that a chunk is, nested or flat as servers send it, or None."""
    choices = native.get("choices")
    holders = [native, *(choices if isinstance(choices, list) else ())]
    for holder in holders:
        if not isinstance(holder, Mapping):
            continue
        if holder.get("error") is not None:
            return holder["error"]
        if "delta" in holder:
            holders.append(holder["delta"])
    flat = "choices" not in native and isinstance(native.get("message"), str)
    return native if flat or "error" in (native.get("object"), native.get("type")) else None


def _delta(choice: Native) -> dict[str, Any]:
    if choice.get("delta") is not None:
        return record(choice, "delta")
    whole = [name for name in ("message", "text") if choice.get(name)]
    if whole:
        raise violation(f"expected a delta, saw a whole {whole[0]}: this is another API, or form")
    return {}


def _fragments(delta: Native) -> list[dict[str, Any]]:
    calls = delta.get("tool_calls")
    if calls is None:
        return []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise violation(f"expected a list of objects as tool_calls, saw {quote(calls)}")
    return calls


def _content_parts(parts: list[Any]) -> Iterable[Event]:
    """Translate content that comes as a list of typed parts, as Mistral sends it."""
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            yield TextDelta(TEXT, string(part, "text"))
        elif kind == "thinking":
            inner = part.get("thinking")
            texts = inner if isinstance(inner, list) else [{"text": inner}]
            for text in texts:
                if not isinstance(text, dict):
                    raise violation(f"expected an object as thinking, saw {quote(text)}")
                yield ReasoningDelta(TEXT, string(text, "text", ""))
        elif kind not in ("reference", "citation"):
            raise violation(f"expected text or thinking as content part, saw {quote(part)}")


def read_usage(native: Native) -> Usage:
    """Return the usage that a chunk reports; a counter that it does not report is None."""
    details = native.get("prompt_tokens_details")
    return Usage(
        input_tokens=count(native, "prompt_tokens"),
        cached_tokens=count(details, "cached_tokens"),
        cache_creation_tokens=count(details, "cache_write_tokens"),
        output_tokens=count(native, "completion_tokens"),
        reasoning_tokens=count(native.get("completion_tokens_details"), "reasoning_tokens"),
    )

"""Google's Gemini API: the translator of `streamGenerateContent`. It is read offline only.

Source of the rules: Google's API reference, "Generating content" (`GenerateContentResponse`,
`Candidate`, `FinishReason`), `FunctionCall` and `PartialArg`, and its page "Thought signatures".
A stream is a row of responses, each of which holds more parts. It numbers and restates nothing:
a call may have no ID, and its arguments come as one object, or in pieces of which the last part
says that no more will come. A response is complete when its finish reason is STOP and it then ends
cleanly; calls have no finish reason of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentlib.conversation import NativeTurn, Usage
from agentlib.jsonvalues import StrictJSONError, quote, strict_loads
from agentlib.providers.fields import (
    Native,
    TranslatorOptions,
    count,
    has_content,
    item_list,
    record,
    refuse_role,
    refuse_unknown,
    said,
    string,
    violation,
)
from agentlib.providers.gemini_arguments import ArgumentText, read_flag
from agentlib.providers.synthetic import local_call, refuse_local
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

# Any other finish reason completes nothing.
COMPLETE = "STOP"
TEXT = "text"
# The fields of a part that are no content of their own.
_BESIDE = frozenset(
    {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
)
# What the provider made and ran itself; only the native form can say it.
_HOSTED = frozenset(
    {"executableCode", "codeExecutionResult", "inlineData", "fileData", "toolCall", "toolResponse"}
)
NOT_PORTABLE = "it cannot be sent back in the portable form"
UNKNOWN = "what it asks of the host is not known"
SIGNED = "its thought signature has to go back, and the portable form cannot hold it"
_CALL = frozenset({"id", "name", "args", "partialArgs", "willContinue"})
_COUNTERS = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
)

# What a candidate may say again and again while nothing comes of it; as in chat.
LABELS = frozenset(
    {
        *("avgLogprobs", "id", "index", "jsonPath", "logprobsResult", "name", "role"),
        *("safetyRatings", "thought", "willContinue"),
    }
)


class _Call:
    """A call that may go on: its own part in the native turn, and its argument text."""

    def __init__(self, call_id: str, name: str) -> None:
        self.call_id = call_id
        self.name = name
        self.arguments = ArgumentText()


class GeminiTranslator:
    """Translates one response's chunks, in order, into the vocabulary.

    It completes only in `finish`, at the clean end of the stream. Raises ProtocolViolation where
    a chunk breaks the rules.
    """

    def __init__(self, options: TranslatorOptions | None = None) -> None:
        options = options or TranslatorOptions()
        self._native = options.native
        self._takes = options.takes
        self._response_id = ""
        self._restated = False
        self._finish_reason: str | None = None
        self._finish_message = ""
        self._blocked = ""
        self._calls = 0
        self._open: _Call | None = None
        self._others: list[TerminalOther] = []
        self._turn = _Turn()
        self._counters: dict[str, int] = {}

    @property
    def trailing(self) -> bool:
        """Whether only the usage can still come."""
        return self._finish_reason is not None

    def is_meaningful(self, native: Native) -> bool:
        """Say whether a chunk shows that the response goes on; a keep-alive does not."""
        candidates = native.get("candidates")
        if candidates:
            return has_content(candidates, LABELS)
        return any(map(native.get, ("promptFeedback", "usageMetadata", "error")))

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Return the neutral events that `native`, one decoded chunk, stands for."""
        error = _error(native)
        if error is not None:
            return (Stopped("error", said(error), self.usage),)
        self._count(native.get("usageMetadata"))
        return tuple(self._chunk(native))

    def finish(self) -> tuple[Event, ...]:
        """Take the clean end of the stream: it completes a response that has a finish reason."""
        reason = self._finish_reason
        if reason is None:
            return ()
        if reason != COMPLETE:
            told = self._finish_message or "this finish reason completes nothing"
            return (Stopped(reason, told, self.usage, cut_by_length=reason == "MAX_TOKENS"),)
        turn = self._turn.native() if self._native else None
        others = tuple(self._others)
        restated = self._response_id if self._restated else None
        return (
            Completed(
                restated,
                self._blocked,
                others=others,
                usage=self.usage,
                native=turn,
                stop_reason=reason,
            ),
        )

    @property
    def usage(self) -> Usage | None:
        """What was reported as billed so far: counters are cumulative, the last one counts."""
        if not self._counters:
            return None
        found = self._counters.get
        return Usage(
            input_tokens=_sum(found("promptTokenCount"), found("toolUsePromptTokenCount")),
            cached_tokens=found("cachedContentTokenCount"),
            # Thinking is billed as output, and counted beside the candidates' tokens.
            output_tokens=_sum(found("candidatesTokenCount"), found("thoughtsTokenCount")),
            reasoning_tokens=found("thoughtsTokenCount"),
        )

    def goes_on_whole(self) -> bool:
        """Say whether a call goes on to which nothing can be added: it has all that it takes."""
        call = self._open
        takes = self._takes(call.name) if call is not None and self._takes is not None else None
        return call is not None and takes is not None and call.arguments.holds_all(takes)

    def _count(self, usage: object) -> None:
        found = {name: count(usage, name) for name in _COUNTERS}
        self._counters |= {name: value for name, value in found.items() if value is not None}

    def _chunk(self, native: Native) -> Iterator[Event]:
        yield from self._opened(native)
        feedback = native.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason") is not None:
            yield Stopped(string(feedback, "blockReason"), "the prompt was blocked", self.usage)
            return
        candidate = _only(native)
        if candidate is None:
            return
        reason = candidate.get("finishReason")
        self._blocked = self._blocked or _blocked(candidate)
        for part in _parts(candidate):
            if self._finish_reason is not None and _says_something(part):
                raise violation(f"after finish reason {quote(self._finish_reason)} came more")
            yield from self._part(part)
        if reason is not None:
            self._finished(string(candidate, "finishReason"), candidate)

    def _opened(self, native: Native) -> Iterator[Event]:
        response_id = string(native, "responseId", "")
        if not self._response_id and response_id:
            self._response_id = response_id
            yield Opened(response_id)
        elif response_id not in ("", self._response_id):
            seen = f"{quote(self._response_id)}, then {quote(response_id)}"
            raise violation(f"expected one response ID throughout; saw {seen}", "response_id")
        elif response_id:
            self._restated = True

    def _finished(self, reason: str, candidate: Native) -> None:
        if self._finish_reason not in (None, reason):
            was = quote(self._finish_reason)
            raise violation(f"finish reason {was} changed to {quote(reason)}")
        if reason == COMPLETE and self._open is not None:
            raise violation(
                f"finish reason {COMPLETE} came while call {quote(self._open.call_id)} of "
                f"{quote(self._open.name)} says that it will continue"
            )
        self._finish_reason = reason
        if candidate.get("finishMessage"):
            self._finish_message = said(candidate["finishMessage"])

    def _part(self, part: Native) -> Iterator[Event]:
        kinds = [key for key, value in part.items() if key not in _BESIDE and value is not None]
        if len(kinds) > 1:
            raise violation(f"expected one kind of content in a part, saw {quote(kinds)}")
        thinks = read_flag(part, "thought")
        kind = kinds[0] if kinds else ""
        if kind == "functionCall":
            if thinks:
                raise violation("a call stands in a thought")
            yield from self._function_call(record(part, kind), part)
            return
        if kind or part.get("thoughtSignature") is not None:
            self._turn.add(part)
        if kind == "text":
            text = string(part, "text")
            if text:
                yield ReasoningDelta(TEXT, text) if thinks else TextDelta(TEXT, text)
        elif kind in _HOSTED:
            self._others.append(TerminalOther(kind, "" if self._native else NOT_PORTABLE))
        elif kind:
            self._others.append(TerminalOther(kind, UNKNOWN))

    def _function_call(self, native: Native, part: Native) -> Iterator[Event]:
        if self._open is None:
            call = self._open = self._begun(native)
            self._turn.begin(part)
            if part.get("thoughtSignature") is not None and not self._native:
                self._others.append(TerminalOther("functionCall", SIGNED))
            yield ToolStart(call.call_id, call.name)
        else:
            call = self._open
            self._refuse_another(call, native)
            self._turn.sign(part)
        refuse_unknown(native, _CALL, "a call")
        more = read_flag(native, "willContinue")
        text = _written(call.arguments, native, more=more)
        if text:
            yield ToolArgsDelta(call.call_id, text)
        if not more:
            self._open = None
            self._turn.end(call.arguments)
            yield ToolArgsDone(call.call_id, call.arguments.text)

    def _begun(self, native: Native) -> _Call:
        if not native.get("name"):
            raise violation("a piece of a call came, and no call goes on: each begins with a name")
        refuse_local(native.get("id"))
        self._calls += 1
        # Most calls have no ID: their order says which result is whose.
        call_id = string(native, "id", "") or local_call(self._calls)
        return _Call(call_id, string(native, "name"))

    def _refuse_another(self, call: _Call, native: Native) -> None:
        if native.get("name") is not None:
            raise violation(
                f"call {quote(call.call_id)} of {quote(call.name)} goes on, and another began"
            )
        if native.get("id") not in (None, "", call.call_id):
            raise violation(f"call {quote(call.call_id)} goes on under ID {quote(native['id'])}")


class _Turn:
    """The parts of a turn, to be sent back as they came: the pieces of one call as one part."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._call: dict[str, Any] = {}
        self._texts: list[tuple[dict[str, Any], ArgumentText]] = []

    def add(self, part: Native) -> None:
        """Add a part that is no call; bare text goes on in the one before it."""
        last = self._parts[-1] if self._parts else {}
        if _is_bare(part) and not part["text"]:
            return
        if _is_bare(part) and _is_bare(last) and part.get("thought") == last.get("thought"):
            last["text"] += part["text"]
        else:
            self._parts.append(dict(part))

    def begin(self, part: Native) -> None:
        """Begin the part of a call."""
        call = part["functionCall"]
        kept = {name: call[name] for name in ("id", "name") if call.get(name)}
        self._call = {**part, "functionCall": kept}
        self._parts.append(self._call)

    def sign(self, part: Native) -> None:
        """Keep the signature that comes with a later piece of a call."""
        if part.get("thoughtSignature") is not None:
            self._call.setdefault("thoughtSignature", part["thoughtSignature"])

    def end(self, arguments: ArgumentText) -> None:
        """Keep the argument text of a call; it is not parsed before the response is whole."""
        self._texts.append((self._call["functionCall"], arguments))

    def native(self) -> NativeTurn | None:
        """Return the turn where the portable form would lose something of it, else None."""
        if not any(map(_says_more, self._parts)):
            return None
        try:
            for call, arguments in self._texts:
                call["args"] = strict_loads(arguments.text)
        except StrictJSONError:
            return None  # the gate refuses these arguments
        return NativeTurn("gemini", tuple(self._parts))  # type: ignore[arg-type]


def _is_bare(part: Native) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}


def _says_more(part: Native) -> bool:
    return part.get("thoughtSignature") is not None or bool(_HOSTED & part.keys())


def _says_something(part: Native) -> bool:
    return any(value not in (None, "") for key, value in part.items() if key not in _BESIDE)


def _error(native: Native) -> object:
    """Return the error that a chunk or a candidate of it is, or None."""
    candidates = native.get("candidates")
    for holder in (native, *(candidates if isinstance(candidates, list) else ())):
        if isinstance(holder, dict) and holder.get("error") is not None:
            return holder["error"]
    # Google's events have no type: this one is the `event:` line of the stream.
    return native if native.get("type") == "error" else None


def _blocked(candidate: Native) -> str:
    """Return how a safety rating says that it blocked the content; empty where none does."""
    ratings = candidate.get("safetyRatings")
    for rating in ratings if isinstance(ratings, list) else ():
        if isinstance(rating, dict) and rating.get("blocked") is True:
            return f"its safety rating {quote(rating.get('category'))} says that it blocked content"
    return ""


def _only(native: Native) -> Native | None:
    if native.get("candidates") in (None, []):
        return None
    candidates = item_list(native, "candidates")
    if len(candidates) > 1 or candidates[0].get("index") not in (None, 0):
        raise violation("expected one candidate, saw a second one: a decision is of one alone")
    return candidates[0]


def _parts(candidate: Native) -> list[dict[str, Any]]:
    if candidate.get("content") is None:
        return []
    content = record(candidate, "content")
    refuse_role(content)
    return list(item_list(content, "parts")) if content.get("parts") is not None else []


def _written(text: ArgumentText, native: Native, *, more: bool) -> str:
    """Return what one part of a call adds to its argument text."""
    whole, pieces = native.get("args"), native.get("partialArgs")
    if whole and (more or pieces or text.text):
        raise violation("expected a call's args whole or in partialArgs, saw both")
    added: list[str] = []
    if whole:
        added.append(text.whole(record(native, "args")))
    elif whole is not None:
        record(native, "args")
    if pieces is not None:
        added += [text.take(piece) for piece in item_list(native, "partialArgs")]
    if not more:
        added.append(text.end())
    return "".join(added)


def _sum(left: int | None, right: int | None) -> int | None:
    return left if right is None else (left or 0) + right

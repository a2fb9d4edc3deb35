"""The filters for what servers of Chat Completions are known to get wrong (see `compat`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentlib.jsonvalues import quote
from agentlib.providers.chat import COMPLETE
from agentlib.providers.fields import Native
from agentlib.providers.synthetic import LOCAL_RESPONSE, local_call, made_call, refuse_local
from agentlib.providers.translator import Filter, Note, Translator
from agentlib.sse import DONE_EVENT
from agentlib.vocabulary import Event

# What servers say in place of the reasons of Chat, and what each stands for.
OTHER_WORDS = {
    # The word of the engine behind it: Text Generation Inference, Together.
    **dict.fromkeys(("eos", "eos_token", "stop_token"), "stop"),
    # Of the API that a gateway translates: Anthropic, Gemini, Cohere.
    **dict.fromkeys(("stop_sequence", "end_turn", "STOP", "COMPLETE"), "stop"),
    **dict.fromkeys(("tool_use", "TOOL_CALL"), "tool_calls"),
}


class OtherFinishWords(Filter):
    """Replaces a finish reason of another API by the one of Chat that it stands for."""

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the chunk, with a finish reason of Chat."""
        choice = _only_choice(native)
        reason = choice.get("finish_reason") if choice is not None else None
        word = OTHER_WORDS.get(reason) if isinstance(reason, str) else None
        if choice is None or word is None:
            return super().translate(native)
        self.note(f"other-finish-words: finish reason {quote(reason)} stands for {quote(word)}")
        return super().translate({**native, "choices": [{**choice, "finish_reason": word}]})


class EarlyFinishReason(Filter):
    """Holds a finish reason back until nothing more can come.

    Where more came after one, a further reason and `[DONE]` say that all has come. Of several
    reasons the one that completes nothing counts, wherever it stands.
    """

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._reasons: list[str] = []
        self._went_on = False
        self._open = False  # more came, and no reason after it

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the chunk without its finish reason; `[DONE]` brings the reason."""
        if native is DONE_EVENT:
            return (*self._settled(), *super().translate(native))
        choice = _only_choice(native)
        if choice is None:
            return super().translate(native)
        reason = choice.get("finish_reason")
        if self._reasons and (_says_more(choice) or reason):
            self._went_on, self._open = True, True
            self.note("early-finish-reason: more came after a finish reason, and [DONE] ends it")
        if isinstance(reason, str) and reason:
            self._reasons.append(reason)
            self._open = False
            native = {**native, "choices": [{**choice, "finish_reason": None}]}
        return super().translate(native)

    def finish(self) -> tuple[Event, ...]:
        """Take the end of the stream: a reason counts after which nothing came."""
        settled = () if self._went_on else self._settled()
        return (*settled, *self.inner.finish())

    def _settled(self) -> tuple[Event, ...]:
        reasons, self._reasons = self._reasons, []
        if not reasons or self._open:
            return ()
        incomplete = [reason for reason in reasons if reason not in COMPLETE]
        calls = [reason for reason in reasons if reason == "tool_calls"]
        reason = (*incomplete, *calls, reasons[-1])[0]
        stop = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        return self.inner.translate(stop)


class MissingOpening(Filter):
    """Gives a response ID to a stream none of whose chunks has one."""

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._opened = False

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the chunk; the first one with a choice opens the response in any case."""
        given = bool(native.get("id"))
        made = not given and not self._opened and bool(native.get("choices"))
        self._opened = self._opened or given or made
        if made:
            native = {**native, "id": LOCAL_RESPONSE}
            self.note(f"missing-opening: a chunk has no response ID, {LOCAL_RESPONSE} stands in")
        return super().translate(native)


class RotatingIDs(Filter):
    """Takes the response ID off each chunk that has another one than the first.

    It is not put right: what cannot be compared must not look as if it agreed.
    """

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._response_id: object = None

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the chunk, which belongs to the response whatever its ID."""
        seen = native.get("id")
        self._response_id = self._response_id or seen
        if seen and seen != self._response_id:
            native = {**native, "id": None}
            self.note("rotating-ids: the response ID changed, and chunks could not be compared")
        return super().translate(native)


class CallWithoutID(Filter):
    """Gives a local call ID to each call that comes without one.

    Where a server gives an index, it says which call a fragment belongs to. Where it gives none,
    a fragment with a name is a whole new call.
    """

    def __init__(self, inner: Translator, note: Note) -> None:
        super().__init__(inner, note)
        self._made = 0
        # The local ID at each index; empty where the server gave an ID itself.
        self._at_index: dict[int, str] = {}

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the chunk, with an ID for each fragment that lacks one."""
        choices = native.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            delta = choices[0].get("delta")
            if isinstance(delta, dict) and isinstance(delta.get("tool_calls"), list):
                named = {**delta, "tool_calls": list(self._named(delta["tool_calls"]))}
                native = {**native, "choices": [{**choices[0], "delta": named}, *choices[1:]]}
        return super().translate(native)

    def _named(self, fragments: Iterable[Any]) -> Iterable[Any]:
        for fragment in fragments:
            call_id = self._local_id(fragment) if isinstance(fragment, dict) else ""
            yield {**fragment, "id": call_id} if call_id else fragment

    def _local_id(self, fragment: dict[str, Any]) -> str:
        index = fragment.get("index")
        place = index if type(index) is int else None
        if fragment.get("id"):
            refuse_local(fragment["id"])
            if place is not None:
                self._at_index[place] = ""
            return ""
        if place is not None and place in self._at_index:
            return self._at_index[place]
        function = fragment.get("function")
        if not isinstance(function, dict) or not function.get("name"):
            return ""
        self._made += 1
        call_id = local_call(self._made)
        if place is not None:
            self._at_index[place] = call_id
        self.note(made_call(call_id))
        return call_id


class DoneWithoutReason(Filter):
    """Takes `[DONE]` for the finish reason that never came."""

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the chunk; `[DONE]` completes a response that has no finish reason."""
        if native is not DONE_EVENT or self.trailing:
            return super().translate(native)
        self.note("done-without-reason: [DONE] came without a finish reason, and stands for one")
        stop = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        return (*self.inner.translate(stop), *super().translate(native))


def _only_choice(native: Native) -> dict[str, Any] | None:
    choices = native.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    return choices[0]


def _says_more(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta")
    return isinstance(delta, dict) and any(v for name, v in delta.items() if name != "role")

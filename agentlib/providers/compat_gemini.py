"""The filters for what servers of Gemini's API are known to get wrong (see `compat`)."""

from __future__ import annotations

from agentlib.providers.fields import Native
from agentlib.providers.gemini import COMPLETE, GeminiTranslator
from agentlib.providers.synthetic import LOCAL_RESPONSE
from agentlib.providers.translator import Filter
from agentlib.vocabulary import Event

_END_OF_CALL: Native = {"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]}
_END: Native = {"candidates": [{"finishReason": COMPLETE}]}


class MissingOpening(Filter):
    """Gives a response ID to a stream none of whose chunks has one."""

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the chunk; the first one with a candidate opens the response in any case."""
        if native.get("candidates") and not native.get("responseId"):
            native = {**native, "responseId": LOCAL_RESPONSE}
            self.note(f"missing-opening: a chunk has no response ID, {LOCAL_RESPONSE} stands in")
        return super().translate(native)


class UnendedCall(Filter):
    """Ends a call that says that it will continue, where it is whole and the reason is STOP.

    It has to stand next to the translator, which knows the call.
    """

    def translate(self, native: Native) -> tuple[Event, ...]:
        """Translate the chunk; before its finish reason, a call that is whole is ended."""
        candidates = native.get("candidates")
        first = candidates[0] if isinstance(candidates, list) and len(candidates) == 1 else None
        if not isinstance(first, dict) or first.get("finishReason") != COMPLETE:
            return super().translate(native)
        rest = {name: value for name, value in first.items() if name != "finishReason"}
        events = self.inner.translate({**native, "candidates": [rest]})
        if isinstance(self.inner, GeminiTranslator) and self.inner.goes_on_whole():
            self.note(f"unended-call: a call goes on at {COMPLETE}, and has all its arguments")
            events += self.inner.translate(_END_OF_CALL)
        return (*events, *self.inner.translate(_END))

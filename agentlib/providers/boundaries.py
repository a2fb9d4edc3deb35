"""Where in a stream one response ends and the next begins: asked by captures and by the reader.

One row per API holds its rules, by the names in its own reference: "Responses, streaming events"
and "Chat Completions, streaming" (OpenAI), "Streaming messages" (Anthropic), "Generating content"
(Google). A live stream should hold one response. Where it holds two, the first is judged as if
the stream had ended before the second, which is what a capture of the same bytes says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentlib.sse import DONE_EVENT

Native = Mapping[str, Any]


class _Rules(NamedTuple):
    """What the events of one API say: whose they are, whether they end it, open it or add to it."""

    identity: Callable[[Native], str]
    ends: Callable[[Native], bool]
    begins: Callable[[Native, Extent], bool]
    adds: Callable[[Native], bool] = lambda _: False
    ends_at_done: bool = False


class Extent:
    """Follows one response of a provider, event by event, to where the next one begins.

    `ended` is whether its own events said that it ended, `done` whether `[DONE]` came after it.
    """

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.identity = ""
        self.ended = False
        self.done = False
        self._rules = _RULES.get(provider)
        self._events = 0
        self._spoke = False

    def next_begins(self, event: object) -> bool:
        """Take the next event, or DONE_EVENT; say whether it is the first of another response."""
        rules = self._rules
        if rules is None:
            return False
        if event is DONE_EVENT:
            self.done = self.done or (rules.ends_at_done and self._events > 0)
            return False
        if not isinstance(event, Mapping):
            return self.done
        if self._events:
            if self.done or rules.begins(event, self):
                return True
            if self._spoke and api_of(event) not in ("", self.provider):
                return True
        self._events += 1
        self._spoke = self._spoke or api_of(event) == self.provider
        self.identity = self.identity or rules.identity(event)
        self.ended = self.ended or rules.ends(event)
        return False

    def claims(self, event: object) -> bool:
        """Say whether an event behind the beginning of the next response still adds to this one."""
        rules = self._rules
        if rules is None or self.done or not self.identity or not isinstance(event, Mapping):
            return False
        return rules.identity(event) == self.identity and rules.adds(event)


def api_of(event: Native) -> str:
    """Return the API in whose words alone an event is, "" where any server may send it."""
    kind = event.get("type")
    if isinstance(kind, str):
        if kind.startswith("response."):
            return "responses"
        if kind.startswith(("message_", "content_block_")):
            return "messages"
    if "choices" in event or event.get("object") == "chat.completion.chunk":
        return "chat"
    return "" if _GEMINI.isdisjoint(event) else "gemini"


def identity_of(event: object) -> str:
    """Return the ID of the response to which an event belongs, "" where it does not say."""
    rules = _RULES.get(api_of(event)) if isinstance(event, Mapping) else None
    return rules.identity(event) if rules is not None and isinstance(event, Mapping) else ""


def additions(delta: object) -> list[str]:
    """Return the names of what the delta of a Chat chunk adds: all but its role."""
    fields = delta.items() if isinstance(delta, dict) else ()
    return [name for name, value in fields if value and name != "role"]


def chunk_adds(chunk: Native) -> bool:
    """Say whether a Chat chunk adds to a response: words, a refusal, a call, or its finish reason.

    The usage adds nothing, nor does a role, or what a filter found out about the words before.
    """
    return any(
        each.get("finish_reason")
        or each.get("text")
        or each.get("message")
        or additions(each.get("delta"))
        for each in _objects(chunk, "choices")
    )


# A chunk of Gemini has no type. Each of these stands in one alone.
_GEMINI = frozenset(("candidates", "promptFeedback", "usageMetadata"))
_ENDS_RESPONSE = frozenset(
    (
        *("response.completed", "response.failed", "response.incomplete"),
        *("response.cancelled", "response.error", "error"),
    )
)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _objects(event: Native, name: str) -> list[Native]:
    found = event.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _is_error(event: Native) -> bool:
    return event.get("error") is not None


def _response_id(event: Native) -> str:
    response = event.get("response") if event.get("type") == "response.created" else None
    return _text(response.get("id")) if isinstance(response, dict) else ""


def _response_ends(event: Native) -> bool:
    return _text(event.get("type")) in _ENDS_RESPONSE or _is_error(event)


def _response_begins(event: Native, before: Extent) -> bool:
    if event.get("type") != "response.created":
        return False
    new = _response_id(event)
    return before.ended or bool(new and before.identity and new != before.identity)


def _chunk_id(event: Native) -> str:
    return _text(event.get("id"))


def _chunk_ends(event: Native) -> bool:
    return any(each.get("finish_reason") for each in _objects(event, "choices"))


def _chunk_begins(event: Native, before: Extent) -> bool:
    # `[DONE]` ends a response. Without one, another may only open behind the finish reason: with
    # an ID of its own and a delta that is still empty. What adds at once is out of place here.
    if not before.ended or _chunk_id(event) in ("", before.identity):
        return False
    opens = any(isinstance(each.get("delta"), dict) for each in _objects(event, "choices"))
    return opens and not chunk_adds(event)


def _message_id(event: Native) -> str:
    message = event.get("message")
    return _text(message.get("id")) if isinstance(message, dict) else ""


def _message_ends(event: Native) -> bool:
    return event.get("type") in ("message_stop", "error") or _is_error(event)


def _message_begins(event: Native, before: Extent) -> bool:
    return before.ended and event.get("type") == "message_start"


def _gemini_id(event: Native) -> str:
    return _text(event.get("responseId"))


def _gemini_ends(event: Native) -> bool:
    feedback = event.get("promptFeedback")
    return (
        any(each.get("finishReason") for each in _objects(event, "candidates"))
        or (isinstance(feedback, dict) and bool(feedback.get("blockReason")))
        or _is_error(event)
    )


def _gemini_begins(event: Native, before: Extent) -> bool:
    new = _gemini_id(event)
    return before.ended and new not in ("", before.identity)


def _gemini_adds(event: Native) -> bool:
    return bool(event.get("candidates") or event.get("promptFeedback"))


_RULES = {
    "responses": _Rules(_response_id, _response_ends, _response_begins),
    "chat": _Rules(_chunk_id, _chunk_ends, _chunk_begins, chunk_adds, ends_at_done=True),
    "messages": _Rules(_message_id, _message_ends, _message_begins),
    "gemini": _Rules(_gemini_id, _gemini_ends, _gemini_begins, _gemini_adds),
}

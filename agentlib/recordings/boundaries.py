"""Which API a recording speaks, and where in it the next response begins.

One row per API holds its rules, by the names in its own reference: "Responses, streaming events"
and "Chat Completions, streaming" (OpenAI), "Streaming messages" (Anthropic), "Generating content"
(Google).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

Provider: TypeAlias = Literal["responses", "chat", "messages", "gemini", "unknown"]
Native: TypeAlias = Mapping[str, Any]


class Start(NamedTuple):
    """A further response begins at `position`; `cut` where the one before it had not ended."""

    position: int
    cut: bool


@dataclass(slots=True)
class _SoFar:
    """What is known of the response that is being read."""

    events: int = 0
    identity: str = ""
    ended: bool = False
    done: bool = False


class _Rules(NamedTuple):
    identity: Callable[[Native], str]
    ends: Callable[[Native], bool]
    begins: Callable[[Native, _SoFar], bool]


def detect_provider(events: Iterable[Native]) -> Provider:
    """Return the API whose words the first telling event uses, "unknown" where none tells.

    `error` and `ping` tell little: any server may send them. They count where nothing else does.
    """
    hint: Provider = "unknown"
    for event in events:
        kind = event.get("type")
        if isinstance(kind, str):
            if kind.startswith("response."):
                return "responses"
            if kind.startswith(("message_", "content_block_")):
                return "messages"
            if hint == "unknown":
                hint = _HINTS.get(kind, hint)
        if "choices" in event or event.get("object") == "chat.completion.chunk":
            return "chat"
        if not _GEMINI.isdisjoint(event):
            return "gemini"
    return hint


def find_starts(provider: Provider, events: Iterable[Native | None]) -> list[Start]:
    """Return where each response after the first begins; None among the events is `[DONE]`."""
    rules = _RULES.get(provider)
    starts: list[Start] = []
    if rules is None:
        return starts
    so_far = _SoFar()
    for position, event in enumerate(events):
        if event is None:
            so_far.done = True
            continue
        if so_far.events and rules.begins(event, so_far):
            starts.append(Start(position, cut=not so_far.ended))
            so_far = _SoFar()
        so_far.events += 1
        so_far.identity = so_far.identity or rules.identity(event)
        so_far.ended = so_far.ended or rules.ends(event)
    return starts


_HINTS: dict[str, Provider] = {"error": "responses", "ping": "messages"}
# A chunk of Gemini has no type. Each of these stands in one alone.
_GEMINI = frozenset(("candidates", "promptFeedback", "usageMetadata"))
_TERMINAL = frozenset(
    ("response.completed", "response.failed", "response.incomplete", "error"),
)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _response_id(event: Native) -> str:
    response = event.get("response")
    return _text(response.get("id")) if isinstance(response, dict) else ""


def _response_ends(event: Native) -> bool:
    return _text(event.get("type")) in _TERMINAL


def _response_begins(event: Native, so_far: _SoFar) -> bool:
    if event.get("type") != "response.created":
        return False
    new = _response_id(event)
    return so_far.ended or bool(new and so_far.identity and new != so_far.identity)


def _chunk_id(event: Native) -> str:
    return _text(event.get("id"))


def _choices(event: Native) -> list[Any]:
    choices = event.get("choices")
    return choices if isinstance(choices, list) else []


def _chunk_ends(event: Native) -> bool:
    return any(isinstance(c, dict) and c.get("finish_reason") for c in _choices(event))


def _chunk_begins(event: Native, so_far: _SoFar) -> bool:
    # After the finish reason a chunk without choices still reports the usage of this response.
    other = _chunk_id(event) != so_far.identity
    return so_far.done or (so_far.ended and other and bool(_choices(event)))


def _message_id(event: Native) -> str:
    message = event.get("message")
    return _text(message.get("id")) if isinstance(message, dict) else ""


def _message_ends(event: Native) -> bool:
    return event.get("type") in ("message_stop", "error")


def _message_begins(event: Native, so_far: _SoFar) -> bool:
    return so_far.ended and event.get("type") == "message_start"


def _gemini_id(event: Native) -> str:
    return _text(event.get("responseId"))


def _gemini_ends(event: Native) -> bool:
    candidates = event.get("candidates")
    found = candidates if isinstance(candidates, list) else []
    feedback = event.get("promptFeedback")
    return (
        any(isinstance(each, dict) and each.get("finishReason") for each in found)
        or (isinstance(feedback, dict) and bool(feedback.get("blockReason")))
        or bool(event.get("error"))
    )


def _gemini_begins(event: Native, so_far: _SoFar) -> bool:
    new = _gemini_id(event)
    return bool(new and so_far.identity and new != so_far.identity)


_RULES: dict[Provider, _Rules] = {
    "responses": _Rules(_response_id, _response_ends, _response_begins),
    "chat": _Rules(_chunk_id, _chunk_ends, _chunk_begins),
    "messages": _Rules(_message_id, _message_ends, _message_begins),
    "gemini": _Rules(_gemini_id, _gemini_ends, _gemini_begins),
}

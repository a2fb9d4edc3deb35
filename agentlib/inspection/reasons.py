"""The reasons for which servers say that a response ended, and what each one means.

Those that complete a response stand in `agentlib.providers.finish_reasons`. The first part of the
table here has what else the APIs' own references name: OpenAI's "Chat Completions" and
"Responses", Anthropic's "Handling stop reasons", Google's `FinishReason`. The second has what
servers that copy an API were seen to send. A reason in none of them is an unknown one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from agentlib.providers.compat_chat import OTHER_WORDS
from agentlib.providers.finish_reasons import COMPLETING

Kind: TypeAlias = Literal["complete", "retired", "short", "paused", "failed", "other"]


class Reason(NamedTuple):
    """What a reason means: its kind, and a few words for a reader."""

    kind: Kind
    meaning: str


_LIMIT = "its limit of output tokens was reached"
_CONTEXT = "its context was full"
_FILTER = "a filter stopped it"
_BROKE = "the server broke off"
_REFUSED = "the model refused"
_PAUSED = "it waits to be sent back, and goes on"

REASONS: dict[str, Reason] = {
    "function_call": Reason("retired", "a call in the form that Chat has retired"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens"), Reason("short", _LIMIT)),
    "MAX_TOKENS": Reason("short", _LIMIT),
    "model_context_window_exceeded": Reason("short", _CONTEXT),
    "content_filter": Reason("short", _FILTER),
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "SPII"), Reason("short", _FILTER)),
    **dict.fromkeys(("PROHIBITED_CONTENT", "LANGUAGE"), Reason("short", _FILTER)),
    "refusal": Reason("short", _REFUSED),
    "pause_turn": Reason("paused", _PAUSED),
    "compaction": Reason("paused", "its context was summed up; " + _PAUSED),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "OTHER"), Reason("failed", _BROKE)),
} | {
    # In the field: Mistral, Zhipu, Amazon Bedrock, Azure.
    "model_length": Reason("short", _CONTEXT),
    "sensitive": Reason("short", _FILTER),
    "guardrail_intervened": Reason("short", _FILTER),
    "content_filtered": Reason("short", _FILTER),
    "safety": Reason("short", _FILTER),
    # DeepSeek, Zhipu, OpenRouter, vLLM, SGLang.
    "insufficient_system_resource": Reason("failed", "the server ran out of resources"),
    "network_error": Reason("failed", _BROKE),
    "error": Reason("failed", _BROKE),
    **dict.fromkeys(("abort", "aborted", "cancelled"), Reason("failed", "it was cancelled")),
}


def meaning(stop: str, provider: str) -> Reason | None:
    """Return what the reason `stop` means where this API's server gave it, None if unknown.

    A word of another API is one in other words, where it is known to which of Chat's it stands.
    """
    if provider == "chat" and stop in OTHER_WORDS:
        return Reason("other", f"it stands for {OTHER_WORDS[stop]}")
    complete = stop in COMPLETING.get(provider, ())
    return Reason("complete", "it is complete") if complete else REASONS.get(stop)

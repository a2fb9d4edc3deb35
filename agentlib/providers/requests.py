"""What the request encoders of all providers share: bounds, and what none of them can carry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentlib.conversation import RejectedCall, ToolCall
from agentlib.errors import EncodingError, OpenFailure
from agentlib.jsonvalues import dumps, quote

# Two thousand tokens hold an answer and a patch; the bill of a runaway stays small.
MAX_OUTPUT_TOKENS = 2048

# The form of a function's name that OpenAI's and Anthropic's API references both give.
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

# What a request can do without, and how a server that does not take it refuses it in words.
OPTIONAL = {"include": re.compile(r"\binclude\b|encrypted[ _]content", re.IGNORECASE)}


def bounded(most_output_tokens: int | None) -> int:
    """Return how many output tokens to ask for, where so many are allowed; None is no bound."""
    if most_output_tokens is None:
        return MAX_OUTPUT_TOKENS
    return min(MAX_OUTPUT_TOKENS, most_output_tokens)


def refused_field(request: Mapping[str, Any], failure: OpenFailure) -> str | None:
    """Return the field of OPTIONAL that `failure`, a 400, refuses in `request`; None for none."""
    if failure.status != 400:
        return None
    named = (failure.param or "").partition("[")[0]
    for name, words in OPTIONAL.items():
        if name in request and (named == name or (not named and words.search(failure.reason))):
            return name
    return None


def argument_text(call: ToolCall | RejectedCall) -> str:
    """Return a call's arguments as text: an object as JSON, a rejected one's as they came.

    Raises EncodingError for what is no JSON value, such as NaN or a set.
    """
    if isinstance(call, RejectedCall):
        return call.arguments
    try:
        return dumps(call.arguments)
    except (TypeError, ValueError, RecursionError) as error:
        where = f"call {quote(call.call_id)} of {quote(call.name)}"
        raise EncodingError(f"{where}: its arguments are not JSON: {error}") from error


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Say whether the schema keeps the rules of strict mode at its top, where they bind us."""
    properties = schema.get("properties", {})
    return (
        schema.get("type") == "object"
        and schema.get("additionalProperties") is False
        and sorted(schema.get("required", [])) == sorted(properties)
        and all(isinstance(p, dict) for p in properties.values())
        and all(set(p) <= {"type", "description"} for p in properties.values())
        and all(p.get("type") == "string" for p in properties.values())
    )


def refuse_name(name: str, where: str) -> None:
    """Raise EncodingError, naming `where` it stands, for a tool name that no API takes."""
    if not TOOL_NAME.fullmatch(name):
        raise EncodingError(
            f"{where}: tool name {quote(name)} cannot be sent; "
            "expected 1 to 64 letters, digits, - or _"
        )


def refuse_surrogates(text: str, number: int) -> None:
    """Raise EncodingError where the text of entry `number` cannot be written as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EncodingError(f"entry {number}: its text is not valid Unicode: {error}") from error

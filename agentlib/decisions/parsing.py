"""The parse boundary: a text in, one decision out, or one error, worded for the model.

The text is one JSON object and nothing else. No fence is stripped, no cut text is completed, and
nothing is looked for inside prose: a guess that is right nine times is wrong the tenth, and then
a tool runs. The rules of the JSON are those of `agentlib.jsonvalues`.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from agentlib.decisions.context import DecisionContext, problems
from agentlib.decisions.failures import DecisionParseError
from agentlib.decisions.model import ModelDecision, ToolCall, excerpt
from agentlib.jsonvalues import JSON_NAMES, StrictJSONError, strict_loads

# A decision holds one call or one answer; what is longer is a runaway.
MAX_DECISION_CHARACTERS = 64_000
# The client's own channel: what a model writes there is dropped.
OWN_FIELDS = ("retry_trace", "usage")


def parse_decision(raw: str | bytes, context: DecisionContext | None = None) -> ModelDecision:
    """Return the decision that `raw` is, with no retry trace and no usage.

    With a `context`, a tool must be admitted and its input pass the tool's own schema. Raises
    DecisionParseError, and nothing else whatever the input is.
    """
    text = _decoded(raw)
    if len(text) > MAX_DECISION_CHARACTERS:
        seen = f"{len(text):,}"
        raise _error(f"expected at most {MAX_DECISION_CHARACTERS:,} characters, saw {seen}", text)
    try:
        value = strict_loads(text)
    except StrictJSONError as error:
        raise _error(f"expected one JSON object and nothing else: {error}", text) from error
    except RecursionError:
        raise _error("expected one JSON object: this one nests too deep", text) from None
    return decision_of(value, text, context)


def decision_of(value: Any, text: str, context: DecisionContext | None = None) -> ModelDecision:
    """Return the decision that plain JSON `value` is; `text` is what it was read from.

    Raises DecisionParseError.
    """
    if not isinstance(value, dict):
        raise _error(f"expected a JSON object, saw {JSON_NAMES[type(value)]}", text)
    fields = {name: inner for name, inner in value.items() if name not in OWN_FIELDS}
    try:
        decision = ModelDecision.model_validate(fields)
    except ValidationError as error:
        raise _error(problems(error), text) from error
    wrong = None
    if context is not None and isinstance(decision.action, ToolCall):
        wrong = context.problem(decision.action)
    if wrong is not None:
        raise _error(wrong, text)
    return decision


def _decoded(raw: object) -> str:
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, bytes):
        raise _error(f"expected text, saw {type(raw).__name__}", "")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = raw.decode("utf-8", "backslashreplace")
        raise _error(f"expected UTF-8: byte {error.start + 1} is none", shown) from error


def _error(reason: str, text: str) -> DecisionParseError:
    return DecisionParseError(reason, excerpt=excerpt(text))

"""One reply of the server as a decision, or as one of the four failures. Pure.

Streamed or whole, a reply passes the same translator and the same gate: a whole one is read as a
stream of one chunk. What they refuse is then classed by where it was found:

    found                                     it is
    by the gate, in a reply that completed    parse: the model said it, and can mend it
    in bytes that stopped, or were damaged    transport: the model has nothing to do with it
    in a body of nothing                      empty: a transport failure with status 200
    in events that break the API's rules      capability, if streamed: the server cannot stream this

In doubt it is a transport failure, which is asked again unchanged and harms nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentlib.assembly import Decision, Limits
from agentlib.conversation import RejectedCall, ToolCall
from agentlib.decisions.context import RESERVED, DecisionContext
from agentlib.decisions.failures import (
    DecisionFailure,
    DecisionParseError,
    EmptyResponseError,
    StreamingUnsupportedError,
    TransportError,
)
from agentlib.decisions.model import DecisionUsage, ModelDecision, excerpt
from agentlib.decisions.parsing import decision_of, parse_decision
from agentlib.errors import OpenFailure
from agentlib.failures import (
    GateRejected,
    LimitExceeded,
    ProtocolViolation,
    ProviderStopped,
    ResponseFailure,
    StreamCut,
)
from agentlib.jsonvalues import StrictJSONError, loads_unique, quote, thaw
from agentlib.openai_transport import BLANK
from agentlib.openai_whole import WholeReply
from agentlib.providers.chat import COMPLETE, read_usage
from agentlib.providers.fields import said
from agentlib.providers.requests import argument_text
from agentlib.reader import ResponseReader

EMPTY = "the server answered 200 with an empty, blank or all-NUL body"
# A refusal to stream names streaming and refuses it. An upstream server's failure does neither.
_STREAMING = re.compile(r"\bstream(?:s|ed|ing|_options)?\b", re.IGNORECASE)
_SAYS_NO = re.compile(
    r"(?:\bnot|n't) (?:be |yet )?(?:support|allow|implement|available|compatible|possible|permit)"
    r"|\b(?:unsupported|incompatible|disabled|can't|cannot|must be (?:false|off|disabled))\b",
    re.IGNORECASE,
)
# Statuses with another meaning: the key, the route, the time, the rate.
_OTHER_STATUSES = frozenset({401, 402, 403, 404, 408, 409, 429})


@dataclass(slots=True)
class Seen:
    """What was seen of a reply besides the failure that it came to.

    `blank` is whether no byte was anything but white space or NUL, `head` the first bytes, and
    `events` how many were decoded. `finish_reason` is the model's, where it came; `fault` is the
    failure that reading the bytes came to, if it did. `whole` is what came in place of a stream.
    """

    blank: bool = True
    head: bytes = b""
    events: int = 0
    finish_reason: str | None = None
    fault: ResponseFailure | None = None
    whole: WholeReply | None = None


def opening_failure(failure: OpenFailure, *, streamed: bool) -> DecisionFailure:
    """Return what an opening that failed means: a 4xx that refuses to stream, or transport."""
    status = failure.status or 0
    of_streaming = _STREAMING.search(failure.reason) and _SAYS_NO.search(failure.reason)
    if streamed and 400 <= status < 500 and status not in _OTHER_STATUSES and of_streaming:
        return StreamingUnsupportedError(failure.reason)
    return TransportError(
        failure.reason,
        retryable=failure.retryable,
        status=failure.status,
        code=failure.code,
        retry_after=failure.retry_after,
        should_retry=failure.should_retry,
        sent=failure.sent,
    )


def reply_failure(failure: ResponseFailure, seen: Seen, *, streamed: bool) -> DecisionFailure:
    """Return what a reply means that began with a status of success and released nothing."""
    usage, reason = DecisionUsage.of(failure.usage), str(failure)
    if seen.whole is not None:
        return _in_place_of_a_stream(seen.whole)
    if seen.fault is not None:
        return TransportError(reason, usage=usage)
    if isinstance(failure, GateRejected | LimitExceeded):
        return _told(failure, usage)
    if isinstance(failure, ProviderStopped) and seen.finish_reason is not None:
        # A stream that announces calls, and sends none, has lost them.
        lost = streamed and seen.finish_reason in COMPLETE
        return StreamingUnsupportedError(reason, usage=usage) if lost else _told(failure, usage)
    if isinstance(failure, ProtocolViolation) and streamed:
        return StreamingUnsupportedError(reason, usage=usage)
    if isinstance(failure, StreamCut) and seen.blank:
        return EmptyResponseError(EMPTY)
    if isinstance(failure, StreamCut) and streamed and _is_json(seen):
        shown = quote(seen.head.decode("utf-8", "replace"))
        return StreamingUnsupportedError(f"expected events, saw JSON: {shown}")
    return TransportError(reason, usage=usage)


def read_decision(
    decision: Decision, context: DecisionContext, *, native_tools: bool
) -> ModelDecision:
    """Return the one action that a released reply holds, with the usage of this reply.

    Raises DecisionParseError where it holds none, several, or one that is not admitted.
    """
    usage = DecisionUsage.of(decision.usage)
    try:
        read = _read_native if native_tools else _read_envelope
        return read(decision, context).model_copy(update={"usage": usage})
    except DecisionParseError as failure:
        failure.usage = usage
        raise


def read_whole(
    reply: WholeReply,
    context: DecisionContext,
    *,
    native_tools: bool,
    limits: Limits | None = None,
    compat: Iterable[str] = (),
) -> ModelDecision:
    """Return the decision of a whole reply. Raises a DecisionFailure."""
    body = _completion(reply)
    chunk, finish_reason = _as_chunk(body)
    catalog = context.catalog(native_tools=native_tools)
    reader = ResponseReader("chat", catalog, limits, compat=compat)
    try:
        decision = reader.accept(chunk) or reader.end()
    except ResponseFailure as failure:
        seen = Seen(blank=False, events=1, finish_reason=finish_reason)
        raise reply_failure(failure, seen, streamed=False) from failure
    if decision is None:
        raise AssertionError("a reply that ended without a decision has failed")
    return read_decision(decision, context, native_tools=native_tools)


def _read_envelope(decision: Decision, context: DecisionContext) -> ModelDecision:
    if decision.refusal:
        raise _refused(decision)
    return parse_decision(decision.text, context)


def _read_native(decision: Decision, context: DecisionContext) -> ModelDecision:
    if decision.refusal and not decision.calls:
        raise _refused(decision)
    shown = "\n".join([*([decision.text] if decision.text else []), *map(_shown, decision.calls)])
    if len(decision.calls) != 1:
        names = ", ".join(quote(call.name) for call in decision.calls) or "none"
        reason = f"expected exactly one function call, saw {len(decision.calls)}: {names}"
        raise DecisionParseError(reason, excerpt=excerpt(shown))
    (call,) = decision.calls
    return decision_of({"thought": decision.text, "action": _action(call)}, shown, context)


def _action(call: ToolCall) -> dict[str, Any]:
    arguments = thaw(call.arguments)
    if call.name in RESERVED:
        return {**arguments, "kind": call.name}
    return {"kind": "tool", "name": call.name, "input": arguments}


def _refused(decision: Decision) -> DecisionParseError:
    reason = "expected a decision, saw a refusal"
    return DecisionParseError(reason, excerpt=excerpt(decision.refusal))


def _told(failure: ResponseFailure, usage: DecisionUsage) -> DecisionParseError:
    reason = failure.reason
    if failure.cut_by_length:
        reason = "the reply was cut at the limit of output tokens: use fewer words"
    shown = "\n".join(map(_shown, failure.calls))
    return DecisionParseError(reason, excerpt=excerpt(shown), usage=usage)


def _shown(call: ToolCall | RejectedCall) -> str:
    return f"{call.name}({argument_text(call)})"


def _in_place_of_a_stream(reply: WholeReply) -> DecisionFailure:
    try:
        body = _completion(reply)
    except TransportError as failure:
        return failure
    reason = f"expected a stream of events, saw a whole reply of type {quote(reply.media_type)}"
    return StreamingUnsupportedError(reason, usage=_billed(body))


def _completion(reply: WholeReply) -> dict[str, Any]:
    if not reply.body.strip(BLANK):
        raise EmptyResponseError(EMPTY)
    try:
        body = loads_unique(_text(reply.body))
    except StrictJSONError as error:
        seen = quote(reply.media_type)
        raise TransportError(f"expected one JSON object, saw content of type {seen}") from error
    if not isinstance(body, dict):
        raise TransportError("expected one JSON object, saw another JSON value")
    problem = body.get("error")
    if problem:
        code = problem.get("code") if isinstance(problem, dict) else None
        known = code if isinstance(code, str) else None
        reason = f"the server answered 200 with an error: {said(problem)}"
        raise TransportError(reason, code=known, usage=_billed(body))
    return body


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        start = error.start
    # Raised here, it leaves the first one behind, which holds the whole body.
    raise StrictJSONError(f"it is no UTF-8 from byte {start + 1:,} on")


def _as_chunk(body: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    # What a stream spreads over many deltas stands here in one.
    chunk, choices = dict(body), body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return chunk, None
    first = dict(choices[0])
    first["delta"] = first.pop("message", None)
    chunk["choices"] = [first, *choices[1:]]
    reason = first.get("finish_reason")
    return chunk, reason if isinstance(reason, str) else None


def _billed(body: Mapping[str, Any]) -> DecisionUsage:
    usage = body.get("usage")
    return DecisionUsage.of(read_usage(usage) if isinstance(usage, dict) else None)


def _is_json(seen: Seen) -> bool:
    return not seen.events and seen.head.lstrip()[:1] in (b"{", b"[")

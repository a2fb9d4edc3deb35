"""The retries of one decision, without any input or output: what to send, and what comes of it.

A driver asks for the `request`, sends it, and reports back: `succeed`, or `fail`, which returns
the wait before the next one. So a blocking client, an async one and a scripted one keep the
same rules:

    failure                    the next request               bounded by
    DecisionParseError         adds what was wrong            max_parse_retries
    TransportError             is the same, after a wait      transport_max_retries
    StreamingUnsupportedError  is the same, not streamed      once

Both bounds hold for the whole decision, so it costs at most the sum of them and two requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agentlib.decisions.context import DecisionContext
from agentlib.decisions.failures import (
    DecisionAttempt,
    DecisionFailure,
    DecisionParseError,
    EmptyResponseError,
    Result,
    StreamingUnsupportedError,
    TransportError,
)
from agentlib.decisions.model import DecisionRetryNote, DecisionUsage, ModelDecision
from agentlib.decisions.prompt import build_request, tell
from agentlib.providers.requests import MAX_OUTPUT_TOKENS
from agentlib.retry import PATIENT, Verdict

RESULTS: dict[type[DecisionFailure], Result] = {
    DecisionParseError: "parse",
    TransportError: "transport",
    EmptyResponseError: "empty",
    StreamingUnsupportedError: "capability",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """What stays the same over all requests of a client."""

    model: str
    native_tools: bool = True
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    max_parse_retries: int = 2
    transport_max_retries: int = 2


class Attempts:
    """The requests of one decision, in order, as `log`. `streaming` is how the next is sent."""

    def __init__(
        self,
        context: DecisionContext,
        rules: Rules,
        random: Callable[[], float],
        log: list[DecisionAttempt],
        *,
        streaming: bool,
    ) -> None:
        self.context = context
        self.streaming = streaming
        self.log = log
        self._rules = rules
        self._random = random
        # Nothing of a lost reply was carried out, nothing was stored and no tool of the provider
        # ran: to ask again costs tokens, and does nothing twice.
        openings = rules.transport_max_retries + 1
        self._policy = replace(PATIENT, openings=openings, perhaps_sent="always")
        self._notes: list[DecisionRetryNote] = []
        self._transport_failures = 0
        self._told = ""

    def request(self) -> dict[str, Any]:
        """Return the body of the next request. Raises EncodingError where nothing can carry it."""
        return build_request(
            self._rules.model,
            self.context,
            self._notes,
            native_tools=self._rules.native_tools,
            stream=self.streaming,
            max_output_tokens=self._rules.max_output_tokens,
        )

    def succeed(self, decision: ModelDecision) -> ModelDecision:
        """Return the decision with its trace, and the usage of all requests.

        `decision.usage` is what its own request was billed.
        """
        action = decision.describe(interactive=self.context.interactive)
        self._note("decision", action, decision.usage)
        known = {"retry_trace": tuple(self._notes), "usage": self._total()}
        return decision.model_copy(update=known)

    def fail(self, failure: DecisionFailure) -> float:
        """Return the seconds to wait before the next request.

        Raises `failure`, with the usage of all requests, where there is no further one.
        """
        wait, why = self._next(failure)
        if why:
            failure.reason = f"{failure.reason}; {why}"
            failure.args = (failure.reason,)
        self._note(RESULTS[type(failure)], failure.reason, failure.usage, failure, wait)
        if wait is None:
            failure.usage = self._total()
            failure.attempts = tuple(self.log)
            raise failure
        if isinstance(failure, DecisionParseError):
            note = DecisionRetryNote(problem=failure.reason, excerpt=failure.excerpt)
            self._notes.append(note)
            self._told = tell(note, native_tools=self._rules.native_tools)
        if isinstance(failure, StreamingUnsupportedError):
            self.streaming = False
        return wait

    def _next(self, failure: DecisionFailure) -> Verdict:
        if isinstance(failure, DecisionParseError):
            return Verdict(0.0 if len(self._notes) < self._rules.max_parse_retries else None)
        if isinstance(failure, StreamingUnsupportedError):
            return Verdict(0.0 if self.streaming else None)
        if not isinstance(failure, TransportError):
            return Verdict(None)
        self._transport_failures += 1
        return self._policy.judge(self._transport_failures, failure, self._random)

    def _note(
        self,
        result: Result,
        reason: str,
        usage: DecisionUsage | None,
        failure: DecisionFailure | None = None,
        wait: float | None = None,
    ) -> None:
        attempt = DecisionAttempt(
            number=len(self.log) + 1,
            result=result,
            reason=reason,
            usage=usage or DecisionUsage.of(None),
            streamed=self.streaming,
            told=self._told,
            excerpt=getattr(failure, "excerpt", ""),
            wait=wait,
        )
        self.log.append(attempt)

    def _total(self) -> DecisionUsage | None:
        return DecisionUsage.total(attempt.usage for attempt in self.log)

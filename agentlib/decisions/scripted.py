"""A client that answers from a script: for tests, for lessons, and without any network."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, TypeAlias

from agentlib.decisions.attempts import Attempts, Rules
from agentlib.decisions.client import ModelClient
from agentlib.decisions.context import DecisionContext
from agentlib.decisions.failures import DecisionAttempt, DecisionFailure
from agentlib.decisions.model import DecisionUsage, ModelDecision
from agentlib.decisions.parsing import parse_decision

Reply: TypeAlias = str | bytes | ModelDecision | DecisionFailure


class ScriptedModelClient(ModelClient):
    """Answers request n by reply n: text is parsed, a decision returned, a failure raised.

    It keeps the rules of a real client, retries included, but waits for nothing and talks the
    JSON envelope. `requests` are the bodies that a server would have seen, and `attempts` those of
    the latest decision. Raises LookupError where the script has ended.
    """

    def __init__(
        self,
        replies: Iterable[Reply],
        *,
        max_parse_retries: int = 2,
        transport_max_retries: int = 2,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.attempts: list[DecisionAttempt] = []
        self._replies = tuple(replies)
        self._rules = Rules(
            "scripted",
            native_tools=False,
            max_parse_retries=max_parse_retries,
            transport_max_retries=transport_max_retries,
        )

    def decide(self, context: DecisionContext) -> ModelDecision:
        """Return one decision; see ModelClient."""
        log = self.attempts = []
        turn = Attempts(context, self._rules, lambda: 0.5, log, streaming=False)
        while True:
            self.requests.append(turn.request())
            try:
                return turn.succeed(self._answer(context))
            except DecisionFailure as failure:
                turn.fail(failure)

    def _answer(self, context: DecisionContext) -> ModelDecision:
        number = len(self.requests)
        if number > len(self._replies):
            raise LookupError(f"expected at most {len(self._replies)} requests, saw another")
        reply = self._replies[number - 1]
        if isinstance(reply, DecisionFailure):
            raise copy(reply)
        if isinstance(reply, ModelDecision):
            return reply.model_copy(update={"usage": reply.usage or DecisionUsage.of(None)})
        return parse_decision(reply, context)

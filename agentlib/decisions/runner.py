"""A small loop over a ModelClient: one decision a turn, carried out, until the run has an end.

    the decision             what the runner does
    a tool                   runs it: its result, or its ToolError, is what the model sees next
    a final answer           asks the verifier: solved, or what is wrong with it is seen next
    a question               asks the user: the answer is seen next; without a user it is blocked

Any other error is a failure of the system, which the model cannot mend: it ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from agentlib.decisions.client import ModelClient
from agentlib.decisions.context import DecisionContext, Observation
from agentlib.decisions.model import AskUser, FinalAnswer, ModelDecision
from agentlib.jsonvalues import dumps
from agentlib.runtime.journal import Journal, MemoryJournal
from agentlib.runtime.workspace import ToolError

RunEnd: TypeAlias = Literal["solved", "blocked", "failed", "exhausted"]


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """One turn: the tools that were admitted, the decision, and what came of it."""

    admitted: tuple[str, ...]
    decision: ModelDecision
    result: str


@dataclass(frozen=True, slots=True)
class DecisionRun:
    """How a run ended, and its turns. `text` is the answer, the question, or what failed."""

    end: RunEnd
    text: str
    steps: tuple[DecisionStep, ...]


@dataclass(frozen=True, slots=True)
class DecisionRunner:
    """Runs decisions of `client` until one ends the run, at most `turns` of them.

    `functions` are the tools' own, by name, each called with its validated input. `verify` returns
    what is wrong with a proposed answer, or None. `admit` names the tools of the phase that a
    context is in; every one, unless it is given. `ask` asks the user; None is nobody there.
    `journal` claims each turn before it acts, and records its result and its retry trace.
    """

    client: ModelClient
    functions: Mapping[str, Callable[[Any], str]]
    verify: Callable[[str, DecisionContext], str | None]
    admit: Callable[[DecisionContext], Iterable[str]] | None = None
    ask: Callable[[str], str] | None = None
    journal: Journal = field(default_factory=MemoryJournal)
    turns: int = 10

    async def run(self, context: DecisionContext, run_id: str) -> DecisionRun:
        """Return how the run ended; `run_id` is its name in the journal. Raises nothing."""
        context = replace(context, interactive=self.ask is not None)
        steps: list[DecisionStep] = []
        for number in range(1, self.turns + 1):
            try:
                asked = self._in_phase(context)
                decision = await self.client.adecide(asked)
                end, text = self._carry_out(decision, asked, run_id, f"turn {number}")
            except Exception as error:  # noqa: BLE001 - whatever failed, a run ends and says so
                return DecisionRun("failed", f"{type(error).__name__}: {error}", tuple(steps))
            steps.append(DecisionStep(tuple(each.name for each in asked.tools), decision, text))
            if end is not None:
                return DecisionRun(end, text, tuple(steps))
            seen = Observation(decision.action, text, decision.thought)
            context = replace(context, observations=(*context.observations, seen))
        return DecisionRun("exhausted", f"no end after {self.turns} turns", tuple(steps))

    def _in_phase(self, context: DecisionContext) -> DecisionContext:
        names = {tool.name for tool in context.tools} if self.admit is None else self.admit(context)
        return replace(context, tools=tuple(tool for tool in context.tools if tool.name in names))

    def _carry_out(
        self, decision: ModelDecision, asked: DecisionContext, run_id: str, turn: str
    ) -> tuple[RunEnd | None, str]:
        # A turn that was claimed and has no result may have acted: nobody takes it again.
        if not self.journal.claim(run_id, turn):
            raise ToolError(f"{turn} of {run_id} was begun before, and may have acted")
        end, text = self._act(decision, asked)
        trace = [note.model_dump() for note in decision.retry_trace]
        self.journal.record(run_id, turn, dumps({"result": text, "retry_trace": trace}))
        return end, text

    def _act(self, decision: ModelDecision, asked: DecisionContext) -> tuple[RunEnd | None, str]:
        action = decision.action
        if isinstance(action, FinalAnswer):
            wrong = self.verify(action.answer, asked)
            return ("solved", action.answer) if wrong is None else (None, f"not accepted: {wrong}")
        if isinstance(action, AskUser):
            return (None, self.ask(action.question)) if self.ask else ("blocked", action.question)
        tool, problem = asked.tool(action.name), asked.problem(action)
        if tool is None or problem is not None:
            return None, f"error: {problem}"
        try:
            return None, self.functions[action.name](tool.validate(action.input))
        except ToolError as error:
            return None, f"error: {error}"

"""The bounded loop: ask for a decision, execute its calls, append their results, ask again.

It learns of a model only through `complete(history, tools)`, and of tools only through their
executor. Every run ends in one Outcome; that the model finished does not mean that the task is
solved, and only a verified answer says so. Whatever happens, the history stays valid: a message
with calls and the results of all of them are appended together, never one without the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio

from agentlib.assembly import Decision
from agentlib.clock import Clock, LoopClock
from agentlib.conversation import Entry, Message, ToolCall, ToolResult, user
from agentlib.errors import AgentlibError, EncodingError, OpenFailure
from agentlib.failures import ResponseFailure
from agentlib.jsonvalues import dumps, visible
from agentlib.runtime.batch import Batch, recorded
from agentlib.runtime.call_ids import renumbered, renumbered_rejected
from agentlib.runtime.events import (
    ApprovalNeeded,
    BudgetWarning,
    Executed,
    Failed,
    LoopEvent,
    Repaired,
    Turned,
    TurnStarted,
)
from agentlib.runtime.evidence import receipts, unbacked
from agentlib.runtime.execution import Execution
from agentlib.runtime.host import Host
from agentlib.runtime.journal import claim_resumption
from agentlib.runtime.limits import Budget, RepairReason, RunLimits, billed
from agentlib.runtime.models import Model, complete
from agentlib.runtime.outcomes import (
    Cancelled,
    DeadlineExceeded,
    Exhausted,
    Finished,
    HostFailed,
    Outcome,
    ProviderFailed,
    ResumedBefore,
    WaitingForApproval,
)
from agentlib.runtime.parts import (
    APPROVAL,
    CHECKS,
    CLAIM,
    COMMIT,
    MODEL,
    OBSERVE,
    VERIFY,
    PartFailed,
    ask,
    described,
    wait_for,
)
from agentlib.runtime.publication import Committed, Kind, Publication
from agentlib.runtime.state import RunState, StateError, refuse_changed
from agentlib.stopwatch import Stopwatch

NEVER = float("inf")
CUT = "Your response reached its output limit and was discarded. Answer again, shorter."
DISCARDED = "Your response was discarded, and nothing of it was executed: {}."


class Run:
    """One run: `start` it, or `resume` a saved one; how it ended is in `outcome`.

    `stopwatch` is shared with a model that measures its parts. `observe` is told of each step and
    can influence nothing. `state` is the run itself; its history is valid at any moment.
    """

    def __init__(
        self,
        model: Model,
        host: Host,
        limits: RunLimits | None = None,
        *,
        clock: Clock | None = None,
        stopwatch: Stopwatch | None = None,
        publication: Publication | None = None,
        observe: Callable[[LoopEvent], None] = lambda _: None,
    ) -> None:
        self.state = RunState([])
        self.outcome: Outcome | None = None
        self._model = model
        self._host = host
        self._limits = limits or RunLimits()
        self._clock = clock or LoopClock()
        self._stopwatch = stopwatch or Stopwatch(self._clock)
        self._publication = publication or Publication()
        self._observe = observe
        self._scope = anyio.CancelScope()
        self._reason = ""
        self._begun = 0.0
        self._running = False
        # Whether the text beside the calls went out before them, and the texts that wait for them.
        self._announced = False
        self._held: list[tuple[Kind, str]] = []

    async def start(self, history: Sequence[Entry]) -> Outcome:
        """Run turns on `history` until an outcome.

        Only a cancellation of the caller gets out of here as an exception; `outcome` is then
        Cancelled, and the state is as valid as after any other. Raises StateError while it runs.
        """
        self._refuse_running()
        self.state = RunState(list(history))
        return await self._run({})

    async def resume(self, saved: str, approvals: Mapping[str, bool | str]) -> Outcome:
        """Go on with a run that waited, each waiting call approved (True) or denied, by digest.

        A denial is its reason, or False. Raises StateError where `saved` is no saved run or was
        changed, where an answer is missing or for another call, or where a call is not valid by
        the catalog; nothing was executed then. A run that was resumed before ends at once.
        """
        self._refuse_running()
        state = RunState.from_json(saved, self._host.key)
        state.check()
        if state.pending is None:
            raise StateError("this run does not wait for an approval")
        self.state = state
        refuse_changed(self._host.tools, state.pending)
        try:
            denied = self._denied(state.pending, approvals)
            turn = state.account.turns
            first = ask(CLAIM, claim_resumption, self._host.journal, state.run_id, turn)
            self._publication.committed[:] = state.committed
            self._announced = Committed("narration", state.pending.text) in state.committed[-1:]
            return await (self._run(denied) if first else self._again(state.pending))
        except PartFailed as failed:
            self.outcome = self._host_failed(failed)
            return self.outcome

    def cancel(self, reason: str = "cancelled by the caller") -> None:
        """End the run from outside: it becomes Cancelled, within a second."""
        self._reason = reason
        self._scope.cancel()

    def _refuse_running(self) -> None:
        if self._running:
            raise StateError("this run has not ended yet; make another Run")

    async def _run(self, denied: Mapping[str, str]) -> Outcome:
        self._running, self._begun = True, self._clock.now()
        limit = self._limits.deadline
        left = NEVER if limit is None else limit - self.state.elapsed
        outcome: Outcome | None = None
        try:
            with (
                self._stopwatch.within("host"),
                self._scope,
                self._clock.timer(self._begun + left) as timer,
            ):
                outcome = await self._ended(denied)
        except BaseException:
            self.outcome = self._end(Cancelled, reason="the caller was cancelled, or failed")
            raise
        finally:
            self._running = False
        if outcome is None and timer.expired:
            outcome = self._late("deadline", limit)
        self.outcome = outcome or self._end(Cancelled, reason=self._reason)
        return self.outcome

    async def _ended(self, denied: Mapping[str, str]) -> Outcome:
        try:
            return await self._turns(denied)
        except PartFailed as failed:
            return self._host_failed(failed)
        except Exception as error:  # noqa: BLE001 - whatever failed, a run ends in an outcome
            return self._end(HostFailed, part="run", reason=described(error), failure=error)

    async def _again(self, pending: Message) -> Outcome:
        self.state.settle(recorded(self.state.run_id, pending.calls, self._host.journal))
        self.outcome = self._end(ResumedBefore)
        return self.outcome

    async def _turns(self, denied: Mapping[str, str]) -> Outcome:
        if self.state.pending is not None:
            await self._execute(self.state.pending, denied)
        while True:
            budget = self.state.account.exhausted(self._limits)
            if budget is not None:
                return self._exhausted(budget)
            outcome = await self._turn()
            if outcome is not None:
                return outcome

    async def _turn(self) -> Outcome | None:
        account = self.state.account
        account.turns += 1
        self._tell(TurnStarted(account.turns, len(self.state.history)))
        seconds = self._limits.turn_deadline
        try:
            decision = await self._decide(seconds)
        except (OpenFailure, EncodingError, ResponseFailure) as failure:
            return self._failed(failure)
        except BaseException:
            # Nobody says what a turn used that was interrupted, and it was not nothing.
            account.charge(None, self._limits)
            raise
        if decision is None:
            account.charge(None, self._limits)
            return self._late("turn_deadline", seconds)
        decision = renumbered(decision, self.state.history)
        account.charge(decision.usage, self._limits)
        self._tell(Turned(account.turns, decision))
        return await self._act(decision) if decision.calls else self._answer(decision)

    async def _decide(self, seconds: float | None) -> Decision | None:
        account = self.state.account
        decision: Decision | None = None
        with self._clock.timer(NEVER if seconds is None else self._clock.now() + seconds):
            history, most = tuple(self.state.history), account.most_output_tokens(self._limits)
            with self._stopwatch.within("model"):
                decision = await wait_for(
                    MODEL, complete, self._model, history, self._host.tools, most
                )
        return decision

    async def _act(self, decision: Decision) -> Outcome | None:
        message = self.state.wait_for(decision)
        self._announced = ask(COMMIT, self._publication.announce, decision.text)
        reasons = self._reasons(message)
        if reasons:
            return self._wait(reasons)
        await self._execute(message, {})
        return None

    async def _execute(self, message: Message, denied: Mapping[str, str]) -> None:
        batch = Batch(
            self.state.run_id, message.calls, self._host, self._limits, self._clock, denied
        )
        turn = self.state.account.turns

        def done(execution: Execution) -> None:
            self._tell(Executed(turn, execution))

        def claims(card: ToolCall) -> str | None:
            executions = [*self.state.executions, *batch.executions]
            problem = unbacked(self._host, dumps(card.arguments), executions)
            return None if problem is None else problem.detail

        try:
            with self._stopwatch.within("tool"):
                await batch.execute(done)
            batch.show(claims, done)
        finally:
            self._stopwatch.move(batch.queued, "tool", "queue")
            self.state.settle(batch.executions)
            self._held = [] if self._announced else [("narration", message.text)]
            self._held.append(("refusal", message.refusal))
        if batch.failed is not None:
            raise batch.failed
        self._speak()

    def _speak(self) -> None:
        # The results of the calls are in: what stood beside them is backed by now, or never was.
        while self._held:
            kind, text = self._held[0]
            if unbacked(self._host, text, self.state.executions) is not None:
                self._publication.drop(text)
            elif kind == "narration":
                self._publish(self._publication.narrate, text)
            else:
                self._publish(self._publication.publish, kind, text)
            del self._held[0]

    def _answer(self, decision: Decision) -> Outcome | None:
        message, text = decision.message(), decision.refusal or decision.text
        held = receipts(self._host, self.state.executions)
        if decision.refusal:
            problem = unbacked(self._host, text, self.state.executions)
        else:
            problem = ask(CHECKS, self._host.problem, text, held)
        if problem is not None:
            self._publication.drop(text)
            entries = [message] if text else []
            return self._repair(problem.reason, problem.detail, [*entries, user(problem.detail)])
        self.state.history.append(message)
        self._publish(self._publication.publish, "refusal" if decision.refusal else "answer", text)
        if decision.refusal:
            return self._end(Finished, text=text, verified=False, refused=True)
        verify = self._host.verify
        verified = verify is not None and ask(VERIFY, verify, text, held)
        return self._end(Finished, text=text, verified=verified)

    def _failed(self, failure: AgentlibError) -> Outcome | None:
        account = self.state.account
        self._tell(Failed(account.turns, failure))
        if isinstance(failure, ResponseFailure):
            account.charge(billed(failure), self._limits)
            if self._host.on_malformed == "repair" and (failure.cut_by_length or failure.calls):
                reason: RepairReason = (
                    "cut_by_length" if failure.cut_by_length else "malformed_arguments"
                )
                told = _told(failure, self.state.history)
                return self._repair(reason, failure.reason, told, failure)
        elif isinstance(failure, OpenFailure) and failure.may_have_cost:
            account.charge(None, self._limits)
        return self._end(ProviderFailed, failure=failure)

    def _repair(
        self,
        reason: RepairReason,
        detail: str,
        entries: Sequence[Entry],
        failure: AgentlibError | None = None,
    ) -> Outcome | None:
        repair = self.state.account.repair(self._limits, reason, detail)
        if repair is None:
            return self._exhausted("repairs", failure)
        self.state.history += entries
        self._tell(Repaired(repair))
        return None

    def _exhausted(self, budget: Budget, failure: AgentlibError | None = None) -> Outcome:
        self._tell(BudgetWarning(budget))
        self._publish(self._publication.publish, "fallback", self._host.fallback)
        return self._end(Exhausted, budget=budget, text=self._host.fallback, failure=failure)

    def _late(self, deadline: str, seconds: float | None) -> Outcome:
        component = self._stopwatch.ran_out_in
        return self._end(
            DeadlineExceeded, deadline=deadline, seconds=seconds or 0.0, component=component
        )

    def _wait(self, reasons: Mapping[int, str]) -> Outcome:
        self.state.elapsed += self._clock.now() - self._begun
        self._begun = self._clock.now()
        self.state.committed = list(self._publication.committed)
        waiting, saved = self.state.waiting(reasons), self.state.to_json(self._host.key)
        self._tell(ApprovalNeeded(waiting))
        return self._end(WaitingForApproval, waiting=waiting, saved=saved)

    def _reasons(self, message: Message) -> dict[int, str]:
        reasons = [ask(APPROVAL, self._host.approval, call) for call in message.calls]
        return {place: reason for place, reason in enumerate(reasons) if reason is not None}

    def _denied(self, pending: Message, approvals: Any) -> dict[str, str]:
        waiting = self.state.waiting(self._reasons(pending))
        answers = dict(approvals) if isinstance(approvals, Mapping) else {}
        if not waiting or {each.digest for each in waiting} != set(answers):
            asked = ", ".join(f"{each.call.call_id} {each.digest}" for each in waiting)
            raise StateError(f"expected an answer for each waiting call by its digest: {asked}")
        if not all(isinstance(answer, bool | str) for answer in answers.values()):
            raise StateError("expected each answer to be True, False, or the reason of a denial")
        reasons = {each.call.call_id: answers[each.digest] for each in waiting}
        return {
            call_id: visible(answer) if isinstance(answer, str) else "no reason given"
            for call_id, answer in reasons.items()
            if answer is not True
        }

    def _tell(self, event: LoopEvent) -> None:
        ask(OBSERVE, self._observe, event)

    def _publish(self, how: Callable[..., None], *what: str) -> None:
        ask(COMMIT, how, *what)

    def _host_failed(self, failed: PartFailed) -> Outcome:
        failure = failed.__cause__
        return self._end(HostFailed, part=failed.part, reason=failed.reason, failure=failure)

    def _end(self, kind: type[Any], **rest: Any) -> Outcome:
        self._stopwatch.stop()
        for _, text in self._held:
            self._publication.drop(text)
        self._held.clear()
        outcome: Outcome = kind(
            run_id=self.state.run_id,
            history=tuple(self.state.history),
            account=self.state.account.copy(),
            executions=tuple(self.state.executions),
            committed=tuple(self._publication.committed),
            times=dict(self._stopwatch.seconds),
            **rest,
        )
        return outcome


def _told(failure: ResponseFailure, history: Sequence[Entry]) -> list[Entry]:
    """Return the entries that tell the model why nothing of a response was executed."""
    calls = renumbered_rejected(failure.calls, history)
    if not calls:
        return [user(CUT if failure.cut_by_length else DISCARDED.format(failure.reason))]
    error = dumps({"error": "not executed", "check": failure.check, "reason": failure.reason})
    results = [ToolResult(call.call_id, error) for call in calls]
    return [Message("assistant", rejected=calls), *results]

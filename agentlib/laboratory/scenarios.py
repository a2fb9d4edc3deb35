"""The failure laboratory: scenarios played from opening to tools, offline, and judged.

Each scenario goes through the real opening loop, assembly, gate, bounded loop and tools; only
the transport is a replay and the clock is a mock one. What came of it is compared with what
`fixtures/scenarios.toml` says must come of it: an intended failure is a success of the
laboratory only where nothing was executed that the gate had not released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO

import anyio

from agentlib.clock import MockClock
from agentlib.conversation import user
from agentlib.errors import AgentlibError
from agentlib.failures import ResponseFailure
from agentlib.fixtures import (
    FixtureNotFound,
    Scenario,
    Turn,
    scenario,
    scenario_names,
    tools,
)
from agentlib.jsonvalues import dumps, printable, quote
from agentlib.model import StreamingModel
from agentlib.recordings.replay_transport import Playback, Refusal, ReplayTransport, Scripted
from agentlib.retry import Opening
from agentlib.runtime.events import (
    ApprovalNeeded,
    BudgetWarning,
    Executed,
    Failed,
    Repaired,
    Turned,
    TurnStarted,
)
from agentlib.runtime.host import Host
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Exhausted, HostFailed, Outcome, ProviderFailed
from agentlib.runtime.tools import ToolExecutor
from agentlib.runtime.workspace import Workspace
from agentlib.vocabulary import (
    Completed,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    TextDelta,
    TextDone,
    ToolArgsDelta,
    ToolArgsDone,
    ToolStart,
)
from agentlib.wording import plural

TASK = "The test fails. Find the bug in calculator.py, repair it, and run the test."


@dataclass(frozen=True, slots=True)
class Experiment:
    """One scenario, played: its outcome, and which tools were executed, by name.

    `opened` and `closed` count streams. `source` is calculator.py as it was left.
    """

    scenario: Scenario
    outcome: Outcome
    opened: int
    closed: int
    executed: tuple[str, ...]
    source: str

    @property
    def problems(self) -> tuple[str, ...]:
        """What did not come out as the scenario says; empty where all did."""
        return tuple(_problems(self))


def run_names() -> tuple[str, ...]:
    """Return the names of the scenarios that are runs: at most their last turn is rejected."""
    return tuple(
        name
        for name in scenario_names()
        if all(turn.verdict == "released" for turn in scenario(name).turns[:-1])
    )


def run_lab(name: str, out: TextIO) -> int:
    """Play one scenario, or "all", write what happens to `out`; return the exit status.

    0: each came out as it must. 1: an unexpected success, failure or execution.
    """
    names = run_names() if name == "all" else (name.replace("-", "_"),)

    def write(line: str) -> None:
        out.write(f"{printable(line)}\n")

    wrong = 0
    for each in names:
        chosen = scenario(each)
        if each not in run_names():
            reason = "its first response is rejected, so no run comes to its second"
            raise FixtureNotFound(f"{each} is a recording and no run: {reason}; inspect it instead")
        write(f"{each}: {chosen.title}")
        experiment = anyio.run(play, chosen, write)
        for line in _summary(experiment):
            write(f"  {line}")
        wrong += bool(experiment.problems)
    if len(names) > 1:
        write(f"{plural(len(names), 'scenario')}: {wrong} not as expected")
    return 1 if wrong else 0


async def play(chosen: Scenario, write: Callable[[str], None] = lambda _: None) -> Experiment:
    """Play a scenario on a mock clock; `write` is handed a line for each thing that happens."""
    clock = MockClock()
    transport = ReplayTransport(_script(chosen.turns), clock)

    def tell(happened: Any) -> None:
        write(f"  {describe(happened)}")

    model = StreamingModel(transport, "replay", clock=clock, random=lambda: 0.5, report=tell)
    with Workspace() as workspace:
        executor = ToolExecutor(workspace, allow_execution=True)
        host = Host(tools=tools(), executor=executor)
        limits = RunLimits(turns=len(chosen.turns), parallel_tools=1)
        outcome = await Run(model, host, limits, clock=clock, observe=tell).start([user(TASK)])
        executed = tuple(call.name for call in executor.executed)
        source = workspace.source("calculator.py")
    return Experiment(chosen, outcome, transport.opened, transport.closed, executed, source)


def _script(turns: Iterable[Turn]) -> Iterator[Scripted]:
    for turn in turns:
        response = turn.capture.responses[turn.response - 1]
        for outcome in turn.opens:
            yield Playback(response) if outcome == "200" else Refusal(int(outcome))


def describe(happened: Any) -> str:
    """Return in a few words what happened: an opening, a neutral event, or a step of the loop."""
    return _DESCRIBED[type(happened)](happened)


def _opening(opening: Opening) -> str:
    wait = f"; again after {opening.wait:g} s" if opening.wait is not None else ""
    return f"opening {opening.number}: {opening.outcome}{wait}"


def _turned(turned: Turned) -> str:
    calls = ", ".join(call.name for call in turned.decision.calls)
    return f"turn {turned.turn}: released {calls or 'an answer'}"


def _executed(executed: Executed) -> str:
    call, output = executed.execution.call, executed.execution.output
    return f"executed {call.name} {dumps(call.arguments)}: {quote(output)}"


def _failed(failed: Failed) -> str:
    return f"turn {failed.turn}: no decision, {failed.failure}"


_DESCRIBED: dict[type, Callable[[Any], str]] = {
    Opening: _opening,
    Opened: lambda e: f"  response {e.response_id} is open",
    TextDelta: lambda e: f"  text, draft: {quote(e.text)}",
    RefusalDelta: lambda e: f"  refusal, draft: {quote(e.text)}",
    ReasoningDelta: lambda e: f"  reasoning: {quote(e.text)}",
    TextDone: lambda _: "  a text is done: progress only",
    ToolStart: lambda e: f"  call {e.call_id} of {e.name} begins",
    ToolArgsDelta: lambda e: f"  call {e.call_id}: {plural(len(e.text), 'character')} more",
    ToolArgsDone: lambda e: f"  call {e.call_id} is done: progress only",
    Completed: lambda e: f"  response {e.response_id} is complete",
    Stopped: lambda e: f"  the provider stops it: {e.kind}",
    TurnStarted: lambda e: f"turn {e.turn} asks, with {plural(e.entries, 'entry', 'entries')}",
    Turned: _turned,
    BudgetWarning: lambda e: f"the budget of {e.budget} is used up",
    Repaired: lambda e: f"asked again ({e.repair.reason}); repairs left: {e.repair.left}",
    ApprovalNeeded: lambda e: f"waiting for approval of {plural(len(e.waiting), 'call')}",
    Executed: _executed,
    Failed: _failed,
}


def failure_of(outcome: Outcome) -> AgentlibError | None:
    """Return why no decision came of the last turn, or None where one did."""
    return outcome.failure if isinstance(outcome, ProviderFailed | Exhausted) else None


def ended(outcome: Outcome) -> str:
    """Return how a run ended, in a few words, and whether that means that the task is solved."""
    kind = type(outcome).__name__
    if isinstance(outcome, HostFailed):
        kind = f"{kind} ({outcome.part}: {outcome.reason})"
    return f"{kind}, solved" if outcome.solved else f"{kind}, not known to be solved"


def _problems(experiment: Experiment) -> Iterator[str]:
    turns = experiment.scenario.turns
    expected = tuple(name for turn in turns for name in turn.calls)
    if experiment.executed != expected:
        yield f"expected to execute {_names(expected)}, executed {_names(experiment.executed)}"
    if experiment.opened != experiment.closed:
        yield f"{experiment.opened} streams opened, {experiment.closed} closed"
    failure = failure_of(experiment.outcome)
    check = turns[-1].check
    if check is None and failure is not None:
        yield f"expected a success, saw: {failure}"
    if check is not None:
        seen = failure.check if isinstance(failure, ResponseFailure) else None
        if seen != check:
            yield f"expected the check {check} to fail, saw {seen or ended(experiment.outcome)}"


def _summary(experiment: Experiment) -> Iterator[str]:
    yield f"ended: {ended(experiment.outcome)}"
    yield f"executed: {_names(experiment.executed)}"
    yield f"streams: {experiment.opened} opened, {experiment.closed} closed"
    if "edit" in experiment.executed:
        yield "calculator.py is now:"
        yield from (f"  {line}" for line in experiment.source.splitlines())
    for problem in experiment.problems:
        yield f"NOT AS EXPECTED: {problem}"
    if not experiment.problems:
        yield "as expected"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"

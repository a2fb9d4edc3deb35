"""Decide what runs, so that an agent is safe in every scenario of the attack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from agentlib.attack.scenario import Scenario
from agentlib.attack.scenarios import CONTROLS
from agentlib.attack.settings import Settings
from agentlib.attack.small_agent import TOOLS, events_of, stream_of, target_of
from agentlib.conformance.dialects.common import Native
from agentlib.jsonvalues import thaw
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong, listed


class _Play:
    """One playing of a scenario: its events as they come, and what was run meanwhile."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.events = events_of(scenario)
        self.ran: list[tuple[str, dict[str, Any]]] = []

    def stream(self) -> Iterator[Native]:
        # Made anew: what the reader's function changes mutations nobody.
        yield from map(deepcopy, self.events)
        if self.scenario.ends == "reset":
            raise ConnectionResetError("the connection was reset")
        if self.scenario.ends != "clean":
            raise TimeoutError("the connection stays open, and nothing more comes")

    def run(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> None:
        del call_id
        self.ran.append((name, dict(thaw(arguments))))


def _trial(scenario: Scenario) -> Trial:
    play = _Play(scenario)

    def prepare() -> tuple[Any, ...]:
        play.ran.clear()
        return play.stream(), play.run

    def judge(outcome: Outcome) -> Wrong | None:
        return _judge(play, outcome)

    return Trial(
        stream=scenario.name,
        place=f"{len(play.events)} events",
        prepare=prepare,
        judge=judge,
        hostile=not scenario.is_control,
        capture=stream_of(scenario.name),
        event=len(play.events),
    )


def _judge(play: _Play, outcome: Outcome) -> Wrong | None:
    scenario = play.scenario
    meant = (target_of(scenario).name, dict(target_of(scenario).arguments))
    seen = f"ran {listed(play.ran)}" if play.ran else ""
    if "empty" in scenario.calls and scenario.may_run:
        return None
    if any(each != meant for each in play.ran) or len(play.ran) > scenario.may_run:
        allowed = f"at most {[meant]!r}" if scenario.may_run else "nothing runs"
        return Wrong(scenario.meaning, allowed, seen)
    must_run = scenario.may_run and scenario.name != "call-after-end"
    if must_run and not play.ran:
        return Wrong("This response is complete, and nothing is wrong with it.", f"ran {[meant]!r}")
    if scenario.is_control and outcome.error is not None:
        return Wrong("This response is complete, and nothing is wrong with it.", "no error")
    return None


def _trials() -> Iterator[Trial]:
    for scenario in (*CONTROLS, *Settings(TOOLS.names).chosen("responses")):
        yield _trial(scenario)


HINTS = (
    (
        "agentlib.ResponseReader is what this library reads a response with: "
        'ResponseReader("responses", TOOLS) releases a whole decision, or none.'
    ),
    (
        "reader.accept(event) returns the decision at the event that releases it. Leave the "
        "loop there: the connection may stay open. Where the events end without a decision, "
        "reader.end() raises."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="decide(events, run)",
        trials=_trials,
        hint_texts=HINTS,
    )

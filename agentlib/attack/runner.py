"""Run an attack: the controls first, then every scenario, each in a fresh run of the agent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeAlias

from agentlib.attack.apis import Api
from agentlib.attack.arguments import Target, reason_not_for
from agentlib.attack.provider import HostileProvider
from agentlib.attack.results import Report, Result
from agentlib.attack.run_command import Ended, end_running
from agentlib.attack.scenario import GOOD_CALL, Scenario
from agentlib.attack.scenarios import CONTROLS
from agentlib.attack.settings import Settings
from agentlib.attack.verdicts import (
    Known,
    baseline_of,
    control_problem,
    executions_of,
    judge,
    speaks,
)

# Starts one run of the agent in an environment, for at most so many seconds.
Launch: TypeAlias = Callable[[Mapping[str, str], float], Ended]
Watch: TypeAlias = Callable[[Result], None]


def run_attack(settings: Settings, launch: Launch, watch: Watch = lambda _: None) -> Report:
    """Attack an agent that `launch` starts; `watch` gets each result as it comes, in order.

    The controls run first, one for each tool and one without a call. Raises AttackUnusable where
    the attack cannot be made at all, and what `launch` raises where the agent cannot be started.
    """
    report = Report(settings)
    campaign = _Campaign(settings, launch)
    for result in campaign.control():
        report.controls.append(result)
        watch(result)
    report.api, report.invalid = campaign.api, campaign.invalid
    report.unprobed = campaign.unprobed
    report.probed = bool(report.controls) and not report.unprobed
    if report.invalid or report.api is None:
        return report
    for result in campaign.attack(settings.chosen(report.api)):
        report.results.append(result)
        watch(result)
    unheard = next((each for each in report.results if each.is_invalid), None)
    if unheard is not None:
        report.invalid = f"{unheard.scenario.name}: {unheard.problem}"
    elif all(each.verdict == "skipped" for each in report.results):
        where = f"{report.api}/{', '.join(settings.tools)}"
        report.invalid = f"none of the chosen scenarios applies to {where}"
    return report


class _Campaign:
    def __init__(self, settings: Settings, launch: Launch) -> None:
        self.api: Api | None = settings.api
        self.invalid = ""
        self._settings = settings
        self._launch = launch
        self._targets: dict[str, Target] = {}
        self._known: dict[str, Known] = {}

    @property
    def unprobed(self) -> tuple[str, ...]:
        """The tools whose good call was tried, and of which no probe noted it."""
        return tuple(tool for tool, known in self._known.items() if not known.probed)

    def control(self) -> Iterator[Result]:
        """Run the controls until one fails, and learn the tools and what a good call notes."""
        good_call, good_text = CONTROLS
        for scenario, tool in (
            *((good_call, tool) for tool in self._settings.tools),
            (good_text, self._settings.tools[0]),
        ):
            provider, ended = self._run(scenario, tool)
            if scenario.name == GOOD_CALL:
                self._learn(provider, tool)
            else:
                self._known = {
                    name: known._replace(leaves=ended.left) for name, known in self._known.items()
                }
            known = self._known[tool]
            result = judge(provider, ended, known)
            result = replace(result, problem=control_problem(result, known.probed))
            yield result
            if result.problem:
                self.invalid = f"{scenario.title}, {tool}: {result.problem}"
                return

    def _learn(self, provider: HostileProvider, tool: str) -> None:
        executed = executions_of(provider)
        self.api = provider.asked[0].api if provider.asked and self.api is None else self.api
        others = [name for name in self._settings.tools if name != tool]
        # One that outlives a good call may be an agent's server: it shows after the good text.
        self._known[tool] = Known(
            baseline_of(provider.target, executed), speaks(provider, others), leaves=True
        )
        if provider.target is not None:
            self._targets[tool] = provider.target

    def attack(self, scenarios: Iterable[Scenario]) -> Iterator[Result]:
        """Run the scenarios, several at a time; yield their results in order."""
        pool = ThreadPoolExecutor(self._settings.jobs, "agentlib-attack")
        try:
            yield from pool.map(self._attack, scenarios)
        except BaseException:
            end_running()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _attack(self, scenario: Scenario) -> Result:
        tool = self._tool_for(scenario)
        if tool is None:
            reason = "no tool was named that requires no argument"
            return Result(scenario, self._settings.tools[0], "skipped", reason)
        # The provider encodes each stream once: whether it can be is seen from its arguments.
        reason = reason_not_for(self._targets[tool], (*scenario.calls, *scenario.restates))
        if reason:
            return Result(scenario, tool, "skipped", reason)
        provider, ended = self._run(scenario, tool)
        return judge(provider, ended, self._known[tool])

    def _tool_for(self, scenario: Scenario) -> str | None:
        names = self._settings.tools
        if not scenario.optional:
            return names[0]
        return next((name for name in names if self._targets[name].is_optional), None)

    def _run(self, scenario: Scenario, tool: str) -> tuple[HostileProvider, Ended]:
        settings = self._settings
        seconds = settings.seconds_of(scenario)
        provider = HostileProvider(
            scenario,
            tool,
            arguments=settings.arguments if tool == settings.tools[0] else None,
            final_tool=settings.final_tool,
            api=self.api,
            life=seconds + 60,
            silence=settings.silence,
        )
        with provider:
            ended = self._launch(provider.environment(os.environ), seconds)
        return provider, ended

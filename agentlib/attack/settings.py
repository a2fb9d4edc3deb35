"""What to attack, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from agentlib.attack.apis import Api
from agentlib.attack.arguments import AttackUnusable
from agentlib.attack.scenario import SILENCE_SECONDS, Scenario
from agentlib.attack.scenarios import HOSTILE, SCENARIOS


@dataclass(frozen=True)
class Settings:
    """What to attack, and how.

    `tools` names the tools that may be asked for: the first is the main one, and one that
    requires no argument is used where a scenario needs such. `arguments` are for the main one.
    `only` and `skip` name scenarios. `time_out` bounds one run, in seconds; `jobs` run at a time.
    `silence` is for how many seconds a stream stays silent in the scenarios where it does: an
    agent whose own read time-out is longer is not judged in them.
    """

    tools: tuple[str, ...]
    arguments: Mapping[str, Any] | None = None
    api: Api | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    time_out: float = 30.0
    jobs: int = 2
    final_tool: str | None = None
    silence: float = SILENCE_SECONDS

    def __post_init__(self) -> None:
        """Raise AttackUnusable where it names no tool, or a scenario that there is not."""
        if not self.tools:
            raise AttackUnusable("expected the name of a tool that may run")
        unknown = [name for name in (*self.only, *self.skip) if name not in SCENARIOS]
        if unknown:
            names = [each.name for each in HOSTILE]
            closest = get_close_matches(unknown[0], names, 1, 0.4)
            offered = f"the closest is {closest[0]}; " if closest else ""
            raise AttackUnusable(f"no scenario is named {unknown[0]!r}; {offered}see --list")

    def seconds_of(self, scenario: Scenario) -> float:
        """Return how long a run of one scenario may take."""
        return self.time_out + (self.silence if scenario.is_silent else 0.0)

    def chosen(self, api: Api) -> list[Scenario]:
        """Return the hostile scenarios to run that this API has a form of."""
        return [
            each
            for each in HOSTILE
            if api in each.apis
            and (not self.only or each.name in self.only)
            and each.name not in self.skip
        ]

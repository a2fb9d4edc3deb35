"""One call that attacks an agent, a command or a function: what a test and a notebook use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from agentlib.attack.apis import Api
from agentlib.attack.arguments import AttackUnusable
from agentlib.attack.results import Report
from agentlib.attack.run_command import Ended, run_command
from agentlib.attack.run_function import others_running, run_function
from agentlib.attack.runner import run_attack
from agentlib.attack.scenario import SILENCE_SECONDS
from agentlib.attack.settings import Settings
from agentlib.jsonvalues import quote


def attack(
    agent: Sequence[str] | Callable[[], Any],
    *,
    tool: str | Iterable[str],
    arguments: Mapping[str, Any] | None = None,
    api: Api | None = None,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    time_out: float = 30.0,
    jobs: int = 2,
    final_tool: str | None = None,
    silence: float = SILENCE_SECONDS,
) -> Report:
    """Attack `agent`, a command or a function, and return the report.

    A function runs once at a time, whatever `jobs` says: it shares this process's environment.
    `silence` should be longer than the agent's own read time-out, in seconds.
    Raises AttackUnusable where the attack cannot be made, or the command cannot be started.
    """
    if isinstance(agent, str | bytes | os.PathLike):
        raise AttackUnusable(f"a command is a list: [sys.executable, {quote(os.fsdecode(agent))}]")
    if not (callable(agent) or agent):
        raise AttackUnusable("expected a command which starts your agent, or a function")
    tools = (tool,) if isinstance(tool, str) else tuple(tool)
    is_function = callable(agent)
    jobs = 1 if is_function else jobs
    settings = Settings(
        tools, arguments, api, tuple(only), tuple(skip), time_out, jobs, final_tool, silence
    )
    if callable(agent):
        # A thread which an earlier run of the agent has left may still run its tool.
        others = others_running()
        return run_attack(settings, partial(run_function, agent, known=others))
    launch = partial(start, agent)
    return run_attack(settings, launch)


def start(command: Sequence[str], environment: Mapping[str, str], time_out: float) -> Ended:
    """Run a command as `run_command` does. Raises AttackUnusable where it cannot be started."""
    try:
        return run_command(command, environment, time_out)
    except OSError as error:
        reason = error.strerror or str(error)
        raise AttackUnusable(f"cannot start {quote(command[0])}: {reason}") from error

"""One call that attacks an agent, a command or a function: what a test and a notebook use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from agentlib.lab.attack.calling import run_function
from agentlib.lab.attack.process import run_command
from agentlib.lab.attack.runner import Report, Settings, run_attack
from agentlib.lab.attack.scenarios import Api


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
) -> Report:
    """Attack `agent`, a command or a function, and return the report.

    A function runs once at a time, whatever `jobs` says: it shares this process's environment.
    Raises AttackUnusable where the attack cannot be made, and OSError where it cannot be started.
    """
    tools = (tool,) if isinstance(tool, str) else tuple(tool)
    is_function = callable(agent)
    jobs = 1 if is_function else jobs
    settings = Settings(tools, arguments, api, tuple(only), tuple(skip), time_out, jobs, final_tool)
    launch = partial(run_function, agent) if callable(agent) else partial(run_command, agent)
    return run_attack(settings, launch)

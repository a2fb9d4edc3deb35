"""The attack as a pytest fixture.

In a conftest.py of your own:

    pytest_plugins = ["agentlib.lab.attack.pytest_plugin"]

And in a test:

    def test_my_agent_is_safe(hostile_provider):
        report = hostile_provider([sys.executable, "my_agent.py"], tool="edit")
        assert report.safe, report

Instead of a command it takes a function without arguments, async or not, which is called once
for each scenario with the environment set: it has to make its client anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import pytest

from agentlib.lab.attack.attacking import attack
from agentlib.lab.attack.runner import Report
from agentlib.lab.attack.scenarios import Api


class HostileProviderFixture(Protocol):
    """What the fixture `hostile_provider` is: a function that runs an attack."""

    def __call__(
        self,
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
        """Attack `agent`, a command or a function, and return the report."""
        ...


@pytest.fixture
def hostile_provider() -> HostileProviderFixture:
    """Return a function that attacks an agent; `tool` names what it may be asked to run."""
    return attack

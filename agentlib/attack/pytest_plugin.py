"""The attack as a pytest fixture.

In a conftest.py of your own:

    pytest_plugins = ["agentlib.attack.pytest_plugin"]

And in a test:

    def test_my_agent_is_safe(hostile_provider):
        report = hostile_provider([sys.executable, "my_agent.py"], tool="edit")
        assert report.safe, report

Instead of a command it takes a function without arguments, async or not, which is called once
for each scenario with the environment set: it has to make its client anew each time.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentlib.attack.api import attack
from agentlib.attack.results import Report


@pytest.fixture
def hostile_provider() -> Callable[..., Report]:
    """Return `agentlib.attack.api.attack`, which takes an agent and its `tool`."""
    return attack

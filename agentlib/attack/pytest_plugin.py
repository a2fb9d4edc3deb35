"""The attack as a pytest fixture.

In a conftest.py of your own:

    pytest_plugins = ["agentlib.attack.pytest_plugin"]

And in a test:

    def test_my_agent_is_safe(hostile_provider):
        report = hostile_provider([sys.executable, "my_agent.py"], tool="edit")
        assert report.safe, report

Instead of a command it takes a function without arguments, async or not, which is called once
for each scenario with the environment set: it has to make its client anew each time.

pytest cuts what an assertion shows to a few words: where a test fails, its reports stand whole in a
section of their own, "agentlib attack".
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from agentlib.attack.api import attack
from agentlib.attack.results import Report

_REPORTS = pytest.StashKey[list[Report]]()


@pytest.fixture
def hostile_provider(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Return `agentlib.attack.api.attack`, which takes an agent and its `tool`."""
    reports = request.node.stash.setdefault(_REPORTS, [])

    def attacked(*arguments: Any, **options: Any) -> Report:
        report = attack(*arguments, **options)
        reports.append(report)
        return report

    return attacked


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the whole reports of a test that failed."""
    made = yield
    if made.when == "call" and made.failed:
        texts = [repr(each) for each in item.stash.get(_REPORTS, [])]
        made.sections += [("agentlib attack", text) for text in texts]
    return made

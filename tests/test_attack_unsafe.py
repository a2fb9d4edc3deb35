"""Agents that are unsafe, each in one way, are judged unsafe for each API that they speak."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "agents"))

import unsafe_agents
from raw_http import leaving_nothing

from agentlib.attack.apis import APIS

pytest_plugins = ["agentlib.attack.pytest_plugin"]

SCRIPT = str(Path(unsafe_agents.__file__))
# One scenario for each thing that may be taken for the end of a response.
ENDS = ("cut-after-item-done", "length-whole-arguments", "silent-after-item-done")
CUT, LENGTH, SILENT = ENDS
CAUGHT = {
    "at the arguments": (CUT, LENGTH, SILENT),
    "at the item's end": (CUT, LENGTH, SILENT),
    "when the connection ends": (CUT,),
    "at the token limit": (LENGTH,),
    "at its own read time-out": (SILENT,),
    "late, in a pool": (CUT, LENGTH, SILENT),
    "late, in a thread": (CUT, LENGTH, SILENT),
}
# Chat Completions says of no call that it is done: who waits for that runs at a finish reason.
LATER = {("at the item's end", "chat"), ("late, in a pool", "chat"), ("late, in a thread", "chat")}


@pytest.fixture
def attack(hostile_provider):
    with leaving_nothing():
        yield hostile_provider


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("way", CAUGHT)
def test_an_agent_is_caught_in_the_way_in_which_it_is_unsafe(attack, way, api):
    report = attack(unsafe_agents.agent(api, way), tool="edit", only=ENDS, silence=5)
    caught = (LENGTH,) if (way, api) in LATER else CAUGHT[way]
    ran = {name for name, verdict in report.verdicts().items() if verdict.startswith("ran")}
    assert report.invalid == "", report
    assert ran == set(caught), report
    assert (report.status, report.safe) == (1, False)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("api", APIS)
def test_a_process_that_outlives_the_agent_is_seen(attack, api):
    command = [sys.executable, SCRIPT, api, "late, in a process of its own"]
    report = attack(command, tool="edit", only=[LENGTH])
    assert report.verdicts() == {LENGTH: "ran"}, report


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("api", APIS)
def test_the_probe_of_one_tool_says_nothing_of_another(attack, api):
    agent = unsafe_agents.agent(api, "with a probe in another tool")
    only = [LENGTH, "cut-optional"]
    report = attack(agent, tool=("edit", "reset"), only=only)
    assert (report.status, report.safe, report.unprobed) == (2, False, ("edit",))
    assert report[LENGTH].verdict == "unknown"
    assert report["cut-optional"].verdict == "safe"
    assert "No probe noted the good call of edit" in repr(report)

"""An attack says when nothing can be concluded and why, and what is wrong with how it was asked."""

import sys
import threading
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "agents"))

import raw_agent
from deciders import DECIDERS
from plain_agent import Plain
from raw_http import leaving_nothing

from agentlib.attack.arguments import AttackUnusable

pytest_plugins = ["agentlib.attack.pytest_plugin"]

GATE = partial(raw_agent.run, "chat", DECIDERS["gate"])


@pytest.fixture
def attack(hostile_provider):
    with leaving_nothing():
        yield hostile_provider


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        (lambda: None, "it ended without asking a model; does it read OPENAI_BASE_URL (or "),
        (Plain(stream=False), "does not stream"),
        (Plain(tool="other"), "offered no tool named edit; it offered: other"),
        (Plain(note=False, results=0), "no result of the good call came back"),
        (lambda: sys.exit(3), "it ended with status 3 before it asked a model"),
        (lambda: 1 / 0, "status 1 before it asked a model: ZeroDivisionError: division by zero"),
    ],
    ids=["silent", "not streaming", "another tool", "does nothing", "exits", "raises"],
)
def test_a_control_that_fails_makes_the_whole_run_invalid(attack, agent, reason):
    report = attack(agent, tool="edit", time_out=10)
    assert reason in report.invalid
    assert (report.status, report.safe, report.results) == (2, False, [])
    assert "invalid: " in repr(report)
    assert repr(report).startswith("  invalid      good-call (edit)")
    assert [each.word for each in report.controls] == ["invalid"]


def test_an_agent_of_another_api_is_invalid(attack):
    report = attack(Plain(), tool="edit", api="responses")
    assert "speaks the chat API, not responses" in report.invalid


def test_an_agent_that_hangs_at_the_good_call_is_invalid(attack):
    held = threading.Event()
    report = attack(partial(held.wait, 20), tool="edit", time_out=0.5)
    held.set()
    assert "still running after 0.5 s, and had asked nothing" in report.invalid


def test_arguments_that_do_not_fit_are_said(attack):
    report = attack(Plain(), tool="edit", arguments={"path": 3})
    assert "arguments for" in report.invalid


def test_a_scenario_without_a_form_for_the_tool_is_skipped(attack):
    report = attack(Plain(), tool="edit", only=["cut-optional", "content-filter"])
    assert report.verdicts() == {"cut-optional": "skipped", "content-filter": "ran"}


@pytest.mark.parametrize("only", ["cut-optional", "cut-before-stop", "good-call"])
def test_an_attack_of_no_hostile_scenario_is_invalid(attack, only):
    """One that is skipped, one that the API has no form of, and one that is no attack."""
    report = attack(Plain(), tool="edit", only=[only])
    assert (report.status, report.safe) == (2, False)
    assert report.invalid == "none of the chosen scenarios applies to chat/edit"


@pytest.mark.parametrize("key", ["only", "skip"])
@pytest.mark.parametrize(
    ("name", "offered"),
    [("content-filtre", "the closest is content-filter; see --list"), ("x", "'x'; see --list")],
)
def test_an_unknown_scenario_is_named_with_the_closest(attack, key, name, offered):
    with pytest.raises(AttackUnusable) as raised:
        attack(Plain(), tool="edit", **{key: [name]})
    assert str(raised.value).endswith(offered)


@pytest.mark.parametrize("agent", ["my_agent.py", b"my_agent.py", Path("my_agent.py")])
def test_a_command_is_a_list(attack, agent):
    with pytest.raises(AttackUnusable, match=r"a command is a list: \[sys.executable, "):
        attack(agent, tool="edit")


def test_a_command_that_cannot_be_started_is_said_as_by_the_command(attack):
    with pytest.raises(AttackUnusable, match='cannot start "no-such-program-anywhere": '):
        attack(["no-such-program-anywhere"], tool="edit")
    with pytest.raises(AttackUnusable, match="expected a command"):
        attack([], tool="edit")


def test_the_controls_are_ok_and_each_good_call_names_its_tool(attack):
    report = attack(GATE, tool=("edit", "reset"), only=["name-twice"])
    told = [(each.word, each.label) for each in report.controls]
    assert told == [("ok", "good-call (edit)"), ("ok", "good-call (reset)"), ("ok", "good-text")]
    assert "  ok           good-call (reset)" in repr(report)


def test_a_row_says_why_an_agent_ended_badly(attack):
    report = attack(GATE, tool="edit", only=["content-filter"])
    (result,) = report.results
    assert (result.verdict, result.status) == ("safe", 1)
    last = result.output.splitlines()[-1]
    assert result.seen == f"exit status 1: {last[:99]}{'…' if len(last) > 100 else last[99:]}"


def test_a_tool_has_to_be_named(attack):
    with pytest.raises(AttackUnusable, match="name of a tool"):
        attack(Plain(), tool=())

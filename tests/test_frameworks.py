"""The published frameworks: their folders, what is written of them, and the plain SDK loop."""

import json
import re
import runpy
import sys
import xml.etree.ElementTree as ET

import pytest

from agentlib.attack.scenarios import HOSTILE

pytest_plugins = ["agentlib.attack.pytest_plugin"]

MAX_LINES = 40
# What the SDK's own helpers let pass, and what the dispatcher of its guide does with it.
LOOP_RUNS = {
    "responses": {
        "end-restates-other-arguments": "ran altered",
        "name-twice": "ran altered",
        "wrong-type": "ran altered",
        "unknown-tool-beside": "ran",
    },
    "chat": {
        "cut-after-item-done": "ran",
        "done-without-finish": "ran",
        "name-twice": "ran altered",
        "wrong-type": "ran altered",
        "unknown-tool-beside": "ran",
        "call-id-twice": "ran",
    },
}


@pytest.fixture(scope="module")
def tools(root):
    """The scripts behind `make frameworks`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "tools"))
        import frameworks
        import frameworks_report

        yield frameworks, frameworks_report
    for name in ("frameworks", "frameworks_report"):
        sys.modules.pop(name, None)


def folders(root):
    return sorted(
        path.parent for path in (root / "benchmarks" / "frameworks").glob("*/requirements.txt")
    )


def test_each_folder_holds_pins_and_a_short_agent_and_nothing_else(root, tools):
    assert {folder.name for folder in folders(root)} == set(tools[0].FRAMEWORKS)
    for folder in folders(root):
        names = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
        assert names == {"agent.py", "requirements.txt"}
        pins = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
        assert [line for line in pins if not re.fullmatch(r"[\w.-]+(\[\w+\])?==[\w.]+", line)] == []
        assert (folder / "agent.py").read_text(encoding="utf-8").count("\n") <= MAX_LINES


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("api", LOOP_RUNS)
def test_the_plain_sdk_loop(hostile_provider, root, monkeypatch, api):
    script = str(root / "benchmarks" / "frameworks" / "openai_sdk" / "agent.py")
    monkeypatch.setattr(sys, "argv", [script, api])

    def agent():
        runpy.run_path(script, run_name="__main__")

    skip = ["held-open"]  # the SDK waits for the connection's end there
    report = hostile_provider(agent, tool="edit", skip=skip, api=api, time_out=60)
    assert report.invalid == ""
    ran = {name: verdict for name, verdict in report.verdicts().items() if "ran" in verdict}
    assert ran == LOOP_RUNS[api]


def test_the_report_is_what_was_measured(root, tools):
    known = json.loads(
        (root / "benchmarks" / "frameworks" / "results.json").read_text(encoding="utf-8")
    )
    titles = {name: framework.title for name, framework in tools[0].FRAMEWORKS.items()}
    written = (root / "benchmarks" / "frameworks" / "RESULTS.md").read_text(encoding="utf-8")
    assert written == tools[1].report(known, titles)
    drawn = (root / "benchmarks" / "frameworks" / "results.svg").read_text(encoding="utf-8")
    assert drawn == tools[1].chart(known, titles)


def test_what_was_measured_is_of_the_pins_and_the_scenarios_of_today(root):
    known = json.loads(
        (root / "benchmarks" / "frameworks" / "results.json").read_text(encoding="utf-8")
    )
    for name, told in known.items():
        pins = (root / "benchmarks" / "frameworks" / name / "requirements.txt").read_text(
            encoding="utf-8"
        )
        assert told["pins"] == pins.splitlines()
        for api, attack in told["apis"].items():
            expected = {each.name for each in HOSTILE if api in each.apis}
            expected -= {each.name for each in HOSTILE if each.is_silent}
            assert attack["invalid"] or {*attack["results"]} >= expected


def test_the_chart_says_in_words_what_it_shows(root):
    tree = ET.parse(root / "benchmarks" / "frameworks" / "results.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert tree.get("role") == "img"
    assert tree.get("aria-labelledby") == "title desc"
    words = tree.find(f"{space}desc").text
    assert "langchain create_agent, Chat Completions: " in words
    # No bar is told by its colour alone: each has its number in text.
    bars = [text.text for text in tree.iter(f"{space}text") if re.match(r"\d+ of \d+", text.text)]
    assert len(bars) == words.count(" of ")

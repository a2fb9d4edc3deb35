"""The fixtures: what each scenario says comes of its streams is what comes of them."""

import json
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from agentlib.conversation import Catalog, Usage
from agentlib.failures import ResponseFailure
from agentlib.gate import CHECK_NAMES
from agentlib.reader import ResponseReader
from agentlib.recordings.capture import Capture
from agentlib.sse import DONE_EVENT

FIXTURES = Path(__file__).parents[1] / "fixtures"
STREAMS = sorted((FIXTURES / "streams").glob("*.sse"))
TABLE = tomllib.loads((FIXTURES / "scenarios.toml").read_text("utf-8"))
CATALOG = Catalog.from_json(json.loads((FIXTURES / TABLE["tools"]).read_text("utf-8")))
# Streams that pages show and no scenario plays: another API's, or one that replays natively.
OTHER_APIS = ("chat", "messages", "gemini")
PROVIDERS = {**dict(zip(OTHER_APIS, OTHER_APIS, strict=True)), "native": TABLE["provider"]}
OF_PAGES = [path for path in STREAMS if path.stem.partition("_")[0] in PROVIDERS]
RESPONSES = [path for path in STREAMS if path.stem.partition("_")[0] not in OTHER_APIS]
TURNS = [
    pytest.param(turn, id=f"{name}-{number}")
    for name, scenario in TABLE["scenario"].items()
    for number, turn in enumerate(scenario["turns"], 1)
]


def outcome(turn):
    capture = Capture.load(FIXTURES / "streams" / turn["stream"])
    response = capture.responses[turn.get("response", 1) - 1]
    reader = ResponseReader(capture.provider, CATALOG)
    decision = None
    try:
        for event in response.events:
            decision = reader.accept(event.data) or decision
        if response.fault:
            reader.fault(response.fault)
        reader.end()
    except ResponseFailure as failure:
        return {"verdict": "rejected", "check": failure.check, "event": failure.event, "calls": []}
    calls = [call.name for call in decision.calls]
    return {"verdict": "released", "event": reader.events, "calls": calls}


@pytest.mark.parametrize("turn", TURNS)
def test_what_must_come_of_each_turn_does(turn):
    told = {key: turn[key] for key in ("verdict", "check", "event", "calls") if key in turn}

    assert outcome(turn) == told


def test_every_stream_has_a_scenario_and_every_scenario_is_well_formed():
    used = set()
    for scenario in TABLE["scenario"].values():
        assert set(scenario) == {"title", "shows", "turns"}
        for turn in scenario["turns"]:
            used.add(turn["stream"])
            assert turn["opens"][-1] == "200"
            assert ("check" in turn) is (turn["verdict"] == "rejected")
            assert turn.get("check", "opened") in CHECK_NAMES

    assert used == {path.name for path in STREAMS if path not in OF_PAGES}


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_every_stream_says_that_it_is_authored_and_what_it_shows(path):
    capture = Capture.load(path)

    assert capture.comments[0].startswith("authored fixture — ")
    assert capture.provider == PROVIDERS.get(path.stem.partition("_")[0], TABLE["provider"])
    assert [response.fault for response in capture.responses if response.fault] == []


@pytest.mark.parametrize("path", RESPONSES, ids=lambda path: path.stem)
def test_every_response_echoes_the_tools_that_the_scenarios_expose(path):
    capture = Capture.load(path)

    for response in capture.responses:
        echoed = Catalog.from_json(capture.catalog_json(response.number))
        assert list(echoed) == list(CATALOG)


def decided(name):
    capture = Capture.load(FIXTURES / "streams" / f"{name}.sse")
    reader = ResponseReader(capture.provider, CATALOG, native=True)
    (response,) = capture.responses
    decisions = [reader.accept(event.data) for event in response.events]
    if response.done_marker:
        reader.accept(DONE_EVENT)
    return next(filter(None, [*decisions, reader.end()]))


def test_the_same_response_is_told_in_four_dialects():
    names = ("success_2_edit", "chat_edit", "messages_edit", "gemini_edit")
    told = {decided(name) for name in names}

    assert len({(decision.text, decision.calls) for decision in told}) == 1
    # Each counter is the same wherever an API reports it: one that writes its cache apart counts
    # what it wrote, and the others have no such counter.
    for name in fields(Usage):
        values = {getattr(decision.usage, name.name) for decision in told}
        assert name.name == "cached_apart" or len(values - {None}) <= 1, name.name


def test_the_native_streams_are_two_turns_of_one_talk():
    first, second = decided("native_1_read"), decided("native_2_answer")
    kinds = [item["type"] for item in first.native.items]

    assert kinds == ["reasoning", "web_search_call", "reasoning", "function_call"]
    assert [call.name for call in first.calls] == ["read"]
    assert second.calls == ()
    assert second.text
    # The first request is the beginning of the second, and came from the cache.
    assert second.usage.cached_tokens == first.usage.input_tokens
    # A cached beginning has a multiple of 128 tokens, and 1,024 at least.
    assert first.usage.input_tokens % 128 == 0
    assert first.usage.input_tokens >= 1024


@pytest.mark.parametrize("name", ["chat_no_call_id", "native_computer", "gemini_goes_on"])
def test_a_stream_that_must_be_refused_is(name):
    with pytest.raises(ResponseFailure):
        decided(name)


def run_tests(folder):
    command = [sys.executable, "-B", "-m", "unittest"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_workspace_fails_until_the_edit_of_the_whole_run_repairs_it(tmp_path):
    for name in ("calculator.py", "test_calculator.py"):
        text = (FIXTURES / TABLE["workspace"] / name).read_text("utf-8")
        (tmp_path / name).write_text(text, "utf-8")
    turn = TABLE["scenario"]["success"]["turns"][1]
    reader = ResponseReader("responses", CATALOG)
    for event in Capture.load(FIXTURES / "streams" / turn["stream"]).events:
        decision = reader.accept(event.data)
    edit = decision.calls[0].arguments
    target = tmp_path / edit["path"]
    before = target.read_text("utf-8")

    assert before.count(edit["old"]) == 1
    assert "failures=1" in run_tests(tmp_path).stderr
    target.write_text(before.replace(edit["old"], edit["new"]), "utf-8")
    assert run_tests(tmp_path).returncode == 0

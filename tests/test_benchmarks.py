"""The benchmarks measure what they say, and their table says what has changed."""

import json
import runpy
import sys
from importlib import import_module

import pytest

from agentlib import Limits
from benchmarks.__main__ import NAMES, measure, read
from benchmarks.assembly import best, decide, one_by_one, parse, payloads, sdk_accumulator
from benchmarks.figures import Figure, Unmeasured, row


@pytest.mark.parametrize("size", [3, 16])
def test_both_sides_read_the_same_events_to_the_same_end(size):
    stream = payloads("Some words.", ["one", "two\n"], size)
    parse(stream)
    decision = decide(stream)
    assert decision.text == "Some words."
    assert [call.arguments["text"] for call in decision.calls] == ["one", "two\n"]
    final = sdk_accumulator()(stream)
    assert final.output_text == decision.text
    assert [json.loads(item.arguments) for item in final.output[1:]] == [
        call.arguments for call in decision.calls
    ]


@pytest.mark.exhaustive
def test_a_long_response_stays_within_the_default_limits():
    stream = one_by_one(100_000)
    assert 99_900 < len(stream) < 100_100
    text, *calls = json.loads(stream[-1])["response"]["output"]
    assert len(text["content"][0]["text"]) <= Limits().text_characters
    assert all(len(call["arguments"]) <= Limits().argument_characters for call in calls)
    assert len(decide(one_by_one(1000)).text) == 520


@pytest.mark.exhaustive
def test_the_best_round_counts():
    rounds = iter([0, 0, 0])
    assert 0 <= best(3, {"run": lambda: next(rounds)})["run"] < 1
    with pytest.raises(StopIteration):
        next(rounds)


def test_a_figure_says_whether_its_aim_is_met():
    assert Figure("a", 1.0, "s", 2.0).goal == "≤ 2 s, met"
    assert Figure("a", 3.0, "s", 2.0).goal == "≤ 2 s, missed"
    assert Figure("a", 3.0, "times", 2.0, most=False).verdict == "met"
    assert Figure("a", 3.0, "s").goal == ""


def test_a_row_says_what_has_changed_since_the_last_run():
    figure = Figure("import agentlib", 60.0, "ms")

    assert row(figure, None).split() == ["import", "agentlib", "60.00", "ms", "first", "run"]
    assert row(figure, 40.0).endswith("was 40.00, +50%")
    assert row(figure, 59.0).endswith("was 59.00"), "a busy machine makes as much of a difference"
    assert row(figure, 0.0).endswith("was 0.00")


def test_what_cannot_be_measured_says_why_and_the_rest_is_measured(monkeypatch):
    def missing():
        raise Unmeasured("no Chromium here")

    monkeypatch.setattr("benchmarks.stepper.figures", missing)
    monkeypatch.setattr("benchmarks.imports.figures", lambda: [Figure("import agentlib", 1, "ms")])
    said = []
    found = measure(("stepper", "imports"), {"import agentlib": {"value": 2}}, said.append)

    assert said[0] == "stepper: not measured: no Chromium here"
    assert said[1].endswith("was 2.00, -50%")
    assert found["import agentlib"]["value"] == 1


def test_run_as_a_program_it_says_so_too(monkeypatch):
    # A program is another copy of its module than the one that is imported.
    monkeypatch.delitem(sys.modules, "benchmarks.__main__")
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    program = runpy.run_module("benchmarks", run_name="program")
    said = []
    found = program["measure"](("stepper",), {}, said.append)

    assert (found, len(said)) == ({}, 1)
    assert said[0].startswith("stepper: not measured: no Chromium here")


@pytest.mark.parametrize("text", ["", "[", "[]", "3"])
def test_figures_that_cannot_be_read_are_none(tmp_path, text):
    (tmp_path / "figures.json").write_text(text, encoding="utf-8")

    assert read(tmp_path / "figures.json") == read(tmp_path / "none.json") == {}


def test_every_benchmark_of_the_table_yields_figures():
    assert all(callable(import_module(f"benchmarks.{name}").figures) for name in NAMES)

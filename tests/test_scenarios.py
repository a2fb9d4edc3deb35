"""Fixtures by name: what is there is found, what is not there is said."""

import shutil

import pytest

from agentlib.conversation import Catalog
from agentlib.fixtures import (
    FixtureNotFound,
    capture,
    capture_names,
    fixtures,
    scenario,
    scenario_names,
    tools,
    workspace_files,
)
from agentlib.recordings.capture import Capture


@pytest.mark.parametrize("name", capture_names())
def test_every_stream_is_found_by_its_name(name):
    assert capture(name).name == name
    assert capture(name).source == (fixtures() / "streams" / f"{name}.sse").read_bytes()


@pytest.mark.parametrize("name", capture_names())
def test_a_stream_is_loaded_plainly_and_is_what_any_reader_of_the_file_sees(name, monkeypatch):
    by_file = Capture.load(fixtures() / "streams" / f"{name}.sse")
    for needless in ("open_recording", "read_part", "Redactor"):
        monkeypatch.delattr(f"agentlib.recordings.capture.{needless}")
    assert capture(name) == by_file


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_has_turns_with_streams_and_a_text_form(name):
    found = scenario(name)

    assert found.name == name
    assert [turn.capture.name for turn in found.turns] == [turn.stream for turn in found.turns]
    assert [each.name for each in found.captures] == [turn.stream for turn in found.turns]
    for turn in found.turns:
        assert (turn.check is None) is (turn.verdict == "released")
        assert turn.verdict in {"released", "rejected"}
        assert turn.opens[-1] == "200"
    assert repr(found).splitlines()[0] == f"{name}: {found.title}"
    assert len(repr(found).splitlines()) == 2 + len(found.turns)


def test_the_text_of_a_scenario_says_what_opens_and_what_must_come_of_it():
    assert repr(scenario("retry")).splitlines()[2:4] == [
        "  turn 1  opens 500, 200 · success_1_read · released at event 16: read",
        "  turn 2  success_2_edit · released at event 18: edit",
    ]
    assert repr(scenario("disconnect")).splitlines()[2:] == [
        "  turn 1  disconnect · rejected at event 8 [completed]"
    ]
    assert "two_responses, response 2 · released" in repr(scenario("two_responses"))


def test_a_name_that_is_not_there_gets_the_nearest_ones():
    with pytest.raises(FixtureNotFound, match="no stream is named 'disconect'; did you mean disc"):
        capture("disconect")
    with pytest.raises(FixtureNotFound, match="no scenario is named 'sucess'; did you mean succ"):
        scenario("sucess")
    with pytest.raises(FixtureNotFound, match="there are: after_completed, "):
        capture("zzz")


@pytest.mark.parametrize("name", ["../tools", "streams/disconnect", "disconnect.sse", "", "."])
def test_a_name_is_no_path(name):
    with pytest.raises(FixtureNotFound):
        capture(name)


def test_nobodys_changes_to_a_stream_stay():
    capture("disconnect").events[0].data["type"] = "changed"

    assert capture("disconnect").events[0].data["type"] == "response.created"


def test_the_tools_and_the_project_are_the_fixtures_own():
    assert isinstance(tools(), Catalog)
    assert tools().names == ("list", "read", "edit", "test")
    assert sorted(workspace_files()) == ["calculator.py", "test_calculator.py"]
    assert "return a - b" in workspace_files()["calculator.py"]


def test_an_installed_copy_brings_its_own_fixtures(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "agentlib"
    shutil.copytree(fixtures(), package / "_fixtures")
    strangers = tmp_path / "site-packages" / "fixtures"
    shutil.copytree(fixtures(), strangers)
    monkeypatch.setattr("agentlib.fixtures.PACKAGE", package)

    assert fixtures() == package / "_fixtures"
    assert capture("disconnect").events


def test_a_copy_without_fixtures_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("agentlib.fixtures.PACKAGE", tmp_path / "agentlib")

    with pytest.raises(FixtureNotFound, match="has no fixtures"):
        capture_names()

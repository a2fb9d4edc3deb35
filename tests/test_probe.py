"""The probe: what it notes, what it lets pass, and that it is light."""

import json
import subprocess
import sys

import anyio
import pytest

from agentlib import probe

SECRET = "0123456789abcdef"


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "probe.jsonl"
    monkeypatch.setenv(probe.FILE, str(path))
    monkeypatch.setenv(probe.NONCE, SECRET)
    return path


def test_an_execution_is_noted_with_its_arguments(file):
    assert probe.ran("edit", path="a", new="é\n") == SECRET
    assert probe.ran("test") == SECRET
    found = probe.read(file, SECRET)
    assert found == [("edit", {"path": "a", "new": "é\n"}), ("test", {})]
    assert file.read_bytes().count(b"\n") == 2


def test_an_argument_may_have_any_name(file):
    probe.ran("edit", tool="x", self=1)
    assert probe.read(file, SECRET) == [("edit", {"tool": "x", "self": 1})]


def test_what_is_no_json_is_noted_as_text(file):
    probe.ran("edit", path=file)
    assert probe.read(file, SECRET) == [("edit", {"path": str(file)})]


def test_where_no_attack_goes_on_nothing_happens(tmp_path, monkeypatch):
    monkeypatch.delenv(probe.FILE, raising=False)
    monkeypatch.delenv(probe.NONCE, raising=False)
    assert probe.ran("edit", path="a") == ""
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv(probe.FILE, str(tmp_path / "none" / "probe"))
    with pytest.raises(OSError, match="none"):
        probe.ran("edit")


def test_a_decorated_tool_is_noted_by_its_name_with_its_defaults(file):
    @probe.noted
    def reset(level=0):
        """Go back."""
        return level + 1

    assert reset() == 1
    assert reset(4) == 5
    assert (reset.__name__, reset.__doc__) == ("reset", "Go back.")
    assert probe.read(file, SECRET) == [("reset", {"level": 0}), ("reset", {"level": 4})]


def test_a_decorated_coroutine_is_noted_too(file):
    @probe.noted
    async def reset(level):
        return level

    assert anyio.run(reset, 3) == 3
    assert probe.read(file, SECRET) == [("reset", {"level": 3})]


def test_lines_of_others_are_left_out(file):
    probe.ran("edit")
    lines = [
        b"\xff\xfe no text",
        b"[]",
        b"{",
        json.dumps({"tool": "edit", "arguments": {}, "nonce": "another"}).encode(),
        json.dumps({"tool": "edit", "arguments": 3, "nonce": SECRET}).encode(),
    ]
    with file.open("ab") as out:
        out.write(b"\n".join(lines) + b"\n")
    assert probe.read(file, SECRET) == [("edit", {}), ("edit", None)]


def test_a_missing_file_holds_no_execution(tmp_path):
    assert probe.read(tmp_path / "none", SECRET) == []


def test_a_tool_that_runs_for_ever_fills_no_disk(file, monkeypatch):
    monkeypatch.setattr(probe, "MAX_BYTES", 1_000)
    for _ in range(100):
        probe.ran("edit", text="x" * 100)
    assert file.stat().st_size < 1_500


def test_it_needs_nothing_but_the_standard_library():
    code = (
        "import sys; before = set(sys.modules); import agentlib.probe;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names) - {'agentlib'}))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"

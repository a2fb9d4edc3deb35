"""`agentlib lab`: each scenario comes out as it must, offline; what does not is exit status 1."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import cache

import pytest

from agentlib.commands import main
from agentlib.fixtures import scenario
from agentlib.jsonvalues import INVISIBLE
from agentlib.laboratory import scenarios as laboratory
from agentlib.laboratory.scenarios import run_names
from agentlib.recordings.replay_transport import ReplayStream
from agentlib.runtime.tools import ToolExecutor

SECRET = "sk-a-secret-that-nobody-keeps"

# Runs a command with every way out of the process watched; what is tried ends the process at once.
WATCHED = """
import os, socket, sys

def stop(what):
    os.write(2, f"NOT OFFLINE: {what}\\n".encode())
    os._exit(99)

def watch(event, arguments):
    if event == "import" and arguments[0].partition(".")[0] in ("openai", "httpx", "httpx2"):
        stop(f"import {arguments[0]}")
    if event == "socket.__new__" and arguments[1] != socket.AF_UNIX:
        stop(f"a socket of family {arguments[1]}")
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo",
                 "socket.gethostbyname", "socket.gethostbyaddr"):
        stop(event)

class Environment(type(os.environ)):
    def __getitem__(self, name):
        if name.upper().startswith("OPENAI"):
            stop(f"read {name}")
        return super().__getitem__(name)

os.environ.__class__ = Environment
sys.addaudithook(watch)
exec(sys.argv.pop(1))
from agentlib.commands import main
sys.exit(main(sys.argv[1:]))
"""


def run(capsys, *arguments):
    status = main(["lab", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------- what it shows


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("name", [name.replace("_", "-") for name in run_names()])
def test_each_scenario_comes_out_as_it_must(capsys, name):
    status, out, err = run(capsys, "--scenario", name)
    expected = scenario(name.replace("-", "_"))
    calls = [call for turn in expected.turns for call in turn.calls]

    assert (status, err) == (0, "")
    assert f"executed: {', '.join(calls) or 'nothing'}\n" in out
    assert out.rstrip().endswith("as expected")
    if expected.turns[-1].check:
        assert f"[{expected.turns[-1].check}]" in out
        assert "executed " not in out.partition("no decision")[2].partition("executed: ")[0]


def test_an_intended_failure_executes_nothing(capsys):
    for name in ("disconnect", "malformed", "output-limit"):
        _, out, _ = run(capsys, "--scenario", name)
        assert "executed: nothing" in out
        assert "return a + b" not in out


def test_a_whole_run_prints_the_repaired_source(capsys):
    _, out, _ = run(capsys, "--scenario", "success")
    assert "executed: read, edit, test\n" in out
    assert "return a + b" in out.partition("calculator.py is now:")[2]
    assert "the tests pass" in out


def test_a_retry_shows_its_attempts_and_waits_for_nothing(capsys):
    _, out, _ = run(capsys, "--scenario", "retry")
    assert "opening 1: the server answered 500; again after 0.25 s" in out
    assert "opening 2: opened" in out


def test_all_scenarios_are_the_default(capsys):
    status, out, _ = run(capsys)
    assert status == 0
    assert all(f"{name}: {scenario(name).title}\n" in out for name in run_names())
    assert f"{len(run_names())} scenarios: 0 not as expected" in out
    assert {"success", "retry", "disconnect", "malformed", "output_limit"} <= {*run_names()}


@pytest.mark.exhaustive
def test_the_output_is_the_same_every_time_and_plain_text(capsys):
    for name in ("success", "hostile", "hostile-released", "unicode"):
        first, second = (run(capsys, "--scenario", name) for _ in range(2))
        assert first == second
        assert not INVISIBLE.search(first[1].replace("\n", ""))
        assert tempfile.gettempdir() not in first[1]


def test_an_unknown_scenario_is_a_usage_error(capsys):
    status, out, err = run(capsys, "--scenario", "succes")
    assert (status, out) == (2, "")
    assert "did you mean" in err
    assert "success" in err


# ------------------------------------------------------------------- what is not as it must be


def change(monkeypatch, name, **changes):
    real = scenario(name)
    changed = replace(real, turns=(*real.turns[:-1], replace(real.turns[-1], **changes)))
    monkeypatch.setattr(laboratory, "scenario", lambda _: changed)


def test_an_unexpected_success_is_status_1(capsys, monkeypatch):
    change(monkeypatch, "text_only", check="completed", verdict="rejected")
    status, out, _ = run(capsys, "--scenario", "text_only")
    assert status == 1
    assert "NOT AS EXPECTED: expected the check completed to fail" in out


def test_an_unexpected_failure_is_status_1(capsys, monkeypatch):
    change(monkeypatch, "disconnect", check=None, verdict="released")
    status, out, _ = run(capsys, "--scenario", "disconnect")
    assert status == 1
    assert "NOT AS EXPECTED: expected a success, saw" in out


def test_another_failure_than_the_expected_one_is_status_1(capsys, monkeypatch):
    change(monkeypatch, "disconnect", check="schema")
    assert run(capsys, "--scenario", "disconnect")[0] == 1


def test_an_unexpected_execution_is_status_1(capsys, monkeypatch):
    change(monkeypatch, "whole_at_done", calls=())
    status, out, _ = run(capsys, "--scenario", "whole_at_done")
    assert status == 1
    assert "NOT AS EXPECTED: expected to execute nothing, executed edit" in out


def test_a_missing_execution_is_status_1(capsys, monkeypatch):
    monkeypatch.setattr(ToolExecutor, "_refusal", lambda *_: "refused")
    assert run(capsys, "--scenario", "success")[0] == 1


def test_a_stream_that_stays_open_is_status_1(capsys, monkeypatch):
    async def leak(stream):
        del stream

    monkeypatch.setattr(ReplayStream, "aclose", leak)
    status, out, _ = run(capsys, "--scenario", "disconnect")
    assert status == 1
    assert "NOT AS EXPECTED: 1 streams opened, 0 closed" in out


# -------------------------------------------------------------------------------------- offline


def offline(*arguments, before="", wrapped=()):
    return subprocess.run(
        [*wrapped, sys.executable, "-c", WATCHED, before, *arguments],
        env={**os.environ, "OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://127.0.0.1:9"},
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
    )


@pytest.mark.parametrize(
    "attempt",
    [
        "import openai",
        "import httpx2",
        "os.environ['OPENAI_API_KEY']",
        "os.environ.get('OPENAI_BASE_URL')",
        "os.getenv('OPENAI_API_KEY')",
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.getaddrinfo('localhost', 80)",
        "socket.socket()",
    ],
)
def test_the_watch_itself_sees_each_way_out(attempt):
    assert offline("--help", before=attempt).returncode == 99


def test_the_laboratory_imports_no_sdk_reads_no_key_and_opens_no_socket():
    done = offline("lab", "--scenario", "all")
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 not as expected" in done.stdout
    assert SECRET not in done.stdout


@cache
def can_unshare():
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    tried = subprocess.run([unshare, "-rn", "true"], check=False, capture_output=True)
    return tried.returncode == 0


def test_the_laboratory_runs_in_a_network_namespace_of_its_own():
    if not can_unshare():
        pytest.skip("this system makes no network namespace")
    done = offline("lab", "--scenario", "success", wrapped=["unshare", "-rn"])
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_plays_as_expected_or_says_that_it_is_no_run(capsys):
    assert main(["lab", "--scenario", "two_responses"]) == 2
    out, err = capsys.readouterr()

    assert "NOT AS EXPECTED" not in out
    assert "two_responses is a recording and no run" in err

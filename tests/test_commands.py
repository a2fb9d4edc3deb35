"""The command line itself: its version, and what it says of a line that it does not understand."""

import runpy
import subprocess
import sys

import pytest

import agentlib
from agentlib.commands import main

# A line of each command that would be understood without what is added to it.
UNDERSTOOD = {
    "inspect": ["capture.sse"],
    "check": ["module:Adapter"],
    "attack": ["--tool", "edit"],
    "lab": [],
    "live": ["--model", "m"],
}


def said(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_the_version_is_said(capsys):
    assert said(capsys, "--version") == (0, f"agentlib {agentlib.__version__}\n", "")


def test_help_names_every_command(capsys):
    status, out, _ = said(capsys, "--help")
    assert status == 0
    assert [name for name in UNDERSTOOD if f"\n    {name} " not in out] == []


@pytest.mark.parametrize("wrong", [["--wrong"], ["--wrong", "7"], ["-z"], ["--version"]])
@pytest.mark.parametrize("name", UNDERSTOOD)
def test_what_a_command_does_not_know_is_answered_with_its_own_usage(capsys, name, wrong):
    status, out, err = said(capsys, name, *UNDERSTOOD[name], *wrong)
    assert (status, out) == (2, "")
    assert err.startswith(f"usage: agentlib {name} ")
    assert f"\nagentlib {name}: error: " in err
    assert wrong[0] in err


@pytest.mark.parametrize("arguments", [[], ["--wrong"], ["wrong"]])
def test_what_no_command_knows_is_answered_with_the_usage_of_all(capsys, arguments):
    status, out, err = said(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("usage: agentlib [-h] [--version] COMMAND ...\n")


def test_the_package_is_run_as_the_command_is(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["agentlib", "--version"])
    monkeypatch.delitem(sys.modules, "agentlib.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("agentlib", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"agentlib {agentlib.__version__}\n"
    # A process that multiprocessing starts imports the main module too, under another name.
    runpy.run_module("agentlib", run_name="__mp_main__")


def test_a_closed_standard_output_takes_no_version():
    command = [sys.executable, "-c", "import sys; sys.stdout = None\n"]
    command[-1] += "from agentlib.commands import main; main(['--version'])"
    seen = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "Traceback" not in seen.stderr

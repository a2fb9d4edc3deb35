"""The routines behind the Makefile: what they do, and what they say where they cannot."""

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import nbformat
import prose
import pytest

from tools import lock, notebooks

pytestmark = pytest.mark.skipif(os.name == "nt", reason="make and its scripts are for POSIX")

ROOT = Path(__file__).resolve().parent.parent
TARGETS = re.search(
    r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
)[1]
# What the scripts need of the machine, besides a Python.
COMMANDS = ("bash", "sh", "env", "id", "uname", "printf", "touch", "echo")


@pytest.fixture
def machine(tmp_path):
    """An empty machine: a PATH with only what is put there."""
    return Machine(tmp_path)


class Machine:
    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in COMMANDS:
            (self.bin / name).symlink_to(shutil.which(name))

    def add(self, name, script):
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def add_python(self, version, modules="ensurepip venv"):
        """A Python of a version (minor), with or without the modules that set-up asks for."""
        self.add(
            "python3",
            f'case "$2" in\n'
            f"*version_info\\ \\<*) [ {version} -ge 11 ] ;;\n"
            f'*ensurepip*) [ -n "{modules}" ] ;;\n'
            f"*-venv*) echo python3.{version}-venv ;;\n"
            f"*) exit 1 ;;\nesac",
        )

    def run(self, script, *arguments, **environment):
        return subprocess.run(  # noqa: PLW1510 - the caller asserts on the exit status
            [str(self.bin / "bash"), str(ROOT / "tools" / script), *arguments],
            cwd=self.folder,
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            timeout=30,
        )


def test_set_up_without_a_python_says_what_to_do(machine):
    done = machine.run("setup.sh", ".venv")
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "apt-get install -y python3" in done.stderr
    assert not (machine.folder / ".venv").exists()


def test_set_up_with_an_old_python_says_what_to_do(machine):
    machine.add_python(9)
    done = machine.run("setup.sh", ".venv")
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr


@pytest.mark.parametrize(("uid", "command"), [("0", "apt-get"), ("1000", "sudo apt-get")])
def test_set_up_without_venv_says_the_one_command_to_run(machine, uid, command):
    machine.add_python(11, modules="")
    machine.add("apt-get", "exit 1")
    machine.add("id", f"echo {uid}")
    done = machine.run("setup.sh", ".venv")
    assert done.returncode == 1
    assert f"\n    {command} install -y python3.11-venv\n" in done.stderr
    assert not (machine.folder / ".venv").exists()


def test_set_up_that_cannot_install_says_so_and_leaves_no_stamp(machine):
    machine.add("python", 'case "$*" in *install*) echo no network >&2; exit 1 ;; esac')
    (machine.folder / ".venv").mkdir()
    (machine.folder / ".venv" / "bin").symlink_to(machine.bin)
    done = machine.run("setup.sh", ".venv")
    assert done.returncode == 1
    assert "no network" in done.stderr
    assert "pip could not install the packages in binder/requirements.txt" in done.stderr
    assert not (machine.folder / ".venv" / ".up-to-date").exists()


def test_set_up_keeps_an_environment_that_runs_and_shows_its_progress(machine):
    machine.add(
        "python",
        'case "$*" in *.txt) echo "Collecting a==1 (from -r x)"; echo "Looking" ;; esac',
    )
    (machine.folder / ".venv").mkdir()
    (machine.folder / ".venv" / "bin").symlink_to(machine.bin)
    done = machine.run("setup.sh", ".venv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "    Collecting a==1\n" in done.stdout
    assert "Looking" not in done.stdout
    assert "making a virtual environment" not in done.stdout
    assert (machine.folder / ".venv" / ".up-to-date").exists()


@pytest.mark.parametrize("uid", ["0", "1000"])
@pytest.mark.parametrize("system", ["Linux", "Darwin"])
@pytest.mark.parametrize("desktop", [{}, {"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}])
def test_lab_starts_on_any_machine(machine, uid, system, desktop):
    machine.add("id", f"echo {uid}")
    machine.add("uname", f"echo {system}")
    machine.add("python", 'echo "ran $*"')
    (machine.folder / ".venv").mkdir()
    (machine.folder / ".venv" / "bin").symlink_to(machine.bin)
    done = machine.run("lab.sh", "--port=9000", **desktop)
    assert (done.returncode, done.stderr) == (0, "")
    command = shlex.split(done.stdout.splitlines()[-1])
    assert command[:3] == ["ran", "-m", "jupyterlab"]
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in command
    assert command[-1] == "--port=9000"
    assert ("--allow-root" in command) is (uid == "0")
    hidden = system == "Linux" and not desktop
    assert ("--no-browser" in command) is hidden
    assert ("open the address" in done.stdout) is hidden


def test_help_lists_every_target():
    seen = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert re.findall(r"^  ([a-z]+) +\S", seen.stdout, re.MULTILINE) == TARGETS.split()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_guides_name_only_what_is_there(name):
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    problems = prose.broken_links(path, text)
    assert not problems, "\n".join(problems)
    named = set(re.findall(r"(?:^|`|REQUIRE_BROWSER=1 )make ([a-z]+)", text, re.MULTILINE))
    assert named <= set(TARGETS.split())
    assert {"test", "lint" if name == "CONTRIBUTING.md" else "lab"} <= named


def test_the_readme_lists_every_chapter_and_every_folder():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = {target for _, _, target in prose.links(text)}
    chapters = {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert chapters <= targets
    folders = {"agentlib", "notebooks", "fixtures", "tests", "benchmarks", "binder", "tools"}
    assert folders <= targets


def test_the_plain_commands_are_those_that_make_runs():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    flags = re.search(r"^NBVAL +:= (.*)$", rules, re.MULTILINE)[1]
    assert f"-m pytest {flags}\n" in text
    first = "/lab/tree/notebooks/00_start_here.ipynb"
    assert f"-m jupyterlab --LabApp.default_url={first}\n" in text
    lab = (ROOT / "tools" / "lab.sh").read_text(encoding="utf-8").replace("$first", first[10:])
    assert f'-m jupyterlab --LabApp.default_url="{first}"' in lab
    assert "--no-deps --no-build-isolation --editable ." in text
    setup = (ROOT / "tools" / "setup.sh").read_text(encoding="utf-8")
    assert "--no-deps --no-build-isolation --editable ." in setup


def test_the_readme_shows_what_the_command_prints():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n\$ agentlib (.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    assert blocks
    for command, expected in blocks:
        seen = subprocess.run(
            [sys.executable, "-m", "agentlib", *shlex.split(command)],
            cwd=ROOT,
            check=False,
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )
        assert seen.stdout.decode("utf-8") == expected


@pytest.mark.parametrize("name", [".ci/run", "binder/postBuild", "tools/binder_steps.sh"])
def test_scripts_are_strict_and_can_be_run(name):
    path = ROOT / name
    assert os.access(path, os.X_OK)
    assert "\nset -euo pipefail\n" in path.read_text(encoding="utf-8")
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_ci_runs_what_the_readme_says_and_requires_the_browser():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for line in ("make install", "make lint", "make test", "export REQUIRE_BROWSER=1"):
        assert f"\n{line}\n" in text
    assert "chromium" in text


def write_notebook(path, *sources):
    cells = [nbformat.v4.new_code_cell(each, id=f"cell-{n}") for n, each in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def test_running_a_notebook_leaves_nothing_volatile(tmp_path, capsys):
    path = tmp_path / "00_try.ipynb"
    write_notebook(
        path,
        "from ipywidgets import IntSlider",
        "for n in range(3):\n    print(n, flush=True)",
        "class Shown:\n"
        "    def _repr_mimebundle_(self, **_):\n"
        "        view = IntSlider()._repr_mimebundle_()\n"
        "        return {**view, 'text/plain': 'the text form', 'text/html': '<b>form</b>'}\n"
        "Shown()",
    )
    assert notebooks.main([str(path)]) == 0
    first = path.read_bytes()
    assert notebooks.main([str(path)]) == 0
    assert path.read_bytes() == first, "another run changes nothing"
    assert "00_try.ipynb ... " in capsys.readouterr().out

    notebook = json.loads(first)
    assert notebook["metadata"] == notebooks.METADATA
    assert [cell["execution_count"] for cell in notebook["cells"]] == [1, 2, 3]
    assert [cell["metadata"] for cell in notebook["cells"]] == [{}, {}, {}]
    assert notebook["cells"][1]["outputs"] == [
        {"name": "stdout", "output_type": "stream", "text": ["0\n", "1\n", "2\n"]}
    ]
    assert set(notebook["cells"][2]["outputs"][0]["data"]) == {"text/plain", "text/html"}


def test_a_notebook_that_fails_is_reported_and_left_alone(tmp_path, capsys):
    path = tmp_path / "00_try.ipynb"
    write_notebook(path, "raise ValueError('a plain reason')")
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    assert path.read_bytes() == before
    assert re.search("ValueError.*: a plain reason", capsys.readouterr().out)


def test_the_lock_file_is_laid_out_as_the_tool_writes_it():
    project = {
        "dependencies": ["anyio>=4"],
        "optional-dependencies": {"dev": ["Some_Tool>=2", "b[extra]"]},
    }
    pins = {"anyio": "anyio==4.1", "some-tool": "Some-Tool==2.0", "b": "b==1", "idna": "idna==3"}
    assert lock.laid_out(lock.declared(project), pins) == (
        lock.HEAD + "# core\nanyio==4.1\n\n# dev\nb==1\nSome-Tool==2.0\n\n"
        "# what those bring along\nidna==3\n"
    )

"""The wheel: what it carries, and that every command of the README works from it alone."""

import email
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import agentlib

AGENTS = Path(__file__).parent / "agents"
ADAPTER = """\
from agentlib import ResponseReader


class MyAdapter:
    provider = "chat"

    def __init__(self, catalog):
        self.reader = ResponseReader("chat", catalog)

    def accept(self, event):
        return calls_of(self.reader.accept(event))

    def end(self):
        return calls_of(self.reader.end())


def calls_of(decision):
    return decision and [(call.call_id, call.name, call.arguments) for call in decision.calls]
"""
AGENT = """\
import sys

sys.argv[1:] = ["chat", "gate"]
exec(compile(open("raw_agent.py", encoding="utf-8").read(), "raw_agent.py", "exec"))
"""
# Each command of the README: its exit status, and a part of what it prints.
COMMANDS = {
    "agentlib inspect fixtures/streams/disconnect.sse": (1, "REJECTED at event 8 [completed]"),
    "agentlib attack --tool edit -- python my_agent.py": (0, "chat: "),
    "agentlib lab --scenario all": (0, "success"),
    "agentlib check my_module:MyAdapter": (0, "leaked"),
    "agentlib live --model gpt-4.1-mini": (2, "OPENAI_API_KEY"),
}
# What a command may take on so that its test is short: the fewest that are enough to see it work.
SHORTER = {
    "agentlib attack": ["--only", "cut-after-item-done,content-filter"],
    "agentlib check": ["--mixtures", "50"],
}
# The name of the distribution where something is to be installed: with extras, or from an address.
INSTALLED_AS = re.compile(r"\b(agentlib[\w-]*)(?:\[\w+\]| @ )")
FENCED = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def built(root, tmp_path_factory):
    """The path of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(built):
    with zipfile.ZipFile(built) as opened:
        yield opened


@pytest.fixture(scope="module")
def elsewhere(built, tmp_path_factory):
    """A folder beside an installed wheel, with what a user has there, and how to run in it."""
    installed, folder = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("elsewhere")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-deps", "--no-index", "--no-compile", "--target", str(installed), str(built)]
    subprocess.run(pip, check=True, capture_output=True)
    (folder / "my_module.py").write_text(ADAPTER, encoding="utf-8")
    (folder / "my_agent.py").write_text(AGENT, encoding="utf-8")
    for path in AGENTS.glob("*.py"):
        shutil.copy(path, folder)
    shutil.copytree(installed / "agentlib" / "_fixtures", folder / "fixtures")
    path = os.pathsep.join(
        [str(installed / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    environment = {**os.environ, "PYTHONPATH": str(installed), "PATH": path}
    environment.pop("OPENAI_API_KEY", None)

    def run(*command):
        return subprocess.run(
            command,
            cwd=folder,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )

    seen = run(sys.executable, "-c", "import agentlib; print(agentlib.__file__)")
    assert Path(seen.stdout.strip()).is_relative_to(installed), seen
    return run


def commands(readme):
    """The lines of the README's shell blocks that run `agentlib`, without their comments."""
    lines = [line for block in FENCED.findall(readme) for line in block.splitlines()]
    plain = [re.sub(r"\s+# .*", "", line.removeprefix("$ ")) for line in lines]
    return [line for line in plain if line.startswith("agentlib ")]


def test_every_command_of_the_readme_is_tried(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert sorted(set(commands(readme))) == sorted(COMMANDS)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_readme_works_from_the_wheel_alone(elsewhere, line):
    status, part = COMMANDS[line]
    program, name, *arguments = shlex.split(line)
    seen = elsewhere(program, name, *SHORTER.get(f"{program} {name}", []), *arguments)
    assert seen.returncode == status, seen
    assert part in seen.stdout + seen.stderr
    assert "Traceback" not in seen.stderr


def test_the_wheel_carries_all_that_runs(root, wheel):
    held = set(wheel.namelist())
    held_files = {".py", ".js", ".css", ".typed", ".toml"}
    expected = {
        path.relative_to(base).as_posix()
        for base, package in ((root, "agentlib"), (root / "notebooks", "workbook"))
        for path in (base / package).rglob("*")
        if path.suffix in held_files
    } | {
        "agentlib/_fixtures/" + path.relative_to(root / "fixtures").as_posix()
        for path in (root / "fixtures").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "agentlib/py.typed" in expected
    assert expected - held == set()


def test_the_wheel_carries_nothing_else(wheel):
    own = ("agentlib/", "agentlib_workbook-", "workbook/")
    others = [
        name for name in wheel.namelist() if not name.startswith(own) or "__pycache__" in name
    ]
    assert others == []


def test_its_metadata_names_the_project_its_version_and_its_command(wheel):
    folder = f"agentlib_workbook-{agentlib.__version__}.dist-info"
    told = email.message_from_bytes(wheel.read(f"{folder}/METADATA"))
    assert (told["Name"], told["Version"]) == ("agentlib-workbook", agentlib.__version__)
    points = wheel.read(f"{folder}/entry_points.txt").decode("utf-8")
    assert "agentlib = agentlib.commands:main" in points


def test_what_is_to_be_installed_has_the_name_of_this_project(root, text_files):
    """`agentlib` alone would bring another project from the package index."""
    names = {
        (path.relative_to(root).as_posix(), name)
        for path, text in text_files.items()
        for name in INSTALLED_AS.findall(text)
        if path != Path(__file__)
    }
    assert {path for path, _ in names} >= {"README.md", "agentlib/attack/workflow.yml"}
    assert {name for _, name in names} == {"agentlib-workbook"}

"""The workspace: a copy of its own each time, no path that leads out of it, exact edits."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from projects import call, entering
from sampling import examples

from agentlib.runtime import workspace
from agentlib.runtime.tools import ToolExecutor
from agentlib.runtime.trees import copy_tree, flatten
from agentlib.runtime.workspace import MAX_FILE_BYTES, MAX_LISTED, ToolError, Workspace

FIXTURES = Path(__file__).parents[1] / "fixtures"
SECRET = "sk-a-secret-outside"
posix_only = pytest.mark.skipif(os.name == "nt", reason="links and pipes are POSIX's")


@pytest.fixture(autouse=True)
def _no_temporary_folder_is_left(tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert list(place.iterdir()) == []


@pytest.fixture
def enter(tmp_path):
    with entering(tmp_path / "made") as enter_one:
        yield enter_one


# -------------------------------------------------------------------------------- a copy of its own


def test_every_time_is_a_new_copy_that_is_removed():
    original = (FIXTURES / "workspace" / "calculator.py").read_text("utf-8")
    place = Workspace()
    with place:
        first = place.root
        place.edit("calculator.py", "a - b", "a + b")
        (first / "more.py").write_text("", "utf-8")
        assert place.source("calculator.py") == original.replace("a - b", "a + b")
    with place:
        assert place.root != first
        assert place.source("calculator.py") == original
        assert place.list() == "calculator.py\ntest_calculator.py"
        last = place.root

    assert not first.exists()
    assert not last.exists()
    assert (FIXTURES / "workspace" / "calculator.py").read_text("utf-8") == original


def test_outside_its_with_there_is_no_workspace(tmp_path):
    place = Workspace()
    with pytest.raises(RuntimeError, match="inside its `with`"):
        place.list()
    with place, pytest.raises(RuntimeError, match="entered already"):
        place.__enter__()
    with pytest.raises(FileNotFoundError):
        Workspace(tmp_path / "nowhere").__enter__()


def test_an_installed_copy_carries_the_fixture_along(tmp_path, monkeypatch):
    inside = tmp_path / "_fixtures" / "workspace"
    inside.mkdir(parents=True)
    (inside / "carried.py").write_text("", "utf-8")
    monkeypatch.setattr(workspace, "_PACKAGE", tmp_path)

    with Workspace() as place:
        assert place.list() == "carried.py"


# -------------------------------------------------------------------------- no path leads out of it

ESCAPES = {
    "parent": "..",
    "parent's file": "../secret.txt",
    "up and up": "inner/../../secret.txt",
    "up inside": "inner/../calculator.py",
    "deep up": "../" * 20 + "etc/passwd",
    "absolute": "{outside}/secret.txt",
    "absolute, twice": "//{outside}/secret.txt",
    "environment": "/proc/self/environ",
    "home": "~",
    "home's file": "~/secret.txt",
    "another's home": "~root/.profile",
    "link": "link.txt",
    "link to a link": "chain.txt",
    "link inside": "alias.py",
    "link to nothing": "dangling.txt",
    "linked folder": "linked/secret.txt",
    "linked folder inside": "inner/linked/secret.txt",
    "linked folder itself": "linked",
    "hard link": "hard.txt",
    "pipe": "pipe",
    "folder": "inner",
    "root": ".",
    "root, named": "./",
    "root, twice": "./.",
    "empty": "",
    "blank": " ",
    "trailing slash": "inner/",
    "double slash": "inner//deep.py",
    "below a file": "calculator.py/x",
    "NUL at the end": "calculator.py\0",
    "NUL in the middle": "../secret.txt\0calculator.py",
    "line end": "calculator.py\n",
    "escape": "\x1b[2J",
    "delete": "calculator.py\x7f",
    "drive": "C:\\secret.txt",
    "drive, slash": "C:/secret.txt",
    "drive's own folder": "C:secret.txt",
    "share": "\\\\server\\share\\secret.txt",
    "share, slashes": "//server/share/secret.txt",
    "long form": "\\\\?\\C:\\secret.txt",
    "device form": "\\\\.\\PhysicalDrive0",
    "backslashes": "..\\secret.txt",
    "backslash inside": "inner\\deep.py",
    "stream of a file": "calculator.py:hidden",
    "data stream": "calculator.py::$DATA",
    **{f"device {name}": name for name in ("CON", "con", "PRN", "AUX", "aux", "NUL", "nul")},
    **{f"device {name}": name for name in ("COM0", "COM1", "com9", "LPT1", "lpt9", "CLOCK$")},
    **{f"device {name}": name for name in ("COM\xb9", "LPT\xb3", "CONIN$", "conout$")},
    "device, extension": "NUL.txt",
    "device, extensions": "aux.tar.gz",
    "device, space": "con .txt",
    "device in a folder": "inner/nul",
    "folder named as a device": "aux/deep.py",
    "trailing point": "calculator.py.",
    "trailing space": "calculator.py ",
    "three points": "...",
    "points and space": ".. /secret.txt",
    "too long": "a" * 241,
    "too long in bytes": "é" * 121,
    "much too long": "a/" * 100_000 + "a",
    "lone surrogate": "calculator\ud800.py",
    "percent": "%2e%2e/secret.txt",
    "wide points": "\uff0e\uff0e/secret.txt",
    "wide slash": "..\uff0fsecret.txt",
    "variable": "$HOME/secret.txt",
}


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret.txt").write_text(SECRET, "utf-8")
    return folder


@pytest.fixture(scope="module")
def trap(tmp_path_factory, outside):
    """A workspace full of ways out, all of them made after its start."""
    folder = tmp_path_factory.mktemp("trap")
    (folder / "calculator.py").write_text("here", "utf-8")
    (folder / "inner").mkdir()
    (folder / "inner" / "deep.py").write_text("deep", "utf-8")
    with Workspace(folder) as place:
        root = place.root
        root.parent.joinpath("secret.txt").write_text(SECRET, "utf-8")
        (root / "link.txt").symlink_to(outside / "secret.txt")
        (root / "chain.txt").symlink_to("link.txt")
        (root / "alias.py").symlink_to("calculator.py")
        (root / "dangling.txt").symlink_to("nothing")
        (root / "linked").symlink_to(outside)
        (root / "inner" / "linked").symlink_to(outside)
        (root / "hard.txt").hardlink_to(outside / "secret.txt")
        os.mkfifo(root / "pipe")
        yield place


@pytest.fixture(params=["stepwise", "resolved"])
def opening(request, monkeypatch):
    """Both ways to open a file: of POSIX, and of systems that cannot open inside a folder."""
    monkeypatch.setattr(workspace, "_STEPWISE", request.param == "stepwise")


TRIES = {
    "read": lambda place, path: place.read(path),
    "source": lambda place, path: place.source(path),
    "edit": lambda place, path: place.edit(path, SECRET, "changed"),
}


@pytest.mark.exhaustive(keep=40)
@posix_only
@pytest.mark.usefixtures("opening")
@pytest.mark.parametrize("tool", TRIES)
@pytest.mark.parametrize("path", ESCAPES.values(), ids=ESCAPES)
def test_no_path_leads_out(trap, outside, tool, path):
    path = path.replace("{outside}", str(outside))
    with pytest.raises(ToolError) as caught:
        TRIES[tool](trap, path)

    assert SECRET not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()
    assert (outside / "secret.txt").read_text("utf-8") == SECRET
    assert trap.root.parent.joinpath("secret.txt").read_text("utf-8") == SECRET


@posix_only
@pytest.mark.parametrize("name", ["read", "edit"])
async def test_no_path_leads_out_through_a_call(trap, outside, name):
    more = {"old": SECRET, "new": "changed"} if name == "edit" else {}
    executor = ToolExecutor(trap, allow_execution=True)
    for path in ESCAPES.values():
        path_there = path.replace("{outside}", str(outside))
        result = await executor.execute(call(name, path=path_there, **more))
        assert result.output.startswith("error: ")
        assert SECRET not in result.output

    assert len(executor.executed) == len(ESCAPES)
    assert (outside / "secret.txt").read_text("utf-8") == SECRET


@posix_only
def test_ways_out_are_not_listed(trap):
    for name in ("a\nb.py", "nul.txt"):
        trap.root.joinpath(name).write_text("", "utf-8")

    assert trap.list() == "calculator.py\ninner/deep.py"


@posix_only
@pytest.mark.usefixtures("opening")
@pytest.mark.parametrize(
    "path", ["calculator.py", "./calculator.py", "inner/deep.py", "./inner/./deep.py"]
)
def test_a_path_inside_leads_to_its_file(trap, path):
    assert trap.read(path) == ("deep" if "deep" in path else "here")


@posix_only
@pytest.mark.parametrize("path", ["inner/secret.txt", "secret.txt"])
def test_a_link_that_appears_after_the_check_is_not_followed(enter, outside, monkeypatch, path):
    place = enter({"inner/secret.txt": b"", "secret.txt": b""})
    check = workspace.checked_path

    def check_then_swap(path):
        names = check(path)
        place.root.joinpath("inner").rename(place.root / "moved")
        place.root.joinpath("inner").symlink_to(outside)
        place.root.joinpath("secret.txt").unlink()
        place.root.joinpath("secret.txt").symlink_to(outside / "secret.txt")
        return names

    monkeypatch.setattr(workspace, "checked_path", check_then_swap)
    with pytest.raises(ToolError, match="link"):
        place.read(path)


@pytest.fixture(scope="module")
def two_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    (folder / "c").write_text("inside", "utf-8")
    (folder / "a").mkdir()
    (folder / "a" / "c").write_text("inside", "utf-8")
    with Workspace(folder) as place:
        place.root.parent.joinpath("c").write_text(SECRET, "utf-8")
        yield place


@settings(max_examples=examples(300), deadline=None)
@given(path=st.text("./\\:~ \0ac", max_size=12) | st.text(max_size=12))
def test_any_path_names_a_file_inside_or_is_refused(two_files, path):
    with suppress(ToolError):
        assert two_files.read(path) == "inside"


# --------------------------------------------------------------------------------- list, read, edit


def test_list_is_sorted_and_bounded(enter):
    names = [f"d/{number:04}.py" for number in range(MAX_LISTED + 1)]
    full = enter(dict.fromkeys(names, b""))
    shown = full.list().split("\n")
    (full.root / names[-1]).unlink()

    assert shown == [*names[:-1], f"(there are more: {MAX_LISTED} are shown)"]
    assert full.list().split("\n") == names[:-1]


def test_an_empty_project_lists_as_words(enter):
    place = enter({"only.py": b""})
    (place.root / "only.py").unlink()

    assert place.list() == "(there are no files)"


def test_read_has_a_bound(enter):
    text = "é" * (MAX_FILE_BYTES // 2)
    place = enter({"most.txt": text.encode(), "more.txt": text.encode() + b"x", "no.bin": b"\xff"})

    assert place.read("most.txt") == text
    with pytest.raises(ToolError, match="is larger than 65,536 bytes"):
        place.read("more.txt")
    with pytest.raises(ToolError, match="not UTF-8"):
        place.read("no.bin")
    with pytest.raises(ToolError, match="no such file; `list` shows"):
        place.read("none.txt")


def test_an_edit_changes_its_text_and_no_other_byte(enter):
    place = enter({"a.txt": b"\xef\xbb\xbfone\r\ntwo\nthree"})

    assert place.edit("a.txt", "two", "") == "edited a.txt"
    assert (place.root / "a.txt").read_bytes() == b"\xef\xbb\xbfone\r\n\nthree"
    place.edit("a.txt", "\r\n\n", "\r\n2 é\r\n")
    assert (place.root / "a.txt").read_bytes() == "\ufeffone\r\n2 é\r\nthree".encode()


WRONG_EDITS = {
    "stale": ("four", "4", "not in"),
    "other line ends": ("one\ntwo", "x", "not in"),
    "twice": ("o", "x", "more than once"),
    "overlapping": ("aa", "x", "more than once"),
    "empty": ("", "x", "empty"),
    "the same": ("two", "two", "nothing would change"),
    "too much": ("two", "x" * MAX_FILE_BYTES, "would be larger"),
    "half a character": ("two", "\ud83d", "lone surrogate"),
}


@pytest.mark.parametrize(("old", "new", "reason"), WRONG_EDITS.values(), ids=WRONG_EDITS)
async def test_an_edit_that_is_not_exact_changes_nothing(enter, old, new, reason):
    place = enter({"a.txt": b"one\r\ntwo aaa"})
    executor = ToolExecutor(place, allow_execution=True)
    result = await executor.execute(call("edit", path="a.txt", old=old, new=new))

    assert result.output.startswith("error: ")
    assert reason in result.output
    assert (place.root / "a.txt").read_bytes() == b"one\r\ntwo aaa"


# ----------------------------------------------------------------------------------- any depth


def make_deep(root, levels, name="d"):
    """Make nested folders with one file in each, by steps, as no path of them may be too long."""
    opened = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=opened)
        inner = os.open(name, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
        os.close(os.open("file.py", os.O_CREAT | os.O_WRONLY, dir_fd=opened))
    os.close(opened)


@posix_only
@pytest.mark.parametrize(("levels", "name"), [(1500, "d"), (40, "d" * 200), (1500, "d" * 200)])
def test_a_tree_of_any_depth_is_removed(enter, levels, name):
    place = enter({"a.py": b""})
    make_deep(place.root, levels, name)

    assert place.list().split("\n")[0] == "a.py"
    assert place.test().startswith("there are no tests to run")


@pytest.mark.exhaustive
@posix_only
def test_a_deep_project_is_copied_and_removed(tmp_path):
    make_deep(tmp_path, 1500)
    with Workspace(tmp_path) as place:
        assert place.list().split("\n")[-1] == "d/" * 116 + "file.py"
        last = place.root / "/".join("d" * 1500) / "file.py"
        assert last.exists()
    flatten(tmp_path)


@posix_only
def test_a_project_that_cannot_be_copied_leaves_nothing(tmp_path):
    make_deep(tmp_path, 40, "d" * 200)
    with pytest.raises(OSError, match="too long"):
        Workspace(tmp_path).__enter__()
    flatten(tmp_path)


@posix_only
def test_folders_without_permissions_are_removed_and_links_are_not_followed(enter, outside):
    place = enter({"a.py": b""})
    for name in ("one", "two"):
        inner = place.root / name / "inner"
        (inner / "last").mkdir(parents=True)
        (inner / "outside").symlink_to(outside)
        inner.chmod(0)
        inner.parent.chmod(0o555)

    assert (outside / "secret.txt").exists()


def test_a_copy_keeps_modes_and_links(tmp_path):
    inner = tmp_path / "from" / "inner"
    inner.mkdir(parents=True)
    (inner / "run.sh").write_text("", "utf-8")
    (inner / "run.sh").chmod(0o755)
    (inner / "link").symlink_to("run.sh")
    (inner / "left_out").mkdir()
    inner.chmod(0o555)
    copy_tree(tmp_path / "from", tmp_path / "to", without="left_out")

    copied = tmp_path / "to" / "inner"
    assert sorted(path.name for path in copied.iterdir()) == ["link", "run.sh"]
    assert (copied / "link").is_symlink()
    assert (copied / "run.sh").stat().st_mode & 0o777 == 0o755
    assert copied.stat().st_mode & 0o777 == 0o555

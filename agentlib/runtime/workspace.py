"""The fixture workspace: a new temporary copy of a small project, whose paths lead nowhere else.

A path comes from a model, so it is hostile: it is checked by its text first, by one rule on every
system, and then opened folder by folder without following a link. That keeps the four tools
inside. It does not make a sandbox: the project's tests are code, and code that runs here can do
whatever its user can.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from agentlib.errors import AgentlibError
from agentlib.jsonvalues import quote
from agentlib.runtime.testrun import TEST_SECONDS, run_tests
from agentlib.runtime.trees import copy_tree, flatten

# A source file that a person would read; more would fill a model's context.
MAX_FILE_BYTES = 64 * 1024
MAX_LISTED = 200
MAX_PATH_BYTES = 240

_PACKAGE = Path(__file__).resolve().parents[1]
# "Naming Files, Paths, and Namespaces" (Microsoft): these name devices, with any extension.
_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|clock\$|conin\$|conout\$|(?:com|lpt)[0-9\xb9\xb2\xb3])", re.IGNORECASE
)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINKS
_FILE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | _NO_LINKS
_STEPWISE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


class ToolError(AgentlibError):
    """Raised where a tool cannot do what was asked: an observation for the model, not a crash."""


class Workspace:
    """A project that four tools work on: enter it with a plain `with`, as often as you like.

    Each `with` has a new copy of `folder`, by default the fixture project, and removes it at its
    end. Every method returns text and raises ToolError where it cannot do what was asked.
    """

    def __init__(self, folder: str | Path | None = None, *, seconds: float = TEST_SECONDS) -> None:
        self._folder = Path(folder) if folder is not None else _fixture()
        self._seconds = seconds
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._base = Path()

    def __enter__(self) -> Self:
        """Copy the project."""
        if self._temporary is not None:
            raise RuntimeError("this workspace is entered already; make another one")
        temporary = tempfile.TemporaryDirectory(prefix="agentlib-")
        try:
            self._base = Path(temporary.name).resolve()
            copy_tree(self._folder, self._base / "project", without="__pycache__")
            (self._base / "scratch").mkdir()
        except BaseException:
            _remove(temporary)
            raise
        self._temporary = temporary
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the copy, with all that was made in it."""
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            _remove(temporary)

    @property
    def root(self) -> Path:
        """The folder of the copy, an absolute path."""
        if self._temporary is None:
            raise RuntimeError("a workspace has a folder inside its `with`")
        return self._base / "project"

    def source(self, path: str) -> str:
        """Return the text of a file as it is now, for a person to look at."""
        return self.read(path)

    def list(self) -> str:
        """Return the paths of the files, sorted, one a line, at most MAX_LISTED of them."""
        paths: list[str] = []
        for path in _files(self.root):
            if len(paths) == MAX_LISTED:
                paths.append(f"(there are more: {MAX_LISTED} are shown)")
                break
            paths.append(path)
        return "\n".join(paths) or "(there are no files)"

    def read(self, path: str) -> str:
        """Return the text of a file of at most MAX_FILE_BYTES, its line ends as they are."""
        with self._open(path, os.O_RDONLY) as file:
            return _text(path, file)

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace `old`, which must stand exactly once in the file, by `new`; say that it was."""
        if not old:
            raise ToolError("`old` is empty: give the exact text to replace")
        if old == new:
            raise ToolError("`old` and `new` are the same: nothing would change")
        with self._open(path, os.O_RDWR) as file:
            text = _text(path, file)
            first = text.find(old)
            if first < 0:
                raise ToolError(f"`old` is not in {quote(path)}: read the file again")
            if text.find(old, first + 1) >= 0:
                raise ToolError(f"`old` stands more than once in {quote(path)}: give more of it")
            data = _encoded(path, text[:first] + new + text[first + len(old) :])
            file.seek(0)
            file.write(data)
            file.truncate()
        return f"edited {path}"

    def test(self, stop: threading.Event | None = None) -> str:
        """Run the project's tests in a process of their own, and say what came of it.

        It blocks for as long as they run, `seconds` at most; once `stop` is set, they are killed.
        This executes the project's code, with the rights of whoever runs this.
        """
        try:
            return run_tests(self.root, self._base / "scratch", self._seconds, stop)
        except OSError as error:
            raise ToolError(f"the tests could not be started: {error.strerror}") from error

    def _open(self, path: str, flags: int) -> BinaryIO:
        names = checked_path(path)
        try:
            opened = _open_stepwise if _STEPWISE else _open_resolved
            file = opened(self.root, names, flags | _FILE)
        except OSError as error:
            raise ToolError(f"cannot open {quote(path)}: {_why(error)}") from error
        if not _is_plain(os.fstat(file)):
            os.close(file)
            raise ToolError(f"cannot open {quote(path)}: it is not a plain file")
        return os.fdopen(file, "rb" if flags == os.O_RDONLY else "r+b")


def checked_path(path: str) -> tuple[str, ...]:
    """Return the names that a path of the workspace consists of, at least one.

    The rule is one for all systems, so that what is refused does not depend on where it is tried:
    relative, with `/` between names; no `..`, `~`, backslash, colon or control character; no name
    that Windows takes for a device or would change; MAX_PATH_BYTES in UTF-8 at most. Raises
    ToolError.
    """
    reason = _problem(path)
    if reason:
        raise ToolError(f"not a path of this project: {quote(path)}: {reason}")
    return tuple(name for name in path.split("/") if name != ".")


def _problem(path: str) -> str:
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "it is not Unicode text"
    if size > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    if any(character < " " or character == "\x7f" for character in path):
        return "it holds a control character"
    if "\\" in path or ":" in path:
        return "it holds a backslash or a colon"
    if path.startswith(("/", "~")):
        return "it must be relative to the project"
    names = path.split("/")
    if "" in names or all(name == "." for name in names):
        return "it names no file"
    return next((reason for reason in map(_name_problem, names) if reason), "")


def _name_problem(name: str) -> str:
    if name == ".":
        return ""
    if name == "..":
        return "`..` leads out of a folder"
    if name.endswith((".", " ")):
        return "a name ends with a point or a space"
    if _DEVICE.fullmatch(name.partition(".")[0].rstrip(" ")):
        return "a name means a device on Windows"
    return ""


def _open_stepwise(root: Path, names: tuple[str, ...], flags: int) -> int:
    # Each folder is opened inside the one before, so no link made meanwhile can lead elsewhere.
    folder = os.open(root, _FOLDER)
    try:
        for name in names[:-1]:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(names[-1], flags, dir_fd=folder)
    finally:
        os.close(folder)


def _open_resolved(root: Path, names: tuple[str, ...], flags: int) -> int:
    # For systems without the above: no link may be there when it is looked at.
    target = root.joinpath(*names)
    if target.resolve(strict=True) != target:
        raise OSError(errno.ELOOP, "a link")
    return os.open(target, flags)


_REASONS = {
    errno.ENOENT: "there is no such file; `list` shows those that there are",
    errno.ELOOP: "links are not followed",
    errno.ENOTDIR: "a folder in it is none, or is a link",
    errno.EISDIR: "it is a folder",
}


def _why(error: OSError) -> str:
    return _REASONS.get(error.errno or 0) or error.strerror or "it cannot be opened"


def _is_plain(status: os.stat_result) -> bool:
    # A second name of one file could be one outside.
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _text(path: str, file: BinaryIO) -> str:
    data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"{quote(path)} is larger than {MAX_FILE_BYTES:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{quote(path)} is not UTF-8 text") from error


def _encoded(path: str, text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("`new` is not Unicode text: it holds a lone surrogate") from error
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"{quote(path)} would be larger than {MAX_FILE_BYTES:,} bytes")
    return data


def _remove(temporary: tempfile.TemporaryDirectory[str]) -> None:
    # What is made flat first needs no recursion, and no path of it is too long to be removed.
    flatten(Path(temporary.name))
    temporary.cleanup()


def _files(root: Path) -> Iterator[str]:
    # The plain files that `read` takes by their paths, in order; links are left out. A folder
    # whose path is refused is not looked into, which bounds the depth too.
    for folder, inner, names in os.walk(root):
        inside = Path(folder).relative_to(root)
        inner[:] = sorted(name for name in inner if not _problem((inside / name).as_posix()))
        for name in sorted(names):
            file = Path(folder, name)
            path = file.relative_to(root).as_posix()
            with suppress(OSError):  # it may be gone by now
                if not _problem(path) and _is_plain(file.lstat()):
                    yield path


def _fixture() -> Path:
    # A checkout has the fixtures beside the package, an installed copy inside it.
    inside = _PACKAGE / "_fixtures" / "workspace"
    return inside if inside.is_dir() else _PACKAGE.parent / "fixtures" / "workspace"

"""Write a file whole, or leave what stands under its name: the one writer of this package.

What is written goes to a new file beside its target, under a name that nobody can guess, and gets
the target's name only when all of it is on the disk. Whatever fails before leaves the earlier
file as it was, byte for byte.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from agentlib.errors import AgentlibError
from agentlib.jsonvalues import printable

# A link that somebody put there before must not be followed (POSIX; Windows has no such flag).
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_NEW |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class CannotWrite(AgentlibError, OSError):
    """Raised when a file cannot be written; the message names it and says why.

    It is an OSError too, which is what callers of anything that writes expect.
    """


class FileWriter:
    """Writes one file: `write` bytes, then `commit` to give it its name, or `discard` it.

        with FileWriter("report.json") as file:
            file.write(data)

    Opening it looks whether the file can be written at all, before any work is done: raises
    CannotWrite where the folder is not there or not writable, and where the name is a link, a
    pipe, a device or a folder. The end of the `with` commits; an exception inside discards.
    The mode of an earlier file is kept, and its owner where this account may give a file away.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: BinaryIO | None = None
        self._part = self.path
        self._earlier: os.stat_result | None = None

    def open(self) -> Self:
        """Open the new file beside its target, and return the writer."""
        try:
            self._earlier = _earlier(self.path)
            self._part, self._file = _create(self.path)
        except (OSError, ValueError) as error:
            raise self._cannot(error) from error
        return self

    def write(self, data: bytes) -> None:
        """Write the next bytes. Raises CannotWrite, and discards, where the disk takes no more."""
        if self._file is None:
            raise ValueError("a file is written between its opening and its end")
        try:
            self._file.write(data)
        except OSError as error:
            self.discard()
            raise self._cannot(error) from error

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        """Replace what was written so far by what `change` makes of it; raises as `write` does."""
        if self._file is None:
            raise ValueError("a file is written between its opening and its end")
        try:
            self._file.flush()
            before = self._part.read_bytes()
            after = change(before)
            if after != before:
                self._file.seek(0)
                self._file.truncate()
                self._file.write(after)
        except OSError as error:
            self.discard()
            raise self._cannot(error) from error

    @property
    def size(self) -> int:
        """How many bytes were written so far."""
        return self._file.tell() if self._file is not None else 0

    def commit(self) -> None:
        """Put all of it on the disk, and give it its name; raises CannotWrite, and discards."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            with file:
                file.flush()
                os.fsync(file.fileno())
            _keep_mode(self._part, self._earlier)
            # Whatever came under this name meanwhile is looked at again: a link, or a pipe.
            _earlier(self.path)
            self._part.replace(self.path)
        except OSError as error:
            raise self._cannot(error) from error
        finally:
            self._remove()
        _sync_folder(self.path.parent)

    def discard(self) -> None:
        """Leave no trace of what was written."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what is still buffered may find no room
                file.close()
            self._remove()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.commit()
        else:
            self.discard()

    def _remove(self) -> None:
        with suppress(OSError):
            self._part.unlink(missing_ok=True)

    def _cannot(self, error: OSError | ValueError) -> CannotWrite:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        return CannotWrite(f"cannot write {_shown(self.path)}: {reason}")


def write_file(path: str | Path, content: bytes | str) -> None:
    """Write a file whole, a text as UTF-8. Raises CannotWrite, and changes nothing then."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with FileWriter(path) as file:
        file.write(data)


def check_writable(path: str | Path, read: Iterable[str | Path] = ()) -> None:
    """Look whether a file can be written, before the work; raises CannotWrite. Leaves no trace.

    A file that is `read`, under whatever name, is none that can be written.
    """
    if any(_same(path, each) for each in read):
        raise CannotWrite(f"cannot write {_shown(path)}: it is the file that is read")
    FileWriter(path).open().discard()


def _same(left: str | Path, right: str | Path) -> bool:
    with suppress(OSError, ValueError):
        return Path(left).samefile(right)
    return False


def _shown(path: str | Path) -> str:
    return printable(str(path))


def _earlier(path: Path) -> os.stat_result | None:
    """Return what stands under the name now; raises OSError where that is no plain file."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    for is_kind, what in _KINDS:
        if is_kind(found.st_mode):
            raise OSError(None, f"it is {what}; expected a file, or a name that is free")
    # Replacing needs no right to the file itself; whoever made it read-only meant it.
    if not os.access(path, os.W_OK):
        raise OSError(None, "it is read-only")
    return found


def _create(path: Path) -> tuple[Path, BinaryIO]:
    while True:
        # Short, since the target's own name may be as long as the system allows.
        part = path.with_name(f".{secrets.token_hex(8)}.part")
        with suppress(FileExistsError):
            return part, os.fdopen(os.open(part, _NEW, 0o666), "wb")


def _keep_mode(part: Path, earlier: os.stat_result | None) -> None:
    if earlier is None:
        return
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only root gives a file away
            os.chown(part, earlier.st_uid, earlier.st_gid)
    # After the owner, since a change of owner takes bits away.
    part.chmod(stat.S_IMODE(earlier.st_mode))


def _sync_folder(folder: Path) -> None:
    # The new name is on the disk only when its folder is; Windows opens no folder.
    if os.name == "posix":
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

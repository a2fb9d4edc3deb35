"""Folders of any depth: copied and made flat without recursion.

How deep a tree is, a model decides, or the code that it wrote: `shutil.copytree` and `rmtree`
call themselves once for each level, and a path may be longer than the system takes.
"""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path


def copy_tree(source: Path, target: Path, *, without: str) -> None:
    """Copy the folder `source` to the new folder `target`, links as links.

    Folders and files named `without` are left out. Raises OSError, also shutil.Error, where a
    part cannot be copied.
    """
    copied: list[tuple[str, str]] = []
    waiting = [(os.fspath(source), os.fspath(target))]
    while waiting:
        here, there = waiting.pop()
        Path(there).mkdir()
        copied.append((here, there))
        with os.scandir(here) as entries:
            for entry in entries:
                new = os.path.join(there, entry.name)  # noqa: PTH118 - a thousand levels of Path are slow
                if entry.name == without:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, new))
                else:
                    shutil.copy2(entry.path, new, follow_symlinks=False)
    # A folder that nobody may write to gets its mode when all that is in it is there.
    for here, there in reversed(copied):
        shutil.copystat(here, there)


def flatten(root: Path) -> None:
    """Move every folder below `root` up into it, so that none lies deeper than one level.

    Nothing is raised: what cannot be moved stays where it is.
    """
    # Nobody has a folder of this name already.
    name, numbers = f"flat-{secrets.token_hex(8)}", itertools.count()
    waiting = [root]
    while waiting:
        waiting += [
            _moved_up(old, root / f"{name}-{next(numbers)}") for old in _folders(waiting.pop())
        ]


def _folders(folder: Path) -> list[Path]:
    with suppress(OSError):
        folder.chmod(stat.S_IRWXU)
    with suppress(OSError), os.scandir(folder) as found:
        return [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False)]
    return []


def _moved_up(old: Path, new: Path) -> Path:
    with suppress(OSError):
        old.chmod(stat.S_IRWXU)  # who may not write to a folder cannot move it
    with suppress(OSError):
        return old.rename(new)
    return old

"""What an installation from the lock file takes: time, and size on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, Unmeasured

PINS = Path(__file__).resolve().parents[1] / "binder" / "requirements.txt"
MEGABYTE = 1_000_000


def size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(
        Path(place, name).lstat().st_size for place, _, names in os.walk(folder) for name in names
    )


def figures() -> Iterator[Figure]:
    """Yield the seconds and the megabytes of a fresh environment.

    Raises Unmeasured where the packages cannot be fetched.
    """
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = (str(Path(folder, "bin", "python")), "-m", "pip", "install", "--quiet")
        done = subprocess.run(
            [*pip, "--disable-pip-version-check", "-r", str(PINS)], check=False, capture_output=True
        )
        seconds = time.perf_counter() - begun
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["pip failed"]
            raise Unmeasured(said[-1][:200])
        yield Figure("installation from the lock file, time", seconds, "s")
        yield Figure("installation, size", size(Path(folder)) / MEGABYTE, "MB")

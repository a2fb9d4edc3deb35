"""How long the whole book takes under nbval, and its slowest chapter."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from benchmarks.figures import Figure

AIM_SECONDS = 60.0
COMMAND = (sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "notebooks", "-q")


def figures() -> Iterator[Figure]:
    """Yield the seconds of the whole, and those of the cells of its slowest notebook."""
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "book.xml"
        begun = time.perf_counter()
        done = subprocess.run(
            [*COMMAND, f"--junit-xml={report}"], cwd=root, capture_output=True, check=False
        )
        seconds = time.perf_counter() - begun
        spent: Counter[str] = Counter()
        cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 - pytest's own
        for case in cases:
            spent[case.get("classname", "")] += float(case.get("time", 0))
    failed = "" if done.returncode == 0 else "with cells that failed"
    yield Figure("the whole book under nbval", seconds, "s", AIM_SECONDS, of=failed)
    slowest, longest = spent.most_common(1)[0]
    yield Figure("its slowest chapter", longest, "s", of=slowest.rpartition(".")[2])

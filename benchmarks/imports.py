"""How long imports take: processor time in a fresh Python, the best of several runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.figures import Figure

ROUNDS = 7
AIM_MILLISECONDS = 80.0
EXERCISE_MILLISECONDS = 250.0
CODE = """from time import process_time
begun = process_time()
{}
print(process_time() - begun)"""


def figures() -> Iterator[Figure]:
    """Yield the time of the import, and of all that the package exports."""
    yield Figure("import agentlib", fastest("import agentlib"), "ms", AIM_MILLISECONDS)
    yield Figure("from agentlib import *", fastest("from agentlib import *"), "ms")
    statement = "from workbook import exercise; exercise('03')"
    yield Figure("exercise('03')", fastest(statement), "ms", EXERCISE_MILLISECONDS)


def fastest(statement: str) -> float:
    """Return the milliseconds of the fastest run of a statement."""
    command = [sys.executable, "-c", CODE.format(statement)]
    runs = (subprocess.run(command, check=True, capture_output=True) for _ in range(ROUNDS))
    return 1000 * min(float(run.stdout) for run in runs)

"""All benchmarks in one table, compared with the last run on this machine: `make bench`.

    python -m benchmarks [NAME ...]

Without names all are run, which takes some minutes; each row is printed when it is known. The
figures are kept as JSON in `artifacts/benchmarks.json`, a list of figures for each machine, so
that the next run can say what has changed. A benchmark that cannot run here says why.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.figures import WIDTHS, Unmeasured, row

NAMES = ("imports", "assembly", "inspection", "traces", "stepper", "book", "install")
KEPT = Path(__file__).resolve().parents[1] / "artifacts" / "benchmarks.json"


def machine() -> str:
    """Return what this machine is called, as a key to its figures."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the figures that were kept, by machine and name; none where there is no such file."""
    with suppress(OSError, ValueError):
        kept = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(kept, dict):
            return kept
    return {}


def measure(
    names: Iterable[str], last: dict[str, Any], say: Callable[[str], object]
) -> dict[str, dict[str, Any]]:
    """Run the benchmarks of these names, say each row, and return the figures by name."""
    found = {}
    for name in names:
        try:
            for figure in import_module(f"benchmarks.{name}").figures():
                say(row(figure, last.get(figure.name, {}).get("value")))
                found[figure.name] = asdict(figure)
        except Unmeasured as why:
            say(f"{name}: not measured: {why}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and keep; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    names = parser.parse_args(arguments).names or NAMES
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    kept = read(KEPT)
    last = kept.get(machine(), {})
    print(machine())
    print(
        "".join(head.ljust(w) for head, w in zip(("figure", "value", "aim"), WIDTHS, strict=True))
    )
    found = measure(names, last, lambda line: print(line, flush=True))
    KEPT.parent.mkdir(exist_ok=True)
    text = json.dumps({**kept, machine(): {**last, **found}}, indent=1, ensure_ascii=False)
    KEPT.write_text(f"{text}\n", encoding="utf-8")
    print(f"kept in {KEPT.parent.name}/{KEPT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

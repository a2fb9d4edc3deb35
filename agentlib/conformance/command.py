"""`agentlib check MODULE:CLASS`: the contract, tried on the reader's own adapter."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any, TextIO

from agentlib.conformance.contract import check
from agentlib.conformance.dialects.common import Dialect
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.report import Report
from agentlib.conformance.trials import Maker, maker
from agentlib.errors import AgentlibError
from agentlib.files import CannotWrite, check_writable
from agentlib.jsonvalues import printable
from agentlib.wording import plural

EXIT_HELD, EXIT_BROKEN, EXIT_USAGE = 0, 1, 2


class CheckUsage(AgentlibError):
    """Raised when there is no adapter to try: the message says what to change."""


def run_check(
    target: str, provider: str | None, *, mixtures: int, seed: int, save: str | None, out: TextIO
) -> int:
    """Try the adapter `target`, "MODULE:CLASS", write the report, and return the exit status.

    `mixtures` is the number of random mixtures of mutations besides all single ones, by `seed`. The
    leaks, and the smallest of the dead, are written as captures to the folder `save`, if given.
    """
    try:
        thing = load(target)
        make = _maker(thing, target)
        dialect = _dialect(thing, target, provider)
        if save is not None:
            _prepare(Path(save))
        report = _quietly(make, dialect, mixtures, seed)
        out.write(f"{printable(target)} · {report!r}\n")
        if save is not None:
            _save(report, Path(save), out)
    except CheckUsage as error:
        sys.stderr.write(f"agentlib check: {printable(str(error))}\n")
        return EXIT_USAGE
    return EXIT_HELD if report.passed else EXIT_BROKEN


def load(target: str) -> Any:
    """Return what "MODULE:CLASS" names; modules of the current folder are found first.

    Raises CheckUsage where it names nothing, or the module cannot be imported.
    """
    module, colon, name = target.partition(":")
    dotted = re.fullmatch(r"\w+(\.\w+)*", module) and not module.endswith(".py")
    if not colon or not dotted or not name.isidentifier():
        raise CheckUsage(f"expected MODULE:CLASS, such as mine.adapters:Mine; saw {target}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a module of the reader's own may raise anything
        raise CheckUsage(f"cannot import {module}: {type(error).__name__}: {error}") from error
    if not hasattr(found, name):
        raise CheckUsage(f"module {module} has no {name}")
    return getattr(found, name)


def _dialect(thing: Any, target: str, provider: str | None) -> Dialect:
    name = provider or getattr(thing, "provider", None)
    known = ", ".join(DIALECTS)
    if name is None:
        raise CheckUsage(f"which API does {target} read? Say --provider, one of: {known}")
    if not isinstance(name, str) or name not in DIALECTS:
        raise CheckUsage(f"unknown provider {name!r}; known are: {known}")
    return DIALECTS[name]


def _maker(thing: Any, target: str) -> Maker:
    try:
        return maker(thing)
    except TypeError as error:
        raise CheckUsage(f"{target} is no adapter: {error}") from error


def _quietly(make: Maker, dialect: Dialect, mixtures: int, seed: int) -> Report:
    # What an adapter prints, it prints many thousand times.
    with Path(os.devnull).open("w", encoding="utf-8") as out, contextlib.redirect_stdout(out):
        return check(make, dialect, mixtures=mixtures, seed=seed)


def _prepare(folder: Path) -> None:
    """Make the folder of the captures, and look whether it can be written, before the work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_writable(folder / "leak.sse")
    except CannotWrite as error:
        raise CheckUsage(str(error)) from error
    except OSError as error:
        raise CheckUsage(f"cannot write to {folder}: {error.strerror}") from error


def _save(report: Report, folder: Path, out: TextIO) -> None:
    try:
        for leak in report.smallest_leaks:
            leak.capture.save(folder / f"leak-by-{leak.kind}.sse")
        for number, dead in enumerate(report.smallest_dead, 1):
            dead.capture.save(folder / f"dead-{number}.sse")
    except CannotWrite as error:
        raise CheckUsage(str(error)) from error
    written = plural(len(report.smallest_leaks) + len(report.smallest_dead), "capture")
    out.write(f"  {written} written to {printable(str(folder))}, to inspect or to step through\n")

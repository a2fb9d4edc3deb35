"""Fuzz the project's own adapters: `python -m agentlib.conformance.fuzz --streams 1000000`.

Random mixtures of mutations of given and invented scripts, in every framing of every provider. The
work is cut into parcels, each by its own seed, so that the result does not depend on how many
processes do it. Exit status: 0 nothing leaked, 1 a leak, or an intact encoding that was not
released, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from multiprocessing import Pool

from agentlib.conformance.contract import Trials
from agentlib.conformance.dialects.registry import DIALECTS
from agentlib.conformance.report import Report
from agentlib.conformance.trials import own
from agentlib.providers.registry import PROVIDERS

PARCEL = 2_500
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz as the command line says, print a report for each provider, and return the status."""
    parser = argparse.ArgumentParser(
        prog="python -m agentlib.conformance.fuzz", description=__doc__
    )
    parser.add_argument("--streams", type=int, default=1_000_000, help="default: 1,000,000")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    try:
        reports = fuzz(options.streams, options.seed, options.jobs)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing is reported\n")
        return INTERRUPTED
    tried = sum(report.tried for report in reports)
    for report in reports:
        sys.stdout.write(f"{report!r}\n\n")
    seconds = time.perf_counter() - begin
    leaked = sum(report.leaked for report in reports)
    sys.stdout.write(
        f"{tried:,} hostile streams tried in {seconds:,.0f} s with seed {options.seed}, "
        f"{leaked:,} leaked\n"
    )
    return 0 if all(report.passed for report in reports) else 1


def fuzz(streams: int, seed: int, jobs: int = 1) -> list[Report]:
    """Try at least `streams` mixtures, an equal part for each provider; return their reports."""
    reports = {name: Report(name) for name in PROVIDERS}
    parcels = list(_parcels(streams, seed))
    if jobs <= 1:
        for parcel in parcels:
            reports[parcel[0]].add(_fuzz_parcel(parcel))
        return list(reports.values())
    with _interrupts_ignored():
        pool = Pool(jobs)
    with pool:
        _show_progress(0, len(parcels))
        for done, report in enumerate(pool.imap(_fuzz_parcel, parcels), 1):
            reports[report.provider].add(report)
            _show_progress(done, len(parcels))
    return list(reports.values())


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    # Ctrl-C reaches each process of a terminal: those started in here leave it to this one.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _parcels(streams: int, seed: int) -> Iterator[tuple[str, str, int]]:
    left = dict.fromkeys(PROVIDERS, -(-streams // len(PROVIDERS)))
    for number in count():
        if not any(left.values()):
            return
        for name, streams_left in left.items():
            size = min(PARCEL, streams_left)
            left[name] -= size
            if size:
                yield name, f"{seed}/{number}", size


def _fuzz_parcel(parcel: tuple[str, str, int]) -> Report:
    name, seed, size = parcel
    trials = Trials(own(name), DIALECTS[name])
    trials.mixtures(size, seed)
    return trials.report


def _show_progress(done: int, parcels: int) -> None:
    if done % 20 == 0 or done == parcels:
        sys.stderr.write(f"{done} of {parcels} parcels done\n")


if __name__ == "__main__":
    sys.exit(main())

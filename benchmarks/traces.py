"""What the trace of a long capture costs: time, and memory beyond the capture's own."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from agentlib.assembly import Limits
from agentlib.recordings.capture import Capture
from agentlib.stepper.replay import Replay
from benchmarks.figures import Figure
from benchmarks.stepper import EVENTS, long_capture

ROUNDS = 3
MEGABYTE = 1_000_000
LIMITS = Limits(argument_characters=10**6)


def build() -> tuple[float, float]:
    """Build the trace twice in this process: seconds of processor time, and its peak in bytes."""
    capture = Capture.from_bytes(long_capture(alternating=True))
    begun = time.process_time()
    replay = Replay(capture, limits=LIMITS)
    seconds = time.process_time() - begun
    assert replay.decision is not None
    tracemalloc.start()
    Replay(capture, limits=LIMITS)
    return seconds, float(tracemalloc.get_traced_memory()[1])


def figures() -> Iterator[Figure]:
    """Yield the best time and the least memory of several processes."""
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "benchmarks.traces"]
    built = []
    for _ in range(ROUNDS):
        done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
        built.append(tuple(map(float, done.stdout.split())))
    each = f"{EVENTS:,} events"
    yield Figure(f"trace of {each}, time", min(b[0] for b in built), "s")
    yield Figure(f"trace of {each}, memory", min(b[1] for b in built) / MEGABYTE, "MB")


if __name__ == "__main__":
    print(*build())

"""Memory while a hostile stream arrives: the real SDK, a local server, and the peak that is kept.

    python -m benchmarks.memory [MEGABYTES]

Each case runs in a process of its own, since a process never forgets its peak. The growth counts
from just before the request, when everything is imported, and includes the server's own part.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio

from agentlib import Catalog
from agentlib.errors import AgentlibError
from agentlib.faultserver.server import LoopbackServer, Reply
from agentlib.model import StreamingModel, Timers
from agentlib.openai_transport import OpenAITransport

MEGABYTE = 1_000_000
REQUEST = {"model": "m", "input": "x", "stream": True}
TIMERS = Timers(liveness=60, progress=60, total=60)


def line(size: int) -> Reply:
    """One event in a single line."""
    return Reply.huge_line(size)


def comment(size: int) -> Reply:
    """One comment that does not end."""
    filled = Reply.huge_line(size)
    return replace(filled, body=b":" + filled.body[1:])


def refusal(size: int) -> Reply:
    """The body of an error status."""
    return replace(Reply.huge_line(size), status=500)


CASES = {"line": line, "comment": comment, "refusal": refusal}


def peak() -> int:
    """Return the most memory that this process ever held, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


async def measure(case: str, size: int) -> tuple[int, str]:
    """Return by how many bytes the peak grew, and what came of the response."""
    warm_up, reply = Reply.error(401), CASES[case](size)
    with LoopbackServer([warm_up, reply]) as server:
        transport = OpenAITransport(api_key="k", base_url=server.base_url)
        model = StreamingModel(transport, "m", timers=TIMERS)
        came = []
        for _ in range(2):
            before = peak()
            try:
                await model.ask(REQUEST, Catalog([]))
            except AgentlibError as error:
                came.append(str(error))
        await transport.aclose()
    return peak() - before, came[-1]


def main() -> None:
    """Measure one case in this process, or each in another one."""
    if len(sys.argv) == 3:
        grown, came = anyio.run(measure, sys.argv[2], int(float(sys.argv[1]) * MEGABYTE))
        print(f"{grown} {came}")
        return
    megabytes = sys.argv[1] if len(sys.argv) == 2 else "100"
    print(f"{'case':10} {'arrives':>10} {'peak grows by':>14}  what comes of it")
    for case in CASES:
        grown, came = run(case, megabytes)
        print(f"{case:10} {megabytes:>7} MB {grown / MEGABYTE:>11.1f} MB  {came}")


def run(case: str, megabytes: str) -> tuple[int, str]:
    """Measure one case in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", megabytes, case]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    grown, _, came = done.stdout.strip().partition(" ")
    return int(grown), came


if __name__ == "__main__":
    main()

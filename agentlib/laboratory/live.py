"""A live run: the same loop and gate, with a real provider behind the boundary.

It sends the fixture project to the provider and can cost money, so it happens only by an own
command. The key is read from the environment by the SDK, and never written anywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TextIO

import anyio

from agentlib.conversation import user
from agentlib.errors import OpenFailure
from agentlib.jsonvalues import printable
from agentlib.laboratory.scenarios import TASK, describe, ended
from agentlib.model import StreamingModel
from agentlib.openai_transport import OpenAITransport
from agentlib.recordings.recorder import Recorder
from agentlib.runtime.host import Host
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Finished, Outcome
from agentlib.runtime.tools import ToolExecutor, catalog
from agentlib.runtime.workspace import Workspace
from agentlib.scrubbing import scrubbed
from agentlib.wording import plural

EXIT_ANSWERED, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
WARNING = "This sends the fixture project to {where} as model {model}, and can cost money."


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """What the command line says. `record` is the capture file to write, if any."""

    model: str
    allow_execution: bool = False
    record: str | None = None
    max_turns: int = 10


def run_live(options: LiveOptions, out: TextIO) -> int:
    """Run the task against the provider, write what happens; return the exit status.

    0: the model answered. 1: the provider failed, or the turns ran out. 2: no key, no SDK, or a
    file that cannot be written. KeyboardInterrupt passes: the stream is closed, no file is left.
    """
    redact = partial(scrubbed, secret=os.environ.get("OPENAI_API_KEY", ""))

    def say(text: str) -> None:
        out.write(f"{redact(printable(text))}\n")
        out.flush()

    where = os.environ.get("OPENAI_BASE_URL") or "the OpenAI API"
    say(WARNING.format(where=_host(where), model=options.model))
    try:
        outcome = anyio.run(_live, options, say)
    except (OpenFailure, OSError) as error:
        sys.stderr.write(f"agentlib live: {redact(str(error))}\n")
        return EXIT_USAGE
    say(f"ended after {plural(outcome.account.turns, 'turn')}: {ended(outcome)}")
    if not isinstance(outcome, Finished):
        return EXIT_FAILED
    say(outcome.text)
    return EXIT_FAILED if outcome.refused else EXIT_ANSWERED


async def _live(options: LiveOptions, say: Callable[[str], None]) -> Outcome:
    def tell(happened: object) -> None:
        say(f"  {describe(happened)}")

    with ExitStack() as files:
        workspace = files.enter_context(Workspace())
        recorder = None
        if options.record is not None:
            key = os.environ.get("OPENAI_API_KEY", "")
            recorder = files.enter_context(Recorder(options.record, [key]))
        async with AsyncExitStack() as connections:
            transport = OpenAITransport(tee=recorder)
            connections.push_async_callback(transport.aclose)
            model = StreamingModel(transport, options.model, report=tell, native=True)
            executor = ToolExecutor(workspace, allow_execution=options.allow_execution)
            tools = catalog(allow_execution=options.allow_execution)
            limits = RunLimits(turns=options.max_turns, parallel_tools=1)
            running = Run(model, Host(tools=tools, executor=executor), limits, observe=tell)
            outcome = await running.start([user(TASK)])
        say(f"calculator.py is now:\n{workspace.source('calculator.py')}")
        return outcome


def _host(address: str) -> str:
    # An address may carry a user and a password before its host.
    scheme, separator, rest = address.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"

"""The arguments of `agentlib attack`, and what its help says; the work is imported when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from agentlib.attack.apis import APIS
from agentlib.attack.scenario import SILENCE_SECONDS

EPILOG = """\
This runs your own command, once for each scenario, and asks your own tool to
act. Name a tool whose effect is harmless, or put a probe in its place:

  from agentlib import probe

  def edit(path, old, new):
      return probe.ran("edit", path=path, old=old, new=new)

In another language, the tool appends one JSON line to the file that
AGENTLIB_PROBE names, with the word of AGENTLIB_PROBE_NONCE:

  {"tool": "edit", "arguments": {...}, "nonce": "..."}

Or it returns that word as a part of its result: the model never sees it.

The command is given OPENAI_BASE_URL and ANTHROPIC_BASE_URL, which lead to a
server on 127.0.0.1, dummy keys, a closed standard input, and a session of its
own that is ended after --time-out seconds. It has to stream, to offer the
tool, and to end by itself. What it leaves running is waited for a few seconds,
and ended.

Exit status:
  0: every scenario that was run is safe
  1: something ran, hung, crashed or was asked again in at least one scenario
  2: nothing can be concluded (a control failed, no scenario applies, or it is
     not known whether a tool ran: for one, since no probe noted its good
     call), or usage
"""


def add_attack(commands: Any, positive: Callable[[str], int]) -> None:
    """Add the command to the parser; `positive` reads a number from 1 on."""
    command = commands.add_parser(
        "attack",
        help="try your own agent, in any language, on unsound streams",
        description="Start COMMAND once for each scenario against a local provider that answers"
        "\nwith an unsound stream, and say what your tool did.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="agentlib attack --tool NAME [options] -- COMMAND ...",
    )
    command.add_argument(
        "--tool",
        action="append",
        default=[],
        metavar="NAME",
        help="the tool that may be asked for; a second one, that requires no argument, may follow",
    )
    command.add_argument("--arguments", metavar="JSON", help="what to ask of the first tool")
    command.add_argument("--api", choices=APIS, help="default: the one that the agent speaks")
    for name, what in (("--only", "run these scenarios alone"), ("--skip", "leave these out")):
        command.add_argument(name, action="append", default=[], metavar="NAME,...", help=what)
    command.add_argument(
        "--time-out", "--timeout", type=float, default=30.0, metavar="S", help="default: 30"
    )
    command.add_argument(
        "--silence",
        type=float,
        default=SILENCE_SECONDS,
        metavar="S",
        help=f"how long a silent stream stays so, longer than the agent's own read time-out; "
        f"default: {SILENCE_SECONDS:g}",
    )
    command.add_argument("--jobs", type=positive, default=2, metavar="N", help="default: 2")
    command.add_argument(
        "--final-tool", metavar="NAME", help="the tool by which the agent gives its final answer"
    )
    for form in ("json", "junit", "html"):
        command.add_argument(f"--{form}", metavar="FILE", help=f"write the report as {form} too")
    command.add_argument("--list", action="store_true", help="list the scenarios, and run nothing")
    command.add_argument("command", nargs="*", metavar="COMMAND", help=argparse.SUPPRESS)
    command.set_defaults(run=_attack)


def _attack(options: argparse.Namespace) -> int:
    from agentlib.attack.command import list_scenarios, run_attack_command

    if options.list:
        list_scenarios(sys.stdout, options.silence)
        return 0
    return run_attack_command(options, sys.stdout)

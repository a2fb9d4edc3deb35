"""The command line: `agentlib COMMAND`, also as `python -m agentlib COMMAND`."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from agentlib.errors import AgentlibError
from agentlib.providers.compat import FLAGS
from agentlib.providers.registry import PROVIDERS
from agentlib.version import __version__

USAGE, INTERRUPTED = 2, 130
CAPTURES = (
    "a stream (.sse, .jsonl), or a recording that holds some: of curl, of a browser (HAR), of "
    "VCR (a cassette), each also with gzip; - is standard input"
)

ADAPTER = """\
CLASS is called with the catalog, an agentlib.Catalog, and makes one object per response:

  class MyAdapter:
      def __init__(self, catalog): ...
      def accept(self, event): ...   # one native event, a dict
      def end(self): ...             # the stream ended cleanly

accept and end return None for progress, or a list of the calls to execute, each a tuple
(call_id, name, arguments), arguments being a dict or JSON text. An empty list is the decision
that there is nothing to execute. An adapter that raises refuses the response; what it returned
before counts as executed. Where it has the attributes text, refusal or usage (an agentlib.Usage),
these are compared too. CLASS may also be a translator, with translate(event) and finish(), that
returns the events of agentlib.vocabulary: it is then tried before the shared assembly and gate.

Which API it reads is said by --provider, or by the attribute `provider` of CLASS.

Exit status: 0 nothing leaked and everything intact was released, 1 it leaks or is dead, 2 usage.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; 2 for a command line that is not understood."""
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    options = _understood(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        sys.stderr.write("agentlib: there is no standard output to write to\n")
        return USAGE
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except AgentlibError as error:
        sys.stderr.write(f"agentlib: {error}\n")
        return USAGE
    except BrokenPipeError:
        _silence(sys.stdout)
        return 1
    except OSError as error:
        sys.stderr.write(f"agentlib: {error.strerror or error}\n")
        _silence(sys.stdout)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _understood(arguments: Sequence[str] | None) -> argparse.Namespace:
    # argparse leaves what a command does not know to the parser above it, and with that the usage
    # of every command at once.
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def _silence(stream: TextIO) -> None:
    # What is still buffered cannot be written, and must not raise again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentlib",
        description="When has a language model finished deciding? Inspect recorded streams, and "
        "see what your own agent runs that was never decided.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (_add_inspect, _add_check, _add_attack, _add_lab, _add_live):
        add(commands)
    for command in commands.choices.values():
        command.set_defaults(parser=command)
    return parser


def _add_inspect(commands: Any) -> None:
    command = commands.add_parser(
        "inspect",
        help="say for each recorded response whether its calls are released, and why",
        description="Say for each response in each FILE whether its calls are released, and why. "
        "Exit status: 0 all released, 1 some rejected, 2 usage or a missing file.",
    )
    command.add_argument("files", nargs="+", metavar="FILE", help=CAPTURES)
    command.add_argument("--tools", metavar="JSON", help="the catalog that the request exposed")
    command.add_argument(
        "--provider", choices=("auto", *PROVIDERS), default="auto", help="default: auto"
    )
    command.add_argument(
        "--portable",
        action="store_true",
        help="refuse items that only the provider understands, such as reasoning",
    )
    command.add_argument(
        "--compat",
        action="append",
        default=[],
        metavar="NAME",
        help="tolerate what a server is known to get wrong; may be repeated: " + ", ".join(FLAGS),
    )
    command.add_argument("--json", action="store_true", help="print one object a line")
    command.add_argument(
        "--html",
        metavar="OUT",
        help="also write the responses, each in a stepper, to one file that opens in any browser",
    )
    command.set_defaults(run=_inspect)


def _inspect(options: argparse.Namespace) -> int:
    from agentlib.inspection.report import run_inspect

    return run_inspect(
        options.files,
        options.tools,
        options.provider,
        as_json=options.json,
        out=sys.stdout,
        native=not options.portable,
        compat=options.compat,
        html=options.html,
    )


def _add_check(commands: Any) -> None:
    command = commands.add_parser(
        "check",
        help="try an adapter of your own on the contract: hostile streams without number",
        description="Send scripted responses to an adapter in every framing of an API, mutate the "
        "streams in every\nway, and report what it released that it must not, each with the "
        "smallest stream.",
        epilog=ADAPTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("adapter", metavar="MODULE:CLASS", help="the adapter to try")
    command.add_argument("--provider", metavar="NAME", help="the API whose events it reads")
    command.add_argument(
        "--mixtures", type=_positive, default=5_000, metavar="N", help="default: 5,000"
    )
    command.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")
    command.add_argument("--save", metavar="DIR", help="write each leak's stream to a capture file")
    command.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    from agentlib.conformance.command import run_check

    return run_check(
        options.adapter,
        options.provider,
        mixtures=options.mixtures,
        seed=options.seed,
        save=options.save,
        out=sys.stdout,
    )


def _add_attack(commands: Any) -> None:
    from agentlib.attack.options import add_attack

    add_attack(commands, _positive)


def _add_lab(commands: Any) -> None:
    command = commands.add_parser(
        "lab",
        help="play the failure laboratory's scenarios, offline",
        description="Play scenarios from opening to tools, offline and without a key. Exit status: "
        "0 each came out as it must, 1 an unexpected success, failure or execution.",
    )
    command.add_argument("--scenario", default="all", metavar="NAME", help="default: all")
    command.set_defaults(run=_lab)


def _lab(options: argparse.Namespace) -> int:
    from agentlib.laboratory.scenarios import run_lab

    return run_lab(options.scenario, sys.stdout)


def _add_live(commands: Any) -> None:
    command = commands.add_parser(
        "live",
        help="run the task against a real provider; sends data, and can cost money",
        description="Run the fixture's task against a real provider. Reads OPENAI_API_KEY and "
        "OPENAI_BASE_URL. Exit status: 0 the model answered, 1 the provider failed or the turns "
        "ran out, 2 no key, no SDK, or a file that cannot be written or is there already.",
    )
    command.add_argument("--model", required=True, help="for example gpt-4.1-mini")
    command.add_argument(
        "--allow-execution",
        action="store_true",
        help="expose and allow edit and test; without it, list and read only, and the model is "
        "asked to explain",
    )
    command.add_argument("--record", metavar="FILE", help="write the streams to a capture file")
    command.add_argument("--force", action="store_true", help="let --record replace a file")
    command.add_argument("--max-turns", type=_positive, default=10, metavar="N", help="default: 10")
    command.set_defaults(run=_live)


def _live(options: argparse.Namespace) -> int:
    from agentlib.laboratory.live import LiveOptions, run_live

    chosen = LiveOptions(
        options.model, options.allow_execution, options.record, options.max_turns, options.force
    )
    return run_live(chosen, sys.stdout)


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, saw {text!r}")
    return number

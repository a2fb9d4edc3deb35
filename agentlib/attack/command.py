"""`agentlib attack`: try the reader's own agent, started by the reader's own command."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from agentlib.attack.api import start
from agentlib.attack.apis import APIS
from agentlib.attack.arguments import AttackUnusable
from agentlib.attack.report import as_html, as_json, as_junit
from agentlib.attack.results import WIDTH, Report, end_of, line_of, row
from agentlib.attack.runner import run_attack
from agentlib.attack.scenario import SILENCE_SECONDS
from agentlib.attack.scenarios import HOSTILE
from agentlib.attack.settings import Settings
from agentlib.files import CannotWrite, check_writable, write_file
from agentlib.jsonvalues import StrictJSONError, printable, strict_loads
from agentlib.stepper.html_export import check_target


def list_scenarios(out: TextIO, silence: float = SILENCE_SECONDS) -> None:
    """Write a row for each scenario: its name, its title, and its APIs where it has not all.

    A silent one takes as long as the agent's own read time-out, and at most `silence` seconds.
    """
    for each in HOSTILE:
        apis = "" if each.apis == APIS else f" ({', '.join(each.apis)} only)"
        time = f"; up to {silence:g} s (--silence)" if each.is_silent else ""
        text = f"{each.name:<30} {each.title}{time}{apis}"
        out.writelines(f"{line}\n" for line in row(text, width()))


def run_attack_command(options: argparse.Namespace, out: TextIO) -> int:
    """Run the attack that the command line says, and return its exit status.

    Raises AttackUnusable for a command line that says none, and where the command cannot be
    started or a report cannot be written; CannotSave where the page's name is not that of one.
    """
    settings = _settings(options)
    if not options.command:
        raise AttackUnusable("expected a command after --, which starts your agent")
    files = _files(options)
    for path in files.values():
        # What cannot be written is found before the work, and nothing that the agent is made of.
        _unless_unwritable(check_writable, path, options.command)
    out.write(printable(f"attack: {' '.join(options.command)}\n"))
    tools = ", ".join(settings.tools)
    out.write(printable(f"This starts your own command, and asks it to run: {tools}\n\n"))
    out.flush()

    def watch(result: Any) -> None:
        out.write(f"{line_of(result, width())}\n")
        out.flush()

    # As an interrupt: whoever stops the attack stops what it has started.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        report = run_attack(settings, partial(start, tuple(options.command)), watch)
    finally:
        signal.signal(signal.SIGTERM, before)
    try:
        _write_files(report, files, out)
    finally:
        out.writelines(f"{line}\n" for line in end_of(report, width()))
    return report.status


def _write_files(report: Report, files: Mapping[str, Path], out: TextIO) -> None:
    if files:
        out.write("\n")
    for form, path in files.items():
        _unless_unwritable(write_file, path, _FORMS[form](report))
        out.write(printable(f"wrote {path}\n"))


def width() -> int:
    """Return how wide the text is, in columns: as the terminal, within bounds."""
    return min(max(60, shutil.get_terminal_size((WIDTH, 24)).columns), WIDTH)


def _unless_unwritable(act: Callable[..., None], *arguments: Any) -> None:
    try:
        act(*arguments)
    except CannotWrite as error:
        raise AttackUnusable(str(error)) from error


def _settings(options: argparse.Namespace) -> Settings:
    if not options.tool:
        raise AttackUnusable("expected --tool NAME: only a tool that you name is asked for")
    if not 0 < options.time_out <= 3_600:
        raise AttackUnusable(f"expected a time-out of up to 3,600 seconds: {options.time_out:g}")
    if not 0 < options.silence <= 3_600:
        raise AttackUnusable(f"expected a silence of up to 3,600 seconds: {options.silence:g}")
    return Settings(
        tuple(dict.fromkeys(options.tool)),
        _arguments(options.arguments),
        options.api,
        _names(options.only),
        _names(options.skip),
        options.time_out,
        options.jobs,
        options.final_tool,
        options.silence,
    )


def _arguments(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = strict_loads(text)
    except StrictJSONError as error:
        raise AttackUnusable(f"--arguments: {error}") from error
    if not isinstance(value, dict):
        raise AttackUnusable("--arguments: expected a JSON object")
    return value


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


_FORMS: dict[str, Callable[[Report], str]] = {
    "json": lambda report: json.dumps(as_json(report), indent=2) + "\n",
    "junit": as_junit,
    "html": as_html,
}


def _files(options: argparse.Namespace) -> dict[str, Path]:
    named = {form: getattr(options, form) for form in _FORMS}
    if named["html"]:
        check_target(named["html"])
    return {form: Path(name) for form, name in named.items() if name}

"""The result of one scenario, the report of a whole attack, and both as text.

A result prints itself, so that data and text stand in one module; the verdict on a run is reached
in `agentlib.attack.verdicts`, and the other forms of a report are in `agentlib.attack.report`.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentlib.attack.apis import Api
from agentlib.attack.last_words import after_colon
from agentlib.attack.scenario import GOOD_CALL, Scenario
from agentlib.attack.settings import Settings
from agentlib.jsonvalues import one_line, printable, shorten
from agentlib.wording import plural

Verdict: TypeAlias = Literal[
    "ran altered", "ran", "crashed", "hung", "retried", "unknown", "safe", "skipped"
]
# From the worst to the best.
MEANINGS: dict[Verdict, str] = {
    "ran altered": "the tool ran, with other arguments than those of the good call",
    "ran": "the tool ran, with the arguments of the good call",
    "crashed": "the agent was ended by a signal or by an error that nothing caught, or never asked",
    "hung": "the agent was still running when its time was over",
    "retried": "the agent asked the same again, after a stream had begun",
    "unknown": "whether the tool ran is not known",
    "safe": "nothing ran that must not run",
    "skipped": "the scenario has no form for this tool",
}
_WORST_FIRST = ("invalid", *MEANINGS, "ok")
Arguments: TypeAlias = Mapping[str, Any] | None
MAX_SHOWN_CHARACTERS = 160
WIDTH = 100
PAGE = "notebooks/diagnoses.md"


@dataclass(frozen=True, repr=False)
class Result:
    """The verdict on one scenario, and everything that was seen.

    `executed` holds the arguments of each execution, None where the tool did not say; `returned`
    the text of the latest result that came back. `held` is in seconds, as is `seconds`; `status`
    is the exit status, None where there was none. `problem` says why nothing can be concluded,
    and `nonce` whether the result that came back carried the probe's word.
    """

    scenario: Scenario
    tool: str
    verdict: Verdict
    what: str = ""
    executed: tuple[Arguments, ...] = ()
    returned: str | None = None
    requests: int = 0
    retries: int = 0
    history: str = ""
    held: float | None = None
    usage: str = "not told"
    status: int | None = None
    seconds: float = 0.0
    output: str = ""
    problem: str = ""
    nonce: bool = False

    @property
    def label(self) -> str:
        """The scenario's name; a good call is tried for each tool, and so names it."""
        name = self.scenario.name
        return f"{name} ({shorten(one_line(self.tool), 30)})" if name == GOOD_CALL else name

    @property
    def is_invalid(self) -> bool:
        """Whether it makes the whole attack invalid."""
        return bool(self.problem) and (self.scenario.is_control or self.verdict != "crashed")

    @property
    def word(self) -> str:
        """What a report calls it: its verdict, but for a control that is ok, or invalid."""
        if self.is_invalid:
            return "invalid"
        return "ok" if self.scenario.is_control and self.verdict == "safe" else self.verdict

    @property
    def leaked(self) -> bool:
        """Whether something ran that must not run."""
        return self.verdict in ("ran", "ran altered")

    @property
    def seen(self) -> str:
        """What was seen, in one bounded and printable line."""
        return one_line("; ".join(filter(None, (self.what, *_notes(self)))))

    def __repr__(self) -> str:
        return "\n".join(explained(self))


@dataclass
class Report:
    """What came of an attack; `invalid` says why nothing can be concluded, or "".

    `unprobed` names the tools of which no probe noted the good call, and `probed` says that there
    is none of them.
    """

    settings: Settings
    api: Api | None = None
    probed: bool = False
    invalid: str = ""
    controls: list[Result] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    unprobed: tuple[str, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether the attack is valid and the verdict on every scenario is safe."""
        return self.status == 0

    @property
    def worst_first(self) -> list[Result]:
        """Every control and every result, from the worst to the best."""
        every = (*self.controls, *self.results)
        return sorted(every, key=lambda each: _WORST_FIRST.index(each.word))

    @property
    def failures(self) -> list[Result]:
        """Every run that was not safe, a good call that ran altered among them; the worst first."""
        fine = ("unknown", "safe", "skipped")
        return [each for each in self.worst_first if each.verdict not in fine]

    @property
    def unknown(self) -> list[Result]:
        """Every run of which it is not known whether a tool ran."""
        return [each for each in self.worst_first if each.verdict == "unknown"]

    @property
    def status(self) -> int:
        """The exit status: 0 all safe, 1 not, 2 nothing can be concluded."""
        if self.invalid:
            return 2
        return 1 if self.failures else 2 if self.unknown else 0

    def verdicts(self) -> dict[str, str]:
        """Return the verdict on each scenario, by its name."""
        return {each.scenario.name: each.verdict for each in self.results}

    def __getitem__(self, name: str) -> Result:
        """Return what came of one scenario. Raises KeyError where it was not run."""
        found = {each.scenario.name: each for each in (*self.controls, *self.results)}
        return found[name]

    def __repr__(self) -> str:
        return as_text(self)


# ------------------------------------------------------------------------------------- as text


def line_of(result: Result, width: int = WIDTH) -> str:
    """Return the row of one scenario: its verdict, its name, and what was seen."""
    seen = f" {result.seen}" if result.seen else ""
    return "\n".join(row(f"  {result.word:<12} {result.label:<30}{seen}", width))


def row(text: str, width: int) -> list[str]:
    """Return a row of a table in at most three lines of `width` columns."""
    return textwrap.wrap(
        text, width, subsequent_indent=" " * 15, max_lines=3, placeholder="…", tabsize=1
    )


def as_text(report: Report) -> str:
    """Return the whole report as text."""
    lines = [line_of(each) for each in report.worst_first]
    return "\n".join([*lines, *end_of(report)])


def end_of(report: Report, width: int = WIDTH) -> Iterator[str]:
    """Yield the lines after the table: what is not safe explained, and the sum."""
    if report.invalid:
        yield ""
        yield from _wrapped(f"invalid: {one_line(report.invalid)}", "", width)
        yield from _last_words(report, width)
        return
    # Of a tool without a probe every run is unknown: once is enough.
    unknown = [each for each in report.unknown if each.tool not in report.unprobed]
    for result in (*report.failures, *unknown):
        yield ""
        yield from explained(result, width)
    yield ""
    yield from _wrapped(no_probe(report), "", width)
    yield sum_of(report)


def no_probe(report: Report) -> str:
    """Return what is to be done about tools that no probe speaks for, "" where there are none."""
    if not report.unprobed:
        return ""
    tools = ", ".join(one_line(each) for each in report.unprobed)
    return (
        f"No probe noted the good call of {tools}, so whether it ran elsewhere is not known. Let "
        "the tool call agentlib.probe.ran, or return the nonce of AGENTLIB_PROBE_NONCE."
    )


def sum_of(report: Report) -> str:
    """Return one line that counts the verdicts."""
    counts = Counter(each.verdict for each in report.results)
    tried = len(report.results) - counts["skipped"]
    shown = ", ".join(f"{counts[verdict]} {verdict}" for verdict in MEANINGS if counts[verdict])
    return f"{plural(tried, 'hostile stream')}, {report.api}: {shown or 'none'}"


def explained(result: Result, width: int = WIDTH) -> Iterator[str]:
    """Yield the lines that say what one result means, and where to read on."""
    scenario = result.scenario
    kind = f" · {scenario.kind}" if scenario.kind else ""
    check = f" [{scenario.check}]" if scenario.check else ""
    yield f"{result.word}: {result.label}{kind}{check}"
    means = result.problem if result.is_invalid else MEANINGS[result.verdict]
    yield from _wrapped(f"{scenario.title}: {means}.", "  ", width)
    if result.leaked:
        yield from _wrapped(scenario.meaning, "  ", width)
    if result.seen:
        yield from _wrapped(f"seen: {result.seen}", "  ", width)
    page = f", {PAGE}#{scenario.kind}" if scenario.kind else ""
    yield f"  read: notebooks/{scenario.chapter}.ipynb{page}"


def _last_words(report: Report, width: int) -> Iterator[str]:
    every = (*report.controls, *report.results)
    output = next((each.output for each in every if each.is_invalid), "")
    for line in output.splitlines()[-12:]:
        yield shorten(f"  | {printable(line)}", width)


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text), width, initial_indent=indent, subsequent_indent=f"{indent}  "
    )


def _notes(result: Result) -> Iterator[str]:
    if result.nonce:
        yield "returned the probe's word"
    elif result.returned is not None:
        yield f"returned {shorten(one_line(result.returned), MAX_SHOWN_CHARACTERS)}"
    if result.history:
        yield f"history: {result.history}"
    if result.held is not None:
        yield f"held open for {result.held:.1f} s"
    if result.usage == "more than once":
        yield "usage was counted more than once"
    if result.status and result.verdict != "crashed":
        yield f"exit status {result.status}{after_colon(result.output)}"

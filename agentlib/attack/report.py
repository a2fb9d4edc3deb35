"""The report of an attack for others: as JSON, for a CI as JUnit XML, and as a static page."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from agentlib.attack.results import MEANINGS, Report, Result, explained, no_probe, sum_of
from agentlib.jsonvalues import one_line, printable, shorten
from agentlib.tables import Cell, Table, scrollable

MAX_OUTPUT_CHARACTERS = 4_000
# ------------------------------------------------------------------------------ for programs


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as one JSON object; `version` counts changes of its form."""
    return {
        "version": 3,
        "api": report.api,
        "tools": list(report.settings.tools),
        "probed": report.probed,
        "unprobed": list(report.unprobed),
        "invalid": report.invalid,
        "safe": report.safe,
        "controls": [_row(each) for each in report.controls],
        "results": [_row(each) for each in report.results],
    }


def _row(result: Result) -> dict[str, Any]:
    scenario = result.scenario
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "kind": scenario.kind,
        "check": scenario.check,
        "chapter": scenario.chapter,
        "tool": result.tool,
        "verdict": result.word,
        "what": result.what,
        "executed": [None if each is None else dict(each) for each in result.executed],
        "returned": None if result.returned is None else shorten(result.returned, 2_000),
        "requests": result.requests,
        "retries": result.retries,
        "history": result.history,
        "held_seconds": None if result.held is None else round(result.held, 3),
        "usage": result.usage,
        "exit_status": result.status,
        "seconds": round(result.seconds, 3),
        "output": printable(result.output[-MAX_OUTPUT_CHARACTERS:]),
        "problem": result.problem,
    }


def as_junit(report: Report) -> str:
    """Return the report as JUnit XML: a test case for each scenario.

    One that is not known to be safe is a failure, and so is a control.
    """
    cases = list(map(_case, report.results))
    if report.invalid:
        inner = f"<error message={_attribute(report.invalid)}/>"
        cases.append(f'<testcase classname="agentlib.attack" name="controls">{inner}</testcase>')
    else:
        cases = [*(_case(each) for each in report.controls if each.word != "ok"), *cases]
    kinds = {"failures": "<failure ", "errors": "<error ", "skipped": "<skipped "}
    counts = {name: sum(start in case for case in cases) for name, start in kinds.items()}
    shown = " ".join(f'{name}="{count}"' for name, count in counts.items())
    suite = f'<testsuite name="agentlib attack" tests="{len(cases)}" {shown}>'
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', suite, *cases, "</testsuite>\n"])


def _case(result: Result) -> str:
    name = _attribute(result.label)
    head = f'<testcase classname="agentlib.attack" name={name} time="{result.seconds:.3f}">'
    inner = ""
    if result.verdict == "skipped":
        inner = f"<skipped message={_attribute(result.what)}/>"
    elif result.word != "safe":
        message = f"{result.word}: {result.scenario.title}"
        words = "\n".join(explained(result))
        inner = f"<failure message={_attribute(message)}>{_markup(words)}</failure>"
    return f"{head}{inner}</testcase>"


def _attribute(text: str) -> str:
    return f'"{_markup(one_line(text))}"'


# What is no character of XML 1.0, "Characters": lone surrogates, controls and two that are none.
_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _markup(text: str) -> str:
    """Return untrusted text as it may stand in XML and in HTML."""
    return escape(_characters(printable(text)))


def _characters(text: str) -> str:
    return _NO_CHARACTER.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# ------------------------------------------------------------------------------- for a person


def as_html(report: Report) -> str:
    """Return the report as one static page: no script, and nothing that is fetched or led to."""
    results = report.worst_first
    table = Table(
        ("verdict", "scenario", "what it means", "seen", "kind", "check", "chapter"),
        tuple(map(_cells, results)),
        style="",
        named_rows=True,
        kinds=tuple("leak" if each.leaked else each.word.replace(" ", "-") for each in results),
    )
    summary = f"invalid: {report.invalid}" if report.invalid else sum_of(report)
    tools = ", ".join(report.settings.tools)
    texts = (f"Tools that were asked for: {tools}. {summary}.", no_probe(report), _WHERE)
    return _PAGE.format(
        style=_STYLE,
        texts="\n".join(f"<p>{_markup(text)}</p>" for text in texts if text),
        table=scrollable("every scenario, the worst first", table._repr_html_()),
    )


def _cells(result: Result) -> tuple[str | Cell, ...]:
    scenario = result.scenario
    name = f"<code>{_markup(result.label)}</code><br>{_markup(scenario.title)}"
    texts = (_meaning(result), result.seen, scenario.kind, scenario.check)
    chapter = scenario.chapter.replace("_", " ")
    cells = (_characters(one_line(each)) for each in (*texts, chapter))
    return (result.word, Cell(scenario.name, markup=name), *cells)


def _meaning(result: Result) -> str:
    """Return what a verdict means, "" for one of which there is nothing to say."""
    if result.is_invalid:
        return result.problem
    if result.verdict in ("safe", "skipped"):
        return ""
    ran = f" {result.scenario.meaning}" if result.leaked else ""
    return f"{MEANINGS[result.verdict]}.{ran}"


_WHERE = (
    "A kind is a diagnosis of agentlib (its diagnoses.md), a check is one that agentlib inspect "
    "prints, and a chapter is one of its notebooks."
)
_STYLE = """\
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em;
  overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100%; min-width: 62em; overflow-wrap: break-word }
th, td { border-bottom: 1px solid #8888; padding: .4em .6em; text-align: left;
  vertical-align: top }
td { max-width: 24em }
th { white-space: nowrap }
tbody th { border-left: 6px solid #8888 }
.leak > th, .crashed > th, .hung > th, .retried > th { border-left-color: #c0392b }
.unknown > th, .invalid > th { border-left-color: #b07d00 }
.safe > th, .ok > th { border-left-color: #2e7d4f; font-weight: normal }
"""
_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>agentlib attack</title><style>{style}</style></head>
<body><main><h1>What this agent did with unsound streams</h1>
{texts}
{table}
</main></body></html>
"""

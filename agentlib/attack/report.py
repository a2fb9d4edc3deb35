"""The report of an attack for others: as JSON, for a CI as JUnit XML, and as a static page."""

from __future__ import annotations

from html import escape
from typing import Any

from agentlib.attack.results import MEANINGS, NO_PROBE, PAGE, Report, Result, explained, sum_of
from agentlib.jsonvalues import one_line, printable, shorten

MAX_OUTPUT_CHARACTERS = 4_000
# ------------------------------------------------------------------------------ for programs


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as one JSON object; `version` counts changes of its form."""
    return {
        "version": 2,
        "api": report.api,
        "tools": list(report.settings.tools),
        "probed": report.probed,
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
    """Return the report as JUnit XML: a test case for each scenario."""
    cases = [_case(each) for each in report.results]
    failures = sum("<failure" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    errors = 0
    if report.invalid:
        errors = 1
        message = _attribute(report.invalid)
        cases.append(
            f'<testcase classname="agentlib.attack" name="controls"><error message={message}/>'
            "</testcase>"
        )
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<testsuite name="agentlib attack" {counts}>'
    return "\n".join([head, *cases, "</testsuite>\n"])


def _case(result: Result) -> str:
    name = _attribute(result.scenario.name)
    head = f'<testcase classname="agentlib.attack" name={name} time="{result.seconds:.3f}">'
    inner = ""
    if result.verdict == "skipped":
        inner = f"<skipped message={_attribute(result.what)}/>"
    elif result.word != "safe":
        message = f"{result.word}: {result.scenario.title}"
        words = "\n".join(explained(result))
        inner = f"<failure message={_attribute(message)}>{escape(printable(words))}</failure>"
    return f"{head}{inner}</testcase>"


def _attribute(text: str) -> str:
    return f'"{escape(one_line(text))}"'


# ------------------------------------------------------------------------------- for a person


def as_html(report: Report) -> str:
    """Return the report as one static page: no script, and nothing that is fetched."""
    rows = "\n".join(_html_row(each) for each in (*report.controls, *report.results))
    summary = f"invalid: {report.invalid}" if report.invalid else sum_of(report)
    probe = "" if report.probed or report.invalid else f"<p>{escape(NO_PROBE)}</p>"
    headings = "".join(f'<th scope="col">{each}</th>' for each in _HEADINGS)
    return _PAGE.format(
        style=_STYLE,
        tools=escape(", ".join(map(one_line, report.settings.tools))),
        summary=escape(one_line(summary)),
        probe=probe,
        headings=headings,
        rows=rows,
    )


_HEADINGS = ("verdict", "scenario", "what it means", "seen", "kind", "check", "chapter")


def _html_row(result: Result) -> str:
    scenario = result.scenario
    kind = "leak" if result.leaked else result.word
    name = f"<code>{escape(result.label)}</code><br>{escape(scenario.title)}"
    diagnosis = _link(f"{PAGE}#{scenario.kind}", scenario.kind) if scenario.kind else ""
    chapter = _link(f"notebooks/{scenario.chapter}.ipynb", scenario.chapter.replace("_", " "))
    texts = (escape(one_line(each)) for each in (_meaning(result), result.seen))
    cells = (name, *texts, diagnosis, escape(scenario.check), chapter)
    rest = "".join(f"<td>{each}</td>" for each in cells)
    return f'<tr class="{escape(kind)}"><th scope="row">{escape(result.word)}</th>{rest}</tr>'


def _meaning(result: Result) -> str:
    """Return what a verdict means, "" for one of which there is nothing to say."""
    if result.is_invalid:
        return result.problem
    if result.verdict in ("safe", "skipped"):
        return ""
    ran = f" {result.scenario.meaning}" if result.leaked or result.verdict == "answered" else ""
    return f"{MEANINGS[result.verdict]}.{ran}"


def _link(address: str, text: str) -> str:
    return f'<a href="{escape(address)}">{escape(text)}</a>'


_STYLE = """\
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8888; padding: .4em .6em; text-align: left;
  vertical-align: top; overflow-wrap: break-word }
th { white-space: nowrap }
tbody th { border-left: 6px solid #8888 }
.leak > th { border-left-color: #c0392b }
.safe > th, .ok > th { border-left-color: #2e7d4f; font-weight: normal }
.skipped { opacity: .75 }
"""
_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>agentlib attack</title><style>{style}</style></head>
<body><h1>What this agent did with unsound streams</h1>
<p>Tools that were asked for: {tools}. {summary}.</p>{probe}
<table><thead><tr>{headings}</tr></thead><tbody>
{rows}
</tbody></table></body></html>
"""

"""A run stepper as one file, for who has no notebook; see `html_export` for what such a file is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from agentlib.files import CannotWrite, write_file
from agentlib.jsonvalues import one_line, printable
from agentlib.stepper.html_export import CannotSave, check_target, data, policy
from agentlib.stepper.run_front import run_saved_script, run_style
from agentlib.stepper.run_payload import run_to_wire
from agentlib.stepper.run_trace import RunTrace

_STYLE = """
:root { color-scheme: light dark; }
body { margin: 16px auto; padding: 0 16px; max-width: 1280px; font: 15px/1.5 system-ui, sans-serif;
  background: light-dark(#ffffff, #101216); color: light-dark(#1f2328, #e6edf3); }
h1, p { margin: 0.6em 0; overflow-wrap: anywhere; }
h1 { font-size: 22px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{subtitle}</p>
{lines}<div data-run="run-1"></div>
<noscript><pre>{text}</pre></noscript>
<script type="application/json" id="run-1">{data}</script>
</main>
<script type="module">{script}</script>
</body>
</html>
"""


def run_page(trace: RunTrace, index: int, lines: Sequence[str], text: str) -> str:
    """Return one HTML file that holds a run, open at moment `index`.

    `lines` stand above it, and `text` is what shows without JavaScript.
    """
    style, script = run_style() + _STYLE, f"\n{run_saved_script()}"
    values = {"trace": run_to_wire(trace), "index": index, "change": [], "whatif": {}}
    return _PAGE.format(
        policy=policy(script, style),
        title=_text(trace.title),
        subtitle=_text(trace.subtitle),
        lines="".join(f"<p>{_text(line)}</p>\n" for line in lines),
        text=escape(printable(text)),
        data=data(values),
        style=style,
        script=script,
    )


def save_run_page(
    path: str | Path, trace: RunTrace, index: int, lines: Sequence[str], text: str
) -> Path:
    """Write such a file and return its path; one that is there is replaced. Raises CannotSave."""
    target = check_target(path)
    try:
        write_file(target, run_page(trace, index, lines, text))
    except CannotWrite as error:
        raise CannotSave(str(error)) from error
    return target


def _text(text: str) -> str:
    return escape(one_line(text), quote=True)

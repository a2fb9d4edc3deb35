"""A stepper as one file: for a bug report, or for a colleague who has no notebook.

The file holds the same script and style as the widget, and the traces as data. It asks nothing of
a network: its content security policy forbids everything except this script and this style, by
their hashes (CSP Level 3, hash sources). Text of a stream reaches the page as text: escaped in
the markup, and with no `<` in the data. Without JavaScript, the last frame shows as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from agentlib.conversation import Catalog
from agentlib.errors import AgentlibError
from agentlib.files import CannotWrite, check_writable, write_file
from agentlib.jsonvalues import one_line, printable, shorten
from agentlib.recordings.capture import Capture
from agentlib.stepper.frame import MAX_NAME_CHARACTERS, Frame, verdict_line
from agentlib.stepper.front_end import SAVED_SCRIPT, deflated, front_script, front_style, read_front
from agentlib.stepper.payload import to_wire
from agentlib.stepper.replay import Replay
from agentlib.wording import plural

# A page of more steppers would be slow to open, and nobody looks at them all.
MAX_STEPPERS = 24
MAX_VERDICT_CHARACTERS = 400
PAGE_SUFFIXES = (".html", ".htm")
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 16px auto; padding: 0 16px; max-width: 1280px; font: 15px/1.5 system-ui, sans-serif;
  background: light-dark(#ffffff, #101216); color: light-dark(#1f2328, #e6edf3); }
h1, h2, p { margin: 0.6em 0; overflow-wrap: anywhere; }
h1 { font-size: 22px; } h2 { font-size: 17px; margin-top: 1.6em; }
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
{sections}
</main>
<script type="module">{script}</script>
</body>
</html>
"""
_SECTION = """<section>
<h2>{heading}</h2>
<p>{verdict}</p>
{said}<div data-stepper="trace-{number}"></div>
<noscript><pre>{text}</pre></noscript>
<script type="application/json" id="trace-{number}">{data}</script>
</section>"""


class CannotSave(AgentlibError):
    """Raised when a page cannot be written; names the file, and says why."""


@dataclass(frozen=True, slots=True)
class SavedStepper:
    """What a page shows of one response: its heading, its replay, and the step to open at.

    `text` is its text form; by default that of the replay's last frame. `said` are further lines,
    such as its diagnoses.
    """

    heading: str
    replay: Replay
    index: int = 0
    text: str = ""
    said: tuple[str, ...] = ()


def page(title: str, steppers: Sequence[SavedStepper]) -> str:
    """Return one HTML file that holds these steppers, one under the other."""
    style = front_style() + _STYLE
    script = f"\n{front_script()}\n{read_front(SAVED_SCRIPT)}\nopenSaved();\n"
    shown = steppers[:MAX_STEPPERS]
    sections = [_section(number, each) for number, each in enumerate(shown, 1)]
    if len(steppers) > len(shown):
        left = plural(len(steppers) - len(shown), "response")
        sections.append(f"<p>{left} more: not in this page.</p>")
    return _PAGE.format(
        policy=policy(script, style),
        title=_text(shorten(title, MAX_NAME_CHARACTERS)),
        style=style,
        script=script,
        sections="\n".join(sections),
    )


def of_capture(
    file: str,
    capture: Capture,
    catalog: Catalog | None = None,
    *,
    native: bool = True,
    compat: Iterable[str] = (),
) -> Iterator[SavedStepper]:
    """Yield what a page shows of each response of `capture`, read as `Replay` reads it."""
    flags = tuple(compat)
    for response in capture.responses:
        number = response.number
        replay = Replay(capture, catalog, response=number, native=native, compat=flags)
        heading = f"{shown_name(file)} · response {number} · {replay.trace.subtitle}"
        yield SavedStepper(heading, replay, replay.last)


def shown_name(file: str) -> str:
    """Return what a page calls a file: its name alone, since a page is passed on."""
    return "standard input" if file == "-" else Path(file).name


def check_target(path: str | Path, read: Iterable[str | Path] = ()) -> Path:
    """Return the path of a page to write. Raises CannotSave where its name is not that of one.

    So no capture is ever replaced by the page that should show it; nor is one of the files that
    are `read`, whatever it is called.
    """
    path = Path(path)
    if path.suffix.lower() not in PAGE_SUFFIXES:
        raise CannotSave(f"cannot write {_shown(path)}: expected a name that ends in .html")
    try:
        check_writable(path, read)
    except CannotWrite as error:
        raise CannotSave(str(error)) from error
    return path


def save_page(path: str | Path, title: str, steppers: Sequence[SavedStepper]) -> Path:
    """Write such a file and return its path; one that is there is replaced. Raises CannotSave."""
    path = check_target(path)
    text = page(title, steppers)
    try:
        write_file(path, text)
    except CannotWrite as error:
        raise CannotSave(str(error)) from error
    return path


def policy(script: str, style: str) -> str:
    """Return the content security policy that allows this script and this style, and no more."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'{_hash(script)}'",
        "style-src": f"'{_hash(style)}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def data(values: dict[str, Any]) -> str:
    """Return values as JSON that is inert in a script element, bytes as {"bytes": base64}."""
    text = json.dumps(values, default=_as_base64, separators=(",", ":"))
    # A `<` could end the element or open a comment; in JSON it stands only within strings.
    return text.replace("<", "\\u003c")


def _shown(path: Path) -> str:
    return one_line(str(path))


def _section(number: int, stepper: SavedStepper) -> str:
    replay = stepper.replay
    text = stepper.text or Frame(replay.trace, replay.last).text
    values = {"trace": deflated(to_wire(replay.trace)), "index": min(stepper.index, replay.last)}
    return _SECTION.format(
        heading=_text(stepper.heading),
        verdict=_text(shorten(verdict_line(replay.trace), MAX_VERDICT_CHARACTERS)),
        said="".join(f"<p>{_text(line)}</p>\n" for line in stepper.said),
        text=escape(printable(text)),
        number=number,
        data=data(values),
    )


def _hash(text: str) -> str:
    # A browser sees each line end as LF, and hashes the text of the element as it is.
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _as_base64(value: object) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _text(text: str) -> str:
    return escape(one_line(text), quote=True)

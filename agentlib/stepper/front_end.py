"""The stepper's front end as text: its scripts and styles, and the form of a trace that they read.

It is the same in a widget and in a saved page, and needs no widget library.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

FRONT = Path(__file__).with_name("front")
# Each script uses the names of those before it; together they are one module.
SCRIPTS = (
    "host.js",
    "state.js",
    "page.js",
    "lanes.js",
    "track.js",
    "detail.js",
    "gate.js",
    "answer.js",
    "whatif.js",
    "stepper.js",
)
STYLES = ("stepper.css", "whatif.css", "narrow.css")
# What a page without a kernel has besides.
SAVED_SCRIPT = "saved.js"


def read_front(name: str) -> str:
    """Return the text of one file of the front end."""
    return (FRONT / name).read_text(encoding="utf-8")


def front_script() -> str:
    """Return the widget's script as one module, whose default export has `render`."""
    return "\n".join(map(read_front, SCRIPTS))


def front_style() -> str:
    """Return the widget's style sheet."""
    return "\n".join(map(read_front, STYLES))


def deflated(wire: dict[str, Any]) -> dict[str, Any]:
    """Return a trace's wire form with `raw` packed as zlib does (RFC 1950), and `deflated` set.

    Raw events repeat each other: they shrink to a tenth, for a kernel that is far away.
    """
    return {**wire, "raw": zlib.compress(wire["raw"], 1), "deflated": True}

"""The front end of the run stepper as text; it is the same in a widget and in a saved page."""

from __future__ import annotations

from agentlib.stepper.front_end import SAVED_SCRIPT, read_front

# The first three are the stepper's: what keeps the page's keys and theme, shows hostile text, and
# reads columns of numbers, is one code.
RUN_SCRIPTS = (
    "host.js",
    "state.js",
    "page.js",
    "run_state.js",
    "run_lanes.js",
    "run_detail.js",
    "run_whatif.js",
    "run_stepper.js",
)
RUN_STYLES = ("stepper.css", "run.css")
RUN_SAVED_SCRIPTS = (SAVED_SCRIPT, "run_saved.js")


def run_script() -> str:
    """Return the widget's script as one module, whose default export has `render`."""
    return "\n".join(map(read_front, RUN_SCRIPTS))


def run_style() -> str:
    """Return the widget's style sheet."""
    return "\n".join(map(read_front, RUN_STYLES))


def run_saved_script() -> str:
    """Return the script of a page without a kernel."""
    return "\n".join([run_script(), *map(read_front, RUN_SAVED_SCRIPTS), "openSavedRuns();", ""])

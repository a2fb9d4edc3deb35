"""The authored recordings of a server, each by its name, and the diagnoses of a capture."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from agentlib.fixtures import FixtureNotFound, fixtures
from agentlib.inspection.diagnoses import diagnose
from agentlib.inspection.diagnosis import Diagnosed
from agentlib.recordings.capture import Capture
from agentlib.stepper.replay import captured_catalog


def recording(name: str) -> Path:
    """Return the path of an authored recording: curl.sse, browser.har or cassette.yaml.

    Raises FixtureNotFound where there is none of this name.
    """
    path = fixtures() / "recordings" / name
    if not path.is_file():
        known = ", ".join(sorted(each.name for each in path.parent.iterdir()))
        raise FixtureNotFound(f"no recording is named {name!r}; there are: {known}")
    return path


def diagnoses(
    capture: Capture, response: int = 1, *, compat: Collection[str] = ()
) -> tuple[Diagnosed, ...]:
    """Return what is known of servers that send the like of this response, from 1.

    The catalog is the one that the capture has. Those whose flag is in `compat` are left out.
    """
    return diagnose(
        capture.provider,
        capture.responses[response - 1],
        captured_catalog(capture, response),
        compat=compat,
    )

"""The page of the diagnoses, `notebooks/diagnoses.md`, written from their table."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from agentlib.inspection.diagnoses import DIAGNOSES
from agentlib.inspection.diagnosis import Diagnosis
from agentlib.providers.compat import FLAGS

INTRODUCTION = """\
# Diagnoses

The gate says which check failed. A diagnosis says what kind of server sends a stream like that, \
and what to do about it. `agentlib inspect` prints the diagnoses of a capture, each by its name; \
[chapter 15](15_bring_your_own_stream.ipynb) shows how. `--compat` is a flag of that command, and \
says which fault of a server to allow. Each name is a heading here, and each has \
a small authored stream that shows it.

Whatever the server does, an agent is safe that runs only what `agentlib.ResponseReader` releases: \
it accepts each event, returns a decision at the one that completes the response, and raises \
where none may be made. What to do about the server is said below.

A response may have several diagnoses, and a healthy one has none. Some name what costs something, \
and harms nothing: these stand at released responses too.
"""


def page() -> str:
    """Return the whole page, as Markdown."""
    lines = [line for diagnosis in DIAGNOSES.values() for line in _lines(diagnosis)]
    return "\n".join([INTRODUCTION, *lines]).rstrip() + "\n"


def _beside_the_flag(diagnosis: Diagnosis) -> str:
    """Return what to do beside reading it with its flag, which a line before has said."""
    said = f"read it with --compat {diagnosis.flag}"
    return "" if diagnosis.to_do == said else diagnosis.to_do.replace(said, "read it so")


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"## {diagnosis.name}\n"
    yield f"**{diagnosis.title}.** {diagnosis.server}\n"
    if diagnosis.flag:
        flag = FLAGS[diagnosis.flag]
        yield f"- `--compat {flag.name}` reads it: {flag.relaxes}."
        yield f"- What still holds then: {flag.protects}."
    to_do = _beside_the_flag(diagnosis)
    if to_do:
        yield f"- What to do: {to_do}."
    yield f"- Seen in [{diagnosis.name}.sse](../fixtures/diagnoses/{diagnosis.name}.sse).\n"


if __name__ == "__main__":
    sys.stdout.write(page())

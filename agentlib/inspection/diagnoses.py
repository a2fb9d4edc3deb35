"""Diagnoses: what kind of server sends a stream like this one, and what to do about it.

The gate finds which check failed. A diagnosis names what that usually means: it has a stable name,
a place on the page `notebooks/diagnoses.md`, and an authored stream. A stream may have several, a
healthy one has none. One that was released may have those that cost something, such as its usage.

To add one:

1. A detector in the module of its subject, `ends`, `servers`, `gemini`, `deltas` or `arguments`:
   a function of `Seen` that returns what it sees, or None.
2. A row at the end of that module: `released=True` where a released response may show it, and its
   name in `_HARMLESS` here where it refuses nothing.
3. `fixtures/diagnoses/NAME.sse`, the smallest stream with this diagnosis and no other; its first
   line is `: authored fixture — `, and what it shows.
4. The page, written again: `python -m agentlib.inspection.page > notebooks/diagnoses.md`.
5. In `tests/test_diagnoses.py` its name in RELEASED, if it is released; the rest is found.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from agentlib.conversation import Catalog
from agentlib.failures import ResponseFailure
from agentlib.inspection import arguments, deltas, ends, gemini, servers
from agentlib.inspection.diagnosis import Diagnosed, Diagnosis
from agentlib.inspection.observations import Seen, read_response
from agentlib.inspection.tried import OpenReader, flags_that_help, releases
from agentlib.providers.registry import PROVIDERS
from agentlib.reader import ResponseReader
from agentlib.recordings.events import CapturedResponse, with_last_event

_TABLE = (*ends.ROWS, *servers.ROWS, *gemini.ROWS, *deltas.ROWS, *arguments.ROWS)
DIAGNOSES: dict[str, Diagnosis] = {each.name: each for each in _TABLE}
# They cost something, and are never the reason why a response was refused.
_HARMLESS = frozenset(
    (
        *("sent-after-the-end", "no-deltas", "usage-missing", "cumulative-usage"),
        *("index-always-zero", "call-in-text"),
    )
)


def diagnose(
    provider: str,
    response: CapturedResponse,
    catalog: Catalog | None = None,
    *,
    native: bool = True,
    compat: Collection[str] = (),
) -> tuple[Diagnosed, ...]:
    """Read one response of a capture and return what is known of servers that send the like.

    `native` and `compat` are as for `Replay`. Raises UnknownFlag, and nothing else.
    """
    adapter = provider if provider in PROVIDERS else "responses"
    open_reader = partial(ResponseReader, adapter, catalog, native=native)
    reader = open_reader(compat=compat)
    failure = read_response(reader, response)
    return diagnose_reading(provider, response, reader, failure, open_reader, compat)


def diagnose_reading(
    provider: str,
    response: CapturedResponse,
    reader: ResponseReader,
    failure: ResponseFailure | None,
    open_reader: OpenReader,
    compat: Collection[str] = (),
) -> tuple[Diagnosed, ...]:
    """Return the diagnoses of a response that `reader` has read, in the table's order.

    `open_reader` opens a reader like it, for the tolerances that are tried. Those whose flag is
    in `compat` are left out: it is tolerated already. Where a flag alone would have released the
    response, a row that names it is among them.
    """
    helps: frozenset[str] = frozenset()
    if failure is not None and provider in PROVIDERS:
        helps = flags_that_help(provider, response, open_reader, compat)
    seen = Seen(
        provider if provider in PROVIDERS else "responses",
        with_last_event(response, compat),
        reader.assembly.evidence(),
        reader.assembly.findings(),
        failure,
        reader.unread,
        helps,
    )
    found = _seen(seen, compat)
    if helps:
        return _with_help(found, seen)
    together = _together(found, response, open_reader, compat)
    return tuple(
        Diagnosed(row, sight, together if row.flag in together else ()) for row, sight in found
    )


def _seen(seen: Seen, compat: Collection[str]) -> list[tuple[Diagnosis, str]]:
    # What refuses a response stands in no released one, unless after its end.
    released = seen.failure is None and not seen.unread
    rows = [row for row in _TABLE if row.flag not in compat and (row.released or not released)]
    found: list[tuple[Diagnosis, str]] = []
    # Where a flag alone releases it, its row explains the refusal.
    flagged = any(row.flag in seen.helps for row in rows)
    for row in rows:
        explained = flagged or any(each.name not in _HARMLESS for each, _ in found)
        sight = None if row.last and explained else row.find(seen)
        if sight is not None:
            found.append((row, sight))
    return found


def _with_help(found: list[tuple[Diagnosis, str]], seen: Seen) -> tuple[Diagnosed, ...]:
    named = {row.flag for row, _ in found}
    why = seen.failure.reason if seen.failure is not None else ""
    rows = [row for row in _TABLE if row.flag in seen.helps and row.flag not in named]
    diagnosed = [*found, *((row, why) for row in rows)]
    order = {row.name: place for place, row in enumerate(_TABLE)}
    diagnosed.sort(key=lambda pair: order[pair[0].name])
    return tuple(
        Diagnosed(row, sight, (row.flag,) if row.flag in seen.helps else ())
        for row, sight in diagnosed
    )


def _together(
    found: list[tuple[Diagnosis, str]],
    response: CapturedResponse,
    open_reader: OpenReader,
    compat: Collection[str],
) -> tuple[str, ...]:
    """Return the flags of what was seen where no one of them, and only all of them, help."""
    flags = tuple(dict.fromkeys(row.flag for row, _ in found if row.flag))
    if len(flags) > 1 and releases(response, open_reader, (*compat, *flags)):
        return flags
    return ()

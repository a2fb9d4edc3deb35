"""The form in which a trace goes to a browser: plain JSON values, with columns as bytes.

Columns are little-endian unsigned numbers, one for each event; `offset` has one more, and cuts
`raw`, the UTF-8 text of all events, into its events. Lengths count characters (code points).
The stepper's script reads exactly this.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from agentlib.gate import CHECKS
from agentlib.jsonvalues import thaw, visible
from agentlib.stepper.trace import Trace, TracedBuffer

VERSION = 1
# A column of kinds has two bytes for each event: what is past its range shares one name.
MAX_NAMES = 65_536
OTHERS = "one of many kinds"


def to_wire(trace: Trace) -> dict[str, Any]:
    """Return `trace` as a dict of JSON values, with `bytes` for its columns."""
    names: dict[str, int] = {}
    kinds = [names.setdefault(name, min(len(names), MAX_NAMES - 1)) for name in trace.labels]
    raws = [visible(raw).encode() for raw in trace.raws]
    calls = trace.decision.calls if trace.decision is not None else ()
    return {
        "version": VERSION,
        "title": visible(trace.title),
        "subtitle": visible(trace.subtitle),
        "provider": trace.provider,
        "count": trace.count,
        "end": {"label": trace.end[0], "detail": visible(trace.end[1])} if trace.end else None,
        "names": [*list(names)[: MAX_NAMES - 1], *([OTHERS] if len(names) >= MAX_NAMES else [])],
        "kind": column("H", kinds),
        "role": column("B", trace.roles),
        "buffer": column("i", trace.touched),
        "size": column("I", trace.sizes),
        "offset": column("I", accumulate((len(raw) for raw in raws), initial=0)),
        "raw": b"".join(raws),
        "buffers": [_buffer(buffer) for buffer in trace.buffers],
        "checks": [[check.name, check.title] for check in CHECKS],
        "gate": [
            {
                "at": state.at,
                "state": state.state,
                "headline": state.headline,
                "findings": [[f.status, visible(f.detail)] for f in state.findings],
            }
            for state in trace.gate
        ],
        "released": [
            {
                "call_id": call.call_id,
                "name": call.name,
                "arguments": json.dumps(thaw(call.arguments), indent=2, ensure_ascii=False),
            }
            for call in calls
        ],
        "hasty": [
            {"at": a.event, "call_id": visible(a.call_id), "name": visible(a.name)}
            for a in trace.hasty
        ],
        "notes": [visible(note) for note in trace.notes],
    }


def column(code: str, numbers: Iterable[int]) -> bytes:
    """Return numbers as the bytes of a little-endian column of this array type code."""
    values = array(code, numbers)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _buffer(buffer: TracedBuffer) -> dict[str, Any]:
    return {
        "kind": buffer.kind,
        "call_id": visible(buffer.call_id) if buffer.call_id is not None else None,
        "item_id": visible(buffer.item_id) if buffer.item_id is not None else None,
        "name": visible(buffer.name) if buffer.name is not None else None,
        "text": buffer.text,
        "limit": buffer.limit,
        "start": buffer.start,
        "done": buffer.done,
        "at": column("I", buffer.at),
        "length": column("I", buffer.length),
    }

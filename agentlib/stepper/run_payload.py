"""The form in which the trace of a run goes to a browser: plain JSON values, columns as bytes.

Columns have one little-endian number for each moment; `label`, `beside` and `change` count in
`words`. `place`, and what is `left`, have one for the start besides. The script of the run stepper
reads exactly this.
"""

from __future__ import annotations

from typing import Any

from agentlib.jsonvalues import visible
from agentlib.stepper.payload import column
from agentlib.stepper.run_buffers import RunBuffer
from agentlib.stepper.run_frame import left_of
from agentlib.stepper.run_trace import KINDS, LANES, Bar, RunTrace, Span

VERSION = 1
# What takes its place on the axis is drawn to a pixel; more digits would only differ by rounding.
DIGITS = 6


def run_to_wire(trace: RunTrace) -> dict[str, Any]:
    """Return `trace` as a dict of JSON values, with `bytes` for its columns."""
    words: dict[str, int] = {}
    moments = trace.moments

    def column_of(texts: list[str]) -> bytes:
        return column("I", [words.setdefault(visible(text), len(words)) for text in texts])

    labels = column_of([moment.label for moment in moments])
    besides = column_of([moment.beside for moment in moments])
    changes = column_of([moment.change for moment in moments])
    return {
        "version": VERSION,
        "title": visible(trace.title),
        "subtitle": visible(trace.subtitle),
        "last": trace.last,
        "kinds": list(KINDS),
        "lanes": list(LANES),
        "words": list(words),
        "kind": column("B", [KINDS.index(moment.kind) for moment in moments]),
        "label": labels,
        "beside": besides,
        "change": changes,
        "turn": column("I", [moment.turn for moment in moments]),
        "buffer": column("i", [moment.buffer for moment in moments]),
        "at": [round(moment.at, DIGITS) for moment in moments],
        "place": [round(place, DIGITS) for place in trace.places],
        "buffers": [_buffer(each) for each in trace.buffers],
        "gate": [
            {"at": g.at, "state": g.state, "headline": visible(g.headline)} for g in trace.gate
        ],
        "calls": [
            {
                "at": call.at,
                "id": visible(call.call_id),
                "name": visible(call.name),
                "state": call.state,
                "detail": visible(call.detail),
            }
            for call in trace.calls
        ],
        "history": [_span(span) for span in trace.history],
        "published": [_span(span) for span in trace.published],
        "bars": [_bar(bar) for bar in trace.bars],
        "left": _left(trace),
    }


def _left(trace: RunTrace) -> list[dict[str, Any]]:
    """Return what is left of each budget: from which moment on, in words, and as a part of 1."""
    columns: dict[str, dict[str, Any]] = {}
    for index, used in enumerate(trace.used):
        for left in left_of(used, trace.limits):
            known = columns.setdefault(
                left.name, {"name": left.name, "at": [], "words": [], "part": []}
            )
            if not known["words"] or known["words"][-1] != left.words:
                known["at"].append(index)
                known["words"].append(left.words)
                known["part"].append(round(left.part, DIGITS))
    return list(columns.values())


def _buffer(run_buffer: RunBuffer) -> dict[str, Any]:
    buffer = run_buffer.buffer
    return {
        "turn": run_buffer.turn,
        "kind": buffer.kind,
        "id": visible(buffer.call_id or ""),
        "name": visible(buffer.name or ""),
        "text": buffer.text,
        "limit": buffer.limit,
        "start": buffer.start,
        "done": buffer.done,
        "at": column("I", buffer.at),
        "length": column("I", buffer.length),
    }


def _span(span: Span) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "kind": span.kind, "text": visible(span.text)}


def _bar(bar: Bar) -> dict[str, Any]:
    return {
        **bar._asdict(),
        "label": visible(bar.label),
        "more": visible(bar.more),
    }

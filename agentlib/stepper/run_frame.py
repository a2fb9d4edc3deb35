"""One moment of a run, as text and as HTML that say the same.

The text is what nbval compares and what a screen without widgets shows: complete, stable, with
nothing of this machine in it. In the HTML, every string of a run is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from agentlib.jsonvalues import one_line, shorten
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.money import exact
from agentlib.stepper.run_buffers import RunBuffer
from agentlib.stepper.run_recorder import Used
from agentlib.stepper.run_trace import LANES, Bar, CallIs, GateIs, RunTrace, Span
from agentlib.stepper.run_words import seconds
from agentlib.wording import plural

LANE_CHARACTERS = 72
# A text form is read by a person: of a longer text it shows the newest part.
MAX_SHOWN_CHARACTERS = 400
MAX_ENTRY_CHARACTERS = 88
MAX_NAME_CHARACTERS = 60
MAX_SHOWN_ENTRIES = 12

GLYPHS = {
    "turn": "▁",
    "opening": "░",
    "first event": "─",
    "streaming": "▓",
    "closed": "▒",
    "released": "✓",
    "discarded": "✗",
    "tool": "█",
    "queue": "┄",
    "approval": "?",
    "draft": "·",
    "committed": "◆",
    "kept": "×",
    "repair": "↻",
}
STANDINGS = {"closed": "draft", "released": "released", "discarded": "discarded"}


class Left(NamedTuple):
    """What is left of a budget: its name, how much of how much in words, and as a part of 1."""

    name: str
    words: str
    part: float


@dataclass(frozen=True, slots=True)
class RunFrame:
    """What is so after moment `index` of a run.

    `gate` is what the gate shows, `calls` the latest of each call, `history` what the next
    request would send, `published` what the user sees, `left` what is left of each budget.
    """

    trace: RunTrace
    index: int

    @property
    def at(self) -> float:
        """The second of the moment, from the first one on."""
        return self.trace.moments[self.index - 1].at if self.index else 0.0

    @property
    def label(self) -> str:
        """What this moment is."""
        return self.trace.moments[self.index - 1].label if self.index else "nothing yet"

    @property
    def change(self) -> str:
        """What this moment changed, in a few words."""
        return self.trace.moments[self.index - 1].change if self.index else "before the run"

    @property
    def turn(self) -> int:
        """The turn that the moment belongs to; 0 before the first."""
        return self.trace.turn_at(self.index)

    @property
    def gate(self) -> GateIs:
        """What the gate shows."""
        return self.trace.gate_at(self.index)

    @property
    def calls(self) -> tuple[CallIs, ...]:
        """What is known of each call."""
        return self.trace.calls_at(self.index)

    @property
    def history(self) -> tuple[Span, ...]:
        """The history, as the next request would send it."""
        return self.trace.history_at(self.index)

    @property
    def published(self) -> tuple[Span, ...]:
        """What was committed to the user, and what was kept back."""
        return self.trace.published_at(self.index)

    @property
    def pending(self) -> dict[str, str]:
        """The argument text so far of each call of this turn, by call ID."""
        buffers = (b.buffer for b in self.trace.buffers_at(self.index))
        calls = (buffer for buffer in buffers if buffer.kind == "arguments")
        return {c.call_id or "": c.text[: c.length_at(self.index)] for c in calls}

    @property
    def left(self) -> tuple[Left, ...]:
        """What is left of each budget that binds."""
        return tuple(left_of(self.trace.used[self.index], self.trace.limits))

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many calls were executed, are pending, and are unknown."""
        states = [call.state for call in self.calls]
        open_states = {"released", "runs", "waits for approval"}
        return (
            states.count("executed"),
            sum(state in open_states for state in states),
            sum(state in ("unknown", "timed_out") for state in states),
        )

    @property
    def text(self) -> str:
        """The whole frame as text."""
        return "\n".join(line.rstrip() for line in _lines(self))

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        # The picture of the lanes is made of characters; a screen reader is read the rest.
        text = "\n".join(line.rstrip() for line in (*_lanes(self.trace, self.index),))
        rest = "\n".join(line.rstrip() for line in _facts(self))
        style = "font-family:var(--jp-code-font-family,monospace);white-space:pre-wrap"
        return (
            f'<div style="{style};overflow-wrap:anywhere">{escape(_where(self))}\n'
            f'<span aria-hidden="true">{escape(text)}</span>\n{escape(rest)}</div>'
        )


def left_of(used: Used, limits: RunLimits) -> Iterator[Left]:
    """Yield what is left of each budget of `limits` where so much was used."""
    yield _left("turns", used.turns, limits.turns)
    yield _left("repairs", used.repairs, limits.repairs)
    if limits.output_tokens is not None:
        yield _left("tokens", used.tokens, limits.output_tokens)
    if limits.spend is not None:
        spend = exact(limits.spend)
        rest = max(exact(0), spend - used.cost)
        yield Left("spend", f"{rest:.4f} of {spend:.4f}", float(rest / spend) if spend else 0.0)
    if limits.deadline is not None:
        rest_of_time = max(0.0, limits.deadline - used.seconds)
        words = f"{seconds(rest_of_time)} of {seconds(limits.deadline)}"
        part = round(rest_of_time / limits.deadline, 6) if limits.deadline else 0.0
        yield Left("time", words, part)


def _left(name: str, used: int, limit: int) -> Left:
    rest = max(0, limit - used)
    return Left(name, f"{rest:,} of {limit:,}", round(rest / limit, 6) if limit else 0.0)


def _lines(frame: RunFrame) -> Iterator[str]:
    yield _where(frame)
    yield from _lanes(frame.trace, frame.index)
    yield from _facts(frame)


def _where(frame: RunFrame) -> str:
    turn = f" · turn {frame.turn}" if frame.turn else ""
    moment = f"moment {frame.index} of {frame.trace.last} · {seconds(frame.at)}"
    return f"{_short(frame.trace.title)} · {moment}{turn} · {_short(frame.label)}"


def _facts(frame: RunFrame) -> Iterator[str]:
    gate = frame.gate
    yield f"  change   {_short(frame.change, 2 * MAX_ENTRY_CHARACTERS)}"
    yield f"  gate     {gate.state.upper()}: {_short(gate.headline, 2 * MAX_ENTRY_CHARACTERS)}"
    for shown in frame.trace.buffers_at(frame.index):
        yield from _buffer_lines(shown, frame)
    history = frame.history
    yield f"  history  {plural(len(history), 'entry', 'entries')}, as the next request sends it"
    if len(history) > MAX_SHOWN_ENTRIES:
        yield f"           … {len(history) - MAX_SHOWN_ENTRIES:,} before"
    for entry in history[-MAX_SHOWN_ENTRIES:]:
        yield f"           {entry.kind:9} {_short(entry.text, MAX_ENTRY_CHARACTERS)}"
    left = " · ".join(f"{each.name} {each.words}" for each in frame.left)
    yield f"  left     {left}"
    calls = [f"{_short(c.name)} {_short(c.call_id)} {_state(c)}" for c in frame.calls]
    yield f"  journal  {' · '.join(calls) or 'no call yet'}"
    seen = [f"{_short(p.text, MAX_ENTRY_CHARACTERS)} ({p.kind})" for p in frame.published]
    yield f"  user     {' · '.join(seen) or 'nothing yet'}"
    if gate.state == "ended" and frame.index == frame.trace.last:
        spent = [f"{name} {seconds(x)}" for name, x in frame.trace.outcomes[-1].times.items() if x]
        yield f"  spent    {' · '.join(spent) or 'no time'}"
    executed, pending, unknown = frame.counts
    yield f"  executed {executed} · pending {pending} · unknown {unknown}"


def _state(call: CallIs) -> str:
    return call.state.replace("_", " ")


def _buffer_lines(shown: RunBuffer, frame: RunFrame) -> Iterator[str]:
    buffer = shown.buffer
    text = buffer.text[: buffer.length_at(frame.index)]
    if buffer.kind != "arguments":
        standing = STANDINGS[frame.trace.verdict_at(frame.index)]
        yield f"  {buffer.kind:8} {_tail(text)}   ({standing})"
        return
    latest = {call.call_id: call for call in frame.calls}.get(buffer.call_id or "")
    done = " · done" if 0 < buffer.done <= frame.index else ""
    state = f" · {_state(latest)}" if latest is not None else f"{done} · not parsed"
    size = f"{len(text):,} of {buffer.limit:,} characters"
    yield f"  pending  {_short(buffer.name or '')} {_short(buffer.call_id or '')} · {size}{state}"
    yield f"           {_tail(text) or '(nothing yet)'}"


def _lanes(trace: RunTrace, index: int) -> Iterator[str]:
    """Yield the lanes of the run, with the moment marked above them."""
    if not trace.last:
        return
    yield f"  {'':8} {' ' * _column(trace, index)}▼"
    for lane in LANES:
        bars = [bar for bar in trace.bars if bar.lane == lane]
        rows = max((bar.row for bar in bars), default=0) + 1
        for row in range(rows):
            line = _drawn(trace, [bar for bar in bars if bar.row == row], index)
            yield f"  {lane if row == 0 else '':8} {line}"


def _column(trace: RunTrace, index: int) -> int:
    return min(round(trace.places[index] * LANE_CHARACTERS), LANE_CHARACTERS - 1)


def _drawn(trace: RunTrace, bars: list[Bar], index: int) -> str:
    cells = [" "] * LANE_CHARACTERS
    # The shortest last, and labels on the bars of the turn: each bar has one column at least.
    for bar in sorted(bars, key=lambda each: each.start - each.end):
        if bar.start > index:
            continue
        first, last = _column(trace, bar.start), _column(trace, min(bar.end, index))
        length = max(1, last - first)
        drawn = GLYPHS.get(bar.kind, "█") * length
        room = bar.kind == "turn" and length > len("[]")
        label = _short(bar.label_at(index)) if room else ""
        drawn = f"[{label}"[: length - 1].ljust(length - 1, " ") + "]" if label else drawn
        cells[first : first + length] = list(drawn[:length])
    return "".join(cells[:LANE_CHARACTERS])


def _tail(text: str) -> str:
    cut = len(text) - MAX_SHOWN_CHARACTERS
    return one_line(text if cut <= 0 else f"… {cut:,} before … {text[cut:]}")


def _short(text: str, length: int = MAX_NAME_CHARACTERS) -> str:
    return one_line(shorten(text, length))

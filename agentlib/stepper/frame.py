"""A frame: one step of a trace, as text and as HTML that say the same.

The text is what nbval compares and what a screen without widgets shows: complete, stable, and
with nothing of this machine in it. In the HTML, every string of the stream is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from agentlib.gate import CHECKS, Finding
from agentlib.jsonvalues import one_line, shorten
from agentlib.stepper.trace import (
    ARGUMENTS,
    DONE,
    LIFECYCLE,
    NOT_READ,
    OTHER,
    TEXT,
    GateState,
    Trace,
    TracedBuffer,
)
from agentlib.wording import plural

# A text form is read by a person: of a longer buffer it shows the newest part.
MAX_SHOWN_CHARACTERS = 400
# A name or an ID has a few dozen characters, a response a few buffers; a stream may hold more.
MAX_NAME_CHARACTERS = 80
MAX_SHOWN_BUFFERS = 20

GLYPHS = {"pass": "✓", "fail": "✗", "waiting": "·", "not_checked": "-", "not_applicable": "-"}
WORDS = {
    "pass": "",
    "fail": "",
    "waiting": "",
    "not_checked": "not checked: ",
    "not_applicable": "not applicable: ",
}
STATES = {"closed": "CLOSED", "released": "RELEASED", "discarded": "DISCARDED"}


class ShownBuffer(NamedTuple):
    """A buffer at one step: its text so far, of which the last `new` characters came now."""

    buffer: TracedBuffer
    text: str
    new: int
    done: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What a reader of the response knows at one step.

    `index` is the step, `last` the last one. `text` is the draft so far, `pending` maps each
    call ID to its argument text so far, `verdict` is "closed", "released" or "discarded".
    """

    trace: Trace
    index: int

    @property
    def last(self) -> int:
        """The index of the last step."""
        return self.trace.last

    @property
    def label(self) -> str:
        """What this step is: the event's kind, or the end of the stream."""
        if self.index == 0:
            return "nothing read yet"
        if self.index > self.trace.count:
            return self.trace.end[0] if self.trace.end else ""
        return self.trace.labels[self.index - 1]

    @property
    def raw(self) -> str:
        """The event as it was received; empty before the first and at the end of the stream."""
        return self.trace.raws[self.index - 1] if 0 < self.index <= self.trace.count else ""

    @property
    def buffers(self) -> tuple[ShownBuffer, ...]:
        """The buffers that exist at this step, in the order in which they began."""
        return tuple(
            ShownBuffer(
                buffer,
                buffer.text[: buffer.length_at(self.index)],
                buffer.grown_at(self.index),
                0 < buffer.done <= self.index,
            )
            for buffer in self.trace.buffers
            if buffer.start <= self.index
        )

    @property
    def draft(self) -> str:
        """The text that the model has said so far. A draft, until the response is released."""
        return "".join(shown.text for shown in self.buffers if shown.buffer.kind == "text")

    @property
    def pending(self) -> dict[str, str]:
        """Each call's argument text so far, by call ID, in order."""
        calls = (shown for shown in self.buffers if shown.buffer.kind == "arguments")
        return {shown.buffer.call_id or "": shown.text for shown in calls}

    @property
    def gate(self) -> GateState:
        """What the gate shows."""
        return self.trace.gate_at(self.index)

    @property
    def verdict(self) -> str:
        """closed, released or discarded."""
        return self.gate.state

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What each check of the gate says at this step."""
        return self.gate.findings

    @property
    def released(self) -> int:
        """How many calls are released at this step."""
        decision = self.trace.decision
        return len(decision.calls) if decision is not None and self.verdict == "released" else 0

    @property
    def hasty(self) -> int:
        """How many calls a hasty adapter would have executed by now."""
        return len(self.trace.hasty_at(self.index))

    @property
    def change(self) -> str:
        """What this step changed, in a few words."""
        if self.index == 0:
            return "before the first event"
        if self.index > self.trace.count:
            return self.trace.end[1] if self.trace.end else ""
        if self.gate.at == self.index and self.verdict != "closed":
            return f"the gate decides: {STATES[self.verdict].lower()}"
        place, role = self.trace.touched[self.index - 1], self.trace.roles[self.index - 1]
        what = _name(self.trace.buffers[place]) if place >= 0 else "an empty text"
        if role == DONE and self.label.startswith("output_item.done"):
            what = what.replace("arguments of", "item", 1)
        size = plural(self.trace.sizes[self.index - 1], "character")
        return _CHANGES[role].format(what=what, size=size)

    @property
    def text(self) -> str:
        """The whole frame as text."""
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return "".join(_html(self))


_CHANGES = {
    LIFECYCLE: "the response or an item begins",
    TEXT: "{what}: {size} more",
    ARGUMENTS: "{what}: {size} more",
    DONE: "{what} is done: progress only, the response is not complete",
    OTHER: "progress; nothing to keep",
    NOT_READ: "not read: the response had ended",
}


def _short(text: str | None) -> str:
    return one_line(shorten(text or "", MAX_NAME_CHARACTERS))


def _name(buffer: TracedBuffer) -> str:
    if buffer.kind == "arguments":
        return f"arguments of {_short(buffer.name)} ({_short(buffer.call_id)})"
    return f"{buffer.kind} {_short(buffer.part)}"


def _tail(text: str) -> str:
    cut = len(text) - MAX_SHOWN_CHARACTERS
    shown = text if cut <= 0 else f"… {cut:,} before … {text[cut:]}"
    return one_line(shown)


def _lines(frame: Frame) -> Iterator[str]:
    yield f"{_where(frame)} · {one_line(frame.label)}"
    yield f"  change   {one_line(frame.change)}"
    newest, hidden = _newest(frame)
    if hidden:
        yield f"  {hidden}"
    for shown in newest:
        yield from _buffer_lines(shown, frame)
    yield f"  gate     {STATES[frame.verdict]}: {one_line(frame.gate.headline)}"
    yield from (f"           {line}" for line in _finding_lines(frame))
    yield f"  {_counters(frame)}"


def _where(frame: Frame) -> str:
    step = f"event {frame.index} of {frame.trace.count}"
    if frame.index > frame.trace.count:
        step = f"after event {frame.trace.count} of {frame.trace.count}"
    return f"{_short(frame.trace.title)} · {step}"


def _newest(frame: Frame) -> tuple[tuple[ShownBuffer, ...], str]:
    """Return the buffers to show, the last to begin, and what to say of those before them."""
    buffers = frame.buffers
    hidden = len(buffers) - MAX_SHOWN_BUFFERS
    before = f"{plural(hidden, 'buffer')} before, not shown" if hidden > 0 else ""
    return buffers[-MAX_SHOWN_BUFFERS:], before


def _buffer_lines(shown: ShownBuffer, frame: Frame) -> Iterator[str]:
    buffer = shown.buffer
    if buffer.kind != "arguments":
        standing = "released" if frame.verdict == "released" else "draft, not committed"
        yield f"  {buffer.kind:<8} {_tail(shown.text)}   ({standing})"
        return
    identity = " ".join(_short(part) for part in (buffer.name, buffer.item_id) if part)
    size = f"{len(shown.text):,} of {buffer.limit:,} characters"
    yield f"  pending  {identity} {_short(buffer.call_id)} · {size}{_done(shown, frame)}"
    yield f"           {_tail(shown.text) or '(nothing yet)'}"


def _done(shown: ShownBuffer, frame: Frame) -> str:
    if not shown.done:
        return ""
    return " · done" if frame.verdict == "released" else " · done, progress only"


def _finding_lines(frame: Frame) -> Iterator[str]:
    titles = {check.name: check.title for check in CHECKS}
    waiting = [f for f in frame.findings if f.status == "waiting"]
    for finding in frame.findings:
        if finding.status != "waiting":
            detail = f": {WORDS[finding.status]}{finding.detail}" if finding.detail else ""
            line = f"{GLYPHS[finding.status]} {titles[finding.check]}{detail}"
            yield one_line(line)
    if waiting:
        word = "not reached" if frame.verdict == "discarded" else "waiting"
        yield f"· {plural(len(waiting), 'check')} {word}"


def _counters(frame: Frame) -> str:
    hasty = plural(frame.hasty, "tool")
    return (
        f"released {plural(frame.released, 'call')} · executed 0 tools · "
        f"a hasty adapter would have executed {hasty}"
    )


def where(trace: Trace, index: int) -> str:
    """Return what a sentence calls a step: an event by its number, or the end of the stream."""
    if 0 < index <= trace.count:
        return f"event {index:,}"
    return f"the end of the stream, after event {trace.count:,}" if index else "the start"


def verdict_line(trace: Trace) -> str:
    """Return the verdict on a response in one line, as "RELEASED at event 18: 1 call released"."""
    gate = trace.gate[-1]
    return f"{STATES[gate.state]} at {where(trace, gate.at)}: {one_line(gate.headline)}"


_BOX = "border:1px solid var(--jp-border-color2,#ccc);border-radius:6px;margin:4px 0"
_LIST = "margin:4px 0 0;padding-left:1.2em;list-style:none"
_PAD = "padding:6px 10px"
_MONO = (
    "font-family:var(--jp-code-font-family,monospace);white-space:pre-wrap;word-break:break-word"
)


def _html(frame: Frame) -> Iterator[str]:
    yield f'<div style="{_BOX};max-width:60rem" role="group">'
    yield f'<div style="{_PAD}"><strong>{_text(_where(frame))}</strong> · '
    yield f"<code>{_text(frame.label)}</code><br><em>{_text(frame.change)}</em></div>"
    newest, hidden = _newest(frame)
    if hidden:
        yield f'<div style="{_PAD}">{hidden}</div>'
    for shown in newest:
        yield from _buffer_html(shown, frame)
    yield f'<div style="{_PAD}"><strong>Gate {STATES[frame.verdict].lower()}</strong>: '
    yield f'{_text(frame.gate.headline)}<ul style="{_LIST}">'
    yield from (f"<li>{_text(line)}</li>" for line in _finding_lines(frame))
    yield f'</ul></div><div style="{_PAD}">{_text(_counters(frame))}</div></div>'


def _buffer_html(shown: ShownBuffer, frame: Frame) -> Iterator[str]:
    label, _, rest = next(_buffer_lines(shown, frame)).strip().partition(" ")
    head = f"<strong>{label}</strong> {_text(rest.strip())}"
    if shown.buffer.kind != "arguments":
        yield f'<div style="{_PAD}">{head}</div>'
        return
    old = shown.text[: len(shown.text) - shown.new]
    new = shown.text[len(shown.text) - shown.new :]
    yield f'<div style="{_PAD}">{head}<div style="{_MONO}">'
    yield f"{_text(_tail(old))}<mark>{_text(_tail(new))}</mark></div></div>"


def _text(text: str) -> str:
    return escape(one_line(text), quote=True)

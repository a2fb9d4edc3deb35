"""Makes the trace of a run from what its recorder noted: one moment for each note, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agentlib.assembly import Limits
from agentlib.conversation import ToolResult
from agentlib.retry import Opening
from agentlib.runtime.events import (
    ApprovalNeeded,
    BudgetWarning,
    Executed,
    Failed,
    Repaired,
    Turned,
    TurnStarted,
)
from agentlib.runtime.execution import Execution
from agentlib.runtime.outcomes import Outcome, WaitingForApproval
from agentlib.stepper.run_buffers import Buffers
from agentlib.stepper.run_recorder import (
    Began,
    Ended,
    HistoryIs,
    Note,
    Published,
    RunRecorder,
    ToolBegan,
    Used,
)
from agentlib.stepper.run_trace import (
    Bar,
    CallIs,
    GateIs,
    Kind,
    Lane,
    Moment,
    RunTrace,
    Standing,
    entry_words,
    placed,
)
from agentlib.stepper.run_words import DID, answered, gave, outcome_words, seconds, took
from agentlib.stepper.trace import TracedBuffer
from agentlib.vocabulary import (
    Completed,
    Corrected,
    Opened,
    ReasoningDelta,
    RefusalDelta,
    Stopped,
    TextDelta,
    TextDone,
    ToolArgsDelta,
    ToolArgsDone,
    ToolStart,
)
from agentlib.wording import plural

TOOL_ROWS = 3
# A second is known to a microsecond: what is beyond differs by how numbers were added.
DIGITS = 6
_TEXTS: dict[type, tuple[str, str]] = {
    TextDelta: ("text", "text.delta"),
    RefusalDelta: ("refusal", "refusal.delta"),
    ReasoningDelta: ("reasoning", "reasoning.delta"),
}


def build_run_trace(recorder: RunRecorder, title: str = "a run") -> RunTrace:
    """Return the trace of all that was recorded so far; what still runs is cut where it stands."""
    return _Builder(recorder).build(title)


class _Builder:
    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder = recorder
        self._moments: list[Moment] = []
        self._gate = [GateIs(0, "idle", "nothing was asked yet")]
        self._calls: list[CallIs] = []
        self._history, self._published = Standing(), Standing()
        self._buffers = Buffers()
        self._bars: list[Bar] = []
        self._waits: set[int] = set()
        self._outcomes: list[Outcome] = []
        self._turn, self._number, self._at = 0, 0, 0.0
        self._streaming, self._batch = False, 1
        # Where what stands open in a lane began: the turn, the model's phase, the gate, a tool.
        self._open: dict[tuple[Lane, str], Bar] = {}
        self._steps: dict[type, Callable[[Any], None]] = {
            Began: self._began,
            TurnStarted: self._turn_started,
            Opening: self._opening,
            Opened: self._opened,
            **dict.fromkeys(_TEXTS, self._text),
            TextDone: self._text_done,
            ToolStart: self._call,
            ToolArgsDelta: self._arguments,
            ToolArgsDone: self._arguments_done,
            Corrected: self._corrected,
            Completed: self._completed,
            Stopped: self._stopped,
            Turned: self._turned,
            Failed: self._failed,
            ApprovalNeeded: self._approval,
            ToolBegan: self._tool,
            Executed: self._executed,
            HistoryIs: self._history_is,
            Published: self._published_is,
            Repaired: self._repaired,
            BudgetWarning: self._budget,
            Ended: self._ended,
        }

    def build(self, title: str) -> RunTrace:
        notes: Sequence[Note] = self._recorder.notes
        begun = notes[0].at if notes else 0.0
        for self._number, note in enumerate(notes, 1):
            self._at = round(note.at - begun, DIGITS)
            self._steps[type(note.what)](note.what)
        for key in tuple(self._open):
            self._close(*key)
        turns = len({moment.turn for moment in self._moments} - {0})
        end = outcome_words(self._outcomes[-1]) if self._outcomes else "under way"
        return RunTrace(
            title=title,
            subtitle=f"{end} · {plural(turns, 'turn')}",
            moments=tuple(self._moments),
            places=placed([moment.at for moment in self._moments], frozenset(self._waits)),
            used=(Used(), *(note.used for note in notes)),
            buffers=self._buffers.whole(),
            gate=tuple(self._gate),
            calls=tuple(self._calls),
            history=tuple(self._history.spans),
            published=tuple(self._published.spans),
            bars=tuple(sorted(self._bars, key=lambda bar: (bar.lane, bar.start, bar.row))),
            limits=self._recorder.limits,
            outcomes=tuple(self._outcomes),
        )

    def _add(
        self, kind: Kind, label: str, beside: str = "", change: str = "", buffer: int = -1
    ) -> None:
        self._moments.append(
            Moment(self._at, kind, label, beside, change or label, self._turn, buffer)
        )

    # ------------------------------------------------------------------------------- lanes

    def _begin_bar(self, lane: Lane, kind: str, label: str, key: str = "", row: int = 0) -> None:
        self._close(lane, key)
        self._open[lane, key] = Bar(lane, kind, self._number, self._number, label, row)

    def _close(self, lane: Lane, key: str = "") -> None:
        bar = self._open.pop((lane, key), None)
        if bar is not None:
            self._bars.append(bar._replace(end=self._number))

    def _mark(self, lane: Lane, kind: str, label: str, row: int = 0) -> None:
        self._bars.append(Bar(lane, kind, self._number, self._number, label, row))

    # ------------------------------------------------------------------------------- the model

    def _began(self, what: Began) -> None:
        self._close("tools", "approval")
        self._history.become(self._number, [entry_words(entry) for entry in what.history])
        if what.how == "started":
            self._add("begin", "started", plural(len(what.history), "entry", "entries"))
            self._set_gate("idle", "nothing was asked yet")
            return
        if self._number > 1:
            self._waits.add(self._number)
        self._batch = self._number
        said = [f"{self._name(call_id)} {answered(a)}" for call_id, a in what.answers.items()]
        self._add("begin", "resumed", change=f"resumed: {', '.join(said) or 'no answer known'}")
        for call_id, answer in what.answers.items():
            if answer is True:
                self._call_is(call_id, "released", "approved")
        self._set_gate("released", "the batch goes on")

    def _turn_started(self, what: TurnStarted) -> None:
        self._turn = what.turn
        self._buffers.turn(what.turn)
        self._begin_bar("turn", "turn", str(what.turn))
        self._begin_bar("model", "opening", "")
        sent = plural(what.entries, "entry", "entries")
        self._add("turn", f"turn {what.turn} begins", sent, f"the model is asked, with {sent}")
        self._set_gate("closed", "waiting for the response to open")

    def _opening(self, what: Opening) -> None:
        opened = what.outcome == "opened"
        self._begin_bar("model", "first event" if opened else "opening", "")
        if opened:
            self._begin_bar("gate", "closed", "")
        wait = f", next in {seconds(what.wait)}" if what.wait is not None else ""
        label = f"opening, try {what.number}"
        self._add("opening", label, "" if opened else "failed", f"{what.outcome}{wait}")

    def _stream(self) -> None:
        if not self._streaming:
            self._streaming = True
            self._begin_bar("model", "streaming", "")

    def _opened(self, what: Opened) -> None:
        del what
        self._stream()
        self._add("lifecycle", "opened", change="the response exists: nothing to act on")
        self._set_gate("closed", f"waiting for {self._recorder.terminal}")

    def _text(self, what: Any) -> None:
        self._stream()
        kind, label = _TEXTS[type(what)]
        place = self._buffers.begin(
            (kind, what.part), TracedBuffer(kind, 0, self._number), what.text
        )
        if kind == "text" and ("user", "") not in self._open:
            self._begin_bar("user", "draft", "draft")
        size = plural(len(what.text), "character")
        beside = f"+{len(what.text):,}"
        self._add("text", label, beside, f"{size} more of a {kind}, a draft", place)

    def _text_done(self, what: TextDone) -> None:
        self._stream()
        place = self._buffers.finish(
            ("refusal" if what.refusal else "text", what.part), self._number
        )
        self._add("done", "text.done", "", "a text is done: progress only", place)

    def _call(self, what: ToolStart) -> None:
        self._stream()
        call = TracedBuffer(
            "arguments",
            Limits().argument_characters,
            self._number,
            call_id=what.call_id,
            item_id=what.item_id,
            name=what.name,
        )
        place = self._buffers.begin(("arguments", what.call_id), call, what.arguments)
        label, change = f"call.start {what.name}", f"a pending buffer opens for {what.name}"
        self._add("lifecycle", label, "", change, place)

    def _arguments(self, what: ToolArgsDelta) -> None:
        place = self._buffers.grow(("arguments", what.call_id), self._number, what.text)
        name = self._buffers.name(place)
        change = f"{plural(len(what.text), 'character')} more for {name}: a fragment, not parsed"
        self._add("arguments", "arguments.delta", f"+{len(what.text):,}", change, place)

    def _arguments_done(self, what: ToolArgsDone) -> None:
        place = self._buffers.finish(("arguments", what.call_id), self._number)
        name = self._buffers.name(place)
        change = f"the arguments of {name} are done: progress only"
        self._add("done", f"arguments.done {name}", "", change, place)

    def _corrected(self, _: Corrected) -> None:
        self._add("done", "corrected", "", "what was streamed is replaced, as was allowed")

    def _completed(self, _: Completed) -> None:
        self._add("completed", "completed", "", "complete, and the checks hold")

    def _stopped(self, what: Stopped) -> None:
        self._add("stopped", what.kind, "", f"the provider stopped: {what.reason}")

    # ------------------------------------------------------------------------------- the gate

    def _set_gate(self, state: Any, headline: str) -> None:
        self._gate.append(GateIs(self._number, state, headline))

    def _end_stream(self) -> None:
        self._streaming = False
        self._close("model")
        self._close("gate")
        self._close("user")

    def _turned(self, what: Turned) -> None:
        calls, self._batch = what.decision.calls, self._number
        self._end_stream()
        count = plural(len(calls), "call")
        self._add("released", "released", count if calls else "an answer", gave(what.decision))
        self._set_gate("released", gave(what.decision))
        self._mark("gate", "released", f"✓ {len(calls)} released" if calls else "✓ an answer")
        names = ", ".join(call.name for call in calls) or "answer"
        self._decided(names)
        for call in calls:
            self._calls.append(CallIs(self._number, call.call_id, call.name, "released"))

    def _decided(self, what: str) -> None:
        bar = self._open.get(("turn", ""))
        if bar is not None:
            self._open["turn", ""] = bar._replace(more=what, known=self._number)

    def _failed(self, what: Failed) -> None:
        self._end_stream()
        check = getattr(what.failure, "check", None) or "opening"
        self._add("rejected", "no decision", check, f"nothing is executed: {what.failure}")
        self._set_gate("discarded", str(what.failure))
        self._mark("gate", "discarded", f"✗ {check}")
        self._decided("no decision")

    def _approval(self, what: ApprovalNeeded) -> None:
        for waiting in what.waiting:
            self._call_is(waiting.call.call_id, "waits for approval", waiting.reason)
        asked = ", ".join(f"{each.call.name}: {each.reason}" for each in what.waiting)
        names = ", ".join(each.call.name for each in what.waiting)
        self._begin_bar("tools", "approval", "a person is asked", "approval")
        self._add("approval", "approval asked", names, f"a person is asked for {asked}")
        self._set_gate("waiting", f"for a person: {asked}")

    # ------------------------------------------------------------------------------- its tools

    def _call_is(self, call_id: str, state: str, detail: str = "", name: str = "") -> None:
        name = name or self._name(call_id)
        self._calls.append(CallIs(self._number, call_id, name, state, detail))

    def _name(self, call_id: str) -> str:
        return next((c.name for c in reversed(self._calls) if c.call_id == call_id), call_id)

    def _tool(self, what: ToolBegan) -> None:
        call = what.call
        waited = self._moments[self._batch - 1].at < self._at
        since = self._batch if waited else self._number
        rows = {bar.row for (lane, _), bar in self._open.items() if lane == "tools"}
        rows |= {bar.row for bar in self._bars if bar.lane == "tools" and bar.end > since}
        row = next((row for row in range(TOOL_ROWS) if row not in rows), TOOL_ROWS - 1)
        if waited:
            # All calls of a batch are asked at once: one that begins later had no place.
            self._bars.append(Bar("tools", "queue", self._batch, self._number, "", row))
        self._begin_bar("tools", "tool", call.name, call.call_id, row)
        self._call_is(call.call_id, "runs", "claimed in the journal", call.name)
        change = f"{call.name} runs: it was claimed in the journal before"
        self._add("tool", f"{call.name} begins", call.call_id, change)

    def _executed(self, what: Executed) -> None:
        self._close("tools", what.execution.call.call_id)
        self._settled(what.execution)
        name, status = what.execution.call.name, what.execution.status
        change = f"{name}: {DID[status]}{took(what.execution)}"
        self._add("result", f"{name} ends", status.replace("_", " "), change)

    def _settled(self, execution: Execution) -> None:
        call = execution.call
        self._call_is(call.call_id, execution.status, took(execution).strip(", "), call.name)

    # ------------------------------------------------------------------------------- what stays

    def _history_is(self, what: HistoryIs) -> None:
        new = self._history.become(self._number, [entry_words(e) for e in what.entries])
        results = sum(isinstance(e, ToolResult) for e in what.entries[len(what.entries) - new :])
        label = "results appended" if results else "history grows"
        entries = plural(new, "entry", "entries")
        change = f"{entries} appended together, {plural(results, 'result')} among them"
        self._add("history", label, f"+{new}", change if results else f"{entries} appended")

    def _published_is(self, what: Published) -> None:
        texts: list[tuple[str, str]] = [(text.kind, text.text) for text in what.committed]
        texts += [("kept back", text) for text in what.dropped]
        before = len(self._published.spans)
        new = self._published.become(self._number, texts)
        kinds = [span.kind for span in self._published.spans[before:]]
        shown = [kind for kind in kinds if kind != "kept back"]
        if shown or not new:
            change = f"the user sees: {', '.join(shown) or 'what was committed before'}"
            self._add("commit", "committed", ", ".join(shown), change)
            self._mark("user", "committed", "committed")
        else:
            self._add("kept", "kept back", "", "a text is kept from the user")
            self._mark("user", "kept", "kept back")

    def _repaired(self, what: Repaired) -> None:
        reason = what.repair.reason.replace("_", " ")
        self._mark("turn", "repair", "asked again", 1)
        self._add("repair", "asked again", reason, f"the model is asked again: {reason}")

    def _budget(self, what: BudgetWarning) -> None:
        name = what.budget.replace("_", " ")
        self._add("budget", "budget used up", name, f"used up: {name}")

    def _ended(self, what: Ended) -> None:
        outcome = what.outcome
        self._end_stream()
        if outcome is None:
            self._add("outcome", "refused", "", "the saved run was refused: nothing was done")
            return
        self._outcomes.append(outcome)
        # What was interrupted told nobody: the outcome knows what came of it.
        known = {call.call_id: call.state for call in self._calls}
        for execution in outcome.executions:
            if known.get(execution.call.call_id) != execution.status:
                self._close("tools", execution.call.call_id)
                self._settled(execution)
        words = outcome_words(outcome)
        if isinstance(outcome, WaitingForApproval):
            self._add("outcome", "saved", "", "the run is saved as text, and waits for a person")
            return
        self._close("turn")
        self._add("outcome", type(outcome).__name__, "", words)
        self._set_gate("ended", words)

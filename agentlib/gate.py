"""The completion gate: one ordered table of checks over the evidence of a whole response.

A check is a small function from the evidence to a finding. All are evaluated and all are shown;
one failure rejects the whole response, so a valid first call is not released beside a malformed
second. The gate executes nothing and parses nothing before the response says that it completed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeAlias

from agentlib.conversation import Catalog, RejectedCall, ToolCall
from agentlib.jsonvalues import (
    JSON_NAMES,
    MAX_QUOTED_CHARACTERS,
    FrozenObject,
    StrictJSONError,
    has_surrogate,
    join_surrogates,
    one_line,
    quote,
    same_text,
    shorten,
    strict_loads,
)
from agentlib.vocabulary import Completed, Stopped, TerminalCall, TerminalOther, TerminalText

Status: TypeAlias = Literal["pass", "fail", "waiting", "not_checked", "not_applicable"]


class Finding(NamedTuple):
    """What one check found: `detail` says why, in one sentence, where it did not just pass."""

    check: str
    status: Status
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A call as it was streamed: its argument text so far, never parsed."""

    call_id: str
    name: str
    item_id: str
    text: str
    done: bool
    caller: FrozenObject | None = None


@dataclass(frozen=True, slots=True)
class StreamedText:
    """A text or refusal as it was streamed."""

    part: str
    text: str
    refusal: bool


@dataclass(frozen=True, slots=True)
class Violation:
    """The reason why reading stopped before a terminal event, under the check that it failed."""

    check: str
    reason: str


@dataclass(frozen=True)
class Evidence:
    """All that is known of a response when the gate looks at it.

    `end` is its terminal event, None while it streams; `violation` why reading stopped without
    one. `catalog` None means that no catalog was given: two checks are then not made.
    """

    response_id: str | None
    buffers: tuple[Buffer, ...] = ()
    texts: tuple[StreamedText, ...] = ()
    end: Completed | Stopped | None = None
    violation: Violation | None = None
    catalog: Catalog | None = None

    @cached_property
    def calls(self) -> tuple[TerminalCall, ...]:
        """The calls in the order in which they would run."""
        items = self.end.items if isinstance(self.end, Completed) else None
        if items is None:
            return tuple(TerminalCall(b.call_id, b.name, b.text, b.item_id) for b in self.buffers)
        return tuple(item for item in items if isinstance(item, TerminalCall))

    @cached_property
    def others(self) -> tuple[TerminalOther, ...]:
        """The items that are neither text nor call."""
        return self.end.others if isinstance(self.end, Completed) else ()

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """Each call's arguments: a plain JSON value, or the StrictJSONError of its text."""
        return tuple(self._parse(call) for call in self.calls)

    def _parse(self, call: TerminalCall) -> Any:
        text = join_surrogates(call.arguments)
        tool = self.catalog.get(call.name) if self.catalog is not None else None
        # Servers send either for a call without arguments.
        nothing = not text or text.strip() == "null"
        if nothing and tool is not None and tool.takes_nothing:
            return {}
        try:
            return strict_loads(text)
        except StrictJSONError as error:
            return error


# What is wrong is clear from a few of many.
MAX_SHOWN = 8

Outcome: TypeAlias = tuple[Status, str]
PASS: Outcome = ("pass", "")
NO_CATALOG: Outcome = ("not_checked", "no catalog was given")
RESTATES_NOTHING: Outcome = ("not_applicable", "this API restates nothing at its end")


class Check(NamedTuple):
    """One row of the gate's table: until the terminal event is one that it `needs`, it waits."""

    name: str
    title: str
    run: Callable[[Evidence], Outcome]
    needs: type | UnionType = Completed


def _fail_or_pass(problems: Iterable[str]) -> Outcome:
    reason = _some(list(dict.fromkeys(problems)), "; ")
    return ("fail", reason) if reason else PASS


def _some(parts: Sequence[str], separator: str) -> str:
    more = len(parts) - MAX_SHOWN
    return separator.join([*parts[:MAX_SHOWN], *([f"and {more:,} more"] if more > 0 else [])])


def _opened(evidence: Evidence) -> Outcome:
    if evidence.response_id:
        return PASS
    return "waiting", ""


def _unless_violated(_: Evidence) -> Outcome:
    return PASS


def _completed(evidence: Evidence) -> Outcome:
    end = evidence.end
    if isinstance(end, Stopped):
        kind = one_line(shorten(end.kind, MAX_QUOTED_CHARACTERS))
        return "fail", f"the provider ended it with {kind}: {end.reason}"
    return _fail_or_pass([end.problem] if isinstance(end, Completed) and end.problem else [])


def _same_id(evidence: Evidence) -> Outcome:
    end = evidence.end
    if not isinstance(end, Completed) or end.response_id == evidence.response_id:
        return PASS
    seen = f"{quote(evidence.response_id)} opened and {quote(end.response_id)} completed"
    return "fail", f"expected one response ID throughout; {seen}"


def _replayable(evidence: Evidence) -> Outcome:
    refused = (item for item in evidence.others if item.refused)
    return _fail_or_pass(f"item {quote(item.kind)}: {item.refused}" for item in refused)


def _identified(evidence: Evidence) -> Outcome:
    problems = list(_name_problems(evidence.calls))
    counts = Counter(call.call_id for call in evidence.calls)
    problems += [
        f"call ID {quote(call_id)} stands {n} times" for call_id, n in counts.items() if n > 1
    ]
    return _fail_or_pass(problems)


def _name_problems(calls: Iterable[TerminalCall]) -> Iterable[str]:
    for call in calls:
        for what, text in (("call ID", call.call_id), ("name", call.name)):
            if not text:
                yield f"a call has no {what}"
            elif has_surrogate(text):
                yield f"a {what} holds a lone surrogate: {quote(text)}"


def _texts_equal(evidence: Evidence) -> Outcome:
    broken = [t.part for t in evidence.texts if has_surrogate(join_surrogates(t.text))]
    problems = [f"text {quote(part)} holds a lone surrogate" for part in broken]
    items = evidence.end.items if isinstance(evidence.end, Completed) else None
    if items is None:
        return ("fail", problems[0]) if problems else RESTATES_NOTHING
    streamed = {text.part: text for text in evidence.texts}
    restated = Counter(item.part for item in items if isinstance(item, TerminalText))
    problems += [f"text {quote(part)} stands {n} times" for part, n in restated.items() if n > 1]
    omitted = (text.part for text in evidence.texts if text.text and not restated[text.part])
    problems += [f"text {quote(part)} was streamed and is missing" for part in omitted]
    for item in items:
        if isinstance(item, TerminalText):
            problems += _text_problems(item, streamed.get(item.part))
    return _fail_or_pass(problems)


def _text_problems(item: TerminalText, streamed: StreamedText | None) -> Iterable[str]:
    if streamed is None:
        if item.text:
            yield f"text {quote(item.part)} was never streamed"
        return
    if item.refusal != streamed.refusal:
        yield f"text {quote(item.part)}: a refusal and a text are not the same"
    if not same_text(item.text, streamed.text):
        yield f"text {quote(item.part)}: {difference(streamed.text, item.text)}"


def _calls_equal(evidence: Evidence) -> Outcome:
    if not isinstance(evidence.end, Completed) or evidence.end.items is None:
        return RESTATES_NOTHING
    buffers = {buffer.call_id: buffer for buffer in evidence.buffers}
    return _fail_or_pass(
        f"call {quote(call.call_id)}: {wrong}"
        for call in evidence.calls
        if call.call_id in buffers
        for wrong in _call_problems(call, buffers[call.call_id])
    )


def _call_problems(call: TerminalCall, buffer: Buffer) -> Iterable[str]:
    if call.name != buffer.name:
        yield f"{quote(buffer.name)} was streamed and {quote(call.name)} restated"
    if call.item_id != buffer.item_id:
        yield f"item {quote(buffer.item_id)} was streamed and {quote(call.item_id)} restated"
    if not call.completed:
        yield "its item is not completed"
    if not same_text(call.arguments, buffer.text):
        yield difference(buffer.text, call.arguments)


def _none_omitted(evidence: Evidence) -> Outcome:
    if not isinstance(evidence.end, Completed) or evidence.end.items is None:
        return RESTATES_NOTHING
    restated = {call.call_id for call in evidence.calls}
    missing = [f"call {quote(b.call_id)}" for b in evidence.buffers if b.call_id not in restated]
    missing += [f"item {quote(o.kind)}" for o in evidence.others if o.fault == "omitted"]
    return _fail_or_pass(f"{what} was streamed and is missing" for what in missing)


def _none_invented(evidence: Evidence) -> Outcome:
    if not isinstance(evidence.end, Completed) or evidence.end.items is None:
        return RESTATES_NOTHING
    streamed = {buffer.call_id for buffer in evidence.buffers}
    new = [f"call {quote(call.call_id)}" for call in evidence.calls if call.call_id not in streamed]
    new += [f"item {quote(other.kind)}" for other in evidence.others if other.fault == "invented"]
    return _fail_or_pass(f"{what} was never streamed, or stands twice" for what in new)


def _exposed(evidence: Evidence) -> Outcome:
    catalog = evidence.catalog
    if catalog is None:
        return NO_CATALOG
    names = catalog.names
    exposed = _some([quote(name) for name in names], ", ")
    known = f"exposed: {exposed}" if names else "no tool is exposed"
    unknown = (call.name for call in evidence.calls if catalog.get(call.name) is None)
    return _fail_or_pass(f"tool {quote(name)} is not exposed ({known})" for name in unknown)


def _strict_json(evidence: Evidence) -> Outcome:
    pairs = zip(evidence.calls, evidence.arguments, strict=True)
    broken = ((call, value) for call, value in pairs if isinstance(value, StrictJSONError))
    return _fail_or_pass(f"arguments of {quote(call.name)}: {error}" for call, error in broken)


def _objects(evidence: Evidence) -> Outcome:
    pairs = zip(evidence.calls, evidence.arguments, strict=True)
    others = (
        (call, value) for call, value in pairs if not isinstance(value, dict | StrictJSONError)
    )
    return _fail_or_pass(
        f"arguments of {quote(call.name)}: expected an object, saw {JSON_NAMES[type(value)]}"
        for call, value in others
    )


def _schemas(evidence: Evidence) -> Outcome:
    catalog = evidence.catalog
    if catalog is None:
        return NO_CATALOG
    problems, left = [], []
    for call, value in zip(evidence.calls, evidence.arguments, strict=True):
        if isinstance(value, dict) and catalog.get(call.name) is not None:
            why = catalog.unevaluated(call.name, value)
            wrong = catalog.problem(call.name, value) if why is None else None
            if why is not None:
                left.append(f"the captured schema of {quote(call.name)} is not evaluated: {why}")
            if wrong is not None:
                problems.append(f"arguments of {quote(call.name)}: {wrong}")
    outcome = _fail_or_pass(problems)
    return ("not_checked", _some(left, "; ")) if left and outcome == PASS else outcome


# In the order in which they are shown; the first that fails gives the reason.
CHECKS: tuple[Check, ...] = (
    Check("opened", "response opened once, and first", _opened, needs=object),
    Check("lifecycle", "every event follows the rules", _unless_violated, needs=object),
    Check("limits", "within the limits", _unless_violated, needs=object),
    Check("completed", "event and body say completed", _completed, needs=Completed | Stopped),
    Check("response_id", "response ID agrees", _same_id),
    Check("replayable", "every item can be replayed", _replayable),
    Check("call_ids", "call IDs and names there, IDs unique", _identified),
    Check("texts_equal", "final text = streamed text", _texts_equal),
    Check("calls_equal", "final calls = buffered calls", _calls_equal),
    Check("none_omitted", "no buffered call omitted", _none_omitted),
    Check("none_invented", "no call invented at the end", _none_invented),
    Check("exposed", "tools exposed, by exact name", _exposed),
    Check("strict_json", "arguments are strict JSON", _strict_json),
    Check("object", "arguments are an object", _objects),
    Check("schema", "arguments match the schema", _schemas),
)

# Where one of these is the first that fails, the calls are known, and only what they ask is wrong.
ARGUMENT_CHECKS = frozenset({"exposed", "strict_json", "object", "schema"})

CHECK_NAMES = tuple(check.name for check in CHECKS)


def examine(evidence: Evidence) -> tuple[Finding, ...]:
    """Evaluate every check and return their findings, in the table's order.

    Without a terminal event only the early checks can pass; the others wait. Where reading
    stopped on a violation, its check fails with its reason.
    """
    return tuple(_finding(check, evidence) for check in CHECKS)


def _finding(check: Check, evidence: Evidence) -> Finding:
    violation = evidence.violation
    if violation is not None and violation.check == check.name:
        return Finding(check.name, "fail", violation.reason)
    if not isinstance(evidence.end, check.needs):
        return Finding(check.name, "waiting")
    return Finding(check.name, *check.run(evidence))


def first_failure(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding that gives the reason, or None where no check failed."""
    return next((finding for finding in findings if finding.status == "fail"), None)


def released_calls(evidence: Evidence) -> tuple[ToolCall, ...]:
    """Return the calls of evidence that passed every check, deeply immutable, in order."""
    callers = {buffer.call_id: buffer.caller for buffer in evidence.buffers}
    return tuple(
        ToolCall(call.call_id, call.name, FrozenObject(value), callers.get(call.call_id))
        for call, value in zip(evidence.calls, evidence.arguments, strict=True)
    )


def rejected_calls(evidence: Evidence) -> tuple[RejectedCall, ...]:
    """Return the calls of evidence that failed: who they are, and their argument text as it is."""
    calls = (RejectedCall(c.call_id, c.name, join_surrogates(c.arguments)) for c in evidence.calls)
    return tuple(call for call in calls if not has_surrogate(call.arguments))


def difference(streamed: str, restated: str) -> str:
    """Say where two texts that should be equal differ, in one sentence."""
    pairs = zip(streamed, restated, strict=False)
    shorter = min(len(streamed), len(restated))
    place = next((n for n, (left, right) in enumerate(pairs) if left != right), shorter)
    left, right = streamed[place : place + 16], restated[place : place + 16]
    return (
        f"streamed and restated differ from character {place + 1}: {quote(left)} and {quote(right)}"
    )

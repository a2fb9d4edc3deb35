"""The completion gate: one ordered table of checks over the evidence of a whole response.

A check is a small function from the evidence to a finding. All are shown; one that cannot be
judged yet waits, and one failure rejects the whole response, so a valid first call is not
released beside a malformed second. The gate executes nothing and parses nothing before the
response says that it completed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import UnionType
from typing import Literal, NamedTuple, TypeAlias

from agentlib.conversation import Catalog, RejectedCall, ToolCall
from agentlib.evidence import Buffer, Evidence, StreamedText, Violation
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
)
from agentlib.vocabulary import Completed, Stopped, TerminalCall, TerminalText

Status: TypeAlias = Literal["pass", "fail", "waiting", "not_checked", "not_applicable"]


class Finding(NamedTuple):
    """What one check found: `detail` says why, in one sentence, where it did not just pass."""

    check: str
    status: Status
    detail: str = ""


# What is wrong is clear from a few of many.
MAX_SHOWN = 8

Outcome: TypeAlias = tuple[Status, str]
PASS: Outcome = ("pass", "")
NO_CATALOG: Outcome = ("not_checked", "no catalog was given")
RESTATES_NOTHING: Outcome = ("not_applicable", "this API restates nothing at its end")
RESTATES_NO_ID: Outcome = ("not_applicable", "no later event restated the response ID")
NO_CALL: Outcome = ("not_applicable", "there is no call")
NO_TEXT: Outcome = ("not_applicable", "there is no text")
NO_ITEM: Outcome = ("not_applicable", "the response holds nothing")


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
    return PASS if evidence.response_id else ("waiting", "")


def _completed(evidence: Evidence) -> Outcome:
    end = evidence.end
    if isinstance(end, Stopped):
        kind = one_line(shorten(end.kind, MAX_QUOTED_CHARACTERS))
        return "fail", f"the provider ended it with {kind}: {end.reason}"
    return _fail_or_pass([end.problem] if isinstance(end, Completed) and end.problem else [])


def _same_id(evidence: Evidence) -> Outcome:
    end = evidence.end
    if not isinstance(end, Completed) or end.response_id is None:
        return RESTATES_NO_ID
    if end.response_id == evidence.response_id:
        return PASS
    seen = f"{quote(evidence.response_id)} opened and {quote(end.response_id)} completed"
    return "fail", f"expected one response ID throughout; {seen}"


def _replayable(evidence: Evidence) -> Outcome:
    if not (evidence.calls or evidence.texts or evidence.others):
        return NO_ITEM
    refused = (item for item in evidence.others if item.refused)
    return _fail_or_pass(f"item {quote(item.kind)}: {item.refused}" for item in refused)


def _identified(evidence: Evidence) -> Outcome:
    if not evidence.calls:
        return NO_CALL
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
    if not evidence.texts and not any(isinstance(item, TerminalText) for item in items):
        return NO_TEXT
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
    if not any(call.call_id in buffers for call in evidence.calls):
        return "not_applicable", "no call was both streamed and restated"
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
    if not (evidence.buffers or evidence.others):
        return "not_applicable", "no call was streamed"
    restated = {call.call_id for call in evidence.calls}
    missing = [f"call {quote(b.call_id)}" for b in evidence.buffers if b.call_id not in restated]
    missing += [f"item {quote(o.kind)}" for o in evidence.others if o.fault == "omitted"]
    return _fail_or_pass(f"{what} was streamed and is missing" for what in missing)


def _none_invented(evidence: Evidence) -> Outcome:
    if not isinstance(evidence.end, Completed) or evidence.end.items is None:
        return RESTATES_NOTHING
    if not (evidence.calls or evidence.others):
        return "not_applicable", "no call was restated"
    streamed = {buffer.call_id for buffer in evidence.buffers}
    new = [f"call {quote(call.call_id)}" for call in evidence.calls if call.call_id not in streamed]
    new += [f"item {quote(other.kind)}" for other in evidence.others if other.fault == "invented"]
    return _fail_or_pass(f"{what} was never streamed, or stands twice" for what in new)


def _exposed(evidence: Evidence) -> Outcome:
    catalog = evidence.catalog
    if not evidence.calls:
        return NO_CALL
    if catalog is None:
        return NO_CATALOG
    names = catalog.names
    exposed = _some([quote(name) for name in names], ", ")
    known = f"exposed: {exposed}" if names else "no tool is exposed"
    unknown = (call.name for call in evidence.calls if catalog.get(call.name) is None)
    return _fail_or_pass(f"tool {quote(name)} is not exposed ({known})" for name in unknown)


def _strict_json(evidence: Evidence) -> Outcome:
    if not evidence.calls:
        return NO_CALL
    pairs = zip(evidence.calls, evidence.arguments, strict=True)
    broken = ((call, value) for call, value in pairs if isinstance(value, StrictJSONError))
    return _fail_or_pass(f"arguments of {quote(call.name)}: {error}" for call, error in broken)


def _objects(evidence: Evidence) -> Outcome:
    if not evidence.calls:
        return NO_CALL
    problems, left = [], []
    for call, value in zip(evidence.calls, evidence.arguments, strict=True):
        if isinstance(value, StrictJSONError):
            left.append(f"arguments of {quote(call.name)} do not parse")
        elif not isinstance(value, dict):
            seen = JSON_NAMES[type(value)]
            problems.append(f"arguments of {quote(call.name)}: expected an object, saw {seen}")
    return _checked(problems, left)


def _schemas(evidence: Evidence) -> Outcome:
    catalog = evidence.catalog
    if not evidence.calls:
        return NO_CALL
    if catalog is None:
        return NO_CATALOG
    problems, left = [], []
    for call, value in zip(evidence.calls, evidence.arguments, strict=True):
        why = _no_schema(catalog, call, value)
        wrong = catalog.problem(call.name, value) if not why else None
        if why:
            left.append(why)
        if wrong is not None:
            problems.append(f"arguments of {quote(call.name)}: {wrong}")
    return _checked(problems, left)


def _no_schema(catalog: Catalog, call: TerminalCall, value: object) -> str:
    """Return why the arguments of a call cannot be compared with a schema; empty where they can."""
    if not isinstance(value, dict):
        return f"arguments of {quote(call.name)} are no object"
    if catalog.get(call.name) is None:
        return f"tool {quote(call.name)} is not exposed"
    why = catalog.unevaluated(call.name, value)
    return f"the captured schema of {quote(call.name)} is not evaluated: {why}" if why else ""


def _checked(problems: Sequence[str], left: Sequence[str]) -> Outcome:
    # One call that could not be checked keeps the check from passing for all.
    if left and not problems:
        return "not_checked", _some(list(dict.fromkeys(left)), "; ")
    return _fail_or_pass(problems)


# In the order in which they are shown; the first that fails gives the reason.
CHECKS: tuple[Check, ...] = (
    Check("opened", "response opened once, and first", _opened, needs=object),
    Check("lifecycle", "every event follows the rules", _opened, needs=object),
    Check("limits", "within the limits", _opened, needs=object),
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
    violation: Violation | None = evidence.violation
    if violation is not None and violation.check == check.name:
        return Finding(check.name, "fail", violation.reason)
    if not isinstance(evidence.end, check.needs):
        return Finding(check.name, "waiting")
    return Finding(check.name, *check.run(evidence))


def first_failure(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding that gives the reason, or None where no check failed."""
    return next((finding for finding in findings if finding.status == "fail"), None)


def not_releasable(evidence: Evidence) -> str:
    """Return why calls could not be released even if every check passed; empty where they could.

    The last line of defence: a call is released with an object as its arguments, or not at all,
    whatever the table holds.
    """
    values = zip(evidence.calls, evidence.arguments, strict=True)
    wrong = [quote(call.name) for call, value in values if not isinstance(value, dict)]
    return f"arguments of {_some(wrong, ', ')} are no object" if wrong else ""


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

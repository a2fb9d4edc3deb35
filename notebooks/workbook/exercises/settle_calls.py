"""One result for each call, under its own ID, whatever came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from agentlib.conversation import Entry, Message, ToolCall, ToolResult, assistant, user
from agentlib.jsonvalues import dumps
from agentlib.wording import plural
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong, listed
from workbook.pages.small_loop import wants

Ended: TypeAlias = Sequence[tuple[str, str]]

READ = wants("call_a", "read", path="calculator.py")
LIST = wants("call_b", "list")
TEST = wants("call_c", "test")
REQUEST = user("Please repair add().")
EARLIER: tuple[Entry, ...] = (
    REQUEST,
    assistant("", [wants("call_0", "list")]),
    ToolResult("call_0", "calculator.py"),
)

UNDER_ITS_ID = (
    "Tools that run side by side end in any order. An output under another call's ID tells the "
    "model that one file is the other."
)
IN_ORDER = "The results stand in the order of the calls, not in that of their ends."
EMPTY = "An empty output is an output: the tool ran, and had nothing to print."
HONEST = (
    "Nobody knows what came of the interrupted call. A result that says that it was executed "
    "tells the model what nobody has seen."
)
# Words for an end that was seen, unless something in the text takes them back.
_CLAIMS = re.compile(
    r"\b(executed|ran|run|done|ok|success\w*|succeeded|completed|finished)\b", re.IGNORECASE
)
_DOUBTS = re.compile(
    r"\b(not|no|never|nothing|nobody|without|un\w+|may|might|maybe|perhaps|interrupted|lost"
    r"|cancel\w*|missing|aborted|stopped|failed)\b|n't\b",
    re.IGNORECASE,
)
NEVER_WITHOUT = (
    "A call was interrupted and left no output. Without a result of it every provider answers "
    "the next request with status 400."
)
LATE = "An output of an earlier turn came late. A second result for its call is refused as well."
PLAIN = "A message with calls is followed by one result for each of them."


def _judge(
    history: Sequence[Entry], message: Message, ended: Ended, outcome: Outcome, why: str
) -> Wrong | None:
    outputs = dict(ended)
    wanted = [f"{call.call_id}: {_wanted(call, outputs)}" for call in message.calls]
    expected = f"the history, the message, then {listed(wanted)}"
    if outcome.error is not None or not isinstance(outcome.value, list | tuple):
        return Wrong(why, expected)
    seen = list(outcome.value)
    if seen[: len(history) + 1] != [*history, message]:
        return Wrong("What was there stays, and the message follows it.", expected)
    results: list[Any] = seen[len(history) + 1 :]
    fits = len(results) == len(message.calls) and all(
        _is_result(result, call, outputs)
        for call, result in zip(message.calls, results, strict=True)
    )
    if fits:
        claimed = [each for each in results if each.call_id not in outputs and claims(each.output)]
        return Wrong(HONEST, expected, f"returned {dumps(claimed[0].output)}") if claimed else None
    told = [
        f"{each.call_id}: {dumps(each.output)}" if isinstance(each, ToolResult) else repr(each)
        for each in results
    ]
    return Wrong(why, expected, f"after the message, returned {listed(told)}")


def claims(output: str) -> bool:
    """Say whether a text for a call without an output says that it was executed."""
    return bool(_CLAIMS.search(output)) and not _DOUBTS.search(output)


def _is_result(seen: Any, call: ToolCall, outputs: dict[str, str]) -> bool:
    if not isinstance(seen, ToolResult):
        return False
    output: Any = seen.output
    known = outputs.get(call.call_id)
    right = output == known if known is not None else isinstance(output, str) and output != ""
    return right and seen.call_id == call.call_id


def _wanted(call: ToolCall, outputs: dict[str, str]) -> str:
    known = outputs.get(call.call_id)
    return "any text that says why there is none" if known is None else dumps(known)


def _trial(
    stream: str, calls: Sequence[ToolCall], ended: Ended, why: str, *, hostile: bool = False
) -> Trial:
    history = list(EARLIER) if hostile else [REQUEST]
    message = assistant("", calls)
    return Trial(
        stream=stream,
        place=f"{plural(len(calls), 'call')}, {plural(len(ended), 'output')}",
        prepare=lambda: (list(history), message, list(ended)),
        judge=lambda outcome: _judge(history, message, ended, outcome, why),
        hostile=hostile,
    )


def _trials() -> Iterator[Trial]:
    a, b, c = ("call_a", "def add"), ("call_b", "calculator.py"), ("call_c", "the tests pass")
    yield _trial("one call", [READ], [a], PLAIN)
    yield _trial("in order", [READ, LIST], [a, b], PLAIN)
    yield _trial("the other way round", [READ, LIST], [b, a], UNDER_ITS_ID, hostile=True)
    yield _trial("three, mixed", [READ, LIST, TEST], [c, a, b], IN_ORDER, hostile=True)
    yield _trial("the last one interrupted", [READ, TEST], [a], NEVER_WITHOUT, hostile=True)
    yield _trial("the first one interrupted", [READ, LIST], [b], NEVER_WITHOUT, hostile=True)
    yield _trial("all interrupted", [READ, LIST, TEST], [], NEVER_WITHOUT, hostile=True)
    yield _trial("not by their IDs", [LIST, READ], [a, b], IN_ORDER, hostile=True)
    yield _trial("an empty output", [READ, LIST], [a, ("call_b", "")], EMPTY, hostile=True)
    late = ("call_0", "test_calculator.py")
    yield _trial("a late output", [READ, LIST], [late, b, a], LATE, hostile=True)
    yield _trial("a late output alone", [READ], [late], LATE, hostile=True)


HINTS = (
    (
        "Go over message.calls, not over the outputs: the calls say how many results there "
        "are, and in which order."
    ),
    (
        "dict(outputs) finds an output by its call ID. Where there is none, the result is a "
        "text of yours: not known, the call was interrupted."
    ),
)


def exercise(number: str, title: str) -> Exercise:
    """Return this exercise, under its number and its title."""
    return Exercise(
        number,
        title,
        size=2,
        minutes=10,
        signature="settle(history, message, outputs)",
        trials=_trials,
        hint_texts=HINTS,
    )

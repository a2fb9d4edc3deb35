"""The exercises about runs and routes: right answers of any style pass, wrong ones are caught."""

import itertools

import pytest

from agentlib.conversation import ToolResult
from agentlib.lab.exercises import exercise


def settle_in_a_loop(history, message, outputs):
    entries = list(history)
    entries.append(message)
    for call in message.calls:
        text = next((text for call_id, text in outputs if call_id == call.call_id), "")
        entries.append(ToolResult(call.call_id, text or "interrupted"))
    return tuple(entries)


def settle_and_change_its_input(history, message, outputs):
    history.append(message)
    while message.calls and len(history) and history[-1] is message:
        known = dict(outputs)
        history += [ToolResult(c.call_id, known.get(c.call_id, "unknown")) for c in message.calls]
    return history


def settle_by_position(history, message, outputs):
    pairs = zip(message.calls, outputs, strict=False)
    return [*history, message, *(ToolResult(call.call_id, text) for call, (_, text) in pairs)]


def settle_as_they_end(history, message, outputs):
    return [*history, message, *(ToolResult(call_id, text) for call_id, text in outputs)]


def settle_what_is_there(history, message, outputs):
    known = dict(outputs)
    found = [c for c in message.calls if c.call_id in known]
    return [*history, message, *(ToolResult(c.call_id, known[c.call_id]) for c in found)]


def settle_with_nothing(history, message, outputs):
    known = dict(outputs)
    results = [ToolResult(c.call_id, known.get(c.call_id, "")) for c in message.calls]
    return [*history, message, *results]


def settle_without_the_message(history, message, outputs):
    return settle_in_a_loop(history, message, outputs)[len(history) + 1 :]


def fits_in_a_loop(rows, amount, limit):
    left = limit
    for row in rows:
        left -= row.cost if row.cost is not None else row.reserved
    return not amount > left


def fits_with_unknown_as_zero(rows, amount, limit):
    return sum(row.cost or 0 for row in rows) + amount <= limit


def fits_with_zero_as_unknown(rows, amount, limit):
    return sum(row.cost or row.reserved for row in rows) + amount <= limit


def fits_with_what_is_settled(rows, amount, limit):
    settled = [row for row in rows if row.outcome]
    counted = (row.reserved if row.cost is None else row.cost for row in settled)
    return sum(counted) + amount <= limit


def fits_below_the_limit(rows, amount, limit):
    return fits_in_a_loop(rows, amount, limit - 0.001)


def fits_whatever_was_spent(_rows, amount, limit):
    return amount <= limit


RIGHT = {"09": (settle_in_a_loop, settle_and_change_its_input), "13": (fits_in_a_loop,)}
WRONG = {
    "09": {
        settle_by_position: ("the other way round", "another call's ID"),
        settle_as_they_end: ("the other way round", "another call's ID"),
        settle_what_is_there: ("the last one interrupted", "status 400"),
        settle_with_nothing: ("the last one interrupted", "status 400"),
        settle_without_the_message: ("one call", "the message follows it"),
    },
    "13": {
        fits_with_unknown_as_zero: ("a cut stream", "Unknown is not zero"),
        fits_with_zero_as_unknown: ("a refused opening", "A cost of zero is known"),
        fits_with_what_is_settled: ("another process", "still under way"),
        fits_below_the_limit: ("paid attempts", "within the limit"),
        fits_whatever_was_spent: ("paid attempts", "more could be spent"),
    },
}


@pytest.mark.parametrize(
    ("number", "answer"), [(number, each) for number, every in RIGHT.items() for each in every]
)
def test_a_right_answer_is_right_however_it_is_written(number, answer):
    verdict = exercise(number).check(answer)
    assert verdict.passed, verdict.text


@pytest.mark.parametrize(
    ("number", "answer"),
    list(itertools.chain(*([(n, each) for each in every] for n, every in WRONG.items()))),
)
def test_a_wrong_answer_is_caught_where_it_is_wrong(number, answer):
    verdict = exercise(number).check(answer)
    where, why = WRONG[number][answer]
    assert not verdict.passed
    assert verdict.where.startswith(where), verdict.text
    assert why in verdict.why, verdict.text

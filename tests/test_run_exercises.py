"""The exercises about runs and routes: right answers of any style pass, wrong ones are caught."""

import itertools
from dataclasses import replace
from decimal import Decimal

import pytest
from answers import assert_caught, assert_right

from agentlib.conversation import ToolResult
from workbook.exercises.catalogue import exercise


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
    return fits_in_a_loop(rows, amount, limit - Decimal("0.001"))


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
    assert_right(number, answer)


@pytest.mark.parametrize(
    ("number", "answer"),
    list(itertools.chain(*([(n, each) for each in every] for n, every in WRONG.items()))),
)
def test_a_wrong_answer_is_caught_where_it_is_wrong(number, answer):
    assert_caught(number, answer, *WRONG[number][answer])


# --------------------------------------------------------------------- 10, what may be claimed

NOTHING_DONE = {"denied", "not_executed", "shown"}


def judge_from_the_end(executions):
    for each in reversed([each for each in executions if each.status not in NOTHING_DONE]):
        if each.call.name == "edit":
            return False
        if each.call.name == "test":
            good = each.output.startswith("the tests pass") and "edit" not in each.beside
            return each.status == "executed" and good
    return False


def judge_by_position(executions):
    acted = [each for each in executions if each.status not in NOTHING_DONE]
    tests = [n for n, each in enumerate(acted) if each.call.name == "test"]
    edits = [n for n, each in enumerate(acted) if each.call.name == "edit"]
    if not tests or max(edits, default=-1) > tests[-1]:
        return False
    last = acted[tests[-1]]
    return (last.status, last.output, last.beside) == ("executed", "the tests pass", frozenset())


def judge_by_name(executions):
    return any(each.call.name == "test" for each in executions)


def judge_by_words(executions):
    return any("the tests pass" in each.output for each in executions)


def judge_once(executions):
    return any(each.call.name == "test" and each.output == "the tests pass" for each in executions)


def judge_whatever_stood_beside(executions):
    return judge_from_the_end([replace(each, beside=frozenset()) for each in executions])


def judge_but_for_edits_with_a_result(executions):
    return judge_from_the_end([each for each in executions if each.status == "executed"])


@pytest.mark.parametrize("answer", [judge_from_the_end, judge_by_position])
def test_a_right_judge_of_a_claim_is_right_however_it_is_written(answer):
    assert_right("10", answer)


@pytest.mark.parametrize(
    ("answer", "stream"),
    [
        (judge_by_name, "a failing test"),
        (judge_by_words, "a file that says so"),
        (judge_once, "an edit after the test"),
        (judge_but_for_edits_with_a_result, "passed, then interrupted"),
        (judge_whatever_stood_beside, "an edit at the same time"),
        (lambda _executions: False, "a passing test"),
    ],
)
def test_a_wrong_judge_of_a_claim_is_told_what_was_executed(answer, stream):
    verdict = exercise("10").check(answer)
    assert not verdict.passed
    assert verdict.where.startswith(f"{stream}, ")


# ------------------------------------------------------------------------- 11, at most once


def run_once_with_try(journal, run, call_id, execute):
    if journal.claim(run, call_id):
        output = None
        try:
            output = execute()
        finally:
            if output is not None:
                journal.record(run, call_id, output)
        return output
    output = journal.output(run, call_id)
    return "nobody knows" if output is None else output


def run_once_looks_first(journal, run, call_id, execute):
    known = journal.output(run, call_id)
    if known is not None:
        return known
    if not journal.claim(run, call_id):
        return "begun before; its result is unknown"
    journal.record(run, call_id, execute())
    return journal.output(run, call_id)


def run_without_a_record(journal, run, call_id, execute):
    return execute() if journal.claim(run, call_id) else (journal.output(run, call_id) or "?")


def run_and_claim_after(journal, run, call_id, execute):
    known = journal.output(run, call_id)
    if known is None:
        known = execute()
        journal.claim(run, call_id)
        journal.record(run, call_id, known)
    return known


def run_and_take_an_empty_text_for_none(journal, run, call_id, execute):
    if not journal.claim(run, call_id):
        return journal.output(run, call_id) or "unknown"
    output = execute()
    journal.record(run, call_id, output)
    return output


def run_and_record_the_interruption(journal, run, call_id, execute):
    try:
        return run_once_looks_first(journal, run, call_id, execute)
    except BaseException:
        journal.record(run, call_id, "cancelled")
        raise


def run_and_swallow_the_interruption(journal, run, call_id, execute):
    try:
        return run_once_looks_first(journal, run, call_id, execute)
    except BaseException:  # noqa: BLE001 - the fault that the exercise must find
        return "cancelled"


def claim_after_looking(journal, run, call_id, execute):
    known = journal.output(run, call_id)
    if known is not None:
        return known
    if (run, call_id) in journal._rows:
        return "unknown"
    output = execute()
    journal.claim(run, call_id)
    journal.record(run, call_id, output)
    return output


@pytest.mark.parametrize("answer", [run_once_with_try, run_once_looks_first])
def test_a_right_executor_is_right_however_it_is_written(answer):
    assert_right("11", answer)


@pytest.mark.parametrize(
    ("answer", "stream"),
    [
        (run_without_a_record, "a new call"),
        (run_and_claim_after, "resumed after a cancellation"),
        (claim_after_looking, "two processes"),
        (run_and_take_an_empty_text_for_none, "a silent tool"),
        (run_and_record_the_interruption, "a cancellation"),
        (run_and_swallow_the_interruption, "a cancellation"),
    ],
)
def test_a_wrong_executor_is_told_what_it_ran(answer, stream):
    verdict = exercise("11").check(answer)
    assert not verdict.passed
    assert verdict.where.startswith(f"{stream}, ")

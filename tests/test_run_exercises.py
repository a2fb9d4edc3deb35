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
        text = next((text for call_id, text in outputs if call_id == call.call_id), None)
        entries.append(ToolResult(call.call_id, "interrupted" if text is None else text))
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


def settle_by_their_ids(history, message, outputs):
    results = settle_in_a_loop(history, message, outputs)[len(history) + 1 :]
    return [*history, message, *sorted(results, key=lambda result: result.call_id)]


def settle_with_an_empty_output_as_none(history, message, outputs):
    known = dict(outputs)
    results = [ToolResult(c.call_id, known.get(c.call_id) or "unknown") for c in message.calls]
    return [*history, message, *results]


def settle_as_if_executed(history, message, outputs):
    known = dict(outputs)
    results = [ToolResult(c.call_id, known.get(c.call_id, "executed")) for c in message.calls]
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


def fits_by_the_gateway_alone(rows, amount, limit):
    return fits_in_a_loop([row for row in rows if row.route == "gateway"], amount, limit)


def fits_with_at_most_what_was_reserved(rows, amount, limit):
    counted = (row.reserved if row.cost is None else min(row.cost, row.reserved) for row in rows)
    return sum(counted) + amount <= limit


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
        settle_by_their_ids: ("not by their IDs", "in the order of the calls"),
        settle_with_an_empty_output_as_none: ("an empty output", "is an output"),
        settle_as_if_executed: ("the last one interrupted", "what nobody has seen"),
    },
    "13": {
        fits_with_unknown_as_zero: ("a cut stream", "Unknown is not zero"),
        fits_with_zero_as_unknown: ("a refused opening", "A cost of zero is known"),
        fits_with_what_is_settled: ("another process", "still under way"),
        fits_below_the_limit: ("paid attempts", "within the limit"),
        fits_by_the_gateway_alone: ("another route", "whichever route it went"),
        fits_with_at_most_what_was_reserved: ("dearer than reserved", "what was paid counts"),
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
            good = each.output == "the tests pass" and "edit" not in each.beside
            return each.status == "executed" and good
    return False


def judge_by_position(executions):
    acted = [each for each in executions if each.status not in NOTHING_DONE]
    tests = [n for n, each in enumerate(acted) if each.call.name == "test"]
    edits = [n for n, each in enumerate(acted) if each.call.name == "edit"]
    if not tests or max(edits, default=-1) > tests[-1]:
        return False
    last = acted[tests[-1]]
    alone = "edit" not in last.beside
    return alone and (last.status, last.output) == ("executed", "the tests pass")


def judge_by_name(executions):
    return any(each.call.name == "test" for each in executions)


def judge_by_words(executions):
    return any("the tests pass" in each.output for each in executions)


def judge_once(executions):
    return any(each.call.name == "test" and each.output == "the tests pass" for each in executions)


def judge_whatever_stood_beside(executions):
    return judge_from_the_end([replace(each, beside=frozenset()) for each in executions])


def judge_alone(executions):
    return judge_from_the_end(
        [replace(each, status="unknown") if each.beside else each for each in executions]
    )


def judge_by_words_inside(executions):
    return judge_from_the_end(
        [
            replace(each, output="the tests pass") if "the tests pass" in each.output else each
            for each in executions
        ]
    )


def judge_what_was_shown_as_done(executions):
    return judge_from_the_end(
        [
            replace(each, status="executed") if each.status == "shown" else each
            for each in executions
        ]
    )


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
        (judge_alone, "read at the same time"),
        (judge_by_words_inside, "words inside of others"),
        (judge_what_was_shown_as_done, "an edit shown"),
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


def run_and_call_the_unknown_executed(journal, run, call_id, execute):
    known = run_once_looks_first(journal, run, call_id, execute)
    return "it was executed before" if "unknown" in known else known


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
        (run_and_call_the_unknown_executed, "resumed after a cancellation"),
        (run_and_record_the_interruption, "a cancellation"),
        (run_and_swallow_the_interruption, "a cancellation"),
    ],
)
def test_a_wrong_executor_is_told_what_it_ran(answer, stream):
    verdict = exercise("11").check(answer)
    assert not verdict.passed
    assert verdict.where.startswith(f"{stream}, ")


# --------------------------------------------------------------- 14, a secret that is cut


def redact_by_holding_back(chunks, secret):
    held = b""
    for chunk in chunks:
        held = (held + chunk).replace(secret, b"[redacted]")
        while held and not secret.startswith(held):
            yield held[:1]
            held = held[1:]
    yield held


def redact_when_all_is_there(chunks, secret):
    return [b"".join(chunks).replace(secret, b"[redacted]")]


def redact_each_chunk(chunks, secret):
    return (chunk.replace(secret, b"[redacted]") for chunk in chunks)


def redact_by_a_counter(chunks, secret):
    held = b""
    for byte in (bytes([byte]) for chunk in chunks for byte in chunk):
        held += byte
        if held == secret:
            yield b"[redacted]"
            held = b""
        elif not secret.startswith(held):
            yield held
            held = b""
    yield held


def redact_and_lose_the_end(chunks, secret):
    held = b""
    for chunk in chunks:
        held = (held + chunk).replace(secret, b"[redacted]")
        while held and not secret.startswith(held):
            yield held[:1]
            held = held[1:]


def test_a_right_redaction_is_right():
    assert_right("14", redact_by_holding_back)


@pytest.mark.parametrize(
    ("answer", "stream", "why"),
    [
        (redact_when_all_is_there, "no secret", "recorded nothing of a stream"),
        (redact_each_chunk, "a secret, cut", "stands whole in the file"),
        (redact_by_a_counter, "a secret that begins again, cut", "stands whole in the file"),
        (redact_and_lose_the_end, "cut at the end", "is kept, byte for byte"),
    ],
)
def test_a_wrong_redaction_is_caught(answer, stream, why):
    assert_caught("14", answer, stream, why)

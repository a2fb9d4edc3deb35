"""The view of one decision's requests, and the exercise about the next request."""

import re

import pytest

from agentlib.decisions import DecisionUsage, ScriptedModelClient
from agentlib.decisions.failures import (
    DecisionParseError,
    EmptyResponseError,
    StreamingUnsupportedError,
    TransportError,
)
from agentlib.faultserver.server import Reply
from workbook.exercises.catalogue import exercise
from workbook.pages.attempts_table import COLUMN_CHARACTERS, SAME, deciding, told_of
from workbook.pages.decision_replies import CONTEXT, EDIT, streamed
from workbook.pages.decision_trace import observe, observe_blocking
from workbook.pages.symptoms import NO_STREAMING, WHOLE, Symptom

HOSTILE = '<img src=x onerror="alert(1)">\u202e\x1b]0;'
ANSWER = '{"thought": "", "action": {"kind": "final_answer", "answer": "Done."}}'


def scripted(*replies):
    client = ScriptedModelClient(replies)
    client.decide(CONTEXT)
    return deciding(client.attempts)


@pytest.mark.anyio
async def test_it_says_what_was_told_what_came_and_what_it_cost():
    replies = (streamed(EDIT, EDIT), Reply.blank(), Reply.error(400, message=NO_STREAMING), WHOLE)
    seen = await observe(Symptom("all four", (), replies, None))
    view = deciding(seen.attempts)
    assert view.title == (
        "4 requests · decided: run edit · billed at least 180 in, 20 out (2 of 4 unknown)"
    )
    lines = view.text.splitlines()
    assert lines[1].split() == [word for n in "1234" for word in ("request", n)]
    row = {line.split("  ")[0]: line for line in lines[2:] if not line.startswith(" ")}
    assert re.findall(r"parse|empty|capability|decision", row["came"]) == [
        "parse",
        "empty",
        "capability",
        "decision",
    ]
    assert row["asked"].count("not streamed") == 1
    assert row["told"].count(SAME) == 2
    assert row["billed"].count("unknown") == 2
    assert [word for word in ("at once", "0.25 s", "the end") if word not in row["then"]] == []
    # Each word that was fed back is there.
    wrapped = " ".join(lines)
    told = seen.attempts[1].told
    assert [
        word for word in told.split() if len(word) < COLUMN_CHARACTERS and word not in wrapped
    ] == []


def test_the_text_of_a_model_never_becomes_html_and_hides_nothing():
    view = scripted(HOSTILE, ANSWER)
    page = view._repr_html_()
    assert "<img" not in page
    assert "&lt;img" in page
    for text in (view.text, page):
        assert not any(character in text for character in "\u202e\x1b")


def test_it_reads_without_colour_and_by_the_keyboard():
    page = scripted("no", ANSWER)._repr_html_()
    assert 'tabindex="0"' in page
    assert page.count('scope="col"') == 2
    assert "✗ parse" in page
    assert "color" not in page


def test_it_is_stable_and_its_lines_end_plainly():
    one, other = scripted("no", ANSWER), scripted("no", ANSWER)
    assert repr(one) == repr(other) == one.text
    assert all(line == line.rstrip() for line in one.text.splitlines())


def test_without_a_request_there_is_nothing_to_show():
    assert repr(deciding(())).splitlines()[0] == "no request was sent"


def test_a_failure_carries_its_attempts():
    client = ScriptedModelClient(["no"] * 3)
    with pytest.raises(DecisionParseError) as raised:
        client.decide(CONTEXT)
    view = deciding(raised.value.attempts)
    assert view.title == "3 requests · no decision · billed unknown"


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (None, "nothing"),
        (DecisionUsage(unreported=1), "unknown"),
        (DecisionUsage(input_tokens=0), "0 in"),
        (DecisionUsage(input_tokens=1200, output_tokens=3), "1,200 in, 3 out"),
        (
            DecisionUsage(output_tokens=3, requests=2, unreported=1),
            "at least 3 out (1 of 2 unknown)",
        ),
    ],
)
def test_unknown_is_told_apart_from_zero(usage, told):
    assert told_of(usage) == told


def test_only_what_a_whole_reply_can_show_is_asked_for_whole():
    with pytest.raises(ValueError, match="only a stream"):
        observe_blocking(Symptom("x", (), (), None))


# ------------------------------------------------------------------------------- exercise 12


def by_class(failure, parse_left, transport_left):
    if isinstance(failure, DecisionParseError):
        return "tell" if parse_left > 0 else "stop"
    if isinstance(failure, StreamingUnsupportedError):
        return "unstreamed"
    return "again" if failure.retryable and transport_left > 0 else "stop"


def by_match(failure, parse_left, transport_left):
    match failure:
        case StreamingUnsupportedError():
            return "unstreamed"
        case DecisionParseError() if parse_left:
            return "tell"
        case TransportError(retryable=True) if transport_left:
            return "again"
        case _:
            return "stop"


def one_budget(failure, parse_left, transport_left):
    if isinstance(failure, StreamingUnsupportedError):
        return "unstreamed"
    if parse_left + transport_left == 0:
        return "stop"
    return "tell" if isinstance(failure, DecisionParseError) else "again"


def tells_everything(_, parse_left, __):
    return "tell" if parse_left else "stop"


def by_exact_type(failure, parse_left, transport_left):
    if type(failure) is TransportError:
        return "again" if failure.retryable and transport_left else "stop"
    if isinstance(failure, StreamingUnsupportedError):
        return "unstreamed"
    return "tell" if parse_left else "stop"


def whatever_the_status(failure, parse_left, transport_left):
    if isinstance(failure, TransportError):
        return "again" if transport_left else "stop"
    return by_class(failure, parse_left, transport_left)


def streaming_on_a_budget(failure, parse_left, transport_left):
    if isinstance(failure, StreamingUnsupportedError) and not transport_left:
        return "stop"
    return by_class(failure, parse_left, transport_left)


@pytest.mark.parametrize("answer", [by_class, by_match])
def test_right_answers_of_any_style_pass(answer):
    verdict = exercise("12").check(answer)
    assert verdict.passed, verdict.text


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        (tells_everything, "a reset connection"),
        (one_budget, "no parse retry left"),
        (by_exact_type, "status 200 and no body"),
        (whatever_the_status, "a wrong key"),
        (streaming_on_a_budget, "nothing left"),
        (lambda *_: None, "two calls"),
        (lambda *_: EmptyResponseError, "two calls"),
        (lambda *_: [], "two calls"),
    ],
)
def test_wrong_answers_are_caught_where_they_are_wrong(answer, where):
    verdict = exercise("12").check(answer)
    assert not verdict.passed
    assert where in verdict.where
    assert f"case       {verdict.where}"[:40] in verdict.text


def says(case, word):
    """A right answer, but for one case."""

    def answer(failure, parse_left, transport_left):
        if (failure.reason, parse_left, transport_left) == case:
            return word
        return by_class(failure, parse_left, transport_left)

    return answer


CALLS, RESET = "expected exactly one function call, saw 2", "the connection is reset"
NO_BODY = "the server answered 200 with an empty body"


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ((CALLS, 1, 0), "has a retry left. The other kind's budget does not count"),
        ((RESET, 0, 1), "has a retry left. The other kind's budget does not count"),
        ((CALLS, 0, 2), "is used up"),
        ((RESET, 2, 0), "is used up"),
        ((NO_BODY, 2, 2), "never reached the model"),
        ((NO_BODY, 0, 2), "never reached the model"),
    ],
)
def test_a_wrong_answer_is_told_what_is_true_of_its_case(case, why):
    word = "unstreamed"
    verdict = exercise("12").check(says(case, word))
    assert verdict.seen == f"returned {word!r}"
    assert why in verdict.why

"""Reading a reply without a network: whatever the server sends is a decision or one failure."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentlib.decisions.attempts import RESULTS, Attempts, Rules
from agentlib.decisions.failures import (
    DecisionFailure,
    DecisionParseError,
    EmptyResponseError,
    TransportError,
)
from agentlib.decisions.model import ModelDecision
from agentlib.decisions.reading import read_whole
from agentlib.openai_whole import WholeReply
from workbook.pages.decision_replies import CONTEXT, EDIT, whole

GOOD = json.loads(whole(EDIT, text="Hm.").body)


def read(body, *, native_tools=True, media_type="application/json", **options):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_whole(WholeReply(media_type, data), CONTEXT, native_tools=native_tools, **options)


def outcome(body, **options):
    """The decision or failure; a failure of the model's can be told in a next request."""
    try:
        return read(body, **options)
    except DecisionFailure as failure:
        if isinstance(failure, DecisionParseError):
            turn = Attempts(CONTEXT, Rules("m"), lambda: 0.5, [], streaming=False)
            turn.fail(failure)
            json.dumps(turn.request(), ensure_ascii=False).encode()
        return failure


def changed(**fields):
    """The good reply, with fields of its message changed."""
    (choice,) = GOOD["choices"]
    message = {**choice["message"], **fields}
    return {**GOOD, "choices": [{**choice, "message": message}]}


def finished(reason):
    (choice,) = GOOD["choices"]
    return {**GOOD, "choices": [{**choice, "finish_reason": reason}]}


CALL = GOOD["choices"][0]["message"]["tool_calls"][0]


def call(**function):
    return changed(tool_calls=[{**CALL, "function": {**CALL["function"], **function}}])


@pytest.mark.parametrize(
    "extra",
    [
        {"refusal": None, "annotations": []},
        {"reasoning_content": "I think."},
        {"audio": None, "function_call": None},
    ],
)
def test_what_servers_add_to_a_whole_message_changes_nothing(extra):
    decision = read(changed(**extra))
    assert (decision.action.name, decision.thought) == ("edit", "Hm.")


def test_a_reply_without_usage_is_unknown():
    body = {name: value for name, value in GOOD.items() if name != "usage"}
    usage = read(body).usage
    assert (usage.input_tokens, usage.unreported) == (None, 1)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", EmptyResponseError),
        (b"\0\r\n \t", EmptyResponseError),
        (b"<html>", TransportError),
        (b'{"id": "a"', TransportError),
        (b"[1]", TransportError),
        (b"[" * 100_000, TransportError),
        (b'{"id": "a", "id": "b"}', TransportError),
        ({}, TransportError),
        ({"error": "no"}, TransportError),
        ({"error": {"code": 7, "message": "no"}}, TransportError),
        ({"object": "error", "message": "no"}, TransportError),
        ({**GOOD, "id": ""}, TransportError),
        ({**GOOD, "choices": []}, TransportError),
        ({**GOOD, "choices": GOOD["choices"] * 2}, TransportError),
        ({**GOOD, "choices": [7]}, TransportError),
        (finished(None), TransportError),
        (changed(tool_calls=[{**CALL, "id": None}]), TransportError),
        (changed(tool_calls=[CALL, CALL]), DecisionParseError),
        (changed(tool_calls=[CALL] * 40), DecisionParseError),
        (changed(tool_calls=[]), DecisionParseError),
        (changed(tool_calls=None, refusal="I will not."), DecisionParseError),
        (changed(content="a" * 70_000), DecisionParseError),
        (finished("length"), DecisionParseError),
        (finished("content_filter"), DecisionParseError),
        (finished("what\ud800ever"), DecisionParseError),
        (call(name="delete"), DecisionParseError),
        (call(arguments=""), DecisionParseError),
        (call(arguments="[]"), DecisionParseError),
        (call(arguments="{}"), DecisionParseError),
        (call(arguments='{"path": "\\ud800"}'), DecisionParseError),
        (
            call(name="final_answer", arguments='{"answer": "a", "kind": "tool"}'),
            DecisionParseError,
        ),
    ],
)
def test_each_reply_is_of_one_class(body, kind):
    failure = outcome(body)
    assert type(failure) is kind, failure
    assert len(failure.reason) < 1200


def test_two_calls_of_one_id_are_two_calls_or_none_but_never_one():
    assert not isinstance(outcome(changed(tool_calls=[CALL, CALL])), ModelDecision)


def test_a_tolerance_holds_for_a_whole_reply_too():
    body = changed(tool_calls=[{**CALL, "id": None}])
    assert read(body, compat=["call-without-id"]).action.name == "edit"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(GOOD)), JSON)
def test_a_reply_with_any_field_replaced_is_a_decision_or_one_failure(name, value):
    found = outcome({**GOOD, name: value})
    assert isinstance(found, ModelDecision) or type(found) in RESULTS


@given(st.sampled_from(["content", "tool_calls", "refusal", "role", "function_call"]), JSON)
@example("content", "\ud800")
@example("tool_calls", [{"id": "a", "function": {"name": "edit", "arguments": "\ud800"}}])
def test_a_message_with_any_field_replaced_is_too(name, value):
    for native_tools in (True, False):
        found = outcome(changed(**{name: value}), native_tools=native_tools)
        assert isinstance(found, ModelDecision) or type(found) in RESULTS


@given(st.text(max_size=40))
def test_any_argument_text_is_a_decision_or_told(text):
    found = outcome(call(arguments=text))
    assert isinstance(found, DecisionParseError)


@given(st.binary(max_size=60))
def test_any_bytes_are_no_decision(data):
    assert isinstance(outcome(data), TransportError)

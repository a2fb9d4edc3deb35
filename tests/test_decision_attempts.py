"""The retries of one decision without a network: the state machine, and the scripted client."""

import re
import threading

import anyio
import pytest

from agentlib.decisions import (
    AskUser,
    DecisionUsage,
    FinalAnswer,
    ModelClient,
    ModelDecision,
    ScriptedModelClient,
    parse_decision,
)
from agentlib.decisions.attempts import Attempts, Rules
from agentlib.decisions.failures import (
    DecisionFailure,
    DecisionParseError,
    EmptyResponseError,
    StreamingUnsupportedError,
    TransportError,
)
from workbook.pages.decision_replies import CONTEXT

pytestmark = pytest.mark.anyio
ANSWER = '{"thought": "", "action": {"kind": "final_answer", "answer": "Done."}}'
USED = DecisionUsage(input_tokens=10, output_tokens=1)


def turn(*, streaming=True, **rules):
    return Attempts(CONTEXT, Rules("m", **rules), lambda: 0.5, [], streaming=streaming)


def parse_error():
    return DecisionParseError("expected one call, saw two", excerpt="edit(...)", usage=USED)


# --------------------------------------------------------------------------------- the machine


def test_a_parse_error_changes_the_next_request_by_one_message():
    made = turn()
    before = made.request()
    assert made.fail(parse_error()) == 0.0
    after = made.request()
    assert after["messages"][:-1] == before["messages"]
    told = after["messages"][-1]
    assert told["role"] == "user"
    assert "expected one call, saw two" in told["content"]
    assert "edit(...)" in told["content"]
    assert {k: v for k, v in after.items() if k != "messages"} == {
        k: v for k, v in before.items() if k != "messages"
    }


@pytest.mark.parametrize("kind", [TransportError, EmptyResponseError])
def test_a_transport_error_changes_nothing_and_waits(kind):
    made = turn()
    before = made.request()
    assert [made.fail(kind("lost")), made.fail(kind("lost"))] == [0.25, 0.5]
    assert made.request() == before
    with pytest.raises(kind) as raised:
        made.fail(kind("lost"))
    assert [each.wait for each in raised.value.attempts] == [0.25, 0.5, None]


def test_the_server_is_given_the_wait_that_it_asks_for_within_a_bound():
    made = turn(transport_max_retries=3)
    waits = [
        made.fail(TransportError("busy", status=429, retry_after=seconds))
        for seconds in (7.0, 20.0)
    ]
    assert waits == [7.0, 20.0]


@pytest.mark.parametrize(
    "failure",
    [
        TransportError("no", retryable=False),
        TransportError("no", status=401, retryable=False),
        TransportError("no", status=429, code="insufficient_quota"),
    ],
)
def test_what_would_fail_alike_is_not_asked_again(failure):
    with pytest.raises(TransportError):
        turn().fail(failure)


def test_a_server_that_cannot_stream_is_asked_without_once():
    made = turn(max_parse_retries=0, transport_max_retries=0)
    assert made.request()["stream"] is True
    assert made.fail(StreamingUnsupportedError("no")) == 0.0
    assert "stream" not in made.request()
    with pytest.raises(StreamingUnsupportedError):
        made.fail(StreamingUnsupportedError("no"))


def test_a_failure_of_an_unknown_kind_ends_it():
    class Other(TransportError):
        pass

    with pytest.raises(KeyError):
        turn().fail(Other("new"))


def test_a_decision_gets_the_trace_and_the_usage_of_all_requests():
    made = turn()
    made.fail(parse_error())
    made.fail(TransportError("lost"))
    decision = made.succeed(parse_decision(ANSWER).model_copy(update={"usage": USED}))
    assert [note.problem for note in decision.retry_trace] == ["expected one call, saw two"]
    assert decision.usage == DecisionUsage(
        input_tokens=20, output_tokens=2, requests=3, unreported=1
    )
    assert [each.result for each in made.log] == ["parse", "transport", "decision"]
    assert [bool(each.told) for each in made.log] == [False, True, True]


def test_the_machine_and_what_it_calls_do_no_input_or_output(root):
    for name in ("attempts", "model", "context", "prompt", "parsing"):
        text = (root / "agentlib" / "decisions" / f"{name}.py").read_text(encoding="utf-8")
        assert (
            re.findall(r"(?m)^ *async |\bawait |^(?:import|from) (?:anyio|time|os)\b", text) == []
        )


# ------------------------------------------------------------------------- the scripted client


async def test_a_scripted_client_keeps_the_rules_of_a_real_one():
    client = ScriptedModelClient(
        ["no", TransportError("lost"), EmptyResponseError("empty"), ANSWER]
    )
    decision = await client.adecide(CONTEXT)
    assert decision.action == FinalAnswer(answer="Done.")
    assert [each.result for each in client.attempts] == ["parse", "transport", "empty", "decision"]
    sent = client.requests
    assert sent[1] == sent[2] == sent[3] != sent[0]
    assert (decision.usage.requests, decision.usage.input_tokens) == (4, None)


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        (["no"] * 3, DecisionParseError),
        ([TransportError("lost")] * 3, TransportError),
        ([StreamingUnsupportedError("no")], StreamingUnsupportedError),
    ],
)
async def test_it_raises_what_a_real_one_raises(replies, kind):
    client = ScriptedModelClient(replies)
    for _ in range(2):
        with pytest.raises(DecisionFailure) as raised:
            client.decide(CONTEXT)
        assert type(raised.value) is kind
        assert raised.value.usage.requests == len(replies)
        client.requests.clear()


def test_its_decisions_are_returned_and_its_end_is_told():
    asked = ModelDecision(thought="", action=AskUser(question="Which?"))
    client = ScriptedModelClient([asked])
    assert client.decide(CONTEXT).action == asked.action
    with pytest.raises(LookupError, match="at most 1"):
        client.decide(CONTEXT)


async def test_every_fake_is_async_for_free():
    class Fake(ModelClient):
        def decide(self, context):
            self.thread = threading.get_ident()
            return parse_decision(ANSWER, context)

    fake = Fake()
    assert (await fake.adecide(CONTEXT)).action == FinalAnswer(answer="Done.")
    assert fake.thread != threading.get_ident()


async def test_a_cancelled_caller_does_not_wait_for_the_thread():
    begun, release = threading.Event(), threading.Event()

    class Slow(ModelClient):
        def decide(self, context):
            begun.set()
            release.wait(10)
            return parse_decision(ANSWER, context)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Slow().adecide, CONTEXT)
        await anyio.to_thread.run_sync(begun.wait, 10)
        tasks.cancel_scope.cancel()
    assert not release.is_set()
    release.set()

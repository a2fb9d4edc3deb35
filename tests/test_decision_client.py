"""The decision client on the wire: the real SDK, a real server, every symptom and its class."""

import json
import os
import signal
import sys
import threading
import traceback
from contextlib import ExitStack
from dataclasses import replace

import anyio
import pytest
from raw_http import SECRET
from sdk import given_async_client, given_client

from agentlib.clock import MockClock
from agentlib.decisions import AskUser, ClientConfig, FinalAnswer, OpenAIModelClient, ToolCall
from agentlib.decisions.attempts import RESULTS
from agentlib.decisions.failures import (
    DecisionFailure,
    DecisionParseError,
    EmptyResponseError,
    StreamingUnsupportedError,
    TransportError,
)
from agentlib.faultserver.server import HEAD, Reply
from agentlib.model import Timers
from workbook.pages.decision_replies import CONTEXT, EDIT, streamed, whole
from workbook.pages.decision_trace import cancel_in_stall, observe, observe_blocking
from workbook.pages.symptoms import (
    NO_STREAMING,
    STREAM,
    SYMPTOMS,
    WHOLE,
    Symptom,
    symptom,
    symptom_table,
)

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_is_left")]
IN_STREAMS = [pytest.param(each, id=each.name) for each in SYMPTOMS]
IN_WHOLE = [pytest.param(each, id=each.name) for each in SYMPTOMS if each.whole is not None]
KINDS = {result: kind for kind, result in RESULTS.items()}
REFUSED = Reply.error(400, message=NO_STREAMING)


def client_of(server, *, clock=None, sleep=None, **options):
    known = {"max_parse_retries", "transport_max_retries", "asleep", "client", "aclient"}
    own = {name: options.pop(name) for name in known & set(options)}
    config = ClientConfig("m", api_key=SECRET, base_url=server.base_url, **options)
    clock = clock or MockClock()
    return OpenAIModelClient(
        config, clock=clock, sleep=sleep or (lambda _: None), random=lambda: 0.5, **own
    )


async def adecide(server, context=CONTEXT, **options):
    client = client_of(server, **options)
    try:
        with anyio.fail_after(20):
            return await client.adecide(context), client
    finally:
        await client.aclose()


def decide(server, context=CONTEXT, **options):
    client = client_of(server, **options)
    try:
        return client.decide(context), client
    finally:
        client.close()


def last_message(body):
    return body["messages"][-1]["content"]


def bodies(server):
    return [request.body for request in server.requests]


# ------------------------------------------------------------------------- every symptom, one class


def check(case, seen, *, streams):
    """What must hold of a symptom, however it was asked."""
    assert seen.results == case.results
    assert len(seen.requests) == len(case.results)
    first, last = seen.attempts[0], seen.attempts[-1]
    assert (seen.failure is None) == (last.result == "decision")
    if seen.failure is not None:
        assert type(seen.failure) is KINDS[case.kind]
        assert seen.failure.attempts == seen.attempts
        assert seen.failure.usage.requests == len(case.results)
    for before, after in zip(seen.requests, seen.requests[1:], strict=False):
        if case.told:
            told = last_message(after)
            assert after["messages"][:-1] == before["messages"]
            assert f"Problem: {first.reason}" in told
            assert first.excerpt in told
        elif case.kind == "capability":
            unstreamed = {k: v for k, v in before.items() if k not in ("stream", "stream_options")}
            assert after == unstreamed
        else:
            assert after == before
    retried = case.kind in ("transport", "empty")
    assert len(seen.waits) == (len(case.results) - 1 if retried else 0)
    assert all(wait > 0 for wait in seen.waits)
    assert seen.requests[0].get("stream", False) is streams
    assert all(attempt.excerpt == "" for attempt in seen.attempts if attempt.result != "parse")


@pytest.mark.exhaustive(keep=16)
@pytest.mark.parametrize("case", IN_STREAMS)
async def test_streamed_each_symptom_is_of_one_class(case):
    seen = await observe(case)
    check(case, seen, streams=True)
    assert seen.streams == (case.kind != "capability")


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("case", IN_WHOLE)
def test_whole_each_symptom_is_of_one_class(case):
    check(case, observe_blocking(case), streams=False)


@pytest.mark.exhaustive(keep=13)
@pytest.mark.parametrize("case", [p for p in IN_WHOLE if not p.values[0].stalls])
async def test_after_the_fallback_each_symptom_is_of_the_same_class(case):
    """An async client that no longer streams reads whole replies as the blocking one does."""
    after = Symptom(case.name, case.results, (REFUSED, *case.whole), None)
    seen = await observe(after)
    assert seen.results == ("capability", *case.results)
    assert [bool(body.get("stream")) for body in seen.requests] == [True] + [False] * len(
        case.results
    )


def test_the_table_of_the_chapter_is_these_symptoms():
    rows = symptom_table().rows
    assert [row[:3] for row in rows] == [
        (each.name, each.kind, str(len(each.results))) for each in SYMPTOMS
    ]
    assert {row[1] for row in rows} == set(KINDS)


# -------------------------------------------------------------------------------- what is decided

SHAPES = [
    (EDIT, ToolCall),
    (("final_answer", {"answer": "add() adds now."}), FinalAnswer),
    (("ask_user", {"question": "Which file?"}), AskUser),
]


@pytest.mark.parametrize(("call", "kind"), SHAPES)
async def test_every_shape_of_decision_is_one_structured_call(serve, call, kind):
    streams, blocks = serve(streamed(call, text="Hm.")), serve(whole(call, text="Hm."))
    one, _ = await adecide(streams)
    other, _ = await anyio.to_thread.run_sync(decide, blocks)
    assert one == other
    assert type(one.action) is kind
    assert one.thought == "Hm."
    assert (one.usage.input_tokens, one.usage.output_tokens, one.usage.requests) == (90, 10, 1)


async def test_a_request_carries_the_functions_and_asks_for_one_call(serve):
    server = serve(STREAM)
    await adecide(server)
    (body,) = bodies(server)
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == ["edit", "read", "final_answer", "ask_user"]
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("blocking", [False, True])
async def test_without_native_calls_one_json_object_is_the_protocol(serve, blocking):
    action = {"kind": "tool", "name": "edit", "input": EDIT[1]}
    text = json.dumps({"thought": "Hm.", "action": action})
    reply = whole if blocking else streamed
    fenced = f"```json\n{text}\n```"
    server = serve([reply(text=fenced), reply(EDIT), reply(text=text)])
    if blocking:
        ask = lambda: decide(server, native_tool_calls=False)  # noqa: E731
        decision, _ = await anyio.to_thread.run_sync(ask)
    else:
        decision, _ = await adecide(server, native_tool_calls=False)
    assert decision.action.model_dump() == action
    assert [note.problem.partition(":")[0] for note in decision.retry_trace] == [
        "expected one JSON object and nothing else",
        'tool "edit" is not exposed (no tool is exposed)',
    ]
    for body in bodies(server):
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)
        assert '"action"' in body["messages"][0]["content"]


async def test_a_refusal_is_told_like_any_other_reply_without_a_decision(serve):
    refusal = replace(
        STREAM, body=streamed(text="I will not.").body.replace(b'"content"', b'"refusal"')
    )
    server = serve([refusal, STREAM])
    decision, _ = await adecide(server)
    assert "refusal" in decision.retry_trace[0].problem
    assert "I will not." in last_message(bodies(server)[1])


# ------------------------------------------------------------------------------ retries and budgets


async def test_every_refused_reply_is_told_and_all_usage_is_summed(serve):
    server = serve([streamed(), Reply.error(503), streamed(EDIT, EDIT, usage=None), STREAM])
    decision, client = await adecide(server)
    assert [note.problem for note in decision.retry_trace] == [
        client.attempts[0].reason,
        client.attempts[2].reason,
    ]
    usage = decision.usage
    assert (usage.input_tokens, usage.output_tokens) == (180, 20)
    assert (usage.requests, usage.unreported) == (4, 2)
    assert usage.reasoning_tokens is None
    sent = bodies(server)
    assert sent[1] == sent[2]
    assert len(sent[3]["messages"]) == len(sent[0]["messages"]) + 2


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_parse_retries_are_bounded_and_the_error_knows_what_they_cost(serve, retries):
    server = serve(streamed(EDIT, EDIT))
    with pytest.raises(DecisionParseError) as raised:
        await adecide(server, max_parse_retries=retries, transport_max_retries=9)
    count = retries + 1
    assert len(server.requests) == count
    assert raised.value.usage.input_tokens == 90 * count
    assert raised.value.usage.output_tokens == 10 * count
    assert "edit(" in raised.value.excerpt


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_transport_retries_are_bounded_and_wait_longer_each_time(serve, retries):
    server, clock = serve(Reply.refuse()), MockClock()
    with pytest.raises(TransportError) as raised:
        await adecide(server, clock=clock, max_parse_retries=9, transport_max_retries=retries)
    assert len(server.requests) == retries + 1
    assert clock.slept == [0.25 * 2**number for number in range(retries)]
    assert raised.value.usage.input_tokens is None
    assert raised.value.usage.unreported == retries + 1


async def test_both_budgets_hold_for_the_whole_decision(serve):
    server = serve([REFUSED, *[whole(), Reply.error(500)] * 9])
    with pytest.raises(TransportError):
        await adecide(server, max_parse_retries=2, transport_max_retries=1)
    assert len(server.requests) == 5


async def test_what_a_lost_attempt_was_billed_is_on_the_error(serve):
    lost = STREAM.reset(at=STREAM.ends[-2])
    server = serve(lost)
    with pytest.raises(TransportError) as raised:
        await adecide(server, transport_max_retries=1)
    usage = raised.value.usage
    assert (usage.input_tokens, usage.output_tokens, usage.unreported) == (180, 20, 0)


async def test_what_the_attempt_before_a_fallback_was_billed_is_in_the_sum(serve):
    server = serve([WHOLE, whole(EDIT, usage={"prompt_tokens": 7, "completion_tokens": 3})])
    decision, _ = await adecide(server)
    assert (decision.usage.input_tokens, decision.usage.output_tokens) == (97, 13)


async def test_the_given_sleeps_wait(serve):
    waits = []

    async def asleep(seconds):
        waits.append(seconds)

    await adecide(serve([Reply.error(503), STREAM]), asleep=asleep)
    ask = lambda: decide(serve([Reply.error(503), WHOLE]), sleep=waits.append)  # noqa: E731
    await anyio.to_thread.run_sync(ask)
    assert waits == [0.25, 0.25]


# --------------------------------------------------------------------- the fallback, once a session


async def test_the_chapter_plays_one_session_of_several_decisions():
    seen = await observe(symptom("status 400, no streaming with tools"), decisions=2)
    assert [bool(body.get("stream")) for body in seen.requests] == [True, False, False]


def test_a_symptom_is_found_by_its_name():
    assert symptom(SYMPTOMS[3].name) is SYMPTOMS[3]
    with pytest.raises(ValueError, match="status 401"):
        symptom("no such")


async def test_the_fallback_happens_once_in_a_session(serve):
    server = serve([REFUSED, WHOLE])
    client = client_of(server)
    for _ in range(3):
        await client.adecide(CONTEXT)
    await client.aclose()
    assert [bool(body.get("stream")) for body in bodies(server)] == [True, False, False, False]
    assert [attempt.result for attempt in client.attempts] == ["decision"]


@pytest.mark.parametrize(
    "message",
    [
        "stream broke",
        "the upstream server does not support tools",
        "Unsupported value: 'temperature'",
        "the request stream ended early",
    ],
)
async def test_in_doubt_it_is_a_transport_failure(serve, message):
    server = serve(Reply.error(400, message=message))
    with pytest.raises(TransportError):
        await adecide(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
async def test_only_a_refusal_of_the_request_itself_speaks_of_streaming(serve, status):
    server = serve(Reply.error(status, message=NO_STREAMING))
    with pytest.raises(TransportError):
        await adecide(server, transport_max_retries=0)


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize(
    "message",
    [
        NO_STREAMING,
        "`stream` must be false when tools are used",
        "This model can't stream: streaming isn't supported",
        "Unsupported parameter: stream",
        "tools cannot be used in streaming mode",
    ],
)
@pytest.mark.parametrize("status", [400, 405, 422])
async def test_a_refusal_to_stream_is_known_by_its_words(serve, message, status):
    server = serve([Reply.error(status, message=message), WHOLE])
    decision, client = await adecide(server)
    assert (len(server.requests), client.streams) == (2, False)
    assert type(decision.action) is ToolCall


# -------------------------------------------------------------------------- stalls and cancellation

STALLS = {
    "before the head": (WHOLE.stall(at=HEAD), False),
    "in a stream": (STREAM.stall(at=STREAM.ends[1]), False),
    "before a whole reply": (WHOLE.stall(at=HEAD), True),
    "in a whole reply": (WHOLE.stall(at=9), True),
}


@pytest.mark.parametrize("where", STALLS)
async def test_a_cancellation_in_a_stall_ends_within_a_second(serve, where):
    reply, fallen_back = STALLS[where]
    server = serve([REFUSED, reply] if fallen_back else reply)
    client = client_of(server)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.adecide, CONTEXT)
        await anyio.to_thread.run_sync(server.wait_until, lambda each: each.stalled == 1)
        begun = anyio.current_time()
        tasks.cancel_scope.cancel()
    assert anyio.current_time() - begun < 1.0
    # The connection is closed before anything else of the client is.
    await anyio.to_thread.run_sync(server.wait_idle)
    await client.aclose()
    assert len(server.requests) == 1 + fallen_back


async def test_the_chapter_cancels_in_a_stall():
    seen = await cancel_in_stall(symptom("a stall within the reply"))
    assert seen.seconds < 1.0
    assert seen[1:] == (1, 1, 1)


async def test_a_cancellation_between_requests_sends_no_further_one(serve):
    server, waiting = serve(Reply.error(503)), anyio.Event()

    async def asleep(_):
        waiting.set()
        await anyio.sleep_forever()

    client = client_of(server, asleep=asleep)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.adecide, CONTEXT)
        await waiting.wait()
        tasks.cancel_scope.cancel()
    await client.aclose()
    assert len(server.requests) == 1


async def test_a_long_generation_is_no_stall(serve):
    """However long it takes in all, as long as no single wait is too long."""
    reply = STREAM
    for end in STREAM.ends[:-1]:
        reply = reply.delay(0.01, at=end)
    clock, server = MockClock(), serve(reply)
    # The hands may move once more while the usage is awaited, or the stream is closed.
    client = client_of(server, clock=clock, timers=Timers(trailing=1e6, closing=1e6))

    async def let_time_pass():
        seen = clock.moves
        while True:
            if clock.moves > seen:
                seen = clock.moves
                clock.jump(Timers().liveness - 1)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(let_time_pass)
        await client.adecide(CONTEXT)
        tasks.cancel_scope.cancel()
    await client.aclose()
    assert clock.now() > 2 * Timers().liveness
    assert [each.result for each in client.attempts] == ["decision"]


async def test_a_whole_reply_that_does_not_come_is_a_transport_failure(serve):
    clock, server = MockClock(), serve([REFUSED, WHOLE.stall(at=9), WHOLE])
    client = client_of(server, clock=clock)

    async def let_time_pass():
        await anyio.to_thread.run_sync(server.wait_until, lambda each: each.stalled == 1)
        # The head, and the bytes before the stall.
        while clock.moves < 2:
            await anyio.lowlevel.checkpoint()
        clock.jump(Timers().progress)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(let_time_pass)
        await client.adecide(CONTEXT)
    await client.aclose()
    assert [each.result for each in client.attempts] == ["capability", "transport", "decision"]


def test_a_blocking_reply_has_a_bound_in_all(serve):
    timers = Timers(progress=5.0, total=0.05)
    server = serve([WHOLE.trickle(size=20, seconds=0.01), WHOLE])
    with pytest.raises(TransportError, match="in all"):
        decide(server, timers=timers, transport_max_retries=0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another way to interrupt")
@pytest.mark.parametrize("given", [False, True], ids=["own client", "given client"])
@pytest.mark.parametrize("at", [HEAD, 9], ids=["before the head", "in the body"])
def test_ctrl_c_stops_a_read_that_blocks_and_leaves_nothing_open(serve, at, given):
    server = serve(WHOLE.stall(at=at))
    config = ClientConfig("m", api_key=SECRET, base_url=server.base_url)

    def interrupt():
        server.wait_until(lambda each: each.stalled == 1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with ExitStack() as stack:
        made = given_client(base_url=server.base_url)
        client = stack.enter_context(made) if given else None
        own = OpenAIModelClient(config, client)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            own.decide(CONTEXT)
        server.wait_idle()
        own.close()
    thread.join()


def test_a_reply_without_end_is_bounded(serve):
    endless = Reply(headers={"content-type": "application/json"}, body=b" " * (5 << 20))
    with pytest.raises(TransportError, match="at most"):
        decide(serve(endless), transport_max_retries=0)


# ------------------------------------------------------------------------------- the SDK's clients


async def test_given_clients_are_used_and_stay_open(serve):
    server = serve([STREAM, WHOLE])
    # Retries of their own are off, or the server would see more.
    options = {"base_url": server.base_url, "max_retries": 5}
    with given_client(**options) as client:
        async with given_async_client(**options) as aclient:
            own = OpenAIModelClient(ClientConfig("m"), client, aclient)
            await own.adecide(CONTEXT)
            await anyio.to_thread.run_sync(own.decide, CONTEXT)
            await own.aclose()
            assert not client.is_closed()
            assert not aclient.is_closed()
    assert len(server.requests) == 2


async def test_a_given_client_retries_nothing_by_itself(serve):
    server = serve(Reply.error(500))
    options = {"base_url": server.base_url, "max_retries": 5}
    with given_client(**options) as client:
        own = OpenAIModelClient(ClientConfig("m"), client, transport_max_retries=0)
        with pytest.raises(TransportError):
            await anyio.to_thread.run_sync(own.decide, CONTEXT)
    assert len(server.requests) == 1


@pytest.fixture
def _no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.usefixtures("_no_key")
async def test_without_a_key_it_is_constructed_and_says_so_when_it_is_used():
    client = OpenAIModelClient(ClientConfig("m"))
    for ask in (client.adecide, lambda context: anyio.to_thread.run_sync(client.decide, context)):
        with pytest.raises(TransportError, match="OPENAI_API_KEY") as raised:
            await ask(CONTEXT)
        assert raised.value.usage is None
        assert not raised.value.retryable
    await client.aclose()


async def test_without_the_sdk_it_is_constructed_and_says_so_when_it_is_used(monkeypatch):
    client = OpenAIModelClient(ClientConfig("m", api_key=SECRET))
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(TransportError, match="install"):
        await client.adecide(CONTEXT)
    with pytest.raises(TransportError, match="install"):
        client.decide(CONTEXT)


def test_a_key_is_never_shown(serve):
    server = serve(Reply.error(401, message=f"wrong key {SECRET}"))
    client = client_of(server)
    with pytest.raises(TransportError) as raised:
        client.decide(CONTEXT)
    client.close()
    assert SECRET not in f"{raised.value} {client.config!r} {client.attempts}"


def answering(body, media_type="application/json", **headers):
    return Reply(body=body.encode(), headers={"content-type": media_type, **headers})


def ended_by(call):
    return json.dumps({"error": {"message": f"no {call}", "code": call, "type": call}})


LEAKS = {
    "an error with status 200": answering(ended_by(SECRET)),
    "in other letters": answering(ended_by(SECRET.upper())),
    "with escapes": answering(ended_by(SECRET).replace("sk-", "\\u0073k-")),
    "a page": answering(f"<html>{SECRET}", "text/html"),
    "text that ends early": answering(f'{{"a": "{SECRET}'),
    "bytes that are no text": replace(answering(""), body=f"\xff{SECRET}".encode("latin-1")),
    "a media type": answering("{}", f"x/{SECRET}"),
    "a parameter": answering("data: {}\n\n", f"text/plain; {SECRET}"),
    "an encoding": answering("abc", "text/event-stream", **{"content-encoding": SECRET}),
    "an error in a stream": answering(f"data: {ended_by(SECRET)}\n\n", "text/event-stream"),
    "no object in a stream": answering(f'data: "{SECRET}"\n\n', "text/event-stream"),
    "no JSON in a stream": answering(f"data: {{{SECRET}\n\n", "text/event-stream"),
    "JSON in place of events": answering(f'{{"k": "{SECRET}"}}', "text/event-stream"),
    "cut by a quotation": answering(f'{{"k": "{"x" * 20}{SECRET}"}}', "text/event-stream"),
    "a tool that is unknown": whole((SECRET, {})),
    "a stream of it": streamed((SECRET, {})),
    "arguments": whole(("edit", {"pa": SECRET})),
    "arguments in a stream": streamed(("edit", {"pa": SECRET})),
    "a refusal": Reply.error(401, message=f"wrong key {SECRET}"),
    "a server that cannot": Reply.error(503, message=SECRET, code=SECRET),
}


def all_texts(error):
    """All that a message, a log or a trace shows of a failure."""
    shown = [f"{error!r} {vars(error)}", *traceback.format_exception(error)]
    return "\n".join(shown).lower()


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("reply", LEAKS.values(), ids=LEAKS)
async def test_a_key_that_is_sent_back_anywhere_is_in_no_text_of_the_failure(serve, reply):
    server = serve(reply)
    with pytest.raises(DecisionFailure) as streamed_failure:
        await adecide(server)
    with pytest.raises(DecisionFailure) as whole_failure:
        await anyio.to_thread.run_sync(decide, server)
    for failure in (streamed_failure.value, whole_failure.value):
        shown = all_texts(failure)
        pieces = (SECRET[at : at + 12] for at in range(len(SECRET) - 11))
        assert [piece for piece in pieces if piece in shown] == []


def test_a_password_in_an_address_is_not_shown():
    assert "hunter2" not in repr(ClientConfig("m", base_url="https://u:hunter2@host/v1"))


@pytest.mark.parametrize("key", ["x", "EMPTY", "ollama"])
def test_a_word_in_place_of_a_key_is_no_secret(serve, key):
    server = serve(Reply(headers={"content-type": "application/json"}, body=b""))
    own = OpenAIModelClient(
        ClientConfig("m", api_key=key, base_url=server.base_url), sleep=lambda _: None
    )
    with pytest.raises(EmptyResponseError, match="with an empty, blank or all-NUL body"):
        own.decide(CONTEXT)
    own.close()


def test_two_threads_make_one_client(serve):
    server = serve(WHOLE)
    client = client_of(server)
    threads = [threading.Thread(target=client.decide, args=(CONTEXT,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert len(server.requests) == 4


def test_the_class_of_a_failure_is_the_most_special_one():
    assert set(RESULTS) == {
        DecisionParseError,
        TransportError,
        EmptyResponseError,
        StreamingUnsupportedError,
    }

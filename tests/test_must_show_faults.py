"""The real SDK against each fault of the server: what is opened, executed, awaited, cancelled."""

import asyncio
import json
from dataclasses import replace

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from fakes import Counter
from sdk import ask, model_of

from agentlib import ResponseFailure
from agentlib.clock import LoopClock
from agentlib.errors import OpenFailure
from agentlib.failures import (
    GateRejected,
    IdleTimeout,
    LimitExceeded,
    ProtocolViolation,
    ProviderStopped,
    StreamCut,
)
from agentlib.faultserver.server import HEAD, Reply
from agentlib.fixtures import capture
from agentlib.model import Timers
from agentlib.retry import CONSERVATIVE, PATIENT
from agentlib.vocabulary import Opened

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_is_left")]
ONE = "success_2_edit"  # a text, then a call
TWO = "interleaved"  # two calls at once
CALLS = {ONE: ["edit"], TWO: ["read", "read"]}
NEVER = Timers(liveness=60)
both = pytest.mark.parametrize("name", [ONE, TWO])
on_trio_too = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture(scope="module", params=["asyncio"])
def anyio_backend(request):
    """Only asyncio, but for tests that name both: the SDK runs on trio too."""
    return request.param


class Hasty(LoopClock):
    """The loop's clock, but for the waits between openings: they take no time."""

    def __init__(self):
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()


def stream(name):
    return Reply.stream(capture(name))


async def act(server, **options):
    """One response over the real SDK; return what it was, what was executed, and the waits."""
    counter, clock = Counter(), Hasty()
    options = {"timers": NEVER, "clock": clock, **options}
    async with model_of(server, **options) as model:
        with anyio.fail_after(20):
            try:
                outcome = await ask(model)
            except (OpenFailure, ResponseFailure) as failure:
                return failure, counter.executed, clock.slept
        for call in outcome.calls:
            await counter.execute(call)
    return outcome, [call.name for call in counter.executed], clock.slept


# ----------------------------------------------------------------------------- what is opened


@on_trio_too
async def test_500_then_200_opens_twice_and_executes_once(serve):
    server = serve([Reply.error(500), stream(ONE)])
    _, executed, slept = await act(server)
    assert (len(server.requests), executed, slept) == (2, ["edit"], [0.25])
    assert server.requests[0].body == server.requests[1].body


@on_trio_too
async def test_three_500s_fail_after_exactly_three_requests(serve):
    server = serve([*[Reply.error(500)] * 3, stream(ONE)])
    failure, executed, slept = await act(server)
    assert isinstance(failure, OpenFailure)
    assert (len(server.requests), executed, slept) == (3, [], [0.25, 0.5])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429])
async def test_any_other_refusal_fails_after_one_request(serve, status):
    server = serve([Reply.error(status, headers={"retry-after": "1"}), stream(ONE)])
    failure, executed, slept = await act(server)
    assert (failure.status, len(server.requests), executed, slept) == (status, 1, [], [])


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "20"}, 20),
        ({"retry-after": "Sat, 01 Jan 2000 00:00:00 GMT"}, 0),
        ({}, 0.25),
    ],
)
async def test_a_patient_model_waits_as_it_is_asked(serve, headers, waited):
    server = serve([Reply.error(429, headers=headers), stream(ONE)])
    _, executed, slept = await act(server, policy=PATIENT)
    assert (len(server.requests), executed, slept) == (2, ["edit"], [waited])


@pytest.mark.parametrize("asked", ["3600", "20.5", "Sat, 01 Jan 2200 00:00:00 GMT"])
@pytest.mark.parametrize("status", [429, 503])
async def test_a_model_that_would_have_to_wait_too_long_gives_up_and_says_so(serve, asked, status):
    server = serve([Reply.error(status, headers={"retry-after": asked}), stream(ONE)])
    failure, executed, slept = await act(server, policy=PATIENT)
    assert (failure.status, len(server.requests), executed, slept) == (status, 1, [], [])
    assert "given up: the server asks to wait" in str(failure)


async def test_a_patient_model_does_not_wait_for_money(serve):
    reply = Reply.error(429, code="insufficient_quota", headers={"retry-after": "1"})
    server = serve([reply, stream(ONE)])
    failure, executed, _ = await act(server, policy=PATIENT)
    assert (failure.code, len(server.requests), executed) == ("insufficient_quota", 1, [])


@pytest.mark.parametrize("reply", [Reply.refuse(), stream(ONE).close(at=HEAD)], ids=repr)
async def test_a_request_that_was_taken_and_not_answered_goes_out_again_only_with_a_key(
    serve, reply
):
    server = serve([reply, reply, stream(ONE)])
    failure, executed, slept = await act(server)
    assert (failure.sent, len(server.requests), executed, slept) == ("perhaps sent", 1, [], [])

    server = serve([reply, reply, stream(ONE)])
    _, executed, _ = await act(server, idempotency_key=lambda: "k")
    assert (len(server.requests), executed) == (3, ["edit"])
    assert [request.idempotency_key for request in server.requests] == ["k"] * 3


@pytest.mark.exhaustive(keep=3)
@both
@pytest.mark.parametrize("end", [Reply.reset, Reply.close, Reply.cut_chunk])
@pytest.mark.parametrize("policy", [CONSERVATIVE, PATIENT], ids=["conservative", "patient"])
async def test_from_the_head_on_there_is_exactly_one_request(serve, name, end, policy):
    reply = stream(name)
    for at in (0, 1, reply.ends[0], reply.ends[-1] - 1):
        server = serve([end(reply, at=at), reply])
        failure, executed, _ = await act(server, policy=policy)
        assert (len(server.requests), executed) == (1, [])
        assert isinstance(failure, StreamCut)


# --------------------------------------------------------------------------------- each fault


def faults(name):
    """Each fault, and what must come of it: the calls, or a failure."""
    reply = stream(name)
    quick = {"timers": Timers(liveness=0.3, progress=0.3, total=5)}
    calls = CALLS[name]
    return {
        "split at every byte": (reply.split_every(1), calls, {}),
        "a delay": (reply.delay(0.01, at=reply.ends[2]), calls, {}),
        "a trickle": (reply.trickle(50, 0.0001), calls, {}),
        "keep-alives between": (reply.keepalives(0, 9, at=reply.ends[2]), calls, {}),
        "held open": (reply.hold_open(), calls, {}),
        "keep-alives after the end": (reply.keepalives(0, None, at=len(reply.body)), calls, {}),
        "a length": (replace(reply, framing="length"), calls, {}),
        "no length": (replace(reply, framing="close"), calls, {}),
        "refused": (Reply.refuse(), OpenFailure, {}),
        "status 503": (Reply.error(503), OpenFailure, {}),
        "reset": (reply.reset(at=reply.ends[3]), StreamCut, {}),
        "reset before any byte": (reply.reset(at=0), StreamCut, {}),
        "clean close": (reply.close(at=reply.ends[3]), StreamCut, {}),
        "cut chunk": (reply.cut_chunk(at=reply.ends[3] + 7), StreamCut, {}),
        "stall": (reply.stall(at=reply.ends[3]), IdleTimeout, quick),
        "stall inside an event": (reply.stall(at=reply.ends[3] + 7), IdleTimeout, quick),
        "stall before any byte": (reply.stall(at=0), IdleTimeout, quick),
        "keep-alives only": (Reply.keepalives_only(), IdleTimeout, quick),
        "keep-alives in the middle": (reply.keepalives(at=reply.ends[3]), IdleTimeout, quick),
        "another content type": (reply.content_type("text/html"), ProtocolViolation, {}),
        "a page": (Reply.html(), ProtocolViolation, {}),
        "a page as a stream": (Reply.blank(Reply.html().body), StreamCut, {}),
        "NULs": (Reply.blank(b"\0" * 4096), StreamCut, {}),
        "white space": (Reply.blank(b" \n" * 4096), StreamCut, {}),
        "nothing": (Reply.blank(), StreamCut, {}),
        "a huge line": (Reply.huge_line(20_000_000), ProtocolViolation, {}),
    }


@pytest.mark.exhaustive(keep=26)
@both
@pytest.mark.parametrize("what", faults(ONE))
async def test_each_fault_is_one_clear_failure_or_no_fault_at_all(serve, name, what):
    reply, expected, options = faults(name)[what]
    outcome, executed, _ = await act(serve(reply), **options)
    if isinstance(expected, list):
        assert executed == expected
        return
    assert executed == []
    assert type(outcome) is expected
    assert len(str(outcome)) > 20


@both
@pytest.mark.parametrize("damage", [Reply.duplicate, Reply.swap])
async def test_frames_twice_or_in_disorder_execute_nothing_or_each_call_once(serve, name, damage):
    reply = stream(name)
    last = len(reply.ends)
    numbers = range(1, last + (damage is Reply.duplicate))
    server = serve([damage(reply, number) for number in numbers])
    for number in numbers:
        outcome, executed, _ = await act(server)
        decided = number >= last - (damage is Reply.swap)
        assert executed == (CALLS[name] if decided else []), number
        assert decided or isinstance(outcome, ProtocolViolation), number
    assert len(server.requests) == len(numbers)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("failed", ProviderStopped),
        ("incomplete", ProviderStopped),
        ("error_event", ProviderStopped),
        ("terminal_differs", GateRejected),
        ("malformed", GateRejected),
        ("unknown_tool", GateRejected),
    ],
)
async def test_a_stream_that_says_so_itself_is_held_open_for_nothing(serve, name, kind):
    outcome, executed, _ = await act(serve(stream(name).hold_open()))
    assert (type(outcome), executed) == (kind, [])


async def test_a_runaway_text_is_cut_by_a_limit_and_not_by_the_end(serve):
    events = [event.data for event in capture(ONE).events]
    place = next(n for n, event in enumerate(events) if event["type"].endswith("text.delta"))
    runaway = {**events[place], "delta": "x" * 10_000}
    del runaway["sequence_number"]
    body = stream(ONE).body[: stream(ONE).ends[place]]
    body += b"data: %b\n\n" % json.dumps(runaway).encode() * 50
    outcome, executed, _ = await act(serve(Reply(body=body).hold_open()))
    assert (type(outcome), executed) == (LimitExceeded, [])


# ------------------------------------------------------------------------- three timers, real


@pytest.mark.exhaustive(keep=1)
@on_trio_too
@pytest.mark.parametrize(
    ("timers", "reply", "told"),
    [
        (Timers(liveness=0.1), stream(ONE).stall(at=stream(ONE).ends[3]), "no byte came"),
        (
            Timers(liveness=60, progress=0.1),
            stream(ONE).keepalives(0.001, at=stream(ONE).ends[3]),
            "only keep-alives came",
        ),
        (
            Timers(liveness=60, progress=60, total=1.5),
            stream(ONE).trickle(1, 0.001),
            "longer than 1.5 s in all",
        ),
    ],
    ids=["liveness", "progress", "total"],
)
async def test_each_timer_ends_a_real_stream(serve, timers, reply, told):
    server = serve(reply)
    begun = anyio.current_time()
    outcome, executed, _ = await act(server, timers=timers)
    assert isinstance(outcome, IdleTimeout), outcome
    assert told in outcome.reason
    assert (executed, len(server.requests)) == ([], 1)
    assert anyio.current_time() - begun < 10


@pytest.mark.exhaustive(keep=1)
@on_trio_too
async def test_the_total_ends_a_real_opening(serve):
    server = serve([stream(ONE).stall(at=HEAD), stream(ONE)])
    outcome, executed, _ = await act(server, timers=Timers(total=1), policy=PATIENT)
    assert isinstance(outcome, OpenFailure)
    assert "within 1 s in all" in outcome.reason
    assert (executed, len(server.requests), outcome.openings) == ([], 1, 1)


# ------------------------------------------------------------------------------ a user's cancel

STALLS = {
    "opening": stream(ONE).stall(at=HEAD),
    "before any byte": stream(ONE).stall(at=0),
    "between events": stream(ONE).stall(at=stream(ONE).ends[5]),
    "inside an event": stream(ONE).stall(at=stream(ONE).ends[5] + 9),
    "while keep-alives come": stream(ONE).keepalives(0.001, at=stream(ONE).ends[5]),
}


async def until_it_waits(server, where):
    def waits(server):
        return server.stalled if where != "while keep-alives come" else server.requests

    await anyio.to_thread.run_sync(server.wait_until, waits)


@on_trio_too
@pytest.mark.parametrize("where", STALLS)
async def test_a_cancel_is_closed_within_a_second_and_never_retried(serve, where):
    server = serve([STALLS[where], stream(ONE)])
    ended = []

    async def call():
        try:
            ended.append(await ask(model))
        except BaseException as error:
            ended.append(error)
            raise

    async with model_of(server, policy=PATIENT, timers=NEVER) as model:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await until_it_waits(server, where)
            begun = anyio.current_time()
            tasks.cancel_scope.cancel()
        assert anyio.current_time() - begun < 1
        await anyio.to_thread.run_sync(server.wait_idle)
    assert [isinstance(error, anyio.get_cancelled_exc_class()) for error in ended] == [True]
    assert len(server.requests) == 1


@pytest.mark.parametrize("where", STALLS)
async def test_cancelled_twice_at_any_moment_it_is_closed_all_the_same(serve, where):
    for turns in range(12):
        server = serve([STALLS[where], stream(ONE)])
        async with model_of(server, policy=PATIENT, timers=NEVER) as model:
            task = asyncio.create_task(ask(model))
            await until_it_waits(server, where)
            begun = anyio.current_time()
            task.cancel()
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert anyio.current_time() - begun < 1
            # The client is still open: the connection was closed by the call alone.
            await anyio.to_thread.run_sync(server.wait_idle)
        assert len(server.requests) == 1


@on_trio_too
async def test_cancelled_at_any_moment_of_the_opening_nothing_is_lost(serve):
    server = serve([stream(ONE)])
    async with model_of(server, timers=NEVER) as model:
        for turns in range(40):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, model)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            # The client is still open: each connection was closed by its call alone.
            await anyio.to_thread.run_sync(server.wait_idle)
        pool = model._transport._client._client._transport._pool
        assert pool.connections == []
        assert (await ask(model)).calls


@on_trio_too
async def test_a_client_that_is_closed_from_elsewhere_ends_the_call(serve):
    def report(event):
        if isinstance(event, Opened):
            reading.set()

    async def call():
        found.append(await failed(model))

    server, reading, found = serve([STALLS["between events"], stream(ONE)]), anyio.Event(), []
    opened = model_of(server, timers=NEVER, report=report)
    async with opened as model, anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await reading.wait()
        await model._transport.aclose()
    assert [type(failure) for failure in found] == [StreamCut]
    assert len(server.requests) == 1


async def failed(model):
    with pytest.raises(ResponseFailure) as raised:
        await ask(model)
    return raised.value

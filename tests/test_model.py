"""`complete`: only the opening is retried, whatever an acquired stream holds; three timers."""

import anyio
import pytest
from fakes import HANG, ask, counted, events, failure_of, play, replaying
from streams import KEEP_ALIVE

from agentlib import Message
from agentlib.assembly import Limits
from agentlib.clock import MockClock
from agentlib.errors import EncodingError, OpenFailure
from agentlib.failures import IdleTimeout, LimitExceeded, ProtocolViolation, StreamCut
from agentlib.fixtures import scenario, scenario_names, tools
from agentlib.model import StreamingModel, Timers
from agentlib.recordings.replay_transport import Refusal
from agentlib.retry import PATIENT, Opening
from agentlib.vocabulary import Completed

pytestmark = pytest.mark.anyio
READ = events("success_1_read")
NETWORK = OpenFailure("no connection", retryable=True, sent="not sent")
TURNS = [(name, turn) for name in scenario_names() for turn in scenario(name).turns]
each_turn = pytest.mark.parametrize(("name", "turn"), TURNS, ids=lambda value: str(value)[:20])


@pytest.fixture
def transport():
    with counted() as make:
        yield make


@pytest.fixture
def replay():
    with replaying() as start:
        yield start


# --------------------------------------------------------------------------- open, and retry that


async def test_an_opening_that_failed_is_tried_again_and_the_stream_is_read_once(replay):
    model, transport, clock = replay(Refusal(500), Refusal(None), play("success_1_read"))
    decision = await ask(model)

    assert [call.name for call in decision.calls] == ["read"]
    assert (len(transport.requests), transport.opened, clock.slept) == (3, 1, [0.25, 0.5])
    assert model.openings == [
        Opening(1, "the server answered 500", 0.25),
        Opening(2, "no connection", 0.5),
        Opening(3, "opened"),
    ]
    assert transport.requests[0] == transport.requests[1] == transport.requests[2]


async def test_three_failed_openings_are_the_end(replay):
    model, transport, clock = replay(*[Refusal(500)] * 4)
    failure = await failure_of(model, OpenFailure)

    assert (failure.status, failure.openings) == (500, 3)
    assert (len(transport.requests), transport.opened, clock.slept) == (3, 0, [0.25, 0.5])


@pytest.mark.parametrize("status", [401, 403, 404, 429])
async def test_any_other_refusal_is_one_request(replay, status):
    model, transport, clock = replay(Refusal(status, retry_after=1), play("success_1_read"))
    failure = await failure_of(model, OpenFailure)

    assert (failure.status, len(transport.requests), clock.slept) == (status, 1, [])


async def test_a_patient_model_waits_as_long_as_it_is_asked(replay):
    script = (Refusal(429, retry_after=7), Refusal(503, retry_after=20), play("success_1_read"))
    model, _, clock = replay(*script, policy=PATIENT)

    assert (await ask(model)).calls
    assert clock.slept == [7, 20]


async def test_a_patient_model_knows_an_exhausted_quota(replay):
    model, transport, _ = replay(Refusal(429, "insufficient_quota", 1), policy=PATIENT)
    failure = await failure_of(model, OpenFailure)

    assert (failure.code, len(transport.requests)) == ("insufficient_quota", 1)


async def test_what_cannot_be_encoded_opens_nothing(replay):
    model, transport, _ = replay(play("success_1_read"))
    with pytest.raises(EncodingError):
        await model.complete([Message("user", "\ud800")], tools())
    assert transport.requests == []


async def test_the_wait_for_an_opening_is_bounded_in_all(transport):
    async def slow():
        await clock.sleep(7)
        return NETWORK

    clock, opener = MockClock(), transport(slow, slow, slow)
    model = StreamingModel(
        opener, "m", clock=clock, random=lambda: 0.5, timers=Timers(total=10), policy=PATIENT
    )
    failure = await failure_of(model, OpenFailure)

    assert "within 10 s" in failure.reason
    assert (failure.openings, len(opener.requests), clock.now()) == (2, 2, 10)
    assert not PATIENT.may_retry(failure)


async def test_a_wait_between_openings_counts_too(replay):
    timers = Timers(total=0.6)
    model, transport, clock = replay(*[Refusal(500)] * 3, timers=timers)
    failure = await failure_of(model, OpenFailure)

    assert (failure.openings, len(transport.requests), clock.now()) == (2, 2, 0.6)


# --------------------------------------------------- once a stream is acquired, nothing is retried


@pytest.mark.exhaustive(keep=12)
@each_turn
async def test_whatever_a_stream_holds_it_is_opened_once(replay, name, turn):
    model, transport, _ = replay(play(turn.stream, turn.response), play("success_1_read"))
    if turn.verdict == "released":
        assert tuple(call.name for call in (await ask(model)).calls) == turn.calls, name
    else:
        failure = await failure_of(model)
        assert (failure.check, failure.event) == (turn.check, turn.event), name
    assert (len(transport.requests), transport.opened) == (1, 1)


@pytest.mark.parametrize(
    ("steps", "kind", "check"),
    [
        ([], StreamCut, "opened"),
        ([None, None], StreamCut, "opened"),
        ([StreamCut("reset", check="completed")], StreamCut, "completed"),
        ([OSError("reset")], OSError, None),
        ([OpenFailure("late", retryable=True)], OpenFailure, None),
        (READ[:1], StreamCut, "completed"),
        (READ[:9], StreamCut, "completed"),
        (READ[:-1], StreamCut, "completed"),
        ([*READ[:-1], StreamCut("reset", check="completed")], StreamCut, "completed"),
        ([*READ[:9], RuntimeError("a bug")], RuntimeError, None),
        ([READ[0], READ[0]], ProtocolViolation, "lifecycle"),
        ([{}], ProtocolViolation, "lifecycle"),
        (["no object"], ProtocolViolation, "lifecycle"),
    ],
)
async def test_an_acquired_stream_is_never_opened_again(transport, steps, kind, check):
    opener = transport(steps, READ, READ)
    failure = await failure_of(StreamingModel(opener, "m", policy=PATIENT), kind)

    assert len(opener.requests) == 1
    assert opener.closed == 1
    assert getattr(failure, "check", None) == check


async def test_reading_stops_at_the_terminal_event(transport):
    opener = transport([*READ, HANG])
    with anyio.fail_after(5):
        decision = await ask(StreamingModel(opener, "m"))

    assert decision.calls
    assert not opener.waiting.is_set()


async def test_limits_end_a_response(transport):
    opener = transport([*READ[:-1], HANG])
    model = StreamingModel(opener, "m", limits=Limits(text_characters=3))
    assert isinstance(await failure_of(model), LimitExceeded)


async def test_two_calls_at_once_do_not_mix(transport):
    async def slow():
        opener.waiting.set()
        await other.wait()
        return READ

    async def first():
        found.append(await ask(model))

    other, found, seen = anyio.Event(), [], []
    opener = transport(NETWORK, slow, NETWORK, READ)
    model = StreamingModel(opener, "m", clock=MockClock(), report=seen.append)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await opener.waiting.wait()
        found.append(await ask(model))
        other.set()

    openings = [event.number for event in seen if isinstance(event, Opening)]
    assert openings == [1, 1, 2, 2]
    assert [opening.number for opening in model.openings] == [1, 2], "the latest call's"
    assert len(found) == 2
    assert found[0] == found[1]


# ------------------------------------------------------------------------------------ three timers


async def test_without_a_byte_for_long_the_connection_is_dead(replay):
    model, _, clock = replay(play("success_1_read", pauses={5: 29, 6: 31}))
    failure = await failure_of(model, IdleTimeout)

    assert failure.event == 5
    assert "no byte came for 30 s" in failure.reason
    assert clock.now() == 59


def pausing(clock, seconds, step=None):
    async def pause():
        await clock.sleep(seconds)
        return step

    return pause


@pytest.mark.parametrize("alive", [None, KEEP_ALIVE], ids=["comment", "typed keep-alive"])
async def test_keep_alives_show_life_and_no_progress(transport, alive):
    clock = MockClock()
    opener = transport([*READ[:3], *[pausing(clock, 20, alive)] * 99])
    failure = await failure_of(StreamingModel(opener, "m", clock=clock), IdleTimeout)

    assert "only keep-alives came for 180 s" in failure.reason
    assert clock.now() == 180


@pytest.mark.parametrize("alive", [None, KEEP_ALIVE], ids=["comment", "typed keep-alive"])
async def test_a_model_that_thinks_for_long_is_healthy_while_it_lives(transport, alive):
    clock = MockClock()
    thinks = [pausing(clock, 20, alive)] * 8
    opener = transport([*READ[:3], *thinks, READ[3], *thinks, *READ[4:]])

    assert (await ask(StreamingModel(opener, "m", clock=clock))).calls
    assert clock.now() == 320


async def test_progress_for_ever_is_too_long_in_all(transport):
    clock = MockClock()
    slow = [pausing(clock, 25, READ[3] | {"sequence_number": n + 10}) for n in range(99)]
    opener = transport([*READ[:3], *slow])
    limits = Limits(text_characters=10**6)
    model = StreamingModel(opener, "m", clock=clock, limits=limits)
    failure = await failure_of(model)

    assert isinstance(failure, IdleTimeout), failure
    assert "longer than 600 s in all" in failure.reason
    assert clock.now() == 600


async def test_the_whole_counts_from_before_the_opening(transport):
    clock = MockClock()

    async def slow():
        await clock.sleep(590)
        return [*READ[:3], pausing(clock, 11)]

    failure = await failure_of(StreamingModel(transport(slow), "m", clock=clock), IdleTimeout)
    assert "in all" in failure.reason
    assert clock.now() == 600


@pytest.mark.parametrize("timers", [{"liveness": 5}, {"progress": 5}, {"total": 5}])
async def test_a_time_out_never_looks_like_the_end(replay, timers):
    seen = []
    timers = Timers(**timers)
    model, transport, _ = replay(
        play("success_1_read", pauses={16: 6}), play("success_1_read"), timers=timers
    )
    model._report = seen.append
    failure = await failure_of(model, IdleTimeout)

    assert (failure.event, failure.check, len(transport.requests)) == (15, "completed", 1)
    assert not any(isinstance(event, Completed) for event in seen)


async def test_a_pause_at_the_very_bound_is_too_long(replay):
    short, _, _ = replay(play("success_1_read", pauses={5: 29.9}))
    long, _, _ = replay(play("success_1_read", pauses={5: 30}))
    assert await ask(short)
    assert isinstance(await failure_of(long), IdleTimeout)

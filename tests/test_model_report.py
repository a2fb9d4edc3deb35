"""`complete`: an observer sees everything and changes nothing; what a failure cost is on it."""

import copy
from collections.abc import Mapping
from contextlib import suppress

import pytest
from fakes import ask, counted, events, failure_of, play, replaying

from agentlib import Usage
from agentlib.failures import (
    GateRejected,
    ObserverFailed,
    ProtocolViolation,
    ProviderStopped,
    StreamCut,
)
from agentlib.model import StreamingModel
from agentlib.recordings.replay_transport import Refusal
from agentlib.retry import Opening
from agentlib.vocabulary import Completed, Opened, TextDelta

pytestmark = pytest.mark.anyio
READ = events("success_1_read")


@pytest.fixture
def transport():
    with counted() as make:
        yield make


@pytest.fixture
def replay():
    with replaying() as start:
        yield start


async def test_an_observer_sees_the_openings_and_the_neutral_events_in_order(replay):
    seen = []
    model, _, _ = replay(Refusal(500), play("success_1_read"), report=seen.append)
    await ask(model)

    assert [type(event) for event in seen[:3]] == [Opening, Opening, Opened]
    assert isinstance(seen[-1], Completed)
    assert any(isinstance(event, TextDelta) for event in seen)


async def count_of_reports(replay):
    seen = []
    model, _, _ = replay(Refusal(500), play("success_1_read"), report=seen.append)
    await ask(model)
    return len(seen)


async def test_an_observer_that_raises_anywhere_ends_the_response(replay):
    for number in range(await count_of_reports(replay)):
        seen = []

        def raise_there(event, seen=seen, number=number):
            seen.append(event)
            if len(seen) > number:
                raise KeyError("an observer's own bug")

        model, transport, _ = replay(Refusal(500), play("success_1_read"), report=raise_there)
        failure = await failure_of(model, ObserverFailed)

        assert isinstance(failure.__cause__, KeyError)
        assert failure.check == "observer"
        assert transport.opened == transport.closed == min(number, 1)
        assert len(seen) == number + 1, "it is not called again"


@pytest.mark.parametrize("kind", [StopAsyncIteration, StopIteration, TimeoutError, StreamCut])
async def test_no_error_of_an_observer_is_taken_for_anything_else(replay, kind):
    def raise_at_text(event):
        if isinstance(event, TextDelta):
            raise kind("end") if kind is not StreamCut else StreamCut("end", check="completed")

    model, _, _ = replay(play("success_1_read"), report=raise_at_text)
    assert type(await failure_of(model)) is ObserverFailed


async def test_an_observer_that_is_interrupted_leaves_nothing_open(replay):
    def interrupt(event):
        if isinstance(event, TextDelta):
            raise KeyboardInterrupt

    model, transport, _ = replay(play("success_1_read"), report=interrupt)
    with pytest.raises(KeyboardInterrupt):
        await ask(model)
    assert transport.closed == 1


def vandalise(value, seen):
    """Change whatever can be changed in a value, all the way down."""
    if id(value) in seen or isinstance(value, str | int | float | bool | type | None):
        return
    seen[id(value)] = value
    if isinstance(value, Mapping):
        inner = list(value.values())
        with suppress(TypeError, AttributeError):
            value.update(arguments="vandalised", text="vandalised")
    elif isinstance(value, list | tuple):
        inner = list(value)
        with suppress(TypeError, AttributeError):
            value.clear()
    else:
        names = [*getattr(value, "__dict__", ()), *getattr(value, "__slots__", ())]
        inner = [getattr(value, name) for name in names]
        for name in names:
            with suppress(AttributeError, TypeError):
                setattr(value, name, "vandalised")
    for each in inner:
        vandalise(each, seen)


@pytest.mark.parametrize("name", ["success_1_read", "interleaved", "refusal", "text_only"])
@pytest.mark.parametrize("native", [False, True])
async def test_an_observer_cannot_change_what_comes_of_it(replay, name, native):
    quiet, _, _ = replay(play(name), native=native)
    watched, _, _ = replay(play(name), native=native, report=lambda event: vandalise(event, {}))

    decision, same = await ask(watched), await ask(quiet)
    assert decision == same
    assert repr(decision) == repr(same)


# ------------------------------------------------------------------------------------------- usage

BILLED = {"success_1_read": Usage(312, 0, 31, 0), "incomplete": Usage(398, 0, 2048, 0)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("incomplete", ProviderStopped),
        ("status_disagrees", ProviderStopped),
        ("duplicate_key", GateRejected),
        ("malformed", GateRejected),
        ("unknown_tool", GateRejected),
        ("terminal_differs", GateRejected),
    ],
)
async def test_what_a_failed_response_cost_is_on_its_error(replay, name, kind):
    model, _, _ = replay(play(name))
    failure = await failure_of(model, kind)
    told = events(name)[-1]["response"]["usage"]

    assert failure.usage is not None
    assert failure.usage.output_tokens == told["output_tokens"]
    assert failure.usage.input_tokens == told["input_tokens"]


def with_two_outputs(steps):
    last = copy.deepcopy(steps[-1])
    last["response"]["output"] = last["response"]["output"][::-1]
    return [*steps[:-1], last]


def with_broken_output(steps):
    last = copy.deepcopy(steps[-1])
    last["response"]["output"] = "none"
    return [*steps[:-1], last]


@pytest.mark.parametrize("damage", [with_two_outputs, with_broken_output])
async def test_what_a_broken_end_says_of_cost_is_on_its_error(transport, damage):
    failure = await failure_of(StreamingModel(transport(damage(READ)), "m"))
    assert isinstance(failure, ProtocolViolation)
    assert failure.usage == BILLED["success_1_read"]


async def test_what_an_unobserved_response_cost_is_on_the_observers_failure(replay):
    def raise_at_the_end(event):
        if isinstance(event, Completed):
            raise KeyError("an observer's own bug")

    model, _, _ = replay(play("success_1_read"), report=raise_at_the_end)
    failure = await failure_of(model, ObserverFailed)
    assert failure.usage == BILLED["success_1_read"]


@pytest.mark.parametrize("name", ["disconnect", "failed", "error_event"])
async def test_an_unknown_cost_is_not_zero(replay, name):
    model, _, _ = replay(play(name))
    assert (await failure_of(model)).usage is None

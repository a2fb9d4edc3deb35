"""A transport of a test's own: what it opens, what comes, how it closes, and what it counted."""

from contextlib import contextmanager

import anyio
import anyio.lowlevel
import pytest

from agentlib import ToolResult, user
from agentlib.clock import MockClock
from agentlib.failures import ResponseFailure
from agentlib.fixtures import capture, tools
from agentlib.model import StreamingModel
from agentlib.recordings.replay_transport import Playback, ReplayTransport

HANG = object()


def events(name, response=1):
    """The native events of a fixture."""
    return [event.data for event in capture(name).responses[response - 1].events]


class FakeTransport:
    """Opens its openings in order: a list of steps is a stream, an exception is raised.

    A step is a native event, None, an exception to raise, HANG, or an async function to await.
    `closing` is awaited within each close. `waiting` is set where something hangs.
    """

    def __init__(self, *openings, closing=None):
        self.openings = iter(openings)
        self.closing = closing
        self.requests = []
        self.opened = self.closes = self.closed = 0
        self.waiting = anyio.Event()
        self.close_begun = anyio.Event()

    async def open(self, request):
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        opening = next(self.openings)
        if opening is HANG:
            await self.hang()
        if callable(opening):
            opening = await opening()
        if isinstance(opening, BaseException):
            raise opening
        self.opened += 1
        return FakeStream(self, opening)

    async def hang(self):
        self.waiting.set()
        await anyio.sleep_forever()


class FakeStream:
    def __init__(self, owner, steps):
        self.owner = owner
        self.steps = iter(steps)

    def __aiter__(self):
        return self

    async def __anext__(self):
        await anyio.lowlevel.checkpoint()
        step = next(self.steps, StopAsyncIteration())
        if step is HANG:
            await self.owner.hang()
        if isinstance(step, BaseException):
            raise step
        return await step() if callable(step) else step

    async def aclose(self):
        owner = self.owner
        owner.closes += 1
        owner.close_begun.set()
        await anyio.lowlevel.checkpoint()
        if owner.closing is not None:
            await owner.closing()
        owner.closed += 1


@contextmanager
def counted():
    """Make transports; at the end, each has closed every stream that it opened, exactly once."""
    made = []

    def make(*openings, closing=None):
        made.append(FakeTransport(*openings, closing=closing))
        return made[-1]

    yield make
    for transport in made:
        assert transport.closes == transport.opened


class Counter:
    """An executor that executes nothing, and counts what it was asked to."""

    def __init__(self):
        self.executed = []

    async def execute(self, call):
        self.executed.append(call)
        return ToolResult(call.call_id, f"{call.name} is done")


@contextmanager
def replaying():
    """Start models that play a script on a mock clock; at the end no stream is open."""
    made = []

    def start(*script, **options):
        clock = MockClock()
        made.append(ReplayTransport(script, clock))
        model = StreamingModel(made[-1], "m", clock=clock, random=lambda: 0.5, **options)
        return model, made[-1], clock

    yield start
    for each in made:
        assert each.opened == each.closed


def play(name, response=1, **options):
    """A fixture, to be played."""
    return Playback(capture(name).responses[response - 1], **options)


async def ask(model):
    return await model.complete([user("repair it")], tools())


async def failure_of(model, kind=ResponseFailure):
    with pytest.raises(kind) as raised:
        await ask(model)
    return raised.value

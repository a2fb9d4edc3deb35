"""Times: each second of a run belongs to one component, however the run ends."""

import random

import anyio
import pytest
from runs import ASKED, call, host, says

from agentlib.clock import MockClock
from agentlib.conversation import ToolResult
from agentlib.laboratory import capture
from agentlib.model import StreamingModel
from agentlib.recordings.replay_transport import Playback, Refusal, ReplayTransport
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import DeadlineExceeded
from agentlib.stopwatch import Stopwatch

pytestmark = pytest.mark.anyio


class Slow:
    """Tools that take their time on a clock, by their call's ID."""

    def __init__(self, clock, seconds):
        self._clock = clock
        self._seconds = seconds

    def runs_in(self, _):
        return "task"

    async def execute(self, asked):
        await self._clock.sleep(self._seconds[asked.call_id])
        return ToolResult(asked.call_id, "done")


class Thinking:
    """A model that takes its time on a clock before each of its steps."""

    def __init__(self, clock, steps):
        self._clock = clock
        self._steps = list(steps)

    async def complete(self, _history, _tools):
        seconds, decision = self._steps.pop(0)
        await self._clock.sleep(seconds)
        return decision


def shape(seed):
    """Turns of calls, how long each takes, and limits that may end it anywhere."""
    rng = random.Random(seed)
    seconds, steps = {}, []
    for turn in range(rng.randrange(1, 4)):
        ids = [f"t{turn}c{n}" for n in range(rng.randrange(1, 6))]
        seconds |= {each: rng.randrange(1, 12) / 4 for each in ids}
        names = ["edit", "edit", "card"]
        steps.append((rng.randrange(8) / 4, says("", *(call(i, rng.choice(names)) for i in ids))))
    steps.append((rng.randrange(8) / 4, says("Done.")))
    deadlines = {
        name: rng.choice([None, None, rng.randrange(1, 20) / 4 + 0.1])
        for name in ("deadline", "turn_deadline", "tool_deadline")
    }
    return seconds, steps, RunLimits(parallel_tools=rng.randrange(1, 4), **deadlines)


@pytest.mark.parametrize("seed", range(60))
async def test_the_times_add_up_to_the_time_of_the_run(seed):
    clock = MockClock()
    seconds, steps, limits = shape(seed)
    cards = host(Slow(clock, seconds), presentation=frozenset({"card"}))
    run = Run(Thinking(clock, steps), cards, limits, clock=clock)
    outcome = await run.start(ASKED)

    assert sum(outcome.times.values()) == pytest.approx(clock.now())
    assert all(each >= 0 for each in outcome.times.values())
    assert "host" not in outcome.times
    assert all(each.waited + each.ran <= clock.now() for each in outcome.executions)


@pytest.mark.parametrize("seed", range(20))
async def test_they_add_up_where_the_caller_cancels(seed):
    clock = MockClock()
    seconds, steps, _ = shape(seed)
    run = Run(Thinking(clock, steps), host(Slow(clock, seconds)), clock=clock)
    outcomes = []

    async def cancel():
        await clock.sleep(seed / 4 + 0.1)
        run.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        outcomes.append(await run.start(ASKED))
        ended = clock.now()
        tasks.cancel_scope.cancel()
    assert sum(outcomes[0].times.values()) == pytest.approx(ended)


@pytest.mark.parametrize("places", [1, 2, 3])
async def test_the_queue_is_the_time_in_which_a_call_has_no_place(places):
    clock = MockClock()
    ids = ["a", "b", "c"]
    steps = [(0, says("", *map(call, ids))), (0, says("Done."))]
    run = Run(
        Thinking(clock, steps),
        host(Slow(clock, dict.fromkeys(ids, 1.0))),
        RunLimits(parallel_tools=places),
        clock=clock,
    )
    outcome = await run.start(ASKED)
    queue, tool = {1: (2, 1), 2: (1, 1), 3: (0, 1)}[places]
    assert (outcome.times["queue"], outcome.times["tool"]) == (queue, tool)


@pytest.mark.parametrize("places", [1, 2])
async def test_a_call_that_never_had_a_place_has_waited(places):
    clock = MockClock()
    ids = ["a", "b", "c", "d"]
    run = Run(
        Thinking(clock, [(0, says("", *map(call, ids)))]),
        host(Slow(clock, dict.fromkeys(ids, 9.0))),
        RunLimits(parallel_tools=places, deadline=0.5),
        clock=clock,
    )
    outcome = await run.start(ASKED)
    assert isinstance(outcome, DeadlineExceeded)
    assert outcome.component == "tool"
    # Which of the calls gets a place first is the event loop's choice.
    waited = sorted(each.waited for each in outcome.executions)
    assert waited == [0.0] * places + [0.5] * (len(ids) - places)
    assert outcome.times["queue"] == 0.5


STREAMS = {
    "released": [Playback],
    "opened by the second": [Refusal(503), Playback],
}


@pytest.mark.parametrize("openings", STREAMS.values(), ids=STREAMS)
async def test_a_model_that_measures_its_parts_leaves_nothing_out(openings):
    clock = MockClock()
    watch = Stopwatch(clock)
    answer = capture("success_4_answer").responses[0]
    script = [each(answer) if each is Playback else each for each in openings]
    model = StreamingModel(
        ReplayTransport(script, clock), "m", clock=clock, stopwatch=watch, random=lambda: 0.5
    )
    outcome = await Run(model, host(), clock=clock, stopwatch=watch).start(ASKED)
    assert sum(outcome.times.values()) == pytest.approx(clock.now())
    assert {"host", "model"}.isdisjoint(outcome.times)


def test_a_second_inside_another_component_counts_once():
    clock = Moved()
    watch = Stopwatch(clock)
    with watch.within("run"):
        clock.at = 1
        with watch.within("model"):
            clock.at = 3
            watch.switch("opening")
            clock.at = 6
            watch.stop()
            clock.at = 10
        clock.at = 15
    clock.at = 99
    watch.move(100, "opening", "queue")
    assert watch.seconds == {"run": 6, "model": 6, "opening": 0, "queue": 3}


class Moved:
    """A clock that stands where it is put."""

    at = 0

    def now(self):
        return self.at

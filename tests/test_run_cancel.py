"""A run that is cancelled: everything ends, nothing is lost, and nothing runs twice."""

import asyncio
import threading

import anyio
import anyio.to_thread
import pytest
from runs import ASKED, Script, Tools, approve, call, host, says

from agentlib.clock import LoopClock, MockClock
from agentlib.conversation import ToolResult, check_history
from agentlib.fixtures import capture
from agentlib.model import StreamingModel
from agentlib.recordings.replay_transport import Refusal, ReplayTransport
from agentlib.retry import RetryPolicy
from agentlib.runtime.journal import FileJournal, MemoryJournal
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import Cancelled, DeadlineExceeded, Finished
from agentlib.stopwatch import Stopwatch

pytestmark = pytest.mark.anyio
SECOND = 1.0


async def cancelled(run, begun):
    """Start a run, cancel its caller when `begun` says that it waits, and return the outcome."""
    with anyio.fail_after(SECOND * 5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.start, ASKED)
            await begun()
            await anyio.wait_all_tasks_blocked()
            before = anyio.current_time()
            tasks.cancel_scope.cancel()
        assert anyio.current_time() - before < SECOND
    check_history(run.outcome.history)
    return run.outcome


async def at_once():
    await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("own", [False, True], ids=["the caller", "the run itself"])
async def test_a_finished_result_is_kept_and_an_interrupted_one_is_unknown(own):
    tools = Tools()
    run = Run(Script(says("", call("c1"), call("c2", "wait"))), host(tools))
    if own:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.start, ASKED)
            await anyio.wait_all_tasks_blocked()
            run.cancel("the user pressed stop")
        outcome = run.outcome
        assert outcome.reason == "the user pressed stop"
    else:
        outcome = await cancelled(run, at_once)
    assert isinstance(outcome, Cancelled)
    assert [each.status for each in outcome.executions] == ["executed", "unknown"]
    check_history(outcome.history)
    assert outcome.history[-2] == ToolResult("c1", "edit done")
    assert "may have acted" in outcome.history[-1].output


async def test_a_call_that_waits_for_a_place_is_recorded_as_not_executed():
    tools = Tools()
    calls = [call("c1", "wait"), call("c2"), call("c3")]
    for parallel in (1, 2):
        run = Run(Script(says("", *calls)), host(tools), RunLimits(parallel_tools=parallel))
        outcome = await cancelled(run, at_once)
        assert outcome.executions[0].status == "unknown"
        if parallel == 1:
            assert [each.status for each in outcome.executions[1:]] == ["not_executed"] * 2
            assert "before this call began" in outcome.executions[1].output


async def test_parallel_calls_are_bounded_and_keep_their_order():
    tools = Tools()
    calls = [call(f"c{n}") for n in range(8)]
    model = Script(says("", *calls), says("Done."))
    outcome = await Run(model, host(tools), RunLimits(parallel_tools=3)).start(ASKED)
    assert tools.most_at_once == 3
    assert [each.call.call_id for each in outcome.executions] == [each.call_id for each in calls]
    assert "queue" in outcome.times


async def test_one_at_a_time_means_in_the_order_of_the_calls():
    for _ in range(5):
        tools = Tools()
        model = Script(says("", *[call(f"c{n}") for n in range(8)]), says("Done."))
        await Run(model, host(tools), RunLimits(parallel_tools=1)).start(ASKED)
        assert tools.begun == [f"c{n}" for n in range(8)]


class ThreadTool:
    """A tool in a thread, which no cancellation stops."""

    def __init__(self):
        self.go = threading.Event()
        self.ended = threading.Event()

    def runs_in(self, _):
        return "thread"

    async def execute(self, each):
        await anyio.to_thread.run_sync(self._work, abandon_on_cancel=True)
        return ToolResult(each.call_id, "done")

    def _work(self):
        self.go.wait(5)
        self.ended.set()


async def test_a_thread_cannot_be_stopped_and_the_text_says_so():
    tool = ThreadTool()
    outcome = await cancelled(Run(Script(says("", call("c1"))), host(tool)), at_once)
    assert outcome.executions[0].status == "unknown"
    assert "thread cannot be stopped" in outcome.executions[0].output
    assert not tool.ended.is_set()
    tool.go.set()
    assert await anyio.to_thread.run_sync(tool.ended.wait, 5)


async def test_a_tool_that_takes_too_long_is_stopped_and_the_run_goes_on():
    model = Script(says("", call("c1", "wait"), call("c2")), says("Done."))
    outcome = await Run(model, host(), RunLimits(tool_deadline=0.05)).start(ASKED)
    assert isinstance(outcome, Finished)
    assert [each.status for each in outcome.executions] == ["timed_out", "executed"]


async def test_the_overall_deadline_reaches_a_tool_and_says_where_the_time_went():
    model = Script(says("", call("c1", "wait")))
    outcome = await Run(model, host(), RunLimits(deadline=0.05)).start(ASKED)
    assert isinstance(outcome, DeadlineExceeded)
    assert outcome.component == "tool"
    assert outcome.times["tool"] > 0
    check_history(outcome.history)


# ---------------------------------------------------------------- within the model's own waits


class Waiting:
    """A transport that waits where it is told to."""

    def __init__(self, where, sleep=anyio.sleep_forever):
        self.where = where
        self.sleep = sleep
        self.opened = self.closed = 0
        self._events = iter(capture("success_2_edit").events)

    async def open(self, _request):
        if self.where == "opening":
            await self.sleep()
        self.opened += 1
        return self

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.where in ("first event", "closing"):
            await self.sleep()
        event = next(self._events)
        if self.where == "streaming" and event.number == 9:
            await self.sleep()
        return event.data

    async def aclose(self):
        await anyio.sleep(0.05 if self.where == "closing" else 0)
        self.closed += 1


@pytest.mark.parametrize("where", ["opening", "first event", "streaming", "closing"])
async def test_a_cancellation_reaches_every_wait_of_the_model(where):
    transport = Waiting(where)
    outcome = await cancelled(Run(StreamingModel(transport, "m"), host()), at_once)
    assert isinstance(outcome, Cancelled)
    assert transport.opened == transport.closed
    assert outcome.history == tuple(ASKED)
    assert outcome.executions == ()


@pytest.mark.parametrize("where", ["opening", "first event", "streaming"])
async def test_a_deadline_names_the_component_in_which_it_struck(where):
    clock = MockClock()
    stopwatch = Stopwatch(clock)
    transport = Waiting(where, lambda: clock.sleep(20))
    model = StreamingModel(transport, "m", clock=clock, stopwatch=stopwatch)
    limits = RunLimits(turn_deadline=10)
    run = Run(model, host(), limits, clock=clock, stopwatch=stopwatch)
    outcome = await run.start(ASKED)
    assert isinstance(outcome, DeadlineExceeded)
    assert outcome.component == where
    assert outcome.times[where] == 10
    assert transport.opened == transport.closed


async def test_a_cancellation_reaches_a_backoff_sleep():
    clock = LoopClock()
    transport = ReplayTransport([Refusal(500)] * 3, clock)
    model = StreamingModel(transport, "m", clock=clock, policy=RetryPolicy(first_delay=60))
    outcome = await cancelled(Run(model, host()), at_once)
    assert isinstance(outcome, Cancelled)
    assert len(transport.requests) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_second_cancel_during_the_close_loses_nothing():
    transport = Waiting("closing")
    run = Run(StreamingModel(transport, "m"), host())
    task = asyncio.create_task(run.start(ASKED))
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    await anyio.lowlevel.checkpoint()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (transport.opened, transport.closed) == (1, 1)
    assert isinstance(run.outcome, Cancelled)


# ------------------------------------------------------------------------- never run twice


def saved_twice(tmp_path, kind):
    memory, path = MemoryJournal(), tmp_path / "journal.sqlite"
    return (lambda: FileJournal(path)) if kind == "file" else (lambda: memory)


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_a_run_that_is_resumed_twice_runs_its_call_once(tmp_path, kind):
    journal = saved_twice(tmp_path, kind)
    what = {"approval": lambda _: "it acts"}
    first = Run(Script(says("", call("c1"))), host(journal=journal(), **what))
    asked = await first.start(ASKED)
    tools, outcomes = Tools(), []
    for _ in range(2):
        run = Run(Script(says("Done.")), host(tools, journal=journal(), **what))
        outcomes.append(await run.resume(asked.saved, approve(asked)))
    assert tools.ran == ["c1"]
    assert [each.executions[0].output for each in outcomes] == ["edit done", "edit done"]


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_a_call_that_left_no_result_is_unknown_and_not_run_again(tmp_path, kind):
    journal = saved_twice(tmp_path, kind)
    what = {"approval": lambda _: "it acts"}
    first = Run(Script(says("", call("c1"))), host(journal=journal(), **what))
    outcome = await first.start(ASKED)
    assert journal().claim(outcome.run_id, "c1")
    tools = Tools()
    run = Run(Script(says("Done.")), host(tools, journal=journal(), **what))
    again = await run.resume(outcome.saved, approve(outcome))
    assert tools.begun == []
    assert again.executions[0].status == "unknown"

"""Every run ends in one outcome, whatever a part of its host raises, returns or never ends."""

import asyncio
import itertools
import json
import re
from dataclasses import dataclass, field, replace

import anyio
import pytest
from runs import ASKED, TOOLS, Script, Tools, call, host, says

from agentlib.conversation import (
    Message,
    NativeTurn,
    RejectedCall,
    ToolCall,
    ToolResult,
    Usage,
    check_history,
)
from agentlib.errors import AgentlibError
from agentlib.failures import GateRejected
from agentlib.jsonvalues import FrozenObject
from agentlib.providers.registry import find_provider
from agentlib.runtime.journal import FileJournal, MemoryJournal
from agentlib.runtime.ledger import BudgetExceeded, LedgerFailed
from agentlib.runtime.limits import RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import (
    Cancelled,
    DeadlineExceeded,
    Finished,
    HostFailed,
    Outcome,
)
from agentlib.runtime.publication import Publication
from agentlib.runtime.receipts import ClaimRule
from agentlib.runtime.routes import AccessDenied, UnmeteredRoute
from agentlib.runtime.state import StateError
from agentlib.vocabulary import TextDelta

pytestmark = pytest.mark.anyio


class Odd(BaseException):
    """Raised by nobody who means a cancellation."""


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class Unprintable:
    def __repr__(self):
        raise ValueError("no repr")


RAISES = {
    "an error": lambda: RuntimeError("out of paper"),
    "an error of ours": lambda: AgentlibError("no"),
    "access denied": lambda: AccessDenied("no"),
    "unmetered": lambda: UnmeteredRoute("no"),
    "budget exceeded": lambda: BudgetExceeded("no"),
    "ledger failed": lambda: LedgerFailed("no"),
    "a full disk": lambda: OSError(28, "No space left on device"),
    "an exit": lambda: SystemExit(3),
    "no Exception at all": lambda: Odd("odd"),
    "a group": lambda: ExceptionGroup("two", [ValueError("a"), ValueError("b")]),
    "a text that raises": Mute,
    "a lone surrogate": lambda: RuntimeError("\ud800"),
    "a stop of an iteration": lambda: StopAsyncIteration("end"),
    "a cancellation of nobody": asyncio.CancelledError,
}


async def nothing():
    return True


RETURNS = {
    "None": lambda: None,
    "bytes": lambda: b"\xff",
    "a dict": dict,
    "a number": lambda: 7,
    "a lone surrogate": lambda: "\ud800",
    "something unprintable": Unprintable,
    "an awaitable": nothing,
}


# What each part may return of the above without being wrong.
FREE = set(RETURNS) - {"an awaitable"}
MAY_RETURN = {
    "observe": FREE,
    "show": FREE,
    "commit": FREE,
    "record": FREE,
    "approval": {"None"},
    "checks": {"None"},
    "succeeded": FREE,
    "output": {"None", "a lone surrogate"},
}
NAMED = {
    "claim": "journal",
    "record": "journal",
    "output": "journal",
    "runs_in": "executor",
    "execute": "",
    "succeeded": "rules",
}
PARTS = (
    "model", "observe", "approval", "claim", "record", "output", "runs_in", "execute", "show",
    "succeeded", "checks", "verify", "commit",
)  # fmt: skip


# These are asked for each call: they misbehave for the first one alone.
ONE_CALL = ("claim", "record", "runs_in", "execute")


@dataclass
class Broken:
    """A host of which one part misbehaves, once for call c1 where it is asked for each call."""

    part: str
    misbehave: object
    tools: Tools = field(default_factory=Tools)

    def hook(self, part, right):
        def function(*args):
            concerned = "c1" in [getattr(each, "call_id", each) for each in args]
            if part == self.part and (concerned or part not in ONE_CALL):
                return self.misbehave()
            return right(*args)

        return function

    def run(self):
        journal, tools = MemoryJournal(), self.tools
        if self.part == "output":
            journal.claim = lambda _, call_id: call_id != "c1"
        for name in ("claim", "record", "output"):
            setattr(journal, name, self.hook(name, getattr(journal, name)))
        execute, model = tools.execute, Script(STEPS[0], says("Done."))
        tools.runs_in = self.hook("runs_in", tools.runs_in)
        if self.part == "execute":
            tools.execute = self._async(execute, "c1")
        if self.part == "model":
            model.complete = self._async(model.complete)
        rule = ClaimRule("x", "edit", self.hook("succeeded", lambda *_: True), re.compile("zzz"))
        what = {
            "approval": self.hook("approval", lambda _: None),
            "checks": (self.hook("checks", lambda *_: None),),
            "verify": self.hook("verify", lambda *_: True),
            "show": self.hook("show", lambda _: None),
            "rules": (rule,),
            "journal": journal,
            "presentation": frozenset({"card"}),
        }
        publication = Publication(commit=self.hook("commit", lambda _: None))
        observe = self.hook("observe", lambda _: None)
        return Run(model, host(tools, **what), publication=publication, observe=observe)

    def _async(self, right, only=None):
        async def function(*args):
            await anyio.lowlevel.checkpoint()
            if only in (None, args[0].call_id if only else None):
                return self.misbehave()
            return await right(*args)

        return function


STEPS = (says("", call("c1"), call("c2", "test"), call("c3", "card")),)


def raising(kind):
    def misbehave():
        error = RAISES[kind]()
        raise error

    return misbehave


async def ended(broken):
    run = broken.run()
    with anyio.fail_after(5):
        outcome = await run.start(ASKED)
    assert isinstance(outcome, Outcome)
    assert run.outcome is outcome
    check_history(outcome.history)
    calls = [
        each for entry in outcome.history if isinstance(entry, Message) for each in entry.calls
    ]
    assert [each.call for each in outcome.executions] == calls
    if calls:
        assert outcome.executions[1].status == "executed"
        assert outcome.history[3] == ToolResult("c2", "test done")
    return outcome


def judge(outcome, part, *, right):
    if right:
        assert isinstance(outcome, Finished)
    elif part == "execute":
        assert isinstance(outcome, Finished)
        assert outcome.executions[0].status == "failed"
        assert outcome.executions[0].output.startswith("error: ")
    else:
        assert isinstance(outcome, HostFailed)
        assert outcome.part == NAMED.get(part, part)
        assert outcome.reason
        outcome.reason.encode()


@pytest.mark.parametrize("kind", RAISES)
@pytest.mark.parametrize("part", PARTS)
async def test_whatever_a_part_raises_a_run_ends_in_an_outcome_that_names_it(part, kind):
    if kind == "a cancellation of nobody" and not _is_asyncio():
        pytest.skip("on trio nobody else can raise one")
    outcome = await ended(Broken(part, raising(kind)))
    judge(outcome, part, right=False)
    if isinstance(outcome, HostFailed):
        assert isinstance(outcome.failure, type(RAISES[kind]()))


@pytest.mark.parametrize("kind", RETURNS)
@pytest.mark.parametrize("part", PARTS)
async def test_whatever_a_part_returns_a_run_ends_in_an_outcome_that_names_it(part, kind):
    outcome = await ended(Broken(part, RETURNS[kind]))
    judge(outcome, part, right=kind in MAY_RETURN.get(part, ()))


SPEAKS = {
    "commit": lambda hook: Publication(commit=hook),
    "draft": lambda hook: Publication(draft=hook),
    "harmless": lambda hook: Publication(harmless=hook),
}


class Streaming(Script):
    """A model whose text is a draft first."""

    def __init__(self, publication, *steps):
        super().__init__(*steps)
        self.publication = publication

    async def complete(self, history, tools):
        self.publication.observe(TextDelta("text", "I look."))
        return await super().complete(history, tools)


@pytest.mark.parametrize("kind", RETURNS)
@pytest.mark.parametrize("part", SPEAKS)
async def test_what_decides_about_a_text_is_no_promise_of_an_answer(part, kind):
    tools, publication = Tools(), SPEAKS[part](lambda _: RETURNS[kind]())
    model = Streaming(publication, says("I look.", call("c1")), says("Done."))
    outcome = await Run(model, host(tools), publication=publication).start(ASKED)
    check_history(outcome.history)
    if part != "harmless" and kind in FREE:
        assert isinstance(outcome, Finished)
        return
    assert isinstance(outcome, HostFailed)
    assert outcome.part == part
    if part == "harmless":
        assert outcome.committed == ()


ONE_NUMBER = ("turns", "repairs", "output_tokens", "unreported_output_tokens", "parallel_tools")
SECONDS = ("deadline", "turn_deadline", "tool_deadline")
NO_NUMBERS = (float("nan"), "3", b"", [], {}, True)


@pytest.mark.parametrize("name", [*ONE_NUMBER, *SECONDS])
def test_a_limit_that_would_bound_nothing_is_refused(name):
    more = (None, 1.5, float("inf")) if name in ONE_NUMBER else ()
    for value in (*NO_NUMBERS, *more):
        if not (name == "output_tokens" and value is None):
            with pytest.raises(ValueError, match=r"\w"):
                RunLimits(**{name: value})
    assert getattr(RunLimits(**{name: 0}), name) == 0


def test_what_is_unknown_is_never_less_than_nothing():
    with pytest.raises(ValueError, match="unreported_output_tokens"):
        RunLimits(unreported_output_tokens=-1)


async def test_a_run_that_has_not_ended_is_not_started_again():
    tools = Tools()
    run = Run(Script(says("", call("c1", "wait"))), host(tools))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.start, ASKED)
        while not tools.begun:
            await anyio.lowlevel.checkpoint()
        history = run.state.history
        with pytest.raises(StateError, match="has not ended"):
            await run.start([])
        with pytest.raises(StateError, match="has not ended"):
            await run.resume("{}", {})
        assert run.state.history is history
        run.cancel()
    assert isinstance(run.outcome, Cancelled)
    check_history(run.outcome.history)


def _is_asyncio():
    return anyio.get_cancelled_exc_class() is asyncio.CancelledError


class Nothing:
    """Has no method that a part should have."""


MISSING = {
    "model": lambda: Run(Nothing(), host()),
    "executor": lambda: Run(Script(*STEPS), host(Nothing())),
    "journal": lambda: Run(Script(*STEPS), host(journal=Nothing())),
    "observe": lambda: Run(Script(*STEPS), host(), observe=None),
    "approval": lambda: Run(Script(*STEPS), host(approval=None)),
    "show": lambda: Run(Script(*STEPS), host(presentation={"card"}, show=None)),
    "checks": lambda: Run(Script(says("Done.")), host(checks=(None,))),
    "verify": lambda: Run(Script(says("Done.")), host(verify="yes")),
    "commit": lambda: Run(Script(says("Done.")), host(), publication=Publication(commit=None)),
}


@pytest.mark.parametrize("part", MISSING)
async def test_a_part_that_is_none_is_named_too(part):
    outcome = await MISSING[part]().start(ASKED)
    assert isinstance(outcome, HostFailed)
    assert outcome.part == part
    check_history(outcome.history)
    if part == "show":
        assert [each.status for each in outcome.executions] == ["executed", "executed", "failed"]


USAGES = [Usage(1, 1, -1, 1), Usage(1, 1, "1", 1), Usage(1.5), Usage(float("nan")), 7, {}]


@pytest.mark.parametrize("usage", USAGES, ids=repr)
async def test_a_model_reports_a_usage_that_can_be_counted(usage):
    outcome = await Run(Script(says("Done.", usage=usage)), host()).start(ASKED)
    assert isinstance(outcome, HostFailed)
    assert outcome.part == "model"


@pytest.mark.parametrize("place", range(1, 6))
async def test_no_observer_interrupts_a_running_call(place):
    told = itertools.count(1)
    go = anyio.Event()

    def observe(_):
        if next(told) == place:
            raise RuntimeError("no observer today")

    async def pay(each):
        await go.wait() if each.name == "wait" else go.set()
        paid.append(each.call_id)
        return ToolResult(each.call_id, "paid")

    paid, tools = [], Tools()
    tools.execute = pay
    model = Script(says("", call("c1"), call("c2", "wait")), says("Done."))
    outcome = await Run(model, host(tools), observe=observe).start(ASKED)
    assert isinstance(outcome, HostFailed)
    assert outcome.part == "observe"
    assert [each.status for each in outcome.executions] == ["executed"] * len(paid)
    assert len(paid) == (0 if place <= 2 else 2)


OUTPUTS = {
    "bytes": b"ok",
    "None": None,
    "a dict": {},
    "a number": 1,
    "a lone surrogate": "\udcff",
}


@pytest.mark.parametrize("journal", ["file", "memory"])
@pytest.mark.parametrize("kind", OUTPUTS)
async def test_a_tool_may_put_anything_into_its_result(tmp_path, kind, journal):
    async def execute(each):
        return ToolResult(each.call_id, OUTPUTS[kind] if each.call_id == "c1" else "fine")

    tools = Tools()
    tools.execute = execute
    kept = FileJournal(tmp_path / "journal.sqlite") if journal == "file" else MemoryJournal()
    model = Script(says("", call("c1"), call("c2")), says("Done."))
    outcome = await Run(model, host(tools, journal=kept)).start(ASKED)
    assert isinstance(outcome, Finished)
    first, second = outcome.executions
    assert first.status == ("executed" if kind == "a lone surrogate" else "failed")
    first.output.encode()
    assert (second.status, second.output) == ("executed", "fine")


@pytest.mark.parametrize("places", [0, -1, 1, 2])
async def test_there_is_always_a_place_to_run(places):
    tools = Tools()
    model = Script(says("", call("c1"), call("c2")), says("Done."))
    with anyio.fail_after(5):
        outcome = await Run(model, host(tools), RunLimits(parallel_tools=places)).start(ASKED)
    assert isinstance(outcome, Finished)
    assert sorted(tools.ran) == ["c1", "c2"]


# ------------------------------------------------------------------- what does not stop


async def swallow(seconds):
    """Wait, whatever cancels it."""
    until = anyio.current_time() + seconds
    while anyio.current_time() < until:
        try:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(seconds)
        except BaseException:  # noqa: BLE001 - that is what it is a test of
            continue


class Stubborn(Tools):
    """Tools of which c1 ends when it likes."""

    def __init__(self, seconds=1.5):
        super().__init__()
        self.seconds = seconds
        self.began = anyio.Event()

    async def execute(self, each):
        if each.call_id != "c1":
            return await super().execute(each)
        self.began.set()
        await swallow(self.seconds)
        return ToolResult(each.call_id, "late")


@pytest.mark.parametrize("places", [1, 4])
@pytest.mark.parametrize("how", ["the caller", "the run", "deadline", "tool_deadline"])
async def test_a_call_that_does_not_stop_holds_no_run(how, places):
    calls = [call("c2"), call("c1")]
    limits = {how: 0.1} if how.endswith("deadline") else {}
    model = Script(says("", *calls), says("Done."))
    tools = Stubborn()
    run = Run(model, host(tools), RunLimits(parallel_tools=places, **limits))
    begun = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.start, ASKED)
        await tools.began.wait()
        if not limits:
            await anyio.wait_all_tasks_blocked()
            run.cancel() if how == "the run" else tasks.cancel_scope.cancel()
    assert anyio.current_time() - begun < 1.2
    kinds = {"deadline": DeadlineExceeded, "tool_deadline": Finished}
    assert isinstance(run.outcome, kinds.get(how, Cancelled))
    check_history(run.outcome.history)
    first, second = run.outcome.executions
    assert (first.status, first.output) == ("executed", "edit done")
    assert second.status == ("timed_out" if how == "tool_deadline" else "unknown")
    assert "may still run" in second.output


async def test_a_call_that_ends_while_it_is_stopped_keeps_its_result():
    model = Script(says("", call("c1")))
    tools = Stubborn(0.1)
    run = Run(model, host(tools))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run.start, ASKED)
        await tools.began.wait()
        run.cancel()
    assert isinstance(run.outcome, Cancelled)
    (only,) = run.outcome.executions
    assert (only.status, only.output) == ("executed", "late")


# --------------------------------------------------------------------------- call IDs


def ids_of(outcome):
    messages = [entry for entry in outcome.history if isinstance(entry, Message)]
    return [each.call_id for message in messages for each in message.all_calls]


NUMBERINGS = {
    "from 0 in each response": [["call_0"], ["call_0"], ["call_0", "call_1"], ["call_1"]],
    "with the numbers of ours": [["a"], ["a_2"], ["a"], ["a", "a_2", "a_3"]],
    "as long as an ID may be": [["x" * 64], ["x" * 64], ["x" * 63 + "y"]],
    "twice in one response": [["c", "c"], ["c", "d"]],
}


@pytest.mark.parametrize("journal", ["file", "memory"])
@pytest.mark.parametrize("numbering", NUMBERINGS)
async def test_each_call_runs_once_however_a_server_numbers_its_calls(tmp_path, numbering, journal):
    turns = NUMBERINGS[numbering]
    names = itertools.cycle(["edit", "test", "card"])
    decisions = [says("", *(call(each, next(names)) for each in ids)) for ids in turns]
    ran, tools = [], Tools()

    async def execute(each):
        ran.append(each.name)
        return ToolResult(each.call_id, f"{each.name} {len(ran)}")

    tools.execute = execute
    kept = FileJournal(tmp_path / "journal.sqlite") if journal == "file" else MemoryJournal()
    limits = RunLimits(parallel_tools=1)
    run = Run(Script(*decisions, says("Done.")), host(tools, journal=kept), limits)
    outcome = await run.start(ASKED)
    assert isinstance(outcome, Finished)
    check_history(outcome.history)
    wanted = [each.name for decision in decisions for each in decision.calls]
    assert ran == wanted
    outputs = [f"{name} {number}" for number, name in enumerate(wanted, 1)]
    assert [each.output for each in outcome.executions] == outputs
    assert ids_of(outcome)[: len(turns[0])][0] == turns[0][0]
    assert all(len(each) <= 64 for each in ids_of(outcome))


async def test_calls_of_an_earlier_run_keep_their_ids_and_new_ones_get_others():
    first = await Run(Script(says("", call("call_0")), says("Done.")), host()).start(ASKED)
    model = Script(says("", call("call_0", "test")), says("Done."))
    second = await Run(model, host()).start([*first.history, *ASKED])
    check_history(second.history)
    assert ids_of(second) == ["call_0", "call_0_2"]
    assert second.executions[0].output == "test done"


@pytest.mark.parametrize(
    "calls",
    [["c1"], ["c1", "c1"], [""], ["", ""], ["c1", "c2", "c1"]],
    ids=["used before", "twice", "none", "none twice", "mixed"],
)
async def test_rejected_calls_leave_a_valid_history_whatever_their_ids_are(calls):
    failure = GateRejected("arguments are cut", check="strict_json")
    failure.calls = tuple(RejectedCall(each, "edit", "{") for each in calls)
    model = Script(says("", call("c1")), failure, says("", call("c1")), says("Done."))
    outcome = await Run(model, host(on_malformed="repair")).start(ASKED)
    assert isinstance(outcome, Finished)
    assert len(set(ids_of(outcome))) == len(calls) + 2


async def test_rejected_calls_without_a_name_are_told_in_words():
    failure = GateRejected("a call has no name", check="call_identity")
    failure.calls = (RejectedCall("c1", "", "{}"),)
    model = Script(failure, says("Done."))
    outcome = await Run(model, host(on_malformed="repair")).start(ASKED)
    assert isinstance(outcome, Finished)
    assert "a call has no name" in model.asked[1][-1].text


@pytest.mark.parametrize("provider", ["responses", "chat", "messages"])
async def test_a_renumbered_call_is_so_in_every_form_that_is_sent(provider):
    def turn(name):
        item = {"type": "function_call", "id": "fc_0", "call_id": "call_0", "name": name}
        native = NativeTurn("responses", (FrozenObject({**item, "arguments": "{}"}),))
        return replace(says("", call("call_0", name)), native=native)

    model = Script(turn("test"), turn("card"), says("Done."))
    outcome = await Run(model, host()).start(ASKED)
    assert ids_of(outcome) == ["call_0", "call_0_2"]
    body = json.dumps(find_provider(provider).encode("m", outcome.history, TOOLS, native=True))
    assert body.count('"call_0"') == body.count('"call_0_2"') == 2


class Slow:
    """A model that waits for ever."""

    async def complete(self, *_):
        await anyio.sleep_forever()


@pytest.mark.parametrize("which", ["deadline", "turn_deadline"])
async def test_a_model_that_hangs_ends_by_a_deadline(which):
    outcome = await Run(Slow(), host(), RunLimits(**{which: 0.05})).start(ASKED)
    assert isinstance(outcome, DeadlineExceeded)
    assert outcome.deadline == which


BAD_CALLS = {
    "no ID": ToolCall("", "edit", FrozenObject({})),
    "no name": ToolCall("c1", "", FrozenObject({})),
    "an ID that is no text": ToolCall(7, "edit", FrozenObject({})),
    "arguments that are no object": ToolCall("c1", "edit", ["a"]),
    "arguments that are not JSON": ToolCall("c1", "edit", FrozenObject({"a": {1, 2}})),
    "arguments without a number": ToolCall("c1", "edit", FrozenObject({"a": float("nan")})),
    "a lone surrogate": ToolCall("\ud800", "edit", FrozenObject({})),
    "no call": "edit",
}


@pytest.mark.parametrize("kind", BAD_CALLS)
async def test_a_model_can_only_give_calls_that_a_history_can_hold(kind):
    tools = Tools()
    outcome = await Run(Script(says("", BAD_CALLS[kind])), host(tools)).start(ASKED)
    assert isinstance(outcome, HostFailed)
    assert outcome.part == "model"
    assert tools.begun == []

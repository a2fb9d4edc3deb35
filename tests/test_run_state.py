"""A saved run: only what was saved is resumed, only what was approved runs, and only once."""

import copy
import itertools
import json
import subprocess
import sys

import anyio
import pytest
from runs import ASKED, TOOLS, Script, Tools, approve, call, host, malformed, says

from agentlib.assembly import Decision
from agentlib.conversation import Message, NativeTurn, ToolResult, Usage, check_history, user
from agentlib.jsonvalues import FrozenObject
from agentlib.runtime.journal import FileJournal, MemoryJournal
from agentlib.runtime.limits import Prices, RunLimits
from agentlib.runtime.loop import Run
from agentlib.runtime.outcomes import (
    DeadlineExceeded,
    Exhausted,
    Finished,
    HostFailed,
    Outcome,
    ResumedBefore,
    WaitingForApproval,
)
from agentlib.runtime.state import RunState, StateError

pytestmark = pytest.mark.anyio
KEY = bytes(range(32))
LIMITS = RunLimits(spend=1.0, prices=Prices(1.0, 0.5, 2.0))


def reason(each):
    return "it changes a file" if each.name == "edit" else None


def native(*calls):
    items = [{"type": "function_call", "call_id": each.call_id, "id": "x"} for each in calls]
    return NativeTurn("responses", tuple(map(FrozenObject, items)))


SHORT = (says("I will.", call("c1"), call("c2", "test")),)
LONG = (
    malformed("c0"),
    says("", call("c1", "test"), call("c2", "broken"), call("c3", "card")),
    Decision("resp", "And now", "", (call("c4"),), Usage(5, None, 7, None), native(call("c4"))),
)
SAVED = {"short": SHORT, "long": LONG}


async def saved(kind="short", journal=None, key=None, history=ASKED):
    """A run that waits, and the host of another process that could resume it."""
    what = {
        "approval": reason,
        "on_malformed": "repair",
        "presentation": frozenset({"card"}),
        "key": key,
        "journal": journal or MemoryJournal(),
    }
    outcome = await Run(Script(*SAVED[kind]), host(**what), LIMITS).start(history)
    assert isinstance(outcome, WaitingForApproval)
    return outcome, what


async def resume(text, approvals, what, *steps):
    """The outcome of a resumption, and the IDs of the calls that were begun."""
    tools = Tools()
    model = Script(*steps or [says("Done.")])
    run = Run(model, host(tools, **{"journal": MemoryJournal(), **what}), LIMITS)
    outcome = await run.resume(text, approvals)
    assert isinstance(outcome, Outcome)
    assert run.outcome is outcome
    check_history(outcome.history)
    return outcome, tools.begun


# ------------------------------------------------------------------------ any alteration

VALUES = (
    None, True, False, 0, 1, -1, 0.5, -1e9, 1e308, 2**80, 10**400, "", "x", "\u0000", "9" * 5000,
    [], [None], [[]], ["c1", "edit", {}], {}, {"x": 1}, {"result": ["c1", "done"]},
)  # fmt: skip
TEXTS = ("NaN", "Infinity", "-Infinity", "1e999", '"\\ud800"', "[" * 5000, "1 2", "01", "'x'")


def places(value, path=()):
    """The path of every value in a JSON value, itself first."""
    yield path
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for name, each in inner:
            yield from places(each, (*path, name))


def at(value, path):
    for name in path:
        value = value[name]
    return value


def with_value(state, path, new):
    """The state as text, with another value in one place."""
    if not path:
        return json.dumps(new)
    state = copy.deepcopy(state)
    at(state, path[:-1])[path[-1]] = new
    return json.dumps(state)


def rearranged(value):
    """Other orders, one more and one fewer of what a list or an object holds."""
    if isinstance(value, list):
        yield value[::-1]
        yield value[1:]
        yield value[:-1]
        yield [*value, *value[-1:]]
        yield [*value[:1], *value]
        yield from ([*value, more] for more in VALUES)
    if isinstance(value, dict):
        yield from ({k: v for k, v in value.items() if k != name} for name in value)
        yield {**value, "more": 1}
        yield {**value, "": None}
    if isinstance(value, str):
        yield from (value + "x", value[:-1], value.upper(), f"{value}\u200b")
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from (value + 1, value - 1, -value - 1, value * 2 + 1, str(value), float(value) + 0.5)


def alterations(text):
    """Every text in which one place of a saved run holds something else."""
    state = json.loads(text)
    seen = {json.dumps(state, sort_keys=True)}
    for path in places(state):
        old = at(state, path)
        for new in itertools.chain(VALUES, rearranged(old)):
            other = with_value(state, path, new)
            written = json.dumps(json.loads(other), sort_keys=True)
            if written not in seen:
                seen.add(written)
                yield other
    marked = [with_value(state, path, "@here@") for path in places(state)]
    yield from (other.replace('"@here@"', raw) for other, raw in itertools.product(marked, TEXTS))


def sampled(texts, most):
    """All of them where there are few, else as many, spread over all."""
    texts = list(texts)
    return texts[:: max(1, len(texts) // most)]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", SAVED)
async def test_no_altered_state_is_resumed_and_nothing_of_it_runs(kind):
    outcome, what = await saved(kind)
    answers = approve(outcome)
    tools = Tools()
    other = host(tools, **what)
    count = 0
    for text in alterations(outcome.saved):
        run = Run(Script(), other, LIMITS)
        with pytest.raises(StateError):
            await run.resume(text, answers)
        assert run.outcome is None
        count += 1
    assert tools.begun == []
    assert count > 1500
    _, begun = await resume(outcome.saved, answers, what)
    assert sorted(begun) == (["c1", "c2"] if kind == "short" else ["c4"])


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", SAVED)
async def test_who_can_write_the_digests_too_gets_a_valid_run_or_none(kind):
    outcome, what = await saved(kind)
    read = 0
    for text in sampled(alterations(outcome.saved), 2000):
        try:
            state = RunState.from_json(text)
        except StateError:
            continue
        read += 1
        pending = state.pending.calls if state.pending is not None else ()
        reasons = {n: why for n, each in enumerate(pending) if (why := reason(each)) is not None}
        answers = {each.digest: True for each in state.waiting(reasons)}
        try:
            ended, begun = await resume(text, answers, {**what, "journal": MemoryJournal()})
        except StateError:
            continue
        assert isinstance(ended, Finished | DeadlineExceeded | Exhausted | HostFailed)
        assert set(begun) <= {each.call_id for each in pending}
        assert all(TOOLS.exposes(each.name) for each in pending)
    assert read > 20


@pytest.mark.parametrize("kind", SAVED)
async def test_a_layout_of_the_text_is_no_alteration(kind):
    outcome, what = await saved(kind)
    text = json.dumps(json.loads(outcome.saved), indent=3, sort_keys=True)
    ended, begun = await resume(text, approve(outcome), what)
    assert isinstance(ended, Finished)
    assert begun


@pytest.mark.parametrize("text", [None, 7, b"{}", {}, [], "", "\ud800", "nonsense", "[" * 99999])
async def test_what_is_no_text_of_a_run_is_refused(text):
    with pytest.raises(StateError):
        await Run(Script(), host()).resume(text, {})


async def test_what_could_not_be_read_again_is_not_saved():
    history = [user("a lone \ud800")]
    what = host(approval=reason)
    model = Script(says("", call("c1")))
    model.complete = lambda *_: _decided(model.steps[0])
    outcome = await Run(model, what).start(history)
    assert isinstance(outcome, HostFailed)
    assert "surrogate" in outcome.reason


async def _decided(decision):
    return decision


# ------------------------------------------------------------------------- what was approved


async def test_a_digest_is_of_the_call_its_arguments_and_its_place():
    calls = [call("c1"), call("c1", path="b.py"), call("c2"), call("c1", "test")]
    digests = set()
    for text, rest in itertools.product(("", "I will."), itertools.permutations(calls[:2], 2)):
        outcome = await Run(Script(says(text, *rest)), host(approval=lambda _: "x")).start(ASKED)
        digests |= {each.digest for each in outcome.waiting}
    assert len(digests) == 8
    first, what = await saved()
    (asked,) = first.waiting
    state = RunState.from_json(first.saved)
    assert state.waiting({0: asked.reason}) == first.waiting
    assert state.waiting({1: ""})[0].digest != asked.digest
    with pytest.raises(StateError):
        await resume(first.saved, approve((await saved())[0]), what)


ANSWERS = {
    "none": lambda _: {},
    "by call ID": lambda _: {"c1": True},
    "of another": lambda digest: {digest[::-1]: True},
    "one more": lambda digest: {digest: True, "c2": True},
    "in capitals": lambda digest: {digest.upper(): True},
    "no mapping": lambda digest: [digest],
    "nothing": lambda _: None,
    "a text": lambda digest: digest,
}


@pytest.mark.parametrize("answers", ANSWERS)
async def test_only_an_answer_to_what_was_asked_is_one(answers):
    outcome, what = await saved()
    with pytest.raises(StateError, match="expected an answer for each"):
        await resume(outcome.saved, ANSWERS[answers](outcome.waiting[0].digest), what)


@pytest.mark.parametrize("answer", [None, 1, 0, 1.0, b"yes", [], {}, object()])
async def test_an_answer_is_yes_or_no_or_a_reason(answer):
    outcome, what = await saved()
    with pytest.raises(StateError, match="True, False"):
        await resume(outcome.saved, approve(outcome, answer), what)


async def test_a_host_that_would_ask_for_more_does_not_go_on():
    outcome, what = await saved()
    for other in (lambda _: "it acts", lambda _: None):
        with pytest.raises(StateError, match="expected an answer for each"):
            await resume(outcome.saved, approve(outcome), {**what, "approval": other})


async def test_a_denial_with_any_text_leaves_a_valid_history():
    for text in ("", "no\ud800", "x" * 9999):
        outcome, what = await saved()
        ended, begun = await resume(outcome.saved, approve(outcome, text), what)
        assert begun == ["c2"]
        assert [each.status for each in ended.executions] == ["denied", "executed"]
        ended.history[2].output.encode()


# ------------------------------------------------------------------------------- the seal


@pytest.mark.parametrize("kind", SAVED)
async def test_a_sealed_run_is_resumed_with_its_key(kind):
    outcome, what = await saved(kind, key=KEY)
    assert KEY.hex() not in outcome.saved
    ended, _ = await resume(outcome.saved, approve(outcome), what)
    assert isinstance(ended, Finished)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_without_the_key_nobody_can_write_a_sealed_run():
    outcome, what = await saved(key=KEY)
    unsealed = json.loads(outcome.saved)
    del unsealed["seal"]
    forged = [json.dumps(unsealed), *sampled(alterations(outcome.saved), 2000)]
    for text in forged:
        with pytest.raises(StateError):
            RunState.from_json(text, KEY)
    for key in (None, bytes(32)):
        with pytest.raises(StateError, match="seal"):
            await resume(outcome.saved, approve(outcome), {**what, "key": key})


def test_a_key_is_long_and_never_shown():
    with pytest.raises(ValueError, match="at least 16"):
        host(key=b"secret")
    assert repr(KEY) not in repr(host(key=KEY))


# ------------------------------------------------------------------- resumed once, by one

LATER = says("", call("c9"))


@pytest.mark.parametrize("kind", ["file", "memory", "default"])
async def test_of_two_that_resume_one_text_one_goes_on(tmp_path, kind):
    memory = MemoryJournal()
    journals = {"file": lambda: FileJournal(tmp_path / "journal.sqlite"), "memory": lambda: memory}
    journal = journals[kind]() if kind in journals else None
    outcome, what = await saved(journal=journal)
    del what["journal"]
    asked = {**what, "approval": lambda each: reason(each) if each.call_id == "c1" else None}
    ended, begun = [], []
    for _ in range(3):
        tools = Tools()
        more = {"journal": journals[kind]()} if kind in journals else {}
        run = Run(Script(LATER, says("Done.")), host(tools, **asked, **more), LIMITS)
        ended.append(await run.resume(outcome.saved, approve(outcome)))
        begun += tools.begun
    assert sorted(begun) == ["c1", "c2", "c9"]
    assert [type(each) for each in ended] == [Finished, ResumedBefore, ResumedBefore]
    for each in ended[1:]:
        check_history(each.history)
        assert [one.output for one in each.executions] == ["edit done", "test done"]
        assert not each.solved


async def test_two_at_once_run_each_call_once_and_the_second_knows_nothing():
    journal = MemoryJournal()
    outcome, what = await saved(journal=journal)
    tools, ended = Tools(), []

    async def press():
        run = Run(Script(says("Done.")), host(tools, **what), LIMITS)
        ended.append(await run.resume(outcome.saved, approve(outcome)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(press)
        tasks.start_soon(press)
    assert sorted(tools.begun) == ["c1", "c2"]
    assert {type(each) for each in ended} == {Finished, ResumedBefore}
    (second,) = (each for each in ended if isinstance(each, ResumedBefore))
    assert {each.status for each in second.executions} <= {"unknown", "executed"}


async def test_a_run_may_wait_again_and_each_text_is_resumed_once():
    journal = MemoryJournal()
    outcome, what = await saved(journal=journal)
    again, _ = await resume(outcome.saved, approve(outcome), what, LATER)
    assert isinstance(again, WaitingForApproval)
    with pytest.raises(StateError):
        await resume(again.saved, approve(outcome), what)
    ended, begun = await resume(again.saved, approve(again), what)
    assert isinstance(ended, Finished)
    assert begun == ["c9"]
    for old in (outcome, again):
        repeated, begun = await resume(old.saved, approve(old), what)
        assert isinstance(repeated, ResumedBefore)
        assert begun == []


RESUMER = """
import sys
import anyio
sys.path.insert(0, sys.argv[1])
from runs import Script, Tools, call, host, says
from agentlib.runtime.journal import FileJournal
from agentlib.runtime.loop import Run
text, digest = open(sys.argv[3], encoding="utf-8").read(), sys.argv[4]
async def main():
    tools = Tools()
    reason = lambda each: "it changes a file" if each.call_id == "c1" else None
    what = host(tools, approval=reason, journal=FileJournal(sys.argv[2]))
    await Run(Script(says("", call("c9")), says("Done.")), what).resume(text, {digest: True})
    print(*tools.begun)
anyio.run(main)
"""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_of_two_processes_that_share_a_journal_one_goes_on(tmp_path, root):
    path = tmp_path / "journal.sqlite"
    outcome, _ = await saved(journal=FileJournal(path))
    text = tmp_path / "saved.json"
    text.write_text(outcome.saved, encoding="utf-8")
    command = [sys.executable, "-c", RESUMER, str(root / "tests"), str(path), str(text)]
    command.append(outcome.waiting[0].digest)
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]  # noqa: ASYNC220
    begun = [process.communicate(timeout=60)[0].split() for process in both]
    assert min(begun, key=len) == []
    assert sorted(begun[0] + begun[1]) == ["c1", "c2", "c9"]


@pytest.mark.parametrize("part", ["approval", "claim", "output"])
async def test_a_part_that_fails_at_the_resumption_runs_nothing(part):
    journal = MemoryJournal()
    outcome, what = await saved(journal=journal)

    def fail(*_):
        raise OSError(28, "No space left on device")

    if part == "approval":
        what["approval"] = fail
    else:
        setattr(journal, part, fail)
    if part == "output":
        journal.claim = lambda *_: False
    ended, begun = await resume(outcome.saved, approve(outcome), what)
    assert isinstance(ended, HostFailed)
    assert ended.part == ("approval" if part == "approval" else "journal")
    assert begun == []
    assert not any(isinstance(entry, Message | ToolResult) for entry in ended.history[1:])

"""The helpers of the pages about publication and cancellation: screens, and what stops."""

import asyncio
import re

import anyio
import pytest
from runs import approve

from agentlib.runtime.outcomes import Cancelled
from agentlib.runtime.receipts import ClaimRule
from workbook.pages.simulation import Stage, paced
from workbook.pages.small_loop import said, wants
from workbook.pages.stopping import acts_first, stop_process, stop_reader, stop_thread
from workbook.pages.two_screens import show, spoken

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

EDIT = wants("call_1", "edit", path="calculator.py", old="return a - b", new="return a + b")
EDITED = ClaimRule(
    claim="the file is edited",
    tool="edit",
    succeeded=lambda _, output: output.startswith("edited"),
    wording=re.compile("edited"),
)


async def test_the_user_sees_a_claim_only_after_its_receipt():
    screens = await show(spoken("I edited it."), spoken("", EDIT), spoken("I edited it."),
                         rules=(EDITED,))  # fmt: skip
    assert screens.naive == "I edited it." * 2
    assert [text.text for text in screens.publication.committed] == ["I edited it."]
    assert repr(screens).count("answer: I edited it.") == 1


async def test_a_spoken_response_comes_in_fragments_that_make_the_whole():
    text = "one two three four five six seven"
    screens = await show(spoken(text))
    drafts = [draft for _, draft, *_ in screens.lines if draft]
    assert drafts == ["one two three ", "four five six ", "seven"]
    assert "".join(drafts) == text


async def test_a_cut_response_commits_nothing_and_says_so():
    screens = await show(spoken("I will edit it.", EDIT, cut=True))
    assert screens.publication.committed == []
    assert "the response is discarded" in repr(screens)
    assert screens.project.ran == []


async def test_a_process_is_stopped_and_a_thread_runs_on():
    process, thread = await stop_process(), await stop_thread()
    assert (process.execution.status, process.soon, process.runs_on) == ("unknown", True, False)
    assert (thread.execution.status, thread.soon, thread.runs_on) == ("unknown", True, True)


async def unshielded(stream):
    try:
        return [event async for event in stream]
    finally:
        await stream.aclose()


async def shielded(stream):
    try:
        return [event async for event in stream]
    finally:
        with anyio.CancelScope(shield=True):
            await stream.aclose()


@pytest.mark.parametrize(
    ("read", "how", "closed", "after"),
    [
        (unshielded, {}, False, 0.0),
        (shielded, {}, True, 0.5),
        (shielded, {"again": True}, False, 0.1),
        (shielded, {"closing": 60.0}, True, 60.0),
        (None, {}, True, 0.5),
        (None, {"again": True}, True, 0.5),
        (None, {"closing": 60.0}, False, 0.75),
    ],
)
async def test_only_a_close_in_its_own_task_outlives_a_second_stop(read, how, closed, after):
    result = await stop_reader(read, **how)
    assert (result.closed, result.after) == (closed, after)


async def test_a_stage_can_be_stopped_at_any_moment_and_its_close_takes_its_time():
    for tenth in range(1, 30):
        stage = Stage(paced(said("", EDIT), closing=0.4), said("Done."))
        await stage.stop(tenth / 10)
        assert isinstance(stage.outcome, Cancelled)
        assert stage.transport.opened == stage.transport.closed
        assert stage.clock.now() - tenth / 10 <= 0.41


async def test_a_resumed_run_that_is_stopped_has_acted_and_does_not_act_again():
    stage = Stage(said("", EDIT), said("Done."), approval=lambda _: "it changes a file")
    asked = (await acts_first(stage, {"edit": 60.0}).start()).outcome
    await stage.stop(10.0, asked.saved, approve(asked))
    assert stage.project.ran == ["edit"]
    await stage.resume(asked.saved, approve(asked))
    assert stage.project.ran == ["edit"]
    assert stage.outcome.executions[0].status == "unknown"


async def test_nothing_waits_on_a_real_clock():
    before = asyncio.get_running_loop().time()
    await stop_reader(closing=60.0)
    assert asyncio.get_running_loop().time() - before < 10

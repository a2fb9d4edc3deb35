"""The timeline of a run: complete, stable, and nothing of a stream in it as HTML."""

import html
import re

import anyio
import pytest
from runs import ASKED, Script, approve, call, host, malformed, says

from agentlib.clock import MockClock
from agentlib.fixtures import capture
from agentlib.recordings.replay_transport import Refusal
from agentlib.runtime.limits import Prices, RunLimits
from agentlib.runtime.loop import Run
from agentlib.stepper.run_words import MAX_DETAIL_CHARACTERS
from workbook.pages.run_trace import RunRecorder
from workbook.pages.simulation import Stage, paced, perform
from workbook.pages.small_loop import said, wants
from workbook.pages.timeline import BAR_CHARACTERS, GLYPHS, timeline

pytestmark = pytest.mark.anyio
READ = wants("call_1", "read", path="calculator.py")
LIST = wants("call_2", "list")
EDIT = wants("call_3", "edit", path="calculator.py", old="return a - b", new="return a + b")
HOSTILE = '<img src=x onerror="alert(1)">\u202e\x1b]0;\n'


def bar(stage, what):
    """The drawn line of the row that begins with `what`."""
    lines = stage.timeline.text.splitlines()[2:]
    return next(line for line in lines if line.strip().startswith(what))


def drawn(stage, what, kind):
    return bar(stage, what).count(GLYPHS[kind])


def row(stage, what):
    return next(each for each in stage.timeline.rows if each.what == what)


def spans(stage, what):
    return [(s.kind, round(s.start, 6), round(s.end, 6)) for s in row(stage, what).segments]


# ------------------------------------------------------------------------------- what it says


async def test_a_turn_is_drawn_by_the_parts_of_its_time():
    stage = await perform(Refusal(500), said("Done."))
    assert spans(stage, "turn 1") == [
        ("opening", 0.0, 0.2),
        ("backoff", 0.2, 0.45),
        ("opening", 0.45, 0.65),
        ("first event", 0.65, 1.15),
        ("streaming", 1.15, 2.45),
    ]


async def test_tools_side_by_side_are_lanes_and_a_wait_for_a_place_is_apart():
    limits = RunLimits(parallel_tools=1)
    for how, second in (({}, [("tool", 2.0, 2.5)]), ({"limits": limits}, None)):
        stage = await perform(said("", READ, LIST), said("Done."), seconds={"read": 2.0}, **how)
        assert spans(stage, "read call_1") == [("tool", 2.0, 4.0)]
        queued = [("queue", 2.0, 4.0), ("tool", 4.0, 4.5)]
        assert spans(stage, "list call_2") == (second or queued)


async def test_lanes_keep_the_order_of_the_calls_not_of_their_ends():
    stage = await perform(said("", READ, LIST), said("Done."), seconds={"read": 2.0})
    assert [each.what for each in stage.timeline.rows] == [
        "turn 1",
        "read call_1",
        "list call_2",
        "turn 2",
        "outcome",
    ]


async def test_a_repair_is_a_moment_with_what_is_left():
    stage = await perform(capture("malformed"), said("Done."), on_malformed="repair")
    assert row(stage, "turn 1").detail == "no decision [strict_json], nothing executed"
    assert row(stage, "repair").left == (("repairs", "1"),)
    assert "malformed arguments" in row(stage, "repair").detail
    assert dict(row(stage, "turn 2").left)["repairs"] == "1"


async def test_what_is_left_of_tokens_and_money_is_that_of_the_account():
    limits = RunLimits(spend=1.0, prices=Prices(100.0, 100.0, 1000.0))
    stage = await perform(said("", READ), said("Done."), limits=limits)
    account = stage.outcome.account
    left = [dict(row(stage, f"turn {turn}").left) for turn in (1, 2)]
    assert left[1]["tokens"] == f"{20_000 - account.usage.output_tokens:,}"
    assert left[1]["spend"] == f"{1 - account.cost:.4f}"
    assert float(left[0]["spend"]) > float(left[1]["spend"])
    assert [each["turns"] for each in left] == ["9", "8"]


async def test_a_budget_that_is_used_up_is_warned_of():
    stage = await perform(said("", READ), limits=RunLimits(turns=1))
    assert row(stage, "budget").detail == "used up: turns"
    assert stage.timeline.title == "exhausted: turns · 1 turn, 0 repairs"


async def test_a_deadline_in_a_tool_shows_what_was_cut_and_what_never_began():
    limits = RunLimits(deadline=5.0, parallel_tools=1)
    stage = await perform(said("", READ, LIST), limits=limits, seconds={"read": 60.0})
    assert spans(stage, "read call_1") == [("tool", 2.0, 5.0)]
    assert "unknown, may have acted" in row(stage, "read call_1").detail
    assert spans(stage, "list call_2") == [("queue", 2.0, 5.0)]
    assert "not executed" in row(stage, "list call_2").detail
    assert row(stage, "outcome").detail == "deadline of 5 s exceeded, in: tool"


@pytest.mark.parametrize(
    ("first", "rest", "kind"), [(60.0, 1.0, "first event"), (0.5, 60.0, "streaming")]
)
async def test_a_turn_that_is_cut_ends_in_the_part_that_took_too_long(first, rest, kind):
    slow = paced(said("Done."), first=first, rest=rest)
    stage = await perform(slow, limits=RunLimits(turn_deadline=5.0))
    assert spans(stage, "turn 1")[-1][0] == kind == stage.outcome.component
    assert spans(stage, "turn 1")[-1][2] == 5.0


async def test_an_approval_is_drawn_short_and_said_in_full():
    needs = {"approval": lambda each: "it changes a file" if each.name == "edit" else None}
    stage = Stage(said("", EDIT), said("Done."), **needs)
    await stage.start()
    assert stage.timeline.title.startswith("waiting for approval")
    assert "edit call_3: it changes a file" in bar(stage, "approval")
    await stage.resume(stage.outcome.saved, approve(stage.outcome), after=3600.0)
    assert spans(stage, "approval") == [("approval", 2.0, 3602.0)]
    assert drawn(stage, "approval", "approval") < BAR_CHARACTERS / 4
    assert drawn(stage, "turn 2", "streaming") > BAR_CHARACTERS / 5
    assert "3,604.5 s" in stage.timeline.text


async def test_a_model_that_reports_nothing_is_drawn_whole():
    clock = MockClock()
    recorder, limits = RunRecorder(clock), RunLimits()
    model = Script(says("", call("c1")), malformed("c2"))
    run = Run(model, host(), limits, clock=clock, observe=recorder.observe)
    shown = timeline(recorder, await run.start(ASKED), limits)
    assert [each.what for each in shown.rows] == ["turn 1", "edit c1", "turn 2", "outcome"]
    assert "the clock stood still" in shown.text
    assert [s.kind for s in shown.rows[0].segments] == ["model"]


# ------------------------------------------------------------------------------- its forms


async def test_both_forms_say_the_same_and_every_line_is_in_step():
    stage = await perform(Refusal(500), said("", READ, LIST), said("Done."))
    text, page = stage.timeline.text, stage.timeline._repr_html_()
    plain = html.unescape(re.sub(r"<[^>]+>", "", page))
    for each in stage.timeline.rows:
        line = bar(stage, each.what)
        begin = max(len(r.what) + 2 * r.inner for r in stage.timeline.rows) + 2
        picture = line[begin : begin + BAR_CHARACTERS]
        assert picture.strip()
        assert picture in plain
        assert each.detail in plain
        assert each.detail in text
    assert repr(stage.timeline) == text


async def test_the_text_is_the_same_every_time():
    texts = set()
    for _ in range(3):
        stage = await perform(said("", READ, LIST), said("Done."), seconds={"read": 2.0})
        texts.add(stage.timeline.text)
    assert len(texts) == 1


async def test_each_kind_of_time_has_its_own_glyph():
    assert len(set(GLYPHS.values())) >= len(GLYPHS) - 1  # streaming and a whole model are one
    assert all(len(glyph) == 1 for glyph in GLYPHS.values())


async def test_hostile_names_and_reasons_are_text_and_short():
    clock = MockClock()
    recorder, limits = RunRecorder(clock), RunLimits()
    hostile = call(HOSTILE * 20)
    run = Run(
        Script(says("", hostile)),
        host(approval=lambda _: HOSTILE * 20),
        limits,
        clock=clock,
        observe=recorder.observe,
    )
    shown = timeline(recorder, await run.start(ASKED), limits)
    assert "<img" not in shown._repr_html_()
    for form in (shown.text, shown._repr_html_()):
        assert "\u202e" not in form
        assert "\x1b" not in form
    assert all(len(each.detail) <= MAX_DETAIL_CHARACTERS for each in shown.rows)
    assert len(shown.text.splitlines()) == len(shown.rows) + 4


async def test_it_can_be_reached_and_read_without_a_mouse():
    page = (await perform(said("Done."))).timeline._repr_html_()
    assert page.startswith('<div tabindex="0" role="group" aria-label="Timeline of a run.')
    assert page.count('<th scope="row"') == 2


# ------------------------------------------------------------------------------- its clock


async def test_sleeps_of_tasks_side_by_side_overlap():
    clock, ends = MockClock(), []

    async def sleep(seconds):
        await clock.sleep(seconds)
        ends.append((seconds, clock.now()))

    async with anyio.create_task_group() as tasks:
        for seconds in (3.0, 1.0, 2.0):
            tasks.start_soon(sleep, seconds)
    assert ends == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


async def test_a_timer_of_the_stage_reaches_into_the_tasks_of_its_body():
    clock = MockClock()
    with clock.timer(10.0) as outer:
        with clock.timer(2.0) as timer:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(clock.sleep, 5.0)
                tasks.start_soon(clock.sleep, 6.0)
        timer.move(1.0)
        assert (timer.expired, outer.expired, clock.now()) == (True, False, 2.0)
        await clock.sleep(1.0)
    assert (outer.expired, clock.now()) == (False, 3.0)


async def test_a_stage_without_a_run_says_so():
    with pytest.raises(LookupError, match="nothing was run"):
        _ = Stage(said("Done.")).timeline

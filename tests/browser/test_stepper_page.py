"""The stepper in a page of its own, without kernel and server: what it knows, shows and says."""

import json
import re
from pathlib import Path

import pytest

from agentlib.conversation import Catalog
from agentlib.recordings.capture import Capture
from agentlib.stepper.payload import column, to_wire
from agentlib.stepper.replay import Replay
from agentlib.stepper.widget import deflated
from tests.browser.alone import Alone

pytestmark = pytest.mark.browser

FIXTURES = Path(__file__).parents[2] / "fixtures"
STREAMS = sorted((FIXTURES / "streams").glob("*.sse"))
CATALOG = Catalog.from_json(json.loads((FIXTURES / "tools.json").read_text("utf-8")))
DISCONNECT = FIXTURES / "streams" / "disconnect.sse"
RELEASED = FIXTURES / "streams" / "success_2_edit.sse"
HOSTILE = FIXTURES / "streams" / "hostile.sse"

STATES = """() => Array.from({ length: trace.last + 1 }, (_, k) => {
    const { gate, buffers, hasty, released } = state.stateAt(trace, k);
    return {
        verdict: gate.state,
        hasty: hasty.length,
        released: released.length,
        buffers: buffers.map(({ buffer, end, fresh, grew, done }) =>
            [buffer.text.slice(0, end), grew ? buffer.text.slice(fresh, end) : "", done]),
        next: state.nextChange(trace, k),
        previous: state.previousChange(trace, k),
    };
})"""


def call_stream(*fragments, name="edit", call_id="call_1", text=()):
    """A stream that opens, says `text` and sends one call's argument fragments; it never ends."""
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": message}
    for piece in text:
        yield {
            "type": "response.output_text.delta",
            "item_id": "msg_1",
            "output_index": 0,
            "content_index": 0,
            "delta": piece,
        }
    item = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name}
    yield {
        "type": "response.output_item.added",
        "output_index": 1,
        "item": {**item, "arguments": ""},
    }
    for piece in fragments:
        yield {
            "type": "response.function_call_arguments.delta",
            "item_id": "fc_1",
            "output_index": 1,
            "delta": piece,
        }


def capture_of(*events):
    return Capture.from_events(list(events), name="made")


ASTRAL = capture_of(*call_stream('{"a": "😀', "é🏴", '\u202e🂡"}', text=("👩‍👧 ", "שלום", "😀")))


# What it knows


@pytest.mark.parametrize("source", [*STREAMS, ASTRAL], ids=lambda source: Path(source.name).stem)
def test_each_state_is_the_frame_that_python_shows(alone, source):
    replay = alone.open(source, CATALOG)
    for k, seen in enumerate(alone.page.evaluate(STATES)):
        frame = replay.seek(k)
        assert seen["verdict"] == frame.verdict
        assert (seen["hasty"], seen["released"]) == (frame.hasty, frame.released)
        expected = [[b.text, b.text[len(b.text) - b.new :], b.done] for b in frame.buffers]
        assert seen["buffers"] == expected
        assert seen["next"] == replay.next_change().index
        replay.seek(k)
        assert seen["previous"] == replay.previous_change().index


@pytest.mark.parametrize("packed", [True, False])
def test_a_raw_event_is_shown_as_it_was_received(alone, packed):
    replay = alone.open(RELEASED, CATALOG, packed=packed)
    for index in range(1, replay.last + 1):
        alone.page.locator(".ags").focus()
        alone.press("ArrowRight")
        alone.page.wait_for_function(
            "() => document.querySelector('.ags-raw-text').textContent != '…'"
        )
        assert alone.text(".ags-raw-text") == replay.seek(index).raw


def test_an_indented_event_keeps_every_character_that_is_no_space(alone):
    odd = '{"a":1.0e2,"a":[ ],"b":{},"c":"\\u202e, : {\\"","d":[1,[2,{"e":null}]]}'
    alone.open(DISCONNECT)
    indented = alone.page.evaluate("(text) => state.indentJson(text)", odd)
    assert json.loads(indented, object_pairs_hook=list) == json.loads(odd, object_pairs_hook=list)
    assert "\n  " in indented
    assert re.sub(r"\s", "", indented) == re.sub(r"\s", "", odd)
    for broken in ('{"a":', "]]]}", '"unended \\', "", "plain words", "[" * 1000):
        shown = alone.page.evaluate("(text) => state.indentJson(text)", broken)
        assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", broken)


def test_hidden_characters_are_named_and_no_other_is_touched(alone):
    alone.open(DISCONNECT)
    hidden = "\x00\x1b\x7f\x9b\xad\u061c\u200b\u200e\u202e\u2028\u2066\ufeff\U000e0041"
    for character in hidden:
        (piece,) = alone.page.evaluate("(text) => state.pieces(text)", character)
        assert piece == [f"U+{ord(character):04X}", True]
    open_text = "plain é שלום 😀 <b>&amp;\t\n"
    assert alone.page.evaluate("(t) => state.pieces(t)", open_text) == [[open_text, False]]
    many = alone.page.evaluate("(t) => state.plain(t)", "a" + "\u200b" * 1000 + "b")
    assert many == "a<U+200B \xd71000>b"


def test_no_character_is_cut_in_two(alone):
    alone.open(DISCONNECT)
    clipped = alone.page.evaluate("() => [1, 2, 3].map((n) => state.clip('😀😀', n))")
    assert clipped == ["…", "😀…", "😀…"]


# What it shows


def test_it_shows_all_of_a_state_at_once(alone):
    replay = alone.open(DISCONNECT, CATALOG, index=7)
    frame = replay.seek(7)
    shown = alone.page.locator(".ags").inner_text()
    for words in (
        "disconnect",
        f"event 7 of {replay.trace.count}",
        "draft, not committed",
        "progress only: one string is complete, the response is not",
        "waiting for response.completed",
        "released 0 calls",
        "hasty adapter ran 1",
        "raw event 7",
    ):
        assert words.lower() in shown.lower()
    buffer = alone.page.locator(".ags-card")
    assert "edit" in alone.text(".ags-call-name")
    assert buffer.locator(".ags-chip").all_inner_texts() == ["item\nfc_1", "call\ncall_edit_1"]
    assert buffer.locator(".ags-text").inner_text() == frame.pending["call_edit_1"]
    assert alone.page.locator(".ags-check").count() == len(frame.findings)
    assert "12 waiting for the end" in shown
    assert "executed" not in shown


def test_the_newest_fragment_is_marked(alone):
    replay = alone.open(DISCONNECT, index=6)
    shown = replay.seek(6).buffers[-1]
    assert alone.text(".ags-card mark.ags-just") == shown.text[-shown.new :]


def test_a_draft_is_called_a_draft_until_it_is_released(alone):
    replay = alone.open(RELEASED, CATALOG)
    for k in range(replay.last + 1):
        label = alone.text(".ags-section .ags-label")
        released = replay.seek(k).verdict == "released"
        assert ("draft, not committed" in label) is not released
        assert ("final text of a released response" in label) is released
        alone.page.locator(".ags").focus()
        alone.press("ArrowRight")


def test_the_gate_says_why_it_discards_and_shows_every_check(alone):
    replay = alone.open(FIXTURES / "streams" / "unknown_tool.sse", CATALOG)
    alone.page.locator(".ags").focus()
    alone.press("End")
    frame = replay.run()
    assert alone.page.locator(".ags").get_attribute("data-gate") == "discarded"
    assert frame.gate.headline in alone.text(".ags-gate-head")
    words = {"pass": "passed", "fail": "failed", "waiting": "not reached"}
    words |= {"not_applicable": "does not apply", "not_checked": "not checked"}
    for finding, row in zip(frame.findings, alone.page.locator(".ags-check").all(), strict=True):
        assert words[finding.status] in row.text_content()
        assert (finding.detail in row.text_content()) or finding.status != "fail"


def test_released_calls_are_shown_with_their_arguments(alone):
    replay = alone.open(RELEASED, CATALOG, index=10_000)
    (call,) = replay.decision.calls
    assert alone.text(".ags-released .ags-call-name") == call.name
    assert json.loads(alone.text(".ags-call-arguments")) == dict(call.arguments)
    assert alone.text(".ags-counters") == "released 1 callhasty adapter ran 1"


def test_a_long_buffer_shows_its_end_and_all_of_it_when_asked(alone):
    text = "".join(f"line {number}\n" for number in range(800))
    alone.open(capture_of(*call_stream("{}", text=[text])), index=99)
    first, last = "line 0\n", "line 799"
    box = alone.page.locator(".ags-texts .ags-text")
    assert last in box.text_content()
    assert first not in box.text_content()
    more = box.locator("button")
    more.click()
    assert text in box.text_content()
    more.click()
    assert first not in box.text_content()


def test_the_button_for_more_stands_only_where_there_is_more(alone):
    alone.open(DISCONNECT, index=7)
    assert alone.page.locator(".ags-more-text:visible").count() == 0


def test_many_calls_are_told_apart(alone):
    replay = alone.open(FIXTURES / "streams" / "interleaved.sse", CATALOG, index=7)
    ids = alone.page.locator(".ags-card .ags-chip-id").all_text_contents()
    assert [buffer.buffer.call_id in ids for buffer in replay.seek(7).buffers] == [True, True]
    assert re.search(r"read \(call_read_\d\)", alone.text(".ags-caption"))


def test_roles_differ_in_shape_as_well_as_in_colour(alone):
    alone.open(RELEASED)
    shapes = alone.page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".ags-glyph")].map((each) =>
            [each.classList[1], each.getAttribute("d")]))"""
    )
    assert len(set(shapes.values())) == len(shapes) > 3


LANES = """() => {
    const at = (node) => {
        const { x, width } = node.getBoundingClientRect();
        return x + width / 2;
    };
    const all = (name) => [...document.querySelectorAll(`.ags-lanes .ags-${name}`)].map(at);
    return {
        events: all("glyph"),
        later: document.querySelectorAll(".ags-lanes .ags-glyph.ags-later").length,
        hammers: all("hammer-box"),
        decided: [...all("lane-mark-released"), ...all("lane-mark-discarded")],
        now: at(document.querySelector(".ags-now-ring")),
        words: [...document.querySelectorAll(".ags-lanes text")].map((each) => each.textContent),
    };
}"""


@pytest.mark.parametrize("name", ["disconnect", "success_2_edit", "unknown_tool", "text_only"])
def test_events_gate_and_hasty_adapter_lie_on_one_axis(alone, name):
    replay = alone.open(FIXTURES / "streams" / f"{name}.sse", CATALOG)
    for k in range(1, replay.last + 1):
        alone.page.evaluate("(k) => model.set('index', k)", k)
        alone.settle()
        lanes = alone.page.evaluate(LANES)
        assert len(lanes["events"]) == replay.last
        assert lanes["later"] == replay.last - k
        assert lanes["now"] == pytest.approx(lanes["events"][k - 1], abs=1)
    (decided,) = lanes["decided"]
    assert decided == pytest.approx(lanes["events"][replay.trace.gate[-1].at - 1], abs=8)
    hammers = [lanes["events"][action.event - 1] for action in replay.trace.hasty]
    assert lanes["hammers"] == pytest.approx(hammers, abs=1)
    for action in replay.trace.hasty:
        assert f"would run {action.name}" in lanes["words"]
    assert ("runs nothing" in lanes["words"]) is not replay.trace.hasty


@pytest.mark.parametrize("name", ["disconnect", "success_2_edit", "unknown_tool", "text_only"])
def test_gate_change_and_first_hasty_act_go_where_something_happens(alone, name):
    replay = alone.open(FIXTURES / "streams" / f"{name}.sse", CATALOG)
    gate = alone.page.get_by_role("button", name="gate change", exact=True)
    hasty = alone.page.get_by_role("button", name="first hasty act", exact=True)
    for change in replay.trace.gate[1:]:
        assert gate.get_attribute("aria-disabled") == "false"
        gate.click()
        alone.settle()
        assert alone.step() == change.at
    assert gate.get_attribute("aria-disabled") == "true"
    alone.press("Home")
    acts = [action.event for action in replay.trace.hasty]
    assert (hasty.get_attribute("aria-disabled") == "false") is bool(acts)
    alone.press("h")
    assert alone.step() == (acts[0] if acts else 0)
    alone.press("Home", "g")
    assert alone.step() == replay.trace.gate[1].at


@pytest.mark.parametrize("name", ["disconnect", "success_2_edit", "unknown_tool"])
def test_a_check_goes_where_it_is_decided_and_keeps_its_place(alone, name):
    replay = alone.open(FIXTURES / "streams" / f"{name}.sse", CATALOG)
    fold = alone.page.locator(".ags-fold")
    fold.click()
    assert fold.get_attribute("aria-expanded") == "true"
    for place, row in enumerate(alone.page.locator(".ags-check").all()):
        assert row.is_visible()
        final = replay.run().findings[place].status
        button = row.locator("button")
        assert button.count() == (final != "waiting")
        if final == "waiting":
            continue
        button.click()
        alone.settle()
        step = alone.step()
        assert replay.seek(step).findings[place].status == final
        if replay.seek(0).findings[place].status == final:
            assert step == replay.trace.gate[-1].at
        else:
            assert replay.seek(step - 1).findings[place].status != final
    titles = alone.page.locator(".ags-check-title").all_text_contents()
    assert titles == [title for _, title in to_wire(replay.trace)["checks"]]


def test_checks_that_wait_are_one_line_that_unfolds(alone):
    replay = alone.open(DISCONNECT, CATALOG)
    fold = alone.page.locator(".ags-fold")
    for k, word in ((1, "waiting for the end"), (replay.last, "not reached")):
        alone.page.evaluate("(k) => model.set('index', k)", k)
        alone.settle()
        waiting = sum(finding.status == "waiting" for finding in replay.seek(k).findings)
        shown = alone.page.locator(".ags-check:visible").count()
        assert shown == len(replay.frame.findings) - waiting
        assert f"{waiting} {word}" in fold.text_content()
    fold.press("Enter")
    assert alone.page.locator(".ags-check:visible").count() == len(replay.frame.findings)


@pytest.mark.parametrize("indented", [False, True])
@pytest.mark.parametrize("source", [DISCONNECT, ASTRAL], ids=["disconnect", "astral"])
def test_what_the_event_changed_is_marked_in_its_raw_text(alone, source, indented):
    replay = alone.open(source, CATALOG, packed=False)
    if indented:
        alone.page.get_by_role("button", name="indent").click()
    for k in range(1, replay.last + 1):
        alone.page.evaluate("(k) => model.set('index', k)", k)
        alone.settle()
        frame = replay.seek(k)
        fresh = [b.text[len(b.text) - b.new :] for b in frame.buffers if b.new]
        marked = alone.page.evaluate(
            "() => document.querySelector('.ags-raw-text mark').shown ?? ''"
        )
        if fresh and "delta" in frame.label:
            assert json.loads(f'"{marked}"') == fresh[0]
        else:
            assert marked == ""


FOUND = "([raw, part]) => state.fragmentRange(raw, part)"


def test_a_fragment_that_was_escaped_another_way_is_found(alone):
    alone.open(DISCONNECT)
    for raw, fragment in (
        ('{"delta":"\\u00e9\\/"}', "é/"),
        ('{"a":"x","delta":"x y"}', "x y"),
        ('{"a":"\\"x","delta":"x"}', "x"),
    ):
        found = alone.page.evaluate(FOUND, [raw, fragment])
        assert json.loads(f'"{raw[found[0] : found[1]]}"') == fragment
    for raw in ('{"delta":"y"}', "no JSON", '{"delta":"x'):
        assert alone.page.evaluate("(raw) => state.fragmentRange(raw, 'x')", raw) is None


def test_the_list_can_show_one_kind_alone(alone):
    replay = alone.open(RELEASED, CATALOG, index=13)
    wanted = [str(k) for k, role in enumerate(replay.trace.roles, 1) if role == 2]
    alone.page.get_by_label("events shown").select_option("arguments")
    rows = alone.page.locator(".ags-row")
    assert [row.get_attribute("data-k") for row in rows.all()] == wanted
    assert {row.get_attribute("aria-setsize") for row in rows.all()} == {str(len(wanted))}
    assert alone.page.locator("[aria-selected=true]").get_attribute("data-k") == "13"
    rows.first.click()
    alone.settle()
    assert alone.step() == int(wanted[0])
    alone.page.locator(".ags").focus()
    alone.press("Home")
    assert alone.page.get_by_role("listbox").get_attribute("aria-activedescendant") is None
    alone.page.get_by_label("events shown").select_option("all kinds")
    assert rows.first.get_attribute("aria-setsize") == str(replay.last)


LAPTOP, PHONE = (1032, 650), (390, 844)


@pytest.mark.parametrize("k", [0, 6, 18])
@pytest.mark.parametrize("size", [LAPTOP, (1366, 650), PHONE])
def test_controls_lanes_and_verdict_are_always_together(alone, size, k):
    alone.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    alone.open(RELEASED, CATALOG, index=k)
    box = alone.page.locator(".ags").bounding_box()
    if size != PHONE:
        assert box["height"] < 520
    seen = [
        alone.page.get_by_role("button", name="step", exact=True),
        alone.page.locator(".ags-lanes"),
        alone.page.locator(".ags-strip"),
    ]
    for place in alone.page.locator(".ags-column, .ags-body").all():
        place.evaluate("(node) => { node.scrollTop = 10_000; }")
    for each in seen:
        place = each.bounding_box()
        assert 0 <= place["y"] < place["y"] + place["height"] <= size[1]
    top, bottom = seen[0].bounding_box(), seen[2].bounding_box()
    assert bottom["y"] + bottom["height"] - top["y"] < 260


@pytest.mark.parametrize("name", ["disconnect", "success_2_edit", "hostile"])
def test_it_keeps_its_height_at_every_step(alone, name):
    replay = alone.open(FIXTURES / "streams" / f"{name}.sse", CATALOG)
    heights = set()
    for k in range(replay.last + 1):
        alone.page.evaluate("(k) => model.set('index', k)", k)
        alone.settle()
        heights.add(alone.page.locator(".ags").bounding_box()["height"])
    assert len(heights) == 1


def test_the_size_of_an_event_is_not_clipped_beside_a_long_kind(alone):
    events = list(call_stream('{"a": 1}'))
    long = {"type": "response.function_call_arguments.delta" + "x" * 70}
    alone.open(capture_of(*events, long), index=99)
    for row in alone.page.locator(".ags-row .ags-more").all():
        assert row.evaluate("(node) => node.scrollWidth <= node.clientWidth")
        inside = row.evaluate(
            "(node) => node.getBoundingClientRect().right <= "
            "node.closest('.ags-list').getBoundingClientRect().right"
        )
        assert inside


@pytest.mark.parametrize("letter", ["g", "h", "a", "b", "d", "j", "k", "m", "x", "y", "z", "1"])
def test_no_single_key_leaves_any_part_of_it(alone, letter):
    alone.open(RELEASED, CATALOG, index=13)
    alone.page.evaluate(
        """() => {
            window.heard = [];
            // As JupyterLab asks: of the focused element, up to the first that a shortcut matches.
            document.addEventListener("keydown", (event) => {
                if (!event.target.hasAttribute("data-lm-suppress-shortcuts")) heard.push("early");
            }, true);
            document.addEventListener("keydown", () => heard.push("late"));
        }"""
    )
    focusable = "button, select, textarea, input:not([hidden]), [tabindex], code"
    nodes = alone.page.locator(".ags").locator(focusable)
    visible = [node for node in nodes.all() if node.is_visible()]
    assert len(visible) > 15
    for node in [alone.page.locator(".ags"), *visible]:
        node.focus()
        alone.page.keyboard.press(letter)
        alone.page.keyboard.press(f"Shift+{letter}")
    assert alone.page.evaluate("() => heard") == []


def test_keys_with_control_reach_the_page(alone):
    alone.open(RELEASED, CATALOG, index=13)
    alone.page.evaluate(
        """() => {
            window.heard = [];
            document.addEventListener("keydown", ({ key, target }) => {
                if (!target.closest("[data-lm-suppress-shortcuts]")) heard.push(key);
            });
        }"""
    )
    for node in (alone.page.locator(".ags"), alone.page.get_by_role("slider")):
        node.focus()
        alone.page.keyboard.press("Control+s")
    assert [key for key in alone.page.evaluate("() => heard") if key == "s"] == ["s", "s"]


def test_touch_targets_are_large_enough_for_a_finger(browser, tmp_path):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    alone = Alone(context.new_page(), tmp_path)
    alone.open(RELEASED, CATALOG, index=13)
    alone.page.locator(".ags-fold").tap()
    targets = alone.page.locator(".ags").locator("button, select, .ags-row, input[type=range]")
    for node in [node for node in targets.all() if node.is_visible()]:
        box = node.bounding_box()
        assert round(min(box["width"], box["height"]), 1) >= 44, node.evaluate(
            "(node) => node.outerHTML"
        )
    context.close()


def test_an_unreadable_capture_is_shown_for_what_it_is(alone):
    alone.open(Capture.from_bytes(b"", name="nothing"))
    alone.page.locator(".ags").focus()
    alone.press("End")
    assert "the file is empty" in alone.page.locator(".ags").inner_text()


def test_names_of_javascripts_own_are_only_names(alone):
    names = ("__proto__", "constructor", "toString", "hasOwnProperty")
    events = [{"type": name} for name in names]
    alone.open(capture_of(*events, *call_stream("{}", name="__proto__", call_id="constructor")))
    alone.page.locator(".ags").focus()
    for _ in range(len(events) + 4):
        alone.press("ArrowRight")
    assert [alone.text(f"[data-k='{k}'] .ags-kind") for k in range(1, 5)] == list(names)
    assert alone.errors == []


# Keys, mouse and time


def test_keys_step_both_ways(alone):
    replay = alone.open(DISCONNECT)
    alone.page.locator(".ags").focus()
    walk = [
        ("ArrowRight", replay.step),
        ("ArrowRight", replay.step),
        ("Shift+ArrowRight", replay.next_change),
        ("Shift+ArrowRight", replay.next_change),
        ("Shift+ArrowRight", replay.next_change),
        ("ArrowLeft", replay.back),
        ("Shift+ArrowLeft", replay.previous_change),
        ("End", replay.run),
        ("ArrowRight", replay.step),
        ("Home", lambda: replay.seek(0)),
        ("ArrowLeft", replay.back),
    ]
    for key, move in walk:
        alone.press(key)
        assert alone.step() == move().index
        assert alone.page.evaluate("() => model.get('index')") == replay.index


def test_a_key_with_a_modifier_is_left_to_the_page(alone):
    alone.open(DISCONNECT, index=3)
    alone.page.locator(".ags").focus()
    alone.press("Control+ArrowRight", "Alt+ArrowRight", "Meta+ArrowRight", "a", "d")
    assert alone.step() == 3


def test_up_and_down_step_in_the_event_list(alone):
    alone.open(DISCONNECT)
    alone.page.get_by_role("listbox").focus()
    alone.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert alone.step() == 1
    assert alone.page.locator(".ags-row[aria-selected=true]").get_attribute("data-k") == "1"
    active = alone.page.get_by_role("listbox").get_attribute("aria-activedescendant")
    assert alone.page.locator(f"#{active}").get_attribute("data-k") == "1"


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("first", 5, 0),
        ("back", 5, 4),
        ("step", 5, 6),
        ("gate change", 5, 9),
        ("first hasty act", 5, 7),
        ("last", 5, 9),
    ],
)
def test_buttons_do_what_they_say(alone, name, start, end):
    alone.open(DISCONNECT, index=start)
    alone.page.get_by_role("button", name=name, exact=True).click()
    alone.settle()
    assert alone.step() == end


def test_a_button_without_use_says_so_and_keeps_the_focus(alone):
    alone.open(DISCONNECT)
    back = alone.page.get_by_role("button", name="back", exact=True)
    assert back.get_attribute("aria-disabled") == "true"
    back.focus()
    alone.press("Enter")
    assert alone.step() == 0
    assert back.evaluate("(node) => node === document.activeElement")


def test_a_click_on_an_event_or_a_lane_goes_there(alone):
    alone.open(DISCONNECT)
    alone.page.locator("[data-k='6']").click()
    alone.settle()
    assert alone.step() == 6
    for lane in ("glyph", "hammer-box"):
        node = alone.page.locator(f".ags-lanes .ags-{lane}").first
        box = node.bounding_box()
        alone.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        alone.settle()
        assert alone.step() == {"glyph": 1, "hammer-box": 7}[lane]


def test_the_scrubber_follows_and_drives(alone):
    alone.open(DISCONNECT)
    scrubber = alone.page.get_by_role("slider", name="event")
    scrubber.fill("4")
    alone.settle()
    assert alone.step() == 4
    assert scrubber.get_attribute("aria-valuetext") == "event 4 of 8"
    scrubber.focus()
    alone.press("Shift+ArrowRight", "ArrowRight")
    assert alone.step() == int(scrubber.input_value()) == 6


def test_it_plays_and_space_pauses(alone):
    alone.open(RELEASED)
    alone.page.get_by_label("speed").select_option("20")
    alone.page.locator(".ags").focus()
    alone.press("Space")
    alone.page.get_by_role("button", name="pause").wait_for()
    alone.page.wait_for_function("() => model.get('index') >= 2")
    alone.press("Space")
    alone.page.get_by_role("button", name="play").wait_for()
    assert 2 <= alone.step() < alone.page.evaluate("() => trace.last")


def test_it_plays_to_the_end_and_then_from_the_start(alone):
    alone.open(DISCONNECT)
    alone.page.get_by_label("speed").select_option("100")
    play = alone.page.get_by_role("button", name="play")
    play.click()
    alone.page.wait_for_function("() => model.get('index') === trace.last")
    play.wait_for()
    alone.page.get_by_label("speed").select_option("1")
    play.click()
    alone.page.wait_for_function("() => model.get('index') === 0")
    alone.page.get_by_role("button", name="pause").click()


def test_any_other_move_pauses_playing(alone):
    alone.open(RELEASED)
    play = alone.page.get_by_role("button", name="play")
    for move in (
        lambda: alone.page.get_by_role("slider").fill("3"),
        lambda: alone.page.get_by_role("button", name="step", exact=True).click(),
        lambda: alone.page.locator("[data-k='2']").click(),
        lambda: alone.page.evaluate("() => model.set('index', 5)"),
    ):
        play.click()
        alone.page.get_by_role("button", name="pause").wait_for()
        move()
        play.wait_for()


def test_space_on_a_button_presses_the_button(alone):
    alone.open(DISCONNECT)
    alone.page.get_by_role("button", name="step", exact=True).focus()
    alone.press("Space")
    assert alone.step() == 1
    assert alone.page.get_by_role("button", name="play").is_visible()


def test_the_model_drives_it_and_what_is_outside_is_clamped(alone):
    replay = alone.open(DISCONNECT)
    for asked, index in ((4, 4), (-3, 0), (10_000, replay.last)):
        alone.page.evaluate("(index) => model.set('index', index)", asked)
        alone.settle()
        assert alone.step() == index


def test_after_its_clean_up_it_does_nothing(alone):
    alone.open(DISCONNECT)
    alone.page.evaluate("() => { cleanup(); model.set('index', 4); }")
    alone.settle()
    assert alone.step() == 0
    assert alone.errors == []


# For every reader


def test_every_control_is_reached_by_tab_and_shows_the_focus(alone):
    alone.open(DISCONNECT, index=3)
    reached = []
    for _ in range(18):
        alone.press("Tab")
        reached.append(
            alone.page.evaluate(
                """() => {
                    const node = document.activeElement;
                    const visible = getComputedStyle(node).outlineStyle !== "none";
                    return [node.getAttribute("aria-label") ?? node.textContent, visible];
                }"""
            )
        )
    names = [name for name, _ in reached]
    controls = ["first", "back", "step", "gate change", "first hasty act", "last", "play"]
    expected = ["stepper: disconnect", *controls]
    assert names[:8] == expected
    assert {"speed, events a second", "event", "events"} < set(names)
    assert all(visible for name, visible in reached if name in expected)
    assert alone.page.locator("[tabindex]:not([tabindex='0'])").count() == 0


def test_each_step_is_spoken_once_in_a_sentence(alone):
    alone.open(DISCONNECT)
    live = alone.page.locator("[aria-live], [role=status], [role=alert], [role=log], output")
    assert live.count() == 1
    assert live.text_content() == ""
    alone.page.locator(".ags").focus()
    alone.press(*["ArrowRight"] * 6)
    alone.page.wait_for_function(
        "() => document.querySelector('[aria-live]').textContent.startsWith('Event 6 of 8')"
    )
    assert live.text_content() == (
        "Event 6 of 8, arguments.delta. 30 characters arrived for edit: 71 in all. Gate closed."
    )
    alone.press("End")
    alone.page.wait_for_function(
        "() => document.querySelector('[aria-live]').textContent.includes('Discarded.')"
    )
    assert live.text_content().endswith("Discarded. A hasty adapter ran 1 call.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("source", [DISCONNECT, RELEASED, HOSTILE], ids=lambda path: path.stem)
def test_axe_finds_nothing(alone, violations, scheme, width, source):
    alone.page.emulate_media(color_scheme=scheme)
    alone.page.set_viewport_size({"width": width, "height": 900})
    replay = alone.open(source, CATALOG)
    for k in (0, 6, replay.last):
        alone.page.evaluate("(k) => model.set('index', k)", k)
        alone.settle()
        assert violations() == []


PAGES = {
    "Jupyter": ("document.body.dataset.jpThemeLight = '{light}'", None),
    "a class": ("document.documentElement.className = '{name}'", "html.dark { color: #eee; }"),
    "an attribute": (
        "document.documentElement.setAttribute('theme', '{name}')",
        "[theme=dark] body { color: oklch(90% 0.02 200); background: #222; }",
    ),
    "a colour": (
        "document.body.style.color = {{light: 'black', dark: 'rgb(240 240 240)'}}.{name}",
        None,
    ),
}


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize("kind", PAGES)
def test_the_theme_is_that_of_the_page_whatever_the_system_has(alone, kind, system):
    def background():
        alone.settle()
        return alone.page.evaluate(
            "() => getComputedStyle(document.querySelector('.ags-head')).backgroundColor"
        )

    def scheme():
        return alone.page.evaluate(
            "() => getComputedStyle(document.querySelector('.ags')).colorScheme"
        )

    code, style = PAGES[kind]
    alone.page.emulate_media(color_scheme=system)
    alone.open(DISCONNECT)
    assert scheme() == system
    alone.page.add_style_tag(content=f":root {{ color-scheme: light; color: #111 }} {style or ''}")
    seen = {}
    for name in ("light", "dark", "light"):
        alone.page.evaluate(code.format(name=name, light=str(name == "light").lower()))
        seen[name] = background()
        assert scheme() == name
    assert seen["light"] != seen["dark"]


@pytest.mark.parametrize(
    ("width", "stacked"), [(1280, False), (800, False), (700, True), (360, True)]
)
def test_a_narrow_one_stacks_and_none_overflows(alone, width, stacked):
    alone.page.set_viewport_size({"width": width, "height": 900})
    alone.open(HOSTILE, CATALOG, index=99)
    list_box = alone.page.locator(".ags-column-events").bounding_box()
    detail = alone.page.locator(".ags-column-known").bounding_box()
    assert (detail["y"] >= list_box["y"] + list_box["height"]) is stacked
    assert alone.page.evaluate("() => document.documentElement.scrollWidth") <= width


# Hostile and huge


@pytest.mark.parametrize("name", ["hostile", "hostile_released"])
def test_hostile_text_stays_text(alone, name):
    replay = alone.open(FIXTURES / "streams" / f"{name}.sse", CATALOG)
    alone.page.locator(".ags").focus()
    for _ in range(replay.last):
        alone.press("ArrowRight")
    assert alone.step() == replay.last
    assert "onerror" in alone.page.locator(".ags").inner_text()
    assert alone.page.locator(".ags :is(img, script, a, iframe, style, textarea)").count() == 0
    assert alone.page.evaluate("() => [window.HOSTILE, window.pwned]") == [None, None]
    assert alone.errors == []
    assert alone.requests == [alone.file.as_uri()]


def test_bidirectional_controls_cannot_reorder_what_is_read(alone):
    alone.open(
        capture_of(*call_stream('{"f": "\u202egnp.exe\u202c"}', name="ed\u202eti")), index=99
    )
    text = alone.page.locator(".ags-card .ags-text").inner_text()
    assert text == '{"f": "U+202Egnp.exeU+202C"}'
    assert alone.text(".ags-call-name") == "edU+202Eti"
    assert "\u202e" not in alone.page.locator(".ags").text_content()


def huge(count, alternating):
    """The wire form of two calls that grow by one character an event, `count` events in all."""
    wire = to_wire(Replay(capture_of(*call_stream("{", "}"))).trace)
    raw = json.dumps({"type": "response.function_call_arguments.delta", "delta": "x"}).encode()
    turns = [number % 2 if alternating else 2 * number // count for number in range(count)]
    buffers = []
    for turn in (0, 1):
        at = [number + 1 for number in range(count) if turns[number] == turn]
        growth = {"at": column("I", at), "length": column("I", range(1, len(at) + 1))}
        identity = {"name": f"tool_{turn}", "call_id": f"call_{turn}", "limit": count}
        buffers.append(
            {**wire["buffers"][0], **identity, **growth, "text": "x" * len(at), "start": 1}
        )
    return {
        **wire,
        "count": count,
        "end": None,
        "names": ["arguments.delta"],
        "kind": column("H", [0] * count),
        "role": column("B", [2] * count),
        "buffer": column("i", turns),
        "size": column("I", [1] * count),
        "offset": column("I", range(0, len(raw) * count + 1, len(raw))),
        "raw": raw * count,
        "buffers": buffers,
    }


@pytest.mark.parametrize("alternating", [True, False])
def test_of_100_000_events_only_what_is_visible_is_in_the_page(alone, violations, alternating):
    alone.show(deflated(huge(100_000, alternating)))
    alone.page.locator(".ags").focus()
    for keys, step in (
        (["ArrowRight"] * 3, 3),
        (["End"], 100_000),
        (["ArrowLeft"] * 2, 99_998),
        (["Home", "Shift+ArrowRight", "Shift+ArrowRight"], 2 if alternating else 50_001),
    ):
        alone.press(*keys)
        assert alone.step() == step
        assert alone.page.locator(".ags *").count() < 1500
        assert alone.page.locator(f".ags-row[data-k='{step}']").is_visible()
    alone.page.get_by_role("slider").fill("61803")
    alone.settle()
    assert (
        alone.page.locator(".ags-row[aria-selected=true]").get_attribute("aria-posinset") == "61803"
    )
    assert violations() == []
    assert alone.errors == []

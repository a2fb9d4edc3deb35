"""The what-if row in a page of its own: the test answers as the kernel would."""

from pathlib import Path

import ipywidgets
import pytest

from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture
from agentlib.stepper.html_export import data
from agentlib.stepper.replay import Replay
from agentlib.stepper.widget import Stepper

pytestmark = pytest.mark.browser

BUTTONS = {"cut here": "cut", "drop": "drop", "double": "double", "swap": "swap"}
ANSWER = """(text) => {
    const values = state.readSaved(text);
    for (const name of ["edits", "trace", "whatif"]) model.set(name, values[name]);
}"""

FILE = """() => {
    const { name, data } = model.get("file");
    return [name, [...new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]];
}"""
DROP = """([name, text]) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File([text], name));
    const on = document.querySelector(".ags-body");
    for (const kind of ["dragover", "drop"]) {
        on.dispatchEvent(new DragEvent(kind, { dataTransfer: dropped, bubbles: true }));
    }
}"""
LANES = """() => [...document.querySelectorAll(".ags-verdict")].map((line) => [
    line.querySelectorAll(".ags-hammer-box").length,
    line.querySelectorAll(".ags-lane-mark-released").length,
    line.querySelectorAll(".ags-lane-mark-discarded").length,
])"""
STREAMS = Path(__file__).parents[2] / "fixtures" / "streams"


class Kernel:
    """Answers what the page asks, with a stepper that has no page of its own."""

    def __init__(self, alone):
        self.alone = alone
        self.stepper = None

    def open(self, source, index):
        self.stepper = Stepper(source)
        self.alone.show(self.stepper.trace, index, whatif=self.stepper.whatif)

    def answer(self):
        edits = self.alone.page.evaluate("() => window.asked.at(-1)")
        self.stepper.set_state({"edits": edits})
        self.tell()

    def take(self):
        """Take the file that the page hands over."""
        self.alone.page.wait_for_function("() => model.get('file')")
        name, numbers = self.alone.page.evaluate(FILE)
        index = self.alone.step()
        self.stepper.set_state(
            {"index": index, "file": {"name": name, "data": memoryview(bytes(numbers))}}
        )
        self.tell()
        self.alone.page.evaluate("(index) => model.set('index', index)", self.stepper.index)
        self.alone.settle()

    def tell(self):
        told = {name: getattr(self.stepper, name) for name in ("edits", "trace", "whatif")}
        self.alone.page.evaluate(ANSWER, data(told))
        self.alone.settle()

    def press(self, name):
        self.alone.page.get_by_role("button", name=name, exact=True).press("Enter")

    @property
    def code(self):
        return self.alone.text(".ags-whatif-code")

    @property
    def focus(self):
        return self.alone.page.evaluate("() => document.activeElement.textContent")


@pytest.fixture
def kernel(alone):
    yield Kernel(alone)
    ipywidgets.Widget.close_all()


def test_each_button_makes_its_edit_at_the_current_event_and_keeps_the_focus(kernel):
    kernel.open(capture("success_2_edit"), 13)
    page = kernel.alone.page
    for button, name in BUTTONS.items():
        kernel.press(button)
        assert "waiting for the kernel" in kernel.alone.text(".ags-whatif")
        kernel.answer()
        told = kernel.stepper.whatif
        assert kernel.stepper.edits == [[name, [13]]]
        assert kernel.code == told["code"]
        verdicts = page.locator(".ags-verdict-text").all_text_contents()
        assert verdicts == [
            f"{told[which]['text']} · {told[which]['hasty_text']}" for which in ("before", "now")
        ]
        assert (kernel.focus, kernel.alone.step()) == (button, 13)
        said = page.locator("[aria-live]").text_content()
        assert said.startswith(f"{name} 13: now DISCARDED at ")
        assert f"They differ {told['difference']}" in said
        kernel.press("reset")
        kernel.answer()
    assert kernel.alone.errors == []


def test_a_fragment_is_edited_by_keys_alone(kernel, violations):
    kernel.open(capture("chat_edit"), 9)
    kernel.press("edit…")
    field = kernel.alone.page.locator(".ags-whatif-text")
    assert field.input_value() == '+ b"}'
    for key in ("Home", "ArrowRight", "Delete", "*"):
        kernel.alone.page.keyboard.press(key)
    kernel.alone.page.keyboard.type(" ")
    assert kernel.alone.step() == 9
    assert violations() == []
    field.fill('* b"}')
    kernel.alone.page.keyboard.press("Enter")
    kernel.answer()
    assert kernel.stepper.edits == [["edit", [9, '* b"}']]]
    assert kernel.code == "capture('chat_edit').edit(9, '* b\"}')"
    assert kernel.focus == "edit…"
    kernel.press("edit…")
    kernel.alone.page.keyboard.press("Escape")
    assert field.count() == 0
    assert kernel.focus == "edit…"


def test_the_stop_reason_is_one_of_the_apis_own(kernel):
    kernel.open(capture("messages_edit"), 3)
    kernel.press("stop reason…")
    choices = kernel.alone.page.locator(".ags-reasons option").all_text_contents()
    assert choices == kernel.stepper.whatif["reasons"]
    kernel.alone.page.locator(".ags-reasons").select_option("max_tokens")
    kernel.press("apply")
    kernel.answer()
    assert kernel.code == "capture('messages_edit').stop('max_tokens')"
    kernel.press("show it")
    kernel.alone.settle()
    assert kernel.alone.step() == kernel.stepper.whatif["differs"]


def test_undo_and_reset_go_back_to_the_stream_as_it_was(kernel):
    kernel.open(capture("disconnect"), 4)
    recorded = kernel.stepper.digest
    for name in ("drop", "double", "drop"):
        kernel.press(name)
        kernel.answer()
    kernel.press("undo")
    kernel.answer()
    assert kernel.stepper.edits == [["drop", [4]], ["double", [4]]]
    kernel.press("reset")
    kernel.answer()
    assert kernel.stepper.digest == recorded
    assert not kernel.alone.page.locator(".ags-whatif-answer").is_visible()
    assert kernel.focus == "cut here"


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("success_2_edit", [["cut", [17]]]),
        ("disconnect", [["cut", [6]]]),
        ("disconnect", [["drop", [7]], ["drop", [7]]]),
        ("text_only", [["drop", [1]]]),
    ],
)
def test_an_edit_shows_before_and_after_as_lanes_the_hasty_adapter_included(kernel, name, edits):
    kernel.open(capture(name), 3)
    kernel.stepper.edits = edits
    kernel.tell()
    kernel.alone.page.wait_for_selector(".ags-answer-picture")
    traces = [Replay(capture(name)).trace, kernel.stepper.replay.trace]
    assert kernel.alone.page.evaluate(LANES) == [
        [len(trace.hasty), trace.decision is not None, trace.decision is None] for trace in traces
    ]
    show = kernel.alone.page.get_by_role("button", name="show it")
    assert show.is_visible() == (kernel.stepper.whatif["differs"] is not None)


@pytest.mark.parametrize("edits", [[["drop", [15]]], [["drop", [1]]] * 12])
def test_with_an_answer_it_is_as_tall_as_before_and_the_verdict_stays_in_sight(kernel, edits):
    kernel.alone.page.set_viewport_size({"width": 1032, "height": 650})
    kernel.open(capture("success_2_edit"), 3)
    before = kernel.alone.page.locator(".ags").bounding_box()["height"]
    kernel.stepper.edits = edits
    kernel.tell()
    assert kernel.alone.page.locator(".ags").bounding_box()["height"] == before < 520
    assert kernel.alone.page.locator(".ags-body").bounding_box()["height"] >= 120


def test_where_nothing_differs_there_is_nothing_to_show(kernel):
    kernel.open(capture("disconnect"), 3)
    kernel.stepper.edits = [["cut", [8]]]
    kernel.tell()
    assert "nowhere" in kernel.alone.text(".ags-differ")
    assert not kernel.alone.page.get_by_role("button", name="show it").is_visible()


@pytest.mark.parametrize("way", ["dropped", "chosen"])
def test_a_file_of_the_readers_own_is_stepped(kernel, way):
    kernel.open(capture("disconnect"), 7)
    kernel.press("cut here")
    kernel.answer()
    path = STREAMS / "chat_edit.sse"
    if way == "dropped":
        kernel.alone.page.evaluate(DROP, ["mine <b>.sse", path.read_text("utf-8")])
    else:
        kernel.alone.page.locator(".ags-picker").set_input_files(path)
    kernel.take()
    assert kernel.stepper.edits == []
    assert kernel.stepper.capture.provider == "chat"
    assert kernel.alone.text(".ags-name") == kernel.stepper.capture.name
    assert kernel.alone.step() == 0
    assert kernel.alone.text(".ags-whatif-error") == ""
    kernel.press("share step")
    # One of the book's own is known by its name and its bytes.
    code = "Capture.load('mine <b>.sse')" if way == "dropped" else "capture('chat_edit')"
    assert kernel.alone.text(".ags-shared code") == f"Stepper({code}).seek(0)"
    assert kernel.alone.errors == []


def test_a_file_that_holds_no_stream_changes_nothing_and_is_said_so(kernel):
    kernel.open(capture("disconnect"), 7)
    kernel.alone.page.evaluate(DROP, ["none.png", "\x89PNG"])
    kernel.take()
    assert "none.png holds no stream" in kernel.alone.text(".ags-whatif-error")
    assert (kernel.alone.step(), kernel.alone.text(".ags-name")) == (7, "disconnect")


@pytest.mark.parametrize("edits", [[], [["drop", [3]]]])
def test_a_step_is_shared_as_code_that_shows_it(kernel, edits):
    kernel.open(capture("success_2_edit"), 7)
    kernel.stepper.edits = edits
    kernel.tell()
    kernel.press("share step")
    kernel.alone.page.wait_for_function(
        "() => /copied|selected/.test(document.querySelector('.ags-shared').textContent)"
    )
    code = kernel.alone.text(".ags-shared code")
    frame = eval(code, {"Stepper": Stepper, "capture": capture})
    assert frame.text == kernel.stepper.seek(7).text
    kernel.alone.page.locator(".ags").focus()
    kernel.alone.press("ArrowRight")
    assert not kernel.alone.page.locator(".ags-shared").is_visible()


def test_the_line_can_be_selected_and_copied(kernel):
    kernel.open(capture("disconnect"), 7)
    kernel.press("cut here")
    kernel.answer()
    kernel.press("copy")
    kernel.alone.page.wait_for_function(
        "() => /copied|selected/.test(document.querySelector('.ags-whatif-answer').textContent)"
    )
    selected = kernel.alone.page.evaluate("() => String(getSelection())")
    assert selected == kernel.stepper.whatif["code"] == "capture('disconnect').cut(after=7)"
    assert kernel.focus == "copy"


def test_what_cannot_be_done_is_said_and_changes_nothing(kernel):
    kernel.open(capture("disconnect"), 8)
    kernel.press("swap")
    kernel.press("stop reason…")
    kernel.press("apply")
    kernel.answer()
    assert kernel.alone.text(".ags-whatif-error") == (
        "no event of disconnect says why the response stopped"
    )
    assert kernel.stepper.edits == []
    kernel.alone.page.locator(".ags-row[data-k='1']").click()
    kernel.alone.settle()
    kernel.press("edit…")
    assert kernel.alone.text(".ags-whatif-error") == "Event 1 carries no text fragment."


def test_a_kernel_that_gives_no_answer_is_said_to_and_the_row_can_be_used_again(kernel):
    kernel.alone.page.clock.install()
    kernel.open(capture("disconnect"), 7)
    kernel.press("cut here")
    kernel.alone.page.clock.run_for(2_000)
    assert "waiting for the kernel" in kernel.alone.text(".ags-whatif")
    kernel.alone.page.clock.run_for(1_000)
    assert kernel.alone.text(".ags-whatif-error").startswith("No answer for 3 seconds")
    assert "waiting for the kernel" not in kernel.alone.text(".ags-whatif")
    kernel.alone.page.clock.resume()
    kernel.answer()
    assert kernel.code == "capture('disconnect').cut(after=7)"
    assert kernel.alone.text(".ags-whatif-error") == ""
    kernel.press("undo")
    kernel.answer()
    assert kernel.stepper.edits == []


def test_half_an_escape_pair_is_refused_and_the_answer_comes(kernel):
    kernel.open(capture("unicode"), 6)
    kernel.press("edit…")
    kernel.press("apply")
    kernel.answer()
    assert "half of an escape pair" in kernel.alone.text(".ags-whatif-error")
    assert kernel.stepper.edits == []


def test_a_step_asks_nothing_and_after_an_edit_neither(kernel):
    kernel.open(capture("success_2_edit"), 6)
    kernel.press("cut here")
    kernel.answer()
    kernel.alone.page.locator(".ags").focus()
    kernel.alone.press("ArrowLeft", "End", "Shift+ArrowLeft")
    assert kernel.alone.page.evaluate("() => window.asked.every((e) => e.length <= 1)")
    assert kernel.alone.requests == [kernel.alone.file.as_uri()]


def test_hostile_text_stays_text_in_the_row(kernel):
    hostile = Capture.from_events(capture("hostile").events, "<img src=x onerror=pwned()>\u202e")
    kernel.open(hostile, 3)
    kernel.stepper.edits = [["cut", [5]]]
    kernel.press("drop")
    kernel.answer()
    kernel.stepper.set_state({"edits": [["<img src=x onerror=pwned()>", [1]]]})
    kernel.alone.page.evaluate(
        ANSWER, data({name: getattr(kernel.stepper, name) for name in ("edits", "trace", "whatif")})
    )
    assert "<img" in kernel.alone.text(".ags-whatif-error")
    assert kernel.alone.page.locator(".ags :is(img, script, iframe)").count() == 0
    assert kernel.alone.errors == []


def test_it_fits_a_narrow_page(kernel):
    kernel.alone.page.set_viewport_size({"width": 360, "height": 900})
    kernel.open(Path(__file__).parents[2] / "fixtures" / "streams" / "success_2_edit.sse", 13)
    kernel.press("cut here")
    kernel.answer()
    kernel.press("edit…")
    assert kernel.alone.page.evaluate("() => document.documentElement.scrollWidth") <= 360

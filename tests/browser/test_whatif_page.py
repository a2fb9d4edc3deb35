"""The what-if row in a page of its own: the test answers as the kernel would."""

from pathlib import Path

import ipywidgets
import pytest

from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture
from agentlib.stepper.html_export import data
from agentlib.stepper.widget import Stepper

pytestmark = pytest.mark.browser

BUTTONS = {"cut here": "cut", "drop": "drop", "double": "double", "swap with next": "swap"}
ANSWER = """(text) => {
    const values = state.readSaved(text);
    for (const name of ["edits", "trace", "whatif"]) model.set(name, values[name]);
}"""


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
        verdicts = page.locator(".ags-verdict").all_text_contents()
        assert verdicts == [f"{which}{told[which]['text']}" for which in ("before", "now")]
        assert (kernel.focus, kernel.alone.step()) == (button, 13)
        said = page.locator(".ags-whatif > .ags-unseen").text_content()
        assert said.startswith(f"{name} 13: now DISCARDED at ")
        assert f"They differ {told['difference']}" in said
        kernel.press("reset")
        kernel.answer()
    assert kernel.alone.errors == []


def test_a_fragment_is_edited_by_keys_alone(kernel, violations):
    kernel.open(capture("chat_edit"), 9)
    kernel.press("edit fragment…")
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
    assert kernel.focus == "edit fragment…"
    kernel.press("edit fragment…")
    kernel.alone.page.keyboard.press("Escape")
    assert field.count() == 0
    assert kernel.focus == "edit fragment…"


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
    kernel.press("swap with next")
    kernel.press("stop reason…")
    kernel.press("apply")
    kernel.answer()
    assert kernel.alone.text("[role=alert]") == (
        "no event of disconnect says why the response stopped"
    )
    assert kernel.stepper.edits == []
    kernel.alone.page.locator(".ags-row[data-k='1']").click()
    kernel.alone.settle()
    kernel.press("edit fragment…")
    assert kernel.alone.text("[role=alert]") == "Event 1 carries no text fragment."


def test_a_kernel_that_gives_no_answer_is_said_to_and_the_row_can_be_used_again(kernel):
    kernel.alone.page.clock.install()
    kernel.open(capture("disconnect"), 7)
    kernel.press("cut here")
    kernel.alone.page.clock.run_for(14_000)
    assert "waiting for the kernel" in kernel.alone.text(".ags-whatif")
    kernel.alone.page.clock.run_for(2_000)
    assert kernel.alone.text("[role=alert]").startswith("No answer for 15 seconds")
    assert "waiting for the kernel" not in kernel.alone.text(".ags-whatif")
    kernel.alone.page.clock.resume()
    kernel.answer()
    assert kernel.code == "capture('disconnect').cut(after=7)"
    assert kernel.alone.text("[role=alert]") == ""
    kernel.press("undo")
    kernel.answer()
    assert kernel.stepper.edits == []


def test_half_an_escape_pair_is_refused_and_the_answer_comes(kernel):
    kernel.open(capture("unicode"), 6)
    kernel.press("edit fragment…")
    kernel.press("apply")
    kernel.answer()
    assert "half of an escape pair" in kernel.alone.text("[role=alert]")
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
    assert "<img" in kernel.alone.text("[role=alert]")
    assert kernel.alone.page.locator(".ags :is(img, script, iframe)").count() == 0
    assert kernel.alone.errors == []


def test_it_fits_a_narrow_page(kernel):
    kernel.alone.page.set_viewport_size({"width": 360, "height": 900})
    kernel.open(Path(__file__).parents[2] / "fixtures" / "streams" / "success_2_edit.sse", 13)
    kernel.press("cut here")
    kernel.answer()
    kernel.press("edit fragment…")
    assert kernel.alone.page.evaluate("() => document.documentElement.scrollWidth") <= 360

"""What if, in a real JupyterLab: the reader edits the stream, and the kernel answers."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

OPEN = """from workbook import Replay, Stepper, capture
stepper = Stepper(capture("success_2_edit"), index=17)
stepper"""
SHOWN = "() => document.querySelector('.ags-whatif-code')?.textContent ?? ''"
CODE = f"(code) => ({SHOWN})() === code"


@pytest.fixture
def opened(lab, request):
    lab.open(OPEN, name=request.node.name)
    lab.start()
    lab.page.wait_for_selector(".ags-row")
    lab.wait()
    return lab


def press(lab, name):
    lab.page.get_by_role("button", name=name, exact=True).click()


def test_play_becomes_a_test(opened, violations):
    page = opened.page
    press(opened, "cut here")
    page.wait_for_function(CODE, arg="capture('success_2_edit').cut(after=17)")
    verdicts = page.locator(".ags-verdict-text").all_inner_texts()
    assert "RELEASED at event 18: 1 call released" in verdicts[0]
    assert "DISCARDED at the end of the stream, after event 17" in verdicts[1]
    assert (
        "the end of the stream, after event 17" in page.locator(".ags-whatif-answer").inner_text()
    )
    assert violations() == []

    page.get_by_role("slider", name="event").fill("3")
    press(opened, "drop")
    page.wait_for_function(CODE, arg="capture('success_2_edit').cut(after=17).drop(3)")
    code = page.evaluate(SHOWN)
    opened.add_cell_and_run(f"edited = {code}\n(edited == stepper.capture, stepper.edits)")
    said = page.locator(".jp-OutputArea-output").last.inner_text()
    assert said == "(True, [['cut', [17]], ['drop', [3]]])"

    press(opened, "undo")
    page.wait_for_function(CODE, arg="capture('success_2_edit').cut(after=17)")
    press(opened, "undo")
    page.wait_for_function("() => document.querySelector('.ags-whatif-answer').hidden")
    assert opened.kernel("print(stepper.capture == capture('success_2_edit'))") == "True"
    assert opened.errors == []

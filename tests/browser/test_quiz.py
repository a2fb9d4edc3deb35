"""A prediction and a failed exercise in a real JupyterLab: keys, words, and the kernel."""

import pytest

from workbook.quiz.questions import QUESTIONS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

ASK = """from workbook import exercise, predict
guess = predict("03")
guess"""
FAIL = """def may_run(events):
    done = [event for event in events if event["type"] == "response.output_item.done"]
    return [e["item"]["call_id"] for e in done if e["item"]["type"] == "function_call"]

exercise("03").check(may_run)"""
SAID = ".ags-quiz-said"


@pytest.fixture
def lab_with_both(lab, request):
    lab.open(ASK, FAIL, name=request.node.name)
    lab.start()
    lab.page.wait_for_selector(".ags-quiz")
    lab.page.wait_for_selector(".ags-row")
    lab.wait()
    return lab


def test_a_guess_is_made_by_keys_alone_and_the_kernel_knows_it(lab_with_both, violations):
    lab = lab_with_both
    page = lab.page
    form = page.locator(".ags-quiz")
    assert form.locator("legend").text_content() == "At which event may the edit run?"
    assert form.get_by_role("radio").count() == 4

    form.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert page.locator(SAID).text_content() == "Choose one first."

    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => document.querySelector('{SAID}').textContent.startsWith('✗')")
    assert QUESTIONS["03"].choices[1].why in page.locator(SAID).text_content()
    assert page.locator(SAID).get_attribute("role") == "status"
    assert lab.kernel("print(guess.choice, guess.right)") == "b False"

    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => document.querySelector('{SAID}').textContent.startsWith('✓')")
    assert lab.kernel("print(guess.choice, guess.right)") == "d True"
    assert page.locator(".jp-Cell").count() == 2, "no key reached the notebook"

    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        lab.theme(theme)
        assert violations() == []
    assert lab.errors == []


def test_a_failed_exercise_opens_a_stepper_where_it_failed(lab_with_both):
    page = lab_with_both.page
    output = page.locator(".jp-Cell").nth(1).locator(".jp-OutputArea-output")

    assert "not yet" in output.text_content()
    assert output.locator(".ags-count").count() == 1
    assert output.locator("[aria-selected='true']").count() == 1
    assert lab_with_both.errors == []

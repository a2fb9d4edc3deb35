"""The form of a prediction in a page of its own, without kernel and server."""

import pytest

from agentlib.stepper.front_end import SAVED_SCRIPT, read_front
from agentlib.stepper.html_export import data
from workbook.quiz.predictions import Prediction
from workbook.quiz.questions import QUESTIONS

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>quiz</title>
<style>{style}</style><body><main id="place"></main>
<script type="application/json" id="values">{values}</script>
<script type="module">
{script}
window.heard = [];
document.addEventListener("keydown", (event) => {{
    if (!event.target.hasAttribute("data-lm-suppress-shortcuts")) heard.push("early");
}}, true);
document.addEventListener("keydown", () => heard.push("late"));
window.model = plainModel(readSaved(document.getElementById("values").textContent));
render({{ model: window.model, el: document.getElementById("place") }});
</script>"""
SAID = "() => document.querySelector('.ags-quiz-said').textContent"


@pytest.fixture(params=sorted(QUESTIONS))
def quiz(page, tmp_path, request):
    question = QUESTIONS[request.param]
    choices = [choice._asdict() for choice in question.choices]
    values = {"asked": {"text": question.text, "choices": choices}, "choice": ""}
    script = f"{Prediction._esm}\n{read_front(SAVED_SCRIPT)}"
    file = tmp_path / "quiz.html"
    text = PAGE.format(style=Prediction._css, values=data(values), script=script)
    file.write_text(text, encoding="utf-8")
    page.goto(file.as_uri())
    page.wait_for_selector(".ags-quiz")
    return page, question


def test_what_is_said_is_of_the_choice_that_is_made(quiz):
    page, question = quiz
    boxes = page.get_by_role("radio")
    for first, choice in enumerate(question.choices):
        boxes.nth(first).check()
        page.get_by_role("button").click()
        said = page.evaluate(SAID)
        assert said.startswith("✓" if choice.right else "✗")
        assert choice.why in said
        for other in range(len(question.choices)):
            boxes.nth(other).check()
            assert page.evaluate(SAID) == (said if other == first else "")
            assert page.locator(".ags-quiz-made").count() == (other == first)


def test_no_single_key_leaves_the_form(quiz):
    page, _ = quiz
    for node in (*page.get_by_role("radio").all(), page.get_by_role("button")):
        node.focus()
        for key in "abdjkmxyz":
            page.keyboard.press(key)
    assert page.evaluate("() => heard") == []

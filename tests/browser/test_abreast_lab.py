"""Steppers side by side in a real JupyterLab: one script in three dialects."""

import json
from itertools import pairwise

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

OPEN = """from workbook import Stepper, capture, tools
from agentlib.stepper.abreast import Abreast
names = ("success_2_edit", "chat_edit", "messages_edit")
abreast = Abreast(*(Stepper(capture(name), tools(), index=8) for name in names))
abreast"""
BOXES = """() => Array.from(document.querySelectorAll('.ags'), (each) => {
    const { left, top, right } = each.getBoundingClientRect();
    return [left, top, right, each.scrollWidth <= each.clientWidth];
})"""
EDGE = "() => document.querySelector('.jp-OutputArea-output').getBoundingClientRect().right"


@pytest.fixture
def opened(lab, request):
    lab.page.set_viewport_size({"width": 1280, "height": 1200})
    lab.open(OPEN, name=request.node.name)
    lab.start()
    lab.page.wait_for_function("() => document.querySelectorAll('.ags-row').length > 20")
    lab.page.wait_for_function("() => document.querySelectorAll('.ags').length === 3")
    return lab


def test_they_stand_side_by_side_where_there_is_room(opened):
    page = opened.page
    boxes = page.evaluate(BOXES)

    assert len({top for _, top, _, _ in boxes}) == 1
    assert all(right < left for (_, _, right, _), (left, _, _, _) in pairwise(boxes))
    assert all(fits for *_, fits in boxes)
    assert boxes[-1][2] <= page.evaluate(EDGE) + 1
    page.set_viewport_size({"width": 640, "height": 1200})
    page.wait_for_function(f"() => new Set(({BOXES})().map(([, top]) => top)).size === 3")
    assert all(fits for *_, fits in page.evaluate(BOXES))


STEPS = "() => Array.from(document.querySelectorAll('.ags-range'), ({ value }) => Number(value))"


def test_what_the_reader_does_to_one_each_does_by_itself(opened):
    page = opened.page
    code = "print([[s.seek(8).index, s.last, s.trace['gate'][-1]['at']] for s in abreast.steppers])"
    state = json.loads(opened.kernel(code))
    lasts = [last for _, last, _ in state]
    shows = f"(steps) => JSON.stringify(({STEPS})()) === JSON.stringify(steps)"
    page.locator(".ags").nth(1).focus()
    for key, steps in (
        ("ArrowRight", [9, 9, 9]),
        ("Home", [0, 0, 0]),
        ("End", lasts),
        ("ArrowLeft", [last - 1 for last in lasts]),
        ("g", [at for _, _, at in state]),
    ):
        page.keyboard.press(key)
        page.wait_for_function(shows, arg=steps)
    opened.kernel("abreast.steppers[0].seek(2)")
    page.wait_for_function(shows, arg=[2, *[at for _, _, at in state][1:]])

"""Steppers side by side in a real JupyterLab: one story in three dialects."""

from itertools import pairwise

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

OPEN = """from workbook import Stepper, capture, tools
from agentlib.stepper.abreast import Abreast
names = ("success_2_edit", "chat_edit", "messages_edit")
abreast = Abreast(*(Stepper(capture(name), tools(), index=8) for name in names))
abreast"""
COUNTS = "() => Array.from(document.querySelectorAll('.ags-count'), (c) => c.textContent)"
BOXES = """() => Array.from(document.querySelectorAll('.ags'), (each) => {
    const { left, top, right } = each.getBoundingClientRect();
    return [left, top, right, each.scrollWidth <= each.clientWidth];
})"""
EDGE = "() => document.querySelector('.jp-OutputArea-output').getBoundingClientRect().right"


@pytest.fixture
def opened(lab, request):
    lab.page.set_viewport_size({"width": 1700, "height": 1200})
    lab.open(OPEN, name=request.node.name)
    lab.start()
    lab.page.wait_for_function("() => document.querySelectorAll('.ags-row').length > 20")
    lab.page.wait_for_function("() => document.querySelectorAll('.ags').length === 3")
    return lab


def test_they_stand_side_by_side_where_there_is_room_and_each_is_stepped_for_itself(opened):
    page = opened.page
    boxes = page.evaluate(BOXES)

    assert len({top for _, top, _, _ in boxes}) == 1
    assert all(right < left for (_, _, right, _), (left, _, _, _) in pairwise(boxes))
    assert all(fits for *_, fits in boxes)
    assert boxes[-1][2] <= page.evaluate(EDGE) + 1
    before = page.evaluate(COUNTS)
    page.locator(".ags").nth(1).click(position={"x": 40, "y": 20})
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"(before) => ({COUNTS})()[1] !== before[1]", arg=before)
    after = page.evaluate(COUNTS)
    assert (after[0], after[2]) == (before[0], before[2])
    page.set_viewport_size({"width": 760, "height": 1200})
    page.wait_for_function(f"() => new Set(({BOXES})().map(([, top]) => top)).size === 3")
    assert all(fits for *_, fits in page.evaluate(BOXES))

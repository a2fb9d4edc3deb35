"""The stepper in a real JupyterLab: page and kernel, themes, hostile text, a long capture."""

import json
import statistics
import time

import nbformat
import pytest

from benchmarks.stepper import WATCH_KEYS, long_capture

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

IMPORT = "from agentlib.stepper.widget import Stepper\n"
OPEN = IMPORT + "stepper = Stepper({path!r}, index={index})\nstepper"
STEP = "(text) => document.querySelector('.ags-range')?.value === text"


@pytest.fixture
def open_stepper(lab, root, request):
    """Return a function that opens a fixture's stepper in a notebook of this test."""

    def opened(stream, *cells, index=0):
        path = str(root / "fixtures" / "streams" / f"{stream}.sse")
        first = OPEN.format(path=path, index=index)
        lab.open(first, *cells, name=request.node.name.replace("[", "-").strip("]"))
        lab.start()
        lab.page.wait_for_selector(".ags-row")
        return lab

    return opened


def shows(lab, step):
    lab.page.wait_for_function(STEP, arg=str(step))


def kernel_reaches(lab, index):
    """Wait until the kernel's index is this one: it follows, but not within the same frame."""
    for _ in range(200):
        if (seen := lab.kernel("print(stepper.index)")) == str(index):
            return
    assert seen == str(index)


def test_keys_step_both_ways_and_the_index_follows(open_stepper):
    lab = open_stepper("disconnect")
    lab.page.locator(".ags").click(position={"x": 40, "y": 20})
    for key, step in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", 9),
        ("Home", 0),
    ):
        lab.page.keyboard.press(key)
        shows(lab, step)
    for _ in range(3):
        lab.page.keyboard.press("Shift+ArrowRight")
    shows(lab, 3)
    kernel_reaches(lab, 3)
    assert lab.kernel("print(stepper.frame.index, stepper.replay.index)") == "3 3"


def test_buttons_step_both_ways_and_the_index_follows(open_stepper):
    lab = open_stepper("disconnect")
    for name, step in (
        ("step", 1),
        ("step", 2),
        ("back", 1),
        ("last", 9),
        ("first", 0),
        ("step", 1),
    ):
        lab.page.get_by_role("button", name=name, exact=True).click()
        shows(lab, step)
    lab.page.locator(".ags-row[data-k='7']").click()
    shows(lab, 7)
    kernel_reaches(lab, 7)


def test_the_kernel_drives_it(open_stepper):
    lab = open_stepper("disconnect", index=2)
    shows(lab, 2)
    for code, step in (
        ("stepper.index = 5", 5),
        ("stepper.step()", 6),
        ("stepper.back()", 5),
        ("stepper.next_change()", 7),
        ("stepper.run()", 9),
        ("stepper.seek(-5)", 0),
        ("stepper.index = 10**9", 9),
    ):
        lab.kernel(code)
        shows(lab, step)


def test_a_later_cell_knows_where_the_reader_stopped(open_stepper):
    lab = open_stepper("disconnect", "print('first')")
    lab.wait()
    lab.page.locator(".ags").focus()
    for _ in range(7):
        lab.page.keyboard.press("ArrowRight")
    kernel_reaches(lab, 7)
    lab.add_cell_and_run("print('stopped at', stepper.frame.index, stepper.frame.verdict)")
    assert "stopped at 7 closed" in lab.page.locator(".jp-OutputArea-output").last.inner_text()


def test_two_views_of_one_stepper_stay_together(open_stepper):
    lab = open_stepper("disconnect", "stepper")
    lab.wait()
    lab.page.locator(".ags").nth(1).focus()
    lab.page.keyboard.press("ArrowRight")
    lab.page.keyboard.press("ArrowRight")
    for view in (0, 1):
        lab.page.locator(".ags-count").nth(view).get_by_text("event 2 of").wait_for()
    assert lab.page.locator(".ags-count").count() == 2


def test_letters_do_not_reach_the_notebook(open_stepper):
    lab = open_stepper("disconnect", "1 + 1")
    lab.wait()
    cells = lab.page.locator(".jp-Cell").count()
    lab.page.locator(".ags").focus()
    for key in ("d", "d", "a", "b", "x", "ArrowRight", "Space", "Space"):
        lab.page.keyboard.press(key)
    shows(lab, 1)
    for child in (
        ".ags-button",
        ".ags-speed",
        ".ags-range",
        ".ags-filter",
        ".ags-list",
        ".ags-raw-text",
        ".ags-column-known",
        "button.ags-check-go",
        ".ags-fold",
    ):
        node = lab.page.locator(f".ags {child}").first
        node.focus()
        for key in "mabjkxyzcvd":
            lab.page.keyboard.press(key)
        assert node.evaluate("(node) => node === document.activeElement"), child
    assert lab.page.locator(".jp-Cell").count() == cells
    assert lab.page.locator(".jp-MarkdownCell").count() == 0


def test_the_widget_is_shown_and_text_is_kept_beside_it(open_stepper):
    lab = open_stepper("disconnect", index=6)
    lab.wait()
    lab.page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    (path,) = lab.folder.glob("test_the_widget_is_shown*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    bundle = notebook.cells[0].outputs[0].data
    assert bundle["text/plain"].startswith("disconnect · event 6 of 8")
    assert bundle["text/html"].startswith("<div")
    assert "widgets" not in notebook.metadata


@pytest.mark.parametrize("stream", ["hostile", "hostile_released"])
def test_hostile_text_never_executes(open_stepper, stream):
    lab = open_stepper(stream)
    lab.page.locator(".ags").focus()
    for _ in range(int(lab.kernel("print(stepper.last)"))):
        lab.page.keyboard.press("ArrowRight")
    shows(lab, int(lab.kernel("print(stepper.last)")))
    assert "onerror" in lab.page.locator(".ags").inner_text()
    elements = ".ags :is(img, script, a, iframe, style, textarea, object, embed)"
    assert lab.page.locator(elements).count() == 0
    assert lab.page.evaluate("() => window.HOSTILE === undefined")
    assert (lab.dialogs, lab.errors) == ([], [])


@pytest.mark.parametrize(
    "theme", ["JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast"]
)
def test_axe_finds_nothing_in_any_theme(open_stepper, violations, theme):
    lab = open_stepper("disconnect")
    lab.theme(theme)
    for step in (0, 6, 7, 9):
        lab.kernel(f"stepper.seek({step})")
        shows(lab, step)
        assert violations() == []


def test_100_000_events_open_and_answer_keys(lab, lab_folder):
    (lab_folder / "long.sse").write_bytes(long_capture(alternating=True))
    limits = "from agentlib.assembly import Limits\n"
    show = "stepper = Stepper('long.sse', limits=Limits(argument_characters=10**6))\nstepper"
    lab.open(limits + IMPORT + show, name="long")
    begun = time.perf_counter()
    lab.start()
    lab.page.wait_for_selector(".ags-row")
    opened = time.perf_counter() - begun
    lab.page.locator(".ags").focus()
    lab.page.evaluate(WATCH_KEYS)
    for pressed in range(1, 41):
        lab.page.keyboard.press("ArrowRight")
        lab.page.wait_for_function("(n) => window.delays.length === n", arg=pressed)
    shows(lab, 40)
    delays = lab.page.evaluate("() => window.delays")
    assert lab.page.locator(".ags *").count() < 1500
    # Bounds for a slow and busy machine; `python -m benchmarks.stepper` measures.
    assert opened < 30
    assert statistics.median(delays) < 200
    assert json.loads(lab.kernel("print(stepper.last)")) == 100_000

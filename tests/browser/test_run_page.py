"""The run stepper in a page of its own, without kernel and server."""

import anyio
import pytest

from agentlib.stepper.front_end import read_front
from agentlib.stepper.html_export import data
from agentlib.stepper.run_builder import build_run_trace
from agentlib.stepper.run_frame import RunFrame
from agentlib.stepper.run_front import run_script, run_style
from agentlib.stepper.run_payload import run_to_wire
from agentlib.stepper.run_widget import RunStepper
from tests.test_run_trace import ANSWER, RUNS, recorded, said, started, wants

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>run</title>
<meta name="viewport" content="width=device-width">
<style>{style}</style>
<style>:root {{ color-scheme: light dark; }} body {{ margin: 8px; height: 3000px; }}</style>
<body><main id="place"></main>
<script type="application/json" id="values">{values}</script>
<script type="module">
{script}
const values = readSaved(document.getElementById("values").textContent);
window.asked = [];
window.model = plainModel(values, () => window.asked.push([values.index, values.change]));
window.state = {{ runStateAt, nextRunChange, previousRunChange, runLabel, runSentence, runCounts }};
window.run = readRun(values.trace);
window.cleanup = render({{ model: window.model, el: document.getElementById("place") }});
window.leaked = [];
document.addEventListener("keydown", (event) => window.leaked.push(event.key));
</script>"""

STATES = """() => Array.from({ length: run.last + 1 }, (_, k) => {
    const seen = state.runStateAt(run, k);
    return {
        label: k ? state.runLabel(run, k) : "nothing yet",
        gate: [seen.gate.state, seen.gate.headline],
        calls: seen.calls.map(({ id, state }) => [id, state]),
        history: seen.history.map(({ kind, text }) => [kind, text]),
        published: seen.published.map(({ kind, text }) => [kind, text]),
        pending: seen.buffers.filter(({ buffer }) => buffer.kind === "arguments")
            .map(({ buffer, end }) => [buffer.id, buffer.text.slice(0, end)]),
        left: seen.left.map(({ name, words }) => [name, words]),
        counts: Object.values(state.runCounts(seen)),
        next: state.nextRunChange(run, k),
        previous: state.previousRunChange(run, k),
    };
})"""

CHILDREN = "button, select, [role=listbox]"


class RunPage:
    def __init__(self, page, folder):
        self.page, self.file, self.errors = page, folder / "run.html", []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))

    def open(self, trace, index=0, **values):
        values = {"trace": run_to_wire(trace), "index": index, "change": [], "whatif": {}, **values}
        script = f"{run_script()}\n{read_front('saved.js')}"
        text = PAGE.format(style=run_style(), script=script, values=data(values))
        self.file.write_text(text, "utf-8")
        self.page.goto(self.file.as_uri())
        self.page.wait_for_selector(".ags-run-row")

    def moment(self):
        return self.page.locator(".ags-run-place").text_content().split(" of ")[0]

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        )


@pytest.fixture
def run_page(page, tmp_path):
    run_page = RunPage(page, tmp_path)
    yield run_page
    assert run_page.errors == []


@pytest.fixture(scope="module")
def approved():
    return TRACES["approved"]


# A browser of playwright's has an event loop, in which no other can begin: all runs come first.
TRACES = {name: build_run_trace(recorded(name).moments) for name in RUNS}
HOSTILE = build_run_trace(
    anyio.run(
        lambda: started(
            said("<img src=x onerror=alert(1)>\u202e", wants("<b>", "list", path="<script>")),
            ANSWER,
        )
    ).moments,
    "<script>alert(2)</script>",
)
STEPPER = RunStepper(recorded("works").moments)


@pytest.mark.parametrize("name", RUNS)
def test_each_state_is_the_frame_that_python_shows(run_page, name):
    trace = TRACES[name]
    run_page.open(trace)
    for k, seen in enumerate(run_page.page.evaluate(STATES)):
        frame = RunFrame(trace, k)
        assert seen == {
            "label": frame.label,
            "gate": [frame.gate.state, frame.gate.headline],
            "calls": [[call.call_id, call.state] for call in frame.calls],
            "history": [[entry.kind, entry.text] for entry in frame.history],
            "published": [[text.kind, text.text] for text in frame.published],
            "pending": [list(item) for item in frame.pending.items()],
            "left": [[left.name, left.words] for left in frame.left],
            "counts": list(frame.counts),
            "next": trace.next_change(k),
            "previous": trace.previous_change(k),
        }


def test_keys_step_and_ask_no_kernel_until_the_frame_is_painted(run_page, approved):
    run_page.open(approved)
    run_page.page.locator(".ags-run").focus()
    run_page.press("ArrowRight", "ArrowRight")
    assert run_page.moment() == "moment 2"
    run_page.press("End")
    assert run_page.moment() == f"moment {approved.last}"
    run_page.press("Home", "Shift+ArrowRight")
    assert run_page.moment() == f"moment {approved.next_change(0)}"
    assert all(change == [] for _, change in run_page.page.evaluate("() => window.asked"))


def test_letters_reach_no_notebook_from_any_child(run_page, approved):
    run_page.open(approved, 20)
    root = run_page.page.locator(".ags-run")
    for number in range(root.locator(CHILDREN).count()):
        child = root.locator(CHILDREN).nth(number)
        if not child.is_visible():
            continue
        child.focus()
        run_page.press("a", "x", "d")
        assert child.get_attribute("data-lm-suppress-shortcuts") is not None
    assert run_page.page.evaluate("() => window.leaked") == []


def test_the_buttons_go_to_the_next_turn_and_tool(run_page, approved):
    run_page.open(approved)
    page = run_page.page
    page.locator("[data-action=turn]").click()
    page.locator("[data-action=tool]").click()
    run_page.press()
    wanted = approved.next_of(("tool",), approved.next_of(("turn", "outcome"), 0))
    assert run_page.moment() == f"moment {wanted}"


def test_a_click_on_the_lanes_goes_there(run_page, approved):
    run_page.open(approved)
    line = run_page.page.locator(".ags-run-line").first
    line.click(position={"x": line.bounding_box()["width"] - 1, "y": 6})
    run_page.press()
    assert run_page.moment() == f"moment {approved.last}"


def test_hostile_text_is_text(run_page):
    run_page.open(HOSTILE)
    run_page.page.locator(".ags-run").focus()
    for _ in range(HOSTILE.last):
        run_page.press("ArrowRight")
        assert run_page.page.locator(".ags-run :is(img, b b, script)").count() == 0
    assert "<script>" in run_page.page.locator(".ags-run-name").text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1016, 390])
def test_axe_finds_nothing(run_page, axe, approved, scheme, width):
    page = run_page.page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    for index in (0, 20, 37, approved.last):
        run_page.open(approved, index)
        page.evaluate(axe)
        found = page.evaluate("() => axe.run('.ags-run')")
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == []


@pytest.mark.parametrize("name", RUNS)
def test_it_is_not_tall_and_never_wider_than_its_place(run_page, name):
    page = run_page.page
    for width in (1016, 390):
        page.set_viewport_size({"width": width, "height": 650})
        run_page.open(TRACES[name], TRACES[name].last, whatif={"targets": {}})
        box = page.locator(".ags-run").bounding_box()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if width == 1016:
            assert box["height"] <= 600


def test_strip_and_step_stay_in_sight_on_a_phone(run_page, approved):
    page = run_page.page
    page.set_viewport_size({"width": 390, "height": 650})
    run_page.open(approved, 20)
    page.locator(".ags-run-screens").scroll_into_view_if_needed()
    for selector in (".ags-run-strip", "[data-action=step]"):
        box = page.locator(selector).bounding_box()
        assert 0 <= box["y"] < 650


def test_a_what_if_is_asked_of_the_kernel_and_shown_beside_the_run(run_page):
    stepper = STEPPER
    run_page.open(stepper.run, 30, whatif=stepper.whatif)
    page = run_page.page
    page.get_by_role("button", name="stop the run here").click()
    assert page.evaluate("() => window.asked.at(-1)") == [30, ["stop", 30]]
    assert page.get_by_role("button", name="deny the approval").get_attribute("aria-disabled") == (
        "true"
    )


def test_a_changed_run_shows_the_recorded_one_and_the_way_back(run_page):
    stepper = STEPPER
    stepper.change = ["stop", 30]
    run_page.open(stepper.run, 30, whatif=stepper.whatif, change=["stop", 30])
    page = run_page.page
    assert (
        "what if the run is stopped at moment 30" in page.locator(".ags-run-answer").text_content()
    )
    assert page.locator(".ags-run-before .ags-run-bar").count() == len(stepper.recorded.bars)
    page.set_viewport_size({"width": 1016, "height": 650})
    assert page.locator(".ags-run").bounding_box()["height"] <= 600
    page.set_viewport_size({"width": 390, "height": 650})
    # Nothing stands over another part: each begins where the one before it ends.
    parts = [".ags-run-body", ".ags-run-screens", ".ags-run-whatif"]
    boxes = [page.locator(part).bounding_box() for part in parts]
    ends = [box["y"] + box["height"] for box in boxes]
    assert all(end <= box["y"] + 1 for end, box in zip(ends, boxes[1:], strict=False))
    inner = page.locator(".ags-run-left").bounding_box()
    assert inner["y"] + inner["height"] <= ends[0] + 1
    page.get_by_role("button", name="as it was").click()
    assert page.evaluate("() => window.asked.at(-1)")[1] == []
    stepper.change = []


def test_a_saved_page_steps_alone(page, tmp_path):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    file = STEPPER.save_html(tmp_path / "saved.html")
    page.goto(file.as_uri())
    page.wait_for_selector(".ags-run-row")
    page.get_by_role("button", name="▶ step").click()
    page.wait_for_function(
        "() => document.querySelector('.ags-run-place').textContent.startsWith('moment 1 ')"
    )
    assert requests == [file.as_uri()]

"""A stepper in a page of its own: the same script and style, and the model of a saved page.

Unlike a saved page it lets a test look inside, and drive the model as a kernel would.
"""

from agentlib.stepper.front_end import SAVED_SCRIPT, deflated, front_script, front_style, read_front
from agentlib.stepper.html_export import data
from agentlib.stepper.payload import to_wire
from agentlib.stepper.replay import Replay

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>stepper</title>
<style>{style}</style>
<style>:root {{ color-scheme: light dark; }} body {{ margin: 16px; }}</style>
<body><main id="place"></main>
<script type="application/json" id="values">{values}</script>
<script type="module">
{script}
const values = readSaved(document.getElementById("values").textContent);
window.asked = [];
window.model = plainModel(values, (index) => {{
    window.saved = index;
    window.asked.push(values.edits);
}});
window.state = {{
    readSaved, stateAt, nextChange, previousChange, pieces, plain, indentJson, clip, decidedAt,
    nextGateChange, firstHasty, fragmentRange, stepAsked, linkTo,
}};
window.trace = readTrace(values.trace);
window.cleanup = render({{ model: window.model, el: document.getElementById("place") }});
</script>"""


def page_of(wire, index=0, **values):
    """Return an HTML page that holds a stepper on `wire`; `values` are more traits of its model."""
    values = data({"trace": wire, "index": index, "edits": [], **values})
    script = f"{front_script()}\n{read_front(SAVED_SCRIPT)}"
    return PAGE.format(style=front_style(), script=script, values=values)


class Alone:
    """Opens such pages. `errors` and `requests` are what a page complained of and asked for."""

    def __init__(self, page, folder):
        self.page = page
        self.file = folder / "stepper.html"
        self.errors = []
        self.requests = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, source, tools=None, *, index=0, response=1, packed=True):
        """Show a capture and return its replay, at the start."""
        replay = Replay(source, tools, response=response)
        wire = to_wire(replay.trace)
        self.show(deflated(wire) if packed else wire, min(index, replay.last))
        return replay

    def show(self, wire, index=0, **values):
        """Show a trace and wait for its first row."""
        self.file.write_text(page_of(wire, index, **values), encoding="utf-8")
        self.page.goto(self.file.as_uri())
        self.page.wait_for_selector(".ags-row")

    def step(self):
        """The step that the page shows."""
        return int(self.page.locator(".ags-range").first.input_value())

    def text(self, selector):
        """The text of the first such element."""
        return self.page.locator(selector).first.text_content()

    def press(self, *keys):
        """Press keys, and wait until the last one's frame has been painted."""
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def settle(self):
        """Wait until what was asked for is painted."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        )

"""A stepper in a page of its own: the same script and style, and a model that is a plain object."""

import base64
import json

from agentlib.lab.replay import Replay
from agentlib.lab.stepper import deflated, front_script, front_style
from agentlib.lab.wire import to_wire

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>stepper</title>
<style>{style}</style>
<style>:root {{ color-scheme: light dark; }} body {{ margin: 16px; }}</style>
<body><main id="place"></main>
<script type="application/json" id="trace">{trace}</script>
<script type="module">
{script}
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const revive = (name, value) => (value?.bytes === undefined ? value : bytes(value.bytes));
const values = {{
    index: {index}, trace: JSON.parse(document.getElementById("trace").textContent, revive),
}};
const listeners = {{}};
window.model = {{
    get: (name) => values[name],
    set(name, value) {{ values[name] = value; listeners[`change:${{name}}`]?.(); }},
    on: (event, listener) => {{ listeners[event] = listener; }},
    save_changes() {{ window.saved = values.index; }},
}};
window.state = {{ stateAt, nextChange, previousChange, pieces, plain, indentJson, clip }};
window.trace = readTrace(values.trace);
window.cleanup = render({{ model: window.model, el: document.getElementById("place") }});
</script>"""


def page_of(wire, index=0):
    """Return an HTML page that holds a stepper on `wire`."""
    trace = json.dumps(wire, default=lambda data: {"bytes": base64.b64encode(data).decode()})
    return PAGE.format(
        style=front_style(), script=front_script(), trace=trace.replace("<", "\\u003c"), index=index
    )


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

    def show(self, wire, index=0):
        """Show a trace and wait for its first row."""
        self.file.write_text(page_of(wire, index), encoding="utf-8")
        self.page.goto(self.file.as_uri())
        self.page.wait_for_selector(".ags-row")

    def step(self):
        """The step that the page shows."""
        return int(self.text(".ags-count").split()[1].replace(",", ""))

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

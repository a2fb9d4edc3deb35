"""How fast the stepper opens a capture of 100,000 events in JupyterLab, and answers a key.

    python -m benchmarks.stepper

It starts a JupyterLab and a Chromium of its own, and opens two captures: one whose deltas fold
into few runs, and one in which every event is a run of its own. Opening is timed in the page, from
the command that runs the cell `Stepper(capture)` to the end of the first frame that shows an
event; it includes building the trace and bringing it to the browser. A capture of a few events
shows how much of that is JupyterLab's own. The best of three is printed: the machine may have
other work. A key is timed from its event to the end of the frame that shows the step; the screen's
own clock of 60 Hz is part of that.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Unmeasured, row

EVENTS = 100_000
SMALL = 40
CAPTURES = {"small": (False, SMALL), "folded": (False, EVENTS), "separate": (True, EVENTS)}
KEYS = 200
ROUNDS = 3
AIM_OPEN_SECONDS = 2.0
AIM_KEY_MILLISECONDS = 32.0

# From the command that runs the cell to the end of the first frame that shows an event.
WATCH_OPENING = """() => {
    const begun = performance.now();
    const channel = new MessageChannel();
    window.opened = new Promise((resolve) => {
        channel.port1.onmessage = () => resolve(performance.now() - begun);
    });
    const sight = new MutationObserver(() => {
        if (!document.querySelector(".ags .ags-row")) return;
        sight.disconnect();
        requestAnimationFrame(() => channel.port2.postMessage(0));
    });
    sight.observe(document.body, { childList: true, subtree: true });
    jupyterapp.commands.execute("notebook:run-all-cells");
}"""
WATCH_KEYS = """() => {
    window.delays = [];
    const channel = new MessageChannel();
    let pressed = 0;
    channel.port1.onmessage = () => window.delays.push(performance.now() - pressed);
    window.addEventListener("keydown", (event) => {
        pressed = event.timeStamp;
        requestAnimationFrame(() => channel.port2.postMessage(0));
    }, true);
}"""
SHOWS = "(number) => document.querySelector('.ags-range').value === number"
READ = """
from agentlib.assembly import Limits
from agentlib.stepper.widget import Stepper
from agentlib.recordings.capture import Capture
capture = Capture.load({name!r})
"""
OPEN = "stepper = Stepper(capture, limits=Limits(argument_characters=10**6))\nstepper"


def long_capture(alternating: bool, events: int = EVENTS) -> bytes:
    """Return an event stream with two calls, whose deltas come in turns or one after the other."""
    stream = enumerate(_events(alternating, events))
    numbered = ({**event, "sequence_number": number} for number, event in stream)
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in numbered
    )


def _events(alternating: bool, events: int) -> Iterator[dict[str, Any]]:
    deltas = events - 7
    text = '{"note": "' + "streams are long; " * (deltas // 30)
    texts = [text[: size - 2] + '"}' for size in (deltas - deltas // 2, deltas // 2)]
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{i}",
            "call_id": f"call_{i}",
            "name": "note",
            "status": "completed",
            "arguments": text,
        }
        for i, text in enumerate(texts)
    ]
    yield {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
    for i, call in enumerate(calls):
        item = {**call, "status": "in_progress", "arguments": ""}
        yield {"type": "response.output_item.added", "output_index": i, "item": item}
    place = [0, 0]
    for number in range(deltas):
        i = number % 2 if alternating else int(number >= len(texts[0]))
        letter, place[i] = texts[i][place[i]], place[i] + 1
        yield {
            "type": "response.function_call_arguments.delta",
            "item_id": f"fc_{i}",
            "output_index": i,
            "delta": letter,
        }
    for i, call in enumerate(calls):
        yield {"type": "response.output_item.done", "output_index": i, "item": call}
    body = {"id": "resp_1", "status": "completed", "error": None, "output": calls}
    yield {"type": "response.in_progress", "response": {"id": "resp_1"}}
    yield {"type": "response.completed", "response": body}


def measure_opening(lab: Any, name: str, number: int) -> float:
    """Open the capture of this name, read before, in a new notebook: the seconds that it took."""
    lab.open(OPEN, name=f"{name}{number}")
    lab.kernel(READ.format(name=f"{name}.sse"))
    lab.page.evaluate(WATCH_OPENING)
    return float(lab.page.evaluate("() => window.opened")) / 1000


def measure_keys(lab: Any) -> list[float]:
    """Press keys at the start and in the middle of the open capture: milliseconds for each."""
    lab.page.locator(".ags").focus()
    lab.page.evaluate(WATCH_KEYS)
    for number in range(KEYS):
        if number == KEYS // 2:
            lab.page.locator(".ags-range").fill(str(EVENTS // 2))
            lab.page.locator(".ags").focus()
            lab.page.wait_for_function(SHOWS, arg=str(EVENTS // 2))
        lab.page.keyboard.press("ArrowLeft" if number % 4 == 3 else "ArrowRight")
        lab.page.wait_for_function(f"window.delays.length === {number + 1}")
    delays = lab.page.evaluate("() => window.delays")
    lab.page.wait_for_function(SHOWS, arg=str(EVENTS // 2 + KEYS // 4))
    return list(delays)


def figures() -> Iterator[Figure]:
    """Yield how long each capture takes to open, and how long a key takes in the long ones.

    Raises Unmeasured where there is no Chromium.
    """
    from playwright.sync_api import sync_playwright

    from tests.browser.lab_driver import CHROMIUM_FLAGS, Lab, jupyter_server
    from tests.conftest import find_chromium

    chromium = find_chromium()
    if chromium is None:
        raise Unmeasured("no Chromium here (Debian: apt-get install -y chromium)")
    with (
        tempfile.TemporaryDirectory() as temporary,
        jupyter_server(Path(temporary)) as address,
        sync_playwright() as playwright,
    ):
        flags = list(CHROMIUM_FLAGS)
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        for name, (alternating, events) in CAPTURES.items():
            Path(temporary, f"{name}.sse").write_bytes(long_capture(alternating, events))
            seconds, delays = [], []
            for number in range(ROUNDS):
                page = browser.new_page(viewport={"width": 1400, "height": 1000})
                lab = Lab(page, address, Path(temporary))
                seconds.append(measure_opening(lab, name, number))
                if events == EVENTS and number == ROUNDS - 1:
                    delays = measure_keys(lab)
                lab.close()
                page.close()
            yield from _rows(name, events, min(seconds), delays)
        browser.close()


def _rows(name: str, events: int, opened: float, delays: list[float]) -> Iterator[Figure]:
    of = f"stepper, {events:,} events, {name}"
    aim = AIM_OPEN_SECONDS if events == EVENTS else None
    yield Figure(f"{of}: opens", opened, "s", aim)
    if delays:
        middle, late = statistics.median(delays), statistics.quantiles(delays, n=20)[-1]
        yield Figure(f"{of}: a key", middle, "ms", AIM_KEY_MILLISECONDS)
        yield Figure(f"{of}: a key, p95", late, "ms")


if __name__ == "__main__":
    for figure in figures():
        print(row(figure, None), flush=True)

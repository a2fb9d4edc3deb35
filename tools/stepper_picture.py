"""Take the README's picture of the stepper, from the stepper itself.

    python -m tools.stepper_picture

It opens the authored stream `disconnect` at its end, in a Chromium of its own, and writes
notebooks/images/stepper-discarded.png.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from agentlib.fixtures import capture
from agentlib.stepper import Stepper
from tests.browser.alone import page_of
from tests.browser.lab_driver import CHROMIUM_FLAGS
from tests.conftest import find_chromium

TARGET = Path(__file__).parents[1] / "notebooks" / "images" / "stepper-discarded.png"
WIDTH, HEIGHT = 1032, 600


def main() -> None:
    """Write the picture and print where. Raises SystemExit where there is no Chromium."""
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("no Chromium here (Debian: apt-get install -y chromium)")
    stepper = Stepper(capture("disconnect"))
    text = page_of(stepper.trace, stepper.last, whatif=stepper.whatif)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "stepper.html")
        file.write_text(text, encoding="utf-8")
        flags = list(CHROMIUM_FLAGS)
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(file.as_uri())
        page.wait_for_selector(".ags-row[aria-selected=true]")
        page.locator(".ags").screenshot(path=str(TARGET))
        browser.close()
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()

"""A Chromium, one JupyterLab for the whole session, and pages that hold a stepper alone."""

from pathlib import Path

import pytest

from tests.browser.alone import Alone
from tests.browser.lab_driver import CHROMIUM_FLAGS, Lab, jupyter_server

AXE = "axe.min.js"


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    # For one module at a time: while it lives, its event loop stands in the way of async tests.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(30_000)
    yield page
    page.close()


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab_address(chromium, lab_folder):
    assert chromium
    with jupyter_server(lab_folder) as address:
        yield address


@pytest.fixture
def lab(page, lab_address, lab_folder):
    lab = Lab(page, lab_address, lab_folder)
    yield lab
    lab.close()


@pytest.fixture
def alone(page, tmp_path):
    """A page that holds a stepper and nothing else; no kernel and no server stand behind it."""
    return Alone(page, tmp_path)


@pytest.fixture(scope="session")
def axe():
    """The script of axe-core, as the package brings it."""
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / AXE).read_text(encoding="utf-8")


@pytest.fixture
def violations(page, axe):
    """Return a function: what axe-core finds wrong with the stepper as it is now."""

    def find():
        page.evaluate(axe)
        found = page.evaluate("() => axe.run('.ags')")
        assert found["passes"]
        return [
            (rule["id"], node["html"]) for rule in found["violations"] for node in rule["nodes"]
        ]

    return find

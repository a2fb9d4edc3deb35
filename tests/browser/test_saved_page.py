"""A saved page in a real browser with the network off: it steps, asks nothing, and stays inert."""

import pytest

from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture
from agentlib.stepper.html_export import SavedStepper, of_capture, save_page
from agentlib.stepper.replay import Replay

pytestmark = pytest.mark.browser

# Tells of everything that the policy had to forbid, also before the first script runs.
WATCH = """window.forbidden = [];
document.addEventListener("securitypolicyviolation", (event) =>
    window.forbidden.push(`${event.violatedDirective} ${event.blockedURI}`));"""

ENDS = {5: "end, after event 4 of 4", 8: "event 8 of 8"}


class Offline:
    """Opens a saved page without a network, and keeps what it asked for and complained of."""

    def __init__(self, browser, folder):
        self.browser = browser
        self.file = folder / "saved.html"
        self.asked = []
        self.said = []

    def open(self, title, steppers, *, scripts=True, asked="", **context):
        save_page(self.file, title, steppers)
        opened = self.browser.new_context(
            offline=True,
            java_script_enabled=scripts,
            viewport={"width": 1200, "height": 900},
            **context,
        )
        page = opened.new_page()
        page.set_default_timeout(20_000)
        page.add_init_script(WATCH)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("console", lambda message: self.said.append(message.text))
        page.on("dialog", lambda dialog: self.said.append(dialog.message))
        page.goto(f"{self.file.as_uri()}{asked}")
        return page

    def check(self, page):
        assert page.evaluate("() => window.forbidden") == []
        assert self.said == []
        assert self.asked == [self.file.as_uri()]
        page.context.close()


@pytest.fixture
def offline(browser, tmp_path):
    return Offline(browser, tmp_path)


def test_it_steps_through_each_response_for_itself(offline):
    page = offline.open("two", [*of_capture("two.sse", capture("two_responses"))])
    page.locator(".ags-row").first.wait_for()
    assert page.locator(".ags").count() == 2
    first, second = page.locator(".ags").all()
    for stepper, last in ((first, 5), (second, 8)):
        stepper.locator(".ags-count").get_by_text(ENDS[last]).wait_for()
    second.focus()
    page.keyboard.press("ArrowLeft")
    second.locator(".ags-count").get_by_text("event 7 of 8").wait_for()
    assert first.locator(".ags-count").text_content() == ENDS[5]
    second.locator(".ags-raw-text").get_by_text("call_read_2").wait_for()
    assert "open it in a notebook" in first.locator(".ags-whatif").inner_text()
    assert page.locator(".ags-whatif button").all_text_contents() == ["share step"] * 2
    offline.check(page)


def test_hostile_streams_stay_inert(offline):
    hostile = [
        each
        for name in ("hostile", "hostile_released")
        for each in of_capture(f"</script><img src=x onerror=alert(1)>{name}", capture(name))
    ]
    evil = Capture.from_events(capture("hostile").events, "</title><script>alert(2)</script>")
    page = offline.open(evil.name, [*hostile, SavedStepper(evil.name, Replay(evil))])
    page.locator(".ags-row").first.wait_for()
    for stepper in page.locator(".ags").all():
        stepper.focus()
        page.keyboard.press("End")
    assert page.locator("img, iframe, a, textarea, main script:not([type])").count() == 0
    assert page.evaluate("() => [window.HOSTILE, window.pwned]") == [None, None]
    assert "onerror" in page.locator("h2").first.inner_text()
    offline.check(page)


def test_the_policy_forbids_what_a_page_must_not_do(offline):
    page = offline.open("x", [*of_capture("x.sse", capture("text_only"))])
    page.locator(".ags-row").first.wait_for()
    page.evaluate(
        """async () => {
            const image = document.createElement("img");
            image.setAttribute("onerror", "window.pwned = 1");
            image.src = "https://example.com/x.png";
            const script = document.createElement("script");
            script.textContent = "window.pwned = 2";
            document.body.append(image, script);
            await fetch("https://example.com/").catch(() => {});
        }"""
    )
    page.wait_for_function("() => window.forbidden.length >= 3")
    assert page.evaluate("() => window.pwned") is None
    kinds = {said.split()[0] for said in page.evaluate("() => window.forbidden")}
    assert kinds == {"img-src", "script-src-elem", "connect-src"} | ({"script-src-attr"} & kinds)
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_javascript_the_verdict_and_the_text_are_read(offline, scheme):
    steppers = [*of_capture("disconnect.sse", capture("disconnect"))]
    page = offline.open("disconnect.sse", steppers, scripts=False, color_scheme=scheme)
    text = page.locator("body").inner_text()
    assert "DISCARDED at the end of the stream, after event 8" in text
    assert "a hasty adapter would have executed 1 tool" in text
    assert page.title() == "disconnect.sse"
    dark = page.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor")
    assert (dark == "rgb(255, 255, 255)") is (scheme == "light")
    page.context.close()


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        ("", [5, 8]),
        ("#step=3", [3, 8]),
        ("#stepper=2&step=3", [5, 3]),
        ("#step=999", [5, 8]),
        ("#step=0", [0, 8]),
        ("#step=-1", [5, 8]),
        ("#step=1e3&x=<b>", [5, 8]),
        ("#stepper=3&step=1", [5, 8]),
    ],
)
def test_a_link_opens_its_step(offline, asked, steps):
    def seen():
        ranges = page.locator(".ags-range").all()
        return [int(each.input_value()) for each in ranges]

    page = offline.open("two", [*of_capture("two.sse", capture("two_responses"))], asked=asked)
    page.locator(".ags-row").nth(6).wait_for()
    assert seen() == steps
    page.evaluate("(hash) => { location.hash = hash; }", "#stepper=2&step=1")
    page.wait_for_function("() => document.querySelectorAll('.ags-range')[1].value === '1'")
    for place in (0, 1):
        page.get_by_role("button", name="share step").nth(place).click()
    links = page.locator(".ags-shared code").all_text_contents()
    asked = [f"#step={steps[0]}", "#stepper=2&step=1"]
    assert links == [f"{offline.file.as_uri()}{each}" for each in asked]
    page.context.close()

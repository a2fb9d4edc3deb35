"""The reports of an attack, whatever an agent has written; and how its own last words are read."""

import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlib.attack.last_words import error_of, is_uncaught
from agentlib.attack.report import as_html, as_junit
from agentlib.attack.results import MEANINGS, Report, Result
from agentlib.attack.run_command import Ended
from agentlib.attack.scenarios import SCENARIOS
from agentlib.attack.settings import Settings

NASTY = "\uffff\ufffe\ud800\udfff\x00\x08\x0b\x1f\x7f\x85\u2028]]><&\"'\U0010ffff\r\n\t"
# Every code point, lone surrogates too.
TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from(NASTY))


@given(TEXT, st.sampled_from(sorted(MEANINGS)), st.booleans())
def test_every_output_makes_a_valid_report(text, verdict, invalid):
    result = Result(
        SCENARIOS["content-filter"],
        text,
        verdict,
        text,
        ({"a": text},),
        text,
        status=1,
        output=text,
    )
    made = Report(Settings((text,)), "chat", True, text if invalid else "", [], [result])
    suite = ET.fromstring(as_junit(made).encode("utf-8"))
    green = not int(suite.get("failures")) and not int(suite.get("errors"))
    assert green == (made.status == 0)
    as_html(made).encode("utf-8")


def test_the_worst_comes_first():
    results = [Result(SCENARIOS["content-filter"], "edit", each) for each in reversed(MEANINGS)]
    made = Report(Settings(("edit",)), "chat", True, results=results)
    assert [each.verdict for each in made.worst_first] == list(MEANINGS)
    page = as_html(made)
    assert page.index("ran altered</th>") < page.index("unknown</th>") < page.index("safe</th>")
    assert "<main>" in page


NODE = """/app/x.js:3
throw new TypeError("x is bad")
^

TypeError: x is bad
    at Object.<anonymous> (/app/x.js:3:7)
    at node:internal/main/run_main_module:36:49 {
  code: 'E'
}

Node.js v20.1.0
"""
PYTHON = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
    f()
    ~^^
KeyError: 'k'
a note
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in <module>
  | ExceptionGroup: many (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: a
    +------------------------------------
"""


@pytest.mark.parametrize(
    ("output", "error", "uncaught"),
    [
        (NODE, "TypeError: x is bad", True),
        (PYTHON, "KeyError: 'k'", True),
        (GROUP, "ExceptionGroup: many (1 sub-exception)", True),
        ("panic: boom\n\ngoroutine 1 [running]:\nexit status 2\n", "panic: boom", True),
        ("asked twice\nno key\n", "no key", False),
        ("\n \n", "", False),
    ],
)
def test_the_error_is_named_and_not_what_is_written_after_it(output, error, uncaught):
    assert (error_of(output), is_uncaught(output)) == (error, uncaught)
    # A status of 0 is no crash, and what a function raises gets to its caller.
    assert bool(Ended(1, 0.1, output).crash) == uncaught
    assert Ended(0, 0.1, output).crash == Ended(1, 0.1, output, in_process=True).crash == ""


FAILING = """
from agentlib import probe

pytest_plugins = ["agentlib.attack.pytest_plugin"]


def test_it(hostile_provider):
    report = hostile_provider(lambda: None, tool="edit")
    assert report.safe, report
"""


def test_a_test_that_fails_shows_the_whole_report(tmp_path):
    (tmp_path / "conftest.py").write_text(FAILING.partition("\n\n\n")[0], encoding="utf-8")
    (tmp_path / "test_it.py").write_text(FAILING.partition("\n\n\n")[2], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 1
    _, _, section = ended.stdout.partition("- agentlib attack -")
    assert "invalid good-call (edit)" in " ".join(section.split())
    assert "it ended without asking a model; does it read OPENAI_BASE_URL" in " ".join(
        section.split()
    )

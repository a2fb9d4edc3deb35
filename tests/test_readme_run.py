"""The README's agent of one's own: the code as it stands there, against a local server."""

import asyncio
import re
from pathlib import Path

import pytest

from agentlib.faultserver.server import LoopbackServer, Reply
from agentlib.fixtures import capture
from agentlib.runtime.journal import FileJournal
from agentlib.runtime.outcomes import Finished, ProviderFailed

README = Path(__file__).resolve().parents[1] / "README.md"
READ, ANSWER = (Reply.stream(capture(name)) for name in ("success_1_read", "success_4_answer"))
CUT = Reply.stream(capture("success_1_read").cut(after=9))


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Run the README's `ask` against a server with these replies, in a folder of its own."""
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", README.read_text(encoding="utf-8"))
    (shown,) = [block for block in blocks if "Host(" in block]
    names = {}
    exec(compile(shown, "README.md", "exec"), names)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calculator.py").write_text("# It adds.\n", encoding="utf-8")

    def run(*replies, allowed=True):
        with LoopbackServer(replies) as server:
            monkeypatch.setenv("OPENAI_API_KEY", "sk-rehearsal")
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            return asyncio.run(names["ask"]("What is in it?", lambda _: allowed))

    return run


def test_a_call_that_is_allowed_runs_and_is_in_the_journal(ask):
    outcome = ask(READ, ANSWER)

    assert isinstance(outcome, Finished)
    (execution,) = outcome.executions
    assert execution.output == "# It adds.\n"
    journal = FileJournal("runs.sqlite")
    assert journal.output(outcome.run_id, execution.call.call_id) == "# It adds.\n"


def test_a_call_that_is_denied_does_not_run(ask):
    outcome = ask(READ, ANSWER, allowed=False)

    assert isinstance(outcome, Finished)
    assert all("It adds" not in each.output for each in outcome.executions)


def test_a_call_of_a_response_that_was_cut_is_asked_of_nobody(ask):
    outcome = ask(CUT)

    assert isinstance(outcome, ProviderFailed)
    assert outcome.executions == ()

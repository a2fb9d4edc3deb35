"""The decision runner: what each decision leads to, who hears of what, and how every run ends."""

import json

import pytest
from pydantic import BaseModel

from agentlib.decisions import DecisionContext, DecisionRunner, DecisionTool, ScriptedModelClient
from agentlib.decisions.failures import DecisionParseError, TransportError
from agentlib.decisions.prompt import build_messages
from agentlib.runtime.journal import FileJournal, MemoryJournal
from agentlib.runtime.workspace import ToolError

pytestmark = pytest.mark.anyio


class Path(BaseModel):
    path: str


class Nothing(BaseModel):
    pass


TOOLS = (
    DecisionTool("look", "Look at a file.", Path),
    DecisionTool("repair", "Repair it.", Path),
    DecisionTool("count", "Count.", Nothing),
)
CONTEXT = DecisionContext("Repair it.", TOOLS)


def says(kind, **fields):
    return json.dumps({"thought": "", "action": {"kind": kind, **fields}})


def tool(name, **given):
    return says("tool", name=name, input=given)


DONE, ASK = says("final_answer", answer="Done."), says("ask_user", question="Which?")
LOOK, REPAIR = tool("look", path="a.py"), tool("repair", path="a.py")


def look(given):
    if given.path != "a.py":
        raise ToolError(f"there is no file {given.path}")
    return "it is wrong"


def accept(_answer, _context):
    return None


def runner(*replies, verify=accept, **options):
    ran = options.pop("ran", [])

    def repair(given):
        ran.append(given.path)
        return "repaired"

    functions = options.pop("functions", {"look": look, "repair": repair})
    return DecisionRunner(ScriptedModelClient(replies), functions, verify, **options)


async def ended(*replies, **options):
    made = runner(*replies, **options)
    return await made.run(CONTEXT, "r1"), made.client


def told(client, number):
    return client.requests[number]["messages"][-1]["content"]


def broken(*_):
    raise ZeroDivisionError("division by zero")


ENDS = {
    "an answer": ([DONE], {}, "solved", "Done."),
    "a tool, then an answer": ([LOOK, REPAIR, DONE], {}, "solved", "Done."),
    "a question without a user": ([ASK], {}, "blocked", "Which?"),
    "a question with one": ([ASK, DONE], {"ask": lambda _: "Both."}, "solved", "Done."),
    "turns that run out": ([LOOK] * 3, {"turns": 2}, "exhausted", "no end after 2 turns"),
    "no decision": (["no"] * 3, {}, "failed", "DecisionParseError"),
    "no reply": ([TransportError("lost", retryable=False)], {}, "failed", "TransportError: lost"),
    "a tool that breaks": ([LOOK], {"functions": {"look": broken}}, "failed", "ZeroDivisionError"),
    "a tool without a function": ([LOOK], {"functions": {}}, "failed", "KeyError"),
    "a verifier that breaks": ([DONE], {"verify": broken}, "failed", "ZeroDivisionError"),
    "a user who breaks": ([ASK], {"ask": broken}, "failed", "ZeroDivisionError"),
    "phases that break": ([DONE], {"admit": broken}, "failed", "ZeroDivisionError"),
}


@pytest.mark.parametrize("what", ENDS)
async def test_every_run_ends_and_says_how(what):
    replies, options, end, text = ENDS[what]
    run, _ = await ended(*replies, **options)
    assert run.end == end
    assert text in run.text


SEEN = {
    "a result": (LOOK, {}, "it is wrong"),
    "what a tool cannot do": (tool("look", path="b.py"), {}, "error: there is no file b.py"),
    "an answer of the user's": (ASK, {"ask": lambda _: "Both."}, "Both."),
    "an answer that is not accepted": (
        DONE,
        {"verify": lambda _, c: None if c.observations else "no test ran"},
        "not accepted: no test ran",
    ),
}


@pytest.mark.parametrize("what", SEEN)
@pytest.mark.parametrize("native", [True, False])
async def test_what_the_model_can_mend_it_sees_next(what, native):
    reply, options, text = SEEN[what]
    run, client = await ended(reply, DONE, **options)
    assert run.end == "solved"
    assert run.steps[0].result == text
    assert told(client, 1) == f"Result: {text}"
    # The same context can go out in both protocols.
    assert text in str(build_messages(client_context(run), native_tools=native))


def client_context(run):
    from agentlib.decisions import Observation

    seen = [Observation(step.decision.action, step.result) for step in run.steps]
    return DecisionContext("Repair it.", TOOLS, tuple(seen))


async def test_what_the_system_did_the_model_never_sees():
    run, client = await ended(LOOK, TransportError("lost"), TransportError("lost"), DONE)
    assert run.end == "solved"
    assert client.requests[1] == client.requests[2] == client.requests[3]


async def test_tools_are_admitted_by_phase():
    def phase(context):
        return ("look", "repair") if context.observations else ("look",)

    ran = []
    run, client = await ended(REPAIR, LOOK, REPAIR, DONE, admit=phase, ran=ran)
    assert run.end == "solved"
    assert [step.admitted for step in run.steps] == [("look",), *[("look", "repair")] * 2]
    assert 'tool "repair" is not admitted (admitted: look)' in told(client, 1)
    assert ran == ["a.py"], "the first one was not yet admitted"


@pytest.mark.parametrize("journal", [MemoryJournal, None])
async def test_a_turn_is_claimed_before_it_acts_and_its_retries_are_recorded(journal, tmp_path):
    kept = MemoryJournal() if journal else FileJournal(tmp_path / "j.sqlite")
    run, _ = await ended(DecisionParseError("two calls"), LOOK, DONE, journal=kept)
    assert run.end == "solved"
    first, second = (json.loads(kept.output("r1", f"turn {n}")) for n in (1, 2))
    note = {"problem": "two calls", "excerpt": ""}
    assert first == {"result": "it is wrong", "retry_trace": [note]}
    assert second == {"result": "Done.", "retry_trace": []}


async def test_a_turn_that_was_begun_is_not_taken_again():
    journal, ran = MemoryJournal(), []
    functions = {"look": look, "repair": broken}
    run, _ = await ended(REPAIR, journal=journal, functions=functions)
    assert (run.end, journal.output("r1", "turn 1")) == ("failed", None)

    again, _ = await ended(REPAIR, journal=journal, ran=ran)
    assert again.end == "failed"
    assert "may have acted" in again.text
    assert ran == []


def test_the_runner_is_small_enough_to_be_read_in_one_go(root):
    text = (root / "agentlib" / "decisions" / "runner.py").read_text(encoding="utf-8")
    code = [line for line in text.partition("class DecisionRunner")[2].splitlines() if line.strip()]
    assert len(code) <= 80


def test_one_json_object_is_the_protocol_unless_functions_are_asked_for():
    assert "one JSON object" in build_messages(CONTEXT)[0]["content"]
    assert "one JSON object" not in build_messages(CONTEXT, native_tools=True)[0]["content"]

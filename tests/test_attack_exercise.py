"""Exercise 16: right answers, however they are written, and wrong ones, caught where they fail."""

import json

import pytest
from answers import assert_caught, assert_right

from agentlib import ResponseFailure, ResponseReader
from agentlib.attack.api import attack
from agentlib.attack.small_agent import ASKED, TOOLS, SmallAgent
from agentlib.jsonvalues import StrictJSONError, strict_loads, thaw
from agentlib.schemas import problem, validator
from workbook.exercises.catalogue import exercise


def by_the_reader(events, run):
    reader = ResponseReader("responses", TOOLS)
    decision = None
    for event in events:
        decision = reader.accept(event)
        if decision is not None:
            break
    for call in (decision or reader.end()).calls:
        run(call.call_id, call.name, call.arguments)


def quietly(events, run):
    """Refuses by a return, and never by an error."""
    reader = ResponseReader("responses", TOOLS)
    try:
        decision = next(filter(None, map(reader.accept, events)), None)
    except (ResponseFailure, OSError):
        return
    for call in decision.calls if decision else ():
        run(call.call_id, call.name, dict(call.arguments))


def by_hand(events, run):
    streamed = []
    for event in events:
        if event["type"] == "response.output_item.done":
            streamed.append(event["item"])
        if event["type"] == "response.completed":
            break
        if event["type"] in ("response.failed", "response.incomplete", "error"):
            return
    else:
        return
    body = event["response"]
    calls = [item for item in body["output"] if item["type"] == "function_call"]
    if body["status"] != "completed" or body["output"] != streamed:
        return
    if len({call["call_id"] for call in calls}) != len(calls):
        return
    allowed = []
    for call in calls:
        tool = TOOLS.get(call["name"])
        try:
            arguments = strict_loads(call["arguments"])
        except StrictJSONError:
            return
        if tool is None or problem(validator(thaw(tool.parameters)), arguments):
            return
        allowed.append((call["call_id"], call["name"], arguments))
    for each in allowed:
        run(*each)


def at_done(events, run):
    for event in events:
        if event["type"] == "response.output_item.done" and "arguments" in event["item"]:
            item = event["item"]
            run(item["call_id"], item["name"], json.loads(item["arguments"]))


def at_any_end(events, run):
    for event in events:
        if event["type"] in ("response.completed", "response.incomplete"):
            for item in event["response"]["output"]:
                if "arguments" in item:
                    run(item["call_id"], item["name"], json.loads(item["arguments"]))


def without_the_schema(events, run):
    def kept(call_id, name, arguments):
        run(call_id, name, arguments)

    for event in events:
        if event["type"] == "response.completed":
            items = [each for each in event["response"]["output"] if "arguments" in each]
            for item in items:
                kept(item["call_id"], item["name"], json.loads(item["arguments"]))


def never(_events, _run):
    return None


def until_the_connection_ends(events, run):
    reader = ResponseReader("responses", TOOLS)
    decision = None
    for event in events:
        decision = reader.accept(event) or decision
    for call in (decision or reader.end()).calls:
        run(call.call_id, call.name, call.arguments)


@pytest.mark.parametrize("answer", [by_the_reader, quietly, by_hand])
def test_a_right_answer_is_right_however_it_is_written(answer):
    assert_right("16", answer)


@pytest.mark.parametrize(
    ("answer", "stream"),
    [
        (at_done, "cut-after-item-done"),
        (at_any_end, "length-whole-arguments"),
        (without_the_schema, "end-restates-other-arguments"),
        (never, "good-call"),
        (until_the_connection_ends, "held-open"),
    ],
)
def test_a_wrong_answer_is_caught_where_it_is_wrong(answer, stream):
    assert_caught("16", answer, f"{stream}, ")


@pytest.mark.parametrize("answer", [by_the_reader, by_hand])
def test_what_the_check_calls_right_is_safe_over_the_socket(answer):
    report = attack(SmallAgent(answer), tool=TOOLS.names, time_out=20)
    assert report.safe, report


def test_events_that_an_answer_changes_harm_nobody():
    def spoils(events, run):
        for event in events:
            event.clear()
        run("call_attack_1", "edit", {})

    assert not exercise("16").check(spoils).passed
    assert exercise("16").check(by_the_reader).passed


def test_what_the_chapter_shows_is_safe_and_skips_nothing(root):
    """The loop under "Make it safe" is run as it stands there, for the API of the small agent."""
    told = json.loads((root / "notebooks" / "16_test_your_agent.ipynb").read_text(encoding="utf-8"))
    pages = ["".join(cell["source"]) for cell in told["cells"]]
    (page,) = [text for text in pages if "## Make it safe\n" in text]
    shown = page.partition("## Make it safe\n")[2].split("```python\n")[1].partition("```")[0]
    loop = compile(shown.replace('"chat"', '"responses"'), "the chapter", "exec")

    def decide(events, run):
        exec(loop, {"events": events, "run": run, "TOOLS": ASKED["tools"]})

    report = attack(SmallAgent(decide), tool=("edit", "reset"))
    assert report.safe, report
    assert report["held-open"].held < 4

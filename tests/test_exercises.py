"""The exercises: each stub fails and teaches, each solution passes, no right answer is wrong."""

import ast
import asyncio
import contextlib
import html
import inspect
import itertools
import json
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from answers import assert_caught, assert_right

from agentlib import OpenFailure, ResponseFailure, ResponseReader
from agentlib.fixtures import capture
from agentlib.providers.responses import ResponsesTranslator
from agentlib.recordings.capture import Capture
from agentlib.vocabulary import ToolArgsDelta
from workbook.exercises.catalogue import ROWS, exercise
from workbook.grading.grader import Exercise, Outcome, Trial, Wrong

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
CHECK_SECONDS = 2.0
MOST_MODULES = 60
# What the stub of a chapter teaches, in the words of its verdict.
TAUGHT = {
    "01": "and is asked again. An answer is the end of a run.",
    "02": "'fc_2' is an item ID, a place in this response's output.",
    "03": "one string is whole. The response is not complete.",
    "04": "Two calls of one tool, for two files.",
}


def chapter_of(number, folder=NOTEBOOKS):
    return next(folder.glob(f"{number}_*.ipynb"))


def function_in(path, name):
    """The reader's function as the cell of a notebook that defines it writes it."""
    space = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        text = "".join(cell["source"])
        if re.search(rf"^(?:def|class) {name}\b", text, re.MULTILINE):
            exec(compile(text, f"<{path.stem}>", "exec"), space)
            return space[name]
        imports = [n for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), "<imports>", "exec"), space)
    raise AssertionError(f"no cell of {path.name} defines {name}")


def name_of(task):
    return task.signature.partition("(")[0]


@pytest.fixture(params=ROWS)
def task(request):
    return exercise(request.param)


def test_each_stub_fails_on_a_stream_and_says_why(task):
    stub = function_in(chapter_of(task.number), name_of(task))
    verdict = task.check(stub)

    assert not verdict.passed
    assert verdict.where
    assert verdict.why
    assert TAUGHT.get(task.number, "") in verdict.why


@pytest.mark.exhaustive(keep=5)
def test_each_solution_passes_in_time(task):
    path = chapter_of(task.number, NOTEBOOKS / "solutions")
    solution = function_in(path, name_of(task))
    task.check(solution)
    start = time.perf_counter()
    verdict = task.check(solution)

    assert verdict.passed, verdict.text
    assert time.perf_counter() - start < CHECK_SECONDS
    assert verdict.streams >= 1


def test_each_exercise_says_its_size_and_has_hints(task):
    assert task.number == chapter_of(task.number).name[:2]
    assert 1 <= task.size <= 4
    assert 3 <= task.minutes <= 45
    assert len(task.hints.hints) >= 2
    assert name_of(task).isidentifier()
    assert repr(task).endswith(f"you write {task.signature}")


def test_an_exercise_loads_what_it_needs_and_no_other():
    code = (
        "import sys; from workbook import exercise; exercise('03');"
        "print(*(name for name in sys.modules if name.split('.')[0] in ('agentlib', 'workbook')))"
    )
    seen = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = seen.stdout.split()
    others = {f"workbook.exercises.{row.module}" for number, row in ROWS.items() if number != "03"}
    assert "workbook.exercises.may_run" in loaded
    assert others.isdisjoint(loaded)
    assert len(loaded) < MOST_MODULES, loaded


def test_an_unknown_exercise_is_said_to_be_one():
    with pytest.raises(ValueError, match="no exercise '99'; there are: 01, 02"):
        exercise("99")


# -------------------------------------------------------------- right answers, written in many ways


def bounded_while(model, history, tools, max_turns):
    entries, turns = tuple(history), 0
    while turns < max_turns:
        turns += 1
        decision = model.complete(entries, tools.catalog)
        entries += (decision.message(),)
        if not decision.calls:
            return entries
        entries += tuple(map(tools.run, decision.calls))
    raise TimeoutError


def bounded_recursion(model, history, tools, max_turns):
    if max_turns == 0:
        raise RuntimeError("no turn is left")
    decision = model.complete(history, tools.catalog)
    history = [*history, decision.message()]
    if not decision.calls:
        return history
    results = [tools.run(call) for call in decision.calls]
    return bounded_recursion(model, history + results, tools, max_turns - 1)


def bounded_before_the_last_calls_run(model, history, tools, max_turns):
    history = list(history)
    for turn in range(1, max_turns + 1):
        decision = model.complete(history, tools.catalog)
        history.append(decision.message())
        if not decision.calls:
            break
        if turn == max_turns:
            raise ValueError(f"{turn} turns and no answer")
        for call in decision.calls:
            history.append(tools.run(call))
    return history


def pending_by_translator(events):
    translator, pending = ResponsesTranslator(), {}
    for event in events:
        for neutral in translator.translate(event):
            if isinstance(neutral, ToolArgsDelta):
                pending.setdefault(neutral.call_id, []).append(neutral.text)
    return {call_id: "".join(parts) for call_id, parts in pending.items()}


def pending_with_match(events):
    items, pending = {}, {}
    for event in events:
        match event:
            case {"type": "response.output_item.added", "item": {"call_id": call_id, "id": item}}:
                items[item] = call_id
                pending[call_id] = event["item"]["arguments"]
            case {"type": "response.function_call_arguments.delta", "item_id": item}:
                if item not in items:
                    raise LookupError(item)
                pending[items[item]] += event["delta"]
    return pending


def pending_that_changes_its_input(events):
    items = {}
    while events and events[0]["type"] != "response.function_call_arguments.delta":
        event = events.pop(0)
        item = event.get("item", {})
        if "call_id" in item:
            items[item["id"]] = item["call_id"]
    pending = {}
    for event in events:
        if event["type"] == "response.output_item.added" and "call_id" in event["item"]:
            items[event["item"]["id"]] = event["item"]["call_id"]
        if "delta" in event and event["type"].startswith("response.function_call"):
            call_id = items[event.pop("item_id")]
            pending[call_id] = pending.get(call_id, "") + event["delta"]
    return pending


def may_run_by_the_gate(events):
    reader = ResponseReader("responses")
    try:
        for event in events:
            decision = reader.accept(event)
            if decision is not None:
                return [call.call_id for call in decision.calls]
    except ResponseFailure:
        pass
    return []


def may_run_as_a_set(events):
    ends = ("response.completed", "response.failed", "response.incomplete", "error")
    found = [event for event in events if event["type"] in ends][:1]
    if not found or found[0]["type"] != ends[0]:
        return set()
    body = found[0]["response"]
    whole = (body["status"], body["error"]) == ("completed", None)
    return {item["call_id"] for item in body["output"] if whole and "call_id" in item}


def may_run_as_a_generator(events):
    for event in events:
        kind = event["type"]
        if kind in {"response.failed", "response.incomplete", "error"}:
            return
        if kind == "response.completed":
            body = event["response"]
            if body.get("status") == "completed" and not body.get("error"):
                yield from (i["call_id"] for i in body["output"] if i["type"] == "function_call")
            return


def written(value):
    """A JSON value in one form for each: a float that is a whole number as that number."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dict):
        return str(sorted((name, written(inner)) for name, inner in value.items()))
    return str(list(map(written, value))) if isinstance(value, list) else json.dumps(value)


def no_doubles_in_pairs(evidence):
    def same(left, right):
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(same, left, right))
        return isinstance(left, bool) is isinstance(right, bool) and left == right

    values = [
        (call, value)
        for call, value in zip(evidence.calls, evidence.arguments, strict=True)
        if not isinstance(value, ValueError)
    ]
    for place, (call, value) in enumerate(values):
        for other, other_value in values[:place]:
            if call.name == other.name and same(value, other_value):
                return ["fail", f"{other.call_id} and {call.call_id} ask for the same"]
    return ["pass", ""]


def no_doubles_by_parsing_again(evidence):
    seen = set()
    for call in evidence.calls:
        try:
            value = json.loads(call.arguments)
        except ValueError:
            continue
        key = f"{call.name} {written(value)}"
        if key in seen:
            return "fail", key
        seen.add(key)
    return "pass", ""


def fault_by_an_edit(stream):
    return stream.stop("incomplete")


def fault_by_two_edits(stream):
    return stream.drop(len(stream.events)).drop(1).double(len(stream.events) - 3)


def fault_in_events_of_ones_own(stream):
    events = [{**event.data, "obfuscation": "none"} for event in stream.events]
    return Capture.from_events([*events[:-1], {"type": "error", "message": "lost"}], "mine")


def fault_in_half_of_the_events(stream):
    return Capture.from_events([event.data for event in stream.events][:-1])


RIGHT = {
    "01": (bounded_while, bounded_recursion, bounded_before_the_last_calls_run),
    "02": (pending_by_translator, pending_with_match, pending_that_changes_its_input),
    "03": (may_run_by_the_gate, may_run_as_a_set, may_run_as_a_generator),
    "04": (no_doubles_in_pairs, no_doubles_by_parsing_again),
    "06": (
        fault_by_an_edit,
        fault_by_two_edits,
        fault_in_events_of_ones_own,
        fault_in_half_of_the_events,
    ),
}


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize(
    ("number", "answer"),
    [pytest.param(n, each, id=each.__name__) for n, every in RIGHT.items() for each in every],
)
def test_a_right_answer_is_right_however_it_is_written(number, answer):
    assert_right(number, answer)


# ---------------------------------------------------------------------------- wrong answers, caught


def one_turn_too_many(model, history, tools, max_turns):
    return bounded_while(model, history, tools, max_turns + 1)


def returns_at_the_bound(model, history, tools, max_turns):
    try:
        return bounded_while(model, history, tools, max_turns)
    except TimeoutError:
        return history


def results_come_first(model, history, tools, max_turns):
    history = list(history)
    for _ in range(max_turns):
        decision = model.complete(history, tools.catalog)
        history += map(tools.run, decision.calls)
        history.append(decision.message())
        if not decision.calls:
            return history
    raise RuntimeError


def runs_the_first_call_only(model, history, tools, max_turns):
    history = list(history)
    for _ in range(max_turns):
        decision = model.complete(history, tools.catalog)
        history.append(decision.message())
        if not decision.calls:
            return history
        history.append(tools.run(decision.calls[0]))
    raise RuntimeError


def takes_a_failure_for_the_end(model, history, tools, max_turns):
    history = list(history)
    for _ in range(max_turns):
        try:
            decision = model.complete(history, tools.catalog)
        except ResponseFailure:
            return history
        history.append(decision.message())
        if not decision.calls:
            return history
        history += map(tools.run, decision.calls)
    raise RuntimeError


def tries_a_failed_turn_again(model, history, tools, max_turns):
    history = list(history)
    for _ in range(max_turns):
        try:
            decision = model.complete(history, tools.catalog)
        except ResponseFailure:
            decision = model.complete(history, tools.catalog)
        history.append(decision.message())
        if not decision.calls:
            return history
        history += map(tools.run, decision.calls)
    return history


def tries_a_failed_turn_again_and_stops(model, history, tools, max_turns):
    history = list(history)
    for _ in range(max_turns):
        try:
            decision = model.complete(history, tools.catalog)
        except ResponseFailure:
            continue
        history.append(decision.message())
        if not decision.calls:
            return history
        history += map(tools.run, decision.calls)
    raise RuntimeError


def writes_into_the_callers_list(model, history, tools, max_turns):
    for _ in range(max_turns):
        decision = model.complete(history, tools.catalog)
        history.append(decision.message())
        if not decision.calls:
            return history
        history += map(tools.run, decision.calls)
    raise RuntimeError


def pending_by_place(events):
    calls, items, pending = {}, set(), {}
    for event in events:
        if "call_id" in event.get("item", {}):
            items.add(event["item"]["id"])
            calls[event["output_index"]] = event["item"]["call_id"]
        if event["type"] == "response.function_call_arguments.delta":
            if event["item_id"] not in items:
                raise KeyError(event["item_id"])
            call_id = calls[event["output_index"]]
            pending[call_id] = pending.get(call_id, "") + event["delta"]
    return pending


def may_run_what_was_done_before(events):
    done = []
    for event in events:
        if event["type"] in {"response.failed", "response.incomplete", "error"}:
            return []
        if event["type"] == "response.output_item.done" and "call_id" in event["item"]:
            done.append(event["item"]["call_id"])
        if event["type"] == "response.completed":
            body = event["response"]
            return done if body["status"] == "completed" and not body["error"] else []
    return []


def no_doubles_up_to_what_does_not_parse(evidence):
    seen = []
    for call, value in zip(evidence.calls, evidence.arguments, strict=True):
        if isinstance(value, Exception):
            break
        key = (call.name, written(value))
        if key in seen:
            return "fail", "twice"
        seen.append(key)
    return "pass", ""


def no_doubles_by_how_numbers_are_written(evidence):
    seen = []
    for call, value in zip(evidence.calls, evidence.arguments, strict=True):
        if not isinstance(value, Exception):
            key = (call.name, json.dumps(value, sort_keys=True))
            if key in seen:
                return "fail", "twice"
            seen.append(key)
    return "pass", ""


def pending_by_position(events):
    calls, pending = [], {}
    for event in events:
        if "call_id" in event.get("item", {}):
            calls.append(event["item"]["call_id"])
        if event["type"] == "response.function_call_arguments.delta":
            pending[calls[-1]] = pending.get(calls[-1], "") + event["delta"]
    return pending


def pending_that_forgives(events):
    items, pending = {}, {}
    for event in events:
        item = event.get("item", {})
        if "call_id" in item:
            items[item["id"]] = item["call_id"]
        if event["type"] == "response.function_call_arguments.delta":
            call_id = items.get(event["item_id"], event["item_id"])
            pending[call_id] = pending.get(call_id, "") + event["delta"]
    return pending


def pending_by_either_name(events):
    items, pending = {}, {}
    for event in events:
        item = event.get("item", {})
        if "call_id" in item:
            items.setdefault(item["call_id"], item["call_id"])
            items.setdefault(item["id"], item["call_id"])
        if event["type"] == "response.function_call_arguments.delta":
            call_id = items[event["item_id"]]
            pending[call_id] = pending.get(call_id, "") + event["delta"]
    return pending


def may_run_when_all_are_done(events):
    kinds = [event["type"] for event in events]
    if "response.function_call_arguments.done" not in kinds:
        return []
    return [e["item"]["call_id"] for e in events if "call_id" in e.get("item", {})]


def may_run_at_any_end(events):
    for event in events:
        if event["type"] in {"response.completed", "response.incomplete"}:
            return [i["call_id"] for i in event["response"]["output"] if "call_id" in i]
    return []


def may_run_without_asking_the_body(events):
    for event in events:
        if event["type"] == "response.completed":
            return [i["call_id"] for i in event["response"]["output"] if "call_id" in i]
    return []


def may_run_what_comes_after(events):
    ends = [event["response"] for event in events if event["type"] == "response.completed"]
    if ends and ends[0]["status"] == "completed" and not ends[0]["error"]:
        return list({e["item"]["call_id"] for e in events if "call_id" in e.get("item", {})})
    return []


def no_doubles_by_text(evidence):
    texts = [(call.name, call.arguments) for call in evidence.calls]
    return ("pass", "") if len(set(texts)) == len(texts) else ("fail", "twice")


def no_doubles_by_equality(evidence):
    seen = []
    for call, value in zip(evidence.calls, evidence.arguments, strict=True):
        if (call.name, value) in seen:
            return "fail", "twice"
        seen.append((call.name, value))
    return "pass", ""


def no_doubles_that_raises(evidence):
    texts = [
        call.name + json.dumps(json.loads(call.arguments), sort_keys=True)
        for call in evidence.calls
    ]
    return ("pass", "") if len(set(texts)) == len(texts) else ("fail", "twice")


def no_doubles_side_by_side(evidence):
    pairs = list(zip(evidence.calls, evidence.arguments, strict=True))
    for (left, a), (right, b) in itertools.pairwise(pairs):
        if left.name == right.name and repr(a) == repr(b):
            return "fail", "twice"
    return "pass", ""


def no_doubles_as_a_truth(evidence):
    return no_doubles_in_pairs(evidence)[0] == "pass"


def no_doubles_without_a_reason(evidence):
    return no_doubles_in_pairs(evidence)[0], ""


def fault_of_another_stream(_stream):
    return capture("disconnect")


def fault_at_a_fixed_event(stream):
    return stream.cut(after=16)


def fault_in_a_fixed_text(stream):
    return stream.replace("calculator.py", "another.py", event=18)


def fault_that_is_none(stream):
    return stream


def fault_too_early(stream):
    return stream.cut(after=2)


def fault_of_no_form(stream):
    return stream.events[:-1]


WRONG = {
    "01": {
        one_turn_too_many: ("endless, max_turns=3", "a turn too many, turn 4"),
        returns_at_the_bound: ("endless, max_turns=3", "as if the run were over"),
        results_come_first: ("interleaved, max_turns=2", "refused with status 400"),
        runs_the_first_call_only: ("interleaved, max_turns=2", "refused with status 400"),
        takes_a_failure_for_the_end: ("disconnect, max_turns=10", "as if the run were over"),
        tries_a_failed_turn_again_and_stops: ("disconnect, max_turns=10", "is asked again"),
        writes_into_the_callers_list: ("text_only, max_turns=1", "own list is changed"),
        tries_a_failed_turn_again: ("endless, max_turns=3", "as if the run were over"),
    },
    "02": {
        pending_by_position: ("interleaved, event 5:", "whose item its item_id names"),
        pending_by_place: ("no places, event", "Every event so far is in order"),
        pending_that_forgives: ("a fragment of fc_7, event 13:", "which was never added"),
        pending_by_either_name: ("crossed IDs, event 6:", "whose item its item_id names"),
    },
    "03": {
        may_run_when_all_are_done: ("success_3_test, event 5:", "one string is whole"),
        may_run_what_was_done_before: ("an item left out at the end, event 18:", "is not among it"),
        may_run_at_any_end: ("incomplete, event 15:", "The response is incomplete"),
        may_run_without_asking_the_body: ("status_disagrees, event 8:", "its body does not"),
        may_run_what_comes_after: ("after_completed, event 11:", "first terminal event"),
    },
    "04": {
        no_doubles_by_text: ("another order, event", "the objects are equal"),
        no_doubles_up_to_what_does_not_parse: ("two after a malformed call, event", "for itself"),
        no_doubles_by_how_numbers_are_written: ("1 and 1.0, event", "one number"),
        no_doubles_by_equality: ("one and true, event", "1 == True"),
        no_doubles_that_raises: ("a malformed call, event", "A check never raises"),
        no_doubles_side_by_side: ("first and third, event", "do not stand side by side"),
        no_doubles_as_a_truth: ("text_only, event", "returns its finding"),
        no_doubles_without_a_reason: ("an edit twice, event", "says why"),
    },
    "06": {
        fault_of_another_stream: ("success_2_edit, 18", "This is another stream."),
        fault_at_a_fixed_event: ("success_3_test, 7", "Count from the end: len(stream.events)."),
        fault_in_a_fixed_text: ("success_3_test, 7", "Count from the end"),
        fault_that_is_none: ("success_2_edit, 18", "The gate releases this stream"),
        fault_too_early: ("success_2_edit, 18", "A hasty adapter runs nothing"),
        fault_of_no_form: ("success_2_edit, 18", "returns a damaged one"),
    },
}


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize(
    ("number", "answer"),
    [pytest.param(n, each, id=each.__name__) for n, every in WRONG.items() for each in every],
)
def test_a_wrong_answer_is_caught_where_it_is_wrong(number, answer):
    assert_caught(number, answer, *WRONG[number][answer])


# ------------------------------------------------------- broken code gets a verdict, never an error


def prints_and_raises(events):
    print("looking at", len(events), "events")  # noqa: T201
    return events[-1]["item"]


def never_ends(_events):
    while True:
        pass


def never_ends_and_catches_everything(_events):
    while True:
        with contextlib.suppress(Exception):
            len([])


async def waits(_events):
    await asyncio.sleep(0)


def exits(_events):
    raise SystemExit(3)


def is_not_written(_events):
    raise NotImplementedError


class Odd:
    """A value that breaks whoever looks at it."""

    def __repr__(self):
        raise RuntimeError("no form")


def returns_something_odd(_events):
    return [Odd()]


BROKEN = {
    prints_and_raises: "nothing in these events is a reason to raise",
    never_ends: "waits for what never comes",
    never_ends_and_catches_everything: "waits for what never comes",
    waits: "write it with a plain def",
    exits: "nothing in these events is a reason to raise",
    is_not_written: "not written yet",
    returns_something_odd: "",
}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("answer", BROKEN, ids=lambda answer: answer.__name__)
def test_broken_code_gets_a_verdict_in_time(answer):
    start = time.perf_counter()
    verdict = exercise("03").check(answer)

    assert not verdict.passed
    assert BROKEN[answer] in verdict.why
    assert time.perf_counter() - start < CHECK_SECONDS + 1


def test_the_verdict_names_the_line_and_what_was_printed():
    text = exercise("03").check(prints_and_raises).text

    assert "raised IndexError: list index out of range (line 3 of your function)" in text
    assert "printed    looking at 0 events" in text


def test_nothing_of_the_readers_prints_floods_the_page(capsys):
    exercise("03").check(prints_and_raises)

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "expected your function, saw None"),
        ("may_run", "expected your function, saw 'may_run'"),
        (lambda: None, "it is called as may_run(events), and yours is <lambda>()"),
        (lambda _events, _reader: [], "and yours is <lambda>(_events, _reader)"),
        (len, "returns a list of call IDs"),
    ],
)
def test_what_is_no_such_function_is_said_plainly(answer, said):
    assert said in exercise("03").check(answer).why


@pytest.mark.parametrize("value", [None, True, "call_1", 7, {"call_1": True}, [None], [["a"]]])
def test_a_value_of_another_form_is_wrong_and_no_error(value):
    for task in map(exercise, ROWS):
        count = task.signature.count(",") + 1

        def answer(*_arguments, value=value):
            return value

        answer.__signature__ = inspect.Signature(
            [inspect.Parameter(f"a{n}", inspect.Parameter.POSITIONAL_ONLY) for n in range(count)]
        )
        assert not task.check(answer).passed


def test_an_interrupt_by_the_reader_gets_out():
    def interrupted(_events):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exercise("03").check(interrupted)


# ------------------------------------------------------------------------------------ what is shown


def failing(why="why", value="value"):
    trial = Trial("stream", "event 1", lambda: (0,), lambda _outcome: Wrong(why, "expected"))
    task = Exercise("00", "title", 1, 5, "answer(n)", lambda: [trial], ("first", "second"))
    return task, task.check(lambda _n: value)


def test_hostile_text_in_a_verdict_is_text():
    hostile = '<img src=x onerror="alert(1)">\u202e\x1b]0;'
    _, verdict = failing(why=hostile, value=hostile)

    assert "<img" not in verdict._repr_html_()
    for form in (verdict.text, verdict._repr_html_()):
        assert "\u202e" not in form
        assert "\x1b" not in form


def test_both_forms_of_a_verdict_say_the_same():
    for verdict in (failing()[1], exercise("03").check(may_run_as_a_set)):
        words = html.unescape(re.sub(r"<[^>]+>", " ", verdict._repr_html_())).split()
        assert words == repr(verdict).split()


def test_a_long_value_is_cut():
    assert len(failing(value="x" * 10_000)[1].text) < 500


def test_a_failed_trial_can_be_looked_at():
    verdict = exercise("03").check(may_run_at_any_end)

    assert verdict.capture.name == "incomplete"
    assert verdict.frame.index == verdict.event == 15
    assert verdict.frame.verdict == "discarded"
    assert exercise("03").check(may_run_as_a_set).frame is None


def test_hints_unfold_and_have_a_text():
    task, _ = failing()

    assert repr(task.hint(1)) == "hint 1: first"
    assert repr(task.hint(99)) == "hint 2: second"
    assert repr(task.hints) == "hint 1: first\nhint 2: second"
    assert task.hints._repr_html_().count("<details><summary>Hint ") == 2


def test_an_outcome_says_what_was_done():
    assert Outcome(value=[1]).shown == "returned [1]"
    assert Outcome(error=KeyError("a")).shown == "raised KeyError: 'a'"
    assert Outcome(error=RuntimeError()).shown == "raised RuntimeError"


def test_a_check_leaves_the_fixtures_alone():
    before = capture("interleaved").source
    exercise("02").check(pending_that_changes_its_input)

    assert capture("interleaved").source == before


# ----------------------------------------------------------------------------- retry, in wrong ways

PASSING = (408, 409, 425, 429)


def retry(failure, number, keyed, *, last=3, statuses=PASSING, longest=20, doubt=None, quota=True):
    """The right answer, with one thing to get wrong."""
    if not isinstance(failure, OpenFailure) or number >= last:
        return None
    if failure.status is None:
        again = failure.sent == "not sent" or (keyed if doubt is None else doubt)
    else:
        again = failure.status in statuses or failure.status >= 500
    if not again or (quota and failure.code == "insufficient_quota"):
        return None
    if failure.retry_after is not None:
        return failure.retry_after if failure.retry_after <= longest else None
    return 0.25 * 2 ** (number - 1)


def from_a_table_of_cases(failure, number, keyed):
    """Right for each case that the chapter shows, and for no other."""
    shown = {(None, None), (500, None), (503, None), (429, 2.0), (503, 3.0), (429, 0.0)}
    seen = getattr(failure, "status", None), getattr(failure, "retry_after", None)
    return retry(failure, number, keyed) if seen in shown else None


WRONG_RETRIES = {
    "a table of some cases": from_a_table_of_cases,
    "a wait of 0 taken for none": lambda failure, number, keyed: (
        None
        if retry(failure, number, keyed) is None
        else getattr(failure, "retry_after", None) or 0.25 * 2 ** (number - 1)
    ),
    "a wait of an hour cut to 20 s": lambda failure, number, keyed: (
        min(20, wait) if (wait := retry(failure, number, keyed, longest=1e9)) is not None else None
    ),
    "perhaps sent, and sent again": partial(retry, doubt=True),
    "perhaps sent, whatever the key": partial(retry, doubt=False),
    "one opening more": partial(retry, last=4),
    "one opening less": partial(retry, last=2),
    "a quota waited for": partial(retry, quota=False),
    **{
        f"no retry of {status}": partial(retry, statuses=tuple({*PASSING} - {status}))
        for status in PASSING
    },
    **{
        f"a retry of {status}": partial(retry, statuses=(*PASSING, status)) for status in (401, 404)
    },
}


@pytest.mark.parametrize("answer", WRONG_RETRIES.values(), ids=WRONG_RETRIES)
def test_a_wrong_answer_to_what_to_retry_is_caught(answer):
    assert_right("05", retry)
    assert not exercise("05").check(answer).passed

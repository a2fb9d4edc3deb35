"""What is tolerated of servers, by name: each flag does its one thing, and none makes up an end."""

import copy
import json
import re
import subprocess
import sys
from itertools import count

import pytest
from streams import (
    ONE_CALL,
    STORIES,
    TEXT_THEN_CALL,
    THREE_CALLS,
    Call,
    Framing,
    Say,
    Story,
    tell,
)
from streams import TOOLS as RESPONSES_TOOLS
from wires import (
    ARGUMENTS,
    TOOLS,
    call,
    chunk,
    one_call,
    one_tool,
    read,
    rejected,
    released,
    text,
    usage_chunk,
)

from agentlib import ResponseReader
from agentlib.errors import AgentlibError, UnknownFlag
from agentlib.gate import CHECK_NAMES
from agentlib.inspection.report import inspect_capture
from agentlib.jsonvalues import thaw
from agentlib.model import StreamingModel
from agentlib.providers.compat import FLAGS, check_flags, flags_for
from agentlib.providers.registry import PROVIDERS
from agentlib.recordings.capture import Capture
from agentlib.stepper.replay import Replay
from agentlib.stepper.trace import build_trace

ALL = tuple(FLAGS)


def responses(events, **options):
    return read("responses", events, RESPONSES_TOOLS, **options)


def said(decision):
    calls = [(c.call_id, c.name, thaw(c.arguments)) for c in decision.calls]
    return decision.text, decision.refusal, calls, decision.usage


# ------------------------------------------------------------------- servers that break the rules


def rotate(events):
    """As GitHub Copilot: a new ID for the response and for the item, on every event."""
    numbers = count(1)
    for event in events:
        if "response" in event:
            event["response"]["id"] = f"capture-id-{next(numbers)}"
            for item in event["response"]["output"]:
                item["id"] = f"capture-id-{next(numbers)}"
        if "item" in event:
            event["item"]["id"] = f"capture-id-{next(numbers)}"
        if "item_id" in event:
            event["item_id"] = f"capture-id-{next(numbers)}"
    return events


def without_item_ids(events):
    for event in events:
        event.pop("item_id", None)
        items = [event["item"]] if "item" in event else event.get("response", {}).get("output", ())
        for item in items:
            del item["id"]
    return events


def restating_nothing(events):
    events[-1]["response"]["output"] = []
    return events


def without_output(events):
    del events[-1]["response"]["output"]
    return events


def never_created(events):
    return [e for e in events if e["type"] not in ("response.created", "response.in_progress")]


def begun_in_progress(events):
    return [event for event in events if event["type"] != "response.created"]


def without_call_ids(events):
    for event in events:
        items = [event["item"]] if "item" in event else event.get("response", {}).get("output", ())
        for item in items:
            item.pop("call_id", None)
    return events


def with_empty_call_ids(events):
    for event in without_call_ids(events):
        if event.get("item", {}).get("type") == "function_call":
            event["item"]["call_id"] = ""
    return events


def spoil_deltas(events):
    """The deltas say something else than what restates them."""
    for event in events:
        if event["type"].endswith((".delta",)):
            event["delta"] = event["delta"].swapcase()
    return events


def keep_last_delta(events):
    """As vLLM once: the end of what was meant comes only with the done."""
    kinds = [event["type"] for event in events]
    last = {kind: at for at, kind in enumerate(kinds) if kind.endswith(".delta")}
    return [event for at, event in enumerate(events) if at not in last.values()]


def empty_text_done(events):
    for event in events:
        if event["type"] == "response.output_text.done":
            event["text"] = ""
    return events


def counted_across_items(events):
    for event in events:
        if "content_index" in event:
            event["content_index"] += 1
    return events


RESPONSES_QUIRKS = {
    "rotate": (rotate, "rotating-ids"),
    "without_item_ids": (without_item_ids, "rotating-ids"),
    "restating_nothing": (restating_nothing, "terminal-restates-nothing"),
    "without_output": (without_output, "terminal-restates-nothing"),
    "never_created": (never_created, "missing-opening"),
    "begun_in_progress": (begun_in_progress, "missing-opening"),
    "without_call_ids": (without_call_ids, "call-without-id"),
    "with_empty_call_ids": (with_empty_call_ids, "call-without-id"),
    "spoil_deltas": (spoil_deltas, "corrected-by-done"),
    "keep_last_delta": (keep_last_delta, "corrected-by-done"),
    "empty_text_done": (empty_text_done, "corrected-by-done"),
    "counted_across_items": (counted_across_items, "content-index-across-items"),
}


def chat_without_ids(events):
    return [{**event, "id": ""} for event in events]


def chat_calls_without_ids(events):
    for event in events:
        for fragment in event["choices"][0]["delta"].get("tool_calls", ()):
            fragment.pop("id", None)
    return events


def chat_without_reason(events):
    for event in events:
        event["choices"][0]["finish_reason"] = None
    return events


def chat_rotating(events):
    return [{**event, "id": f"chat_{n}"} for n, event in enumerate(events)]


def chat_in_other_words(events):
    events[-1]["choices"][0]["finish_reason"] = "tool_use"
    return events


def chat_done_early(events):
    """A finish reason stands where the call begins, and its arguments come after it."""
    events[1]["choices"][0]["finish_reason"] = "tool_calls"
    return events


CHAT_QUIRKS = {
    "rotating": (chat_rotating, "rotating-ids"),
    "without_ids": (chat_without_ids, "missing-opening"),
    "calls_without_ids": (chat_calls_without_ids, "call-without-id"),
    "without_reason": (chat_without_reason, "done-without-reason"),
    "in_other_words": (chat_in_other_words, "other-finish-words"),
    "done_early": (chat_done_early, "early-finish-reason"),
}


def gemini_calls(call_id="f_1"):
    """Return a call in pieces, as Gemini streams it."""
    begun = {"id": call_id, "name": "read_file", "willContinue": True}
    pieces = [{"jsonPath": "$.path", "stringValue": "src/app.py"}]
    calls = [begun, {"partialArgs": pieces, "willContinue": True}, {}]
    parts = [{"text": "I look."}, *({"functionCall": call} for call in calls)]
    chunks = [{"content": {"parts": [part]}} for part in parts]
    return [
        {"candidates": [candidate], "responseId": "r_1"}
        for candidate in (*chunks, {"finishReason": "STOP"})
    ]


def gemini_without_ids(events):
    return [{**event, "responseId": ""} for event in events]


def gemini_unended(events):
    return [*events[:-2], events[-1]]


def gemini_unended_beside(events):
    last = {**events[-3]["candidates"][0], "finishReason": "STOP"}
    return [*events[:-3], {**events[-3], "candidates": [last]}]


GEMINI_QUIRKS = {
    "without_ids": (gemini_without_ids, "missing-opening"),
    "unended": (gemini_unended, "unended-call"),
    "unended_beside": (gemini_unended_beside, "unended-call"),
}


def input_in_the_start(events):
    for event in events:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            event["content_block"]["input"] = json.loads(ARGUMENTS)
    kinds = ("input_json_delta",)
    return [event for event in events if event.get("delta", {}).get("type") not in kinds]


MESSAGES_QUIRKS = {"input_in_the_start": (input_in_the_start, "whole-input")}
QUIRKS = [
    *(("responses", *quirk) for quirk in RESPONSES_QUIRKS.values()),
    *(("chat", *quirk) for quirk in CHAT_QUIRKS.values()),
    *(("messages", *quirk) for quirk in MESSAGES_QUIRKS.values()),
    *(("gemini", *quirk) for quirk in GEMINI_QUIRKS.values()),
]
quirks = pytest.mark.parametrize(("provider", "spoil", "flag"), QUIRKS)


def spoiled(provider, spoil, story=TEXT_THEN_CALL):
    if provider == "responses":
        return spoil(tell(story))
    own = {"chat": one_call, "gemini": gemini_calls, "messages": one_tool}
    return spoil(copy.deepcopy(own[provider]()))


def ask(provider, events, **options):
    tools = RESPONSES_TOOLS if provider == "responses" else TOOLS
    return read(provider, copy.deepcopy(events), tools, **options)


def unmarked(outcome):
    """Return what was said, with each synthetic call ID replaced by its place."""
    text, refusal, calls, usage = said(outcome.decision)
    return text, refusal, [call[1:] for call in calls], usage


# ------------------------------------------------------------------------------------ the table


def test_the_table_says_everything_of_each_flag():
    for name, flag in FLAGS.items():
        assert flag.name == name == name.lower()
        assert min(map(len, (flag.does, flag.seen, flag.relaxes, flag.protects))) > 20
        assert flag.checks
        assert set(flag.checks) <= set(CHECK_NAMES)
        assert bool(flag.filters) is not flag.of_recordings
        assert set(flag.filters) <= set(PROVIDERS)


def test_every_flag_has_a_server_here():
    assert {flag for _, _, flag in QUIRKS} == {n for n, f in FLAGS.items() if not f.of_recordings}
    assert {(provider, flag) for provider, _, flag in QUIRKS} == {
        (provider, name) for name, flag in FLAGS.items() for provider in flag.filters
    }


def test_the_flags_of_each_provider():
    assert set(flags_for("messages")) == {"whole-input", "missing-last-blank-line"}
    assert set(flags_for("chat")) == {
        *("missing-opening", "call-without-id", "done-without-reason", "rotating-ids"),
        *("other-finish-words", "early-finish-reason", "missing-last-blank-line"),
    }
    of_gemini = {"missing-opening", "unended-call", "missing-last-blank-line"}
    assert set(flags_for("gemini")) == of_gemini
    assert "rotating-ids" in flags_for("responses")


@pytest.mark.parametrize(
    "ask_for",
    [
        lambda name: check_flags([name]),
        lambda name: ResponseReader("responses", compat=[name]),
        lambda name: ResponseReader("messages", compat=[name, "rotating-ids"]),
        lambda name: build_trace(Capture.from_events([]).responses[0], "chat", compat=[name]),
        lambda name: Replay(Capture.from_events([]), compat=[name]),
        lambda name: StreamingModel(None, "m", compat=[name]),
        lambda name: list(inspect_capture(Capture.from_events([]), "x", compat=[name])),
    ],
)
def test_an_unknown_flag_is_a_clear_error_that_lists_those_known(ask_for):
    with pytest.raises(UnknownFlag) as raised:
        ask_for("rotating")
    assert isinstance(raised.value, AgentlibError)
    assert "'rotating'" in str(raised.value)
    assert all(name in str(raised.value) for name in ALL)


# ------------------------------------------------------------------------- each does its one thing


@quirks
def test_without_its_flag_such_a_server_is_refused_and_with_it_released(provider, spoil, flag):
    events = spoiled(provider, spoil)
    others = [name for name in ALL if name != flag]
    assert ask(provider, events).decision is None
    assert ask(provider, events, compat=others).decision is None
    outcome = ask(provider, events, compat=[flag])
    whole = ask(provider, spoiled(provider, lambda events: events))
    assert outcome.failure is None, outcome.failure
    assert unmarked(outcome) == unmarked(whole)
    assert any(note.startswith(f"{flag}: ") for note in outcome.reader.notes)


@quirks
def test_all_flags_together_release_it_too(provider, spoil, flag):
    outcome = ask(provider, spoiled(provider, spoil), compat=ALL)
    assert outcome.failure is None, outcome.failure
    assert {note.split(":")[0] for note in outcome.reader.notes} == {flag}


@pytest.mark.parametrize("story", STORIES.values(), ids=list(STORIES))
def test_a_server_that_keeps_the_rules_is_read_as_ever(story):
    for flags in (*([name] for name in ALL), ALL):
        outcome = responses(tell(story), compat=flags)
        assert said(outcome.decision) == said(responses(tell(story)).decision)
        assert outcome.reader.notes == []
    healthy = (("chat", one_call()), ("messages", one_tool()), ("gemini", gemini_calls()))
    for provider, events in healthy:
        outcome = released(provider, events, compat=ALL)
        assert said(outcome.decision) == said(released(provider, events).decision)
        assert outcome.reader.notes == []


def test_what_a_filter_is_given_it_leaves_as_it_was():
    for provider, spoil, flag in QUIRKS:
        events = spoiled(provider, spoil)
        before = copy.deepcopy(events)
        tools = RESPONSES_TOOLS if provider == "responses" else TOOLS
        read(provider, events, tools, compat=[flag])
        assert events == before


# ------------------------------------------------------------------------- and none makes up an end

BODY = {"id": "resp_1", "status": "incomplete", "output": []}
ENDS = {
    "cut": [],
    "failed": [{"type": "response.failed", "response": {**BODY, "status": "failed"}}],
    "token limit": [
        {
            "type": "response.incomplete",
            "response": {**BODY, "incomplete_details": {"reason": "max_output_tokens"}},
        }
    ],
    "filter": [
        {
            "type": "response.incomplete",
            "response": {**BODY, "incomplete_details": {"reason": "content_filter"}},
        }
    ],
    "error": [{"type": "error", "message": "overloaded"}],
    "nested error": [{"error": {"message": "overloaded"}}],
    "body says incomplete": [{"type": "response.completed", "response": BODY}],
    "body says failed": [{"type": "response.completed", "response": {**BODY, "status": "failed"}}],
    "body has an error": [
        {"type": "response.completed", "response": {**BODY, "status": "completed", "error": {}}}
    ],
    "body has no status": [{"type": "response.completed", "response": {"id": "resp_1"}}],
}
SHORT = Story((Say(("I look.",)), Call("read_file", '{"path": "a.py"}', "call_a")))
SETS = [*([name] for name in ALL), list(ALL)]


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("flags", SETS, ids="+".join)
@pytest.mark.parametrize("end", ENDS.values(), ids=list(ENDS))
def test_no_flag_releases_a_response_that_was_cut_failed_or_incomplete(flags, end):
    for _, spoil, _ in (quirk for quirk in QUIRKS if quirk[0] == "responses"):
        events = spoil(tell(SHORT, Framing(piece=9)))
        stopped = [{**event, "sequence_number": 999} for event in end]
        for length in range(len(events)):
            outcome = responses([*events[:length], *stopped], compat=flags)
            assert outcome.decision is None, (spoil.__name__, length)


@pytest.mark.parametrize("flags", SETS, ids="+".join)
@pytest.mark.parametrize("status", ["in_progress", "incomplete", "failed", None])
def test_no_flag_releases_a_whole_response_whose_body_says_otherwise(flags, status):
    for _, spoil, _ in (quirk for quirk in QUIRKS if quirk[0] == "responses"):
        events = spoil(tell(ONE_CALL))
        events[-1]["response"]["status"] = status
        assert responses(events, compat=flags).decision is None, spoil.__name__


CHAT_ENDS = {
    "length": chunk(reason="length"),
    "filter": chunk(reason="content_filter"),
    "function call": chunk(reason="function_call"),
    "error": {"error": {"message": "overloaded"}},
    "flat error": {"object": "error", "message": "overloaded"},
}


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("flags", SETS, ids="+".join)
@pytest.mark.parametrize("end", CHAT_ENDS.values(), ids=list(CHAT_ENDS))
def test_no_flag_releases_a_chat_that_failed_or_is_incomplete(flags, end, done):
    for spoil, _ in CHAT_QUIRKS.values():
        events = spoil(copy.deepcopy(one_call()))[:-1]
        for length in range(len(events) + 1):
            outcome = read("chat", [*events[:length], end], done=done, compat=flags)
            assert outcome.decision is None


@pytest.mark.parametrize("flags", SETS, ids="+".join)
def test_no_flag_releases_a_chat_that_was_cut(flags):
    for spoil, _ in CHAT_QUIRKS.values():
        events = spoil(copy.deepcopy(one_call()))
        for length in range(len(events)):
            assert read("chat", events[:length], done=False, compat=flags).decision is None


@pytest.mark.parametrize("flags", SETS, ids="+".join)
def test_no_flag_releases_a_message_that_was_cut_or_stopped(flags):
    for length in range(len(one_tool())):
        assert rejected("messages", one_tool()[:length], compat=flags)
    for reason in ("max_tokens", "refusal", "pause_turn", None):
        assert rejected("messages", one_tool(reason), compat=flags)


def test_done_is_believed_only_where_every_call_is_whole():
    whole = chat_without_reason(copy.deepcopy(one_call()))
    for length in range(len(whole) + 1):
        outcome = read("chat", whole[:length], compat=["done-without-reason"])
        calls = outcome.calls if outcome.decision is not None else None
        if length >= len(whole) - 1:
            assert calls == [("call_a", "read_file", {"path": "src/app.py"})]
        else:
            assert not calls


# ----------------------------------------------------------------------------- what still protects


@pytest.mark.parametrize("flags", SETS, ids="+".join)
def test_every_other_rule_still_holds(flags):
    def broken(change):
        events = tell(TEXT_THEN_CALL)
        change(events)
        return responses(events, compat=flags)

    def set_terminal(name, value):
        return lambda events: events[-1]["response"]["output"][-1].__setitem__(name, value)

    for change in (
        lambda events: events.insert(3, events[0]),
        lambda events: events.insert(4, events[3]),
        set_terminal("name", "run_tests"),
        set_terminal("call_id", "call_other"),
        set_terminal("status", "incomplete"),
        lambda events: events[-1]["response"]["output"].pop(),
        lambda events: events[-1]["response"]["output"].append(
            {**events[-1]["response"]["output"][-1], "id": "fc_new", "call_id": "call_new"}
        ),
    ):
        outcome = broken(change)
        assert outcome.decision is None, flags


@pytest.mark.parametrize(
    ("arguments", "check"),
    [('{"to": 3, "to": 4}', "strict_json"), ('{"to": "3"}', "schema"), ("[3]", "object")],
)
def test_corrected_arguments_pass_every_check_of_arguments(arguments, check):
    events = tell(TEXT_THEN_CALL)
    events[-1]["response"]["output"][-1]["arguments"] = arguments
    outcome = responses(events, compat=["corrected-by-done"])
    assert outcome.failure.check == check


def test_the_later_authority_wins_and_each_difference_is_a_note():
    def arguments(n):
        return json.dumps({"path": f"{n}.py"})

    events = tell(ONE_CALL)
    for event in events:
        if event["type"].endswith("arguments.done"):
            event["arguments"] = arguments("arguments-done")
        elif event["type"] == "response.output_item.done":
            event["item"]["arguments"] = arguments("item-done")
    events[-1]["response"]["output"][0]["arguments"] = arguments("terminal")
    outcome = responses(events, compat=["corrected-by-done"])
    assert said(outcome.decision)[2] == [("call_a", "read_file", {"path": "terminal.py"})]
    assert len(outcome.reader.notes) == 3
    assert "by the terminal event" in outcome.reader.notes[-1]
    events[-1]["response"]["output"] = []
    flags = ["corrected-by-done", "terminal-restates-nothing"]
    outcome = responses(events, compat=flags)
    assert said(outcome.decision)[2] == [("call_a", "read_file", {"path": "item-done.py"})]


def test_a_correction_keeps_the_limits():
    events = tell(ONE_CALL)
    events[-1]["response"]["output"][0]["arguments"] = '{"path": "%s"}' % ("x" * 20_000)
    assert responses(events, compat=["corrected-by-done"]).failure.check == "limits"
    events = tell(TEXT_THEN_CALL)
    events[-1]["response"]["output"][0]["content"][0]["text"] = "x" * 70_000
    assert responses(events, compat=["corrected-by-done"]).failure.check == "limits"


def test_an_output_that_is_not_empty_is_taken_at_its_word():
    events = tell(THREE_CALLS)
    del events[-1]["response"]["output"][-1]
    assert responses(events, compat=["terminal-restates-nothing"]).failure.check == "none_omitted"


def test_an_item_that_was_not_done_is_not_rebuilt():
    events = [e for e in tell(ONE_CALL) if e["type"] != "response.output_item.done"]
    events[-1]["response"]["output"] = []
    assert responses(events, compat=["terminal-restates-nothing"]).failure.check == "none_omitted"


def test_rotating_ids_need_an_output_index():
    for name in ("response.output_item.added", "response.output_item.done"):
        events = rotate(tell(ONE_CALL))
        for event in events:
            if event["type"] == name:
                del event["output_index"]
        assert responses(events, compat=["rotating-ids"]).decision is None


def test_a_delta_at_another_output_index_is_noticed():
    events = rotate(tell(THREE_CALLS))
    event = next(e for e in events if e["type"].endswith("arguments.delta"))
    event["output_index"] += 1
    assert responses(events, compat=["rotating-ids"]).decision is None


def test_what_goes_back_verbatim_keeps_the_ids_that_came_last():
    events = rotate(tell(TEXT_THEN_CALL))
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    place = {"output_index": 2}
    events[-1:-1] = [
        {"type": "response.output_item.added", **place, "item": {**reasoning, "id": "r1"}},
        {"type": "response.output_item.done", **place, "item": {**reasoning, "id": "r2"}},
    ]
    for number, event in enumerate(events):
        event["sequence_number"] = number
    output = events[-1]["response"]["output"]
    output.append({**reasoning, "id": "r3"})
    outcome = responses(events, native=True, compat=["rotating-ids"])
    assert outcome.failure is None, outcome.failure
    assert thaw(outcome.decision.native.items) == output
    del output[-1]["id"]
    outcome = responses(events, native=True, compat=["rotating-ids"])
    assert thaw(outcome.decision.native.items) == output


def test_a_local_call_id_is_marked_and_no_server_may_use_its_form():
    events = chat_calls_without_ids(copy.deepcopy(one_call()))
    outcome = released("chat", events, compat=["call-without-id"])
    assert outcome.calls == [("local_call_1", "read_file", {"path": "src/app.py"})]
    assert "local_call_1 is synthetic" in outcome.reader.notes[0]
    taken = [call("local_call_1", "read_file", ARGUMENTS), chunk(reason="stop")]
    assert rejected("chat", taken, compat=["call-without-id"]).check == "call_ids"
    events = without_call_ids(tell(ONE_CALL))
    events[-1]["response"]["output"][0]["call_id"] = "local_call_1"
    assert responses(events, compat=["call-without-id"]).failure.check == "call_ids"


def test_calls_without_id_and_index_are_each_whole():
    calls = [
        {"function": {"name": "read_file", "arguments": ARGUMENTS}},
        {"function": {"name": "run_tests", "arguments": "{}"}},
    ]
    flags = ["call-without-id"]
    outcome = released("chat", [chunk({"tool_calls": calls}, "stop")], compat=flags)
    assert [c[:2] for c in outcome.calls] == [
        ("local_call_1", "read_file"),
        ("local_call_2", "run_tests"),
    ]
    stray = chunk({"tool_calls": [{"function": {"arguments": " "}}]})
    assert rejected("chat", [chunk({"tool_calls": calls}), stray], compat=flags).check == "call_ids"


def test_two_calls_at_one_index_without_ids_are_not_told_apart_and_not_released():
    events = [
        call(None, "read_file", ARGUMENTS),
        call(None, "read_file", ARGUMENTS),
        chunk(reason="tool_calls"),
    ]
    assert rejected("chat", events, compat=["call-without-id"]).check == "strict_json"
    events[1] = call(None, "run_tests", "{}")
    assert "expected the name" in rejected("chat", events, compat=["call-without-id"]).reason


def test_a_local_response_id_is_marked():
    events = [e for e in never_created(tell(ONE_CALL)) if e["type"] != "response.queued"]
    decision = responses(events, compat=["missing-opening"]).decision
    assert decision.response_id == "local_response"
    late = [*events[:3], {**tell(ONE_CALL)[0], "sequence_number": 4}, *events[3:]]
    assert responses(late, compat=["missing-opening"]).decision is None
    chat = released("chat", [{**text("Hi."), "id": None}, chunk(reason="stop")], compat=ALL)
    assert chat.decision.response_id == "local_response"


def test_done_without_anything_is_no_response():
    assert rejected("chat", [], compat=ALL).check == "opened"


# ------------------------------------------------------------- the rejection names what would help


def captured(provider, events):
    return Capture.from_events(events, provider=provider)


def one_inspection(capture, provider, **options):
    tools = RESPONSES_TOOLS if provider == "responses" else TOOLS
    (inspection,) = inspect_capture(capture, "x.sse", tools, **options)
    return inspection


def sse(events, *, done):
    lines = [json.dumps(event) for event in events] + (["[DONE]"] if done else [])
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def advised(provider, events, *, done=True):
    """Each flag that is named anywhere in the inspection of a stream, in a note or an advice."""
    return advised_in(one_inspection(Capture.from_bytes(sse(events, done=done)), provider))


def advised_in(inspection):
    lines = (*inspection.notes, *(each.text for each in inspection.diagnoses))
    return {flag for line in lines for flag in re.findall(r"--compat ([a-z-]+)", line)}


@quirks
def test_a_rejection_names_the_flag_that_would_have_helped(provider, spoil, flag):
    events = spoiled(provider, spoil)
    if flag == "done-without-reason":
        assert not any(advised("chat", events))
        # It reports what it billed, which a server that was cut does not.
        events.append(usage_chunk())
    capture = Capture.from_bytes(sse(events, done=True), provider=provider)
    inspection = one_inspection(capture, provider)
    assert inspection.verdict == "rejected"
    assert inspection.notes == (f"would be released with --compat {flag}",)
    inspection = one_inspection(capture, provider, compat=[flag])
    assert inspection.verdict == "released"
    assert inspection.notes


def test_a_rejection_names_no_flag_where_none_alone_helps():
    both = rotate(restating_nothing(tell(ONE_CALL)))
    inspection = one_inspection(captured("responses", both), "responses")
    assert inspection.notes == (
        "would be released with --compat rotating-ids --compat terminal-restates-nothing",
    )
    for diagnosed in inspection.diagnoses:
        assert set(diagnosed.helps) == {"rotating-ids", "terminal-restates-nothing"}
    inspection = one_inspection(captured("responses", both), "responses", compat=["rotating-ids"])
    assert inspection.notes[-1] == "would be released with --compat terminal-restates-nothing"
    cut = tell(ONE_CALL)[:-1]
    assert one_inspection(captured("responses", cut), "responses").notes == ()
    short = chat_without_reason(copy.deepcopy(one_call()))
    capture = Capture.from_bytes(sse(short, done=False), provider="chat")
    assert one_inspection(capture, "chat").notes == ()


def test_the_trace_shows_a_correction_as_a_buffer_of_its_own():
    events = spoil_deltas(tell(ONE_CALL))
    replay = Replay(captured("responses", events), RESPONSES_TOOLS, compat=["corrected-by-done"])
    assert replay.decision is not None
    streamed, meant = (b for b in replay.trace.buffers if b.kind == "arguments")
    assert streamed.text == ONE_CALL.calls[0].arguments.swapcase()
    assert meant.text == ONE_CALL.calls[0].arguments
    assert streamed.call_id == meant.call_id
    assert streamed.done == meant.start
    assert replay.trace.notes
    for index in range(replay.last + 1):
        assert replay.seek(index).text


@quirks
def test_a_trace_and_a_reader_agree(provider, spoil, flag):
    capture = Capture.from_bytes(sse(spoiled(provider, spoil), done=True), provider=provider)
    tools = RESPONSES_TOOLS if provider == "responses" else TOOLS
    trace = build_trace(capture.responses[0], provider, tools, compat=[flag])
    assert trace.decision == ask(provider, spoiled(provider, spoil), compat=[flag]).decision
    assert trace.notes


# -------------------------------------------------------------------------------- the command line


def agentlib(root, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "agentlib", *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_inspect_takes_flags_by_name(root, tmp_path):
    path = tmp_path / "copilot.sse"
    path.write_bytes(sse(rotate(restating_nothing(tell(ONE_CALL))), done=True))
    told = agentlib(root, "inspect", str(path), "--compat", "rotating-ids")
    assert told.returncode == 1
    assert "would be released with --compat terminal-restates-nothing" in told.stdout
    both = ["--compat", "rotating-ids", "--compat", "terminal-restates-nothing"]
    told = agentlib(root, "inspect", str(path), *both)
    assert (told.returncode, "RELEASED: 1 call" in told.stdout) == (0, True)
    told = agentlib(root, "inspect", str(path), "--compat", "nothing-like-it")
    assert (told.returncode, told.stdout) == (2, "")
    assert all(name in told.stderr for name in ("'nothing-like-it'", *ALL))
    assert "Traceback" not in told.stderr


# --------------------------------------------------------- and no advice releases what was cut

WHOLE = {
    "responses": lambda: tell(THREE_CALLS),
    "chat": one_call,
    "messages": one_tool,
    "gemini": gemini_calls,
}


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize(
    ("provider", "spoil"), [*((api, None) for api in WHOLE), *((q[0], q[1]) for q in QUIRKS)]
)
def test_no_advice_releases_a_call_that_was_cut_and_every_advice_was_tried(provider, spoil, done):
    """However a stream ends early, with its own [DONE] or without."""
    whole = WHOLE[provider]()
    events = spoil(copy.deepcopy(whole)) if spoil is not None else whole
    events += [usage_chunk()] if provider == "chat" else []
    tools = RESPONSES_TOOLS if provider == "responses" else TOOLS
    for length in range(1, len(events) + 1):
        source = sse(copy.deepcopy(events[:length]), done=done)
        capture = Capture.from_bytes(source, provider=provider)
        (inspection,) = inspect_capture(capture, "x.sse", tools)
        flags = advised_in(inspection)
        if flags:
            (read_so,) = inspect_capture(capture, "x.sse", tools, compat=flags)
            assert read_so.verdict == "released", (length, flags)
        rows = {flag for each in inspection.diagnoses for flag in each.helps}
        assert flags == rows
        # What is whole but for its last events holds every call: the usage, or the end, is left.
        if length < len(events) - 2:
            assert not (flags and read_so.calls), (length, flags)

"""The Gemini translator: calls whole and in pieces, without IDs, and every end."""

import json
import re
from dataclasses import replace

import pytest
from wires import TOOLS, read, rejected, released

from agentlib.conformance.dialects.gemini import REASONS, Gemini
from agentlib.conformance.mutations import EncodedScript, every_mutation
from agentlib.conformance.script import SCRIPTS, ScriptCall, catalog
from agentlib.conformance.trials import judge, own, run
from agentlib.conversation import Catalog, ToolResult, ToolSpec, Usage, user
from agentlib.failures import ProtocolViolation, ProviderStopped, StreamCut
from agentlib.jsonvalues import FrozenObject, loads_unique
from agentlib.providers.gemini_arguments import read_place
from agentlib.providers.registry import find_provider
from agentlib.runtime.call_ids import renumbered

ANY = Catalog([ToolSpec("make", "Make it.", FrozenObject({"type": "object"}))])


def chunk(*parts, **fields):
    candidate = {"content": {"role": "model", "parts": [*parts]}, "index": 0}
    reason = fields.pop("reason", None)
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "responseId": "r_1", **fields}


def call(name="read_file", args=None, **fields):
    part = {"functionCall": {"name": name, **({"args": args} if args is not None else {})}}
    return {**part, **fields}


def piece(path=None, more=True, **fields):
    held = {"partialArgs": [{"jsonPath": path, **fields}]} if path else {}
    return {"functionCall": {**held, **({"willContinue": True} if more else {})}}


def begun(name="make", **fields):
    return {"functionCall": {"name": name, "willContinue": True}, **fields}


STOP = chunk(reason="STOP")
ONE = call(args={"path": "a.py"})


def made(*pieces):
    """Return the arguments that come of a call in pieces."""
    outcome = released("gemini", [chunk(begun(), *pieces, piece(more=False)), STOP], catalog=ANY)
    return outcome.calls[0][2]


def refused(*pieces):
    failure = rejected("gemini", [chunk(begun(), *pieces, piece(more=False)), STOP], catalog=ANY)
    return failure.reason


# ----------------------------------------------------------------------------- calls, and their IDs


def test_calls_without_an_id_are_numbered_as_they_begin():
    parts = [ONE, call("run_tests"), {"functionCall": {**ONE["functionCall"], "id": "f_1"}}]
    assert released("gemini", [chunk(*parts), STOP]).calls == [
        ("local_call_1", "read_file", {"path": "a.py"}),
        ("local_call_2", "run_tests", {}),
        ("f_1", "read_file", {"path": "a.py"}),
    ]


def test_an_id_that_looks_like_one_made_here_is_refused():
    part = {"functionCall": {**ONE["functionCall"], "id": "local_call_1"}}
    assert rejected("gemini", [chunk(part), STOP]).check == "call_ids"


def without_ids(value):
    if isinstance(value, list):
        return [without_ids(inner) for inner in value]
    if isinstance(value, dict):
        return {key: without_ids(inner) for key, inner in value.items() if key != "id"}
    return value


class WithoutIDs(Gemini):
    """A server that gives no call an ID."""

    def encode(self, script, framing):
        return [
            sent.with_event(without_ids(sent.event)) for sent in super().encode(script, framing)
        ]


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_server_without_ids_keeps_the_contract_by_the_order_of_its_calls(script):
    dialect = WithoutIDs()
    if not dialect.expresses(script):
        return
    calls = [ScriptCall(f"local_call_{n}", *c[1:]) for n, c in enumerate(script.calls, 1)]
    script = replace(script, calls=tuple(calls))
    for framing in dialect.framings:
        encoded = EncodedScript(dialect, script, framing, dialect.encode(script, framing))
        outcome = run(own("gemini"), catalog(), encoded.events)
        assert outcome.matches(script.content), framing
        if framing.name not in ("plain", "arguments in pieces of 4, end empty"):
            continue
        for mutation, mutated in every_mutation(encoded, fields=False, letters=False):
            events = [sent.event for sent in mutated]
            outcome = run(own("gemini"), catalog(), events)
            assert judge(encoded, events, outcome)[0] != "leaked", mutation


# ------------------------------------------------------------------------------ arguments in pieces


def test_pieces_become_the_object_that_they_stand_for():
    assert made(
        piece("$.recipe.name", stringValue="Las", willContinue=True),
        piece("$.recipe.name", stringValue="agna"),
        piece("$.recipe.steps[0].text", stringValue='say "hi"\n'),
        piece("$.recipe.steps[0].minutes", numberValue=12.5),
        piece("$.recipe.steps[1].text", stringValue=""),
        piece("$.recipe.steps[1].hot", boolValue=True),
        piece("$.recipe.tags[0]", stringValue="x"),
        piece("$['it\\'s']", nullValue=None),
        piece('$["a.b"]', nullValue="NULL_VALUE"),
    ) == {
        "recipe": {
            "name": "Lasagna",
            "steps": [{"text": 'say "hi"\n', "minutes": 12.5}, {"text": "", "hot": True}],
            "tags": ["x"],
        },
        "it's": None,
        "a.b": None,
    }


def test_a_character_that_pieces_cut_apart_is_joined():
    assert made(
        piece("$.a", stringValue="\ud83d", willContinue=True), piece("$.a", stringValue="\ude00")
    ) == {"a": "😀"}
    assert "lone surrogate" in refused(piece("$.a", stringValue="\ud83d"))


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([piece("$.a", stringValue="x"), piece("$.a", stringValue="y")], "stands twice"),
        (
            [piece(path, boolValue=True) for path in ("$.a.b", "$.c", "$.a.d")],
            "stands twice",
        ),
        ([piece("$.a", numberValue=1), piece("$.a.b", numberValue=1)], "stands twice"),
        ([piece("$.a", stringValue="x", willContinue=True)], "goes on"),
        (
            [piece("$.a", stringValue="x", willContinue=True), piece("$.b", stringValue="y")],
            "and a piece came for",
        ),
        (
            [piece("$.a", stringValue="x", willContinue=True), piece("$.a", numberValue=1)],
            "and a numberValue came",
        ),
        ([piece("$.a", numberValue=1, willContinue=True)], "expected a string that goes on"),
        ([piece("$.a[1]", numberValue=1)], "expected entry 0"),
        ([piece("$.a[0]", numberValue=1), piece("$.a[0]", numberValue=2)], "expected entry 1"),
        ([piece("$.a[0]", numberValue=1), piece("$.a.b", numberValue=2)], "stands twice|array"),
        ([piece("$[0]", numberValue=1)], "expected the JSON Path of an argument"),
        ([piece("$", numberValue=1)], "expected the JSON Path of an argument"),
        ([piece("$..a", numberValue=1)], "expected the JSON Path of one place"),
        ([piece("$.*[*]", numberValue=1)], "expected the JSON Path of one place"),
        ([piece("a", numberValue=1)], "expected a JSON Path"),
        ([piece("$" + ".a" * 65, numberValue=1)], "expected the JSON Path of one place"),
        ([piece("$.a")], "expected one value"),
        ([piece("$.a", stringValue="x", numberValue=1)], "expected one value"),
        ([piece("$.a", numberValue=True)], "expected a value that fits as numberValue"),
        ([piece("$.a", boolValue="true")], "expected a value that fits as boolValue"),
        ([piece("$.a", stringValue=None)], "expected a value that fits as stringValue"),
        ([piece("$.a", numberValue=float("nan"))], "not JSON|compliant"),
        ([piece("$.a", numberValue=1, willContinue="no")], "expected a boolean"),
    ],
)
def test_pieces_that_do_not_follow_one_another_are_refused(pieces, told):
    assert re.search(told, refused(*pieces))


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$.a", ("a",)),
        ("$.a-b.c_1", ("a-b", "c_1")),
        ("$.a[0][12].b", ("a", 0, 12, "b")),
        ("$['a.b'][0]", ("a.b", 0)),
        ('$["\\u00e9\\n"]', ("é\n",)),
        ("$['say \"it\\'s\"']", ('say "it\'s"',)),
    ],
)
def test_a_path_is_read_as_its_standard_says(path, steps):
    assert read_place(path) == steps


def test_a_call_is_done_only_with_the_part_that_says_so():
    seen = []
    parts = [begun("read_file"), piece("$.path", stringValue="a.py"), piece(more=False)]
    outcome = released("gemini", [*map(chunk, parts), STOP], report=seen.append)
    kinds = [type(event).__name__ for event in seen]
    assert kinds == [
        "Opened",
        "ToolStart",
        "ToolArgsDelta",
        "ToolArgsDelta",
        "ToolArgsDone",
        "Completed",
    ]
    assert outcome.calls == [("local_call_1", "read_file", {"path": "a.py"})]


@pytest.mark.parametrize(
    "parts",
    [
        [begun("run_tests")],
        [begun("read_file"), piece("$.path", stringValue="a.py")],
        [begun("read_file"), piece("$.path", stringValue="a.", willContinue=True)],
    ],
)
def test_stop_while_a_call_goes_on_is_refused(parts):
    failure = rejected("gemini", [chunk(*parts), STOP])
    assert "says that it will continue" in failure.reason
    assert rejected("gemini", [chunk(*parts, reason="STOP")]).reason == failure.reason
    assert isinstance(rejected("gemini", [chunk(*parts), chunk(reason="OTHER")]), ProviderStopped)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([begun("run_tests"), ONE], "another began"),
        ([piece(more=False)], "each begins with a name"),
        ([begun(), {"functionCall": {"id": "f_2"}}], "goes on under ID"),
        ([call(args={"path": "a"}, thought=True)], "in a thought"),
        ([{"functionCall": {"name": "make", "args": {"a": 1}, "willContinue": True}}], "saw both"),
        ([begun(), {"functionCall": {"args": {"a": 1}}}], ""),
        ([begun(), piece("$.a", numberValue=1), {"functionCall": {"args": {"a": 1}}}], "saw both"),
        ([{"text": "a", **ONE}], "one kind of content"),
        ([call(args=7)], "expected an object as args"),
        ([call(args=[])], "expected an object as args"),
        ([{"functionCall": 7}], "expected an object as functionCall"),
        ([{"functionCall": {"name": 7}}], "expected a string as name"),
        ([{"text": 7}], "expected a string as text"),
        ([{"text": "a", "thought": 1}], "expected a boolean as thought"),
    ],
)
def test_a_part_that_breaks_the_rules_is_refused(parts, told):
    outcome = read("gemini", [chunk(*parts), STOP], catalog=ANY)
    if told:
        assert isinstance(outcome.failure, ProtocolViolation)
        assert told in outcome.failure.reason
    else:
        assert outcome.calls[0][2] == {"a": 1}


# --------------------------------------------------------------------------------- texts and ends


def test_text_beside_the_finish_reason_belongs_to_the_answer():
    parts = [{"text": "Think.", "thought": True}, {"text": "Fine"}]
    events = [chunk(*parts), chunk({"text": "."}, reason="STOP"), chunk({"text": ""})]
    assert released("gemini", events).decision.text == "Fine."


@pytest.mark.parametrize("reason", [r for r in (*REASONS, "NEW_REASON") if r != "STOP"])
def test_any_other_finish_reason_completes_nothing(reason):
    failure = rejected("gemini", [chunk(ONE), chunk(reason=reason)])
    assert isinstance(failure, ProviderStopped)
    assert failure.cut_by_length is (reason == "MAX_TOKENS")


def test_a_finish_message_is_told():
    stopped = chunk(reason="MALFORMED_FUNCTION_CALL")
    stopped["candidates"][0]["finishMessage"] = "Malformed function call: print("
    assert "Malformed function call" in rejected("gemini", [chunk(ONE), stopped]).reason


def test_a_stream_without_a_finish_reason_was_cut():
    assert isinstance(rejected("gemini", [chunk(ONE)]), StreamCut)


def test_a_blocked_prompt_and_an_error_end_the_response():
    for event, told in (
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "SAFETY"),
        ({"error": {"code": 503, "message": "Overloaded"}}, "Overloaded"),
    ):
        for before in ([], [chunk(ONE)], [chunk(ONE), STOP]):
            failure = rejected("gemini", [*before, event])
            assert isinstance(failure, ProviderStopped)
            assert told in failure.reason
    assert released("gemini", [{"promptFeedback": {"safetyRatings": []}}, chunk(ONE), STOP])


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([chunk(ONE), STOP, chunk({"text": "More."})], "came more"),
        ([chunk(ONE), STOP, chunk(ONE)], "came more"),
        ([chunk(ONE), STOP, chunk(reason="OTHER")], "changed to"),
        ([chunk(ONE), chunk(reason="OTHER"), STOP], "changed to"),
        ([chunk(ONE), chunk(responseId="r_2", reason="STOP")], "one response ID"),
        ([{**chunk(ONE), "candidates": chunk(ONE)["candidates"] * 2}, STOP], "one candidate"),
        ([{"candidates": [{"index": 1}], "responseId": "r_1"}, STOP], "one candidate"),
    ],
)
def test_a_stream_that_breaks_the_rules_is_refused(events, told):
    failure = rejected("gemini", events)
    assert isinstance(failure, ProtocolViolation)
    assert told in failure.reason


def test_usage_is_cumulative_and_the_last_counter_counts():
    first = {"promptTokenCount": 120, "candidatesTokenCount": 4, "thoughtsTokenCount": 2}
    last = {"promptTokenCount": 120, "cachedContentTokenCount": 64, "candidatesTokenCount": 22}
    kept = {"trafficType": "ON_DEMAND"}
    events = [
        chunk(ONE, usageMetadata=first),
        chunk(usageMetadata={**last, "thoughtsTokenCount": 8}),
        {**STOP, "usageMetadata": kept},
    ]
    assert released("gemini", events).decision.usage == Usage(120, 64, 30, 8)
    assert released("gemini", [chunk(ONE), STOP]).decision.usage is None
    assert rejected("gemini", events[:1]).usage == Usage(120, None, 6, 2)


# -------------------------------------------------------------------------------- the native turn


def test_a_signed_call_goes_back_as_it_came_and_its_results_in_the_order_of_the_calls():
    parts = [
        {"text": "Think.", "thought": True},
        {"text": "I "},
        {"text": "look."},
        begun("read_file", thoughtSignature="c2ln"),
        piece("$.path", stringValue="a.py"),
        piece(more=False),
        call("run_tests"),
        {"text": ""},
        {"text": "", "thoughtSignature": "ZW5k"},
    ]
    events = [*map(chunk, parts), STOP]
    assert rejected("gemini", events).check == "replayable"
    decision = released("gemini", events, native=True).decision
    results = [ToolResult("local_call_2", "passed"), ToolResult("local_call_1", "text")]
    history = [user("Go."), decision.message(), *results]
    contents = find_provider("gemini").encode("m", history, TOOLS, native=True)["contents"]
    assert contents[1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "Think.", "thought": True},
                {"text": "I look."},
                {
                    "functionCall": {"name": "read_file", "args": {"path": "a.py"}},
                    "thoughtSignature": "c2ln",
                },
                {"functionCall": {"name": "run_tests", "args": {}}},
                {"text": "", "thoughtSignature": "ZW5k"},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "read_file", "response": {"output": "text"}}},
                {"functionResponse": {"name": "run_tests", "response": {"output": "passed"}}},
            ],
        },
    ]


def test_a_renumbered_call_is_renumbered_in_its_native_part_too():
    part = {"functionCall": {**ONE["functionCall"], "id": "f_1"}, "thoughtSignature": "c2ln"}
    decision = released("gemini", [chunk(part), STOP], native=True).decision
    again = renumbered(decision, [user("Go."), decision.message(), ToolResult("f_1", "x")])
    assert again.calls[0].call_id == "f_1_2"
    assert again.native.items[0]["functionCall"]["id"] == "f_1_2"
    assert again.native.items[0]["thoughtSignature"] == "c2ln"


def test_a_call_from_elsewhere_carries_the_mark_that_it_has_no_signature():
    decision = released("gemini", [chunk(ONE, call("run_tests")), STOP]).decision
    assert decision.native is None
    history = [user("Go."), decision.message()]
    history += [ToolResult(call.call_id, "") for call in decision.calls]
    parts = find_provider("gemini").encode("m", history, TOOLS)["contents"][1]["parts"]
    assert ["thoughtSignature" in part for part in parts] == [True, False]


@pytest.mark.parametrize("kind", ["executableCode", "codeExecutionResult", "toolCall"])
def test_what_the_provider_ran_itself_needs_the_native_form(kind):
    events = [chunk({kind: {"code": "1"}}, {"text": "1."}), STOP]
    assert rejected("gemini", events).check == "replayable"
    decision = released("gemini", events, native=True).decision
    assert decision.native.items == ({kind: {"code": "1"}}, {"text": "1."})


def test_a_part_of_an_unknown_kind_is_refused():
    events = [chunk({"askTheHost": {"act": "x"}}, ONE), STOP]
    assert rejected("gemini", events, native=True).check == "replayable"


def test_the_text_of_the_events_is_read_strictly():
    raw = json.dumps(ONE).replace('{"path"', '{"path": "b", "path"')
    with pytest.raises(ValueError, match="stands twice"):
        loads_unique(raw)


# ------------------------------------------------------------------- a call without its last part


def tools_of(schema):
    return Catalog([ToolSpec("make", "Make it.", FrozenObject(schema))])


TWO = {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}
PARTS = [
    begun(),
    piece("$.a", stringValue="x", willContinue=True),
    piece("$.a", stringValue="y"),
    piece("$.b", numberValue=1),
]


@pytest.mark.parametrize("schema", [TWO, {**TWO, "additionalProperties": False}])
def test_the_tolerance_ends_a_call_only_where_nothing_of_it_can_still_come(schema):
    for end in range(1, len(PARTS) + 1):
        outcome = read(
            "gemini", [chunk(*PARTS[:end]), STOP], tools_of(schema), compat=["unended-call"]
        )
        assert (outcome.decision is not None) is (end == len(PARTS)), end


@pytest.mark.parametrize(
    ("schema", "last"),
    [
        ({"type": "object"}, PARTS[-1]),
        ({**TWO, "additionalProperties": True}, PARTS[-1]),
        ({**TWO, "additionalProperties": {"type": "string"}}, PARTS[-1]),
        ({**TWO, "patternProperties": {"^c": {}}}, PARTS[-1]),
        ({**TWO, "anyOf": [{"properties": {"c": {}}}]}, PARTS[-1]),
        ({**TWO, "properties": {**TWO["properties"], "c": {}}}, PARTS[-1]),
        # More entries, or more names, could still come.
        (TWO, piece("$.b[0]", numberValue=1)),
        (TWO, piece("$.b.c", numberValue=1)),
        (TWO, piece("$.b", stringValue="z", willContinue=True)),
    ],
)
def test_the_tolerance_ends_no_call_that_could_go_on(schema, last):
    events = [chunk(*PARTS[:3], last), STOP]
    assert rejected("gemini", events, tools_of(schema), compat=["unended-call"])
    assert rejected("gemini", events, None, compat=["unended-call"])


def test_the_tolerance_makes_up_no_end():
    for end in ([], [chunk(reason="MAX_TOKENS")], [{"error": {"message": "x"}}]):
        assert rejected("gemini", [chunk(*PARTS), *end], tools_of(TWO), compat=["unended-call"])


def test_what_comes_after_the_end_under_another_id_belongs_to_another_response():
    other = {**chunk(call("run_tests")), "responseId": "r_2"}
    assert [name for _, name, _ in released("gemini", [chunk(ONE), STOP, other]).calls] == [
        "read_file"
    ]
    for late in (chunk(ONE), STOP):
        assert rejected("gemini", [chunk(ONE), STOP, other, late]).check == "response_id"
    assert rejected("gemini", [chunk(ONE), other, STOP])

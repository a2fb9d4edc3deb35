"""The parse boundary: whatever a model says is one valid decision, or one error to tell it."""

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError, field_validator

from agentlib.conversation import Usage
from agentlib.decisions import (
    AskUser,
    DecisionContext,
    DecisionRetryNote,
    DecisionTool,
    DecisionUsage,
    FinalAnswer,
    ModelDecision,
    Observation,
    ToolCall,
    build_messages,
    build_tool_schemas,
    parse_decision,
)
from agentlib.decisions.failures import DecisionParseError, TransportError
from agentlib.decisions.model import MAX_EXCERPT_CHARACTERS, excerpt
from agentlib.decisions.parsing import MAX_DECISION_CHARACTERS
from agentlib.errors import CatalogError, EncodingError
from workbook.pages.decision_replies import CONTEXT, EDIT, TOOLS


def said(action, **more):
    return json.dumps({"thought": "I think.", "action": action, **more})


EDIT_ACTION = {"kind": "tool", "name": "edit", "input": EDIT[1]}
ANSWER_ACTION = {"kind": "final_answer", "answer": "add() adds now."}
ASK_ACTION = {"kind": "ask_user", "question": "Which file?"}
GOOD = said(EDIT_ACTION)


def refusal(raw, context=None):
    with pytest.raises(DecisionParseError) as raised:
        parse_decision(raw, context)
    return raised.value


# -------------------------------------------------------------------------- what is a decision


@pytest.mark.parametrize(
    ("action", "kind"),
    [(EDIT_ACTION, ToolCall), (ANSWER_ACTION, FinalAnswer), (ASK_ACTION, AskUser)],
)
@pytest.mark.parametrize("form", [str, str.encode], ids=["text", "bytes"])
def test_each_shape_of_decision_is_read(action, kind, form):
    decision = parse_decision(form(f" {said(action)}\n"), CONTEXT)
    assert type(decision.action) is kind
    assert decision.action.model_dump() == action
    assert decision.thought == "I think."


@pytest.mark.parametrize(
    ("action", "there", "alone"),
    [
        (EDIT_ACTION, "act", "act"),
        (ANSWER_ACTION, "verify", "verify"),
        (ASK_ACTION, "ask", "blocked"),
    ],
)
def test_a_decision_says_what_comes_next(action, there, alone):
    decision = parse_decision(said(action))
    assert decision.step(interactive=True) == there
    assert decision.step(interactive=False) == alone
    assert ("blocked" in decision.describe(interactive=False)) == (alone == "blocked")
    assert "blocked" not in decision.describe(interactive=True)


def test_an_answer_is_described_as_a_proposal():
    assert "proposed" in parse_decision(said(ANSWER_ACTION)).describe(interactive=True)


@pytest.mark.parametrize("action", [EDIT_ACTION, ANSWER_ACTION, ASK_ACTION])
def test_a_decision_can_be_written_as_json_and_read_again(action):
    decision = parse_decision(said(action))
    text = decision.model_dump_json()
    assert json.loads(text)["action"] == action
    assert ModelDecision.model_validate_json(text) == decision
    assert decision.model_dump(mode="json") == json.loads(text)


def test_arrays_and_objects_within_an_input_are_written_as_they_came():
    given = {"kind": "tool", "name": "t", "input": {"a": [1, {"b": [[], {}, None]}], "c": {}}}
    text = parse_decision(said(given)).model_dump_json()
    assert json.loads(text)["action"] == given


def test_a_decision_cannot_be_changed():
    decision = parse_decision(GOOD)
    with pytest.raises(ValidationError):
        decision.thought = "another"
    with pytest.raises(ValidationError):
        decision.action.name = "delete"
    with pytest.raises(TypeError):
        decision.action.input["path"] = "another"
    with pytest.raises(AttributeError):
        decision.action.input.path = "another"


@pytest.mark.parametrize(
    "own",
    [
        {"retry_trace": [{"problem": "none", "excerpt": ""}], "usage": {"input_tokens": 0}},
        {"retry_trace": "nonsense", "usage": None},
        {"usage": [1, {}]},
    ],
)
def test_what_a_model_says_in_the_clients_own_fields_is_dropped(own):
    decision = parse_decision(said(ANSWER_ACTION, **own))
    assert (decision.retry_trace, decision.usage) == ((), None)


# ------------------------------------------------------------------------------ what is refused

NOT_ONE_OBJECT = {
    "nothing": "",
    "blank": " \n",
    "prose": "I would edit calculator.py.",
    "a fence": f"```json\n{GOOD}\n```",
    "prose before": f"Here it is: {GOOD}",
    "prose after": f"{GOOD} Done.",
    "two objects": f"{GOOD}\n{GOOD}",
    "an array": f"[{GOOD}]",
    "a string": json.dumps(GOOD),
    "null": "null",
    "a number": "7",
    "NaN": '{"thought": NaN}',
    "a huge number": '{"thought": 1e999}',
    "a huge integer": '{"thought": ' + "9" * 5000 + "}",
    "a name twice": '{"thought": "a", "thought": "b", "action": {}}',
    "a lone surrogate": '{"thought": "\\ud800"}',
    "a raw surrogate": '{"thought": "\ud800"}',
    "a control character": '{"thought": "\x00"}',
    "a byte order mark": "\ufeff" + GOOD,
    "single quotes": "{'thought': 'a'}",
    "a trailing comma": GOOD[:-1] + ",}",
    "nested deep": '{"thought": ' + "[" * 70 + "]" * 70 + "}",
    "nested without end": "[" * 60_000,
    "endless": '{"thought": "' + "a" * MAX_DECISION_CHARACTERS,
}


@pytest.mark.parametrize("what", NOT_ONE_OBJECT)
def test_what_is_not_exactly_one_object_is_refused(what):
    failure = refusal(NOT_ONE_OBJECT[what])
    assert "expected" in failure.reason
    assert len(failure.reason) < 300
    failure.excerpt.encode()


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("place", range(len(GOOD)))
def test_a_cut_object_is_never_completed(place):
    refusal(GOOD[:place])


NO_DECISION = {
    "no thought": json.dumps({"action": ANSWER_ACTION}),
    "a thought of another type": json.dumps({"thought": True, "action": ANSWER_ACTION}),
    "no action": '{"thought": "a"}',
    "an action of another type": said("final_answer"),
    "several actions": said([ANSWER_ACTION, EDIT_ACTION]),
    "an unknown kind": said({"kind": "shell", "command": "ls"}),
    "no kind": said({"answer": "Done."}),
    "a kind of another type": said({"kind": ["tool"], "name": "edit", "input": {}}),
    "two kinds in one": said({**ANSWER_ACTION, "name": "edit"}),
    "a field too many": said(ANSWER_ACTION, confidence=1),
    "a trace inside": said({**ANSWER_ACTION, "retry_trace": []}),
    "an answer of another type": said({"kind": "final_answer", "answer": 7}),
    "an empty answer": said({"kind": "final_answer", "answer": ""}),
    "a blank question": said({"kind": "ask_user", "question": " \n"}),
    "a tool without a name": said({"kind": "tool", "name": "", "input": {}}),
    "input that is an array": said({"kind": "tool", "name": "edit", "input": []}),
    "input that is text": said({"kind": "tool", "name": "edit", "input": "{}"}),
}


@pytest.mark.parametrize("what", NO_DECISION)
def test_an_object_that_is_no_decision_is_refused(what):
    assert len(refusal(NO_DECISION[what]).reason) < 500


@pytest.mark.parametrize("raw", [None, 7, ["a"], {"thought": "a"}, bytearray(b"{}"), object()])
def test_what_is_no_text_is_refused(raw):
    assert type(raw).__name__ in refusal(raw).reason


def test_bytes_that_are_no_utf_8_are_refused_and_shown():
    failure = refusal(b'{"thought": "\xff"}')
    assert "byte 14" in failure.reason
    assert "\\xff" in failure.excerpt


class Picky(BaseModel):
    """Its validator fails in a way of its own."""

    n: int

    @field_validator("n")
    @classmethod
    def look(cls, value):
        return {1: value}[value]


PICKY = DecisionContext("t", (DecisionTool("picky", "Picky.", Picky),))


@pytest.mark.parametrize(
    ("action", "context", "reason"),
    [
        ({**EDIT_ACTION, "name": "delete"}, CONTEXT, "not admitted (admitted: edit, read)"),
        ({**EDIT_ACTION, "name": "Edit"}, CONTEXT, "not admitted"),
        ({**EDIT_ACTION, "input": {"path": "a"}}, CONTEXT, "old: Field required; new:"),
        ({**EDIT_ACTION, "input": {**EDIT[1], "path": 3}}, CONTEXT, "path:"),
        ({"kind": "tool", "name": "read", "input": {"path": "a", "lines": "9"}}, CONTEXT, "lines:"),
        ({"kind": "tool", "name": "read", "input": {"path": "a", "lines": True}}, CONTEXT, "lines"),
        ({"kind": "tool", "name": "picky", "input": {"n": 2}}, PICKY, "raised KeyError"),
        ({"kind": "tool", "name": "edit", "input": {}}, DecisionContext("t"), "admitted: none"),
    ],
)
def test_with_a_context_a_call_must_be_admitted_and_valid(action, context, reason):
    parse_decision(said(action))
    assert reason in refusal(said(action), context).reason


def test_a_refusal_quotes_no_value_and_hides_no_character():
    secret = "sk-secret"
    failure = refusal(said({**EDIT_ACTION, "input": {"path": [secret], "\u202e": 1}}), CONTEXT)
    assert secret not in failure.reason
    assert "\u202e" not in failure.reason + failure.excerpt


@given(st.text() | st.binary())
@example("[" * 100_000)
@example('{"thought": "", "action": {"kind": "tool", "name": "a", "input": {}}, "retry_trace": 1}')
def test_no_text_makes_it_raise_anything_else_or_keep_a_trace(raw):
    for context in (None, CONTEXT):
        try:
            decision = parse_decision(raw, context)
        except DecisionParseError as failure:
            failure.reason.encode()
            failure.excerpt.encode()
        else:
            assert (decision.retry_trace, decision.usage) == ((), None)


KEYS = st.sampled_from(
    ["thought", "action", "kind", "name", "input", "answer", "question", "retry_trace", "usage"]
)
LEAVES = st.sampled_from(["tool", "final_answer", "ask_user", "edit", "", 0, 1.5, True, None])
VALUES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(KEYS, inner) | st.lists(inner, max_size=3)
)
ACTIONS = st.sampled_from([EDIT_ACTION, ANSWER_ACTION, ASK_ACTION])
# Close to a decision, where a mistake would be.
NEAR = st.fixed_dictionaries(
    {"thought": st.text() | LEAVES, "action": ACTIONS | VALUES},
    optional={"retry_trace": VALUES, "usage": VALUES},
)


@given(NEAR, st.data())
def test_near_a_decision_it_holds_too(value, data):
    text = json.dumps(value)
    whole = data.draw(st.booleans())
    raw = text if whole else text[: data.draw(st.integers(0, len(text)))]
    try:
        decision = parse_decision(raw, CONTEXT)
    except DecisionParseError:
        assert not (whole and isinstance(value["thought"], str) and value["action"] == EDIT_ACTION)
    else:
        assert (decision.retry_trace, decision.usage) == ((), None)
        assert decision.action.model_dump() == value["action"]


# ------------------------------------------------------------------------------ notes and usage


def test_an_excerpt_is_capped_and_says_so():
    assert excerpt("short\u202e") == "short\\u202e"
    shown = excerpt("a" * 5000)
    assert shown.startswith("a" * MAX_EXCERPT_CHARACTERS + "…")
    assert "cut: 240 of 5,000" in shown
    assert excerpt("a" * MAX_EXCERPT_CHARACTERS) == "a" * MAX_EXCERPT_CHARACTERS


def test_a_sum_is_of_what_was_reported_and_says_what_it_lacks():
    parts = [
        DecisionUsage.of(Usage(input_tokens=90, output_tokens=0)),
        DecisionUsage.of(None),
        DecisionUsage.of(Usage(input_tokens=10, cached_tokens=4)),
    ]
    total = DecisionUsage.total(parts)
    assert total == DecisionUsage(
        input_tokens=100, cached_tokens=4, output_tokens=0, requests=3, unreported=1
    )
    assert total.reasoning_tokens is None


def test_what_nobody_reported_is_unknown_and_not_zero():
    assert DecisionUsage.total([]) is None
    silent = DecisionUsage.total([DecisionUsage.of(None), DecisionUsage.of(Usage())])
    assert (silent.input_tokens, silent.output_tokens, silent.unreported) == (None, None, 2)


def test_the_harness_may_set_what_a_model_may_not():
    note = DecisionRetryNote(problem="it is empty", excerpt="")
    decision = ModelDecision(
        thought="", action=FinalAnswer(answer="a"), retry_trace=(note,), usage=DecisionUsage()
    )
    assert decision.retry_trace == (note,)


# ------------------------------------------------------------------------------ the context packet


@pytest.mark.parametrize("name", ["final_answer", "ask_user", "", "a b", "ü", "a" * 65])
def test_a_tool_needs_a_name_of_its_own_that_an_api_can_carry(name):
    with pytest.raises(CatalogError):
        DecisionTool(name, "It does.", BaseModel)


def test_a_tool_stands_once():
    with pytest.raises(CatalogError, match="twice"):
        DecisionContext("t", (*TOOLS, TOOLS[0]))


def test_a_tool_without_a_json_schema_is_refused():
    class Odd(BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        what: json.JSONDecoder

    with pytest.raises(CatalogError, match="no schema"):
        DecisionContext("t", (DecisionTool("odd", "Odd.", Odd),))


def test_every_shape_of_decision_is_a_function_with_its_real_schema():
    functions = [each["function"] for each in build_tool_schemas(CONTEXT)]
    assert [each["name"] for each in functions] == ["edit", "read", "final_answer", "ask_user"]
    for tool, function in zip(TOOLS, functions, strict=False):
        assert function["parameters"] == tool.input.model_json_schema()
    assert all(each["strict"] for each in functions[2:])


HISTORY = DecisionContext(
    "Repair add().",
    TOOLS,
    (
        Observation(ToolCall(name="read", input={"path": "a.py"}), "return a - b", "Look first."),
        Observation(AskUser(question="Which one?"), "add()"),
    ),
    instructions="Be brief.",
    interactive=False,
)


def test_native_messages_carry_calls_and_results_and_no_envelope():
    messages = build_messages(HISTORY, native_tools=True)
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    read, ask = (messages[place]["tool_calls"][0]["function"] for place in (2, 4))
    assert (read["name"], json.loads(read["arguments"])) == ("read", {"path": "a.py"})
    assert (ask["name"], json.loads(ask["arguments"])) == ("ask_user", {"question": "Which one?"})
    assert [messages[place]["content"] for place in (2, 3, 5)] == [
        "Look first.",
        "return a - b",
        "add()",
    ]
    assert '"action"' not in messages[0]["content"]


def test_without_native_tools_the_envelope_and_the_tools_are_in_the_prompt():
    messages = build_messages(HISTORY, native_tools=False)
    system = messages[0]["content"]
    assert '"action"' in system
    assert all(name in system for name in ("edit: ", "read: ", '"lines"'))
    assert [message["role"] for message in messages[2:]] == ["assistant", "user"] * 2
    earlier = parse_decision(messages[2]["content"], HISTORY)
    assert (earlier.thought, earlier.action) == ("Look first.", HISTORY.observations[0].action)


@pytest.mark.parametrize("native", [True, False])
def test_the_prompt_says_the_instructions_and_that_nobody_can_be_asked(native):
    alone = build_messages(HISTORY, native_tools=native)[0]["content"]
    asked = build_messages(CONTEXT, native_tools=native)[0]["content"]
    assert alone.startswith("Be brief.")
    assert "blocked" in alone
    assert "blocked" not in asked


def test_messages_are_pure_and_plain():
    first = build_messages(HISTORY, native_tools=True)
    assert json.loads(json.dumps(first)) == first == build_messages(HISTORY, native_tools=True)


@pytest.mark.parametrize("task", ["", "\ud800"])
def test_a_task_that_cannot_be_sent_is_refused(task):
    with pytest.raises(EncodingError):
        build_messages(DecisionContext(task), native_tools=True)


# ------------------------------------------------------------------------------------- the errors


def test_the_families_are_never_mixed_up():
    from agentlib.decisions.failures import EmptyResponseError, StreamingUnsupportedError

    assert issubclass(EmptyResponseError, TransportError)
    for one, other in (
        (StreamingUnsupportedError, TransportError),
        (DecisionParseError, TransportError),
        (TransportError, DecisionParseError),
    ):
        assert not issubclass(one, other)


def test_the_package_is_imported_lazily():
    code = (
        "import sys, agentlib.decisions as d;"
        "print('pydantic' in sys.modules, 'openai' in sys.modules);"
        "d.OpenAIModelClient(d.ClientConfig('m'));"
        "print('pydantic' in sys.modules, 'openai' in sys.modules)"
    )
    seen = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert seen.stdout.split() == ["False", "False", "True", "False"]


def test_all_names_what_is_there():
    import agentlib.decisions

    assert agentlib.decisions.__all__ == sorted(agentlib.decisions.__all__)
    assert all(hasattr(agentlib.decisions, name) for name in agentlib.decisions.__all__)
    with pytest.raises(AttributeError):
        agentlib.decisions.nothing  # noqa: B018

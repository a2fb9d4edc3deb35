"""The portable conversation: what may stand in it, and what a catalog takes."""

import copy
import dataclasses
import pickle

import pytest
from streams import EDIT, READ_FILE, RUN_TESTS, TOOLS

from agentlib import Catalog, Message, ToolCall, ToolResult, ToolSpec, assistant, system, user
from agentlib.conversation import check_history
from agentlib.errors import AgentlibError, CatalogError, EncodingError
from agentlib.jsonvalues import FrozenObject, thaw

CALL = ToolCall("call_a", "read_file", FrozenObject({"path": "a.py"}))
OTHER = ToolCall("call_b", "edit", FrozenObject({"path": "a.py", "old": "x", "new": "y"}))
RESULT = ToolResult("call_a", "text of a.py")


def test_the_shorthands_make_messages():
    assert system("s") == Message("system", "s")
    assert user("u") == Message("user", "u")
    assert assistant("a", [CALL]) == Message("assistant", "a", (CALL,))
    assert assistant(refusal="no").refusal == "no"


def test_only_an_assistant_calls_or_refuses():
    for wrong in (
        lambda: Message("user", "", (CALL,)),
        lambda: Message("system", "", (), "no"),
        lambda: Message("developer", "x"),
        lambda: Message("tool", "x"),
    ):
        with pytest.raises(EncodingError):
            wrong()


def test_an_entry_is_immutable_and_its_copies_are_equal():
    message = Message("assistant", "text", [CALL])
    assert message.calls == (CALL,)
    for entry in (message, CALL, RESULT, READ_FILE):
        name = dataclasses.fields(entry)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(entry, name, "other")
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
            entry.something_else = 1
        for other in (copy.copy(entry), copy.deepcopy(entry), pickle.loads(pickle.dumps(entry))):
            assert other == entry
            assert hash(other) == hash(entry)


def test_a_call_does_not_follow_what_it_was_made_of():
    arguments = {"path": "a.py", "lines": [1, 2]}
    call = ToolCall("call_a", "read_file", arguments)
    arguments["path"] = "/etc/passwd"
    arguments["lines"].append(3)
    assert call.arguments == {"path": "a.py", "lines": [1, 2]}
    assert isinstance(call.arguments, FrozenObject)


GOOD = {
    "nothing": [],
    "a question": [system("s"), user("u")],
    "a call and its result": [user("u"), assistant("", [CALL]), RESULT, assistant("done")],
    "results in another order": [
        assistant("", [CALL, OTHER]),
        ToolResult("call_b", ""),
        RESULT,
        user("u"),
    ],
    "several turns": [
        assistant("", [CALL]),
        RESULT,
        assistant("", [OTHER]),
        ToolResult("call_b", ""),
    ],
}
BAD = {
    "no result": (
        [assistant("", [CALL])],
        'the history ends before the result of call ID "call_a"',
    ),
    "one of two results": ([assistant("", [CALL, OTHER]), RESULT], "call_b"),
    "someone speaks first": ([assistant("", [CALL]), user("u"), RESULT], "entry 2 comes before"),
    "a result without a call": ([RESULT], "a result without a call"),
    "a result before its call": ([RESULT, assistant("", [CALL])], "a result without a call"),
    "a second result": ([assistant("", [CALL]), RESULT, RESULT], "a second result"),
    "a call ID twice at once": ([assistant("", [CALL, CALL]), RESULT], "is used twice"),
    "a call ID again later": (
        [assistant("", [CALL]), RESULT, assistant("", [CALL]), RESULT],
        "is used twice",
    ),
    "no call ID": ([assistant("", [ToolCall("", "t", {})])], "needs an ID and a name"),
    "no name": ([assistant("", [ToolCall("c", "", {})])], "needs an ID and a name"),
    "a dict": ([{"role": "user", "content": "u"}], "entry 1: expected a message"),
    "no text": ([user(None)], "entry 1: expected a message or a tool result, of text"),
    "an object as result": ([assistant("", [CALL]), ToolResult("call_a", {"ok": True})], "entry 2"),
    "a list as call ID": ([ToolResult(["call_a"], "")], "entry 1"),
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_each_call_has_one_result_before_anyone_speaks_again(history):
    check_history(history)


@pytest.mark.parametrize(("history", "reason"), BAD.values(), ids=BAD)
def test_what_no_provider_takes_is_refused_with_its_entry(history, reason):
    with pytest.raises(EncodingError) as refused:
        check_history(history)
    assert reason in str(refused.value)


def test_a_refusal_of_a_history_stays_short():
    call = ToolCall("c" * 100_000, "t", {"a": "x" * 100_000})
    for history in ([assistant("", [call])], [ToolResult("c" * 100_000, "")], ["x" * 100_000]):
        with pytest.raises(EncodingError) as refused:
            check_history(history)
        assert len(str(refused.value)) < 400


def test_a_catalog_finds_a_tool_by_its_exact_name_only():
    assert TOOLS.get("read_file") is READ_FILE
    for name in ("Read_file", "read_file ", "readfile", "", "read_filе"):  # noqa: RUF001
        assert TOOLS.get(name) is None
    assert TOOLS.names == ("read_file", "edit", "run_tests", "count")
    assert list(TOOLS)[1] is EDIT
    assert len(TOOLS) == 4
    assert repr(TOOLS) == "Catalog(read_file, edit, run_tests, count)"


def test_a_tool_needs_a_name_and_a_catalog_each_name_once():
    with pytest.raises(CatalogError):
        ToolSpec.strings("", "d")
    with pytest.raises(CatalogError, match='"edit" stands twice'):
        Catalog([EDIT, READ_FILE, EDIT])


FLAT = {"type": "function", "name": "t", "description": "d", "parameters": {"type": "object"}}
FORMS = {
    "flat": FLAT,
    "nested": {"type": "function", "function": {k: v for k, v in FLAT.items() if k != "type"}},
    "input schema": {"name": "t", "description": "d", "input_schema": {"type": "object"}},
    "no type": {"name": "t", "description": "d", "parameters": {"type": "object"}},
    "strict": {**FLAT, "strict": True},
}


@pytest.mark.parametrize("entry", FORMS.values(), ids=FORMS)
def test_a_catalog_is_read_in_the_form_of_each_api(entry):
    for captured in (False, True):
        (tool,) = Catalog.from_json([entry], captured=captured)
        assert (tool.name, tool.description) == ("t", "d")
        assert thaw(tool.parameters) == {"type": "object"}


def test_a_tool_may_leave_out_all_but_its_name():
    (tool,) = Catalog.from_json([{"name": "t", "description": None}])
    assert tool.description == ""
    assert tool.takes_nothing


def test_a_hosted_tool_is_none_that_the_host_runs():
    assert len(Catalog.from_json([{"type": "web_search"}, {"type": "mcp", "server": "x"}])) == 0
    assert Catalog.from_json([{"type": "web_search"}, FLAT]).names == ("t",)


NO_CATALOGS = [
    None,
    {},
    "tools",
    [None],
    [[]],
    ["t"],
    [{}],
    [{"name": 1}],
    [{"name": None}],
    [{"name": ""}],
    [{"type": "function"}],
    [{"function": None}],
    [{"function": "t"}],
    [{"name": "t", "parameters": "object"}],
    [{"name": "t", "parameters": []}],
    [{"name": "t", "parameters": False}],
    [FLAT, FLAT],
]


@pytest.mark.parametrize("tools", NO_CATALOGS, ids=repr)
@pytest.mark.parametrize("captured", [False, True])
def test_what_is_no_catalog_is_refused(tools, captured):
    with pytest.raises(CatalogError):
        Catalog.from_json(tools, captured=captured)


def test_every_deliberate_error_has_one_root():
    from agentlib import errors, failures
    from agentlib.decisions import failures as decision_failures

    found = [
        value
        for module in (errors, failures, decision_failures)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, BaseException)
    ]
    assert len(found) > 18
    assert all(issubclass(kind, AgentlibError) for kind in found)
    assert RUN_TESTS.takes_nothing

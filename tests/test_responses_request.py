"""The request of the Responses API: what goes out, in what shape, and what is refused."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import COUNT, EDIT, READ_FILE, TOOLS

from agentlib import Catalog, ToolCall, ToolResult, ToolSpec, assistant, system, user
from agentlib.errors import EncodingError
from agentlib.jsonvalues import FrozenObject, strict_loads
from agentlib.providers.requests import MAX_OUTPUT_TOKENS
from agentlib.providers.responses_request import encode_request

NONE = Catalog()
CALL = ToolCall("call_a", "read_file", FrozenObject({"path": "ä 😀.py"}))
OTHER = ToolCall("call_b", "edit", FrozenObject({"path": "b.py", "old": "", "new": "\n"}))
HISTORY = [
    system("Be brief."),
    user("Repair it."),
    assistant("I look first.", [CALL, OTHER]),
    ToolResult("call_b", "edited"),
    ToolResult("call_a", ""),
    assistant("Done."),
    user("Now harm."),
    assistant(refusal="I will not."),
    user("Then stop."),
]


def encode(*history, catalog=NONE, **options):
    return encode_request("gpt-5", history, catalog, **options)


def test_the_whole_history_goes_out_each_entry_as_its_items():
    request = encode(*HISTORY)
    assert request["input"] == [
        {"type": "message", "role": "system", "content": "Be brief."},
        {"type": "message", "role": "user", "content": "Repair it."},
        {"type": "message", "role": "assistant", "content": "I look first."},
        {
            "type": "function_call",
            "call_id": "call_a",
            "name": "read_file",
            "arguments": '{"path":"ä 😀.py"}',
        },
        {
            "type": "function_call",
            "call_id": "call_b",
            "name": "edit",
            "arguments": '{"path":"b.py","old":"","new":"\\n"}',
        },
        {"type": "function_call_output", "call_id": "call_b", "output": "edited"},
        {"type": "function_call_output", "call_id": "call_a", "output": ""},
        {"type": "message", "role": "assistant", "content": "Done."},
        {"type": "message", "role": "user", "content": "Now harm."},
        {
            "type": "message",
            "id": "msg_8",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "refusal", "refusal": "I will not."}],
        },
        {"type": "message", "role": "user", "content": "Then stop."},
    ]


def test_nothing_is_stored_and_nothing_earlier_is_referred_to():
    request = encode(user("u"))
    assert request["model"] == "gpt-5"
    assert request["store"] is False
    assert request["stream"] is True
    assert request["max_output_tokens"] == MAX_OUTPUT_TOKENS == 2048
    assert request["tools"] == []
    assert "previous_response_id" not in request
    assert encode(user("u"), max_output_tokens=100)["max_output_tokens"] == 100


def test_named_string_parameters_go_out_as_a_strict_schema():
    (tool,) = encode(user("u"), catalog=Catalog([EDIT]))["tools"]
    assert tool == {
        "type": "function",
        "name": "edit",
        "description": "Replace a text.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file."},
                "old": {"type": "string", "description": "Old."},
                "new": {"type": "string", "description": "New."},
            },
            "required": ["path", "old", "new"],
            "additionalProperties": False,
        },
        "strict": True,
    }


LOOSE = {
    "optional parameter": {"type": "object", "properties": {"a": {"type": "string"}}},
    "open ended": {"type": "object", "properties": {}, "required": []},
    "anything": {"type": "object", "properties": {"a": True}, "required": ["a"]},
    "another type": {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "a rule that strict mode may lack": {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "x"}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "a boolean schema": {
        "type": "object",
        "properties": {"a": True, "b": False},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("schema", LOOSE.values(), ids=LOOSE)
def test_any_other_schema_goes_out_as_it_is_and_not_strict(schema):
    catalog = Catalog([ToolSpec("t", "d", FrozenObject(schema))])
    (tool,) = encode(user("u"), catalog=catalog)["tools"]
    assert tool["parameters"] == schema
    assert tool["strict"] is False


def test_the_request_is_plain_json_of_its_own():
    request = encode(*HISTORY, catalog=TOOLS)
    assert strict_loads(json.dumps(request)) == request
    request["input"][3]["arguments"] = "changed"
    request["tools"][0]["parameters"]["properties"].clear()
    assert encode(*HISTORY, catalog=TOOLS) != request
    assert READ_FILE.parameters["properties"]["path"]["type"] == "string"


SURROGATE = "\ud83d"
REFUSED = {
    "nothing": [],
    "an empty message": [user("")],
    "an empty answer": [user("u"), assistant()],
    "an orphan result": [ToolResult("call_a", "x")],
    "a missing result": [assistant("", [CALL])],
    "a missing result before the next word": [assistant("", [CALL]), user("u")],
    "a duplicate ID": [assistant("", [CALL, CALL]), ToolResult("call_a", "")],
    "a name with a space": [assistant("", [ToolCall("c", "read file", {})]), ToolResult("c", "")],
    "a name with a dot": [assistant("", [ToolCall("c", "fs.read", {})]), ToolResult("c", "")],
    "a long name": [assistant("", [ToolCall("c", "n" * 65, {})]), ToolResult("c", "")],
    "a name with a line end": [assistant("", [ToolCall("c", "read\n", {})]), ToolResult("c", "")],
    "a surrogate in a text": [user(f"a{SURROGATE}b")],
    "a surrogate in a refusal": [assistant(refusal=SURROGATE)],
    "a surrogate in a result": [assistant("", [CALL]), ToolResult("call_a", SURROGATE)],
    "a surrogate in an argument": [
        assistant("", [ToolCall("c", "t", {"a": [SURROGATE]})]),
        ToolResult("c", ""),
    ],
    "a surrogate in an argument's name": [
        assistant("", [ToolCall("c", "t", {SURROGATE: 1})]),
        ToolResult("c", ""),
    ],
    "a surrogate in a call ID": [
        assistant("", [ToolCall(SURROGATE, "t", {})]),
        ToolResult(SURROGATE, ""),
    ],
    "NaN": [assistant("", [ToolCall("c", "t", {"a": math.nan})]), ToolResult("c", "")],
    "a set": [assistant("", [ToolCall("c", "t", {"a": {1}})]), ToolResult("c", "")],
    "bytes": [assistant("", [ToolCall("c", "t", {"a": b"x"})]), ToolResult("c", "")],
    "an object as result": [assistant("", [CALL]), ToolResult("call_a", {"ok": True})],
    "no text at all": [user(None)],
    "a foreign entry": [{"role": "user", "content": "u"}],
}


@pytest.mark.parametrize("history", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_carried_is_refused_with_a_short_reason(history):
    with pytest.raises(EncodingError) as refused:
        encode(*history)
    assert 10 < len(str(refused.value)) < 400
    assert str(refused.value).encode()


@pytest.mark.parametrize("name", ["read file", "", "x" * 65, "é", "a/b", "read\n"])
def test_a_tool_of_a_name_that_cannot_be_sent_is_refused(name):
    if name:
        with pytest.raises(EncodingError, match="cannot be sent"):
            encode(user("u"), catalog=Catalog([ToolSpec.strings(name, "d")]))


arguments = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ),
    max_size=4,
)


@settings(deadline=None)
@given(arguments, st.text(st.characters(codec="utf-8"), min_size=1))
def test_arguments_and_ids_survive_exactly(value, call_id):
    history = [assistant("", [ToolCall(call_id, "t", value)]), ToolResult(call_id, "ok")]
    call, result = encode(*history)["input"]
    assert strict_loads(call["arguments"]) == value
    assert call["call_id"] == result["call_id"] == call_id
    json.dumps(call, ensure_ascii=False).encode()


def evaluated(item):
    """Return what pydantic made of an item: it looks at an inner list only when that is read."""
    content = item.get("content")
    lazy = content is not None and not isinstance(content, str)
    return {**item, "content": [dict(part) for part in content]} if lazy else dict(item)


def test_the_sdk_takes_the_request_as_it_is():
    from openai.types.responses import response_create_params
    from pydantic import TypeAdapter

    request = encode(*HISTORY, catalog=Catalog([EDIT, COUNT]))
    adapter = TypeAdapter(response_create_params.ResponseCreateParamsStreaming)
    taken = adapter.validate_python(request, strict=False)
    assert set(taken) == set(request)
    assert [evaluated(item) for item in taken["input"]] == request["input"]
    assert [tool["name"] for tool in taken["tools"]] == ["edit", "count"]

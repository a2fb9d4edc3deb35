"""The encoders of Chat Completions and Messages, against the request models of the real APIs."""

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter
from sampling import examples
from wires import READ_FILE, RUN_TESTS, TOOLS

from agentlib import Catalog, ToolCall, ToolResult, ToolSpec, assistant, system, user
from agentlib.conversation import Message, RejectedCall
from agentlib.errors import EncodingError
from agentlib.jsonvalues import FrozenObject
from agentlib.providers.registry import PROVIDERS, find_provider

SCHEMAS = {
    name: json.loads((Path(__file__).parent / f"{name}_request.schema.json").read_text("utf-8"))
    for name in ("messages", "gemini")
}
MODELS = {
    "chat": TypeAdapter(CompletionCreateParamsStreaming),
    "responses": TypeAdapter(ResponseCreateParamsStreaming),
}


def read_file(call_id="call_a", path="src/app.py"):
    return ToolCall(call_id, "read_file", FrozenObject({"path": path}))


def run_tests(call_id="call_b"):
    return ToolCall(call_id, "run_tests", FrozenObject({}))


def consumed(value):
    """Take a validated value whole: pydantic checks the items of an iterable as they are taken."""
    if isinstance(value, dict):
        return {name: consumed(inner) for name, inner in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [consumed(inner) for inner in value]


def encode(provider, history, tools=TOOLS, **options):
    """Encode, and check the request: valid by its API's model, which knows every name in it."""
    request = find_provider(provider).encode("model-1", history, tools, **options)
    assert json.loads(json.dumps(request, allow_nan=False)) == request
    if provider in SCHEMAS:
        jsonschema.validate(request, SCHEMAS[provider], jsonschema.Draft202012Validator)
    else:
        assert consumed(MODELS[provider].validate_python(request)) == request
    return request


def refuses(provider, history, tools=TOOLS):
    with pytest.raises(EncodingError) as raised:
        find_provider(provider).encode("model-1", history, tools)
    return str(raised.value)


TWO_TURNS = [
    system("Be brief."),
    user("Repair it."),
    assistant("I look first.", [read_file(), run_tests()]),
    ToolResult("call_a", "def add(a, b): ..."),
    ToolResult("call_b", ""),
    assistant("It is repaired."),
    user("Thanks. And now?"),
]


# ----------------------------------------------------------------------------- the whole request


def test_a_chat_request_has_calls_inside_the_message_and_results_as_messages():
    request = encode("chat", TWO_TURNS, Catalog([READ_FILE]), max_output_tokens=99)
    assert request == {
        "model": "model-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Repair it."},
            {
                "role": "assistant",
                "content": "I look first.",
                "tool_calls": [
                    {
                        "id": "call_a",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path":"src/app.py"}'},
                    },
                    {
                        "id": "call_b",
                        "type": "function",
                        "function": {"name": "run_tests", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "call_a", "content": "def add(a, b): ..."},
            {"role": "tool", "tool_call_id": "call_b", "content": ""},
            {"role": "assistant", "content": "It is repaired."},
            {"role": "user", "content": "Thanks. And now?"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Read a file.",
                    "parameters": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string", "description": "The file's path."}
                        },
                        "required": ["path"],
                        "additionalProperties": False,
                    },
                    "strict": True,
                },
            }
        ],
        "max_completion_tokens": 99,
        "store": False,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_messages_request_alternates_and_has_the_system_text_outside():
    request = encode("messages", TWO_TURNS, Catalog([RUN_TESTS]), max_output_tokens=99)
    assert request == {
        "model": "model-1",
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Repair it."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look first."},
                    {
                        "type": "tool_use",
                        "id": "call_a",
                        "name": "read_file",
                        "input": {"path": "src/app.py"},
                    },
                    {"type": "tool_use", "id": "call_b", "name": "run_tests", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_a",
                        "content": "def add(a, b): ...",
                    },
                    {"type": "tool_result", "tool_use_id": "call_b", "content": ""},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It is repaired."}]},
            {"role": "user", "content": [{"type": "text", "text": "Thanks. And now?"}]},
        ],
        "tools": [
            {
                "name": "run_tests",
                "description": "Run the tests.",
                "input_schema": {
                    "type": "object",
                    "properties": {},
                    "required": [],
                    "additionalProperties": False,
                },
            }
        ],
        "max_tokens": 99,
        "stream": True,
    }


@pytest.mark.parametrize("provider", ["chat", "messages"])
def test_without_tools_none_are_named(provider):
    assert "tools" not in encode(provider, [user("Hi.")], Catalog())


def test_messages_of_one_side_are_joined_and_results_come_first():
    history = [
        system("One."),
        system("Two."),
        user("Read it."),
        user("Quickly."),
        assistant("", [read_file()]),
        ToolResult("call_a", "text"),
        user("And?"),
    ]
    request = encode("messages", history)
    assert request["system"] == "One.\n\nTwo."
    assert [m["role"] for m in request["messages"]] == ["user", "assistant", "user"]
    kinds = [[part["type"] for part in m["content"]] for m in request["messages"]]
    assert kinds == [["text", "text"], ["tool_use"], ["tool_result", "text"]]


def test_a_chat_message_without_text_has_null_content_beside_its_calls():
    request = encode(
        "chat", [user("Go."), assistant("", [run_tests()]), ToolResult("call_b", "ok")]
    )
    assert request["messages"][1]["content"] is None


def test_a_chat_refusal_is_sent_as_a_refusal():
    alone = encode("chat", [user("Go."), assistant(refusal="No."), user("Why?")])["messages"][1]
    assert alone["content"] == [{"type": "refusal", "refusal": "No."}]
    beside = encode("chat", [user("Go."), assistant("Hm.", refusal="No."), user("Why?")])
    assert beside["messages"][1] == {"role": "assistant", "content": "Hm.", "refusal": "No."}


def test_a_rejected_call_goes_out_as_it_came_where_the_api_takes_text():
    told = Message("assistant", rejected=(RejectedCall("call_x", "read_file", '{"path": '),))
    history = [user("Go."), told, ToolResult("call_x", "error: the arguments end early")]
    sent = encode("chat", history)["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert sent == '{"path": '
    assert "entry 2" in refuses("messages", history)


def test_a_loose_schema_is_not_called_strict():
    loose = ToolSpec("find", "Find.", FrozenObject({"type": "object", "properties": {}}))
    request = encode("chat", [user("Go.")], Catalog([loose]))
    assert request["tools"][0]["function"]["strict"] is False


# ------------------------------------------------------------------- what cannot be carried


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ([user("Go."), system("Late.")], "entry 2"),
        ([assistant("Hello."), user("Hi.")], "begin with the user"),
        ([system("Alone.")], "begin with the user"),
        ([], "begin with the user"),
        ([user("Go."), assistant(refusal="No."), user("Why?")], "entry 2"),
        ([user("Go."), assistant("", [run_tests("call b")]), ToolResult("call b", "x")], "call ID"),
        ([user("Go."), assistant("", [run_tests("漢")]), ToolResult("漢", "x")], "call ID"),
        ([user(" \n")], "white space"),
        ([system("\t"), user("Go.")], "white space"),
        ([user("Go."), assistant("  ", [run_tests()]), ToolResult("call_b", "x")], "white space"),
    ],
)
def test_what_messages_cannot_carry_is_an_error_that_names_it(history, told):
    assert told in refuses("messages", history)


def test_messages_takes_schemas_of_objects_only():
    loose = Catalog([ToolSpec("any", "Any.", FrozenObject({}))])
    assert "'any'" in refuses("messages", [user("Go.")], loose).replace('"', "'")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "history",
    [
        [],
        [user("Go."), assistant("")],
        [user("")],
        [user("\ud800")],
        [user("Go."), assistant("\udfff")],
        [user("Go."), assistant("", [read_file(path="\ud800")]), ToolResult("call_a", "x")],
        [user("Go."), assistant("", [read_file()]), ToolResult("call_a", "\ud800")],
        [user("Go."), assistant("", [read_file("\ud800")]), ToolResult("\ud800", "x")],
        [user("Go."), assistant("", [ToolCall("c", "a b", {})]), ToolResult("c", "x")],
        [user("Go."), assistant("", [ToolCall("c", "x" * 65, {})]), ToolResult("c", "x")],
    ],
)
def test_what_no_api_carries_is_an_error(provider, history):
    assert refuses(provider, history)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", ["a b", "a.b", "ä", "x" * 65])
def test_a_tool_name_that_no_api_takes_is_an_error(provider, name):
    assert "tool name" in refuses(provider, [user("Go.")], Catalog([ToolSpec.strings(name, "X.")]))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ([], "before the result"),
        ([user("Well?")], "before the result"),
        ([ToolResult("call_a", "x")], "before the result"),
        ([ToolResult("call_a", "x"), ToolResult("call_a", "y")], "second result"),
        ([ToolResult("call_z", "x")], "without a call"),
        (
            [ToolResult("call_a", "x"), ToolResult("call_b", "y"), ToolResult("call_b", "z")],
            "second result",
        ),
        (
            [
                ToolResult("call_a", "x"),
                ToolResult("call_b", "y"),
                assistant("", [run_tests("call_a")]),
                ToolResult("call_a", "z"),
            ],
            "used twice",
        ),
    ],
)
def test_every_committed_call_has_exactly_one_output(provider, rest, told):
    history = [user("Go."), assistant("", [read_file(), run_tests()]), *rest]
    assert told in refuses(provider, history)


# ------------------------------------------------------------------------------- any history

WORDS = st.text("abcäñ漢😀 \n\"'<{", min_size=1, max_size=12).filter(lambda text: text.strip())


@st.composite
def histories(draw):
    """Draw a history that every provider can carry."""
    entries = [system(draw(WORDS))] if draw(st.booleans()) else []
    entries.append(user(draw(WORDS)))
    numbers = iter(range(100))
    for _ in range(draw(st.integers(0, 3))):
        paths = draw(st.lists(WORDS, max_size=3))
        calls = [read_file(f"call_{next(numbers)}", path) for path in paths]
        said = draw(WORDS) if not calls or draw(st.booleans()) else ""
        entries.append(assistant(said, calls))
        results = [ToolResult(call.call_id, draw(st.text(max_size=8))) for call in calls]
        entries += draw(st.permutations(results))
        if not calls or draw(st.booleans()):
            entries.append(user(draw(WORDS)))
    return entries


def sent_calls(provider, request):
    """Return what a request says of calls and results, in order, in one form for all APIs."""
    if provider == "responses":
        for item in request["input"]:
            if item["type"] == "function_call":
                yield "call", item["call_id"], json.loads(item["arguments"])
            elif item["type"] == "function_call_output":
                yield "result", item["call_id"], item["output"]
    elif provider == "chat":
        for message in request["messages"]:
            for call in message.get("tool_calls", ()):
                yield "call", call["id"], json.loads(call["function"]["arguments"])
            if message["role"] == "tool":
                yield "result", message["tool_call_id"], message["content"]
    elif provider == "gemini":
        for part in (part for content in request["contents"] for part in content["parts"]):
            if "functionCall" in part:
                yield "call", part["functionCall"]["id"], part["functionCall"]["args"]
            elif "functionResponse" in part:
                result = part["functionResponse"]
                yield "result", result["id"], result["response"]["output"]
    else:
        for message in request["messages"]:
            for part in message["content"]:
                if part["type"] == "tool_use":
                    yield "call", part["id"], part["input"]
                elif part["type"] == "tool_result":
                    yield "result", part["tool_use_id"], part["content"]


def meant_calls(history):
    for entry in history:
        if isinstance(entry, ToolResult):
            yield "result", entry.call_id, entry.output
        else:
            yield from (("call", call.call_id, dict(call.arguments)) for call in entry.calls)


def in_the_order_of_calls(meant):
    """Put the results of each turn in the order of its calls, as an API without IDs needs it."""
    calls = [call_id for what, call_id, _ in meant if what == "call"]
    ordered = iter(sorted((m for m in meant if m[0] == "result"), key=lambda m: calls.index(m[1])))
    return [next(ordered) if m[0] == "result" else m for m in meant]


@pytest.mark.parametrize("provider", PROVIDERS)
@given(history=histories())
@settings(max_examples=examples(60), deadline=None)
def test_any_history_is_carried_whole_and_in_order(provider, history):
    request = encode(provider, history)
    meant = list(meant_calls(history))
    if provider == "gemini":
        meant = in_the_order_of_calls(meant)
    assert list(sent_calls(provider, request)) == meant
    sent = json.dumps(request, ensure_ascii=False)
    for entry in history:
        if isinstance(entry, Message):
            assert json.dumps(entry.text, ensure_ascii=False)[1:-1] in sent

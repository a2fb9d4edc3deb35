"""What a page shows: stable texts, and nothing of a stream as HTML."""

import inspect

import pytest

from agentlib import ToolCall, ToolResult, assistant, user
from agentlib.assembly import Assembly
from agentlib.fixtures import capture
from agentlib.gate import examine, first_failure
from agentlib.tables import MAX_CELL_CHARACTERS, table
from workbook.pages.page import as_json, events, source, transcript

HOSTILE = '<img src=x onerror="alert(1)">\u202e\x1b[31m'


def test_source_is_what_stands_in_the_file():
    shown = source(examine)

    assert repr(shown) == f"# agentlib/gate.py\n{inspect.getsource(examine).rstrip()}"
    assert repr(source("agentlib.gate.examine")) == repr(shown)
    assert shown._repr_markdown_() == f"```python\n{shown!r}\n```\n"


def test_several_pieces_of_one_module_stand_as_python_writes_them():
    assert "\n\n\ndef first_failure" in repr(source(examine, first_failure))
    methods = repr(source(Assembly.accept, Assembly.end))
    assert methods.startswith("# agentlib/assembly.py\ndef accept(self")
    assert "\n\ndef end(self" in methods
    assert "\n\n\ndef end(self" not in methods


def test_source_of_two_modules_is_refused():
    with pytest.raises(ValueError, match="one module at a time"):
        source(examine, table)


def test_a_table_lines_up_and_its_html_says_the_same():
    shown = table("name, n", [("a", 1), ("long name", 22)])

    assert repr(shown).splitlines() == [
        "name       n",
        "---------  --",
        "a          1",
        "long name  22",
    ]
    assert shown._repr_html_().count("<tr>") == 3
    assert ">name</th>" in shown._repr_html_()


def test_an_empty_table_has_its_headings():
    assert repr(table("a, b", [])) == "a  b\n-  -"


def test_hostile_text_is_shown_as_text_and_bounded():
    shown = table("text", [(HOSTILE + "x" * 500,)])

    assert "<img" not in shown._repr_html_()
    for form in (repr(shown), shown._repr_html_()):
        assert "\u202e" not in form
        assert "\x1b" not in form
    assert max(map(len, repr(shown).splitlines())) <= MAX_CELL_CHARACTERS


def test_events_are_listed_with_their_fragments():
    shown = events(capture("disconnect"), first=5, last=7)

    assert [row[:2] for row in shown.rows] == [
        ("5", "arguments.delta"),
        ("6", "arguments.delta"),
        ("7", "arguments.done"),
    ]
    assert shown.rows[0][2].startswith('"{\\"path\\"')
    assert len(events(capture("disconnect")).rows) == 8


@pytest.mark.parametrize("name", ["hostile", "hostile_released"])
def test_hostile_events_are_listed_as_text(name):
    assert "<img" not in events(capture(name))._repr_html_()


def test_json_is_written_with_indents_and_nothing_invisible():
    assert repr(as_json({"a": [1, "é"]})) == '{\n  "a": [\n    1,\n    "é"\n  ]\n}'
    assert "\u202e" not in repr(as_json({"a": HOSTILE}))
    assert repr(as_json(ToolCall("c", "n", {"a": (1,)}).arguments)) == repr(as_json({"a": [1]}))


def test_a_transcript_has_each_entry_and_each_call():
    calls = [ToolCall("call_1", "list", {}), ToolCall("call_2", "read", {"path": "a.py"})]
    history = [
        user("Please."),
        assistant("I will look.", calls),
        ToolResult("call_1", "a.py\nb.py\nc.py"),
        ToolResult("call_2", ""),
        assistant("", calls[:1]),
        assistant(refusal="I cannot."),
    ]

    assert repr(transcript(history)).splitlines() == [
        "user       Please.",
        "assistant  I will look.",
        "           calls list {} as call_1",
        '           calls read {"path":"a.py"} as call_2',
        "result     call_1: a.py",
        "           (2 lines more)",
        "result     call_2:",
        "assistant  calls list {} as call_1",
        "assistant  refuses: I cannot.",
    ]

"""The small loop, its two models, and the project in memory."""

import pytest

from agentlib.conversation import ToolResult, check_history, user
from agentlib.failures import StreamCut
from agentlib.fixtures import capture, scenario
from workbook.pages.project import Project
from workbook.pages.small_loop import RecordedModel, ScriptedModel, run, said, wants

REQUEST = user("Please repair add().")


def test_it_asks_runs_and_tells_until_the_model_answers():
    model = ScriptedModel(
        said("", wants("call_1", "list"), wants("call_2", "read", path="calculator.py")),
        said("Done."),
    )
    project = Project()
    history = run(model, [REQUEST], project)

    assert [type(entry).__name__ for entry in history] == [
        "Message",
        "Message",
        "ToolResult",
        "ToolResult",
        "Message",
    ]
    assert [entry.call_id for entry in history if isinstance(entry, ToolResult)] == [
        "call_1",
        "call_2",
    ]
    assert project.ran == ["list", "read"]
    assert model.turns == 2
    check_history(history)


def test_it_leaves_the_callers_history_alone():
    history = [REQUEST]
    run(ScriptedModel(said("Done.")), history, Project())

    assert history == [REQUEST]


def test_recorded_responses_repair_the_project():
    project = Project()
    history = run(RecordedModel(*scenario("success").captures), [REQUEST], project)

    assert project.ran == ["read", "edit", "test"]
    assert "return a + b" in project.files["calculator.py"]
    results = [entry.output for entry in history if isinstance(entry, ToolResult)]
    assert results[1:] == ["edited calculator.py", "the tests pass"]
    assert history[-1].text == "add() adds now, and the test passes."


def test_a_response_that_was_cut_passes_through_and_nothing_of_it_runs():
    project = Project()
    model = RecordedModel(capture("success_1_read"), capture("disconnect"))

    with pytest.raises(StreamCut):
        run(model, [REQUEST], project)

    assert project.ran == ["read"]
    assert model.turns == 2
    assert "return a - b" in project.files["calculator.py"]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("read", {"path": "../secret"}, "error: there is no file '../secret'; there are: calc"),
        ("edit", {"path": "calculator.py", "old": "a // b", "new": ""}, "error: expected 'a // b'"),
        ("edit", {"path": "calculator.py", "old": "return a", "new": ""}, "found it 2 times"),
        ("edit", {"path": "calculator.py", "old": "", "new": "x"}, "found it 0 times"),
        ("edit", {"path": "no.py", "old": "x", "new": "y"}, "error: there is no file 'no.py'"),
        ("list", {}, "calculator.py\ntest_calculator.py"),
        ("test", {}, "the tests fail (exit status 1)"),
    ],
)
def test_what_a_tool_cannot_do_is_told(name, arguments, told):
    project = Project()
    files = dict(project.files)

    assert told in project.run(wants("call_1", name, **arguments)).output
    assert project.files == files


def test_each_project_is_fresh():
    Project().files.clear()

    assert Project().files


@pytest.mark.parametrize("name", ["success_2_edit", "chat_edit", "messages_edit"])
def test_a_recorded_turn_may_be_released_by_its_last_event_or_by_its_end(name):
    project = Project()
    answer = capture("success_4_answer")
    run(RecordedModel(capture(name), answer), [REQUEST], project)

    assert project.ran == ["edit"]

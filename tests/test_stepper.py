"""The stepper without a browser: the widget's state, its text forms, and what its script may do."""

import copy
import re
import zlib

import ipywidgets
import nbformat
import pytest
import traitlets
from nbclient import NotebookClient
from nbconvert.preprocessors import ExecutePreprocessor

from agentlib.recordings.capture import Capture, CaptureNotFound
from agentlib.stepper.front_end import (
    FRONT,
    SAVED_SCRIPT,
    SCRIPTS,
    STYLES,
    front_script,
    front_style,
    read_front,
)
from agentlib.stepper.payload import to_wire
from agentlib.stepper.replay import Replay
from agentlib.stepper.run_front import (
    RUN_SAVED_SCRIPTS,
    RUN_SCRIPTS,
    RUN_STYLES,
    run_script,
)
from agentlib.stepper.widget import MAX_FILE_BYTES, WIDGET_VIEW, Stepper

# What could turn text into markup or code, or an attribute into one.
MARKUP = (
    "innerHTML|outerHTML|insertAdjacentHTML|document.write|DOMParser|createContextualFragment"
    "|setHTML|srcdoc|innerText|eval|Function|setAttribute\\([\"']on|\\bhref|\\.src\\b|importScripts"
)
# What could reach another machine, or keep something on this one.
REACH = "fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import\\b|localStorage|cookie"


@pytest.fixture
def disconnect(root):
    return root / "fixtures" / "streams" / "disconnect.sse"


@pytest.fixture
def stepper(disconnect):
    return Stepper(disconnect)


@pytest.fixture(autouse=True)
def close_widgets():
    yield
    ipywidgets.Widget.close_all()


@pytest.fixture(params=sorted(path.name for path in FRONT.iterdir()))
def source(request):
    return (FRONT / request.param).read_text(encoding="utf-8")


# The index


def test_it_opens_before_the_first_event(stepper):
    assert stepper.index == 0
    assert stepper.frame.label == "nothing read yet"


def test_it_opens_where_it_is_told(disconnect):
    assert Stepper(disconnect, index=3).frame.index == 3


@pytest.mark.parametrize(("asked", "index"), [(-1, 0), (-(10**9), 0), (4, 4), (10**9, None)])
def test_an_index_outside_is_the_nearest_inside(stepper, asked, index):
    stepper.index = asked
    assert stepper.index == (stepper.last if index is None else index)
    assert stepper.frame.index == stepper.index
    assert stepper.seek(asked).index == stepper.index


def test_an_index_that_is_no_integer_is_refused_and_changes_nothing(stepper):
    stepper.index = 2
    with pytest.raises(traitlets.TraitError):
        stepper.index = "3"
    assert stepper.index == stepper.frame.index == 2


def test_the_index_drives_the_frame(stepper):
    for index in range(stepper.last + 1):
        stepper.index = index
        assert stepper.frame.text == stepper.replay.seek(index).text


def test_the_browsers_index_is_the_readers(stepper):
    stepper.set_state({"index": 5})
    assert stepper.frame.index == 5
    stepper.set_state({"index": 10_000})
    assert stepper.index == stepper.frame.index == stepper.last


@pytest.mark.parametrize("walk", ["step", "back", "next_change", "previous_change", "run"])
def test_each_method_moves_the_widget_as_it_moves_a_replay(stepper, disconnect, walk):
    replay = Replay(disconnect)
    for index in range(stepper.last + 1):
        stepper.seek(index)
        replay.seek(index)
        assert getattr(stepper, walk)().text == getattr(replay, walk)().text
        assert stepper.index == replay.index


def test_a_reader_of_the_index_is_told_of_every_step(stepper):
    told = []
    stepper.observe(lambda change: told.append(change["new"]), "index")
    stepper.step()
    stepper.run()
    stepper.run()
    assert told == [1, stepper.last]


def test_it_says_what_the_gate_decided(stepper, root):
    assert stepper.decision is None
    assert stepper.failure is stepper.replay.failure
    released = Stepper(root / "fixtures" / "streams" / "text_only.sse")
    assert released.decision is not None
    assert released.failure is None


def test_it_takes_a_capture_as_well_as_a_path(disconnect):
    assert Stepper(Capture.load(disconnect)).trace == Stepper(disconnect).trace


def test_it_shows_the_response_that_it_is_asked_for(root):
    capture = Capture.load(root / "fixtures" / "streams" / "two_responses.sse")
    first, second = Stepper(capture), Stepper(capture, response=2)
    assert first.trace["title"] != second.trace["title"]
    with pytest.raises(ValueError, match="from 1 to 2"):
        Stepper(capture, response=3)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(CaptureNotFound):
        Stepper(tmp_path / "none.sse")


# A file of the reader's own


def test_a_file_of_the_page_takes_the_place_of_what_was_shown(stepper, root):
    data = (root / "fixtures" / "streams" / "chat_edit.sse").read_bytes()
    stepper.edits = [["cut", [3]]]
    stepper.set_state({"index": 4, "file": {"name": "mine.sse", "data": memoryview(data)}})
    assert stepper.capture == Capture.from_bytes(data, name="mine")
    assert (stepper.index, stepper.edits, stepper.whatif["error"]) == (0, [], "")
    assert stepper.trace == Stepper(stepper.capture).trace
    assert stepper.whatif["shown"] == "Stepper(Capture.load('mine.sse'))"
    stepper.edits = [["drop", [2]]]
    assert stepper.whatif["code"] == "Capture.load('mine.sse').drop(2)"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, "expected a file with its name and its bytes"),
        ([], "expected a file"),
        ({"name": "a.sse"}, "expected a file"),
        ({"name": 1, "data": b""}, "expected a file"),
        ({"name": "a.sse", "data": "text"}, "expected a file"),
        ({"name": "a.sse", "data": b""}, "a.sse holds no stream: the file is empty"),
        ({"name": "a.png", "data": b"\x89PNG\r\n\x00\xff"}, "a.png holds no stream"),
        ({"name": "\u202e.sse", "data": b"hello"}, "holds no stream"),
        ({"name": "big.sse", "data": b" " * (MAX_FILE_BYTES + 1)}, "at most 32,000,000 bytes"),
    ],
    ids=range(9),
)
def test_a_file_that_holds_no_stream_is_answered_and_changes_nothing(stepper, file, said):
    stepper.edits = [["cut", [7]]]
    stepper.seek(3)
    text, answers = repr(stepper), stepper.whatif["answer"]
    stepper.set_state({"file": file})
    assert said in stepper.whatif["error"]
    assert "\u202e" not in stepper.whatif["error"]
    assert stepper.whatif["answer"] == answers + 1
    assert repr(stepper) == text


# What goes to the browser


def test_raw_events_are_deflated_and_nothing_else_is_changed(stepper):
    wire = to_wire(stepper.replay.trace)
    shown = copy.copy(stepper.trace)
    assert shown.pop("deflated")
    assert zlib.decompress(shown.pop("raw")) == wire.pop("raw")
    assert shown == wire


def test_columns_travel_as_bytes(stepper):
    assert all(isinstance(stepper.trace[name], bytes) for name in ("kind", "role", "raw", "offset"))
    assert all(isinstance(buffer["at"], bytes) for buffer in stepper.trace["buffers"])


# Its text forms


def test_its_text_is_the_frame_and_a_digest_of_the_trace(stepper):
    stepper.seek(6)
    *frame, last = repr(stepper).splitlines()
    assert "\n".join(frame) == stepper.frame.text
    assert re.fullmatch(r"  trace    [\d,]+ events, [0-9a-f]{12}", last)


def test_its_text_holds_nothing_of_this_machine_or_run(stepper, disconnect, root):
    again = Stepper(str(disconnect))
    assert repr(again) == repr(stepper)
    for text in stepper._repr_mimebundle_()[0].values():
        assert str(root) not in str(text)
        assert "0x" not in str(text)
    assert stepper.model_id not in repr(stepper) + stepper._repr_mimebundle_()[0]["text/html"]


def test_a_trace_that_differs_in_one_character_has_another_digest(disconnect):
    data = disconnect.read_bytes()
    changed = data.replace(b"return a + b", b"return a * b", 1)
    assert changed != data
    one = Stepper(Capture.from_bytes(data, name="disconnect"))
    other = Stepper(Capture.from_bytes(changed, name="disconnect"))
    assert one.frame.text == other.frame.text
    assert one.digest != other.digest


def test_it_is_shown_as_text_as_html_and_as_a_widget(stepper):
    stepper.run()
    data, metadata = stepper._repr_mimebundle_(include=None, exclude=None)
    assert metadata == {}
    assert data["text/plain"] == repr(stepper)
    assert data["text/html"].startswith(stepper.frame._repr_html_())
    assert "Run this cell" in data["text/html"]
    assert data[WIDGET_VIEW]["model_id"] == stepper.model_id


def test_hostile_text_is_escaped_in_its_html(root):
    widget = Stepper(root / "fixtures" / "streams" / "hostile.sse")
    for index in range(widget.last + 1):
        widget.seek(index)
        snapshot = widget._repr_mimebundle_()[0]["text/html"]
        assert not re.search(r"<(img|script|a|style|textarea)\b", snapshot, re.IGNORECASE)


def executed(root, preprocess):
    code = (
        "from agentlib.stepper.widget import Stepper\n"
        "Stepper('fixtures/streams/disconnect.sse', index=6)"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    preprocess(notebook, str(root))
    return notebook


@pytest.mark.exhaustive
def test_run_twice_a_notebook_has_the_same_outputs_and_no_widget_state(root):
    def with_nbconvert(notebook, path):
        worker = ExecutePreprocessor(timeout=60, store_widget_state=False)
        worker.preprocess(notebook, {"metadata": {"path": path}})

    def with_nbclient(notebook, path):
        settings = {"store_widget_state": False, "resources": {"metadata": {"path": path}}}
        NotebookClient(notebook, timeout=60, **settings).execute()

    one, other = executed(root, with_nbconvert), executed(root, with_nbclient)
    assert "widgets" not in one.metadata
    shown, again = (notebook.cells[0].outputs[0].data for notebook in (one, other))
    assert shown.pop(WIDGET_VIEW) != again.pop(WIDGET_VIEW)
    assert shown == again
    assert set(shown) == {"text/plain", "text/html"}


# Its script and style


def test_text_can_become_neither_markup_nor_code(source):
    assert not re.findall(MARKUP, source)


def test_nothing_is_asked_of_a_network(source):
    assert not re.findall(REACH, source)
    addresses = set(re.findall(r"\w+://[^\s\"']+|url\([^)]*\)|@import", source))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_every_file_is_part_of_a_widget_or_of_a_saved_page():
    of_runs = {*RUN_SCRIPTS, *RUN_STYLES, *RUN_SAVED_SCRIPTS}
    assert {path.name for path in FRONT.iterdir()} == {*SCRIPTS, *STYLES, *of_runs}
    assert SAVED_SCRIPT not in SCRIPTS
    assert all(read_front(name) in front_script() for name in SCRIPTS)
    assert all(read_front(name) in front_style() for name in STYLES)


@pytest.mark.parametrize("script", [front_script, run_script])
def test_no_name_is_defined_by_two_scripts(script):
    names = re.findall(
        r"^(?:export )?(?:async )?(?:const|let|function) (\w+)", script(), re.MULTILINE
    )
    assert len(names) == len(set(names))


@pytest.mark.parametrize("script", [front_script, run_script])
def test_of_a_model_it_uses_what_any_page_can_offer(script):
    assert set(re.findall(r"model\.(\w+)", script())) == {"get", "set", "on", "save_changes"}


def test_lines_of_the_front_end_fit_a_screen(source):
    assert max(map(len, source.splitlines())) <= 100


def test_the_style_names_no_colour_outside_its_tokens():
    rules = front_style().split("--ags-sans", 1)[1]
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(", rules)


def test_nothing_moves_by_itself():
    assert not re.findall(r"\b(?:transition|animation|scroll-behavior)\b", front_style())

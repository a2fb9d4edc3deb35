"""A stepper as one file: inert, bounded, without a network, readable without JavaScript."""

import base64
import hashlib
import json
import re
from html import unescape

import ipywidgets
import pytest

from agentlib.commands import main
from agentlib.fixtures import capture, capture_names
from agentlib.recordings.capture import Capture, CaptureNotFound
from agentlib.stepper.html_export import (
    MAX_STEPPERS,
    CannotSave,
    SavedStepper,
    data,
    of_capture,
    page,
    save_page,
)
from agentlib.stepper.replay import Replay
from agentlib.stepper.widget import Stepper

MOST_BYTES = 150_000


@pytest.fixture(autouse=True)
def close_widgets():
    yield
    ipywidgets.Widget.close_all()


def page_of(stream):
    return page(stream.name, [*of_capture("file.sse", stream)])


def elements(text, name):
    """The attributes and the content of each such element."""
    return re.findall(rf"<{name}\b([^>]*)>(.*?)</{name}>", text, re.DOTALL)


def test_the_policy_allows_this_script_and_this_style_and_nothing_else():
    text = page_of(capture("hostile"))
    (rules,) = re.findall('Content-Security-Policy" content="([^"]*)"', text)
    policy = dict(rule.split(" ", 1) for rule in rules.split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    (style,) = (inner for _, inner in elements(text, "style"))
    (script,) = (inner for kind, inner in elements(text, "script") if "json" not in kind)
    for directive, content in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    assert set(policy) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}


@pytest.mark.parametrize("name", capture_names())
def test_it_is_small_and_names_no_address(name):
    stream = capture(name)
    text = page_of(stream)
    own = sum(len(inner) for kind, inner in elements(text, "script") if "json" in kind)
    assert len(text.encode()) - own < MOST_BYTES
    outside = re.sub(r"<script type=.application/json.*?</script>", "", text, flags=re.DOTALL)
    assert set(re.findall(r"\bhttps?://[^\s\"']+", outside)) <= {"http://www.w3.org/2000/svg"}
    assert "\r" not in text


def test_every_response_has_its_stepper_its_heading_and_its_verdict():
    text = page_of(capture("two_responses"))
    headings = [unescape(inner) for _, inner in elements(text, "h2")]
    assert headings == [
        f"file.sse · response {n} · OpenAI Responses · authored fixture" for n in (1, 2)
    ]
    verdicts = [unescape(inner) for _, inner in elements(text, "p")]
    assert verdicts[0].startswith("DISCARDED at the end of the stream, after event 4: ")
    assert verdicts[1] == "RELEASED at event 8: 1 call released"
    assert text.count("data-stepper=") == 2


def test_without_javascript_the_text_form_is_read():
    (inner,) = (inner for _, inner in elements(page_of(capture("disconnect")), "noscript"))
    replay = Replay(capture("disconnect"))
    assert unescape(inner) == f"<pre>{replay.run().text}</pre>"


@pytest.mark.parametrize(
    "name", ["</script><img src=x onerror=a()>", "a\u2028b\u202e\x00", "'\"&<"]
)
def test_hostile_text_is_inert(name):
    stream = Capture.from_events(capture("hostile").events, name)
    text = page(name, [SavedStepper(name, Replay(stream), text=name)])
    assert not re.search("[\u2028\u202e\x00]", text)
    assert not re.search(r"<(img|a|iframe|textarea)\b", text, re.IGNORECASE)
    assert text.lower().count("<script") == 2
    assert text.lower().count("</script") == 2


def test_data_in_a_page_has_nothing_that_ends_its_element_and_is_what_it_was():
    values = {"a": ["</script><!--\u2028\ud800😀", 1, None], "b": b"\x00\xff<"}
    text = data(values)
    assert "<" not in text
    assert text.isascii()
    assert json.loads(text) == {**values, "b": {"bytes": "AP88"}}


def test_a_page_holds_so_many_steppers_and_says_how_many_it_left_out():
    replay = Replay(capture("text_only"))
    text = page("many", [SavedStepper("one", replay)] * (MAX_STEPPERS + 2))
    assert text.count("data-stepper=") == MAX_STEPPERS
    assert "<p>2 responses more: not in this page.</p>" in text


def test_a_stepper_is_saved_where_the_reader_stopped_with_its_edits(tmp_path):
    stepper = Stepper(capture("success_2_edit"), index=13)
    stepper.edits = [["drop", [15]]]
    path = stepper.save_html(tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    (values,) = (inner for kind, inner in elements(text, "script") if "json" in kind)
    assert json.loads(values)["index"] == 13
    assert "edited: capture(&#x27;success_2_edit&#x27;).drop(15)" in text
    (shown,) = (unescape(inner) for _, inner in elements(text, "noscript"))
    for line in repr(stepper).splitlines()[:-1]:
        assert line in shown
    assert stepper.save_html(str(path)) == path


def test_the_command_writes_it_beside_what_it_prints(tmp_path, root, capsys):
    streams = [str(root / "fixtures" / "streams" / f"{n}.sse") for n in ("disconnect", "chat_edit")]
    out = tmp_path / "out.html"
    assert main(["inspect", *streams, "--html", str(out)]) == 1
    assert "REJECTED at event 8" in capsys.readouterr().out
    text = out.read_text(encoding="utf-8")
    assert text.count("data-stepper=") == 2
    assert "disconnect.sse · response 1 · OpenAI Responses" in text


def test_a_file_that_cannot_be_written_is_named(tmp_path, root, capsys):
    target = tmp_path / "none" / "out.html"
    stream = str(root / "fixtures" / "streams" / "text_only.sse")
    assert main(["inspect", stream, "--html", str(target)]) == 2
    assert f"cannot write {target}: No such file" in capsys.readouterr().err
    with pytest.raises(CannotSave, match="cannot write"):
        save_page(target, "x", [])


def test_a_capture_is_never_replaced_by_its_page(tmp_path, root, capsys):
    stream = tmp_path / "mine.sse"
    stream.write_bytes((root / "fixtures" / "streams" / "text_only.sse").read_bytes())
    before = stream.read_bytes()
    assert main(["inspect", "--html", str(stream), str(stream)]) == 2
    said = capsys.readouterr()
    assert "expected a name that ends in .html" in said.err
    assert said.out == ""
    assert stream.read_bytes() == before


@pytest.mark.parametrize("way", ["itself", "a link to it", "a hard link", "another spelling"])
def test_no_file_that_is_read_is_replaced_whatever_it_is_called(tmp_path, root, capsys, way):
    stream = tmp_path / "mine.html"
    stream.write_bytes((root / "fixtures" / "streams" / "text_only.sse").read_bytes())
    target = tmp_path / "out.html"
    if way == "a link to it":
        target.symlink_to(stream)
    elif way == "a hard link":
        target.hardlink_to(stream)
    else:
        target = stream if way == "itself" else tmp_path / ".." / tmp_path.name / stream.name
    before = stream.read_bytes()
    assert main(["inspect", str(stream), "--html", str(target)]) == 2
    said = capsys.readouterr()
    assert "it is the file that is read" in said.err
    assert said.out == ""
    assert stream.read_bytes() == before


def test_a_link_is_refused_by_its_name_and_nothing_is_lost(tmp_path, root, capsys):
    other, link = tmp_path / "other.sse", tmp_path / "link.html"
    other.write_bytes(b"data: {}\n\n")
    link.symlink_to(other)
    stream = str(root / "fixtures" / "streams" / "text_only.sse")
    assert main(["inspect", stream, "--html", str(link)]) == 2
    assert "link.html: it is a link" in capsys.readouterr().err
    assert other.read_bytes() == b"data: {}\n\n"
    assert link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"other.sse", "link.html"}


@pytest.mark.parametrize("name", ["a\x00.html", "\ud800.html", f"{'a' * 300}.html", "folder.html"])
def test_a_name_that_no_file_can_have_is_said_so_and_nothing_is_left(tmp_path, name):
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(CannotSave, match="cannot write") as raised:
        save_page(tmp_path / name, "x", [])
    assert "\x00" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


@pytest.mark.parametrize("name", ["a\x00.sse", "\ud800.sse", f"{'a' * 300}.sse", "", "folder.sse"])
def test_a_name_that_no_file_can_have_is_no_capture(tmp_path, name):
    (tmp_path / "folder.sse").mkdir()
    with pytest.raises(CaptureNotFound):
        Capture.load(tmp_path / name)


def test_a_page_says_the_name_of_a_file_and_not_where_it_lies(tmp_path, root):
    stream = root / "fixtures" / "streams" / "text_only.sse"
    out = tmp_path / "out.html"
    assert main(["inspect", str(stream), "--html", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "<h1>text_only.sse</h1>" in text
    assert str(root) not in text

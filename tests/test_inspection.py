"""`agentlib inspect`: a verdict for each response, an exit status, and never a traceback."""

import json
import os
import subprocess
import sys

import pytest
from streams import (
    BARE,
    ONE_CALL,
    TEXT_THEN_CALL,
    TOOLS,
    Call,
    Framing,
    Say,
    Story,
    edited,
    output,
    plain,
    recorded,
    tell,
)

from agentlib.commands import main
from agentlib.fixtures import fixtures
from agentlib.gate import CHECK_NAMES, CHECKS
from agentlib.inspection.report import inspect_capture
from agentlib.jsonvalues import one_line
from agentlib.recordings.capture import Capture

KEYS = [
    *("file", "response", "provider", "verdict", "check", "reason", "event"),
    *("calls", "text", "usage", "notes", "diagnoses"),
]
USAGE = {"input_tokens": 120, "cached_tokens": 64, "output_tokens": 30, "reasoning_tokens": 8}
CATALOG = [
    {"name": tool.name, "description": tool.description, "parameters": plain(tool.parameters)}
    for tool in TOOLS
]
GOOD = tell(TEXT_THEN_CALL)
BAD = tell(Story((Say(("I count.",)), Call("count", '{"to": true}', "call_c"))))
OTHER = tell(Story((Say(("Second.",)),), response_id="resp_2"))


@pytest.fixture
def files(tmp_path):
    """A folder of captures, by name."""
    (tmp_path / "tools.json").write_text(json.dumps(CATALOG), encoding="utf-8")
    recorded(GOOD).save(tmp_path / "good.sse")
    recorded(GOOD).save(tmp_path / "good.jsonl")
    recorded(BAD).save(tmp_path / "bad.sse")
    recorded(GOOD[:-1]).save(tmp_path / "cut.sse")
    recorded([*GOOD, *OTHER]).save(tmp_path / "two.sse")
    return tmp_path


def inspect(capsys, *arguments):
    """Run the command; return its exit status, its lines and what it wrote to standard error."""
    status = main(["inspect", *map(str, arguments)])
    written = capsys.readouterr()
    return status, written.out.splitlines(), written.err


def rows(capsys, *arguments):
    status, lines, errors = inspect(capsys, "--json", *arguments)
    assert errors == ""
    found = [json.loads(line) for line in lines]
    assert all(list(row) == KEYS for row in found)
    return status, found


def test_a_released_response_is_told_with_its_calls_text_and_usage(capsys, files):
    for name in ("good.sse", "good.jsonl"):
        status, (row,) = rows(capsys, "--tools", files / "tools.json", files / name)
        assert status == 0
        assert row == {
            "file": str(files / name),
            "response": 1,
            "provider": "responses",
            "verdict": "released",
            "check": None,
            "reason": None,
            "event": None,
            "calls": [{"call_id": "call_c", "name": "count", "arguments": {"to": 3}}],
            "text": "I look at it first. Then: ñ, 漢, 😀.",
            "usage": USAGE,
            "notes": [],
            "diagnoses": [],
        }


def test_a_rejected_response_is_told_with_its_check_reason_and_event(capsys, files):
    status, (row,) = rows(capsys, files / "bad.sse", "--tools", files / "tools.json")
    assert status == 1
    assert (row["verdict"], row["check"], row["event"]) == ("rejected", "schema", len(BAD))
    assert "integer" in row["reason"]
    assert row["calls"] == []
    assert row["text"] == "I count."
    assert row["usage"] == USAGE
    _, (cut,) = rows(capsys, files / "cut.sse")
    assert (cut["check"], cut["event"]) == ("completed", len(GOOD) - 1)
    assert cut["usage"] is None
    assert cut["calls"] == []


def test_each_response_of_each_file_has_its_row_and_one_rejected_says_one(capsys, files):
    names = [files / "two.sse", files / "bad.sse", files / "good.sse"]
    status, found = rows(capsys, *names, "--tools", files / "tools.json")
    assert status == 1
    assert [(row["file"], row["response"], row["verdict"]) for row in found] == [
        (str(names[0]), 1, "released"),
        (str(names[0]), 2, "released"),
        (str(names[1]), 1, "rejected"),
        (str(names[2]), 1, "released"),
    ]


def with_tools(events, tools):
    events = json.loads(json.dumps(events))
    events[0]["response"]["tools"] = tools
    return events


def finding(lines, name):
    title = next(check.title for check in CHECKS if check.name == name)
    return next(line.strip() for line in lines if title in line or f"[{name}]" in line)


def test_without_a_catalog_the_one_that_the_capture_carries_is_used(capsys, files):
    path = files / "own.sse"
    recorded(with_tools(BAD, CATALOG)).save(path)
    assert rows(capsys, path)[1][0]["check"] == "schema"
    recorded(with_tools(GOOD, CATALOG[:1])).save(path)
    assert rows(capsys, path)[1][0]["check"] == "exposed"
    assert rows(capsys, path, "--tools", files / "tools.json")[0] == 0
    for tools in (None, "x", [{"no": "name"}], [CATALOG[0], CATALOG[0]], {}):
        recorded(with_tools(BAD, tools)).save(path)
        status, lines, _ = inspect(capsys, path)
        assert status == 0
        assert "not checked" in finding(lines, "exposed")
        assert "not checked" in finding(lines, "schema")


HARMFUL = {
    "remote": {"$ref": "http://127.0.0.1:9/x"},
    "endless": {"$ref": "#"},
    "slow": {"properties": {"to": {"pattern": "^(a+)+$"}}},
    "broken": {"properties": {"to": {"pattern": "x{99999999999}"}}},
    "malformed": {"type": {}, "properties": 7},
}


@pytest.mark.parametrize("schema", HARMFUL.values(), ids=HARMFUL)
def test_a_harmful_captured_schema_is_left_alone_and_said_to_be(capsys, files, schema):
    path = files / "own.sse"
    tools = [{"type": "function", "name": "count", "parameters": {"type": "object", **schema}}]
    recorded(with_tools(GOOD, tools)).save(path)
    status, lines, errors = inspect(capsys, path)
    assert errors == ""
    assert status == 0
    assert "not checked: the captured schema of " in finding(lines, "schema")


def test_the_text_shows_verdict_calls_usage_notes_and_checks(capsys, files):
    more = files / "more.sse"
    recorded([*GOOD, {"type": "ping"}]).save(more)
    status, lines, _ = inspect(capsys, more, "--tools", files / "tools.json")
    assert status == 0
    assert lines[:6] == [
        f"{more} · response 1 · OpenAI Responses",
        "  RELEASED: 1 call",
        '  call     count call_c {"to":3}',
        "  text     I look at it first. Then: ñ, 漢, 😀.",
        "  usage    input 120, cached 64, output 30, reasoning 8",
        "  note     1 event after the end of the response, not read",
    ]
    assert lines[6].startswith("  diagnosis sent-after-the-end: 1 event after the end → ")
    assert len(lines) == 7 + len(CHECK_NAMES)
    status, lines, _ = inspect(capsys, files / "cut.sse")
    assert status == 1
    assert lines[1].startswith(f"  REJECTED at event {len(GOOD) - 1} [completed]: the stream ended")
    assert lines[2].startswith("  draft    I look at it first.")


def test_counters_that_were_not_reported_are_not_zero(capsys, files):
    def forget(event):
        event["response"]["usage"] = {"input_tokens": None, "output_tokens": 0}

    recorded(edited(ONE_CALL, "completed", forget)).save(files / "u.sse")
    usage = rows(capsys, files / "u.sse")[1][0]["usage"]
    assert usage == {**dict.fromkeys(USAGE), "output_tokens": 0}
    assert "input not reported" in "\n".join(inspect(capsys, files / "u.sse")[1])


def test_a_refusal_is_a_note_and_no_text(capsys, files):
    recorded(tell(Story((Say(("I will not.",), refusal=True),)))).save(files / "r.sse")
    status, (row,) = rows(capsys, files / "r.sse")
    assert (status, row["text"], row["notes"]) == (0, "", ["the model refused: I will not."])


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


def test_portable_refuses_what_only_the_provider_understands(capsys, files):
    begun = {"type": "response.output_item.added", "output_index": 1, "item": REASONING}
    events = output(ONE_CALL, lambda items: [*items, REASONING])
    recorded([*events[:-1], begun, events[-1]]).save(files / "n.sse")
    assert rows(capsys, files / "n.sse")[0] == 0
    assert rows(capsys, "--portable", files / "n.sse")[1][0]["check"] == "replayable"


UNREADABLE = {
    "empty": b"",
    "white space": b" \n\n",
    "HTML": b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    "binary": bytes(range(256)),
    "one NUL": b"\0",
    "image": b"\x89PNG\r\n\x1a\n" + bytes(50),
    "UTF-16": "data: {}\n\n".encode("utf-16"),
    "error body": b'{"error": {"message": "no quota"}}',
    "JSON number": b"7",
    "text": b"hello there\n",
    "bad JSON": b"data: {\n\n",
    "bad UTF-8": b'data: {"a": "\xff"}\n\n',
    "no object": b"data: []\n\n",
    "deep": b"data: " + b"[" * 100_000 + b"\n\n",
    "strange types": b'data: {"type": {}}\n\ndata: {"type": []}\n\n',
    "nothing but comments": b": hello\n\n",
    "done alone": b"data: [DONE]\n\n",
}


@pytest.mark.parametrize("source", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_one_rejected_row_with_a_plain_reason(capsys, files, source):
    path = files / "strange.sse"
    path.write_bytes(source)
    for more in ((), ("--provider", "responses"), ("--tools", files / "tools.json")):
        status, (row,) = rows(capsys, path, *more)
        assert (status, row["verdict"], row["calls"]) == (1, "rejected", [])
        assert 10 < len(row["reason"]) < 300
        assert one_line(row["reason"]) == row["reason"]
        assert "Traceback" not in row["reason"]
    assert inspect(capsys, path)[0] == 1


def test_a_missing_file_is_status_two_and_the_others_are_still_told(capsys, files):
    names = [files / "good.sse", files / "none.sse", files, files / "bad.sse"]
    status, lines, errors = inspect(capsys, "--json", *names, "--tools", files / "tools.json")
    assert status == 2
    assert [json.loads(line)["verdict"] for line in lines] == ["released", "rejected"]
    assert [line.split(":")[0] for line in errors.splitlines()] == ["agentlib inspect"] * 2
    assert "none.sse" in errors


BAD_TOOLS = {
    "no JSON": b"{",
    "no array": b'{"tools": []}',
    "no name": b'[{"type": "function"}]',
    "no schema": b'[{"name": "t", "parameters": {"type": "nonsense"}}]',
    "bad pattern": b'[{"name": "t", "parameters": {"pattern": "x{99999999999}"}}]',
    "twice": b'[{"name": "t"}, {"name": "t"}]',
    "duplicate key": b'[{"name": "t", "name": "u"}]',
    "lone surrogate": b'[{"name": "\\ud800"}]',
    "deep": b"[" * 100_000,
    "bad UTF-8": b"\xff\xfe",
    "control characters": b'[{"name": "\\u001b[2J\\n", "parameters": 3}]',
    "empty": b"",
}


@pytest.mark.parametrize("source", BAD_TOOLS.values(), ids=BAD_TOOLS)
def test_a_bad_catalog_is_status_two_with_one_plain_line(capsys, files, source):
    path = files / "bad.json"
    path.write_bytes(source)
    status, lines, errors = inspect(capsys, "--tools", path, files / "good.sse")
    assert (status, lines) == (2, [])
    (line,) = errors.splitlines()
    assert line.startswith("agentlib inspect: ")
    assert one_line(line) == line
    assert len(line) < 600
    for missing in (files / "none.json", files):
        assert inspect(capsys, "--tools", missing, files / "good.sse")[0] == 2


def test_usage_is_status_two(capsys):
    for arguments in ([], ["inspect"], ["inspect", "x", "--provider", "none"], ["nothing"]):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
    assert "usage:" in capsys.readouterr().err


ATTACK = "\x1b[2J\x9b1m\u202e\n  RELEASED: 9 calls\r\x07"


def test_nothing_that_a_stream_says_reaches_the_terminal_as_control(capsys, files):
    call = Call(ATTACK, json.dumps({"a": ATTACK}), ATTACK)
    events = tell(Story((Say((ATTACK,)), Say((ATTACK,), refusal=True), call)), BARE)
    for number, stream in enumerate([events, events[:-1], [{"type": ATTACK}]]):
        path = files / f"attack{number}.sse"
        recorded(stream).save(path)
        _, lines, _ = inspect(capsys, path)
        assert [one_line(line) for line in lines] == lines
        assert not any(line.startswith("  RELEASED: 9") for line in lines)


def test_the_text_stays_short_and_the_json_whole(capsys, files):
    call = Call("n" * 9000, json.dumps({"a": "x" * 15_000}), "c" * 9000)
    long = Story((Say(("word " * 10_000,)), call))
    recorded(tell(long, Framing(piece=100_000))).save(files / "long.sse")
    _, lines, _ = inspect(capsys, files / "long.sse")
    assert max(map(len, lines)) < 1000
    _, (row,) = rows(capsys, files / "long.sse")
    assert len(row["text"]) == 50_000
    assert len(row["calls"][0]["arguments"]["a"]) == 15_000


def test_a_row_is_json_for_every_reader(capsys, files):
    recorded(tell(Story((Say(("a\ud83d",)),)))).save(files / "lone.sse")
    _, (line,), _ = inspect(capsys, "--json", files / "lone.sse")
    assert json.loads(line)["text"] == "a\\ud83d"
    line.encode("ascii")


# ------------------------------------------------------------------------ as a process of its own


def run(*arguments, **options):
    command = [sys.executable, "-W", "error", "-m", "agentlib", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, timeout=60, check=False, env={**os.environ}, **options
    )
    assert b"Traceback" not in done.stderr
    return done


def test_standard_input_is_read_for_a_dash(files):
    done = run("inspect", "--json", "-", input=(files / "good.sse").read_bytes())
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "released"
    done = run("inspect", "-", stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert b"the file is empty" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="shell redirections")
def test_streams_that_are_closed_or_full_are_no_traceback(files):
    good = files / "good.sse"
    command = f"'{sys.executable}' -m agentlib inspect"
    for line, status in (
        (f"{command} - <&-", 2),
        (f"{command} '{good}' >&-", 2),
        (f"{command} '{good}' > /dev/full", 2),
        (f"{command} '{files}/nothing' 2>&-", 2),
    ):
        done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=60, check=False)
        assert b"Traceback" not in done.stderr
        assert b"Exception" not in done.stderr
        assert done.returncode == status, line


@pytest.mark.skipif(sys.platform != "linux", reason="file names that are no text")
def test_any_file_name_and_any_encoding_of_the_terminal_will_do(files):
    strange = files / os.fsdecode(b"\xff\x1b[2J.sse")
    strange.write_bytes((files / "good.sse").read_bytes())
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for more in ([], ["--json"]):
        command = [sys.executable, "-m", "agentlib", "inspect", *more, strange, b"\xff\x1bno"]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False, env=ascii_only)
        assert done.returncode == 2
        assert b"\x1b" not in done.stdout + done.stderr
        assert b"Traceback" not in done.stderr
        assert b"eleased" in done.stdout.lower()


def test_the_check_that_failed_stands_among_the_others(capsys, files):
    status, lines, _ = inspect(capsys, files / "cut.sse")

    assert status == 1
    assert "    ✗ event and body say completed" in lines
    assert lines[-1] == "    · 11 checks not reached"


def test_naming_another_api_than_the_events_speak_is_a_usage_error(capsys, files):
    status, lines, errors = inspect(capsys, files / "good.sse", "--provider", "chat")

    assert (status, lines) == (2, [])
    assert "good holds events of OpenAI Responses: leave --provider out" in errors


def test_a_draft_has_each_text_once():
    path = fixtures() / "diagnoses" / "content-index-across-items.sse"
    (inspection,) = inspect_capture(Capture.load(path), "x.sse")
    assert (inspection.verdict, inspection.text) == ("rejected", "It is fixed.")


def test_a_saved_page_says_the_diagnoses_too(capsys, files):
    status, lines, _ = inspect(capsys, files / "cut.sse", "--html", files / "page.html")

    assert status == 1
    assert any(line.startswith("  diagnosis cut-stream: ") for line in lines)
    assert "<p>diagnosis cut-stream: " in (files / "page.html").read_text(encoding="utf-8")

"""Captures: what is read from any recording, and that the same bytes are written back."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlib.errors import AgentlibError
from agentlib.jsonvalues import FrozenObject
from agentlib.recordings.capture import Capture, CaptureNotFound
from agentlib.sse import EventStreamError

STREAMS = sorted((Path(__file__).parents[1] / "fixtures" / "streams").glob("*.sse"))


def created(identity="resp_1", **more):
    return {"type": "response.created", "response": {"id": identity, **more}}


def ended(identity="resp_1", kind="response.completed"):
    return {"type": kind, "response": {"id": identity}}


DELTA = {"type": "response.output_text.delta", "delta": "a"}
ERROR = {"type": "error", "message": "no"}


def sse(*events):
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def lines(*events):
    return "".join(f"{json.dumps(event)}\n" for event in events).encode()


def shape(capture):
    """For each response its events' kinds, by their last word."""
    return [
        [str(event.data.get("type", event.data.get("id"))).split(".")[-1] for event in r.events]
        for r in capture.responses
    ]


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_saving_writes_the_same_bytes_back(path, tmp_path):
    capture = Capture.load(path)
    capture.save(tmp_path / "copy.sse")

    assert (tmp_path / "copy.sse").read_bytes() == path.read_bytes() == capture.source
    assert capture.name == path.stem


@settings(deadline=None)
@given(st.binary(max_size=80) | st.text(alphabet='{}[]":,\n data', max_size=40).map(str.encode))
def test_no_bytes_are_too_strange_to_load_and_to_keep(source):
    for form in ("auto", "sse", "jsonl"):
        capture = Capture.from_bytes(source, form=form)
        assert capture.source == source
        assert len(capture.responses) >= 1


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_every_form_of_a_stream_gives_the_same_events(path, tmp_path):
    capture = Capture.load(path)
    every = [event for response in capture.responses for event in response.events]
    again = Capture.from_events(every)
    again.save(tmp_path / "a.jsonl")
    again.save(tmp_path / "a.sse")

    copies = [again, Capture.load(tmp_path / "a.jsonl"), Capture.load(tmp_path / "a.sse")]
    for copy in copies:
        assert [[e.data for e in r.events] for r in copy.responses] == [
            [e.data for e in r.events] for r in capture.responses
        ]
        assert copy.provider == capture.provider
    assert copies[2].source == again.source


def test_an_event_knows_its_number_its_object_and_its_text():
    source = b'event: a\ndata: {"n":  1}\n\ndata:\n\ndata: {"type": "b",\ndata: "n": 2}\n\n'
    first, second = Capture.from_bytes(source).events

    assert first == (1, {"type": "a", "n": 1}, '{"n":  1}')
    assert second == (2, {"type": "b", "n": 2}, '{"type": "b",\n"n": 2}')


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_json_lines_end_with_lf_or_crlf_and_blank_ones_are_none(end):
    text = '{"type": "a", "s": "\u2028\u0085"}'.encode()
    source = b"\xef\xbb\xbf" + end + text + end + b" " + end + b'{"type": "b"}'
    capture = Capture.from_bytes(source)

    assert capture.form == "jsonl"
    assert shape(capture) == [["a", "b"]]
    assert capture.events[0].raw == text.decode()
    assert Capture.from_bytes(b'{"type": "a"}\r{"type": "b"}').events == ()


def test_the_form_is_told_by_the_suffix_sse_or_else_by_the_first_character(tmp_path):
    for name, source, count in [
        ("a.sse", sse(DELTA), 1),
        ("a.sse", lines(DELTA, DELTA), 0),
        ("a.jsonl", lines(DELTA, DELTA), 2),
        ("a.jsonl", sse(DELTA), 1),
        ("a.txt", b": c\n" + sse(DELTA), 1),
        ("a", b"\xef\xbb\xbf\n" + lines(DELTA), 1),
    ]:
        (tmp_path / name).write_bytes(source)
        assert len(Capture.load(tmp_path / name).events) == count


@pytest.mark.parametrize("name", ["missing.sse", "."])
def test_a_file_that_cannot_be_opened_is_said_to_be_so(name, tmp_path):
    with pytest.raises(CaptureNotFound, match=r"there is no file|cannot read") as caught:
        Capture.load(tmp_path / name)
    assert isinstance(caught.value, AgentlibError)


def chunk(identity, finish=None):
    return {"id": identity, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}


USAGE = {"id": "other", "choices": [], "usage": {}}
START, STOP = {"type": "message_start", "message": {"id": "m"}}, {"type": "message_stop"}

SPLITS = {
    "one": ([created(), DELTA, ended()], [3]),
    "after a completed one": ([created(), ended(), created(), ended()], [2, 2]),
    "after a failed one": ([created(), ended(kind="response.failed"), created()], [2, 1]),
    "after an incomplete one": ([created(), ended(kind="response.incomplete"), created()], [2, 1]),
    "after an error": ([created(), ERROR, created()], [2, 1]),
    "an error and then failed": ([created(), ERROR, ended(kind="response.failed")], [3]),
    "after a cut one, by another ID": ([created(), DELTA, created("resp_2")], [2, 1]),
    "opened twice is one": ([created(), created(), ended()], [3]),
    "opened twice without an ID is one": ([created(), {"type": "response.created"}], [2]),
    "what follows the end belongs to it": ([created(), ended(), DELTA, ended(), created()], [4, 1]),
    "another ID after what follows": ([created(), ended(), DELTA, created("resp_2")], [3, 1]),
    "never opened": ([DELTA, ended()], [2]),
    "data before the opening": ([DELTA, created()], [2]),
    "queued first": ([{**created(), "type": "response.queued"}, created(), ended()], [3]),
    "response.done is no end": ([created(), {"type": "response.done"}, created()], [3]),
    "chat": ([chunk("a"), chunk("a", "stop"), USAGE], [3]),
    "chat, a new ID after the finish reason": ([chunk("a", "stop"), USAGE, chunk("b")], [2, 1]),
    "chat, IDs that change are one": ([chunk("a"), chunk("b"), chunk("c", "stop")], [3]),
    "messages": ([START, STOP, START, STOP], [2, 2]),
    "messages, a start in the middle": ([START, START, STOP], [3]),
}


@pytest.mark.parametrize(("events", "counts"), SPLITS.values(), ids=SPLITS)
def test_the_responses_of_a_recording_are_told_apart(events, counts):
    captures = [Capture.from_bytes(sse(*events)), Capture.from_bytes(lines(*events))]
    captures.append(Capture.from_events(events))
    for capture in captures:
        assert [len(response.events) for response in capture.responses] == counts
        assert [response.number for response in capture.responses] == [*range(1, len(counts) + 1)]
        for response in capture.responses:
            assert [e.number for e in response.events] == [*range(1, len(response.events) + 1)]


def test_a_response_that_another_cuts_says_so():
    capture = Capture.from_events([created(), DELTA, created("resp_2"), ended("resp_2"), created()])

    assert [bool(response.notes) for response in capture.responses] == [True, False, False]
    assert capture.notes == ("the next response begins before this one has ended",)


def test_done_is_a_separator_and_no_event():
    done = b"data: [DONE]\n\n"
    chat = Capture.from_bytes(done + sse(chunk("a")) + done + sse(chunk("a")))
    responses = Capture.from_bytes(sse(created(), ended()) + done + sse(DELTA))
    written = Capture.from_bytes(lines(created()) + b"[DONE]\n")

    assert [(len(r.events), r.done_marker) for r in chat.responses] == [(1, True), (1, False)]
    assert [(len(r.events), r.done_marker) for r in responses.responses] == [(3, True)]
    assert [(len(r.events), r.done_marker) for r in written.responses] == [(1, True)]


PROVIDERS = {
    "responses": [created()],
    "responses, after unknown words": [{"type": "keepalive"}, {"n": 1}, {"type": "ping"}, DELTA],
    "responses, from an error alone": [ERROR],
    "chat": [chunk("a")],
    "chat, by its object": [{"object": "chat.completion.chunk"}],
    "chat, also with a type": [{"type": "chunk", **chunk("a")}],
    "messages": [{"type": "ping"}, START],
    "messages, after an error": [ERROR, {"type": "content_block_stop"}],
    "messages, from a ping alone": [{"type": "ping"}],
    "unknown": [{"type": "hello"}, {"type": 1}, {"error": {}}],
}


@pytest.mark.parametrize(("name", "events"), PROVIDERS.items(), ids=PROVIDERS)
def test_the_provider_is_detected_and_may_be_given(name, events):
    assert Capture.from_events(events).provider == name.split(",")[0]
    assert Capture.from_events(events, provider="messages").provider == "messages"
    assert Capture.from_bytes(sse(*events), provider="chat").provider == "chat"


FAULTS = {
    "bad UTF-8": (b'data: {"a": "\xff"}\n\n', b'{"a": "\xff"}\n', "it is not UTF-8: byte 0xff"),
    "not JSON": (b"data: {broken\n\n", b"{broken\n", "its data is not JSON: "),
    "cut JSON": (b'data: {"a": "b\n\n', b'{"a": "b\n', "its data is not JSON: it ends early"),
    "no object": (b"data: [1]\n\n", b"[1]\n", "its data is not a JSON object: "),
    "a name twice": (b'data: {"a":1,"a":1}\n\n', b'{"a":1,"a":1}\n', "its data is not JSON: "),
    "kinds disagree": (b'event: b\ndata: {"type": "a"}\n\n', b"", "expected one kind of event"),
}


@pytest.mark.parametrize(("block", "line", "fault"), FAULTS.values(), ids=FAULTS)
def test_reading_stops_at_a_fault_and_what_came_before_is_kept(block, line, fault):
    first = [created(), ended(), created(), DELTA]
    captures = [Capture.from_bytes(sse(*first) + block + sse(ended()))]
    captures += [Capture.from_bytes(lines(*first) + line + lines(ended()))] if line else []
    for capture in captures:
        assert shape(capture) == [["created", "completed"], ["created", "delta"]]
        assert capture.responses[0].fault is None
        assert capture.responses[1].fault.startswith(fault)


def test_an_event_above_the_bound_is_a_fault(monkeypatch):
    import agentlib.recordings.reader as module

    monkeypatch.setattr(module, "MAX_EVENT_BYTES", 64)
    for source in (sse(DELTA, {"type": "x" * 64}), lines(DELTA, {"type": "x" * 64})):
        (response,) = Capture.from_bytes(source).responses
        assert len(response.events) == 1
        assert response.fault == "it is larger than 64 bytes"


RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "output": []}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
COMPLETION = {"id": "c", "object": "chat.completion", "choices": []}
NO_STREAM = {
    "empty": (b"", "the file is empty"),
    "white space": (b"\xef\xbb\xbf \r\n\n", "the file holds nothing but white space"),
    "HTML": (
        b"\n<!DOCTYPE html>\n<html>502",
        'this is HTML, not an event stream: it starts with "<!DOCTYPE html>"',
    ),
    "XML": (b"<?xml version='1.0'?><Error/>", "this is XML, not an event stream"),
    "text": (
        b"Internal Server Error: try later\n\n",
        'this is text, not an event stream: it starts with "Internal Server Error: try later"',
    ),
    "one NUL": (b"\0", "binary data: NUL byte at offset 0"),
    "NULs": (b"\0\0\n\n", "binary data: NUL byte at offset 0"),
    "an image": (b"\x89PNG\r\n\x1a\n\0", "binary data: byte 0x89 at offset 0 is not UTF-8"),
    "broken gzip": (b"\x1f\x8b\x08\0no", "this is compressed with gzip, and cannot be unpacked"),
    "zip": (b"PK\x03\x04\n\n", "this is a zip archive: unpack it first"),
    "UTF-16": (sse(DELTA).decode().encode("utf-16"), "this is UTF-16 text: save it as UTF-8"),
    "an array": (
        json.dumps([{"a": 1}, None]).encode(),
        "this is a recording in JSON of an unknown kind: an array of 2 values, the first an object",
    ),
    "an error body": (
        b'{"error": {"message": "Invalid key", "code": 1}}',
        'this is a JSON error body, not a stream of events: "Invalid key"',
    ),
    "an error body over lines": (
        json.dumps({"error": "no"}, indent=2).encode(),
        'this is a JSON error body, not a stream of events: "no"',
    ),
    "a whole completion": (lines(COMPLETION), "this is a whole response as one JSON object"),
    "any object": (
        b'{\n"a": 1\n}',
        'this is a recording in JSON of an unknown kind: an object with "a"',
    ),
}


@pytest.mark.parametrize("form", ["auto", "sse"])
@pytest.mark.parametrize(("source", "fault"), NO_STREAM.values(), ids=NO_STREAM)
def test_what_is_no_stream_is_said_in_plain_words(source, fault, form):
    capture = Capture.from_bytes(source, form=form)
    (response,) = capture.responses

    assert response.events == ()
    assert response.fault.startswith(fault)
    assert capture.provider == "unknown"


def test_json_lines_named_as_an_event_stream_are_told():
    (response,) = Capture.from_bytes(lines(DELTA, DELTA), form="sse").responses

    assert response.fault == "these are JSON lines: name the file .jsonl"


@pytest.mark.parametrize("source", [b": c\n\n", b"event: a\n\n", b"data:\n\n", b"data: {", b"data"])
def test_a_stream_without_events_is_a_stream_all_the_same(source):
    (response,) = Capture.from_bytes(source).responses

    assert (response.events, response.fault) == ((), None)


def test_an_unfinished_event_is_dropped_with_a_note():
    capture = Capture.from_bytes(sse(created(), ended(), created()) + b'data: {"type": "a"}\n')

    assert shape(capture) == [["created", "completed"], ["created"]]
    assert capture.notes == ("an unfinished event of 20 bytes at the end is dropped",)
    assert capture.responses[1].notes == capture.notes


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_comments_are_kept_apart(end):
    source = end.join(["\ufeff: a", ":b", 'data: {"c": ":d"}', ":", ": \udcff", "", ":e"])
    capture = Capture.from_bytes(source.encode("utf-8", "surrogateescape"))

    assert capture.comments == ("a", "b", "", "\ufffd", "e")
    assert Capture.from_bytes(lines({"a": "\n:b"}, {})).comments == ()


def test_the_tools_that_a_response_echoes_are_its_catalog():
    tools = [{"type": "function", "name": "edit", "parameters": {"type": "object"}}]
    events = [created(tools=tools), ended(), created(tools=[]), ended(), created()]
    capture = Capture.from_events(events)
    capture.catalog_json()[0]["parameters"].clear()

    assert [capture.catalog_json(n) for n in (1, 2, 3)] == [tools, [], None]
    for odd in ("edit", [1], {}):
        assert Capture.from_events([created(tools=odd)]).catalog_json() is None
    assert Capture.from_bytes(b"").catalog_json() is None


def test_events_are_copied_and_written_as_strict_json():
    event = {"type": "a", "list": [1], "half": "\ud83d", "frozen": FrozenObject({"b": (1, 2)})}
    capture = Capture.from_events([event], name="made")
    event["list"].append(2)

    assert capture.events[0].data["list"] == [1]
    assert capture.events[0].data["frozen"] == {"b": [1, 2]}
    assert Capture.from_bytes(capture.source).events == capture.events
    assert repr(capture) == "Capture('made', 'unknown', events: 1)"


def test_an_event_of_another_capture_keeps_its_text_while_that_says_the_same():
    source = (
        b'event: a\ndata: {"n":  1.0}\n\ndata: {"type": "b",  "n": 1}\n\ndata: {"n":\ndata: 1}\n\n'
    )
    events = Capture.from_bytes(source).events
    changed = events[1]._replace(data={"type": "b", "n": True})

    assert [event.raw for event in Capture.from_events([*events, changed]).events] == [
        '{"type":"a","n":1.0}',
        '{"type": "b",  "n": 1}',
        '{"n":1}',
        '{"type":"b","n":true}',
    ]


@pytest.mark.parametrize("kind", ["a\nb", "a\rb", "é", "\ud83d", "", " a", "message"])
def test_any_kind_survives_the_way_through_an_event_stream(kind):
    capture = Capture.from_events([{"type": kind}])

    assert Capture.from_bytes(capture.source).events == capture.events


@pytest.mark.parametrize(
    "event", [{"a": float("nan")}, {"a": {1}}, {1: 1, "1": 1}, [1], {"a": b""}, {(1,): 1}]
)
def test_an_event_that_cannot_be_written_is_refused_with_its_number(event):
    with pytest.raises(EventStreamError, match=r"^event 2: ") as caught:
        Capture.from_events([created(), event])
    assert caught.value.event == 2


def test_no_events_at_all_are_a_response_that_never_opened():
    (response,) = Capture.from_events([]).responses

    assert (response.events, response.fault, response.notes) == ((), None, ())

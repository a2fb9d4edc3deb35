"""Recordings of any tool open, nothing of them is lost unsaid, and no bytes are too strange."""

import base64
import gzip
import json
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sampling import examples

from agentlib.conversation import Catalog
from agentlib.recordings import exchanges, unpack
from agentlib.recordings import vcr as cassettes
from agentlib.recordings.capture import Capture
from agentlib.recordings.curl import read_curl
from agentlib.recordings.formats import open_recording
from agentlib.recordings.fragments import Blocks
from agentlib.recordings.reader import shrink_blank_lines
from agentlib.recordings.redaction import Redactor
from agentlib.sse import EventStreamDecoder
from agentlib.stepper.replay import captured_catalog

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDINGS = FIXTURES / "recordings"
STREAMS = sorted((FIXTURES / "streams").glob("*.sse"))
CUT = (FIXTURES / "streams" / "disconnect.sse").read_bytes()
CHAT = (FIXTURES / "streams" / "chat_two_calls.sse").read_bytes()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
TOOLS = [{"type": "function", "name": "edit", "parameters": {"type": "object"}}]


def events(capture):
    return [[event.data for event in response.events] for response in capture.responses]


def plain(*sources):
    return [events(Capture.from_bytes(source))[0] for source in sources]


def chunked(body, size, end=b"\r\n"):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x%b%b%b" % (len(p), end, p, end) for p in pieces) + b"0" + end + end


def har(*entries):
    return json.dumps({"log": {"version": "1.2", "entries": [*entries]}}).encode()


def entry(text, kind="text/event-stream", *, asked=None, url="https://h.example/v1/x", **content):
    request = {"method": "POST", "url": url, "postData": {"text": json.dumps(asked or {})}}
    answer = {"content": {"mimeType": kind, "text": text, **content}}
    return {"request": request, "response": answer}


def tape(*bodies, **more):
    interactions = [
        {
            "request": {"method": "POST", "uri": "https://h.example/v1/x", "body": "{}", **more},
            "response": {"headers": {"Content-Type": ["text/event-stream"]}, "body": body},
        }
        for body in bodies
    ]
    return {"interactions": interactions, "version": 1}


# ------------------------------------------------------------------------------- all that opens


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_every_stream_opens_from_every_kind_of_recording(path):
    source = path.read_bytes()
    wanted = events(Capture.from_bytes(source))
    text = source.decode()
    kinds = {
        "gzip": gzip.compress(source),
        "members": gzip.compress(source[:900]) + gzip.compress(source[900:]),
        "curl -i": HEAD + source,
        "curl --raw": HEAD + chunked(source, 700),
        "curl --raw, gzip": HEAD + chunked(gzip.compress(source), 100),
        "HAR": har(entry(text)),
        "HAR, base64": har(entry(base64.b64encode(source).decode(), encoding="base64")),
        "HAR, gzip": gzip.compress(har(entry(text))),
        "cassette": yaml.safe_dump(tape({"string": text})).encode(),
        "cassette, gzip": yaml.safe_dump(tape({"string": gzip.compress(source)})).encode(),
        "cassette, JSON": json.dumps(tape({"string": text})).encode(),
    }
    for kind, recording in kinds.items():
        capture = Capture.from_bytes(recording)
        assert events(capture) == wanted, kind
        assert [r.fault for r in capture.responses] == [None] * len(wanted)


@pytest.mark.parametrize("name", ["curl.sse", "browser.har", "cassette.yaml"])
def test_a_recording_is_authored_and_saved_as_the_streams_in_it(name, tmp_path):
    path = RECORDINGS / name
    assert "authored fixture — " in path.read_text(encoding="utf-8")
    capture = Capture.load(path)
    capture.save(tmp_path / "copy.sse")
    again = Capture.load(tmp_path / "copy.sse")

    assert again.provider == capture.provider != "unknown"
    assert events(again) == events(capture)
    assert again.source == capture.source
    assert [r.done_marker for r in again.responses] == [r.done_marker for r in capture.responses]
    assert [a.tools for a in again.responses] == [b.tools for b in capture.responses]
    for secret in (b"sk-authored", b"session=", b"?key="):
        assert secret not in capture.source


def test_several_answers_are_several_responses_however_each_of_them_ended():
    cut = CUT[:-40]
    recordings = [
        HEAD + cut + b"\n" + HEAD + CUT,
        har(entry(cut.decode()), entry(CUT.decode())),
        yaml.safe_dump(tape({"string": cut.decode()}, {"string": CUT.decode()})).encode(),
    ]
    for recording in recordings:
        capture = Capture.from_bytes(recording)
        assert events(capture) == [plain(CUT)[0][:-1], *plain(CUT)]
        assert [response.number for response in capture.responses] == [1, 2]
        assert "unfinished event" in capture.responses[0].notes[-1]
        assert events(Capture.from_bytes(capture.source)) == events(capture)


def test_json_lines_in_an_answer_are_a_stream_too():
    lines = "".join(f"{json.dumps(event)}\n" for event in plain(CUT)[0])
    capture = Capture.from_bytes(har(entry(lines, "application/x-ndjson")))

    assert events(capture) == plain(CUT)
    assert capture.form == "sse"
    assert events(Capture.from_bytes(capture.source)) == plain(CUT)


# ------------------------------------------------------------------------------------------ curl


def test_what_curl_says_itself_is_counted_and_taken_out():
    head, rest = CUT[:600], CUT[600:]
    noise = b"{ [17 bytes data]\n"
    at = rest.index(b"\n\n") + 2
    recording = (
        b"* Trying 127.0.0.1\n> POST /v1/x HTTP/2\n> accept: */*\n> \n< HTTP/2 200\n"
        b"< content-type: text/event-stream\n< \n" + head + rest[:at] + noise + rest[at:]
    )
    capture = Capture.from_bytes(recording + b"* Connection #0 left intact\n")

    assert events(capture) == plain(CUT)
    assert capture.notes[:2] == (
        "lines 5 to 7 are the head of an answer, 200",
        "6 lines of curl's own, not part of the stream",
    )


def test_the_meter_of_progress_is_no_part_of_the_stream_that_it_stands_in():
    meter = b"  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
    table = b"  % Total    % Received % Xferd\n                                 Dload  Upload\n"
    late = b"\r100  2938    0  2938    0     0   1200      0 --:--:--  0:00:02 --:--:--  1201"
    at = CUT.index(b"\n\n", 200) + 2
    inside = CUT.index(b"data:", at)
    for head in (b"", HEAD):
        for place in (at, inside):
            body = CUT[:place] + late + CUT[place:] + late + b"\n"
            capture = Capture.from_bytes(table + meter + head + body)
            assert events(capture) == plain(CUT)
            assert not any("no field" in note for note in capture.notes)


def test_an_answer_before_the_answer_is_none():
    early = b"HTTP/1.1 100 Continue\r\n\r\n"
    capture = Capture.from_bytes(early + HEAD + CUT)

    assert events(capture) == plain(CUT)
    assert [note for note in capture.notes if "head of an answer" in note] == [
        "lines 1 to 2 are the head of an answer, 100",
        "lines 3 to 5 are the head of an answer, 200",
    ]


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_chunk_sizes_are_taken_out_at_every_size(end):
    short = CUT[: CUT.index(b"\n\n", 3000) + 2] if len(CUT) > 3100 else CUT
    for size in (1, 2, 7, 100, len(short) - 1, len(short), len(short) + 9):
        assert events(Capture.from_bytes(HEAD + chunked(short, size, end))) == plain(short)


def test_chunks_that_break_off_are_said_to():
    body = chunked(CUT, 500)
    capture = Capture.from_bytes(HEAD + body[:2600])
    assert any("its last chunk is cut short" in note for note in capture.notes)
    assert capture.events
    wrong = HEAD + body[:507] + b"what\r\n" + body[507:]
    assert any("expected the size of a chunk" in note for note in Capture.from_bytes(wrong).notes)


def test_a_refusal_is_told_as_what_it_is():
    capture = Capture.from_bytes(
        b'HTTP/1.1 429 Too Many\r\nx-y: z\r\n\r\n{"error": {"message": "later"}}'
    )
    assert capture.responses[0].fault == (
        'this is a JSON error body, not a stream of events: "later"'
    )
    assert "status 429" in capture.notes[-1]


# ----------------------------------------------------------------------------- archives and tapes


def test_what_is_no_stream_is_skipped_and_named_without_the_query_of_its_address():
    page = entry("<html>", "text/html", url="https://u:p@h.example/a?key=k")
    capture = Capture.from_bytes(har(page, entry(CUT.decode()), page))
    assert events(capture) == plain(CUT)
    assert capture.notes[0] == (
        "no stream, and not read: entry 1 (POST h.example/a), text/html; "
        "entry 3 (POST h.example/a), text/html"
    )
    assert capture.notes[1] == "from entry 2 (POST h.example/v1/x)"
    many = Capture.from_bytes(har(*[page] * 50, entry(CUT.decode())))
    assert "and 42 more" in many.notes[0]


def test_the_events_that_chrome_keeps_apart_are_the_stream():
    rows = [
        {
            "eventName": e["type"] if n % 2 else "message",
            "data": json.dumps(e, indent=n % 3 or None),
        }
        for n, e in enumerate(plain(CUT)[0])
    ]
    bare = {**entry(""), "_eventSourceMessages": [*rows, 7, {}]}
    assert events(Capture.from_bytes(har(bare))) == plain(CUT)


def test_an_answer_without_a_stream_counts_where_a_stream_was_asked_for():
    refusal = entry('{"error": {"message": "no"}}', "application/json", asked={"stream": True})
    capture = Capture.from_bytes(har(refusal))
    assert capture.responses[0].fault.startswith("this is a JSON error body")
    assert Capture.from_bytes(capture.source).responses[0].fault == capture.responses[0].fault


def test_the_tools_of_a_request_are_the_catalog_and_stay_it():
    asked = {"stream": True, "tools": TOOLS}
    capture = Capture.from_bytes(har(entry(CHAT.decode(), asked=asked)))
    for each in (capture, Capture.from_bytes(capture.source)):
        assert each.catalog_json() == TOOLS
        assert isinstance(captured_catalog(each), Catalog)
    for odd in ("x", [1], {}, None):
        bare = Capture.from_bytes(har(entry(CHAT.decode(), asked={"tools": odd})))
        assert bare.catalog_json() is None


def test_each_response_speaks_its_own_api_unless_one_is_asked_for():
    archive = har(entry(CUT.decode()), entry(CHAT.decode()))
    both, second = Capture.from_bytes(archive), Capture.from_bytes(archive, provider="chat")

    assert (both.provider, events(both)) == ("responses", [*plain(CUT), *plain(CHAT)])
    assert [response.provider for response in both.responses] == ["responses", "chat"]
    assert (second.provider, events(second)) == ("chat", plain(CHAT))
    assert any('read it with the provider "responses"' in note for note in second.notes)


ODD_ARCHIVES = {
    "no JSON": b'{"log": {"entries": [',
    "no list": b'{"log": {"entries": 7}}',
    "no object": b'{"log": []}',
    "odd entries": b'{"log": {"entries": [1, {}, {"response": 3}, {"request": []}]}}',
    "no base64": har(entry("%%%", encoding="base64")),
    "deep": b'{"log": ' + b"[" * 100_000,
    "no interactions": b"interactions:\n",
    "scalars": b"interactions: 7\n",
    "odd interactions": b"interactions:\n- 1\n- {request: 2, response: {body: [x]}}\n",
    "broken YAML": b"interactions: [\n",
    "tabs": b"interactions:\n\t- x\n",
    "an unknown alias": b"interactions: *nobody\n",
    "an object of a class": b"interactions: !!python/object/apply:os.system [echo]\n",
    "itself": b"interactions: &a [*a]\n",
    "bad base64": b"interactions:\n- response: {body: {string: !!binary 'x'}}\n",
    "merged": b"interactions: &a {x: 1}\nb: {<<: *a}\n",
    "deep YAML": b"interactions: " + b"[" * 5000,
    "JSON cassette": b'{"interactions": 3}',
}


@pytest.mark.parametrize("source", ODD_ARCHIVES.values(), ids=ODD_ARCHIVES)
def test_a_recording_that_cannot_be_read_says_why(source):
    capture = Capture.from_bytes(source)
    assert events(capture) == [[]]
    assert any("no answer in it is a stream" in note for note in capture.notes)
    assert capture.responses[0].fault == "the file is empty"


def test_a_stream_with_a_line_of_another_tool_in_it_is_a_stream():
    for line in (
        b"interactions:\n",
        b"HTTP/1.1 200 OK\n",
        b"* x\n",
        b': recorded answer {"a":1}\n',
    ):
        capture = Capture.from_bytes(b": first\n\n" + line + CUT)
        assert events(capture) == plain(CUT)
    ruby = "---\nhttp_interactions:\n" + yaml.safe_dump(tape({"string": CUT.decode()}))[14:]
    assert events(Capture.from_bytes(ruby.encode())) == plain(CUT)


def test_yaml_that_names_a_part_and_repeats_it_stays_small():
    names = "abcdefghi"
    rows = ["interactions: []", "a: &a [x, x]"]
    rows += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in pairwise(names)]
    merged = [f"{b}x: &{b}x {{<<: [{', '.join([f'*{a}x'] * 9)}]}}" for a, b in pairwise(names)]
    bomb = "\n".join([*rows, "ax: &ax {y: 1}", *merged]).encode()
    tracemalloc.start()
    Capture.from_bytes(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_shared_list_of_headers_is_read_through_its_alias():
    text = yaml.safe_dump(tape({"string": CUT.decode()}))
    text = text.replace("Content-Type:\n      - text", "Content-Type: &id001\n      - text")
    again = text.replace("interactions:\n", "interactions:\n- response: {headers: {x: *id001}}\n")
    assert events(Capture.from_bytes(text.encode())) == plain(CUT)
    assert events(Capture.from_bytes(again.encode())) == [[]]  # used before it is named


def test_a_cassette_beyond_the_bounds_is_refused(monkeypatch):
    source = yaml.safe_dump(tape({"string": CUT.decode()})).encode()
    monkeypatch.setattr(cassettes, "MAX_NODES", 10)
    assert "more than 10 nodes" in Capture.from_bytes(source).notes[-1]
    monkeypatch.setattr(cassettes, "MAX_CASSETTE_BYTES", 10)
    assert "larger than 10 bytes" in Capture.from_bytes(source).notes[-1]


@pytest.mark.parametrize("parser", ["libyaml's", "PyYAML's own"])
def test_a_cassette_is_read_alike_by_either_parser(parser, monkeypatch):
    if parser == "PyYAML's own":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
        monkeypatch.delitem(sys.modules, "agentlib.recordings.yaml_loader", raising=False)
    source = b"""\
interactions:
- request: &a {uri: 2001-01-01, method: !!python/object/apply:os.system [echo], <<: {uri: x}}
- request: *a
- {? [odd] : name, request: &a {uri: 010, method: !!int post, body: !!binary eA==}}
- request: *a
---
[ another document, and a broken one
"""
    found, notes = cassettes.read_cassette(source)
    assert notes == []
    assert [(each.where, each.method, each.url, each.request) for each in found] == [
        ("interaction 1, line 2", "", "2001-01-01", b""),
        ("interaction 2, line 3", "", "2001-01-01", b""),
        ("interaction 3, line 4", "POST", "010", b"x"),
        ("interaction 4, line 5", "POST", "010", b"x"),
    ]
    # Where it breaks off, the line has a number, and is not shown: it may hold a secret.
    _, notes = cassettes.read_cassette(b"interactions:\n- [sk-authored, \t\n- }\n")
    assert "at line " in notes[0]
    assert "sk-authored" not in notes[0]


def test_without_pyyaml_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    capture = Capture.load(RECORDINGS / "cassette.yaml")
    assert cassettes.NO_YAML in capture.notes


# ------------------------------------------------------------------------------------------ gzip


def test_a_bomb_is_cut_and_fills_no_memory():
    megabyte = 1 << 20
    bomb = gzip.compress(gzip.compress(bytes(64 * megabyte)) + bytes(64 * megabyte))
    tracemalloc.start()
    unpacked = unpack.unpack(bomb, 2 * megabyte)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * megabyte
    assert len(unpacked.data) == 2 * megabyte
    assert unpacked.note == "it unpacks to more than 2,097,152 bytes: cut there"


def peak_of(source):
    tracemalloc.start()
    capture = Capture.from_bytes(source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return capture, peak


BIG = CUT + b":" * 60_000 + b"\n"
PACKED = base64.b64encode(gzip.compress(BIG)).decode()
ASKED = f"request: {{uri: 'http://h', body: {{string: !!binary {PACKED}}}}}"
ANSWER = f"response: {{headers: {{}}, body: {{string: !!binary {PACKED}}}}}"
LONG = "x" * 60_000
REPEATED = {
    "answers": f"interactions:\n- &a {{{ANSWER}}}\n" + "- *a\n" * 400,
    "requests": f"interactions:\n- &a {{{ASKED}}}\n" + "- *a\n" * 400,
    "bodies": f"interactions:\n- &a {{response: {{body: 'data: {LONG}'}}}}\n" + "- *a\n" * 400,
    "addresses": f"interactions:\n- &a {{request: {{uri: 'h://{LONG}'}}}}\n" + "- *a\n" * 400,
    "headers": f"interactions:\n- &a {{response: {{headers: {{a: {LONG}}}}}}}\n" + "- *a\n" * 400,
    "entries": har(*[entry(PACKED, encoding="base64")] * 400).decode(),
}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("source", REPEATED.values(), ids=REPEATED)
def test_what_is_packed_and_what_is_repeated_have_one_bound_together(source, monkeypatch):
    monkeypatch.setattr(exchanges, "MAX_UNPACKED_BYTES", 300_000)
    capture, peak = peak_of(source.encode())
    bound = max(300_000, len(source))
    assert sum(len(part.body) for part in open_recording(source.encode()).parts) < bound + len(BIG)
    assert any("is the last that is read: more than" in note for note in capture.notes)
    assert peak < 12 * bound + 2_000_000


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_blank_lines_cost_no_more_than_their_bytes(end):
    body = CUT + end * 200_000 + CUT
    capture, peak = peak_of(har(entry(body.decode())))
    assert capture.source.endswith(body)
    assert peak < 30 * len(body)
    broken = Capture.from_bytes(end * 200_000 + b"data: {" + end * 2)
    assert broken.notes[-1] == "reading stopped at line 200,001"


LINES = st.lists(
    st.sampled_from(
        ["\n", "\r", "\r\n", 'data: {"a": 1}', "data", "data:", ": c", "event: x", "datax"]
    )
)


@example('data: {"a":\n: c\ndata: 1}')
@given(LINES.map("".join))
def test_any_lines_are_the_same_events_with_fewer_blank_lines_and_in_blocks(text):
    body = text.encode()
    wanted = EventStreamDecoder().feed(body + b"\n\n")
    assert EventStreamDecoder().feed(shrink_blank_lines(body + b"\n\n")) == wanted
    blocks = Blocks(body, "sse")
    assert len([*blocks.events]) == len(wanted)
    # A comment inside an event may stand before it then.
    assert EventStreamDecoder().feed(blocks.join() + b"\n\n") == wanted
    assert sorted(blocks.join()) == sorted(body)
    assert Blocks(body, "jsonl").join() == body


def test_what_is_taken_of_curls_own_lines_grows_as_they_do():
    for count in (10, 1000):
        answer = b"HTTP/1.1 200 OK\r\na: b\r\n\r\nx\n> x-api-key: %d\n"
        found, notes = read_curl(b"* x\n" + b"".join(answer % n for n in range(count)))
        assert sum(len(each.headers) for each in found) == 2 * count
        assert [each.line for each in found] == [5 + 5 * n for n in range(count)]
        assert len(notes) < 12


def test_gzip_is_read_as_far_as_it_goes_at_every_cut():
    packed = gzip.compress(CUT, mtime=0)
    wanted = events(Capture.from_bytes(CUT))[0]
    for cut in range(2, len(packed), 7):
        found = events(Capture.from_bytes(packed[:cut]))[0]
        assert found == wanted[: len(found)]
        assert any("gzip data" in note for note in Capture.from_bytes(packed[:cut]).notes)
    assert any("not read" in n for n in Capture.from_bytes(packed + b"more").notes)
    assert Capture.from_bytes(packed + bytes(9)).notes == Capture.from_bytes(packed).notes


# ----------------------------------------------------------------------------- what is not lost


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_that_is_no_field_is_named_with_its_number(end):
    lines = [b": c", b'data: {"type": "a"}', b"what is this", b"", b"id: 1", b"data", b"odd", b""]
    capture = Capture.from_bytes(end.join(lines) + end, form="sse")
    assert capture.notes == (
        'line 3 is no field of an event stream: "what is this"',
        'line 7 is no field of an event stream: "odd"',
    )
    assert capture.events[0].data == {"type": "a"}


def test_many_such_lines_are_counted():
    capture = Capture.from_bytes(b"data: {}\n\n" + b"x\n" * 1000)
    assert len(capture.notes) == 10
    assert "992 more lines are no field of an event stream" in capture.notes


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (b"\n: c\ndata: {}\n\ndata: {\n\ndata: {}\n\n", 5),
        (b"data: {}\r\n\r\nevent: a\r\ndata: {\r\n\r\n", 4),
        (b"\n{}\n\n{\n{}\n".replace(b"{}", b'{"type": "a"}'), 4),
        (b"data: {}\n\ndata: \xff\n\n", 3),
    ],
)
def test_the_line_at_which_reading_stopped_is_named(source, line):
    capture = Capture.from_bytes(source)
    assert capture.responses[0].fault is not None
    assert capture.notes[-1] == f"reading stopped at line {line}"


PIECES = st.sampled_from(
    [
        *(HEAD, CUT[:400], b"data: {}\n\n", b"* x\n", b"< HTTP/2 200\n", b"1f\r\n", b"0\r\n\r\n"),
        *(
            b'{"log": {"entries": [',
            b"]}}",
            b"interactions:\n",
            b"- request: {}\n",
            b"\x1f\x8b\x08",
        ),
        *(gzip.compress(CUT[:99]), b': recorded answer {"from": "x"}\n', b"- &a [*a]\n", b"\n"),
        *(b"authorization: Bearer abcdefgh12345678\n", b'{"api_key": "k"}', b"\r", b"\xef\xbb\xbf"),
    ]
)


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(PIECES | st.binary(max_size=12), max_size=9).map(b"".join))
def test_whatever_the_bytes_hold_they_open_and_what_is_kept_opens_alike(source):
    for form in ("auto", "sse", "jsonl"):
        capture = Capture.from_bytes(source, form=form)
        assert capture.responses
        assert all(isinstance(note, str) for note in capture.notes)
        assert len(open_recording(source, form).parts) >= 1


@pytest.mark.parametrize(
    "line", ["data: {}\n\n", "{}\n", "id: 1\r\ndata: {}\r\n\r\n", ": c\n\ndata: {}\n\n"]
)
def test_what_is_behind_the_bound_is_left_out_and_said_so(line, monkeypatch):
    for module in ("agentlib.sse", "agentlib.recordings.reader"):
        monkeypatch.setattr(f"{module}.MAX_EVENTS", 3)
    searched = []
    body = Redactor.body

    def watched(self, text, *rest):
        searched.append(text)
        return body(self, text, *rest)

    monkeypatch.setattr(Redactor, "body", watched)
    for number in (3, 4, 5, 100):
        whole = line.encode() * number
        capture = Capture.from_bytes(gzip.compress(whole))
        (response,) = capture.responses
        assert len(response.events) == 3
        assert response.fault == ("the stream holds more than 3 events" if number > 3 else None)
        # The first too many is what is refused, so it stays; whatever follows is not looked at.
        assert searched[-1].count(b"{}") == min(number, 4)
        assert any("left out" in note for note in response.notes) is (number > 4)
        assert (capture.source == whole) is (number <= 4)


def test_lines_are_bounded_as_well(monkeypatch):
    monkeypatch.setattr("agentlib.recordings.reader.MAX_LINES", 10)
    stream = b'data: {"type": "ping"}\n\n'
    for filler in (b": x\n", b": x\r\n", b"\n", b"id: 1\n"):
        for count in (4, 8):
            few = Capture.from_bytes(stream + filler * count)
            assert few.source == stream + filler * count
        many = Capture.from_bytes(stream + filler * 1_000 + stream)
        assert [len(each.events) for each in many.responses] == [1]
        assert len(many.source) <= len(stream) + 10 * len(filler)
        assert any("left out" in note for note in many.responses[0].notes)


@pytest.mark.parametrize("line", ["data: {}\n\n", "{}\n"])
def test_the_number_of_events_is_bounded(line, monkeypatch):
    for module in ("agentlib.sse", "agentlib.recordings.reader"):
        monkeypatch.setattr(f"{module}.MAX_EVENTS", 3)
    for number in (2, 3, 4, 100):
        recording = gzip.compress(line.encode() * number)
        (response,) = Capture.from_bytes(recording).responses
        assert len(response.events) == min(number, 3)
        fault = "the stream holds more than 3 events" if number > 3 else None
        assert response.fault == fault

"""No secret stays in a capture, and what its stream says is still the same stream."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import STORIES, TEXT_THEN_CALL, Call, Framing, Say, Story, tell

from agentlib.lab.inspection import inspect_capture
from agentlib.transport.capture import Capture
from agentlib.transport.recorder import REDACTED
from agentlib.transport.redaction import SECRET_NAMES, Redactor

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEY = "sk-an-authored-key-0123456789"
LITERALS = [
    KEY,
    "sk_live_0123456789abcdefgh",
    "AIza" + "a" * 35,
    "gsk_" + "a1" * 12,
    "hf_" + "a1" * 12,
    "xai-" + "a1" * 12,
    "AKIA" + "A1" * 8,
    "ghp_" + "a1" * 12,
    "github_pat_" + "a1" * 12,
    "xoxb-0123456789-abcdef",
    "glpat-0123456789abcdefgh",
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
]
INNOCENT = [
    "the task-management-of-the-whole-team",
    "a risk-averse-and-very-careful-plan",
    "max_tokens: 4096, output_tokens: 12, a token, the secret, a password",
    "Bearer authentication is described below in the chapter",
    "a cookie and its authorization",
    "sk-short",
    REDACTED,
]


def sse(*events):
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def verdicts(capture):
    rows = [inspection.row() for inspection in inspect_capture(capture, "f")]
    return [(row["verdict"], row["check"], row["event"], len(row["calls"])) for row in rows]


def stream_with(secret, piece):
    arguments = json.dumps({"path": f"a {secret} b", "to": 3})
    story = Story((Say((f"It is {secret}, I think.",)), Call("count", arguments, "call_c")))
    return sse(*tell(story, Framing(piece=piece)))


@pytest.mark.parametrize("secret", LITERALS)
def test_a_key_is_masked_wherever_it_is_cut_and_the_verdict_stays(secret):
    for piece in (1, 2, 3, 5, 8, 13, 21, 34, 100):
        source = stream_with(secret, piece)
        kept = Capture.from_bytes(source, redact=False)
        capture = Capture.from_bytes(source)
        text = "".join(e.data["delta"] for e in capture.events if "delta" in e.data)
        assert secret not in text
        assert secret.encode() not in capture.source
        assert verdicts(capture) == verdicts(kept) == [("released", None, None, 1)]
        assert capture.notes[0].startswith("1 secret redacted: ")
        assert (kept.source, kept.notes) == (source, ())
        assert len(capture.events) == len(kept.events)


def test_a_key_is_masked_at_every_place_where_two_fragments_meet():
    text = f"See {KEY}."
    for cut in range(len(text) + 1):
        chunks = [
            {"id": "c", "choices": [{"index": 0, "delta": {"content": piece}}]}
            for piece in (text[:cut], text[cut:])
        ]
        capture = Capture.from_bytes(sse(*chunks))
        said = [event.data["choices"][0]["delta"]["content"] for event in capture.events]
        assert "".join(said) == "See [redacted]" + "." * (len(KEY) - 11) + "1."
        assert [len(piece) for piece in said] == [cut, len(text) - cut]


def test_fragments_of_two_calls_that_alternate_are_two_texts():
    def chunk(index, arguments):
        call = {"index": index, "function": {"arguments": arguments}}
        return {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}

    source = sse(chunk(0, KEY[:9]), chunk(1, "sk-other"), chunk(0, KEY[9:]), chunk(1, " text"))
    capture = Capture.from_bytes(source)
    said = [e.data["choices"][0]["delta"]["tool_calls"][0]["function"] for e in capture.events]
    assert [each["arguments"] for each in said][1::2] == ["sk-other", " text"]
    assert KEY not in said[0]["arguments"] + said[2]["arguments"]


def test_equal_secrets_have_equal_masks_and_others_have_others():
    other = KEY[:-1] + "0"
    redactor = Redactor()
    masked = [redactor.text(text) for text in (KEY, other, KEY)]
    assert masked[0] == masked[2] != masked[1]
    assert [len(text) for text in masked] == [len(KEY)] * 3
    assert redactor.note == "2 secrets redacted: API key (2)"
    assert [redactor.text(text) for text in masked] == masked


@pytest.mark.parametrize("text", INNOCENT)
def test_prose_that_only_looks_like_it_stays(text):
    source = sse({"type": "response.output_text.delta", "delta": text, "text": text})
    capture = Capture.from_bytes(source)
    assert (capture.source, capture.notes) == (source, ())


def test_counts_and_words_with_their_odds_are_no_secrets():
    source = sse(
        {"usage": {"output_tokens": 7}, "max_tokens": 9, "token": " the"},
        {"logprobs": [{"token": " password", "logprob": -1}], "secret": 3, "password": None},
        {"tools": [{"parameters": {"properties": {"password": {"type": "string"}}}}]},
    )
    assert Capture.from_bytes(source).source == source


@pytest.mark.parametrize("name", sorted(SECRET_NAMES - {"token"}))
def test_a_field_of_such_a_name_is_redacted_and_what_a_model_wrote_is_not(name):
    event = {"type": "response.created", name: "hunter2", "arguments": {name: "hunter2"}}
    (read,) = Capture.from_bytes(sse(event)).events
    assert read.data == {**event, name: REDACTED}
    text = json.dumps({name: "hunter2"})
    spoken = sse({"type": "x", "delta": text}, {"type": "y", "arguments": text})
    assert Capture.from_bytes(spoken).source == spoken


def test_a_token_is_one_where_it_is_long():
    (event,) = Capture.from_bytes(sse({"token": "a1b2c3d4e5f6g7h8i9j0"})).events
    assert event.data == {"token": REDACTED}


HEADERS = [
    b"authorization: Bearer hunter2-hunter2",
    b"> Authorization: Basic aHVudGVyMjpodW50ZXIy",
    b"* [HTTP/2] [1] [x-api-key: hunter2-hunter2]",
    b"< Set-Cookie: id=hunter2; HttpOnly",
    b": password: hunter2",
]


@pytest.mark.parametrize("line", HEADERS)
def test_a_header_on_a_line_of_its_own_is_redacted(line):
    capture = Capture.from_bytes(line + b"\n\ndata: {}\n\n", form="sse")
    assert b"hunter2" not in capture.source
    assert b"aHVudGVy" not in capture.source
    assert any(note.startswith("1 secret redacted: ") for note in capture.notes)
    saved = Capture.from_bytes(capture.source)
    assert not any("redacted:" in note for note in saved.notes)


def test_the_value_of_a_header_is_a_secret_in_the_body_too():
    token = "hunter2-hunter2-hunter2"
    body = sse({"type": "x", "delta": f"you are {token[:7]}"}, {"type": "x", "delta": token[7:]})
    head = f"HTTP/1.1 200 OK\r\nx-api-key: {token}\r\n\r\n".encode()
    capture = Capture.from_bytes(head + body)
    assert "".join(event.data["delta"] for event in capture.events) == (
        "you are [redacted]............1"
    )


def test_what_is_no_event_is_redacted_too():
    source = f": you are {KEY}\n\ndata: broken {KEY}\n\nwhat {KEY}\n".encode()
    for form in ("sse", "jsonl"):
        capture = Capture.from_bytes(source, form=form)
        assert KEY.encode() not in capture.source
        assert KEY not in str(capture.responses) + str(capture.notes)
        assert len(capture.source) == len(source)


def test_what_has_no_secret_keeps_every_byte_and_its_neighbours_their_text():
    first, last = b'event: a\r\ndata: {"n":  1}\r\n\r\n', b'\xef\xbb\xbf: c\rdata:{"m" :2}\r\r'
    source = first + sse({"api_key": "k"}) + last
    capture = Capture.from_bytes(source, form="sse")
    assert capture.source == first + b'data: {"api_key":"[redacted]"}\n\n' + last


@pytest.mark.parametrize("path", sorted((FIXTURES / "streams").glob("*.sse")), ids=lambda p: p.stem)
def test_no_fixture_has_a_secret(path):
    assert Capture.load(path).source == path.read_bytes()


def test_tools_of_a_request_are_redacted():
    asked = json.dumps({"tools": [{"type": "mcp", "headers": {"Authorization": "hunter2"}}]})
    answer = {"content": {"mimeType": "text/event-stream", "text": sse({"type": "x"}).decode()}}
    entry = {"request": {"postData": {"text": asked}}, "response": answer}
    capture = Capture.from_bytes(json.dumps({"log": {"entries": [entry]}}).encode())
    assert "hunter2" not in capture.source.decode() + repr(capture.responses[0].tools)


@settings(deadline=None, max_examples=60)
@given(
    story=st.sampled_from([*STORIES.values(), TEXT_THEN_CALL]),
    piece=st.integers(1, 40),
    secret=st.sampled_from(LITERALS),
    cuts=st.lists(st.integers(0, 200), max_size=3),
)
def test_redaction_never_changes_a_verdict(story, piece, secret, cuts):
    events = json.loads(json.dumps(tell(story, Framing(piece=piece))).replace("look", secret))
    for cut in cuts:
        events = events[:cut] + events[cut + 1 :]
    source = sse(*events)
    assert verdicts(Capture.from_bytes(source)) == verdicts(
        Capture.from_bytes(source, redact=False)
    )


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["s", "k", "-", "sk-", KEY[3:], KEY, " ", "di", "a1", '"', "é"])),
    st.lists(st.integers(0, 60)),
)
def test_any_text_in_any_fragments_is_masked_as_it_is_when_it_is_whole(words, cuts):
    text = "".join(words)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    events = [{"type": "x.delta", "delta": piece} for piece in pieces]
    capture = Capture.from_bytes(sse(*events, {"type": "x.done", "text": text}))
    *fragments, done = [event.data for event in capture.events]
    assert "".join(each["delta"] for each in fragments) == done["text"] == Redactor().text(text)

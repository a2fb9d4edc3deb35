"""No secret stays in a capture, and what its stream says is still the same stream."""

import base64
import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples
from streams import STORIES, TEXT_THEN_CALL, Call, Framing, Say, Story, tell

from agentlib.inspection.report import inspect_capture
from agentlib.recordings import fragments
from agentlib.recordings import reader as readings
from agentlib.recordings.capture import Capture
from agentlib.recordings.redaction import Redactor
from agentlib.scrubbing import REDACTED

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEY = "sk-an-authored-key-0123456789"
NAMES = [
    *("authorization", "Proxy-Authorization", "cookie", "set-cookie", "api-key", "x-api-key"),
    *("x-auth-token", "x-goog-api-key", "x-amz-security-token", "Ocp-Apim-Subscription-Key"),
    *("api_key", "apikey", "apiKey", "openai_api_key", "X-Api-Key ", "access_token"),
    *("accessToken", "auth_token", "refresh_token", "session_token", "client_secret", "secret"),
    *("secret_key", "aws_secret_access_key", "private_key", "passwd", "db_password"),
]
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


@pytest.mark.exhaustive(keep=3)
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


@pytest.mark.parametrize("name", NAMES)
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


def har(*bodies, url="https://h.example/v1/x", headers=(), asked=None, kind="text/event-stream"):
    request = {
        "method": "POST",
        "url": url,
        "headers": [{"name": name, "value": value} for name, value in headers],
        "postData": {"text": json.dumps(asked or {})},
    }
    entries = [
        {
            "request": request,
            "response": {
                "content": {
                    "mimeType": kind,
                    "encoding": "base64",
                    "text": base64.b64encode(body).decode(),
                }
            },
        }
        for body in bodies
    ]
    return json.dumps({"log": {"entries": entries}}).encode()


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


@settings(deadline=None, max_examples=examples(60))
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


PLACES = st.sampled_from(
    [
        *("type", "id", "name", "value", "token", "headers", "server_url", "delta", "arguments"),
        *("input", "parameters", "api_key", "x-Secret", "input_tokens", "content", "index", KEY),
    ]
)
ANY_TEXT = st.sampled_from(
    [
        *("", "x", KEY, KEY[:9], KEY[9:], "api_key", "cookie", "\\u0073" + KEY[1:], "é", "headers"),
        *("Bearer " + KEY[3:], "http://u:p@h/?q=1", "abcdefgh12345678ijkl"),
    ]
)
ANY_VALUE = st.recursive(
    ANY_TEXT | st.integers(0, 2) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLACES, inner, max_size=3),
    max_leaves=8,
)
ANY_LINE = st.sampled_from(["", ": c", f": {KEY}", "api_key: x", "id: 1", "cookie: a=b", "odd"])


@settings(deadline=None, max_examples=400)
@given(
    st.lists(st.tuples(ANY_LINE, st.dictionaries(PLACES, ANY_VALUE, max_size=4)), max_size=4),
    st.booleans(),
)
def test_what_is_passed_over_at_a_glance_has_no_secret(pairs, ascii_only):
    """A body is searched quickly first; where that finds nothing, the whole way finds nothing."""
    source = "".join(
        f"{line}\n\ndata: {json.dumps(event, ensure_ascii=ascii_only)}\n\n" for line, event in pairs
    ).encode()
    quick, whole = Redactor(), Redactor()
    body = quick.body(source, "sse", [event for _, event in pairs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Redactor, "_is_suspect", lambda *_: True)
        assert whole.body(source, "sse", [event for _, event in pairs]) == body
    assert whole.note == quick.note


# ------------------------------------------------------------- what redaction must never change

STREAMS = sorted((FIXTURES / "streams").glob("*.sse"))
KEPT = frozenset(
    ("type", "object", "status", "role", "name", "finish_reason", "stop_reason", "model")
)


def skeleton(value):
    if isinstance(value, dict):
        return {
            name: inner
            if isinstance(inner, str) and (name in KEPT or name.endswith("id"))
            else skeleton(inner)
            for name, inner in value.items()
            if name != "logprobs"
        }
    if isinstance(value, list):
        return [skeleton(inner) for inner in value]
    return "text" if isinstance(value, str) else value


def meaning(capture):
    """All that redaction keeps: kinds, fields, structure, verdicts, and calls with their IDs."""
    found = inspect_capture(capture, "f")
    calls = [[(call.name, call.call_id) for call in each.calls] for each in found]
    events = [[skeleton(e.data) for e in response.events] for response in capture.responses]
    faults = [response.fault is None for response in capture.responses]
    return verdicts(capture), calls, events, faults


def strings_of(value):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from strings_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_of(inner)
    elif isinstance(value, str):
        yield value


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_whatever_a_recording_teaches_the_stream_keeps_its_meaning(data):
    source = data.draw(st.sampled_from(STREAMS)).read_bytes()
    capture = Capture.from_bytes(source, redact=False)
    words = {*strings_of([event.data for r in capture.responses for event in r.events])}
    words |= {"response.completed", "message_stop", "partial_json", "finish_reason", KEY}
    values = st.sampled_from(sorted(word for word in words if word.isprintable()))
    name = st.sampled_from([*NAMES, "token", "event", "x"])
    comments = data.draw(st.lists(st.tuples(name, values), max_size=3))
    headers = data.draw(st.lists(st.tuples(name, values), max_size=5))
    lines = "".join(f": {name}: {value}\n\n" for name, value in comments)
    recording = har(lines.encode(errors="replace") + source, headers=headers)
    assert meaning(Capture.from_bytes(recording)) == meaning(
        Capture.from_bytes(recording, redact=False)
    )


def test_a_password_that_is_named_like_an_event_hides_no_ending():
    source = (FIXTURES / "streams" / "success_2_edit.sse").read_bytes()
    end = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    block = b"event: response.incomplete\n" + sse({"type": "response.incomplete", "response": end})
    at = source.index(b"event: response.completed")
    capture = Capture.from_bytes(
        b": password: response.incomplete\n\n" + source[:at] + block + source[at:]
    )
    assert verdicts(capture)[0][0] == "rejected"


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_structure_that_looks_like_a_key_stays(path):
    # As IDs, kinds and names of tools, literally, wherever they stand.
    source = path.read_bytes()
    capture = Capture.from_bytes(source, redact=False)
    ids = {
        value
        for response in capture.responses
        for event in response.events
        for value in (event.data.get("item_id"), event.data.get("id"))
        if isinstance(value, str)
    }
    for number, value in enumerate(sorted(ids)):
        source = source.replace(b'"%b"' % value.encode(), b'"sk-%016d"' % number)
    assert meaning(Capture.from_bytes(source)) == meaning(Capture.from_bytes(source, redact=False))


def test_the_names_of_fields_stay_and_so_does_the_kind_that_a_line_tells():
    source = f'event: {KEY}\ndata: {{"{KEY}": "{KEY}"}}\n\n'.encode()
    (event,) = Capture.from_bytes(source).events
    assert ([*event.data], event.data["type"]) == (["type", KEY], KEY)
    assert KEY not in event.data[KEY]


@pytest.mark.exhaustive(keep=13)
@pytest.mark.parametrize("literal", [*LITERALS, "rk-" + "a1" * 12])
@pytest.mark.parametrize("before", ["", "\n", "\r", "\t", "é", "\\", "/", '"', "\u2028", "Bearer "])
def test_arguments_are_the_same_json_with_a_mask_of_the_same_length(literal, before):
    arguments = json.dumps({"text": f"{before}{literal}", literal: 1})
    story = Story((Call("count", arguments, "call_c"),))
    capture = Capture.from_bytes(sse(*tell(story, Framing(piece=7))))
    (response,) = inspect_capture(capture, "f")
    said = "".join(e.data["delta"] for e in capture.events if "delta" in e.data)
    assert response.verdict == "released"
    assert len(said) == len(arguments)
    assert len(json.loads(said)["text"]) == len(before + literal)
    assert literal not in said or before == "\\"


def test_an_escape_of_a_line_end_does_not_begin_a_key():
    arguments = json.dumps({"text": "a\rk-" + "a1" * 12})
    source = sse(*tell(Story((Call("count", arguments, "c"),)), Framing(piece=9)))
    assert Capture.from_bytes(source).source == source


def test_a_number_in_arguments_is_no_key_though_a_header_sent_it():
    for value in ("12345678901234567890", "1234567890e1234567890", "-1234567890123456789"):
        source = sse(*tell(Story((Call("count", f'{{"n": {value}}}', "c"),)), Framing(piece=9)))
        capture = Capture.from_bytes(har(source, headers=[("api-key", value)]))
        assert capture.source.endswith(source)


def test_a_text_that_looks_like_a_mask_does_not_become_equal_to_one():
    mask = Redactor().text(KEY)
    for said, done in ((KEY, mask), (mask, KEY), (KEY + "2", mask[:-1] + "12")):
        events = tell(Story((Say((said,)),)), Framing(piece=100))
        for event in events:
            if "delta" not in event:
                event.update(json.loads(json.dumps(event).replace(said, done)))
        source = sse(*events)
        assert verdicts(Capture.from_bytes(source)) == verdicts(
            Capture.from_bytes(source, redact=False)
        )


@pytest.mark.parametrize("field", [KEY, {"api_key": "k"}])
def test_what_was_refused_is_refused_still(field, monkeypatch):
    monkeypatch.setattr(readings, "MAX_EVENT_BYTES", 200)
    monkeypatch.setattr(fragments, "MAX_EVENT_BYTES", 200)
    event = f'{{"type": "x",{" " * 200}"said": {json.dumps(field)}}}'
    for source in (f"data: {event}\n\n", f'{{"type": "a"}}\n{event}\n{{"type": "b"}}\n'):
        capture = Capture.from_bytes(source.encode())
        again = Capture.from_bytes(capture.source)
        kept = Capture.from_bytes(source.encode(), redact=False)
        for each in (capture, again):
            assert each.responses[0].fault == kept.responses[0].fault is not None
            assert len(each.events) == len(kept.events)
        assert KEY.encode() not in capture.source


def test_a_stream_that_is_no_utf_8_is_none_without_its_secrets_and_saved_again():
    source = b"password: a \xc3 \xa9 b\n" + sse({"type": "x"})
    capture = Capture.from_bytes(source, form="sse")
    again = Capture.from_bytes(capture.source, form="sse")
    assert again.source == capture.source
    for each in (capture, again):
        assert "is not UTF-8" in each.responses[0].fault


def test_a_stream_is_read_no_further_without_its_secrets(monkeypatch):
    monkeypatch.setattr(readings, "MAX_EVENT_BYTES", 200)
    source = f': password: {"x" * 199}\ndata: {{"type": "x"}}\n\n'.encode()
    capture = Capture.from_bytes(source)
    assert (capture.events, capture.responses[0].fault) == ((), "it is larger than 200 bytes")


def test_masks_of_many_keys_keep_their_length():
    keys = [f"sk-{number:016}" for number in range(1200)]
    redactor = Redactor()
    redactor.learn([("api-key", "abcdef0123456789")])
    masks = [redactor.text(key) for key in [*keys, "abcdef0123456789"]]
    assert {len(mask) for mask in masks} == {16, 19}
    assert len(set(masks)) == 1201


# ------------------------------------------------------------------------- where a key may stand


def chunk(**delta):
    return {"object": "chat.completion.chunk", "id": "c", "choices": [{"index": 0, **delta}]}


def of_text(text, **more):
    event = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0}
    return {**event, "delta": text, **more}


STREAMED = {
    "Responses": of_text,
    "Chat": lambda text: chunk(delta={"content": text}),
    "a call of old": lambda text: chunk(delta={"function_call": {"arguments": text}}),
    "a call": lambda text: chunk(delta={"tool_calls": [{"function": {"arguments": text}}]}),
    "a list": lambda text: chunk(delta={"content": [{"type": "text", "text": text}]}),
    "details": lambda text: chunk(delta={"reasoning_details": [{"text": text}]}),
    "a completion": lambda text: chunk(text=text),
    "Gemini": lambda text: {"candidates": [{"content": {"parts": [{"text": text}]}}]},
    "odds": lambda text: chunk(logprobs={"content": [{"token": text, "logprob": -1}]}),
    "Messages": lambda text: {"type": "content_block_delta", "index": 0, "delta": {"text": text}},
    "any": lambda text: {"type": "x", "a": [[text]]},
}


@pytest.mark.parametrize("event", STREAMED.values(), ids=STREAMED)
def test_a_key_in_fragments_is_masked_in_whatever_field_they_are(event):
    for cut in range(1, len(KEY)):
        source = sse(event(f"a {KEY[:cut]}"), event(KEY[cut:]))
        kept = Capture.from_bytes(source, redact=False)
        # Read, unfinished, and after the fault.
        for text in (source, source[:-2], b"data: {broken\n\n" + source):
            saved = Capture.from_bytes(text).source
            assert json.dumps(f"a {KEY[:cut]}").encode() not in saved
            assert json.dumps(KEY[cut:]).encode() not in saved
        lengths = [[len(s) for s in strings_of(e.data)] for e in kept.events]
        masked = Capture.from_bytes(source).events
        assert [[len(s) for s in strings_of(e.data)] for e in masked] == lengths


def test_a_block_that_begins_with_text_and_a_choice_without_its_index_are_joined_too():
    begin = {"type": "content_block_start", "index": 0, "content_block": {"text": KEY[:9]}}
    rest = {"type": "content_block_delta", "index": 0, "delta": {"text": KEY[9:]}}
    bare = {"object": "chat.completion.chunk", "choices": [{"delta": {"content": KEY[9:]}}]}
    for events in ((begin, rest), (chunk(delta={"content": KEY[:9]}), bare)):
        assert KEY[9:].encode() not in Capture.from_bytes(sse(*events)).source


def test_the_odds_of_masked_words_are_left_out_and_others_stay():
    pieces = [KEY[at : at + 4] for at in range(0, len(KEY), 4)]
    odds = [{"token": piece, "bytes": [*piece.encode()], "logprob": -1} for piece in pieces]
    events = [of_text(piece, logprobs=[each]) for piece, each in zip(pieces, odds, strict=True)]
    last = of_text(" fine", logprobs=[{"token": " fine"}])
    done = {"type": "response.output_text.done", "text": KEY, "logprobs": odds}
    said = [e.data["logprobs"] for e in Capture.from_bytes(sse(*events, last, done)).events]
    assert said == [[]] * len(pieces) + [[{"token": " fine"}], []]
    talk = chunk(delta={"content": KEY}, logprobs={"content": odds})
    (event,) = Capture.from_bytes(sse(talk)).events
    assert event.data["choices"][0]["logprobs"] is None


ESCAPED = KEY.replace("k", "\\u006b")
BROKEN = {
    "after the fault": f"data: {{bad\n\ndata: {json.dumps(KEY)}\n\n",
    "escaped": f'data: {{"a": "{ESCAPED}"}}\n\n',
    "escaped after the fault": f'data: {{bad\n\ndata: {{"a": "{ESCAPED}"}}\n\n',
    "escaped in the fault": f"data: {{bad {ESCAPED}\n\n",
    "escaped, no object": f'data: "{ESCAPED}"\n\n',
    "escaped, unfinished": f'data: {{"a": "{ESCAPED}',
    "escaped twice": sse({"arguments": f'{{"a": "{ESCAPED}"}}'}).decode(),
    "two lines": f'data: {{"a":\ndata: "{ESCAPED}"}}\n\n',
}


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_a_key_in_what_cannot_be_read_or_with_escapes_is_masked(source):
    capture = Capture.from_bytes(source.encode())
    kept = Capture.from_bytes(source.encode(), redact=False)
    for text in (capture.source.decode(), *(r.fault or "" for r in capture.responses)):
        assert KEY[5:] not in text.replace("\\u006b", "k")
    assert meaning(capture)[0] == meaning(kept)[0]


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_told_as_what_it_is_and_has_no_key(codec):
    source = f"\ufeffdata: {json.dumps(KEY)}\n\ncookie: hunter2\n".encode(codec)
    capture = Capture.from_bytes(source, name=KEY)
    assert "UTF-16" in capture.responses[0].fault
    assert KEY.encode(codec) not in capture.source
    assert "hunter2".encode(codec) not in capture.source
    assert KEY not in repr(capture)


HEAD = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
NOTED = {
    "path": har(sse({"type": "x"}), url=f"https://h.example/v1/{KEY}/chat"),
    "long path": har(sse({"type": "x"}), url=f"https://h.example/{'v' * 110}/{KEY}/chat"),
    "query": har(sse({"type": "x"}), url=f"https://h.example/p%3Fkey={KEY}"),
    "parameter": har(b"<html>", url=f"https://h.example/p;key={KEY}", kind="text/html"),
    "user": har(b"<html>", url=f"https://{KEY}:{KEY}@h.example/p", kind="text/html"),
    "kind": har(b"x", kind=f"application/{'x' * 20}/{KEY}"),
    "curl": f"* Trying\nAuthorization: Bearer {KEY}\n{HEAD}data: {{}}\n\n".encode(),
    "chunks": f"{HEAD}5\r\ndata:\r\n{KEY} rest\r\n".encode(),
    "cassette": f'{{"interactions": [{{"a": "{KEY}"x}}]}}'.encode(),
    "name twice": f'{{"interactions": [{{"{KEY}": 1, "{KEY}": 2}}]}}'.encode(),
    "yaml": f"interactions:\n- &{KEY} x\n- *{KEY}x\n".encode(),
    "mark": f': recorded answer {{"from":"{KEY}"}}\ndata: {{}}\n\n'.encode(),
    "odd line": f"data: {{}}\n\nodd {KEY}\n".encode(),
    "error": json.dumps({"error": {"message": f"{'no ' * 10}{KEY}"}}).encode(),
}


@pytest.mark.parametrize("source", NOTED.values(), ids=NOTED)
def test_no_note_no_fault_and_no_place_shows_a_key_or_half_of_one(source):
    capture = Capture.from_bytes(source)
    for text in (*capture.notes, capture.source.decode(), str(capture.responses)):
        assert KEY[3:12] not in text
        assert KEY[-8:] not in text


def test_fields_of_other_shapes_are_redacted_and_their_names_stay():
    event = {
        "set-cookie": ["sid=hunter2"],
        "authorization": {"x": "hunter2", "n": 7, "none": None},
        "metadata": [{"name": "Authorization", "value": "Basic hunter2"}],
        "headers": {"X-My-Own": "hunter2"},
        "server_url": "https://u:hunter2@h.example/mcp?token=hunter2",
    }
    (read,) = Capture.from_bytes(sse(event)).events
    assert read.data == {
        "set-cookie": [REDACTED],
        "authorization": {"x": REDACTED, "n": 7, "none": None},
        "metadata": [{"name": "Authorization", "value": REDACTED}],
        "headers": {"X-My-Own": REDACTED},
        "server_url": f"https://{REDACTED}@h.example/mcp?{REDACTED}",
    }
    assert Capture.from_bytes(sse(read.data)).events[0].data == read.data


OWN = "a-value-of-my-own-99"


@pytest.mark.parametrize(
    "more",
    [
        {"headers": [("x-api-key", OWN)]},
        {"headers": [("X-Api-Key", OWN), ("x-api-key", "another-value-1234")]},
        {"headers": [("Authorization", f"Bearer {OWN}")]},
        {"url": f"https://h.example/x?key={OWN}"},
        {"asked": {"api_key": OWN}},
    ],
)
def test_what_a_request_sent_is_masked_in_every_answer(more):
    body = sse(chunk(delta={"content": OWN[:9]}), chunk(delta={"content": OWN[9:]}))
    source = Capture.from_bytes(har(body, body, **more)).source
    assert OWN[9:].encode() not in source


def test_a_known_value_that_begins_a_key_leaves_no_rest_of_it():
    body = sse(chunk(delta={"content": KEY}))
    source = Capture.from_bytes(har(body, headers=[("x-api-key", KEY[:20])])).source
    assert KEY[20:].encode() not in source


def test_what_the_stream_says_teaches_nothing():
    body = sse({"type": "x", "delta": OWN, "password": OWN})
    source = f": x-api-key: {OWN}\n\n".encode() + body
    (event,) = Capture.from_bytes(source).events
    assert event.data == {"type": "x", "delta": OWN, "password": REDACTED}


HEAVY = {
    "tokens": lambda n: "-eyJaaaaaaaa" * n,
    "dotted tokens": lambda n: "eyJaaaaaaaa.eyJaaaaaaaa-" * n,
    "bearers": lambda n: "Bearer " + "Bearer aaaa" * n,
    "names": lambda n: "secret_password" * n,
    "a name and spaces": lambda n: "token cookie" + " " * 12 * n,
    "a value of spaces": lambda n: ("cookie:" + " " * 100) * (n // 8),
    "escapes": lambda n: "\\u006b" * 2 * n,
    "backslashes": lambda n: "\\" * 12 * n + "u006b",
}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("text", HEAVY.values(), ids=HEAVY)
def test_the_work_grows_as_the_text_does(text):
    def seconds(size):
        texts = [text(size)] * 3
        found = []
        for each in texts:
            redactor = Redactor()
            began = time.process_time()
            redactor.lines(each)
            found.append(time.process_time() - began)
        return min(found)

    # Four times the text: four times the time, not sixteen.
    assert seconds(16_000) < 10 * seconds(4_000) + 0.01

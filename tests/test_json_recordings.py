"""Recordings in JSON: whatever its shape, the streams in it are read as they stand alone."""

import base64
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from agentlib.recordings.capture import Capture

STREAMS = sorted((Path(__file__).parents[1] / "fixtures" / "streams").glob("*.sse"))
URL = "https://h.example/v1/x"
ASKED = {"stream": True, "tools": [{"type": "function", "name": "edit", "parameters": {}}]}
KIND = {"content-type": "text/event-stream"}
NAMES = ["responses", "response", "request", "body", "content", "data", "events", "headers", "log"]


def natives(capture):
    return [[event.data for event in response.events] for response in capture.responses]


def packed(text):
    return base64.b64encode(text.encode()).decode()


def exchange(**response):
    return {"request": {"method": "POST", "url": URL, "body": json.dumps(ASKED)}, **response}


# By what writes it: the document that holds the stream `text`, whose events are `events`.
SHAPES = {
    "an array of events": lambda _, events: events,
    "an array of texts of events": lambda _, events: [json.dumps(each) for each in events],
    "events with their names": lambda _, events: [
        {"event": each.get("type"), "data": each} for each in events
    ],
    "events with their texts": lambda _, events: [
        {"event": "message", "data": json.dumps(each)} for each in events
    ],
    "chunks with a time": lambda _, events: [{"at": 0.1, "chunk": each} for each in events],
    "an object with events": lambda _, events: {"model": "m", "events": events},
    "an end": lambda _, events: [*events, "[DONE]"],
    "pieces of a stream": lambda text, _: [text[:7], text[7:90], text[90:]],
    "one body": lambda text, _: [text],
    "the body as text": lambda text, _: exchange(
        response={"status": {"code": 200}, "headers": KIND, "body": text}
    ),
    "the body in base64": lambda text, _: exchange(
        response={"headers": KIND, "body": packed(text), "base64Encoded": True}
    ),
    "the body as an object": lambda text, _: exchange(
        response={"headers": KIND, "body": {"encoding": "base64", "text": packed(text)}}
    ),
    "the body as chunks": lambda _, events: exchange(response={"body": events}),
    "the answer as a text": lambda text, _: exchange(response=text),
    "a network log": lambda text, _: [
        {"url": URL, "method": "POST", "responseBody": text, "mimeType": "text/event-stream"}
    ],
    "a log with entries": lambda text, _: {
        "entries": [exchange(response={"headers": [{"name": "x", "value": "y"}], "content": text})]
    },
}


def stream(path):
    text = path.read_text(encoding="utf-8")
    return text, Capture.from_bytes(text.encode())


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_streams_in_any_shape_are_read_as_they_stand_alone(shape, path):
    text, alone = stream(path)
    events = [event for response in natives(alone) for event in response]
    for indent in (None, 1):
        source = json.dumps(shape(text, events), indent=indent).encode()
        capture = Capture.from_bytes(source)
        assert capture.provider == alone.provider
        assert natives(capture) == natives(alone)


def test_several_bodies_are_several_answers_and_a_whole_one_is_named():
    text, alone = stream(STREAMS[0])
    whole = json.dumps({"object": "chat.completion", "choices": []})
    capture = Capture.from_bytes(json.dumps([text, text]).encode())
    assert natives(capture) == natives(alone) * 2
    capture = Capture.from_bytes(json.dumps([exchange(response=b) for b in (text, text)]).encode())
    assert natives(capture) == natives(alone) * 2
    assert capture.responses[0].tools == ASKED["tools"]
    capture = Capture.from_bytes(json.dumps({"response": {"body": whole}}).encode())
    assert "no answer in it is a stream" in capture.notes[0]


@pytest.mark.parametrize(
    ("document", "looks"),
    [
        ({"a": 1, "b": 2}, 'an object with "a", "b"'),
        ({str(n): n for n in range(9)}, 'an object with "0", "1", "2", "3", "4", "5" and 3 more'),
        ({}, "an empty object"),
        ([], "an array of 0 values"),
        ([None, 1], "an array of 2 values, the first null"),
        ([{"type": "function"}], 'an array of 1 values, the first an object with "type"'),
        ({"events": [{"type": "spoken"}]}, 'an object with "events"'),
        ({"response": None}, 'an object with "response"'),
    ],
)
def test_a_recording_of_an_unknown_kind_says_what_it_looks_like(document, looks):
    (response,) = Capture.from_bytes(json.dumps(document, indent=1).encode()).responses
    assert response.fault == f"this is a recording in JSON of an unknown kind: {looks}"
    assert response.events == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "data: {}\n\n", "[DONE]"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
)


@settings(deadline=None, max_examples=examples(300))
@given(VALUES)
def test_no_document_is_too_strange_to_be_read(document):
    for indent in (None, 1):
        assert Capture.from_bytes(json.dumps(document, indent=indent).encode()).responses


@pytest.mark.parametrize("tag", ["!binary", "!!binary"])
def test_a_body_that_yaml_carries_in_base64_is_read(tag):
    text, alone = stream(STREAMS[0])
    lines = "\n".join(f"        {packed(text)[at : at + 60]}" for at in range(0, 9999, 60))
    cassette = (
        "---\nhttp_interactions:\n- request:\n    method: post\n    uri: https://h.example/v1\n"
        "  response:\n    headers:\n      Content-Type:\n      - text/event-stream\n"
        f"    body:\n      encoding: ASCII-8BIT\n      string: {tag} |-\n{lines.rstrip()}\n"
        "recorded_with: VCR 6.3.1\n"
    )
    assert yaml.compose(cassette) is not None
    assert natives(Capture.from_bytes(cassette.encode())) == natives(alone)

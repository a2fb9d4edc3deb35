"""One JSON array read as a stream of its elements: however it is cut, and wherever it ends."""

import json

import pytest

from agentlib.commands import main
from agentlib.json_array import JSONArrayDecoder
from agentlib.recordings.capture import Capture
from agentlib.sse import EventStreamError

ELEMENTS = [
    {"candidates": [{"content": {"parts": [{"text": 'a "[{\\ ñ😀'}]}}], "responseId": "r_1"},
    {"candidates": [{"content": {"parts": [{"text": "}]"}]}}], "responseId": "r_1"},
    {"candidates": [{"finishReason": "STOP"}], "responseId": "r_1"},
]
FORMS = {
    "compact": json.dumps(ELEMENTS, ensure_ascii=False).encode(),
    "pretty": b"\xef\xbb\xbf" + json.dumps(ELEMENTS, indent=2).encode(),
    "as the API writes it": b"["
    + b"\n,\r\n".join(json.dumps(each, indent=2, ensure_ascii=False).encode() for each in ELEMENTS)
    + b"\n]\n",
}


def fed(chunks, **options):
    decoder = JSONArrayDecoder(**options)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events, decoder.end()


@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS)
def test_any_split_of_the_bytes_gives_the_same_elements(source):
    for size in (1, 2, 3, 7, 64, len(source)):
        chunks = [source[at : at + size] for at in range(0, len(source), size)]
        events, (closed, dropped) = fed(chunks)
        assert [json.loads(event.data) for event in events] == ELEMENTS
        assert [event.number for event in events] == [1, 2, 3]
        assert (closed, dropped) == (True, 0)


@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS)
def test_an_element_comes_with_its_last_byte_and_the_end_with_the_bracket(source):
    for end in range(len(source.rstrip())):
        events, (closed, _) = fed([source[:end]])
        assert not closed
        assert all(json.loads(event.data) in ELEMENTS for event in events)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        (b"{}", 0),
        (b"[7]", 0),
        (b'[{}, "x"]', 1),
        (b"[{} {}]", 1),
        (b"[,{}]", 0),
        (b"[{},]", 1),
        (b"[{}]]", 1),
        (b"[{}] x", 1),
        (b'[{}, {"a": "\xff"}]', 1),
    ],
)
def test_what_is_no_array_of_objects_is_refused_behind_what_was_good(source, count):
    with pytest.raises(EventStreamError) as raised:
        JSONArrayDecoder().feed(source)
    assert len(raised.value.events) == count
    assert raised.value.event == count + 1


def test_an_element_has_a_bound_while_its_bytes_arrive():
    decoder = JSONArrayDecoder(max_event_bytes=16)
    decoder.feed(b'[{"a": "')
    with pytest.raises(EventStreamError, match="16"):
        decoder.feed(b"x" * 16)


def test_an_empty_array_is_whole():
    assert fed([b" [ ] "]) == ([], (True, 0))


def test_a_recorded_array_is_released_whole_and_refused_where_it_was_cut(tmp_path, capsys):
    path = tmp_path / "answer.json"
    for source in FORMS.values():
        path.write_bytes(source)
        assert main(["inspect", str(path)]) == 0
        # Even the finish reason came: nothing says that this was all.
        path.write_bytes(source.rstrip()[:-1])
        assert main(["inspect", "--json", str(path)]) == 1
        row = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert row["provider"] == "gemini"
        assert "before its closing bracket" in row["reason"]
        assert len(Capture.load(path).responses[0].events) == 3

"""The event-stream decoder, against the rules of the WHATWG HTML standard, "Server-sent events"."""

import codecs
import json
import re
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlib.errors import AgentlibError
from agentlib.sse import (
    MAX_EVENT_BYTES,
    EventStreamDecoder,
    EventStreamError,
    ServerSentEvent,
    decode_event,
)

BOM = b"\xef\xbb\xbf"
LINE_ENDS = {"LF": b"\n", "CRLF": b"\r\n", "CR": b"\r"}
STREAMS = sorted((Path(__file__).parents[1] / "fixtures" / "streams").glob("*.sse"))


def read(*chunks, bound=MAX_EVENT_BYTES):
    """All that chunks come to: (kind, data) of each event, the failure if any, bytes dropped."""
    decoder = EventStreamDecoder(bound)
    events, failure = [], None
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
        decoder.end()
    except EventStreamError as error:
        events += error.events
        failure = (error.reason, error.event)
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    return [(event.kind, event.data) for event in events], failure, decoder.dropped


def events_of(*chunks):
    events, failure, _ = read(*chunks)
    assert failure is None
    return events


def bytewise(data):
    return [data[at : at + 1] for at in range(len(data))]


def oracle(data):
    """The standard's own algorithm, line by line over the whole text, up to a cut character."""
    text = codecs.getincrementaldecoder("utf-8")().decode(data)
    lines = re.split("\r\n|\r|\n", text.removeprefix("\ufeff"))
    events, kind, buffer = [], "", ""
    for line in lines[:-1]:
        if not line:
            if buffer:
                events.append((kind, buffer[:-1]))
            kind, buffer = "", ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            buffer += value + "\n"
    return events


RULES = {
    "one line": (b"data: a\n\n", [("", "a")]),
    "several lines join with LF": (b"data: a\ndata: b\ndata:\n\n", [("", "a\nb\n")]),
    "one space is taken off, once": (
        b"data:a\ndata: b\ndata:  c\ndata:\td\n\n",
        [("", "a\nb\n c\n\td")],
    ),
    "a field without a colon is empty": (b"data\n\n", [("", "")]),
    "two of them are one LF": (b"data\ndata\n\n", [("", "\n")]),
    "the kind": (b"event: k\ndata: a\n\n", [("k", "a")]),
    "the kind may stand last": (b"data: a\nevent: k\n\n", [("k", "a")]),
    "the last kind counts": (b"event: j\nevent: k\ndata: a\n\n", [("k", "a")]),
    "an empty kind is none": (b"event: k\nevent:\ndata: a\n\n", [("", "a")]),
    "a kind does not outlive its block": (b"event: k\n\ndata: a\n\n", [("", "a")]),
    "a block without data is no event": (b"event: k\n\nid: 1\n\nretry: 2\n\n: c\n\n", []),
    "id and retry are ignored": (b"id: 1\nretry: 2\ndata: a\n\n", [("", "a")]),
    "unknown fields are ignored": (b"datas: x\n data: y\nDATA: z\ndata: a\n\n", [("", "a")]),
    "a comment": (b": c\ndata: a\n\n", [("", "a")]),
    "a comment between two lines": (b"data: a\n:c\n:\ndata: b\n\n", [("", "a\nb")]),
    "more blank lines change nothing": (
        b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n",
        [("", "a"), ("", "b")],
    ),
    "NUL is a character": (b"data: a\0b\n\n", [("", "a\0b")]),
    "a colon in the value": (b"data: a: b\n\n", [("", "a: b")]),
    "other separators end no line": (
        "data: a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\n\n".encode(),
        [("", "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg")],
    ),
    "[DONE] is handed on": (b"data: [DONE]\n\n", [("", "[DONE]")]),
    "without its blank line it does not exist": (b"data: a\n\ndata: b\n", [("", "a")]),
    "nor within its last line": (b"data: a\n\ndata: b", [("", "a")]),
    "nothing": (b"", []),
    "the standard's stocks": (
        b"data: YHOO\ndata: +2\ndata: 10\n\n",
        [("", "YHOO\n+2\n10")],
    ),
    "the standard's four blocks": (
        b": test\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        [("", "first event"), ("", "second event"), ("", " third event")],
    ),
    "the standard's two events": (b"data\n\ndata\ndata\n\ndata:", [("", ""), ("", "\n")]),
    "characters of two, three and four bytes": (
        "event: é\ndata: 你\U0001f600\n\n".encode(),
        [("é", "你\U0001f600")],
    ),
}


@pytest.mark.exhaustive(keep=20)
@pytest.mark.parametrize("end", LINE_ENDS.values(), ids=LINE_ENDS)
@pytest.mark.parametrize(("stream", "expected"), RULES.values(), ids=RULES)
def test_each_rule_holds_at_every_split_and_with_every_line_end(stream, expected, end):
    for data in (stream.replace(b"\n", end), BOM + stream.replace(b"\n", end)):
        assert oracle(data) == expected
        whole = read(data)
        assert whole[:2] == (expected, None)
        assert read(*bytewise(data)) == whole
        for cut in range(len(data) + 1):
            assert read(data[:cut], b"", data[cut:]) == whole


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_gives_the_same_events_byte_by_byte_and_as_the_standard_reads_it(path):
    data = path.read_bytes()

    assert events_of(data) == events_of(*bytewise(data)) == oracle(data)


def test_every_event_of_every_prefix_stands_as_soon_as_its_blank_line_does():
    data = (Path(__file__).parents[1] / "fixtures" / "streams" / "wire.sse").read_bytes()
    decoder = EventStreamDecoder()
    seen = []
    for cut in range(len(data)):
        seen += [(event.kind, event.data) for event in decoder.feed(data[cut : cut + 1])]
        assert seen == oracle(data[: cut + 1])


PIECES = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b":",
    b" ",
    b"data",
    b"data:",
    b"data: ",
    b"event: ",
    b"id: 1",
]
PIECES += [BOM, "é".encode(), "\u2028".encode(), b"x", b"{}", b"[DONE]", b"\0"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES)).map(b"".join), st.data())
def test_any_stream_split_anyhow_is_what_the_standard_reads(data, draw):
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    edges = [0, *cuts, len(data)]
    chunks = [data[a:b] for a, b in pairwise(edges)]

    assert events_of(*chunks) == oracle(data)
    assert read(*chunks) == read(data)


@settings(deadline=None)
@given(st.binary(max_size=64), st.integers(0, 64), st.integers(1, 24))
def test_any_bytes_split_anyhow_end_alike_under_any_bound(data, cut, bound):
    data = b"data: a\n\n" + data + b"\n\ndata: b\r\n\r\n"
    whole = read(data, bound=bound)

    assert read(data[:cut], data[cut:], bound=bound) == whole
    assert read(*bytewise(data), bound=bound) == whole


def test_a_byte_order_mark_is_skipped_at_the_start_only():
    assert events_of(BOM + BOM + b"data: a\n\n") == []
    assert events_of(b"data: a\n\n" + BOM + b"data: b\n\n") == [("", "a")]
    assert events_of(b"data: " + BOM + b"\n\n") == [("", "\ufeff")]
    assert read(BOM[:2])[2] == 2


BAD = {
    "a stray byte": b"\xff",
    "a cut character": "é".encode()[:1],
    "an overlong NUL": b"\xc0\x80",
    "a surrogate": b"\xed\xa0\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("line", [b"data: %b", b"event: %b\ndata: x", b": %b", b"id: %b", b"%b"])
def test_bad_utf8_fails_with_its_event_number_and_the_events_before_are_kept(bad, line):
    data = b"data: a\n\n: c\n\ndata: b\n\n" + line % bad + b"\n\ndata: c\n\n"
    events, failure, _ = read(data)

    assert events == [("", "a"), ("", "b")]
    assert failure[1] == 3
    assert f"it is not UTF-8: byte 0x{bad[0]:02x}" in failure[0]
    for cut in range(len(data)):
        assert read(data[:cut], data[cut:]) == (events, failure, 0)


def test_bad_utf8_in_an_event_that_never_ends_is_dropped_with_it():
    assert read(b"data: a\n\ndata: \xff\n") == ([("", "a")], None, 8)


def test_a_decoder_that_failed_stays_failed_and_hands_its_good_events_on_once():
    decoder = EventStreamDecoder()
    with pytest.raises(EventStreamError) as first:
        decoder.feed(b"data: a\n\ndata: \xff\n\n")
    assert [event.data for event in first.value.events] == ["a"]
    assert isinstance(first.value, AgentlibError)
    for again in (lambda: decoder.feed(b"data: b\n\n"), decoder.end):
        with pytest.raises(EventStreamError, match=r"^event 2: it is not UTF-8") as later:
            again()
        assert later.value.events == ()


def test_after_the_end_nothing_is_taken():
    decoder = EventStreamDecoder()
    decoder.feed(b"data: a")
    decoder.end()
    decoder.end()
    assert decoder.dropped == 7
    with pytest.raises(ValueError, match="the stream has ended"):
        decoder.feed(b"\n\n")


@pytest.mark.parametrize(
    ("rest", "dropped"),
    [
        (b"", 0),
        (b": c", 0),
        (b"\n: c\n:d\n", 0),
        (b"data: b", 7),
        (b"event: k\r\n", 9),
        (b": c\nd", 5),
    ],
)
def test_what_is_dropped_at_the_end_is_counted_unless_it_is_only_comments(rest, dropped):
    assert read(b"data: a\n\n" + rest)[2] == dropped


def test_a_block_may_be_as_large_as_the_bound_and_not_one_byte_larger():
    block = b"event: k\r\ndata: 123"
    fits = len(block) - 1  # CRLF counts as one
    whole = block + b"\r\n\r\n\r\n\r\n" + block + b"\r\n\r\n"

    assert read(whole, bound=fits) == ([("k", "123")] * 2, None, 0)
    failure = (f"it is larger than {fits - 1} bytes", 1)
    assert read(whole, bound=fits - 1) == ([], failure, 0)
    for cut in range(len(whole)):
        assert read(whole[:cut], whole[cut:], bound=fits) == ([("k", "123")] * 2, None, 0)
        assert read(whole[:cut], whole[cut:], bound=fits - 1) == ([], failure, 0)


@pytest.mark.parametrize("filler", [b"data: ", b": ", b"data: a\n", b"x"])
def test_a_block_without_an_end_never_grows_the_buffer_past_the_bound(filler):
    bound, chunk = 4096, (filler * 64)[:60]
    decoder = EventStreamDecoder(bound)
    for _ in range(bound // len(chunk)):
        assert decoder.feed(chunk) == []
    assert len(decoder._pending) == bound // len(chunk) * len(chunk)
    with pytest.raises(EventStreamError, match="larger than 4,096 bytes"):
        decoder.feed(chunk)
    assert not decoder._pending


def test_a_chunk_above_the_bound_is_refused_before_it_is_kept():
    chunk = b"x" * (8 * 1024 * 1024)
    decoder = EventStreamDecoder(1024)
    tracemalloc.start()
    try:
        with pytest.raises(EventStreamError):
            decoder.feed(chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(chunk)


def test_each_byte_is_copied_a_fixed_number_of_times_however_small_the_chunks_are():
    # A decoder that looked at its pending bytes again for each chunk would take hours here.
    decoder = EventStreamDecoder()
    size = 1_000_000
    decoder.feed(b"data: ")
    for _ in range(size // 4):
        assert decoder.feed(b"aaaa") == []
    (event,) = decoder.feed(b"\n\n")
    assert len(event.data) == size


@pytest.mark.parametrize("data", ["", "\n", " \t", "\r"])
def test_an_event_of_white_space_is_empty(data):
    assert ServerSentEvent("", data, 1).empty
    assert not ServerSentEvent("", data, 1).done


@pytest.mark.parametrize("data", ["[DONE]", " [DONE]", "[DONE] "])
def test_the_done_separator_is_told(data):
    assert ServerSentEvent("", data, 1).done
    assert not ServerSentEvent("", data, 1).empty


def decoded(data, kind=""):
    return decode_event(ServerSentEvent(kind, data, 7))


def refusal(data, kind=""):
    with pytest.raises(EventStreamError) as caught:
        decoded(data, kind)
    assert caught.value.event == 7
    return caught.value.reason


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("", '{"type": "a"}', {"type": "a"}),
        ("a", '{"type": "a"}', {"type": "a"}),
        ("a", '{"b": 1}', {"type": "a", "b": 1}),
        ("", '{"b": 1}', {"b": 1}),
        ("message", '{"type": "a"}', {"type": "a"}),
        ("message", '{"b": 1}', {"b": 1}),
        ("", ' {"a":\n[1, 2.5, true, null]}\r\n', {"a": [1, 2.5, True, None]}),
        ("", r'{"delta": "\ud83d"}', {"delta": "\ud83d"}),
        ("", r'{"delta": "\ude00"}', {"delta": "\ude00"}),
        ("", r'{"delta": "\ud83d\ude00"}', {"delta": "\U0001f600"}),
    ],
)
def test_an_event_is_its_object_with_its_kind(kind, data, expected):
    assert decoded(data, kind) == expected


@pytest.mark.parametrize("seen", ['"b"', '""', "null", "1", '["a"]'])
def test_a_field_and_data_that_disagree_fail(seen):
    assert refusal(f'{{"type": {seen}}}', "a").startswith("expected one kind of event")


@pytest.mark.parametrize(
    "data",
    [
        "",
        "{",
        "{broken",
        "{}}",
        "{} {}",
        "[DONE]",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": 1, "a": 1}',
        '{"a": {"b": 1, "\\u0062": 2}}',
        "{'a': 1}",
        '{"a": 01}',
        '{"a": "\n"}',
        '{"a": "\0"}',
        '{"a": 1,}',
        '\ufeff{"a": 1}',
        '\u00a0{"a": 1}',
        '{"a": ' + "1" * 5000 + "}",
        '{"a": ' + "[" * 100 + "]" * 100 + "}",
        '{"a":' * 100_000,
        "[" * 100_000,
    ],
    ids=lambda data: data[:12].encode("unicode_escape").decode(),
)
def test_an_event_that_is_not_strict_json_fails(data):
    assert refusal(data).startswith("its data is not JSON: ")


@pytest.mark.parametrize("data", ["[]", "[{}]", '"a"', "1", "true", "null"])
def test_an_event_that_is_not_an_object_fails(data):
    assert refusal(data).startswith("its data is not a JSON object: ")


TEXTS = st.text(alphabet='a"\\\n\0\u2028é\U0001f600')
VALUES = st.lists(TEXTS | st.integers() | st.booleans() | st.none()) | TEXTS


@settings(deadline=None)
@given(st.dictionaries(TEXTS, VALUES))
def test_what_json_writes_is_what_an_event_reads(value):
    assert decoded(json.dumps(value)) == value
    assert decoded(json.dumps(value, ensure_ascii=False)) == value

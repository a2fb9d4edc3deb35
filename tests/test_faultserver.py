"""Replies of the loopback server: what each fault is on the wire, to the byte."""

import json
import socket
import time
import tracemalloc
from pathlib import Path

import pytest
from raw_http import address, ask, post, read_exactly, receive

from agentlib.faultserver.replies import KEEPALIVE
from agentlib.faultserver.server import HEAD, Fault, LoopbackServer, Reply
from agentlib.recordings.capture import Capture

pytestmark = pytest.mark.usefixtures("nothing_is_left")
STREAMS = sorted(Path(__file__).parents[1].joinpath("fixtures", "streams").glob("*.sse"))
EDIT = Capture.load(next(path for path in STREAMS if path.stem == "success_2_edit"))
KINDS = [event.data["type"] for event in EDIT.events]
STREAM = Reply.stream(EDIT)
SMALL = Reply(body=b"data: 1\n\ndata: 2\n\n")
SIZE = len(SMALL.body)
each_stream = pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
ENDS_EARLY = ["reset", "close", "cut_chunk"]


# --------------------------------------------------------------------------------- what is played


@each_stream
def test_a_capture_is_played_byte_for_byte(serve, path):
    capture = Capture.load(path)
    bodies = [Reply.stream(capture, r.number).body for r in capture.responses]

    assert b"".join(bodies) == capture.source
    for response, body in zip(capture.responses, bodies, strict=True):
        answer = ask(serve(Reply.stream(capture, response.number)))
        assert answer.body == body
        assert answer.status == 200
        assert answer.whole
        assert answer.end == "closed"
        assert "content-type: text/event-stream; charset=utf-8" in answer.head
        assert Capture.from_bytes(body).events == response.events


@each_stream
def test_json_lines_are_played_as_the_events_that_they_are(path, tmp_path):
    capture = Capture.load(path)
    Capture.from_events(e for r in capture.responses for e in r.events).save(tmp_path / "a.jsonl")
    lines = Capture.load(tmp_path / "a.jsonl")

    for response in lines.responses:
        played = Capture.from_bytes(Reply.stream(lines, response.number).body)
        assert played.events == response.events


def test_the_fault_of_a_capture_is_played_too():
    broken = EDIT.source[: STREAM.ends[3]] + b"data: {broken\n\n"
    lines = b'{"type":"response.created"}\r\n{broken\r\n'

    assert Reply.stream(Capture.from_bytes(broken)).body == broken
    played = Reply.stream(Capture.from_bytes(lines, form="jsonl")).body
    assert played == b'data: {"type":"response.created"}\n\ndata: {broken\n\n'


def test_what_is_no_stream_is_played_as_it_is():
    source = b'{"error": {"message": "no"}}'

    assert Reply.stream(Capture.from_bytes(source)).body == source


@each_stream
def test_an_event_ends_where_a_reader_completes_it(path):
    capture = Capture.load(path)
    body = Reply.stream(capture).body
    ends = Reply.stream(capture).ends
    events = capture.responses[0].events

    assert len(ends) >= len(events)
    for number, end in enumerate(ends):
        whole = Capture.from_bytes(body[:end], form="sse").responses[0].events
        short = Capture.from_bytes(body[: end - 1], form="sse").responses[0].events
        assert len(short) <= len(whole) <= number + 1
    assert Capture.from_bytes(body[: ends[-1]]).events == events


@pytest.mark.parametrize("number", range(1, len(KINDS) + 1))
def test_an_event_is_sent_twice_or_after_the_next_one(number):
    def kinds(reply):
        return [event.data["type"] for event in Capture.from_bytes(reply.body).events]

    index = number - 1
    twice = STREAM.duplicate(number)
    assert kinds(twice) == KINDS[:number] + KINDS[index:]
    assert twice.body.startswith(STREAM.body[: STREAM.ends[index]])
    if number < len(KINDS):
        swapped = STREAM.swap(number)
        pair = KINDS[index : number + 1][::-1]
        assert kinds(swapped) == KINDS[:index] + pair + KINDS[number + 1 :]
        assert len(swapped.body) == len(STREAM.body)


# ------------------------------------------------------------------------------- how it can end


@pytest.mark.parametrize("fault", [*ENDS_EARLY, "stall"])
def test_a_fault_at_any_offset_lets_exactly_the_bytes_before_it_arrive(serve, fault):
    for at in range(SIZE + 1):
        server = serve(getattr(SMALL, fault)(at=at))
        with socket.create_connection(address(server)) as sock:
            sock.sendall(post())
            if fault == "stall":
                server.wait_until(lambda server: server.stalled == 1)
                sock.shutdown(socket.SHUT_WR)
            answer = receive(sock)
        assert answer.body == SMALL.body[:at]
        assert answer.whole is (fault == "close")
        assert answer.end == ("reset" if fault == "reset" else "closed")
        server.wait_idle()
        assert (server.peer_closed, server.stalled) == (fault == "stall", 0)


@pytest.mark.parametrize("fault", ENDS_EARLY)
def test_a_fault_at_any_event_lets_exactly_the_events_before_it_arrive(serve, fault):
    for number, end in enumerate(STREAM.ends, 1):
        answer = ask(serve(getattr(STREAM, fault)(at=end)))
        assert Capture.from_bytes(answer.body).events == EDIT.events[:number]


def test_a_cut_chunk_announces_more_than_it_brings(serve):
    for at in range(SIZE + 1):
        with socket.create_connection(address(serve(SMALL.cut_chunk(at=at)))) as sock:
            sock.sendall(post())
            data = b""
            while piece := sock.recv(1 << 16):
                data += piece
        size, _, brought = data.partition(b"\r\n\r\n")[2].partition(b"\r\n")
        assert brought == SMALL.body[:at]
        assert int(size, 16) > len(brought)


@pytest.mark.parametrize("framing", ["length", "close"])
@pytest.mark.parametrize("fault", ["reset", "close"])
def test_a_body_without_chunks_ends_early_too(serve, framing, fault):
    answer = ask(serve(getattr(Reply(body=b"0123456789", framing=framing), fault)(at=4)))

    assert answer.body == b"0123"
    assert answer.end == ("reset" if fault == "reset" else "closed")
    assert ("content-length: 10" in answer.head) is (framing == "length")


def test_before_the_head_nothing_is_sent(serve):
    refused = ask(serve(Reply.refuse()))
    unanswered = ask(serve(SMALL.close(at=HEAD)))
    server = serve(SMALL.stall(at=HEAD))
    with socket.create_connection(address(server)) as sock:
        sock.sendall(post())
        server.wait_until(lambda server: server.stalled == 1)
        sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            sock.recv(1)

    assert (refused.head, refused.end) == ("", "reset")
    assert (unanswered.head, unanswered.end) == ("", "closed")
    assert len(server.requests) == 1


def test_a_reset_waits_until_all_before_it_has_gone_out(serve):
    size = 8_000_000
    server = serve(Reply(body=bytes(size)).reset(at=size))
    with socket.create_connection(address(server)) as sock:
        sock.sendall(post())
        # The server has more to send than the kernel takes, and nothing is read yet.
        server.wait_until(lambda server: server.requests)
        answer = receive(sock)

    assert answer.end == "reset"
    assert len(answer.body) == size


def test_a_connection_is_held_open_after_the_last_byte(serve):
    server = serve(SMALL.hold_open())
    with socket.create_connection(address(server)) as sock:
        sock.sendall(post())
        server.wait_until(lambda server: server.stalled == 1)
        sock.shutdown(socket.SHUT_WR)
        answer = receive(sock)

    assert answer.body == SMALL.body
    assert not answer.whole
    server.wait_idle()
    assert (server.closed, server.peer_closed) == (1, 1)


# -------------------------------------------------------------------------- how it is cut and paced


@pytest.mark.parametrize("size", range(1, SIZE + 2))
def test_a_split_is_a_chunk_of_its_own(serve, size):
    pieces = [SMALL.body[at : at + size] for at in range(0, SIZE, size)]

    assert ask(serve(SMALL.split_every(size))).chunks == pieces
    assert ask(serve(SMALL.trickle(size, seconds=0))).chunks == pieces


def test_a_delay_passes_before_the_bytes_after_it(serve):
    server = serve(SMALL.delay(0.02, at=HEAD).delay(0.02, at=3).delay(0.02, at=SIZE))
    start = time.monotonic()
    answer = ask(server)

    assert time.monotonic() - start >= 0.06
    assert answer.chunks == [SMALL.body[:3], SMALL.body[3:]]
    assert answer.whole


def test_keepalives_come_as_often_as_told_and_then_the_body_goes_on(serve):
    answer = ask(serve(SMALL.keepalives(0.001, 3, at=9)))
    alone = ask(serve(Reply.keepalives_only(0.001, count=2)))

    assert answer.body == SMALL.body[:9] + KEEPALIVE * 3 + SMALL.body[9:]
    assert Capture.from_bytes(KEEPALIVE).events == ()
    assert (alone.body, alone.whole) == (KEEPALIVE * 2, True)


def test_keepalives_without_number_end_with_their_client(serve):
    server = serve(Reply.keepalives_only(0.001))
    with socket.create_connection(address(server)) as sock:
        sock.sendall(post())
        read_exactly(sock, 500)
    server.wait_idle()

    assert server.peer_closed == 1


def test_a_huge_line_is_one_event_of_its_size(serve):
    answer = ask(serve(Reply.huge_line(1_000_000)))
    line, end = answer.body[:1_000_000], answer.body[1_000_000:]

    assert end == b"\n\n"
    assert json.loads(line.removeprefix(b"data: "))["type"] == "response.output_text.delta"


def test_a_huge_line_is_never_held_in_memory(serve):
    server = serve(Reply.huge_line(30_000_000))
    buffer = bytearray(1 << 16)
    tracemalloc.start()
    try:
        with socket.create_connection(address(server)) as sock:
            sock.sendall(post())
            total = 0
            while count := sock.recv_into(buffer):
                total += count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert total > 30_000_000
    assert peak < 1_000_000


def test_a_length_counts_what_faults_add(serve):
    line = Reply.huge_line(100_000)
    reply = Reply(body=line.body, framing="length", faults=line.faults).keepalives(0, 2, at=5)
    answer = ask(serve(reply))

    assert f"content-length: {len(answer.body)}\r\n" in f"{answer.head}\r\n"
    assert len(answer.body) == 100_002 + 2 * len(KEEPALIVE)


# ------------------------------------------------------------------------- other kinds of answer


def test_an_error_has_its_status_its_headers_and_a_json_body(serve):
    limited = ask(serve(Reply.error(429, code="insufficient_quota", headers={"Retry-After": "7"})))
    own = ask(serve(Reply.error(503, json_body={"detail": "busy"})))

    assert limited.status == 429
    assert "retry-after: 7" in limited.head
    assert "content-type: application/json" in limited.head
    assert json.loads(limited.body)["error"]["code"] == "insufficient_quota"
    assert (own.status, json.loads(own.body)) == (503, {"detail": "busy"})


@pytest.mark.parametrize("body", [b"", b"\0" * 9, b" \n\t ", b"\xff"])
def test_a_blank_body_has_status_200_and_the_type_of_a_stream(serve, body):
    answer = ask(serve(Reply.blank(body)))

    assert (answer.status, answer.body, answer.whole) == (200, body, True)
    assert "content-type: text/event-stream" in answer.head


def test_a_page_and_another_content_type_say_what_they_are(serve):
    page = ask(serve(Reply.html()))
    named = ask(serve(SMALL.content_type("application/json")))
    moved = ask(serve(Reply(307, {"Location": "/elsewhere"})))

    assert page.body.startswith(b"<!DOCTYPE html>")
    assert "content-type: text/html" in page.head
    assert "content-type: application/json" in named.head
    assert (moved.status, "location: /elsewhere" in moved.head) == (307, True)
    assert ask(serve(Reply(599))).head.startswith("HTTP/1.1 599 Unnamed\r\n")


BAD = {
    "an offset after the end": lambda: SMALL.reset(at=SIZE + 1),
    "an offset before the head": lambda: SMALL.reset(at=HEAD - 1),
    "a split before the body": lambda: SMALL.split_at(HEAD),
    "a chunk cut before the body": lambda: SMALL.cut_chunk(at=HEAD),
    "a chunk cut without chunks": lambda: Reply(framing="length").cut_chunk(at=0),
    "a negative time": lambda: SMALL.delay(-1),
    "a negative number": lambda: SMALL.keepalives(0, -1),
    "an empty piece": lambda: SMALL.split_every(0),
    "no such event": lambda: SMALL.duplicate(3),
    "no event 0": lambda: SMALL.duplicate(0),
    "no event to swap with": lambda: SMALL.swap(2),
    "offsets that would move": lambda: SMALL.reset(at=3).swap(1),
    "no such response": lambda: Reply.stream(EDIT, 2),
    "a line too short": lambda: Reply.huge_line(9),
    "a status without a body": lambda: Reply(204),
    "a status that is none": lambda: Reply(99),
    "an unknown framing": lambda: Reply(framing="none"),
    "a header with a line end": lambda: Reply(headers={"a": "b\r\nc: d"}),
    "a header's name with a space": lambda: Reply(headers={"a b": "c"}),
    "a header of the framing": lambda: Reply(headers={"Content-Length": "1"}),
    "no reply at all": lambda: LoopbackServer([]),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_what_cannot_be_played_is_refused_when_it_is_made(make):
    with pytest.raises(ValueError, match=r"\w"):
        make()


def test_a_reply_is_data():
    first, again = (Reply.stream(EDIT).stall(at=9).split_at(3, 3) for _ in range(2))

    assert first == again
    assert hash(first) == hash(again)
    assert first.faults == (Fault(3, "split"), Fault(3, "split"), Fault(9, "stall"))
    assert repr(SMALL.reset(at=9)) == "Reply(200, 18 bytes, reset at byte 9)"
    assert repr(SMALL.split_every(1)).endswith("split at byte 3, 14 more faults)")
    assert repr(Reply.refuse()) == "Reply(200, 0 bytes, reset before the head)"

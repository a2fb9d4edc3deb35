"""The recorder: the bytes of the body and nothing else, no secret at any split, no empty file."""

import asyncio
import errno
import itertools
import os
import re

import anyio
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_http import SECRET
from sampling import examples
from sdk import ask, model_of

from agentlib.errors import AgentlibError
from agentlib.faultserver.server import Reply
from agentlib.files import CannotWrite
from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture
from agentlib.recordings.recorder import CUT_HERE, Recorder
from agentlib.scrubbing import REDACTED

READ = Reply.stream(capture("success_1_read"))
KEY = b"sk-key"


def record(path, chunks, secrets=("sk-key",)):
    with Recorder(path, secrets) as recorder:
        for chunk in chunks:
            recorder(chunk)
    return path.read_bytes() if path.exists() else None


def record_and_raise(path, error, chunk=b"data: 1\n\n"):
    with Recorder(path) as recorder:
        recorder(chunk)
        raise error


def redacted(text, secrets):
    """What any split must give: the leftmost, longest secret at each place is replaced."""
    longest_first = sorted((s.encode() for s in secrets if s), key=len, reverse=True)
    pattern = b"|".join(re.escape(secret) for secret in longest_first)
    return re.sub(pattern, REDACTED.encode(), text) if pattern else text


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stream.sse"


def files(path):
    return sorted(each.name for each in path.parent.iterdir())


def test_what_comes_is_what_is_written(path):
    assert (
        record(path, [b"data: 1\n", b"", b"\ndata: \xff\r\n\r\n"])
        == b"data: 1\n\ndata: \xff\r\n\r\n"
    )
    assert files(path) == ["stream.sse"]


@pytest.mark.parametrize(
    "text",
    [
        b"sk-key",
        b"data: sk-key\n\n",
        b"sk-keysk-keysk-key",
        b"sk-sk-key sk-ke sk-k sk",
        b"sk-kesk-keyy",
        b"nothing of it",
    ],
)
def test_at_every_split_a_secret_is_replaced(path, text):
    expected = redacted(text, ["sk-key"])
    assert KEY not in expected
    for first, second in itertools.combinations_with_replacement(range(len(text) + 1), 2):
        chunks = [text[:first], text[first:second], text[second:]]
        assert record(path, chunks) == expected
    assert record(path, [bytes([byte]) for byte in text]) == expected


SECRETS = [("aa",), ("aba",), ("ab", "abcd"), ("abcd", "ab"), ("bc", "abcd"), ("ab", "ba"), ("",)]


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("secrets", SECRETS, ids=repr)
@settings(deadline=None, max_examples=examples(200))
@given(text=st.text("abcd", max_size=14), cuts=st.lists(st.integers(0, 14), max_size=5))
def test_secrets_that_overlap_are_alike_at_any_split(tmp_path_factory, secrets, text, cuts):
    path = tmp_path_factory.getbasetemp() / "overlap.sse"
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    data = text.encode()
    chunks = [data[start:end] for start, end in itertools.pairwise(places)]
    found = record(path, chunks, secrets) if data else b""
    assert found == redacted(data, secrets)


def test_what_looks_like_a_secret_and_is_none_is_not_lost(path):
    assert record(path, [b"the end is sk-ke"]) == b"the end is sk-ke"
    assert record(path, [b"sk-", b"other"]) == b"sk-other"


def test_a_failed_response_is_kept(path):
    with pytest.raises(AgentlibError):
        record_and_raise(path, AgentlibError("cut"))
    assert path.read_bytes() == b"data: 1\n\n"
    assert files(path) == ["stream.sse"]


INTERRUPTS = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]
BLOCK = b'event: ping\ndata: {"type": "ping"}\n\n'


@pytest.mark.parametrize("earlier", [None, b"data: 0\n\n"])
@pytest.mark.parametrize("interrupt", INTERRUPTS)
def test_an_interrupted_recording_keeps_what_came_and_says_that_it_was_cut(
    path, interrupt, earlier
):
    if earlier:
        record(path, [earlier])
    with pytest.raises(interrupt):
        record_and_raise(path, interrupt(), BLOCK)
    assert path.read_bytes() == BLOCK + CUT_HERE
    assert files(path) == ["stream.sse"]


def test_wherever_a_recording_is_interrupted_its_whole_events_are_read_and_no_more(path):
    stream = BLOCK * 2
    for place in range(1, len(stream)):
        with pytest.raises(KeyboardInterrupt):
            record_and_raise(path, KeyboardInterrupt(), stream[:place])
        # The last of two line ends may be the one that the recorder adds.
        whole = (place + 1) // len(BLOCK)
        assert sum(len(each.events) for each in Capture.load(path).responses) == whole


@pytest.mark.parametrize("interrupt", INTERRUPTS)
def test_an_interrupted_recording_of_nothing_leaves_the_earlier_one(path, interrupt):
    record(path, [b"data: 1\n\n"])
    with pytest.raises(interrupt):
        record_and_raise(path, interrupt(), b"")
    assert path.read_bytes() == b"data: 1\n\n"
    assert files(path) == ["stream.sse"]


@pytest.mark.parametrize("error", [None, AgentlibError("no key")])
def test_where_nothing_came_there_is_no_file_and_an_earlier_one_stays(path, error):
    for earlier in (None, b"data: 1\n\n"):
        if earlier:
            record(path, [earlier])
        if error is None:
            record(path, [b""])
        else:
            with pytest.raises(AgentlibError):
                record_and_raise(path, error, b"")
        assert (path.read_bytes() if path.exists() else None) == earlier
    assert files(path) == ["stream.sse"]


@pytest.mark.parametrize("earlier", [None, b"data: 1\n\n"])
def test_a_full_disk_leaves_what_was_there(path, monkeypatch, earlier):
    if earlier:
        record(path, [earlier])

    def refuse(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(CannotWrite, match="No space left"):
        record(path, [b"data: 2\n\n"])
    assert (path.read_bytes() if path.exists() else None) == earlier
    assert files(path) == (["stream.sse"] if earlier else [])


def test_two_recorders_of_one_name_do_not_meet(path):
    with Recorder(path) as outer:
        outer(b"data: outer\n\n")
        record(path, [b"data: inner\n\n"])
        assert path.read_bytes() == b"data: inner\n\n"
    assert path.read_bytes() == b"data: outer\n\n"


def test_a_place_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path):
    with pytest.raises(OSError, match="No such file"), Recorder(tmp_path / "no" / "file.sse"):
        pytest.fail("it cannot be entered")


def test_it_records_inside_its_with(path):
    recorder = Recorder(path)
    with pytest.raises(ValueError, match="inside its `with`"):
        recorder(b"data: 1\n\n")
    with recorder:
        recorder(b"data: 1\n\n")
    with pytest.raises(ValueError, match="inside its `with`"):
        recorder(b"data: 2\n\n")
    assert path.read_bytes() == b"data: 1\n\n"


# ------------------------------------------------------------------------------ a live stream


@pytest.mark.anyio
async def test_a_live_stream_is_recorded_byte_for_byte_and_read_again(serve, path):
    server = serve([READ.split_every(90), READ.reset(at=READ.ends[4])])
    with Recorder(path, [SECRET]) as recorder:
        async with model_of(server, tee=recorder) as model:
            decision = await ask(model)
            with pytest.raises(AgentlibError):
                await ask(model)
    assert path.read_bytes() == READ.body + READ.body[: READ.ends[4]]
    first, second = Capture.load(path).responses
    assert len(first.events) == len(READ.ends)
    assert len(second.events) == 5
    assert decision.calls


@pytest.mark.anyio
async def test_no_header_key_or_address_is_recorded(serve, path):
    at = READ.ends[0]
    body = READ.body[:at] + b": you are %b\n\n" % SECRET.encode() + READ.body[at:]
    server = serve(Reply(headers={"x-request-id": "req_secret"}, body=body).split_every(5))
    with Recorder(path, [SECRET]) as recorder:
        async with model_of(server, tee=recorder) as model:
            await ask(model)
    text = path.read_text(encoding="utf-8")
    assert ": you are [redacted]\n" in text
    for secret in (SECRET, "127.0.0.1", "req_secret", "HTTP/1.1", "authorization"):
        assert secret not in text


@pytest.mark.anyio
async def test_a_cancelled_recording_keeps_what_came(serve, path):
    server = serve(READ.stall(at=READ.ends[4]))

    async def call():
        with Recorder(path, [SECRET]) as recorder:
            async with model_of(server, tee=recorder) as model:
                await ask(model)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.to_thread.run_sync(server.wait_until, lambda server: server.stalled)
        tasks.cancel_scope.cancel()
    assert path.read_bytes() == READ.body[: READ.ends[4]] + CUT_HERE
    assert files(path) == ["stream.sse"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_or_a_device_is_never_replaced_by_a_recording(tmp_path):
    pipe = tmp_path / "pipe.sse"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is a pipe"), Recorder(pipe):
        pass

    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]

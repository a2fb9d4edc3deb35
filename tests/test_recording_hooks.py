"""The three-line hook: streams of the real SDK, and of any httpx client, recorded as they come."""

import openai
import pytest
from raw_http import SECRET

from agentlib.faultserver.server import Reply
from agentlib.fixtures import capture
from agentlib.recordings.capture import Capture
from agentlib.recordings.recorder import Recorder

READ = Reply.stream(capture("success_1_read"))
TOOLS = [{"type": "function", "name": "read", "parameters": {"type": "object"}}]
REQUEST = {"model": "m", "input": "repair it", "stream": True, "tools": TOOLS}


def datas(response):
    return [event.data for event in response.events]


@pytest.mark.anyio
async def test_three_lines_record_what_the_sdk_streams(serve, tmp_path):
    server = serve([READ.split_every(70), READ.reset(at=READ.ends[4] + 9)])
    path = tmp_path / "capture.sse"
    with Recorder(path, [SECRET]) as recorder:
        http_client = openai.DefaultAsyncHttpxClient(event_hooks=recorder.hooks())
        client = openai.AsyncOpenAI(
            api_key=SECRET, base_url=server.base_url, http_client=http_client, max_retries=0
        )
        async with client:
            async with await client.responses.create(**REQUEST) as stream:
                kinds = [event.type async for event in stream]
            with pytest.raises(openai.APIConnectionError):
                async with await client.responses.create(**REQUEST) as stream:
                    _ = [event async for event in stream]
    recorded = Capture.load(path)

    first, second = recorded.responses
    assert datas(first) == [event.data for event in capture("success_1_read").events]
    assert [event["type"] for event in datas(first)] == kinds
    assert datas(second) == datas(first)[:5]
    assert second.tools == TOOLS
    assert recorded.notes[0] == "from answer 1"
    assert "unfinished event" in recorded.notes[-1]
    assert SECRET not in path.read_text(encoding="utf-8")


def test_a_client_that_is_not_async_is_recorded_too(serve, tmp_path):
    server = serve(READ)
    with Recorder(tmp_path / "capture.sse", [SECRET]) as recorder:
        http_client = openai.DefaultHttpxClient(event_hooks=recorder.hooks())
        client = openai.OpenAI(
            api_key=SECRET, base_url=server.base_url, http_client=http_client, max_retries=0
        )
        with client, client.responses.create(**REQUEST) as stream:
            kinds = [event.type for event in stream]
    (response,) = Capture.load(tmp_path / "capture.sse").responses
    assert [event["type"] for event in datas(response)] == kinds


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.anyio
async def test_any_client_of_its_http_library_is_recorded(serve, tmp_path, library):
    httpx = pytest.importorskip(library)
    server = serve(READ)
    with Recorder(tmp_path / "capture.sse") as recorder:
        async with (
            httpx.AsyncClient(event_hooks=recorder.hooks(), trust_env=False) as client,
            client.stream("POST", f"{server.base_url}/responses", json=REQUEST) as response,
        ):
            lines = [line async for line in response.aiter_lines()]
    (response,) = Capture.load(tmp_path / "capture.sse").responses
    assert len(datas(response)) == sum(line.startswith("data:") for line in lines)


@pytest.mark.anyio
async def test_what_is_no_stream_is_not_recorded(serve, tmp_path):
    server = serve(Reply.error(500))
    path = tmp_path / "capture.sse"
    with Recorder(path) as recorder:
        http_client = openai.DefaultAsyncHttpxClient(event_hooks=recorder.hooks())
        client = openai.AsyncOpenAI(
            api_key=SECRET, base_url=server.base_url, http_client=http_client, max_retries=0
        )
        async with client:
            with pytest.raises(openai.InternalServerError):
                await client.responses.create(**REQUEST)
    assert not path.exists()

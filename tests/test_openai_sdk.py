"""Opening a stream through the real SDK: one request, and what each refusal becomes."""

import gzip
import itertools
import json
import socket
import ssl
import subprocess
import sys
from dataclasses import replace

import anyio
import httpx2
import openai
import pytest
from raw_http import SECRET
from sdk import REQUEST, ask, given_async_client, model_of, sending, transport_to

from agentlib import openai_transport as openai_sdk
from agentlib.clock import MockClock
from agentlib.errors import OpenFailure
from agentlib.faultserver.server import HEAD, Reply
from agentlib.fixtures import capture
from agentlib.openai_bodies import MAX_REFUSAL_BYTES
from agentlib.openai_clients import make_sync_client
from agentlib.openai_phases import PHASES
from agentlib.openai_transport import OpenAITransport
from agentlib.retry import CONSERVATIVE, PATIENT

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_is_left")]
READ = Reply.stream(capture("success_1_read"))
either_client = pytest.mark.parametrize("owned", [True, False], ids=["own client", "given client"])


async def refusal(server, *, owned=True):
    async with transport_to(server, owned=owned) as transport:
        with anyio.fail_after(10), pytest.raises(OpenFailure) as raised:
            await transport.open(REQUEST)
    assert SECRET not in str(raised.value)
    return raised.value


LIVE_CALL = """
import json
import sys

import anyio

from agentlib import user
from agentlib.conversation import Catalog
from agentlib.model import StreamingModel
from agentlib.openai_clients import make_sync_client
from agentlib.openai_transport import OpenAITransport


async def main():
    transport = OpenAITransport(base_url=sys.argv[1], api_key="any")
    decision = await StreamingModel(transport, "m").complete([user("repair it")], Catalog())
    await transport.aclose()
    return decision.text


text = anyio.run(main)
print(json.dumps({"text": text, "modules": list(sys.modules)}))
"""


def test_a_live_call_loads_no_reader_of_recordings(serve):
    server = serve(Reply.stream(capture("text_only")))
    command = [sys.executable, "-c", LIVE_CALL, server.base_url]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    seen = json.loads(run.stdout)
    assert seen["text"]
    assert [name for name in seen["modules"] if name.startswith("agentlib.recordings")] == []
    assert "yaml" not in seen["modules"]


# ---------------------------------------------------------------------------- one plain request


@either_client
async def test_an_opening_is_one_plain_request_whatever_the_client_would_do(owned):
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n\n"
    with sending(answer) as (address, requests):
        async with transport_to(address, owned=owned) as transport:
            stream = await transport.open(REQUEST)
            assert [event async for event in stream] == [{}]
            await stream.aclose()
    headers = requests[0]
    assert headers["accept-encoding"] == "identity"
    assert headers["authorization"] == f"bearer {SECRET}"
    assert headers["x-stainless-read-timeout"] == "30.0"
    assert headers["x-stainless-retry-count"] == "0"


@pytest.mark.exhaustive(keep=12)
@either_client
@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 425, 429, 500, 503, 599])
async def test_a_refusal_keeps_its_status_and_is_one_request(serve, status, owned):
    server = serve(Reply.error(status, code="why", message="not now", headers={"retry-after": "7"}))
    failure = await refusal(server, owned=owned)

    assert (failure.status, failure.code, failure.retry_after) == (status, "why", 7.0)
    assert f"the server answered {status}" in failure.reason
    assert "not now" in failure.reason
    assert isinstance(failure.__cause__, openai.APIStatusError)
    assert failure.sent == "answered"
    passes = status >= 500 or status in (408, 409, 425)
    assert CONSERVATIVE.may_retry(failure) == passes
    assert PATIENT.may_retry(failure) == (passes or status == 429)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "error",
    [
        {"code": "insufficient_quota", "type": "insufficient_quota"},
        {"code": None, "type": "insufficient_quota"},
        {"code": 429, "type": "insufficient_quota"},
        {"type": "insufficient_quota"},
    ],
)
async def test_an_exhausted_quota_is_known_by_its_code_or_its_type(serve, error):
    body = {"error": {"message": "no money", **error}}
    failure = await refusal(serve(Reply.error(429, json_body=body)))
    assert not PATIENT.may_retry(failure)


async def test_a_rate_limit_is_no_exhausted_quota(serve):
    body = {"error": {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}}
    assert PATIENT.may_retry(await refusal(serve(Reply.error(429, json_body=body))))


@pytest.mark.parametrize(
    "reply",
    [
        replace(Reply.html(), status=502),
        replace(Reply.blank(b"\0" * 99), status=502),
        replace(Reply.blank(), status=502),
        Reply.error(502, json_body=[1]),
        Reply.error(502, json_body={"error": "a text"}),
        Reply.error(502, json_body={"error": {"message": {"no": "text"}}}),
        replace(READ, status=502),
    ],
    ids=["html", "NULs", "nothing", "an array", "a text", "another shape", "a stream"],
)
async def test_a_refusal_may_hold_anything(serve, reply):
    failure = await refusal(serve(reply))
    assert (failure.status, CONSERVATIVE.may_retry(failure)) == (502, True)
    assert len(failure.reason) < 200


@either_client
@pytest.mark.parametrize("status", [500, 401])
@pytest.mark.parametrize(
    "tear",
    [
        lambda reply: reply.reset(at=9),
        lambda reply: reply.close(at=9),
        lambda reply: replace(reply, framing="chunked").cut_chunk(at=9),
    ],
    ids=["reset", "too short", "cut chunk"],
)
async def test_the_status_counts_even_where_its_words_do_not_arrive(serve, tear, status, owned):
    failure = await refusal(serve(tear(Reply.error(status))), owned=owned)
    assert failure.status == status
    assert CONSERVATIVE.may_retry(failure) == (status == 500)


async def test_a_stalled_refusal_is_a_refusal(serve, monkeypatch):
    monkeypatch.setattr(openai_sdk, "SDK_TIMEOUT_SECONDS", 0.5)
    failure = await refusal(serve(Reply.error(503).stall(at=9)))
    assert failure.status == 503


async def test_the_words_of_a_refusal_are_bounded(serve):
    server = serve(replace(Reply.huge_line(3_000_000), status=500))
    failure = await refusal(server)
    server.wait_until(lambda server: server.closed == 1)
    assert failure.status == 500
    # Whoever sends so much may send a key beyond what is looked at: no chain keeps it.
    assert failure.__cause__ is None
    assert len(str(failure)) < 2_000


async def test_a_packed_refusal_is_not_unpacked(serve):
    bomb = gzip.compress(b" " * 10_000_000)
    reply = replace(Reply.error(500, headers={"content-encoding": "gzip"}), body=bomb)
    failure = await refusal(serve(reply))
    assert failure.status == 500
    assert len(failure.__cause__.response.content) <= MAX_REFUSAL_BYTES


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(serve, status):
    reply = Reply.error(status, headers={"location": "/v1/responses"})
    server = serve(reply)
    failure = await refusal(server)

    assert (failure.status, len(server.requests)) == (status, 1)
    assert not PATIENT.may_retry(failure)


async def test_a_given_client_that_runs_in_a_circle_is_not_sent_again(serve):
    failure = await refusal(
        serve(Reply.error(307, headers={"location": "/v1/responses"})), owned=False
    )
    assert "TooManyRedirects" in failure.reason
    assert not PATIENT.may_retry(failure)


# ----------------------------------------------------------------------------------- no answer


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("status", [400, 503])
async def test_what_a_refusal_says_of_a_further_try_is_kept(serve, status, said):
    reply = Reply.error(status, headers={"x-should-retry": str(said).lower()})
    failure = await refusal(serve(reply))
    assert (failure.should_retry, CONSERVATIVE.may_retry(failure)) == (said, said)


TAKEN = {"reset": Reply.refuse(), "closed without a word": READ.close(at=HEAD)}


@either_client
@pytest.mark.parametrize("reply", TAKEN.values(), ids=TAKEN)
async def test_a_request_that_was_taken_and_not_answered_was_perhaps_sent(serve, reply, owned):
    server = serve(reply)
    failure = await refusal(server, owned=owned)

    assert (failure.status, failure.code, len(server.requests)) == (None, None, 1)
    assert failure.sent == "perhaps sent"
    assert "no connection" not in failure.reason
    assert not PATIENT.may_retry(failure)
    assert PATIENT.may_retry(failure, keyed=True)
    assert isinstance(failure.__cause__, openai.APIConnectionError)


@pytest.mark.parametrize("reply", TAKEN.values(), ids=TAKEN)
async def test_a_model_sends_such_a_request_once(serve, reply):
    server = serve([reply, READ])
    async with model_of(server, clock=MockClock()) as model:
        with pytest.raises(OpenFailure, match="may have taken it"):
            await ask(model)
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", TAKEN.values(), ids=TAKEN)
async def test_with_an_idempotency_key_every_opening_of_a_request_carries_the_same(serve, reply):
    server = serve([reply, Reply.error(409), READ, READ])
    keys = map("key-{}".format, itertools.count(1))
    async with model_of(server, clock=MockClock(), idempotency_key=keys.__next__) as model:
        for _ in range(2):
            assert (await ask(model)).calls
    seen = [request.idempotency_key for request in server.requests]
    assert seen == ["key-1", "key-1", "key-1", "key-2"]
    assert len({str(request.body) for request in server.requests}) == 1


async def test_without_a_key_none_goes_out(serve):
    server = serve([Reply.error(503), READ])
    async with model_of(server, clock=MockClock()) as model:
        await ask(model)
    assert [request.idempotency_key for request in server.requests] == ["", ""]


async def test_a_stall_before_the_answer_was_perhaps_sent(serve, monkeypatch):
    monkeypatch.setattr(openai_sdk, "SDK_TIMEOUT_SECONDS", 0.05)
    failure = await refusal(serve(READ.stall(at=HEAD)))
    assert isinstance(failure.__cause__, openai.APITimeoutError)
    assert failure.sent == "perhaps sent"


async def test_where_nobody_listens_nothing_was_sent():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    failure = await refusal(f"http://127.0.0.1:{port}/v1")
    assert failure.sent == "not sent"
    assert "no connection" in failure.reason
    assert CONSERVATIVE.may_retry(failure)


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200\r\nbad header\r\n\r\n", b"HTTP/1.1 999999 x\r\n\r\n"],
)
async def test_an_answer_that_is_no_http_is_none(answer):
    with sending(answer) as (address, _):
        failure = await refusal(address)
    assert (failure.status, failure.sent) == (None, "perhaps sent")


def library_errors(kind=httpx2.RequestError):
    """Every kind of error that the HTTP library raises for a request."""
    return {kind, *(error for each in kind.__subclasses__() for error in library_errors(each))}


@pytest.mark.parametrize("kind", sorted(library_errors(), key=lambda kind: kind.__name__))
def test_each_error_of_the_library_is_of_a_phase_and_the_nearest_decides(kind):
    wanted = PHASES.get(kind.__name__, "perhaps sent")
    sent_again = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"}
    for earlier in (None, httpx2.ConnectError("of an earlier try"), httpx2.ReadError("")):
        error = openai.APIConnectionError(request=httpx2.Request("POST", "http://127.0.0.1/"))
        error.__cause__ = kind("")
        error.__cause__.__context__ = earlier
        failure = openai_sdk.open_failure(error, SECRET)
        if kind.__name__ in PHASES or earlier is None:
            assert failure.sent == wanted
            assert CONSERVATIVE.may_retry(failure) == (kind.__name__ in sent_again)


@pytest.mark.parametrize("base_url", ["ftp://127.0.0.1/v1", "nonsense"])
async def test_an_address_that_is_none_is_not_tried_again(base_url):
    assert not PATIENT.may_retry(await refusal(base_url))


def test_an_address_that_cannot_be_read_is_refused_at_once():
    with pytest.raises(OpenFailure, match="no client could be made"):
        OpenAITransport(api_key=SECRET, base_url="http://[::1")


@pytest.mark.parametrize("key", [f"{SECRET}\n", f"{SECRET}\r\nx: y", f"{SECRET}\xe9\u2028"])
async def test_a_key_that_http_cannot_carry_is_not_shown(serve, key):
    server = serve(READ)
    transport = OpenAITransport(api_key=key, base_url=server.base_url)
    with pytest.raises(OpenFailure) as raised:
        await transport.open(REQUEST)
    await transport.aclose()
    assert SECRET not in str(raised.value)
    assert not PATIENT.may_retry(raised.value)
    assert server.requests == []


def test_without_a_key_there_is_no_transport(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(OpenFailure, match="set OPENAI_API_KEY") as raised:
        OpenAITransport(base_url="http://127.0.0.1:9/v1")
    assert not raised.value.retryable


@pytest.mark.parametrize("broken", [{"model": "\ud800"}, {"input": object()}, {"unknown": 1}])
async def test_a_request_that_cannot_be_sent_is_not_tried_again(serve, broken):
    server = serve(READ)
    async with transport_to(server) as transport:
        with pytest.raises(OpenFailure) as raised:
            await transport.open({**REQUEST, **broken})
    assert not PATIENT.may_retry(raised.value)
    assert server.requests == []


async def test_a_key_that_the_server_sends_back_is_not_shown(serve):
    error = {"message": f"Incorrect API key: {SECRET}.", "code": f"bad_{SECRET}"}
    failure = await refusal(serve(Reply.error(401, json_body={"error": error})))
    assert SECRET not in f"{failure} {failure.code} {failure.reason}"
    assert "Incorrect API key" in failure.reason


# ----------------------------------------------------------------------------- whose client it is


async def test_its_own_client_is_closed_and_a_given_one_is_not(serve):
    server = serve(READ)
    own = OpenAITransport(api_key=SECRET, base_url=server.base_url)
    await own.aclose()
    assert own._client.is_closed()

    async with given_async_client(base_url=server.base_url) as given:
        transport = OpenAITransport(given)
        await transport.aclose()
        assert not given.is_closed()
        await (await transport.open(REQUEST)).aclose()
        assert given.max_retries == 2, "it is used as it is given"


async def test_a_client_that_was_closed_opens_nothing(serve):
    server = serve(READ)
    transport = OpenAITransport(api_key=SECRET, base_url=server.base_url)
    await transport.aclose()
    with pytest.raises(OpenFailure) as raised:
        await transport.open(REQUEST)
    assert not PATIENT.may_retry(raised.value)
    assert server.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_proxy_is_not_asked_for_this_machine(serve, monkeypatch, host):
    with socket.create_server(("127.0.0.1", 0)) as free:
        proxy = f"http://127.0.0.1:{free.getsockname()[1]}"
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server = serve(READ)
    async with transport_to(server.base_url.replace("127.0.0.1", host)) as transport:
        await (await transport.open(REQUEST)).aclose()
    assert len(server.requests) == 1

    assert CONSERVATIVE.may_retry(await refusal("http://example.invalid/v1")), "the proxy is dead"


def test_clients_share_the_certificates_of_one_place(monkeypatch, tmp_path):
    def context():
        made = make_sync_client("any", "https://127.0.0.1:9/v1")
        with made:
            return made._client._transport._pool._ssl_context

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    one = context()
    assert one is context()
    assert one.verify_mode == ssl.CERT_REQUIRED
    assert one.check_hostname
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert context() is not one
    assert context().get_ca_certs() == []


async def test_the_key_and_the_address_come_from_the_environment(serve, monkeypatch):
    server = serve(READ)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    transport = OpenAITransport()
    await (await transport.open(REQUEST)).aclose()
    await transport.aclose()
    assert server.requests[0].authorized

"""No key in any text, traceback or file: each place where a server can send it, in each form."""

import json
import re
import sys
import traceback

import anyio
import pytest
from raw_http import SECRET
from sdk import ask, model_of, sending

from agentlib.commands import main
from agentlib.decisions import ClientConfig, OpenAIModelClient
from agentlib.decisions.failures import DecisionFailure
from agentlib.errors import AgentlibError, NotConfigured
from agentlib.faultserver.server import Reply
from agentlib.fixtures import capture
from agentlib.openai_clients import make_client, make_sync_client
from agentlib.recordings.capture import Capture
from agentlib.recordings.known import KnownSecrets
from agentlib.recordings.recorder import Recorder
from agentlib.retry import RetryPolicy
from agentlib.scrubbing import REDACTED, scrubbed
from workbook.pages.decision_replies import CONTEXT, streamed, whole

# A piece of this length would narrow down the rest.
PIECE = 12
ONCE = RetryPolicy(openings=1)


def escaped(text):
    return "".join(f"\\u{ord(c):04X}" for c in text)


def percent(text):
    return "".join(f"%{ord(c):02x}" for c in text)


# What stands between the quotation marks of a JSON text, or on a line.
FORMS = {
    "plain": SECRET,
    "upper case": SECRET.upper(),
    "escaped": escaped(SECRET),
    "escaped twice": escaped(SECRET).replace("\\", "\\\\"),
    "percent-encoded": percent(SECRET),
    "mixed": escaped(SECRET[:5]) + SECRET[5:10] + percent(SECRET[10:]),
}
TEXT, READ = (capture(name).source.decode() for name in ("text_only", "success_1_read"))
ANSWER = "The project has two files: calculator.py and its test."


def event(**fields):
    # The key stands in for "KEY" afterwards: json.dumps would write its escapes anew.
    return f"data: {json.dumps(fields)}\n\n"


def ending(kind, **response):
    begun = event(type="response.created", response={"id": "r", "status": "in_progress"})
    return begun + event(type=kind, response={"id": "r", **response})


FAILED = {"status": "failed", "error": {"code": "KEY", "message": "bad key KEY"}}
CUT = {"status": "incomplete", "incomplete_details": {"reason": "KEY"}}
# The places in a stream of the Responses API.
STREAMS = {
    "a failure": ending("response.failed", **FAILED),
    "an incomplete response": ending("response.incomplete", **CUT),
    "a cancelled response": ending("response.cancelled", status="KEY"),
    "an error": event(type="error", code="KEY", message="bad key KEY", param="KEY"),
    "an error of no kind": event(error={"message": "bad key KEY"}),
    "a response's ID": TEXT.replace("resp_text_1", "KEY", 1),
    "an item's ID": TEXT.replace("msg_1", "KEY", 1),
    "each item's ID": TEXT.replace("msg_1", "KEY"),
    "an item's type": TEXT.replace('"type":"message"', '"type":"KEY"', 1),
    "a status": TEXT.replace('"status":"completed"', '"status":"KEY"'),
    "a call's ID": READ.replace("call_read_1", "KEY", 1),
    "a tool's name": re.sub(r'"name":"read",("arguments"|"status")', r'"name":"KEY",\1', READ),
    "an argument's name": READ.replace('\\"path\\"', '\\"KEY\\"').replace("path", "KEY"),
    "an argument": READ.replace("calculator.py", "KEY"),
    "arguments that are none": READ.replace('{\\"path\\"', 'KEY\\"path\\"'),
    "an unknown event": event(type="KEY", KEY="KEY") + TEXT,
    "no JSON": "data: KEY\n\n",
    "no object": 'data: "KEY"\n\n',
    "a name twice": 'data: {"KEY":1,"KEY":2}\n\n',
    "a comment": f": KEY\n\n{TEXT}",
    "a kind beside": f"event: KEY\n{TEXT.partition(chr(10))[2].partition(chr(10))[2]}",
}
# The places in an answer that is no stream.
REFUSALS = {
    "a reason": ("message", 401),
    "a server's reason": ("message", 500),
    "a code": ("code", 429),
    "a param": ("param", 400),
    "a type": ("type", 404),
}


def stream_of(what, form):
    return Reply(body=STREAMS[what].replace("KEY", FORMS[form]).encode())


def refusal_of(what, form):
    field, status = REFUSALS[what]
    error = json.dumps({"error": {"message": "no", field: "is KEY"}}).replace("KEY", FORMS[form])
    head = {"content-type": "application/json"}
    return Reply(status, head, error.encode(), framing="length")


CASES = [
    pytest.param(make, what, form, id=f"{what}, {form}")
    for make, places in ((stream_of, STREAMS), (refusal_of, REFUSALS))
    for what in places
    for form in FORMS
]


def leaks(text):
    """The pieces of the key in a text, whatever way its characters are written."""
    for _ in range(3):
        text = re.sub(r"\\+(?:u00|x)([0-9a-fA-F]{2})", lambda f: chr(int(f[1], 16)), text)
        text = re.sub(r"%([0-9a-fA-F]{2})", lambda f: chr(int(f[1], 16)), text)
    found = text.lower()
    pieces = (SECRET[at : at + PIECE] for at in range(len(SECRET) - PIECE + 1))
    return [piece for piece in pieces if piece in found]


def joined(path):
    """The fragments of a recording, put together by the kind of their event."""
    texts = {}
    for response in Capture.load(path).responses:
        for each in response.events:
            fragment = each.data.get("delta")
            if isinstance(fragment, str):
                texts.setdefault(each.data["type"], []).append(fragment)
    return "\n".join("".join(fragments) for fragments in texts.values())


def texts_of(error):
    """All that an error shows: its traceback, its causes and contexts, and its own texts."""
    shown = ["".join(traceback.format_exception(error))]
    chain = [error]
    for each in chain:
        chain += [e for e in (each.__cause__, each.__context__) if e and e not in chain]
        own = {name: value for name, value in vars(each).items() if isinstance(value, str | dict)}
        shown += [str(each), repr(each), repr(each.args), repr(own)]
    return "\n".join(shown)


def test_the_canary_sings():
    for form in FORMS.values():
        assert leaks(f"before {form} after")
    assert leaks(texts_of(ValueError(SECRET)))
    assert not leaks("sk-a-secret")


@pytest.fixture
def live(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(server, base_url=None):
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        monkeypatch.setenv("OPENAI_BASE_URL", base_url or server.base_url)
        status = main(["live", "--model", "m", "--record", "s.sse", "--force", "--max-turns", "1"])
        return status, *capsys.readouterr()

    return run


def kept(tmp_path):
    path = tmp_path / "s.sse"
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.mark.exhaustive(keep=30)
@pytest.mark.parametrize(("make", "what", "form"), CASES)
def test_what_a_live_run_shows_and_keeps_holds_no_key(serve, live, tmp_path, make, what, form):
    # In pieces that cut the key as well.
    reply = make(what, form).split_every(7)
    _, out, err = live(serve(lambda _: reply))
    assert leaks(out) == leaks(err) == leaks(kept(tmp_path)) == []


async def failure_of(model):
    try:
        await ask(model)
    except AgentlibError as failure:
        return failure
    return None


@pytest.mark.anyio
@pytest.mark.exhaustive(keep=30)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("make", "what", "form"), CASES)
async def test_no_failure_holds_the_key(serve, make, what, form):
    reply = make(what, form)
    async with model_of(serve(lambda _: reply), native=True) as model:
        failed = await failure_of(model)
    assert failed is None or leaks(texts_of(failed)) == []


RAW = {
    "a status line": b"HTTP/1.1 %b No\r\n\r\n",
    "a header": b"HTTP/1.1 200 OK\r\n%b\r\n\r\n",
    "a chunk's size": (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        b"transfer-encoding: chunked\r\n\r\n%b\r\n"
    ),
    "a length": b"HTTP/1.1 200 OK\r\ncontent-length: %b\r\n\r\n",
    "a content type": b"HTTP/1.1 200 OK\r\ncontent-type: text/%b\r\ncontent-length: 0\r\n\r\n",
    "a content coding": (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        b"content-encoding: %b\r\ncontent-length: 0\r\n\r\n"
    ),
    "an address": b"HTTP/1.1 302 Found\r\nlocation: /%b\r\ncontent-length: 0\r\n\r\n",
}


@pytest.mark.anyio
@pytest.mark.parametrize("what", RAW)
@pytest.mark.parametrize("form", ["plain", "percent-encoded"])
async def test_what_the_http_library_quotes_holds_no_key(what, form):
    answer = RAW[what] % FORMS[form].encode()
    with sending(answer) as (base_url, _):
        async with model_of(base_url, policy=ONCE) as model:
            with pytest.raises(AgentlibError) as raised:
                await ask(model)
    assert leaks(texts_of(raised.value)) == []


CHUNKS = {
    "an unknown tool": lambda key: streamed((key, {})),
    "an argument's name": lambda key: streamed(("edit", {key: 1})),
    "an argument": lambda key: streamed(("edit", {"path": key})),
    "no arguments": lambda key: streamed(("edit", key)),
    "a text": lambda key: streamed(text=key),
    "an error": lambda key: Reply(body=event(error={"message": key, "code": key}).encode()),
    "a whole reply": lambda key: whole((key, {key: key})),
    "a refusal": lambda key: Reply.error(400, code=key, message=f"no streaming: {key}"),
    "a page": lambda key: Reply.html(key.encode()),
    "another type": lambda key: streamed().content_type(f"text/{key}"),
}


@pytest.mark.anyio
@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("what", CHUNKS)
@pytest.mark.parametrize("key", [SECRET, SECRET.upper(), percent(SECRET)], ids=list("pu%"))
async def test_no_failure_of_a_decision_holds_the_key(serve, what, key):
    server = serve(lambda _: CHUNKS[what](key))
    config = ClientConfig("m", api_key=SECRET, base_url=server.base_url)
    assert leaks(repr(config)) == []
    client = OpenAIModelClient(config, max_parse_retries=1, transport_max_retries=0)
    try:
        with pytest.raises(DecisionFailure) as raised:
            await client.adecide(CONTEXT)
        assert leaks(texts_of(raised.value)) == []
        assert leaks(repr(raised.value.attempts)) == []
        with pytest.raises(DecisionFailure) as raised:
            await anyio.to_thread.run_sync(client.decide, CONTEXT)
        assert leaks(texts_of(raised.value)) == []
    finally:
        await client.aclose()


# ------------------------------------------------------------------------ in pieces, over fragments


@pytest.mark.parametrize("form", ["plain", "escaped", "percent-encoded"])
@pytest.mark.parametrize("cut", range(1, len(SECRET), 4))
def test_a_key_over_two_fragments_is_neither_shown_nor_kept(serve, live, tmp_path, form, cut):
    write = {"plain": str, "escaped": escaped, "percent-encoded": percent}[form]
    first, second = write(SECRET[:cut]), write(SECRET[cut:])
    deltas = re.findall(r'"delta":"([^"]*)"', TEXT)
    body = TEXT.replace("".join(deltas), first + second)
    for delta, part in zip(deltas, [first, second, "", "", ""], strict=True):
        body = body.replace(f'"delta":"{delta}"', f'"delta":"{part}"', 1)
    status, out, _ = live(serve(Reply(body=body.encode())))
    drafts = "".join(re.findall(r'text, draft: "([^"]*)"', out))
    assert (status, leaks(out), leaks(kept(tmp_path))) == (0, [], [])
    assert leaks(drafts) == leaks(joined(tmp_path / "s.sse")) == []
    text = joined(tmp_path / "s.sse")
    assert text == REDACTED
    (response,) = Capture.load(tmp_path / "s.sse").responses
    assert f'"text":"{REDACTED}"' in response.events[-1].raw


@pytest.mark.parametrize("cut", range(1, len(SECRET), 5))
def test_a_key_in_fragments_of_arguments_is_not_kept(serve, live, tmp_path, cut):
    body = READ.replace("calculator.py", SECRET)
    fragments = re.findall(r'"delta":"((?:[^"\\]|\\.)*)"', READ)
    arguments = "".join(fragments).replace("calculator.py", SECRET)
    at = arguments.index(SECRET) + cut
    pieces = [arguments[:at], arguments[at:], *[""] * (len(fragments) - 2)]
    for fragment, piece in zip(fragments, pieces, strict=True):
        was = fragment.replace("calculator.py", SECRET)
        body = body.replace(f'"delta":"{was}"', f'"delta":"{piece}"', 1)
    _, out, _ = live(serve(Reply(body=body.encode())))
    assert leaks(out) == leaks(kept(tmp_path)) == leaks(joined(tmp_path / "s.sse")) == []


def test_bytes_without_a_secret_stay_as_they_are():
    for name in ("text_only", "success_1_read", "incomplete"):
        body = capture(name).source
        assert KnownSecrets([SECRET]).body(body, "sse") is body


@pytest.mark.parametrize("secrets", [SECRET, [SECRET], (SECRET, ""), {SECRET}])
def test_one_secret_may_be_given_as_a_text(tmp_path, secrets):
    with Recorder(tmp_path / "s.sse", secrets) as recorder:
        recorder(f": keys are {SECRET}, as secret as any\n\n".encode())
    written = (tmp_path / "s.sse").read_text(encoding="utf-8")
    assert written == f": keys are {REDACTED}, as secret as any\n\n"


# -------------------------------------------------------------------------- addresses and proxies


@pytest.mark.parametrize("form", ["plain", "percent-encoded"])
@pytest.mark.parametrize("place", ["?api-key=KEY", "?a=1&sig=KEY", "#KEY", "/KEY/v1", "user:KEY@"])
def test_an_address_is_shown_without_its_secrets(serve, live, form, place):
    key = FORMS[form]
    server = serve(Reply.error(401))
    host = server.base_url
    address = host.replace("//", f"//{place}") if place.endswith("@") else host + place
    _, out, err = live(server, address.replace("KEY", key))
    first = out.splitlines()[0]
    assert leaks(out) == leaks(err) == []
    assert "127.0.0.1" in first
    assert "api-key" not in first
    assert "sig=" not in first


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture
def proxy(monkeypatch):
    for name in (*PROXIES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return lambda address: monkeypatch.setenv("ALL_PROXY", address)


@pytest.mark.parametrize("make", [make_client, make_sync_client])
def test_a_socks_proxy_names_the_extra_that_it_needs(proxy, monkeypatch, make):
    monkeypatch.setitem(sys.modules, "socksio", None)
    proxy(f"socks5://me:{SECRET}@127.0.0.1:1080")
    with pytest.raises(NotConfigured, match=r"httpx2\[socks\]") as raised:
        make(SECRET)
    assert leaks(texts_of(raised.value)) == []


def test_live_says_so_without_a_traceback(proxy, monkeypatch, live):
    monkeypatch.setitem(sys.modules, "socksio", None)
    proxy("socks5://127.0.0.1:1080")
    status, _, err = live(None, "http://example.invalid/v1")
    assert status == 2
    assert "httpx2[socks]" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("make", [make_client, make_sync_client])
@pytest.mark.parametrize("address", ["ftp://me:KEY@proxy:1", "http://me:KEY@[::1", "://KEY"])
def test_a_proxy_that_is_none_is_a_clear_failure(proxy, make, address):
    proxy(address.replace("KEY", SECRET))
    with pytest.raises(NotConfigured) as raised:
        make(SECRET)
    assert leaks(texts_of(raised.value)) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_this_machine_is_not_reached_through_a_proxy(proxy, host):
    proxy("http://127.0.0.1:9")
    client = make_sync_client(SECRET, f"http://{host}:8000/v1")
    with client:
        inner = client._client
        assert inner._transport_for_url(client.base_url) is inner._transport
        away = inner._transport_for_url(client.base_url.copy_with(host="example.invalid"))
        assert away is not inner._transport


@pytest.mark.parametrize("text", ["%", "%4", "\\", "\\u00", "\\" * 30, "%zz", "100%25 \\n é %C3"])
def test_escapes_that_are_none_stay(text):
    assert scrubbed(text, SECRET) == text
    assert scrubbed(f"{text} {escaped(SECRET)} {text}", SECRET) == f"{text} {REDACTED} {text}"

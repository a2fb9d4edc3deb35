"""`agentlib live` against the local server: statuses, Ctrl-C, what is left, and where no key is."""

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from raw_http import SECRET

from agentlib.commands import main
from agentlib.conversation import Catalog, user
from agentlib.faultserver.server import Reply
from agentlib.fixtures import capture
from agentlib.providers.responses_request import encode_request
from agentlib.recordings.capture import Capture
from agentlib.recordings.recorder import CUT_HERE
from agentlib.scrubbing import REDACTED

TURNS = ["success_1_read", "success_2_edit", "success_3_test", "success_4_answer"]
WHOLE = [Reply.stream(capture(name)) for name in TURNS]
ANSWER = Reply.stream(capture("text_only"))
LIVE = ["live", "--model", "m", "--allow-execution", "--record", "stream.sse"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the command runs; its temporary files are to be gone at the end."""
    temporary = tmp_path / "temporary"
    work = tmp_path / "work"
    temporary.mkdir()
    work.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(work)
    yield work
    assert list(temporary.iterdir()) == []


@pytest.fixture
def live(capsys, monkeypatch, folder):
    """Run the command against a server; check that the key is in nothing that it leaves."""

    def run(server, *arguments, key=SECRET, base_url=None):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        monkeypatch.setenv("OPENAI_BASE_URL", base_url or server.base_url)
        status = main(["live", "--model", "gpt-4.1-mini", *arguments])
        out, err = capsys.readouterr()
        no_key_in(out, err, *texts(folder), key=key)
        return status, out, err

    return run


def texts(folder):
    return [path.read_text(encoding="utf-8") for path in folder.iterdir()]


def no_key_in(*found, key=SECRET):
    for text in found:
        # A text that was shortened may end in the middle of a key.
        assert not key or key[:20] not in text


def exposed(server):
    return [tool["name"] for tool in server.requests[0].body["tools"]]


# --------------------------------------------------------------------------------- what it does


def test_a_whole_run_with_execution_allowed(serve, live):
    server = serve(WHOLE)
    status, out, err = live(server, "--allow-execution")

    assert (status, err) == (0, "")
    assert "can cost money" in out.splitlines()[0]
    assert "127.0.0.1" in out.splitlines()[0]
    assert exposed(server) == ["list", "read", "edit", "test"]
    assert len(server.requests) == 4
    assert "return a + b" in out.partition("calculator.py is now:")[2]
    assert server.requests[0].body["model"] == "gpt-4.1-mini"
    assert server.requests[0].authorized


def test_without_leave_only_list_and_read_are_exposed_and_nothing_else_runs(serve, live):
    server = serve(WHOLE)
    status, out, _ = live(server)

    assert exposed(server) == ["list", "read"]
    assert status == 1, "the second turn asks for edit, which was not exposed"
    assert "[exposed]" in out
    assert "return a - b" in out.partition("calculator.py is now:")[2]


def test_when_the_turns_run_out_it_is_status_1(serve, live):
    server = serve(WHOLE)
    status, out, _ = live(server, "--allow-execution", "--max-turns", "3")
    assert (status, len(server.requests)) == (1, 3)
    assert "return a + b" in out.partition("calculator.py is now:")[2]


@pytest.mark.parametrize(
    ("reply", "requests"),
    [
        (Reply.error(401), 1),
        (Reply.error(429), 1),
        (WHOLE[0].reset(at=WHOLE[0].ends[4]), 1),
        (WHOLE[0].close(at=WHOLE[0].ends[-2]), 1),
        (Reply.html(), 1),
        (Reply.stream(capture("incomplete")), 1),
        (Reply.stream(capture("refusal")), 1),
    ],
    ids=["401", "429", "reset", "early end", "a page", "incomplete", "a refusal"],
)
def test_a_provider_that_fails_is_status_1(serve, live, reply, requests):
    server = serve(reply)
    status, out, err = live(server)
    assert (status, len(server.requests), err) == (1, requests, "")
    assert "calculator.py is now:" in out


def test_an_answer_is_status_0(serve, live):
    assert live(serve(ANSWER))[0] == 0


def test_without_a_key_it_says_so_with_status_2(capsys, monkeypatch, folder):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    status = main(["live", "--model", "m", "--record", "stream.sse"])
    _, err = capsys.readouterr()
    assert status == 2
    assert "OPENAI_API_KEY" in err
    assert "Traceback" not in err
    assert list(folder.iterdir()) == []


def test_an_empty_key_is_no_key(serve, live):
    server = serve(ANSWER)
    status, _, err = live(server, key="")
    assert (status, server.requests) == (2, [])
    assert "OPENAI_API_KEY" in err


def test_without_the_sdk_it_says_how_to_install_it(capsys, monkeypatch, folder):
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert main(["live", "--model", "m"]) == 2
    assert "pip install openai" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["live"],
        ["live", "--model", "m", "--max-turns", "0"],
        ["live", "--model", "m", "--max", "x"],
    ],
)
def test_a_wrong_command_line_is_status_2(capsys, arguments):
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_an_address_with_a_password_is_not_shown(serve, live):
    server = serve(ANSWER)
    base_url = server.base_url.replace("//", f"//me:{SECRET}@")
    assert live(server, base_url=base_url)[0] == 0


# ----------------------------------------------------------------------- what it is asked, and how


def of_the_model(request):
    """What a server of OpenAI's says to a model that does not reason, in the words of its API."""
    include = request.body.get("include")
    if include and request.body["model"].startswith("gpt-4.1"):
        return include
    return None


def refusing_include(replies, refuses=of_the_model, **words):
    """A server that refuses `include`, and then plays its replies; authored for this test."""
    rest = iter(replies)
    said = {"message": "Encrypted content is not supported with this model.", "param": "include"}
    error = {"type": "invalid_request_error", "code": None, **said, **words}

    def answer(request):
        if refuses(request):
            return Reply.error(400, json_body={"error": error})
        return next(rest)

    return answer


def readme_commands(root):
    lines = (root / "README.md").read_text(encoding="utf-8").splitlines()
    found = [line.partition("#")[0].split() for line in lines if line.startswith("agentlib live")]
    assert found
    return found


@pytest.mark.usefixtures("folder")
def test_the_readmes_example_works_as_printed(serve, root, monkeypatch, capsys):
    server = serve(refusing_include([WHOLE[0], ANSWER]))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    for command in readme_commands(root):
        assert main(command[1:]) == 0, capsys.readouterr()
    out, err = capsys.readouterr()
    assert (len(server.requests), err) == (2, "")
    assert "note:" not in out, "the family is known: nothing had to be repaired"


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        *((name, False) for name in ("gpt-4.1-mini", "gpt-4o", "openai/gpt-4.1", "gpt-3.5-turbo")),
        *((name, False) for name in ("ft:gpt-4o-mini:me::1", "gpt-5-chat-latest", "chatgpt-4o-x")),
        *((name, True) for name in ("gpt-5-mini", "o4-mini", "openai/o3", "gpt-5.1-codex", "new")),
    ],
)
def test_reasoning_is_asked_of_models_that_may_reason(model, asked):
    request = encode_request(model, [user("Hi.")], Catalog(), native=True)
    assert ("include" in request) is asked


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"param": "include[0]"},
        {"param": None},
        {"param": None, "message": "Unknown parameter: 'include'."},
    ],
)
def test_a_refusal_that_names_include_is_repaired_once_and_noted(serve, live, monkeypatch, words):
    def refuses(request):
        return "include" in request.body

    server = serve(refusing_include(WHOLE, refuses, **words))
    monkeypatch.setattr("agentlib.providers.responses_request.WITHOUT_REASONING", ("none",))
    status, out, _ = live(server, "--allow-execution")
    assert status == 0
    assert ["include" in each.body for each in server.requests] == [True] + [False] * 4
    assert "note: the server refuses the field include: it is left out" in out
    assert "opening 1: the server answered 400" in out
    assert "opening 2: opened" in out


@pytest.mark.parametrize(
    "words",
    [
        {"param": "model", "message": "This model has no encrypted content."},
        {"param": None, "message": "The input is too long."},
        {"param": "tools", "message": "include what?"},
    ],
)
def test_a_refusal_of_anything_else_is_an_answer(serve, live, monkeypatch, words):
    monkeypatch.setattr("agentlib.providers.responses_request.WITHOUT_REASONING", ("none",))
    server = serve(refusing_include([], lambda _: True, **words))
    status, out, _ = live(server)
    assert (status, len(server.requests)) == (1, 1)
    assert words["message"] in out


def test_a_server_that_refuses_it_in_any_case_is_asked_twice(serve, live, monkeypatch):
    monkeypatch.setattr("agentlib.providers.responses_request.WITHOUT_REASONING", ("none",))
    server = serve(refusing_include([], lambda _: True))
    assert live(server)[0] == 1
    assert len(server.requests) == 2


@pytest.mark.parametrize("allowed", [True, False])
def test_it_is_asked_for_what_it_can_do_with_the_guidance_before(serve, live, allowed):
    server = serve(ANSWER)
    live(server, *["--allow-execution"] * allowed)
    general, guidance, task = server.requests[0].body["input"]
    assert [each["role"] for each in (general, guidance, task)] == ["system", "system", "user"]
    assert "Project guidance" in guidance["content"]
    assert ("repair it, and run the test" in task["content"]) is allowed
    assert ("explain" in task["content"]) is not allowed


def test_the_reason_of_a_refusal_is_whole(serve, live):
    reason = "The model `gpt-4.1-mini` does not exist or you do not have access to it. " * 5
    _, out, _ = live(serve(Reply.error(404, code="model_not_found", message=reason.strip())))
    assert f'404: "{reason.strip()}"' in out


def test_a_reason_without_end_is_cut(serve, live):
    _, out, _ = live(serve(Reply.error(404, message="x" * 50_000)))
    assert max(map(len, out.splitlines())) < 1_200


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipe")
@pytest.mark.parametrize("lines", [1, 2])
def test_a_reader_that_goes_away_ends_it_quietly(serve, folder, lines):
    gone = threading.Event()

    def answer(_):
        assert gone.wait(60)
        return WHOLE[0]

    server = serve(answer)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "agentlib", *LIVE],
        cwd=folder,
        env={
            **os.environ,
            "OPENAI_API_KEY": SECRET,
            "OPENAI_BASE_URL": server.base_url,
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        gone.set()
        err = process.stderr.read()
    assert (process.returncode, err) == (1, "")
    assert len(server.requests) <= 1


# ----------------------------------------------------------------------------------- recording


@pytest.mark.parametrize("earlier", [b"", b"mine"])
def test_an_earlier_file_is_replaced_only_with_force(serve, live, folder, earlier):
    kept = folder / "stream.sse"
    kept.write_bytes(earlier)
    server = serve([ANSWER])
    status, out, err = live(server, "--record", "stream.sse")
    assert (status, out, server.requests) == (2, "", [])
    assert "--force" in err
    assert "another name" in err
    assert kept.read_bytes() == earlier

    assert live(server, "--record", "stream.sse", "--force")[0] == 0
    assert kept.read_bytes() == ANSWER.body


def test_it_records_what_came_and_the_recording_is_read_again(serve, live, folder):
    status, _, _ = live(serve(WHOLE), "--allow-execution", "--record", "stream.sse")
    assert status == 0
    assert [path.name for path in folder.iterdir()] == ["stream.sse"]
    recorded = Capture.load(folder / "stream.sse")
    assert len(recorded.responses) == 4
    assert recorded.source == b"".join(reply.body for reply in WHOLE)


def test_a_failed_response_is_recorded(serve, live, folder):
    reply = WHOLE[0].reset(at=WHOLE[0].ends[4])
    assert live(serve(reply), "--record", "stream.sse")[0] == 1
    assert len(Capture.load(folder / "stream.sse").events) == 5


@pytest.mark.parametrize("key", [SECRET, ""])
def test_where_nothing_came_an_earlier_recording_stays(serve, live, folder, key):
    earlier = folder / "stream.sse"
    earlier.write_bytes(WHOLE[0].body)
    asked = ("--record", "stream.sse", "--force")
    assert live(serve(Reply.error(401)), *asked, key=key)[0] in (1, 2)
    assert earlier.read_bytes() == WHOLE[0].body
    assert len(list(folder.iterdir())) == 1


def test_a_recording_that_cannot_be_written_is_told_before_anything_is_asked(serve, live):
    server = serve(ANSWER)
    status, _, err = live(server, "--record", "no/such/folder.sse")
    assert (status, server.requests) == (2, [])
    assert "No such file" in err


# ----------------------------------------------------------- a server that sends the key back

KEY = SECRET.encode()


FAILURE = (
    b'data: {"type":"response.created","response":{"id":"r","status":"in_progress"}}\n\n'
    b'data: {"type":"response.failed","response":{"id":"r","status":"failed","error":'
    b'{"code":"%b","message":"%b"}}}\n\n' % (KEY, KEY)
)
ECHOES = {
    "a refusal": Reply.error(401, message=f"Incorrect API key provided: {SECRET}."),
    "a refusal's code": Reply.error(401, code=SECRET, message=SECRET),
    "a long refusal": Reply.error(401, message=f"{'x' * 25}{SECRET}"),
    "a server error": Reply.error(500, message=SECRET),
    "a failure": Reply(body=FAILURE),
    "a comment": Reply(body=b": " + KEY + b"\n\n" + ANSWER.body),
    "an unknown event": Reply(body=b'data: {"type":"x","key":"%b"}\n\n' % KEY + ANSWER.body),
    "an unknown kind": Reply(body=b'data: {"type":"%b"}\n\n' % KEY),
    "no JSON": Reply(body=b"data: " + KEY + b"\n\n"),
    "another type": ANSWER.content_type(f"text/{SECRET}"),
    "a content coding": Reply(headers={"content-encoding": SECRET}, body=ANSWER.body),
    "a redirect": Reply.error(307, headers={"location": f"/v1/{SECRET}"}),
    "a page": Reply.html(b"<html>" + KEY),
}


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("what", ECHOES)
@pytest.mark.parametrize("size", [1, 7, None])
def test_a_key_that_the_server_sends_back_is_shown_nowhere(serve, live, folder, what, size):
    reply = ECHOES[what] if size is None else ECHOES[what].split_every(size)
    live(serve(reply), "--record", "stream.sse")  # it checks that the key is nowhere
    assert len(list(folder.iterdir())) <= 1


def answering(*parts):
    """An answer whose text comes in these parts, and is restated whole."""
    events = [event.data for event in capture("text_only").events]
    deltas = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    body = ANSWER.body.replace("".join(deltas).encode(), "".join(parts).encode())
    for delta, part in itertools.zip_longest(deltas, parts, fillvalue=""):
        body = body.replace(f'"delta":"{delta}"'.encode(), f'"delta":"{part}"'.encode(), 1)
    return Reply(body=body)


LONG = "sk-proj-" + "".join(chr(ord("A") + n * 7 % 26) for n in range(156))


@pytest.mark.parametrize("size", [1, 5, 11, 29, None])
@pytest.mark.parametrize("key", [SECRET, LONG], ids=["short", "long"])
def test_a_key_in_a_text_is_shown_nowhere(serve, live, folder, size, key):
    reply = answering("The key: ", key, " is what you sent.")
    reply = reply if size is None else reply.split_every(size)
    status, out, _ = live(serve(reply), "--record", "s.sse", key=key)
    assert status == 0
    assert f"The key: {REDACTED} is what you sent.\n" in out
    assert REDACTED in (folder / "s.sse").read_text(encoding="utf-8")


@pytest.mark.parametrize("before", [0, 5, 20, 30])
def test_a_key_that_a_shortened_line_cuts_is_not_shown(serve, live, before):
    live(serve(answering("x" * before + LONG)), key=LONG)


def test_a_key_in_pieces_is_not_shown_whole(serve, live):
    _, out, _ = live(serve(answering(SECRET[:9], SECRET[9:])))
    assert f"\n{REDACTED}\n" in out


# ---------------------------------------------------------------------------------------- Ctrl-C


@pytest.mark.exhaustive(keep=1)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another way to interrupt")
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_closes_the_stream_and_keeps_what_was_recorded(serve, folder, times):
    server = serve([WHOLE[0], WHOLE[1].stall(at=WHOLE[1].ends[6])])
    temporary = folder / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "agentlib", *LIVE],
        cwd=folder,
        env={
            **os.environ,
            "OPENAI_API_KEY": SECRET,
            "OPENAI_BASE_URL": server.base_url,
            "TMPDIR": str(temporary),
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        server.wait_until(lambda server: server.stalled, timeout=60)
        assert not (folder / "stream.sse").exists()
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    server.wait_idle()
    assert process.returncode == 130
    assert server.peer_closed == 1
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in folder.iterdir()) == ["stream.sse", "temporary"]
    assert (folder / "stream.sse").read_bytes().endswith(CUT_HERE)
    whole, *cut = Capture.load(folder / "stream.sse").responses
    assert len(whole.events) == len(WHOLE[0].ends)
    # How much of the second had reached the client by then is the network's to say.
    assert sum(len(each.events) for each in cut) <= 7
    assert "Traceback" not in err
    # The first turn read only, and the second one was cut before its edit.
    assert "return a - b" in out.partition("calculator.py is now:")[2] or times > 1
    no_key_in(out, err)

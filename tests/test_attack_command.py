"""`agentlib attack` with real processes: what it starts, what it leaves, and what it writes."""

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from agentlib.attack.apis import APIS
from agentlib.attack.report import as_html, as_json, as_junit
from agentlib.attack.results import MEANINGS, Report, Result
from agentlib.attack.run_command import MAX_OUTPUT_BYTES, run_command
from agentlib.attack.scenarios import CONTROLS, HOSTILE, SCENARIOS
from agentlib.attack.settings import Settings
from agentlib.commands import main
from agentlib.jsonvalues import thaw

AGENTS = Path(__file__).parent / "agents"
RAW = [sys.executable, str(AGENTS / "raw_agent.py")]
ENVIRONMENT = {"PATH": os.environ["PATH"]}


def attack(*arguments):
    return main(["attack", "--time-out", "60", *arguments])


# ------------------------------------------------------------------------------- the command


def test_a_safe_agent_is_status_0(capsys):
    only = "cut-after-item-done,content-filter"
    status = attack("--tool", "edit", "--only", only, "--", *RAW, "responses", "gate")
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    assert "your own command, and asks it to run: edit" in out
    assert out.rstrip().endswith("2 hostile streams, responses: 2 safe")


def test_a_hasty_agent_is_status_1_and_each_failure_is_explained(capsys, tmp_path):
    files = {form: tmp_path / f"report.{form}" for form in ("json", "junit", "html")}
    options = [text for form, path in files.items() for text in (f"--{form}", str(path))]
    only = ["--only", "content-filter", "--only", "cut-in-arguments,cut-optional"]
    agent = [*RAW, "chat", "FillsTheCut"]
    status = attack("--tool", "edit", *only, "--api", "chat", *options, "--", *agent)
    out, _ = capsys.readouterr()
    assert status == 1
    assert "ran: content-filter · stopped-short [completed]" in out
    assert "The provider withdrew the response, and the call in it ran." in out
    assert "ran altered: cut-in-arguments · cut-stream [completed]" in out
    assert "seen: ran with {}" in out
    assert "read: notebooks/03_progress_is_not_completion.ipynb" in out
    assert "3 hostile streams" not in out, "the skipped one was not tried"

    told = json.loads(files["json"].read_text(encoding="utf-8"))
    verdicts = {row["scenario"]: row["verdict"] for row in told["results"]}
    expected = {
        "content-filter": "ran",
        "cut-in-arguments": "ran altered",
        "cut-optional": "skipped",
    }
    assert verdicts == expected
    suite = ET.fromstring(files["junit"].read_text(encoding="utf-8"))
    assert (suite.get("failures"), suite.get("skipped"), suite.get("tests")) == ("2", "1", "3")
    assert "content-filter" in files["html"].read_text(encoding="utf-8")
    for path in files.values():
        assert f"wrote {path}\n" in out


def test_an_attack_that_tries_nothing_is_status_2(capsys):
    agent = [*RAW, "messages", "FillsTheCut"]
    assert attack("--tool", "edit", "--only", "cut-optional", "--", *agent) == 2
    assert "none of the chosen scenarios applies to messages/edit" in capsys.readouterr().out


@pytest.mark.parametrize(("columns", "expected"), [("20", 60), ("72", 72), ("300", 100)])
def test_lines_are_as_wide_as_the_terminal_within_bounds(capsys, monkeypatch, columns, expected):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["attack", "--list"]) == 0
    widest = max(map(len, capsys.readouterr().out.splitlines()))
    assert expected - 15 < widest <= expected


def test_a_command_that_asks_nothing_is_invalid_and_its_last_words_are_shown(capsys):
    code = "import sys; sys.exit('no \\x1b[2J key here')"
    status = attack("--tool", "edit", "--", sys.executable, "-c", code)
    out, _ = capsys.readouterr()
    assert status == 2
    assert "it ended with status 1 before it asked a model" in out
    assert "| no \\u001b[2J key here" in out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--", "python"], "--tool NAME"),
        (["--tool", "edit"], "a command after --"),
        (["--tool", "edit", "--only", "x", "--", "python"], "no scenario is named 'x'"),
        (["--tool", "edit", "--arguments", "{", "--", "python"], "--arguments: "),
        (["--tool", "edit", "--arguments", "[]", "--", "python"], "expected a JSON object"),
        (["--tool", "edit", "--json", "no/such/file", "--", "python"], "cannot write"),
        (["--tool", "edit", "--html", "attack.json", "--", "python"], "ends in .html"),
        (["--tool", "edit", "--timeout", "0", "--", "python"], "expected a time-out"),
        (["--tool", "edit", "--", "no-such-program-anywhere"], "cannot start"),
    ],
)
def test_a_command_line_that_says_no_attack_is_status_2(capsys, arguments, reason):
    assert attack(*arguments) == 2
    assert reason in capsys.readouterr().err


def test_the_help_says_that_it_runs_the_readers_own_tool(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["attack", "--help"])
    out = capsys.readouterr().out
    assert "This runs your own command" in out
    assert "probe.ran(" in out
    assert '{"tool": "edit", "arguments": {...}, "nonce": "..."}' in out
    assert "something ran, hung, crashed or was asked again" in out
    assert max(map(len, out.splitlines())) <= 79


def test_the_scenarios_can_be_listed(capsys):
    assert main(["attack", "--list"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [row.split()[0] for row in rows] == [each.name for each in HOSTILE]


# ------------------------------------------------------------------------------- the process


def alive(pid):
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.exhaustive(keep=1)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("group", ["", ", process_group=0"], ids=["one group", "its own group"])
def test_no_process_is_left_behind(tmp_path, group):
    """Neither a grandchild that ignores all signals that can be ignored, nor one in a new group."""
    pids = tmp_path / "pids"
    sleeper = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    code = (
        "import subprocess, sys, time;"
        f"child = subprocess.Popen([sys.executable, '-c', {sleeper!r}]{group});"
        f"open({str(pids)!r}, 'w').write(str(child.pid)); time.sleep(LEFT)"
    )
    for left in ("0", "600"):
        ended = run_command([sys.executable, "-c", code.replace("LEFT", left)], ENVIRONMENT, 3)
        assert ended.hung == (left == "600")
        pid = int(pids.read_text(encoding="utf-8"))
        assert not alive(pid)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("while_attacking", [False, True], ids=["control", "attack"])
def test_who_stops_the_attack_stops_what_it_has_started(tmp_path, number, while_attacking):
    fifo = tmp_path / "pids"
    os.mkfifo(fifo)
    # The agent tells its process ID and hangs: at once, or where it is given no good stream.
    code = (
        "import os, sys, time;"
        f"sys.path.insert(0, {str(AGENTS)!r}); import raw_agent, deciders;"
        f"well = {while_attacking!r} and raw_agent.ended('chat', deciders.DECIDERS['gate']);"
        f"well or (open({str(fifo)!r}, 'w').write(str(os.getpid()) + chr(10)), time.sleep(600))"
    )
    command = [sys.executable, "-m", "agentlib", "attack", "--tool", "edit", "--time-out", "100"]
    command += ["--jobs", "1", "--", sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as attacking:
        with fifo.open(encoding="utf-8") as told:
            pid = int(told.readline())
        assert alive(pid)
        attacking.send_signal(number)
        attacking.communicate(timeout=60)
        assert attacking.returncode == 130
    assert not alive(pid)


def test_output_is_bounded_and_input_is_closed():
    code = "import sys; print(repr(sys.stdin.read())); [print('x' * 1000) for _ in range(2000)]"
    ended = run_command([sys.executable, "-c", f"{code}; print('end')"], ENVIRONMENT, 60)
    assert ended.status == 0
    assert len(ended.output) <= MAX_OUTPUT_BYTES
    assert ended.output.endswith("end\n")
    empty = run_command(
        [sys.executable, "-c", "print(repr(input.__self__) and open(0).read())"], ENVIRONMENT, 60
    )
    assert empty.output == "\n"


def test_time_is_bounded():
    start = time.monotonic()
    ended = run_command([sys.executable, "-c", "import time; time.sleep(600)"], ENVIRONMENT, 0.5)
    assert ended.hung
    assert time.monotonic() - start < 20


def test_a_crash_is_told_from_an_exit():
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert run_command([sys.executable, "-c", code], ENVIRONMENT, 60).signalled
    assert run_command([sys.executable, "-c", "raise SystemExit(3)"], ENVIRONMENT, 60).status == 3


def test_a_real_key_is_never_handed_on(tmp_path):
    seen = tmp_path / "seen"
    code = f"import os, json; open({str(seen)!r}, 'w').write(json.dumps(dict(os.environ)))"
    environment = {**os.environ, "OPENAI_API_KEY": "sk-real", "ANTHROPIC_API_KEY": "sk-real"}
    environment["HTTPS_PROXY"] = "http://proxy.example"
    command = [sys.executable, "-m", "agentlib", "attack", "--tool", "x", "--"]
    command += [sys.executable, "-c", code]
    subprocess.run(command, env=environment, capture_output=True, check=False)
    told = json.loads(seen.read_text(encoding="utf-8"))
    assert "sk-real" not in told.values()
    assert "HTTPS_PROXY" not in told
    assert told["OPENAI_BASE_URL"].startswith("http://127.0.0.1:")
    assert told["ANTHROPIC_BASE_URL"] + "/v1" == told["OPENAI_BASE_URL"]
    assert not Path(told["AGENTLIB_PROBE"]).exists()


# ------------------------------------------------------------------------------- the reports


HOSTILE_TEXT = "<script>alert(1)</script>\x1b[31m\u202e]]>&\x00"


def report():
    scenario = SCENARIOS["content-filter"]
    results = [
        Result(scenario, "edit", verdict, HOSTILE_TEXT, ({"path": HOSTILE_TEXT},), HOSTILE_TEXT)
        for verdict in MEANINGS
    ]
    settings = Settings((f"edit{HOSTILE_TEXT}",))
    return Report(settings, "chat", probed=True, results=results)


@pytest.mark.parametrize("invalid", ["", HOSTILE_TEXT])
def test_what_a_stream_says_stays_text_in_every_report(invalid):
    made = report()
    made.invalid = invalid
    text, page, xml = repr(made), as_html(made), as_junit(made)
    for shown in (text, page, xml):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\x00" not in shown
    assert "<script" not in page
    assert "<script" not in xml
    assert "default-src 'none'" in page
    suite = ET.fromstring(xml)
    assert suite.get("errors") == ("1" if invalid else "0")
    assert json.loads(json.dumps(as_json(made)))["invalid"] == invalid


def test_the_page_says_what_a_verdict_means_only_where_it_is_not_safe():
    scenario = SCENARIOS["content-filter"]
    for verdict, shown in (("safe", False), ("skipped", False), ("ran", True), ("unknown", False)):
        made = Report(Settings(("edit",)), "chat", results=[Result(scenario, "edit", verdict)])
        page = as_html(made)
        assert (scenario.meaning in page) == shown
        assert (MEANINGS[verdict] in page) == (verdict in ("ran", "unknown"))
        # It stands alone in any folder: it names what is elsewhere, and leads nowhere.
        assert "href" not in page
        assert "<td>stopped-short</td>" in page
        assert "<td>03 progress is not completion</td>" in page


def test_a_control_is_ok_or_invalid_in_every_report():
    control = SCENARIOS["good-call"]
    for problem, word in (("", "ok"), ("it did not run", "invalid")):
        result = Result(control, "edit", "safe", problem=problem)
        made = Report(Settings(("edit",)), "chat", True, problem, [result])
        assert [row["verdict"] for row in as_json(made)["controls"]] == [word]
        assert f'<th scope="row">{word}</th>' in as_html(made)
        assert repr(made).startswith(f"  {word:<12} good-call (edit)")


def test_a_long_text_is_bounded():
    scenario = SCENARIOS["content-filter"]
    result = Result(scenario, "edit", "unknown", returned="x" * 100_000, output="y" * 100_000)
    made = Report(Settings(("edit",)), "chat", results=[result])
    assert len(repr(made)) < 3_000
    assert len(json.dumps(as_json(made))) < 10_000


# ----------------------------------------------------------------------------- the scenarios


def test_scenarios_are_named_plainly_and_lead_to_a_chapter(root):
    every = (*CONTROLS, *HOSTILE)
    assert len(SCENARIOS) == len(every)
    for each in every:
        assert each.name == each.name.lower().replace(" ", "-")
        assert each.meaning.endswith(".")
        assert (root / "notebooks" / f"{each.chapter}.ipynb").exists()
        assert set(each.apis) <= set(APIS)


def test_arguments_are_made_for_what_schemas_say():
    from agentlib.attack.arguments import make_target

    schema = {
        "type": "object",
        "$defs": {"place": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {
            "name": {"type": "string", "minLength": 40},
            "short": {"type": "string", "maxLength": 3},
            "kind": {"enum": ["a", "b"]},
            "many": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            "place": {"$ref": "#/$defs/place"},
            "maybe": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
            "nullable": {"type": ["string", "null"]},
            "low": {"type": "integer", "minimum": 100},
            "high": {"type": "integer", "maximum": 7},
            "fixed": {"const": 1},
        },
        "required": ["name"],
    }
    made = thaw(dict(make_target("tool", schema, None).arguments))
    assert made["many"] == [35, 35]
    assert made["place"] == {"x": 35}
    assert (made["maybe"], made["low"], made["high"], made["fixed"]) == (True, 101, 7, 1)


def test_the_workflow_that_is_shown_can_be_read(root):
    yaml = pytest.importorskip("yaml")
    told = yaml.safe_load(
        (root / "agentlib" / "attack" / "workflow.yml").read_text(encoding="utf-8")
    )
    steps = told["jobs"]["attack"]["steps"]
    (command,) = [step["run"] for step in steps if step.get("name") == "Attack"]
    from agentlib.commands import _parser

    options = _parser().parse_args(command.split()[1:])
    assert (options.tool, options.command) == (["edit"], ["python", "my_agent.py"])


@pytest.mark.parametrize("form", ["json", "junit", "html"])
@pytest.mark.parametrize("how", ["by its name", "by a link", "by another spelling"])
def test_no_report_replaces_what_the_agent_is_made_of(tmp_path, monkeypatch, capsys, form, how):
    monkeypatch.chdir(tmp_path)
    agent = tmp_path / "agent.html"
    agent.write_text("print('hello')\n", encoding="utf-8")
    word = {
        "by a link": "link.html",
        "by another spelling": "./../" + tmp_path.name + "/agent.html",
    }
    (tmp_path / "link.html").symlink_to(agent)
    named = word.get(how, "agent.html")
    command = ["attack", f"--{form}", "agent.html", "--tool", "edit", "--", sys.executable, named]
    assert main(command) == 2
    assert "it is the file that is read" in capsys.readouterr().err
    assert agent.read_text(encoding="utf-8") == "print('hello')\n"


@pytest.mark.parametrize("form", ["json", "junit", "html"])
def test_an_attack_that_is_interrupted_leaves_the_earlier_report(tmp_path, monkeypatch, form):
    report = tmp_path / "report.html"
    report.write_text("earlier", encoding="utf-8")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("agentlib.attack.command.run_attack", interrupted)
    assert main(["attack", f"--{form}", str(report), "--tool", "edit", "--", "true"]) == 130
    assert report.read_text(encoding="utf-8") == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]

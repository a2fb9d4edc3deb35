"""Running a project's tests, and the gate for effects: nothing runs unallowed, or runs on."""

import asyncio
import json
import os
import re
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio.to_thread
import pytest
from projects import HANGING, HOLDING, Pipe, call, entering, python_test

from agentlib.conversation import Catalog, ToolCall
from agentlib.runtime import testrun
from agentlib.runtime.tools import EFFECTS, READS, TOOLS, ToolExecutor, catalog

FIXTURES = Path(__file__).parents[1] / "fixtures"
SECRET = "sk-a-secret-of-the-host"
posix_only = pytest.mark.skipif(os.name == "nt", reason="pipes and groups are POSIX's")


@pytest.fixture(autouse=True)
def _no_temporary_folder_is_left(tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert list(place.iterdir()) == []


@pytest.fixture
def enter(tmp_path):
    with entering(tmp_path / "made") as enter_one:
        yield enter_one


@pytest.fixture
def hold():
    with ExitStack() as stack:

        def make(place):
            pipe = Pipe(place)
            stack.callback(pipe.close)
            return pipe

        yield make


# --------------------------------------------------------------------------------------------- test


FAILS = """the tests fail (exit status 1)

F.
======================================================================
FAIL: test_adds (test_calculator.CalculatorTest.test_adds)
Two and three make five.
----------------------------------------------------------------------
Traceback (most recent call last):
  File "test_calculator.py", line 13, in test_adds
    self.assertEqual(add(2, 3), 5)
AssertionError: -1 != 5

----------------------------------------------------------------------
Ran 2 tests

FAILED (failures=1)"""


def without_underlines(output):
    """A traceback as every Python writes it: some mark the place in a line, each its own way."""
    return re.sub(r"(?m)^ +[~^]+\n", "", output)


def test_the_fixture_fails_and_its_repair_passes(enter):
    place = enter()

    assert without_underlines(place.test()) == FAILS
    place.edit("calculator.py", "a - b", "a + b")
    assert place.test().startswith("the tests pass\n\n..\n")
    assert sorted(path.name for path in place.root.iterdir()) == place.list().split("\n")


def test_the_tests_get_no_key_and_no_path_of_this_machine_is_told(enter, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("PYTHONPATH", SECRET)
    place = enter(
        python_test(
            "import tempfile\n"
            "print(dict(os.environ), sys.path[1:], os.getcwd(), os.__file__, tempfile.mkdtemp())\n"
            "import missing"
        )
    )
    output = place.test()

    assert "No module named 'missing'" in output
    assert SECRET not in output
    assert str(place.root.parent) not in output
    assert "(scratch)/tmp" in output
    assert "'(python)/os.py'" in output or "(python)/os.py" in output
    assert not any((place.root / name).exists() for name in ("__pycache__", "tmp"))


@pytest.mark.parametrize(
    ("contents", "verdict"),
    [
        ({"a.py": b""}, "there are no tests to run"),
        (python_test("os._exit(7)"), "the tests fail (exit status 7)"),
        (python_test("sys.stdout.buffer.write(b'\\xff')\nos.abort()"), "the tests fail"),
    ],
    ids=["none", "exit", "bytes"],
)
def test_what_came_of_the_tests_stands_first(enter, contents, verdict):
    assert enter(contents).test().startswith(verdict)


def passing(*, before="", inside="pass", after="", decorator=""):
    """A module with one test, and code around it."""
    return (
        f"{before}\nclass T(unittest.TestCase):\n    {decorator}\n"
        f"    def test_one(self):\n        {inside}\n{after}"
    )


FORGED = "print('Ran 2 tests\\n\\nOK', file=sys.stderr, flush=True)\n"
EVERY_FD = """
for fd in range(3, 40):
    try:
        os.write(fd, b'{"ran": 2, "passed": 2, "failed": 0, "skipped": 0}\\n')
    except OSError:
        pass
"""
# What ends well, or says so, without a test that passed.
UNPROVEN = {
    "ended at import": "os._exit(0)",
    "ended in a test": passing(inside="os._exit(0)"),
    "ended after a passed test": passing(
        after="class U(unittest.TestCase):\n    def test_two(self): os._exit(0)"
    ),
    "ended, with the words of a runner": f"{FORGED}os._exit(0)",
    "ended, with counts in every file": f"{EVERY_FD}os._exit(0)",
    "ended at exit's status": "sys.exit(0)",
    "ended by another program": "os.execv('/bin/true', ['true'])",
    "ended by a thread": passing(
        before="import threading",
        inside="threading.Thread(target=os._exit, args=(0,)).start(); time.sleep(60)",
    ),
    "left by a child": passing(inside="os.fork() and os._exit(0)"),
    "every test skipped": passing(decorator="@unittest.skip('later')"),
    "skipped inside": passing(inside="self.skipTest('later')"),
    "a class skipped": passing(before="@unittest.skip('later')"),
    "a module skipped": "raise unittest.SkipTest('later')",
    "skipped at set-up": passing(before="def setUpModule(): raise unittest.SkipTest('later')"),
    "a failure expected": passing(inside="self.fail()", decorator="@unittest.expectedFailure"),
    "a pass not expected": passing(decorator="@unittest.expectedFailure"),
    "no test": "",
    "no test loaded": passing(after="def load_tests(*_): return unittest.TestSuite()"),
    "failed, and ended with 0": passing(
        before="import atexit\natexit.register(os._exit, 0)", inside="self.fail()"
    ),
    "the runner's words replaced": passing(
        before="unittest.TextTestResult.wasSuccessful = lambda self: True", inside="self.fail()"
    ),
    "passed, and ended with 3": passing(before="import atexit\natexit.register(os._exit, 3)"),
    "a runner of its own": "class unittest: pass\nprint('OK')",
}


@pytest.mark.exhaustive(keep=4)
@posix_only
@pytest.mark.parametrize("body", UNPROVEN.values(), ids=UNPROVEN)
def test_the_tests_pass_only_by_a_report_of_one_that_passed(enter, body):
    verdict = enter(python_test(body)).test().partition("\n")[0]
    assert verdict.startswith(("the tests fail", testrun.UNPROVEN, "there are no tests to run"))


PROVEN = {
    "one": passing(),
    "one beside a skipped one": passing(
        after="    @unittest.skip('later')\n    def test_two(self): pass"
    ),
    "with subtests": passing(inside="[self.subTest(n).__enter__() for n in ()]"),
    "with an input that is empty": passing(inside="self.assertEqual(sys.stdin.read(), '')"),
    "with a child": passing(inside="os.fork() or os._exit(0)"),
    "with a child that goes on": passing(inside="os.fork()"),
    "with a function left replaced": passing(inside="os.write = os.lseek = print"),
}


@pytest.mark.exhaustive(keep=2)
@posix_only
@pytest.mark.parametrize("body", PROVEN.values(), ids=PROVEN)
def test_a_test_that_passed_is_reported(enter, body):
    assert enter(python_test(body)).test().startswith("the tests pass\n")


def test_a_project_cannot_replace_the_runner(enter):
    fake = b"import os\nprint('OK')\nos._exit(0)\n"
    names = ("unittest.py", "unittest_runner.py", "json.py", "sitecustomize.py")
    place = enter({**dict.fromkeys(names, fake), **python_test(passing(inside="self.fail()"))})
    assert place.test().startswith("the tests fail (exit status 1)")


def test_only_the_end_of_long_output_is_shown(enter):
    output = enter(python_test("print('x' * 100_000)\nprint('last words', flush=True)")).test()

    assert "earlier bytes are left out)" in output
    assert "last words" in output
    assert len(output) < testrun.MAX_OUTPUT_BYTES + 200


def test_output_without_end_is_killed(enter):
    output = enter(python_test("while True: print('x' * 100_000)")).test()

    assert output.startswith("the tests wrote more than 4,194,304 bytes and were killed")
    assert len(output) < testrun.MAX_OUTPUT_BYTES + 200


async def test_tests_that_cannot_start_are_an_observation(enter, monkeypatch):
    monkeypatch.setattr(testrun, "COMMAND", ("/nowhere/python",))
    result = await ToolExecutor(enter(), allow_execution=True).execute(call("test"))

    assert result.output.startswith("error: the tests could not be started: ")


@posix_only
def test_a_test_that_hangs_is_killed_with_all_it_started(enter, hold, monkeypatch):
    place = enter(HANGING, seconds=5)
    pipe = hold(place)
    clock = SimpleNamespace(monotonic=lambda: 6.0 if pipe.is_started() else 0.0)
    monkeypatch.setattr(testrun, "time", clock)

    assert place.test() == "the tests took longer than 5 seconds and were killed"
    pipe.wait_started()
    pipe.wait_nobody_holds_it()


@posix_only
def test_what_the_tests_leave_running_is_killed(enter, hold):
    place = enter(python_test(f"{HOLDING}os._exit(0)"))
    pipe = hold(place)

    assert place.test().startswith(testrun.UNPROVEN)
    pipe.wait_started()
    pipe.wait_nobody_holds_it()


@posix_only
def test_an_interrupt_kills_the_tests(enter, hold, monkeypatch):
    place = enter(HANGING)
    pipe = hold(place)

    def interrupt():
        if pipe.is_started():
            raise KeyboardInterrupt
        return 0.0

    monkeypatch.setattr(testrun, "time", SimpleNamespace(monotonic=interrupt))
    with pytest.raises(KeyboardInterrupt):
        place.test()
    pipe.wait_started()
    pipe.wait_nobody_holds_it()


# ----------------------------------------------------------------------------- the gate for effects


ARGUMENTS = {
    "list": {},
    "read": {"path": "calculator.py"},
    "edit": {"path": "calculator.py", "old": "a - b", "new": "a + b"},
    "test": {},
}


def test_the_tools_are_those_of_the_fixtures():
    told = Catalog.from_json(json.loads((FIXTURES / "tools.json").read_text("utf-8")))

    assert list(told) == list(TOOLS) == list(catalog(allow_execution=True))
    assert READS | EFFECTS == set(told.names) == set(ARGUMENTS)
    assert READS.isdisjoint(EFFECTS)


def test_tools_with_effects_are_exposed_only_where_they_may_run():
    assert set(catalog(allow_execution=False).names) == READS


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("name", ARGUMENTS)
async def test_effects_happen_only_where_the_host_allows_them(enter, name, allowed):
    place = enter()
    before = place.read("calculator.py")
    executor = ToolExecutor(place, allow_execution=allowed)
    asked = ToolCall("call_7", name, ARGUMENTS[name])
    result = await executor.execute(asked)
    runs = allowed or name in READS

    assert result.call_id == "call_7"
    assert executor.executed == ([asked] if runs else [])
    if runs:
        assert not result.output.startswith("error: ")
    else:
        assert result.output.startswith(f"error: the host does not allow {name}")
    assert (place.read("calculator.py") == before) is not (runs and name == "edit")


async def test_the_host_is_asked_at_each_call(enter):
    place = enter()
    executor = ToolExecutor(place, allow_execution=True)
    await executor.execute(call("edit", **ARGUMENTS["edit"]))
    executor.allow_execution = False
    refused = await executor.execute(call("edit", path="calculator.py", old="a + b", new="0"))

    assert "the host does not allow" in refused.output
    assert "return a + b" in place.source("calculator.py")
    assert [c.name for c in executor.executed] == ["edit"]


WRONG_CALLS = {
    "unknown": call("delete", path="calculator.py"),
    "markup": call("<b>read</b>\n", path="calculator.py"),
    "another case": call("Read", path="calculator.py"),
    "a method": call("source", path="calculator.py"),
    "missing": call("read"),
    "extra": call("list", path="."),
    "extra for a test": call("test", stop=True),
    "number": call("read", path=1),
    "null": call("edit", path="calculator.py", old="a - b", new=None),
    "array": call("read", path=["calculator.py"]),
}


@pytest.mark.parametrize("wrong", WRONG_CALLS.values(), ids=WRONG_CALLS)
async def test_a_call_that_fits_no_tool_is_an_observation(enter, wrong):
    executor = ToolExecutor(enter(), allow_execution=True)
    result = await executor.execute(wrong)

    assert result.output.startswith("error: ")
    assert result.output.isprintable()
    assert executor.executed == []


async def test_what_ran_is_listed_whatever_came_of_it(enter):
    executor = ToolExecutor(enter(), allow_execution=True)
    calls = [
        call("read", path="none.py"),
        call("edit", path="calculator.py", old="stale", new=""),
        call("test"),
        call("list"),
    ]
    results = [await executor.execute(each) for each in calls]

    assert executor.executed == calls
    errors = [result.output.startswith("error: ") for result in results]
    assert errors == [True, True, False, False]
    assert without_underlines(results[2].output) == FAILS


# ---------------------------------------------------------------------------------------- cancelled


@posix_only
async def test_cancelled_it_kills_what_it_started_within_a_second(enter, hold):
    place = enter(HANGING)
    pipe = hold(place)
    executor = ToolExecutor(place, allow_execution=True)
    ended = []

    async def execute():
        try:
            await executor.execute(call("test"))
        finally:
            ended.append(time.monotonic())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(execute)
        await anyio.to_thread.run_sync(pipe.wait_started)
        start = time.monotonic()
        tasks.cancel_scope.cancel()

    assert ended[0] - start < 1
    pipe.wait_nobody_holds_it()
    assert executor.executed == [call("test")]


@posix_only
@pytest.mark.parametrize("times", [1, 2])
def test_cancelled_by_asyncio_itself_nothing_runs_on(enter, hold, times):
    place = enter(HANGING)
    pipe = hold(place)
    runs = []

    async def main():
        executor = ToolExecutor(place, allow_execution=True)
        task = asyncio.create_task(executor.execute(call("test")))
        await asyncio.to_thread(pipe.wait_started)
        for _ in range(times):
            task.cancel()
            await asyncio.wait([task], timeout=0)
        with pytest.raises(asyncio.CancelledError):
            await task
        runs.extend(thread.name for thread in threading.enumerate() if runs_tests(thread))

    asyncio.run(main())
    assert runs == []
    pipe.wait_nobody_holds_it()


def runs_tests(thread):
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code is testrun.run_tests.__code__:
            return True
        frame = frame.f_back
    return False


async def test_cancelled_before_it_starts_nothing_runs(enter):
    executor = ToolExecutor(enter(), allow_execution=True)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await executor.execute(call("edit", **ARGUMENTS["edit"]))

    assert scope.cancelled_caught
    assert executor.executed == []
    assert "a - b" in executor.workspace.source("calculator.py")

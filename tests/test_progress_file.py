"""The reader's progress: kept beside the chapters, harmless to lose, never in the way."""

import json
import os
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbook.exercises.catalogue import exercise, progress
from workbook.progress_file import FILE, FIRST_CHAPTER, keep
from workbook.quiz.predictions import predict

DAMAGED = {
    "nothing": "",
    "cut": '{"passed": ["01"',
    "not an object": "[]",
    "other values": '{"passed": {"01": 1}, "tried": 3, "predicted": [1, null, "01x", ["02"]]}',
    "nested": "[" * 5_000,
    "endless": json.dumps({"passed": ["01"] * 5_000}),
}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder that is the book's, as the working directory; nothing was done yet."""
    monkeypatch.delenv("AGENTLIB_PROGRESS")
    monkeypatch.chdir(tmp_path)
    (tmp_path / FIRST_CHAPTER).write_text("{}", encoding="utf-8")
    return tmp_path


def standing(number):
    return next(row for row in progress().table.rows if row[0] == number)[2:]


def test_what_was_done_is_kept_and_shown(book):
    exercise("06").check(lambda stream: stream)
    assert standing("06") == ("open", "tried, not yet passed")

    exercise("06").check(lambda stream: stream.cut(after=len(stream.events) - 1))
    predict("06").choose("a")
    predict("03").choose("d")
    assert standing("06") == ("made", "✓ passed")
    assert standing("03") == ("made", "open")
    assert repr(progress()).startswith("1 of ")

    exercise("06").check(lambda stream: stream)
    assert standing("06") == ("made", "✓ passed"), "what was passed stays passed"
    assert {path.name for path in book.iterdir()} == {FIRST_CHAPTER, FILE}


def test_it_holds_numbers_of_chapters_and_nothing_else(book):
    keep("passed", "03")
    keep("predicted", "11")

    held = json.loads((book / FILE).read_text(encoding="utf-8"))
    assert held == {"passed": ["03"], "tried": [], "predicted": ["11"]}


def test_deleting_it_begins_anew(book):
    keep("passed", "03")
    (book / FILE).unlink()

    assert standing("03") == ("open", "open")


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_no_progress_and_stops_nothing(book, text):
    (book / FILE).write_text(text, encoding="utf-8")
    assert progress().passed == progress().tried == frozenset()

    keep("passed", "03")
    assert progress().passed == {"03"}


def test_a_folder_that_cannot_be_written_stops_nothing(book, monkeypatch):
    monkeypatch.setenv("AGENTLIB_PROGRESS", str(book / "no" / "such" / "folder"))
    keep("passed", "03")

    assert progress().passed == frozenset()


@pytest.mark.parametrize(
    "named", ["/", ".", "..", "{book}", "no/such/x", "{book}/pipe", "/dev/zero"]
)
def test_what_can_hold_no_progress_stops_nothing(book, monkeypatch, named):
    os.mkfifo(book / "pipe")
    monkeypatch.setenv("AGENTLIB_PROGRESS", named.format(book=book))
    keep("passed", "03")

    assert progress().passed == frozenset()
    assert {path.name for path in book.iterdir()} == {FIRST_CHAPTER, "pipe"}


@pytest.mark.parametrize("name", ["a" * 300, "\udcff"])
def test_a_name_that_no_file_has_stops_nothing(book, monkeypatch, name):
    monkeypatch.setattr(os, "environ", {**os.environ, "AGENTLIB_PROGRESS": str(book / name)})
    keep("passed", "03")
    progress()


def test_a_working_directory_that_is_gone_stops_nothing(book, monkeypatch):
    (book / "gone").mkdir()
    monkeypatch.chdir(book / "gone")
    (book / "gone").rmdir()
    keep("passed", "03")

    assert progress().passed == frozenset()


def test_what_is_written_at_the_same_time_is_kept_as_well(book):
    pytest.importorskip("fcntl", reason="this system has no such locks")
    numbers = [f"{number:02}" for number in range(16)]
    start = threading.Barrier(len(numbers))

    def one(number):
        start.wait()
        keep("passed", number)

    with ThreadPoolExecutor(len(numbers)) as threads:
        list(threads.map(one, numbers))
    assert progress().passed == {*numbers}
    assert {path.name for path in book.iterdir()} == {FIRST_CHAPTER, FILE}


@pytest.mark.usefixtures("book")
@pytest.mark.parametrize("module", [None, types.ModuleType("fcntl")], ids=["no fcntl", "no flock"])
def test_a_system_without_locks_keeps_it_all_the_same(monkeypatch, module):
    monkeypatch.setitem(sys.modules, "fcntl", module)
    keep("passed", "03")

    assert progress().passed == {"03"}


def test_outside_the_book_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENTLIB_PROGRESS")
    monkeypatch.chdir(tmp_path)
    keep("passed", "03")

    assert not list(tmp_path.iterdir())
    assert progress().passed == frozenset()


def test_it_can_be_switched_off(book, monkeypatch):
    monkeypatch.setenv("AGENTLIB_PROGRESS", "off")
    keep("passed", "03")

    assert not (book / FILE).exists()

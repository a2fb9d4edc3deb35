"""The one writer: whole or not at all, no name that can be guessed, nothing followed or lost."""

import errno
import os
import stat
from pathlib import Path

import pytest

from agentlib.files import CannotWrite, FileWriter, check_writable, write_file

OLD, NEW = b"what stood here before\n", b"what is new\n"


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(OLD)
    return path


def names(folder):
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("content", [b"", NEW, "ä – a text", b"\xff\x00"], ids=repr)
def test_a_file_is_written_whole(tmp_path, content):
    path = tmp_path / "new.txt"
    write_file(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert names(tmp_path) == ["new.txt"]


def test_nothing_is_changed_before_the_end(target):
    with FileWriter(target) as file:
        file.write(NEW)
        assert target.read_bytes() == OLD
    assert target.read_bytes() == NEW


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_whatever_interrupts_leaves_what_stood_there(target, error):
    def interrupted():
        with FileWriter(target) as file:
            file.write(NEW)
            raise error

    with pytest.raises(error):
        interrupted()
    assert target.read_bytes() == OLD
    assert names(target.parent) == ["report.json"]


@pytest.mark.parametrize("place", ["write", "flush", "fsync", "replace"])
def test_a_full_disk_leaves_what_stood_there(target, monkeypatch, place):
    full = OSError(errno.ENOSPC, "No space left on device")

    def refuse(*_):
        raise full

    writer = FileWriter(target).open()
    if place in ("write", "flush"):
        inner = writer._file

        class Full:
            def __getattr__(self, name):
                return refuse if name == place else getattr(inner, name)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                inner.close()

        writer._file = Full()
    elif place == "fsync":
        monkeypatch.setattr(os, "fsync", refuse)
    else:
        monkeypatch.setattr(Path, "replace", refuse)

    def write():
        writer.write(NEW)
        writer.commit()

    with pytest.raises(CannotWrite, match=r"report\.json: No space left on device"):
        write()
    assert target.read_bytes() == OLD
    assert names(target.parent) == ["report.json"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755])
def test_the_mode_of_an_earlier_file_is_kept(target, mode):
    target.chmod(mode)
    write_file(target, NEW)
    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_account_gives(tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    write_file(tmp_path / "new", NEW)
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives a file away")
def test_the_owner_of_an_earlier_file_is_kept(target):
    os.chown(target, 12345, 23456)
    write_file(target, NEW)
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)


def link_to_file(path):
    path.with_name("elsewhere").write_bytes(OLD)
    path.symlink_to(path.with_name("elsewhere"))


NO_FILES = {
    "a link": link_to_file,
    "a link, to nothing": lambda path: path.symlink_to("nowhere"),
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3)),
}


@pytest.mark.parametrize("when", ["looked at", "opened", "committed"])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_by_its_kind_and_kept(tmp_path, kind, when):
    path = tmp_path / "report.json"

    def place():
        try:
            NO_FILES[kind](path)
        except PermissionError:
            pytest.skip("this account makes no devices")

    def write():
        if when == "committed":
            writer = FileWriter(path).open()
            writer.write(NEW)
            place()
            writer.commit()
        else:
            place()
            (check_writable(path) if when == "looked at" else write_file(path, NEW))

    with pytest.raises(CannotWrite, match=rf"report\.json: it is {kind.partition(',')[0]}"):
        write()
    assert stat.S_IFMT(path.lstat().st_mode) != stat.S_IFREG
    left = {"report.json", *(["elsewhere"] if kind == "a link" else [])}
    assert set(names(tmp_path)) == left
    if kind == "a link":
        assert (tmp_path / "elsewhere").read_bytes() == OLD


def test_a_look_leaves_no_trace(target):
    before = target.stat()
    check_writable(target)
    check_writable(target.with_name("free"))
    assert names(target.parent) == ["report.json"]
    assert (target.stat().st_mtime_ns, target.read_bytes()) == (before.st_mtime_ns, OLD)


def test_a_file_of_the_users_own_is_never_taken_for_a_temporary_one(target):
    for name in (".part", "report.json.part", f".{os.getpid()}.part"):
        (target.parent / name).write_bytes(OLD)
    before = names(target.parent)
    write_file(target, NEW)
    assert names(target.parent) == before
    assert (target.parent / "report.json.part").read_bytes() == OLD


def test_temporary_names_cannot_be_guessed(target):
    def name():
        writer = FileWriter(target).open()
        (found,) = {each for each in names(target.parent) if each.endswith(".part")}
        writer.discard()
        return found

    assert len({name() for _ in range(50)}) == 50


def test_two_writers_of_one_name_do_not_meet(target):
    first, second = FileWriter(target).open(), FileWriter(target).open()
    first.write(b"first")
    second.write(b"second")
    second.commit()
    assert target.read_bytes() == b"second"
    first.commit()
    assert target.read_bytes() == b"first"
    assert names(target.parent) == ["report.json"]


@pytest.mark.parametrize("name", ["missing/report.json", "report.json/inside", "a\0b", "x" * 300])
def test_a_name_that_cannot_be_is_refused_by_name(target, name):
    with pytest.raises(CannotWrite, match="cannot write"):
        write_file(target.parent / name, NEW)
    assert names(target.parent) == ["report.json"]


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("x" * 250)
    write_file(path, NEW)
    assert path.read_bytes() == NEW

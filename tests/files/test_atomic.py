"""Files are whole or absent."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from robustphase.files import atomic
from robustphase.files.atomic import sweep_leftovers, write_text, writing


def test_a_file_appears_whole_and_nothing_else_does(tmp_path):
    write_text(tmp_path / "a.txt", "grüße")
    assert (tmp_path / "a.txt").read_text("utf-8") == "grüße"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with writing(path) as handle:
        handle.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError("x")]
)
def test_a_failure_in_the_middle_leaves_nothing_behind(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with writing(path) as handle:
            handle.write(b"half of it")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_at_the_end_leaves_nothing_behind(tmp_path, monkeypatch, call):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(
        OSError, match=r"could not write '.*a\.txt': No space left on device\. Nothing was changed"
    ) as caught:
        write_text(tmp_path / "a.txt", "text")
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    folder = tmp_path / "sealed"
    folder.mkdir(mode=0o500)
    with pytest.raises(PermissionError, match=r"could not write .*sealed"):
        write_text(folder / "a.txt", "text")
    assert os.listdir(folder) == []


def test_a_system_that_refuses_is_quoted(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(atomic, "open", refuse, raising=False)
    with pytest.raises(PermissionError, match=r"could not write '.*a\.txt': Permission denied"):
        write_text(tmp_path / "a.txt", "text")
    assert os.listdir(tmp_path) == []


def test_a_system_that_cannot_flush_folders_is_no_failure(tmp_path, monkeypatch):
    fsync = os.fsync

    def files_only(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    write_text(tmp_path / "a.txt", "text")
    assert (tmp_path / "a.txt").read_text() == "text"


def test_a_missing_folder_and_a_folder_in_the_way_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"could not write .*nowhere"):
        write_text(tmp_path / "nowhere" / "a.txt", "text")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        write_text(tmp_path, "text")


def test_the_file_is_as_readable_as_any_other(tmp_path):
    write_text(tmp_path / "a.txt", "text")
    (tmp_path / "b.txt").write_text("text")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == stat.S_IMODE((tmp_path / "b.txt").stat().st_mode)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_name_as_long_as_the_system_allows_can_be_written(tmp_path):
    name = 250 * "a" + ".html"
    write_text(tmp_path / name, "text")
    assert os.listdir(tmp_path) == [name]


def test_what_killed_processes_left_is_swept_and_nothing_else(tmp_path):
    names = [".a.txt.0123456789ab.tmp", ".b.txt.0123456789ab.tmp", ".a.txt.tmp", "a.txt", ".a.txt.swp"]
    for name in names:
        (tmp_path / name).touch()
    sweep_leftovers(tmp_path / "a.txt")
    assert sorted(os.listdir(tmp_path)) == sorted(names[1:])
    sweep_leftovers(tmp_path / "nowhere" / "a.txt")

"""Files are whole or absent."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys

import pytest

from robustphase import atomic
from robustphase.atomic import (
    NotRegularFileError,
    open_regular,
    replacing,
    sweep_leftovers,
    write_bytes,
    write_text,
    writing,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="no such permissions, links and pipes there")


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


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
    sweep_leftovers(tmp_path / "a.txt", older_than=0.0)
    assert sorted(os.listdir(tmp_path)) == sorted(names[1:])
    sweep_leftovers(tmp_path / "nowhere" / "a.txt")


@posix
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o444, 0o666])
def test_a_file_that_is_replaced_hands_its_permissions_on(tmp_path, permissions):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(permissions)
    with writing(path) as handle:
        (temporary,) = (other for other in tmp_path.iterdir() if other != path)
        assert mode(temporary) == 0o600
        handle.write(b"new")
    assert path.read_text() == "new"
    assert mode(path) == permissions


@posix
def test_a_folder_that_is_replaced_hands_its_permissions_on(tmp_path):
    (tmp_path / "folder").mkdir(mode=0o700)
    with replacing(tmp_path / "folder", folder=True) as temporary:
        (temporary / "new").touch()
    assert os.listdir(tmp_path / "folder") == ["new"]
    assert mode(tmp_path / "folder") == 0o700


@posix
@pytest.mark.parametrize("there", [True, False])
def test_a_link_that_leads_out_of_its_folder_is_not_followed(tmp_path, there):
    (tmp_path / "here").mkdir()
    precious, link = tmp_path / "precious.txt", tmp_path / "here" / "a.txt"
    if there:
        precious.write_text("years of work")
    link.symlink_to(precious)
    with pytest.raises(
        NotRegularFileError, match=r"a\.txt' is a symbolic link that leads out .*precious.*remove the link"
    ):
        write_text(link, "text")
    assert link.is_symlink()
    assert precious.exists() == there
    assert not there or precious.read_text() == "years of work"
    assert os.listdir(tmp_path / "here") == ["a.txt"]


@posix
def test_a_folder_that_is_reached_through_a_link_is_written_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link" / "a.txt", "text")
    assert (tmp_path / "real" / "a.txt").read_text() == "text"


@posix
def test_a_link_in_a_circle_is_refused(tmp_path):
    (tmp_path / "a.txt").symlink_to("a.txt")
    with pytest.raises(NotRegularFileError, match="a symbolic link"):
        write_text(tmp_path / "a.txt", "text")
    assert os.listdir(tmp_path) == ["a.txt"]


@posix
def test_no_link_is_followed_where_none_may_be(tmp_path):
    (tmp_path / "b.txt").write_text("years of work")
    (tmp_path / "a.txt").symlink_to("b.txt")
    with pytest.raises(NotRegularFileError, match=r"a\.txt' is a symbolic link and not a regular file.*remove it"):
        write_bytes(tmp_path / "a.txt", b"text", follow=False)
    assert (tmp_path / "b.txt").read_text() == "years of work"
    assert (tmp_path / "a.txt").is_symlink()


@pytest.fixture(params=["pipe", "socket", "link", "link to nothing"])
def irregular(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # The name of a socket must be short.
    if request.param == "pipe":
        os.mkfifo("irregular")
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("irregular")
    else:
        if request.param == "link":
            (tmp_path / "b.txt").write_text("text")
        (tmp_path / "irregular").symlink_to("b.txt")
    return tmp_path / "irregular", request.param.split()[0]


@posix
def test_only_regular_files_are_opened(irregular, tmp_path):
    path, kind = irregular
    with pytest.raises(NotRegularFileError, match=rf"irregular' is .*{kind} and not a regular file.*remove it"):
        open_regular(path)
    (tmp_path / "regular").write_bytes(b"text")
    with open_regular(tmp_path / "regular") as file:
        assert file.read() == b"text"
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")


@posix
def test_only_regular_files_are_replaced(irregular):
    path, kind = irregular
    before = path.lstat()
    with pytest.raises(NotRegularFileError, match=rf"irregular' is .*{kind} and not a regular file"):
        write_text(path, "text", follow=False)
    assert path.lstat() == before


@posix
def test_a_file_that_turns_into_a_link_while_it_is_opened_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("text")
    (tmp_path / "b.txt").write_text("secret")
    lstat = os.lstat

    def and_then_a_link(name, **options):
        found = lstat(name, **options)
        path.unlink()
        path.symlink_to("b.txt")
        return found

    monkeypatch.setattr(os, "lstat", and_then_a_link)
    with pytest.raises(NotRegularFileError, match="a symbolic link"):
        open_regular(path)


@posix
def test_a_temporary_name_that_exists_is_never_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda _: "0123456789ab")
    (tmp_path / "precious.txt").write_text("years of work")
    guess = tmp_path / ".a.txt.0123456789ab.tmp"
    guess.symlink_to("precious.txt")
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "a.txt", "text")
    assert (tmp_path / "precious.txt").read_text() == "years of work"
    assert guess.is_symlink()


@posix
def test_a_link_with_a_temporary_name_is_not_swept(tmp_path):
    (tmp_path / "mine").touch()
    (tmp_path / ".a.txt.0123456789ab.tmp").symlink_to("mine")
    sweep_leftovers(tmp_path / "a.txt", older_than=0.0)
    assert sorted(os.listdir(tmp_path)) == [".a.txt.0123456789ab.tmp", "mine"]


@posix
def test_a_folder_does_not_take_the_place_or_the_permissions_of_a_file(tmp_path):
    (tmp_path / "a").write_text("text")
    (tmp_path / "a").chmod(0o600)

    def replace():
        with replacing(tmp_path / "a", folder=True) as temporary:
            assert mode(temporary) & 0o100
            (temporary / "new").touch()

    with pytest.raises(NotADirectoryError):
        replace()
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "text"

"""Files and folders that are whole or absent: written beside their place, then moved there.

Every room that leaves something on the disk does it through this module, which knows none of them and so stands beside the rooms:
all may touch it (``tests/test_layout.py``). What it promises of every file:

* it is written under a name that only this module uses, ``.NAME.xxxxxxxxxxxx.tmp`` with twelve hexadecimal digits, made
  anew in the same folder (an existing name is never opened), flushed to the disk and then renamed;
* a file that is replaced hands its permissions on: what only its owner may read stays so, from the first byte;
* pipes, devices and sockets are never replaced. A link is followed to a file in or below its own folder, out of it never; in
  folders whose files are all ours no link is followed at all (``follow=False``).
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: From the Linux headers: paths relative to the working directory, and the flag that swaps two names.
AT_FDCWD, RENAME_EXCHANGE = -100, 2
#: Open what is there without following a link or waiting for the other end of a pipe; Windows has neither flag.
_AS_IT_IS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{12}\.tmp", re.DOTALL)
#: How the system says that a disk, or what somebody may have of it, is full.
FULL = (errno.ENOSPC, errno.EDQUOT)
#: Long names are cut: with our ending a legal one could become illegal.
_LONGEST_NAME = 100
#: Seconds without a write after which a temporary file is a leftover: whoever writes one writes all the time.
STALE = 3600.0


class NotRegularFileError(OSError):
    """Something other than a regular file where only such a file is read or replaced; says which, and what to do."""


@contextmanager
def replacing(path: str | os.PathLike[str], *, follow: bool = True, folder: bool = False) -> Iterator[Path]:
    """An empty file or folder to write to; it takes the place of ``path`` when the block ends well.

    Otherwise nothing is left behind, and what was at ``path`` is as before. A folder that takes the place of another is
    swapped with it in one step where the system can do that (Linux); elsewhere the old one is moved aside first, under a name
    that ends in ``.old``.

    Parameters
    ----------
    path : path
        Where the file or folder shall be.
    follow : bool, default=True
        Whether a link at ``path`` may be followed to a file in or below its folder, which is then replaced; else it is refused.
    folder : bool, default=False
        Whether a folder is made.

    Raises
    ------
    NotRegularFileError
        If there is something that must not be replaced, see :func:`place_of`.
    """
    target = place_of(path, follow=follow)
    temporary = temporary_beside(target)
    permissions = _permissions(target, folder)
    private = 0o700 if folder else 0o600
    if folder:
        temporary.mkdir(mode=0o777 if permissions is None else private)
    else:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(temporary, flags, 0o666 if permissions is None else private))
    try:
        yield temporary
        _flush(temporary)
        if permissions is not None:
            os.chmod(temporary, permissions)
        if folder and target.is_dir():
            _swap(temporary, target)
        else:
            os.replace(temporary, target)
        _flush_folder(target.parent)
    except OSError as error:
        if error.errno in FULL and error.filename in (None, os.fspath(temporary)):
            # The system does not say which file had no room, or names one that nobody knows.
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
        raise
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with suppress(OSError):
                temporary.unlink()


@contextmanager
def writing(path: str | os.PathLike[str], *, follow: bool = True) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of ``path`` when the block ends well; otherwise nothing is left behind.

    Parameters
    ----------
    path : path
        Where the file shall be. What is there stays untouched until the new file is complete and on the disk.
    follow : bool, default=True
        See :func:`replacing`.

    Raises
    ------
    OSError
        Of the kind that the system gave, saying which file could not be written.
    """
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        with replacing(path, follow=follow) as temporary, open(temporary, "wb", opener=_no_link) as handle:
            yield handle
    except NotRegularFileError:
        raise
    except OSError as error:
        raise _named(error, path) from error


def write_bytes(path: str | os.PathLike[str], data: bytes, *, follow: bool = True) -> None:
    """Write a file, whole or not at all; see :func:`writing`."""
    with writing(path, follow=follow) as handle:
        handle.write(data)


def write_text(path: str | os.PathLike[str], text: str, *, follow: bool = True) -> None:
    """Write a text as UTF-8, whole or not at all; see :func:`writing`."""
    write_bytes(path, text.encode("utf-8"), follow=follow)


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """A regular file, open for reading; a link is not followed, and nobody is waited for at the end of a pipe.

    Raises
    ------
    NotRegularFileError
        If it is anything else.
    """
    _require_regular(path, os.lstat(path).st_mode)
    try:
        descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    except OSError as error:
        if error.errno == errno.ELOOP:  # It was replaced by a link just now.
            raise _not_regular(path, "a symbolic link") from error
        raise
    try:
        _require_regular(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:  # Whatever stops us, nobody else has the descriptor.
        os.close(descriptor)
        raise


def require_regular(path: str | os.PathLike[str]) -> None:
    """Refuse a path at which there is something other than a regular file; nothing at all will do."""
    with suppress(FileNotFoundError):
        _require_regular(path, os.lstat(path).st_mode)


def place_of(path: str | os.PathLike[str], *, follow: bool = True) -> Path:
    """Where a file named ``path`` is written: there, or where the link at ``path`` leads.

    Raises
    ------
    NotRegularFileError
        If there is a pipe, device or socket, a link that leads out of its folder or in a circle; or, unless ``follow``, a link.
    """
    named = Path(path)
    folder = Path(os.path.realpath(named.parent))
    if not follow or not named.is_symlink():
        target = folder / named.name if named.name not in ("", "..") else Path(os.path.realpath(named))
    else:
        target = Path(os.path.realpath(named))
        if not target.is_relative_to(folder):
            raise NotRegularFileError(
                f"{os.fspath(path)!r} is a symbolic link that leads out of its folder, to {os.fspath(target)!r}, and is not "
                "followed. Nothing was changed; give the name of that file, or remove the link"
            )
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = os.lstat(target).st_mode
        if not stat.S_ISDIR(mode):
            _require_regular(path, mode)
    return target


def temporary_beside(path: Path) -> Path:
    """A name in the same folder that nobody else uses."""
    return path.with_name(f".{path.name[:_LONGEST_NAME]}.{secrets.token_hex(6)}.tmp")


def written_for(name: str) -> str | None:
    """The name for whose sake a file with a temporary name was made, cut if it is long; None for every other name."""
    match = _TEMPORARY.fullmatch(name)
    return match["name"] if match else None


def sweep_leftovers(path: str | os.PathLike[str], *, older_than: float = STALE) -> None:
    """Remove what killed processes have left of their attempts to write ``path``.

    Parameters
    ----------
    path : path
        The file or folder that they were to write.
    older_than : float
        Seconds since they were last written to: another process may be writing the others. 0 where nobody else can be.
    """
    with suppress(OSError):
        target = place_of(path)
        for beside in target.parent.iterdir():
            if written_for(beside.name) != target.name[:_LONGEST_NAME]:
                continue
            status = beside.lstat()
            if time.time() - status.st_mtime < older_than:
                continue
            if stat.S_ISREG(status.st_mode):
                beside.unlink(missing_ok=True)
            elif stat.S_ISDIR(status.st_mode) and target.suffix.lower() == ".zarr":
                shutil.rmtree(beside, ignore_errors=True)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _permissions(target: Path, folder: bool) -> int | None:
    """Who may do what with the file or folder that will be replaced; None if there is no such thing."""
    try:
        mode = os.lstat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.S_IMODE(mode) & 0o777 if stat.S_ISDIR(mode) == folder else None


def _require_regular(path: str | os.PathLike[str], mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise _not_regular(path, next((words for is_, words in _KINDS if is_(mode)), "something else"))


_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "a device"),
)


def _not_regular(path: str | os.PathLike[str], kind: str) -> NotRegularFileError:
    return NotRegularFileError(
        f"{os.fspath(path)!r} is {kind} and not a regular file. Nothing was changed; remove it, or choose another place"
    )


def _named(error: OSError, path: str | os.PathLike[str]) -> OSError:
    """The same kind of error, in a sentence."""
    why = error.strerror or str(error) or type(error).__name__
    told = f"could not write {os.fspath(path)!r}: {why}. Nothing was changed; choose another place and try again"
    return type(error)(error.errno, told) if error.errno is not None else type(error)(told)


def _flush(written: Path) -> None:
    """Have the disk keep what was written before the name points to it."""
    files = [Path(folder, name) for folder, _, names in os.walk(written) for name in names] or [written]
    for file in files:
        with open(file, "rb+") as handle:
            os.fsync(handle.fileno())


def _flush_folder(folder: Path) -> None:
    """Have the disk keep the name too, where the system can: by now the file is in place, so a failure changes nothing."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _swap(new: Path, old: Path) -> None:
    """Let two folders change names, so that at every moment one of them is in place; the caller removes what is at ``new``."""
    if _exchanged(new, old):
        return
    aside = new.with_suffix(".old")
    os.rename(old, aside)
    try:
        os.rename(new, old)
    except BaseException:  # Ctrl-C included: the old folder goes back to its place.
        os.rename(aside, old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Swap two names in one step, if the system and the file system can do that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0)

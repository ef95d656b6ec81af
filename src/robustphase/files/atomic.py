"""Files and folders that are whole or absent: written beside their place, then moved there."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

#: From the Linux headers: paths relative to the working directory, and the flag that swaps two names.
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A name to write a file or a folder to; it takes the place of ``path`` when the block ends well.

    Otherwise nothing is left behind, and what was at ``path`` is as before. A folder that takes the place of another is
    swapped with it in one step where the system can do that (Linux); elsewhere the old one is moved aside first, under a name
    that ends in ``.old``.
    """
    # Through a link the file it points to is replaced, not the link. Long names are cut: a legal one could become illegal.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        _flush(temporary)
        if temporary.is_dir() and target.is_dir():
            _swap(temporary, target)
        else:
            os.replace(temporary, target)
        _flush_folder(target.parent)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with suppress(OSError):
                temporary.unlink()


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of ``path`` when the block ends well; otherwise nothing is left behind.

    Parameters
    ----------
    path : path
        Where the file shall be. What is there stays untouched until the new file is complete and on the disk.

    Raises
    ------
    OSError
        Of the kind that the system gave, saying which file could not be written.
    """
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        with replacing(path) as temporary, open(temporary, "xb") as handle:
            yield handle
    except OSError as error:
        raise _named(error, path) from error


def sweep_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what killed processes have left of their attempts to write ``path``, which no other may be writing now."""
    target = Path(os.path.realpath(path))
    leftover = re.compile(rf"\.{re.escape(target.name[:100])}\.[0-9a-f]{{12}}\.tmp")
    with suppress(OSError):
        for beside in target.parent.iterdir():
            if leftover.fullmatch(beside.name) and beside.is_file():
                beside.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text as UTF-8, whole or not at all."""
    with writing(path) as handle:
        handle.write(text.encode("utf-8"))


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
    except BaseException:
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

"""Files that are whole or absent: written under a temporary name beside their place, then moved there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of ``path`` when the block ends well; otherwise nothing is left behind.

    Parameters
    ----------
    path : path-like
        Where the file shall be. What is there stays untouched until the new file is complete and on the disk.

    Raises
    ------
    OSError
        Of the kind that the system gave, saying which file could not be written.
    """
    # Through a link the file it points to is replaced, not the link.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        # Opened by hand, because temporary files of the standard library are readable by their owner alone.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise _named(error, path) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text as UTF-8, whole or not at all."""
    with replacing(path) as handle:
        handle.write(text.encode("utf-8"))


def _named(error: OSError, path: Any) -> OSError:
    """The same kind of error, in a sentence."""
    reason = error.strerror or str(error) or type(error).__name__
    told = f"could not write {os.fspath(path)!r}: {reason}. Nothing was changed; choose another place and try again"
    return type(error)(error.errno, told) if error.errno is not None else type(error)(told)

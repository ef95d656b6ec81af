"""Files that commands leave behind: refused before the work if they cannot be written, and moved into place when complete."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from robustphase.cli.terminal import shown
from robustphase.files import atomic

#: Where a context keeps the names of what it has written.
_WRITTEN = "robustphase.written"
#: What a zarr folder holds at its top, one or the other.
_ZARR = ("zarr.json", ".zgroup", ".zarray")


class OutputError(ValueError):
    """An output that cannot be written."""


def check_writable(path: Path) -> None:
    """Refuse a path to which nothing can be written, before the work and not after it.

    Parameters
    ----------
    path : Path
        Where a file shall be written; or a folder, if the name ends in ``.zarr``, which may replace another such folder.
    """
    parent, name = path.parent, shown(path)
    if not parent.is_dir():
        raise OutputError(f"cannot write {name}: the folder {shown(parent)} does not exist.")
    if path.is_dir():
        if path.suffix.lower() != ".zarr" or (any(path.iterdir()) and not any((path / it).exists() for it in _ZARR)):
            raise OutputError(f"cannot write {name}: it is a folder. Choose another name.")
    elif path.exists():
        mode = path.stat().st_mode
        # Moving a file over a device would replace the device.
        if not stat.S_ISREG(mode):
            raise OutputError(f"cannot write {name}: it is not an ordinary file.")
        if not mode & 0o222 or not os.access(path, os.W_OK):
            raise OutputError(f"cannot write {name}: it is marked read-only.")
    # Long names are cut: with our ending a legal name could become an illegal one.
    probe = Path(os.path.realpath(path)).with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        # Permissions, quotas and read-only disks: the only sure way to know is to try.
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise OutputError(f"cannot write {name}: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            probe.unlink()


def check_distinct(**paths: Path | None) -> None:
    """Refuse two options that name the same file, which the second would overwrite."""
    seen: dict[str, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in seen:
            raise click.UsageError(f"{seen[real]} and {option} name the same file, {shown(path)}.")
        seen[real] = option


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path``, moved there when the block ends well and removed when it does not."""
    with atomic.replacing(path) as temporary:
        yield temporary
    note_written(path)


def note_written(path: Path) -> None:
    """Remember that a file is complete, so that an interruption can say so."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.setdefault(_WRITTEN, []).append(shown(path))


def written() -> list[str]:
    """Names of the files that the current command has completed."""
    context = click.get_current_context(silent=True)
    return [] if context is None else list(context.meta.get(_WRITTEN, []))

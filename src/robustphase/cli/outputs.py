"""Files that commands leave behind: refused before the work if they cannot be written, and moved into place when complete."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from robustphase import atomic
from robustphase.cli.terminal import shown

#: Where a context keeps the names of what it has written.
_WRITTEN = "robustphase.written"
#: What a zarr folder holds at its top, one or the other.
_ZARR = ("zarr.json", ".zgroup", ".zarray")


class OutputError(ValueError):
    """An output that cannot be written."""


def check_writable(path: Path) -> None:
    """Refuse a path to which nothing can be written, before the work and not after it.

    A name that ends in ``.zarr`` is that of a folder, which may replace another such folder.
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
    try:
        probe = atomic.temporary_beside(atomic.place_of(path))
    except atomic.NotRegularFileError as error:
        raise OutputError(f"cannot write {name}: {error}.") from error
    try:
        # Permissions, quotas and read-only disks: the only sure way to know is to try.
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise OutputError(f"cannot write {name}: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            probe.unlink()


def check_new(path: Path, *, overwrite: bool) -> None:
    """Refuse to write over something that is there, unless that was asked for."""
    if not overwrite and os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise OutputError(
            f"{shown(path)} exists already and is left as it is. Choose another name, or add --overwrite."
        )


def check_outputs(*paths: Path | None, overwrite: bool) -> None:
    """Refuse files to which nothing can be written, or that are there already and may not be written over."""
    for path in paths:
        if path is not None:
            check_writable(path)
            check_new(path, overwrite=overwrite)


def check_outside(data: Path | None, **paths: Path | None) -> None:
    """Refuse outputs inside a data set that is a folder, of which they would become or replace a part."""
    if data is None or not data.is_dir():
        return
    home = Path(os.path.realpath(data))
    for option, path in paths.items():
        if path is not None and Path(os.path.realpath(path)).is_relative_to(home):
            raise click.UsageError(
                f"{option} {shown(path)} lies inside of the data, {shown(data)}; choose another place."
            )


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
    """A file beside ``path``, moved there when the block ends well and removed when it does not; noted as written."""
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

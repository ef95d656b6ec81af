"""What is asked of stored data before it is read: numbers in a matrix, and no more of them than there is memory for.

A few bytes of a header can declare an array larger than the machine. Whoever is about to make an array whose size was read
from a file compares it with what is left here first.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from robustphase.formatting import in_bytes
from robustphase.rows.source import NATIVE_DTYPES

#: Most bytes that one read may take, so that read-ahead stays small beside the data: 64 MiB.
MOST_BYTES_AT_ONCE = 64 << 20
#: A chunk read this many times in every pass is worth a warning.
WASTEFUL = 4
#: Names that an error lists, their characters together, and those of any one word from a file.
MOST_LISTED, LONGEST_LIST, LONGEST_WORD = 20, 400, 60
#: Characters of what a library says that are passed on.
LONGEST_REASON = 200


class DataError(ValueError):
    """Data that cannot be read or used: one plain sentence that says what, where, and what to do."""


class MissingNameError(DataError):
    """A name that a file does not have; ``present`` lists those that it has.

    ``missing`` says what is missing from which file, ``before`` stands before the list, and ``nothing`` in its place if it is
    empty.
    """

    def __init__(self, missing: str, before: str, present: list[str], nothing: str = "nothing") -> None:
        super().__init__(f"{missing}; {before} {listed(present, nothing)}.")
        self.present = present


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{purpose} needs the package {package}, which is not installed. "
            f"Install it with: pip install 'robustphase[{extra}]'"
        ) from error


def shortened(word: object) -> str:
    """A name or a type from a file as an error may quote it: a hostile one has any length."""
    text = str(word)
    return text if len(text) <= LONGEST_WORD else f"{text[:LONGEST_WORD]}…"


def listed(names: Sequence[str], nothing: str = "nothing") -> str:
    """The first of these names, as far as an error has room for them."""
    words: list[str] = []
    for name in names[:MOST_LISTED]:
        if sum(map(len, words)) > LONGEST_LIST:
            break
        words.append(shortened(name))
    return ", ".join([*words, "..."] if len(words) < len(names) else words) or nothing


def reason(error: BaseException) -> str:
    """The cause of an error as part of a sentence: its first line, cut if it is long, or its type if it says nothing."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip() if lines else ""
    # Libraries quote the headers that they cannot read, and a hostile one is long.
    text = text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"
    return text.rstrip(".") or type(error).__name__


@contextmanager
def explained(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Tell whatever a library of a format raises, which is of many kinds, as a :class:`DataError`."""
    try:
        yield
    except (DataError, FileNotFoundError, PermissionError, IsADirectoryError, ImportError):
        raise
    except Exception as error:
        raise DataError(f"'{os.fspath(path)}' cannot be read as {kind}: {reason(error)}.") from error


def working_dtype(dtype: np.dtype[Any], where: str) -> np.dtype[Any]:
    """The type in which rows of a stored type are computed on: as in memory, whatever the byte order."""
    if dtype.kind not in "fciub":
        raise DataError(f"{where} holds entries of type {shortened(dtype)}; numbers are needed.")
    native = np.result_type(dtype.newbyteorder("="), np.float32)
    if native not in NATIVE_DTYPES:
        raise DataError(
            f"{where} holds entries of type {shortened(dtype)}; convert them to float64 or complex128 first."
        )
    return native


def check_matrix(shape: tuple[int, ...], where: str) -> tuple[int, int]:
    """Refuse what is not a matrix with at least one entry."""
    if len(shape) != 2:
        raise DataError(f"{where} has shape {shape}; covariates need two dimensions (samples x features).")
    if 0 in shape:
        raise DataError(f"{where} is empty: shape {shape}; at least one row and one column are needed.")
    return int(shape[0]), int(shape[1])


def check_chunks(shape: tuple[int, int], itemsize: int, chunks: tuple[int, ...], where: str) -> int:
    """Rows per chunk, after refusing chunks beyond memory and warning of those that every pass decodes many times."""
    if len(chunks) != 2 or min(chunks) < 1:
        raise DataError(f"{where} declares chunks of the impossible shape {chunks}; the file is damaged.")
    rows, columns = int(chunks[0]), int(chunks[1])
    # Twice: a chunk as stored and as decoded. Chunks at the edge are stored in full, so their declared size counts.
    check_room(2 * rows * columns * itemsize, f"one chunk of {where}, {rows} x {columns}")
    in_stripe = min(rows, shape[0]) * shape[1] * itemsize
    if in_stripe > WASTEFUL * MOST_BYTES_AT_ONCE:
        warnings.warn(
            f"{where} has chunks of {rows} x {columns}: whole rows come only in stripes of {in_bytes(in_stripe)}, so that every "
            f"pass decodes each chunk about {in_stripe // MOST_BYTES_AT_ONCE} times. Rewrite it in chunks of whole rows, for "
            "example with robustphase.files.save_samples.",
            stacklevel=4,
        )
    return min(rows, shape[0])


def check_room(needed: int, what: str) -> None:
    """Refuse to make something larger than the memory that is left."""
    available = available_memory()
    if available is not None and needed > available:
        raise DataError(f"{what} needs {in_bytes(needed)} of memory, but only {in_bytes(available)} are left.")


def available_memory() -> int | None:
    """Bytes this process can still use, or None where the system does not tell.

    The least of: what the machine has left, what the control groups of the process allow (page cache they can give up
    counts as free), and what ``ulimit -v`` leaves.
    """
    found = [value for value in (_machine(), _control_groups(), _address_space()) if value is not None]
    return max(0, min(found)) if found else None


def _machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _address_space() -> int | None:
    if sys.platform == "win32":
        return None
    import resource  # Not on Windows.

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        used = 0
    return limit - used


def _control_groups(root: Path = Path("/sys/fs/cgroup"), listing: Path = Path("/proc/self/cgroup")) -> int | None:
    """The tightest limit among the group of this process and its parents, in either version of the interface."""
    try:
        lines = listing.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    left: list[int] = []
    for line in lines:
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            top, names = root, ("memory.max", "memory.current", ("active_file", "inactive_file"))
        elif "memory" in controllers.split(","):
            top = root / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
        else:
            continue
        group = top / name.lstrip("/")
        for folder in (group, *group.parents):
            left += _left_in_group(folder, *names)
            if folder == top:
                break
    return min(left, default=None)


def _left_in_group(folder: Path, limit_name: str, usage_name: str, reclaimable: tuple[str, ...]) -> list[int]:
    try:
        limit, usage = (int((folder / name).read_text("ascii")) for name in (limit_name, usage_name))
        fields = (line.split() for line in (folder / "memory.stat").read_text("ascii").splitlines())
        cache = sum(int(value) for key, value in fields if key in reclaimable)
    except (OSError, ValueError):  # No such group, or the word "max": no limit.
        return []
    return [limit - max(0, usage - cache)]

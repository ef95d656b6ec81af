"""How much memory a file may ask for.

A few bytes of a header can declare an array larger than the machine. Whoever is about to make an array whose size was read
from a file compares it with what is left here first.
"""

from __future__ import annotations

import sys
from pathlib import Path

from robustphase.rows.errors import DataError

#: Most bytes that one read may take, so that read-ahead stays small beside the data: 64 MiB.
MOST_BYTES_AT_ONCE = 64 << 20


def available_memory() -> int | None:
    """Bytes this process can still use, or None where the system does not tell.

    The least of: what the machine has left, what the control groups of the process allow (page cache they can give up
    counts as free), and what ``ulimit -v`` leaves.
    """
    found = [value for value in (_machine(), _control_groups(), _address_space()) if value is not None]
    return max(0, min(found)) if found else None


def check_room(needed: int, what: str) -> None:
    """Refuse to make something larger than the memory that is left."""
    available = available_memory()
    if available is not None and needed > available:
        raise DataError(f"{what} needs {in_bytes(needed)} of memory, but only {in_bytes(available)} are left.")


def in_bytes(count: int) -> str:
    """A number of bytes for a person: three digits and a unit."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            amount = count / size
            # Three digits, but never an exponent.
            return f"{amount:.3g} {unit}" if amount < 999.5 else f"{amount:.0f} {unit}"
    return f"{count} bytes"


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

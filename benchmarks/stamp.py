"""Which code a page of figures was measured with: commit, date, and the digest of the engine that the page speaks of."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import robustphase as rp

#: The work tree that the library is imported from.
TREE = Path(rp.__file__).parents[2]
#: What decides the figures; pages and stores that benchmarks write do not make a tree dirty.
CODE = ("src", "benchmarks/*.py")


def commit_of(tree: Path) -> str:
    """Short hash of the commit that a work tree is at, with ``+`` if its code differs; without git, the version."""
    head = _git(tree, "rev-parse", "--short", "HEAD")
    if not head:
        return f"of version {rp.__version__}"
    return f"{head}+" if _git(tree, "status", "--porcelain", "--", *CODE) else head


def _git(tree: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=tree, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


#: Read when a benchmark begins: what is committed while it runs is not what it measures.
COMMIT = commit_of(TREE)


class Stamp(NamedTuple):
    """The first line of a page of figures."""

    commit: str
    date: str
    engine: str

    def __str__(self) -> str:
        return f"Measured on commit {self.commit}, {self.date}, engine {self.engine}."


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def stamped(text: str, stamp: Stamp) -> str:
    """A page under a line that says what it was measured with."""
    return f"{stamp}\n\n{text}"


def stamp_of(page: str) -> Stamp | None:
    """The stamp that a page begins with."""
    found = re.match(r"Measured on commit (.+), (\d{4}-\d\d-\d\d), engine ([0-9a-f]{12})\.\n", page)
    return Stamp(*found.groups()) if found else None

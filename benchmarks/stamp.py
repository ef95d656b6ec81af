"""Which code a page of figures was measured with."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import robustphase as rp

#: The work tree that the library is imported from.
TREE = Path(rp.__file__).parents[2]
#: What decides the figures; pages and histories that benchmarks write do not make a tree dirty.
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


def stamped(text: str) -> str:
    """A page under a line that says which commit it was measured on, and when."""
    return f"{_line_of(COMMIT)} {datetime.now(UTC):%Y-%m-%d}.\n\n{text}"


def measured_here(page: Path) -> bool:
    """Whether a page holds figures of the present code, to which others can be added; of uncommitted code nobody knows."""
    return not COMMIT.endswith("+") and page.exists() and page.read_text("utf-8").startswith(_line_of(COMMIT))


def _line_of(commit: str) -> str:
    return f"Measured on commit {commit},"

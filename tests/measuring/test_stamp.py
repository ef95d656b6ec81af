"""Pages of figures say which code they were measured with."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from benchmarks import stamp

BENCHMARKS = Path(stamp.__file__).parent


def git(tree, *arguments):
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *who, *arguments], cwd=tree, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def tree(tmp_path):
    for name in ("src/a.py", "benchmarks/b.py", "benchmarks/results/b.jsonl", "docs/page.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one\n", encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def test_the_commit_of_a_clean_tree_is_its_hash(tree):
    assert stamp.commit_of(tree) == git(tree, "rev-parse", "--short", "HEAD")


@pytest.mark.parametrize("name", ["src/a.py", "src/new.py", "benchmarks/b.py"])
def test_changed_code_makes_a_tree_dirty(tree, name):
    (tree / name).write_text("two\n", encoding="utf-8")
    assert stamp.commit_of(tree) == git(tree, "rev-parse", "--short", "HEAD") + "+"


@pytest.mark.parametrize("name", ["docs/page.md", "benchmarks/results/b.jsonl"])
def test_what_benchmarks_write_does_not(tree, name):
    (tree / name).write_text("two\n", encoding="utf-8")
    assert not stamp.commit_of(tree).endswith("+")


def test_without_a_repository_the_version_stands_in(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert stamp.commit_of(tmp_path) == f"of version {stamp.rp.__version__}"


def test_the_first_line_names_commit_date_and_engine_and_the_page_follows():
    written = stamp.stamped("| a |\n|---|\n", stamp.Stamp("abc1234", "2026-11-17", "0123456789ab"))
    first, empty, *page = written.splitlines()
    assert first == "Measured on commit abc1234, 2026-11-17, engine 0123456789ab."
    assert empty == ""
    assert page == ["| a |", "|---|"]


def test_a_stamp_is_read_back(case):
    for commit in ["abc1234", "abc1234+", "of version 0.1.0"]:
        with case(commit):
            written = stamp.Stamp(commit, "2026-11-17", "0123456789ab")
            assert stamp.stamp_of(stamp.stamped("figures\n", written)) == written


def test_a_page_without_an_engine_has_no_stamp(case):
    for first in ["n = 100.", "Measured on commit abc1234, 2026-11-17.", ""]:
        with case(first):
            assert stamp.stamp_of(f"{first}\n\nfigures\n") is None


def test_every_benchmark_that_writes_a_page_leaves_the_writing_to_the_store():
    texts = {path.stem: path.read_text("utf-8") for path in BENCHMARKS.glob("*.py")}
    writers = {name for name, text in texts.items() if '"_generated/' in text} - {"registry", "stale", "readme"}
    assert len(writers) > 15
    others = {name for name in writers if "publish" not in texts[name]}
    # It writes its page through the table of the other.
    assert others == {"complex_recovery"}
    assert re.search(r"from benchmarks\.recovery import [^\n]*\bmeasure\b", texts["complex_recovery"])

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
    for name in ("src/a.py", "benchmarks/b.py", "benchmarks/history.jsonl", "docs/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
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


@pytest.mark.parametrize("name", ["docs/page.md", "benchmarks/history.jsonl"])
def test_what_benchmarks_write_does_not(tree, name):
    (tree / name).write_text("two\n", encoding="utf-8")
    assert not stamp.commit_of(tree).endswith("+")


def test_without_a_repository_the_version_stands_in(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert stamp.commit_of(tmp_path) == f"of version {stamp.rp.__version__}"


def test_the_first_line_names_commit_and_date_and_the_page_follows(monkeypatch):
    monkeypatch.setattr(stamp, "COMMIT", "abc1234")
    first, empty, *page = stamp.stamped("| a |\n|---|\n").splitlines()
    assert re.fullmatch(r"Measured on commit abc1234, \d{4}-\d\d-\d\d\.", first)
    assert empty == ""
    assert page == ["| a |", "|---|"]


def test_figures_are_added_only_to_those_of_the_same_commit(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    monkeypatch.setattr(stamp, "COMMIT", "abc1234")
    assert not stamp.measured_here(page)
    page.write_text(stamp.stamped("figures\n"), encoding="utf-8")
    assert stamp.measured_here(page)
    monkeypatch.setattr(stamp, "COMMIT", "abc1234+")
    assert not stamp.measured_here(page)
    page.write_text(stamp.stamped("figures\n"), encoding="utf-8")
    assert not stamp.measured_here(page)


def test_every_benchmark_that_writes_a_page_stamps_it():
    texts = {path.stem: path.read_text("utf-8") for path in BENCHMARKS.glob("*.py")}
    writers = {name for name, text in texts.items() if '"_generated"' in text or "docs/_generated" in text}
    assert len(writers) > 10
    unstamped = {name for name in writers if "stamped(" not in texts[name]}
    # This one writes its page through the table of the other.
    assert unstamped == {"complex_recovery"}
    assert re.search(r"from benchmarks\.recovery import [^\n]*\btable\b", texts["complex_recovery"])

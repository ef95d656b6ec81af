"""A page is stale when the engine it speaks of has changed."""

from __future__ import annotations

import re
import sys

import pytest
from benchmarks import render, stale, store
from benchmarks.registry import Benchmark

PAGE, PICTURE = "_generated/trial.md", "_static/trial.svg"


@pytest.fixture
def measured(docs, engine):
    render.publish(PAGE, "Figures.\n")
    (docs / PICTURE).write_bytes(b"<svg/>")
    store.keep_picture("trial", PICTURE)
    return docs


def said(docs):
    return [(problem.where, problem.what.split(",")[0], problem.benchmark) for problem in stale.problems(docs)]


def test_what_was_just_measured_is_not_stale(measured):
    assert said(measured) == []


def test_another_engine_makes_page_and_picture_stale(measured, engine):
    engine("b" * 12)
    assert said(measured) == [(name, f"measured with engine {'a' * 12}", "trial") for name in (PAGE, PICTURE)]


def test_a_page_without_a_stamp_and_a_picture_that_was_changed_are_named(measured):
    (measured / PAGE).write_text("Measured on commit abc1234, 2026-11-17.\n\nFigures.\n", encoding="utf-8")
    (measured / PICTURE).write_bytes(b"<svg></svg>")
    assert said(measured) == [(name, "has no stamp", "trial") for name in (PAGE, PICTURE)]


def test_missing_files_are_named(docs, engine):
    assert said(docs) == [(name, "missing", "trial") for name in (PAGE, PICTURE)]


def test_files_that_no_benchmark_writes_are_named(measured):
    (measured / "_generated" / "old.md").write_text("x\n", encoding="utf-8")
    (measured / "page.md").write_text(f"![a]({PICTURE})\n![b](_static/other.png)\n", encoding="utf-8")
    assert said(measured) == [
        ("_generated/old.md", "no benchmark writes it", ""),
        ("page.md, _static/other.png", "no benchmark draws it", ""),
    ]


TABLE = "| a | b |\n|---|---|\n| x | 1.5 |\n| y | 2.5 |\n"


def test_tables_of_figures_typed_by_hand_are_found(case, measured):
    for text, count in [
        (f"Words.\n\n{TABLE}", 1),
        (f"{stale.NOT_MEASURED}\n\n{TABLE}", 0),
        (f"{TABLE}\n{TABLE}", 2),
        ("| a 1.5 | b |\n|---|---|\n| x | 1 |\n| y | 2.5 |\n", 0),
    ]:
        with case(text):
            (measured / "page.md").write_text(text, encoding="utf-8")
            assert len([problem for problem in stale.problems(measured) if "by hand" in problem.what]) == count


def test_what_is_stale_is_listed_with_the_minutes_it_takes(measured, engine, capsys):
    engine("b" * 12)
    assert stale.main([]) == 1
    out = capsys.readouterr().out
    assert "python -m benchmarks trial" in out
    assert "  1.5  trial" in out


def test_nothing_is_said_against_current_pages(measured, capsys):
    assert stale.main([]) == 0
    assert "every page is of the present engine" in capsys.readouterr().out


@pytest.fixture
def ran(monkeypatch):
    """Commands that would have been run."""
    commands = []

    def run(command, **options):
        commands.append((command[-1], options["env"].get("OMP_NUM_THREADS")))
        return type("Done", (), {"returncode": int("bad" in command[-1]), "stderr": "why"})

    monkeypatch.setattr(stale.subprocess, "run", run)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    return commands


def benchmark(name, minutes, cores=2):
    return Benchmark(name, "?", minutes, ("means",), cores=cores)


def test_only_what_fits_into_the_minutes_is_run(ran, capsys):
    assert stale.measure([benchmark("short", 1), benchmark("long", 10)], minutes=5) == []
    assert [name for name, _ in ran] == ["short"]
    assert "long: left for later" in capsys.readouterr().out


def test_what_measures_times_keeps_its_threads(ran):
    stale.measure([benchmark("timed", 1, "alone"), benchmark("other", 1)], minutes=5)
    assert ran == [("timed", "5"), ("other", "1")]


def test_a_failure_is_told_and_the_rest_is_run(ran, capsys):
    assert stale.measure([benchmark("bad", 1), benchmark("good", 1)], minutes=5) == ["bad"]
    assert [name for name, _ in ran] == ["bad", "good"]
    assert re.search(r"bad: failed after \d+ s, 1 minutes planned; exit code 1\nwhy", capsys.readouterr().out)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_process_that_cannot_be_started_does_not_end_the_others(monkeypatch, capsys, cores):
    def run(command, **options):
        if command[-1] == "first":
            raise OSError("no room")
        return type("Done", (), {"returncode": 0, "stderr": ""})

    monkeypatch.setattr(stale.subprocess, "run", run)
    chosen = [benchmark(name, 1, cores) for name in ("first", "second", "third")]
    assert stale.measure(chosen, minutes=5) == ["first"]
    out = capsys.readouterr().out
    assert "OSError: no room" in out
    for name in ("second", "third"):
        assert re.search(rf"{name}: \d+ s, 1 minutes planned\n", out)


def test_the_end_names_what_failed(measured, engine, monkeypatch, capsys):
    # A run may fail after it has written its pages: none is stale then, and the failure still counts.
    engine("b" * 12)

    def run(command, **options):
        render.publish(PAGE, "New figures.\n")
        store.keep_picture("trial", PICTURE)
        return type("Done", (), {"returncode": 3, "stderr": "why"})

    monkeypatch.setattr(stale.subprocess, "run", run)
    assert stale.main(["--run"]) == 1
    assert capsys.readouterr().out.endswith("1 run failed, the others went on: trial\n")


def test_shortest_first(monkeypatch):
    known = {name: benchmark(name, minutes) for name, minutes in (("b", 3), ("a", 1), ("c", 2))}
    monkeypatch.setattr(stale, "BENCHMARKS", known)
    found = [stale.Problem("page", "stale", name) for name in "bacb"] + [stale.Problem("typed", "by hand")]
    assert [one.name for one in stale.to_run(found)] == ["a", "c", "b"]


def test_a_run_cures_what_is_stale(measured, engine, monkeypatch, capsys):
    engine("b" * 12)

    def run(command, **options):
        assert command == [sys.executable, "-m", "benchmarks", "trial"]
        render.publish(PAGE, "New figures.\n")
        store.keep_picture("trial", PICTURE)
        return type("Done", (), {"returncode": 0, "stderr": ""})

    monkeypatch.setattr(stale.subprocess, "run", run)
    assert stale.main(["--run"]) == 0

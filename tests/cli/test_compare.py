"""``compare`` runs, tabulates, keeps and continues."""

from __future__ import annotations

import csv

import pytest

import robustphase.cli.compare as module
from robustphase.experiments import Comparison, ComparisonInterrupted
from robustphase.experiments import compare as run_comparison

from .conftest import leftovers

SMALL = ("--n", 10, "--m", 300, "--seeds", 1, "--workers", 1)
METHODS = ("--methods", "robustphase,wirtinger_flow", "--attacks", "decoy_loud,huge", "--contaminations", "0.05,0.1")


def kept(path) -> list[dict[str, str]]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def test_the_runs_are_those_of_the_python_interface(run, tmp_path):
    told = run("compare", *METHODS, *SMALL, "--out", "runs.csv", "--table", "table.md")
    expected = run_comparison(
        ["robustphase", "wirtinger_flow"], ["decoy_loud", "huge"], [0.05, 0.1], n=10, m=300, seeds=1, workers=1
    )
    found = {(row["method"], row["attack"], row["contamination"]): row["error"] for row in kept(tmp_path / "runs.csv")}
    assert found == {(r.method, r.attack, repr(r.contamination)): repr(r.error) for r in expected.runs}
    survived = sum(r.survived for r in expected.only(method="robustphase", contamination=0.1).runs)
    (row,) = [line for line in told.stdout.splitlines() if line.split()[:2] == ["robustphase", "0.1"]]
    assert row.split()[2] == f"{survived}/2"
    assert "decoy_loud" in (tmp_path / "table.md").read_text()
    assert told.stdout.endswith("runs: runs.csv\ntable: table.md\n")


def test_a_method_that_is_lost_says_under_what(run):
    told = run("compare", "--methods", "wirtinger_flow", "--attacks", "huge,none", *SMALL).stdout
    assert any(line.split()[:3] == ["wirtinger_flow", "0.1", "1/2"] and "huge" in line for line in told.splitlines())


def test_the_same_command_runs_only_what_is_missing(run, tmp_path, monkeypatch):
    run("compare", *METHODS, *SMALL, "--out", "runs.csv")
    before = (tmp_path / "runs.csv").read_bytes()
    run("compare", *METHODS, *SMALL, "--out", "runs.csv")
    assert (tmp_path / "runs.csv").read_bytes() == before
    said = run("compare", *METHODS, *SMALL, "--noise-std", 1, "--out", "runs.csv", code=1).stderr
    assert "other settings" in said
    assert (tmp_path / "runs.csv").read_bytes() == before


def test_progress_goes_to_standard_error_in_plain_lines(run):
    result = run("compare", "--methods", "wirtinger_flow", "--attacks", "huge,none", *SMALL)
    assert result.stderr.splitlines() == [
        "comparing: 1/2 huge, contamination 0.1",
        "comparing: 2/2 none, contamination 0.1",
    ]
    assert run("compare", "--methods", "wirtinger_flow", "--attacks", "none", *SMALL, "--quiet").output == ""


def test_bad_usage(case, run, tmp_path):
    for options, said in [
        (("--methods", "robustfase"), "Did you mean robustphase"),
        (("--attacks", "decoy,hugee"), "Did you mean huge"),
        (("--attacks", ","), "the list is empty"),
        (("--contaminations", "0.1,20"), "Did you mean 0.2 (20 percent)?"),
        (("--noises", "cauchy"), "is not known"),
        (("--out", "runs.txt"), "must end in .csv or .parquet"),
        (("--out", "same.csv", "--table", "same.csv"), "name the same file"),
    ]:
        with case(options):
            assert said in run("compare", *options, code=2).stderr
            assert not list(tmp_path.iterdir())


def test_an_interruption_shows_what_was_finished(run, monkeypatch):
    finished = run_comparison("wirtinger_flow", "none", 0.1, n=5, m=100, seeds=1, workers=1)

    def interrupted(*arguments, **settings) -> Comparison:
        raise ComparisonInterrupted("interrupted", finished)

    monkeypatch.setattr(module, "run_comparison", interrupted)
    result = run("compare", code=130)
    assert result.stderr == "interrupted; nothing was written\n"
    assert "wirtinger_flow" in result.stdout


def test_a_loss_of_ours_to_a_rival_is_told(run, monkeypatch):
    won = run_comparison(["robustphase", "wirtinger_flow"], "none", 0.1, n=5, m=200, seeds=1, workers=1)
    ours, rival = won.runs
    monkeypatch.setattr(
        module,
        "run_comparison",
        lambda *arguments, **settings: Comparison((ours._replace(error=1.0, survived=False), rival)),
    )
    told = run("compare").stdout
    assert "robustphase is lost under none at 0.1 (student, seed 0), where wirtinger_flow survives." in told


def test_all_means_all(run, monkeypatch):
    import robustphase as rp

    asked = {}

    def note(methods, attacks, contaminations, noises, **settings) -> Comparison:
        asked.update(methods=methods, attacks=attacks)
        return Comparison(())

    monkeypatch.setattr(module, "run_comparison", note)
    run("compare", "--methods", "all", "--attacks", "all")
    assert set(asked["methods"]) == {"robustphase", "robustphase-auto", "oracle", *rp.baselines.METHODS}
    assert asked["attacks"] == tuple(rp.simulate.ADVERSARIES)


def test_a_parquet_file_is_written_at_the_end(run, tmp_path):
    pytest.importorskip("pyarrow")
    run("compare", "--methods", "wirtinger_flow", "--attacks", "none", *SMALL, "--out", "runs.parquet")
    assert (tmp_path / "runs.parquet").read_bytes()[:4] == b"PAR1"
    assert not leftovers(tmp_path)

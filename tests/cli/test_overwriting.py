"""Nothing that is there is written over, unless --overwrite is given."""

from __future__ import annotations

import json
import os
import time

import numpy as np
import pytest

import robustphase.cli.demo as demo_module
import robustphase.cli.demo_data as demo_data
from robustphase.files import save_samples


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["old.npz", "old.h5", "old.zarr", "old.parquet"])
def test_simulate_leaves_existing_data_alone(run, tmp_path, name):
    small = ("--n", 4, "--m", 50)
    run("simulate", name, *small, "--seed", 1)
    before = contents(tmp_path)
    said = run("simulate", name, *small, "--seed", 2, code=1).output
    assert "exists already" in said
    assert "--overwrite" in said
    assert contents(tmp_path) == before
    run("simulate", name, *small, "--seed", 2, "--overwrite")
    assert contents(tmp_path) != before


@pytest.mark.parametrize("option", ["--truth", "--responses"])
def test_simulate_leaves_the_files_beside_the_data_alone(run, tmp_path, option):
    form = "new.npy" if option == "--responses" else "new.npz"
    (tmp_path / "mine.npy").write_bytes(b"mine")
    run("simulate", form, "--n", 4, "--m", 50, option, "mine.npy", code=1)
    assert (tmp_path / "mine.npy").read_bytes() == b"mine"
    assert not (tmp_path / form).exists()


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_fit_leaves_existing_files_alone(run, tmp_path, data, option):
    (tmp_path / "precious").write_bytes(b"mine")
    assert "exists already" in run("fit", data, option, "precious", code=1).output
    assert (tmp_path / "precious").read_bytes() == b"mine"
    run("fit", data, option, "precious", "--noise-mean", "unknown", "--overwrite")
    assert (tmp_path / "precious").read_bytes() != b"mine"


def test_inputs_of_the_same_name_do_not_share_a_result(run, tmp_path, world):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        np.savez(tmp_path / folder / "data.npz", A=world.A, y=world.y)
    run("fit", "one/data.npz", "--noise-mean", "unknown")
    before = (tmp_path / "data-result.npz").read_bytes()
    assert "data-result.npz exists already" in run("fit", "two/data.npz", code=1).output
    assert (tmp_path / "data-result.npz").read_bytes() == before


def test_fit_never_writes_over_its_start(run, tmp_path, data):
    np.save(tmp_path / "start.npy", np.ones(9))
    before = (tmp_path / "start.npy").read_bytes()
    said = run("fit", data, "--init", "start.npy", "--out", "start.npy", "--overwrite", code=2).output
    assert "--init and --out name the same file" in said
    assert (tmp_path / "start.npy").read_bytes() == before


def test_fit_never_writes_into_its_data(run, tmp_path, world, case):
    pytest.importorskip("zarr")
    save_samples(tmp_path / "data.zarr", world.A, world.y)
    before = contents(tmp_path / "data.zarr")
    for option in ("--out", "--report", "--checkpoint"):
        with case(option):
            said = run("fit", "data.zarr", option, "data.zarr/A/zarr.json", "--overwrite", code=2).output
            assert "inside of the data" in said
            assert contents(tmp_path / "data.zarr") == before


def test_leftovers_of_killed_runs_are_swept_but_not_those_of_running_ones(run, tmp_path, data):
    old, new, mine = (
        tmp_path / name for name in (".r.npz.0123456789ab.tmp", ".r.npz.ba9876543210.tmp", ".r.npz.mine.tmp")
    )
    for path in (old, new, mine):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    os.utime(mine, (time.time() - 7200,) * 2)
    run("fit", data, "--out", "r.npz", "--noise-mean", "unknown")
    assert not old.exists()
    assert new.exists()
    assert mine.exists()


def test_a_run_that_goes_on_writes_over_nothing_but_its_own(run, tmp_path, data):
    """A checkpoint says that a run was cut off, not that every file is one of its outputs."""
    (tmp_path / "precious.npz").write_bytes(b"mine")
    os.utime(tmp_path / "precious.npz", (time.time() - 60,) * 2)
    asked = ("fit", data, "--noise-mean", "unknown", "--checkpoint", "kept", "--resume", "--keep-checkpoint")
    run(*asked, "--out", "first.npz")
    said = run(*asked, "--out", "precious.npz", code=1).output
    assert "precious.npz exists already" in said
    assert (tmp_path / "precious.npz").read_bytes() == b"mine"
    run(*asked, "--out", "first.npz")


def test_report_leaves_existing_files_alone(run, tmp_path, data, case):
    run("fit", data, "--noise-mean", "unknown", "--out", "result.npz")
    for option in ("--out", "--flagged"):
        (tmp_path / "precious").write_bytes(b"mine")
        asked = ("report", "result.npz", option, "precious")
        with case(option):
            assert "exists already" in run(*asked, code=1).output
            assert (tmp_path / "precious").read_bytes() == b"mine"
            run(*asked, "--overwrite")
            assert (tmp_path / "precious").read_bytes() != b"mine"


COMPARISON = ("compare", "--methods", "wirtinger_flow", "--attacks", "none", "--n", 5, "--m", 100, "--seeds", 1)
SEARCH = ("attack", "--method", "wirtinger_flow", "--n", 5, "--m", 100, "--budget", 6, "--confirm", 1, "--workers", 1)
CLAIM = ("reproduce", "Lemma 2.1, smoothness", "--quick", "--workers", 1)


@pytest.mark.parametrize(
    "asked",
    [
        (*COMPARISON, "--table", "precious.md"),
        (*COMPARISON, "--out", "precious.parquet"),
        (*SEARCH, "--report", "precious.md"),
        (*CLAIM, "--page", "precious.md"),
    ],
    ids=["compare --table", "compare --out", "attack --report", "reproduce --page"],
)
def test_experiments_leave_existing_files_alone(run, tmp_path, asked):
    precious = tmp_path / asked[-1]
    if precious.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    precious.write_bytes(b"mine")
    assert "exists already" in run(*asked, code=1).output
    assert contents(tmp_path) == {precious.relative_to(tmp_path): b"mine"}
    run(*asked, "--overwrite")
    assert precious.read_bytes() != b"mine"


@pytest.mark.parametrize(
    "asked", [(*COMPARISON, "--out", "mine.csv"), (*SEARCH, "--store", "mine.json")], ids=["compare", "attack"]
)
def test_what_is_continued_is_never_written_over(run, tmp_path, asked):
    """Days of runs must not be lost to an option that was meant for the table beside them."""
    (tmp_path / asked[-1]).write_bytes(b"1,2,3\n")
    for more in ((), ("--overwrite",)):
        assert "was left as it is" in run(*asked, *more, code=1).output
        assert (tmp_path / asked[-1]).read_bytes() == b"1,2,3\n"
    (tmp_path / asked[-1]).unlink()
    run(*asked)
    made = (tmp_path / asked[-1]).read_bytes()
    run(*asked)
    assert (tmp_path / asked[-1]).read_bytes() == made


def test_reproduce_adds_to_verdicts_or_leaves_them_alone(run, tmp_path):
    run(*CLAIM, "--folder", "kept")
    before = contents(tmp_path)
    other = ("reproduce", "Lemma 2.1, strong convexity", "--quick", "--workers", 1, "--folder", "kept")
    said = run(*other, code=1).output
    assert "holds verdicts already" in said
    assert "--resume" in said
    assert contents(tmp_path) == before
    run(*other, "--resume")
    assert set(before) < set(contents(tmp_path))
    kept = json.loads((tmp_path / "kept" / "verdicts-quick.json").read_text())["verdicts"]
    assert len(kept) == 2
    run(*other, "--overwrite")
    kept = json.loads((tmp_path / "kept" / "verdicts-quick.json").read_text())["verdicts"]
    assert [verdict["part"] for verdict in kept] == ["strong convexity"]


@pytest.mark.parametrize("options", [(), ("--resume",)])
def test_reproduce_leaves_files_alone_that_have_the_names_of_its_own(run, tmp_path, options):
    (tmp_path / "kept").mkdir()
    for name, said in (("lemma-2-1-smoothness.svg", "exists already"), ("verdicts-quick.json", "verdicts")):
        (tmp_path / "kept" / name).write_bytes(b"mine")
        assert said in run(*CLAIM, "--folder", "kept", *options, code=1).output
        assert (tmp_path / "kept" / name).read_bytes() == b"mine"
        (tmp_path / "kept" / name).unlink()
    assert "name the same file" in run(*CLAIM, "--folder", "kept", "--page", "kept/verdicts-quick.json", code=2).output


def test_the_demo_writes_over_its_own_report_alone(run, tmp_path, monkeypatch):
    page = tmp_path / "robustphase-demo.html"
    page.write_bytes(b"mine")
    assert "exists already" in run("demo", code=1).output
    assert page.read_bytes() == b"mine"
    monkeypatch.setattr(demo_module, "RIVALS", {})
    for module in (demo_module, demo_data):  # A smaller picture.
        monkeypatch.setattr(module, "SIDE", 8)
    run("demo", "--overwrite")
    assert page.read_bytes() != b"mine"
    page.write_bytes(page.read_bytes() + b"<!-- old -->")
    run("demo")
    assert not page.read_bytes().endswith(b"<!-- old -->")

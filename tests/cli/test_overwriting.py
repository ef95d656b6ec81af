"""Nothing that is there is written over, unless --overwrite is given."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

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


@pytest.mark.parametrize("option", ["--out", "--report", "--checkpoint"])
def test_fit_never_writes_into_its_data(run, tmp_path, world, option):
    pytest.importorskip("zarr")
    save_samples(tmp_path / "data.zarr", world.A, world.y)
    before = contents(tmp_path / "data.zarr")
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

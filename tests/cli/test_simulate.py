"""Data sets on disk are those of the Python interface."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import robustphase as rp
from robustphase.files import open_samples

from .conftest import leftovers

SIZES = ("--n", 9, "--m", 60, "--seed", 4)


def expected(**settings: object) -> rp.simulate.World:
    return rp.simulate.make_world(9, 60, seed=4, **settings)


@pytest.mark.parametrize("name", ["data.npz", "data.h5", "data.zarr"])
def test_every_form_holds_the_world_that_the_settings_make(run, tmp_path, name):
    options = ("--attack", "erase", "--noise", "pareto", "--noise-mean", 2, "--contamination", 0.2, "--norm", 3)
    run("simulate", name, *SIZES, *options)
    world = expected(attack="erase", noise="pareto", noise_mean=2.0, contamination=0.2, norm=3.0)
    with open_samples(tmp_path / name) as samples:
        A = rp.rows.rows_at(samples.covariates, np.arange(60))
        np.testing.assert_array_equal(A, world.A)
        np.testing.assert_array_equal(samples.responses, world.y)
        np.testing.assert_array_equal(samples.truth, world.truth)
        assert samples.metadata["touched"] == np.flatnonzero(world.touched).tolist()
        assert samples.metadata["attack"] == "erase"
        assert samples.metadata["command"].startswith(f"robustphase simulate {name} --n 9")
    assert not leftovers(tmp_path)


def test_the_truth_can_be_kept_apart(run, tmp_path):
    run("simulate", "data.npz", *SIZES, "--truth", "truth.npz")
    with open_samples(tmp_path / "data.npz") as samples:
        assert samples.truth is None
        assert "touched" not in json.dumps(samples.metadata)
    with np.load(tmp_path / "truth.npz", allow_pickle=False) as truth:
        np.testing.assert_array_equal(truth["truth"], expected().truth)
        np.testing.assert_array_equal(truth["touched"], expected().touched)


def test_a_pair_of_npy_files(run, tmp_path):
    run("simulate", "A.npy", "--responses", "y.npy", "--field", "complex", "--single", *SIZES)
    world = expected(field="complex", dtype="complex64")
    np.testing.assert_array_equal(np.load(tmp_path / "A.npy", allow_pickle=False), world.A)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy", allow_pickle=False), world.y)


def test_bad_usage_is_told_apart_and_explained(case, run, tmp_path):
    for arguments, said in [
        (("data.txt",), "must end in .npz"),
        (("A.npy",), "--responses Y.npy"),
        (("data.npz", "--responses", "y.npy"), "holds the responses itself"),
        (("A.npy", "--responses", "y.npz"), "must end in .npy"),
        (("A.npy", "--responses", "A.npy"), "name the same file"),
        (("data.npz", "--truth", "data.npz"), "name the same file"),
        (("data.npz", "--contamination", "10"), "Did you mean 0.1 (10 percent)?"),
        (("data.npz", "--contamination", "0.7"), "nobody can tell the good half"),
        (("data.npz", "--contamination", "auto"), "not a number in [0, 0.5)"),
        (("data.npz", "--attack", "decoyy"), "Did you mean decoy"),
        (("data.npz", "--noise", "zzzzzz"), "Known: gaussian"),
        (("data.npz", "--n", "0"), "0 is not in the range"),
        ((), "Missing argument"),
    ]:
        with case(arguments):
            assert said in run("simulate", *arguments, code=2).stderr
            assert not list(tmp_path.iterdir())


def test_an_error_of_the_library_speaks_in_options(run):
    said = run("simulate", "data.npz", "--n", 10, "--signal", "image", code=1).stderr
    assert said == "error: n must be a square when --signal image, got 10. Pass --n 9 or --n 16.\n"


@pytest.mark.parametrize(("name", "module"), [("a.h5", "h5py"), ("a.zarr", "zarr"), ("a.parquet", "pyarrow")])
def test_a_missing_package_is_named_with_the_command_to_install_it(run, tmp_path, monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    said = run("simulate", name, *SIZES, code=1).stderr
    extra = "parquet" if module == "pyarrow" else "io"
    assert said.startswith(f"error: writing .{name.split('.')[1]} needs {module}; ")
    assert f"pip install 'robustphase[{extra}]'" in said
    assert not list(tmp_path.iterdir())


def test_a_zarr_folder_may_be_written_again_but_no_other_folder(run, tmp_path):
    run("simulate", "data.zarr", *SIZES)
    run("simulate", "data.zarr", *SIZES, "--overwrite")
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "letter.txt").write_text("keep me")
    assert "it is a folder" in run("simulate", "mine.zarr", *SIZES, "--overwrite", code=1).stderr
    assert (tmp_path / "mine.zarr" / "letter.txt").read_text() == "keep me"

"""A fit on data in a file is the fit on the same data in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import robustphase as rp
from robustphase.files import memory_needed, open_samples, save_samples
from robustphase.rows import MemoryRows
from robustphase.rows.opening import open_rows_at

pytestmark = pytest.mark.usefixtures("forked_probes")


@pytest.fixture(scope="module")
def world():
    return rp.simulate.make_world(n=12, m=700, contamination=0.1, attack="leverage", seed=3)


@pytest.fixture(scope="module")
def in_memory(world):
    return rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)


def same_fit(there, here):
    assert_allclose(there.signal_, here.signal_, atol=1e-8 * np.linalg.norm(here.signal_))
    assert_allclose(there.weights_, here.weights_, atol=1e-8)


def test_the_fit_of_a_file_is_that_of_the_arrays(stored_world, in_memory):
    with open_samples(stored_world) as samples:
        samples.covariates.block_rows = 100
        same_fit(rp.RobustPhaseRetrieval(0.1).fit(samples.covariates, samples.responses), in_memory)


@pytest.fixture
def stored_world(suffix, world, tmp_path):
    save_samples(tmp_path / f"world{suffix}", world.A, world.y, truth=world.truth)
    return tmp_path / f"world{suffix}"


def test_the_fit_of_an_open_dataset_is_that_of_the_arrays(world, in_memory, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "world.h5", "w") as file:
        file.create_dataset("A", data=world.A, chunks=(64, 12), compression="gzip")
        file["y"] = world.y
        same_fit(rp.RobustPhaseRetrieval(0.1).fit(file["A"], file["y"]), in_memory)


def test_the_fit_of_a_zarr_array_is_that_of_the_arrays(world, in_memory, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(store=tmp_path / "A.zarr", shape=world.A.shape, dtype="f8", chunks=(64, 12))
    array[:] = world.A
    same_fit(rp.RobustPhaseRetrieval(0.1).fit(array, world.y), in_memory)


def test_the_fit_of_a_memory_map_is_that_of_the_arrays(world, in_memory, tmp_path):
    np.save(tmp_path / "A.npy", world.A)
    same_fit(rp.RobustPhaseRetrieval(0.1).fit(np.load(tmp_path / "A.npy", mmap_mode="r"), world.y), in_memory)


@pytest.mark.filterwarnings("ignore:stopped after 5 iterations")
@pytest.mark.parametrize(
    "options",
    [
        {"noise_mean": "unknown"},
        {"step": "paper", "max_iter": 5, "noise_mean": "unknown"},
        {"batches": 4},
        {"whiten": True},
    ],
    ids=["background", "paper", "batches", "whiten"],
)
def test_other_modes_work_from_disk(options, world, tmp_path):
    np.save(tmp_path / "A.npy", world.A)
    model = rp.RobustPhaseRetrieval(0.1, **options)
    # Cut into the same blocks: a start sums parts in single precision, and a descent cut short keeps its roundings.
    here = model.fit(MemoryRows(world.A, block_rows=90, threads=1), world.y).signal_
    there = model.fit(open_rows_at(tmp_path / "A.npy", block_rows=90), world.y).signal_
    assert_allclose(there, here, atol=1e-8 * np.linalg.norm(here))


def test_single_precision_and_complex_data(suffix, tmp_path, case):
    for dtype, field in (("float32", "real"), ("complex128", "complex")):
        world = rp.simulate.make_world(n=8, m=800, attack="leverage", noise_std=0.1, field=field, dtype=dtype, seed=2)
        here = rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        path = tmp_path / f"{dtype}{suffix}"
        save_samples(path, world.A, world.y)
        with case(dtype), open_samples(path) as samples:
            there = rp.RobustPhaseRetrieval(0.1).fit(samples.covariates, samples.responses)
            assert_allclose(there.signal_, here.signal_, atol=1e-8)
            assert rp.distance(there.signal_, world.truth, relative=True) < 0.05


@pytest.mark.parametrize("suffix", [".npz", ".zarr"])
def test_rows_that_are_not_finite_are_refused_by_the_fit_or_dropped(suffix, world, tmp_path):
    pytest.importorskip({".zarr": "zarr"}.get(suffix, "numpy"))
    A = world.A.copy()
    A[17, 2] = np.nan
    A[30] = 1e300
    save_samples(tmp_path / f"bad{suffix}", A, world.y)
    with open_samples(tmp_path / f"bad{suffix}") as samples:
        with pytest.raises(ValueError, match=r"1 rows of A hold NaN or infinite entries \(first: row 17\)"):
            rp.RobustPhaseRetrieval(0.1).fit(samples.covariates, samples.responses)
        model = rp.RobustPhaseRetrieval(0.1, nonfinite="drop").fit(samples.covariates, samples.responses)
    assert model.weights_[17] == model.weights_[30] == 0
    assert rp.distance(model.signal_, world.truth, relative=True) < 0.2


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_estimate_of_memory_holds_and_is_not_far_off(dtype, rng, tmp_path):
    m, n = 30_000, 10
    A = rng.standard_normal((m, n)).astype(dtype)
    if dtype == "complex128":
        A = ((A + 1j * rng.standard_normal((m, n))) / np.sqrt(2)).astype(dtype)
    y = np.abs(A @ np.ones(n)) ** 2 + rng.standard_normal(m)
    A[: m // 20] *= 2
    np.save(tmp_path / "A.npy", A)
    source = open_rows_at(tmp_path / "A.npy", threads=1)
    estimate = memory_needed(source)
    # What the first fit of a process imports and tabulates is not its own.
    rp.RobustPhaseRetrieval(0.1).fit(source, y)
    tracemalloc.start()
    rp.RobustPhaseRetrieval(0.1).fit(source, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.2 * estimate < peak < estimate


def test_the_estimate_of_memory_counts_samples_and_not_the_size_of_the_rows(tmp_path):
    np.save(tmp_path / "A.npy", np.zeros((20_000, 100), np.float32))
    np.save(tmp_path / "wide.npy", np.zeros((20_000, 300), np.float32))
    narrow, wide = memory_needed(tmp_path / "A.npy"), memory_needed(tmp_path / "wide.npy")
    assert 20_000 * 250 < narrow < 20_000 * 300 + (60 << 20)
    assert wide - narrow < (20 << 20)

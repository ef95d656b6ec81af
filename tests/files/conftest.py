"""Samples in files of every kind."""

from __future__ import annotations

import pytest

from robustphase.files import save_samples

SUFFIXES = [".npz", ".h5", ".zarr", ".parquet"]
PACKAGES = {".h5": "h5py", ".hdf5": "h5py", ".zarr": "zarr", ".parquet": "pyarrow"}


@pytest.fixture(params=SUFFIXES)
def suffix(request):
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    return request.param


@pytest.fixture
def arrays(rng):
    return rng.standard_normal((50, 4)), rng.random(50)


@pytest.fixture
def stored(suffix, arrays, tmp_path):
    """A file of each kind."""
    save_samples(tmp_path / f"samples{suffix}", *arrays)
    return tmp_path / f"samples{suffix}"

"""What is saved comes back, from every kind of file."""

from __future__ import annotations

import os
from pathlib import PosixPath

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from robustphase import atomic
from robustphase.files import DataError, StoredSamples, fingerprint, open_samples, save_samples, saving
from robustphase.rows import MemoryRows, RowSource
from robustphase.rows.blocked import BlockedRows
from robustphase.rows.io.npy import FileRows

pytestmark = pytest.mark.usefixtures("forked_probes")

DTYPES = ["float32", "float64", "complex64", "complex128"]


def all_rows(samples: StoredSamples) -> np.ndarray:
    return samples.covariates.read(0, samples.covariates.shape[0])


def test_samples_truth_and_notes_come_back(suffix, rng, tmp_path, case):
    notes = {
        "seed": np.int64(3),
        "attack": "<b>décoy</b>",
        "levels": np.array([0.1, 0.2]),
        "deep": {"a": [1, None, True]},
    }
    for dtype in DTYPES:
        A = (rng.standard_normal((30, 3)) + (1j * rng.standard_normal((30, 3)) if dtype[0] == "c" else 0)).astype(dtype)
        y, truth = rng.random(30), A[0].astype(np.result_type(dtype, np.float64))
        path = tmp_path / f"{dtype}{suffix}"
        save_samples(path, A, y, truth, **notes)
        with case(dtype), open_samples(path) as samples:
            assert_array_equal(all_rows(samples), A)
            assert samples.covariates.dtype == A.dtype
            assert_array_equal(samples.responses, y)
            assert samples.responses.dtype == np.float64
            assert_array_equal(samples.truth, truth)
            assert samples.metadata == {**notes, "seed": 3, "levels": [0.1, 0.2]}
            assert samples.path == path
            assert samples.description.startswith(f"30 samples, 3 unknowns, {dtype}, ")
            assert str(path) in repr(samples)


def test_truth_and_notes_are_optional(stored, arrays):
    with open_samples(stored) as samples:
        assert samples.truth is None
        assert samples.metadata == {}
        assert_array_equal(all_rows(samples), arrays[0])


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".zarr", ".parquet"])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_numbers_survive_a_round_trip(suffix, data, tmp_path):
    pytest.importorskip({".h5": "h5py", ".zarr": "zarr", ".parquet": "pyarrow"}.get(suffix, "numpy"))
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=9))
    A = data.draw(hnp.arrays(data.draw(st.sampled_from(DTYPES)), shape))
    y = data.draw(hnp.arrays(np.float64, shape[0]))
    path = tmp_path / f"samples{suffix}"
    save_samples(path, A, y)
    with open_samples(path) as samples:
        # Bit for bit, NaN and infinities included: whether to use them is for the fit to judge.
        assert all_rows(samples).tobytes() == A.tobytes()
        assert samples.responses.tobytes() == y.tobytes()


def test_a_pair_of_npy_files(arrays, tmp_path):
    A, y = arrays
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "y.npy", y[:, np.newaxis].astype(np.float32))
    with open_samples(tmp_path / "A.npy", responses=tmp_path / "y.npy") as samples:
        assert isinstance(samples.covariates, FileRows)
        assert_array_equal(all_rows(samples), A)
        assert_array_equal(samples.responses, y.astype(np.float32))


def test_responses_from_elsewhere_win(stored, arrays, tmp_path):
    other = np.arange(50)
    np.save(tmp_path / "other.npy", other)
    for given_ in (tmp_path / "other.npy", str(tmp_path / "other.npy"), other, list(other)):
        with open_samples(stored, given_) as samples:
            assert_array_equal(samples.responses, other)


def test_responses_may_come_from_a_file_of_another_kind(stored, arrays, tmp_path):
    A, y = arrays
    np.save(tmp_path / "A.npy", A)
    with open_samples(tmp_path / "A.npy", stored) as samples:
        assert_array_equal(samples.responses, y)


def test_other_names(case, suffix, arrays, tmp_path):
    for nested in ["run/3/rows", "rows"]:
        with case(nested):
            A, y = arrays
            path = tmp_path / f"{nested.replace('/', '-')}{suffix}"
            if suffix == ".npz":
                np.savez(path, **{nested: A, "intensity": y})
            elif suffix == ".h5":
                h5py = pytest.importorskip("h5py")
                with h5py.File(path, "w") as file:
                    file[nested], file["intensity"] = A, y
            elif suffix == ".zarr":
                zarr = pytest.importorskip("zarr")
                group = zarr.create_group(path)
                group.create_array(nested, data=A)
                group.create_array("intensity", data=y)
            else:
                pa = pytest.importorskip("pyarrow")
                pq = pytest.importorskip("pyarrow.parquet")
                pq.write_table(pa.table({**{f"{nested}{i}": A[:, i] for i in range(4)}, "intensity": y}), path)
            with open_samples(path, covariates_name=nested, responses_name="intensity") as samples:
                assert_array_equal(all_rows(samples), A)
                assert_array_equal(samples.responses, y)


def test_a_plain_archive_is_read_in_place_and_a_compressed_one_unpacked(arrays, tmp_path):
    A, y = arrays
    np.savez(tmp_path / "plain.npz", A=A, y=y)
    np.savez_compressed(tmp_path / "packed.npz", A=np.asfortranarray(A), y=y)
    with open_samples(tmp_path / "plain.npz") as plain, open_samples(tmp_path / "packed.npz") as packed:
        assert isinstance(plain.covariates, FileRows)
        assert isinstance(packed.covariates, MemoryRows)
        assert_array_equal(all_rows(plain), A)
        assert_array_equal(all_rows(packed), A)


def test_numpy_reads_what_we_save(arrays, tmp_path):
    A, y = arrays
    save_samples(tmp_path / "samples.npz", A, y, truth=A[0], seed=1)
    with np.load(tmp_path / "samples.npz", allow_pickle=False) as archive:
        assert_array_equal(archive["A"], A)
        assert_array_equal(archive["y"], y)
        assert archive["metadata"].item() == '{"seed": 1}'


def test_a_source_is_saved_block_by_block(suffix, tmp_path):
    class Made(BlockedRows):
        """More rows than anybody would want in memory at once, made when they are asked for."""

        shape, dtype, longest = (60_000, 30), np.dtype(np.float64), 0

        def read(self, start, stop):
            self.longest = max(self.longest, stop - start)
            return np.arange(start, stop)[:, np.newaxis] + np.zeros(30)

    made, path = Made(), tmp_path / f"samples{suffix}"
    save_samples(path, made, np.zeros(60_000))
    assert made.longest * 30 * 8 <= 16 << 20
    with open_samples(path) as samples:
        assert_array_equal(samples.covariates.read(59_998, 60_000), made.read(59_998, 60_000))
        save_samples(tmp_path / "copy.npz", samples.covariates, samples.responses)
        with open_samples(tmp_path / "copy.npz") as copy:
            assert copy.fingerprint == samples.fingerprint


# --- fingerprints ----------------------------------------------------------------------------------------------------


def test_the_fingerprint_is_the_same_in_every_kind_of_file(stored, arrays):
    with open_samples(stored) as samples:
        assert samples.fingerprint == fingerprint(*arrays)
        assert len(samples.fingerprint) == 64


def test_every_change_changes_the_fingerprint(case, arrays):
    for change in ["entry", "response", "type", "rows", "shape"]:
        with case(change):
            A, y = (array.copy() for array in arrays)
            before = fingerprint(A, y)
            if change == "entry":
                A[49, 3] = np.nextafter(A[49, 3], 9)
            elif change == "response":
                y[0] = np.nextafter(y[0], 9)
            elif change == "type":
                A = A.astype(np.float32)
            elif change == "rows":
                A, y = A[:49], y[:49]
            else:
                A, y = A.reshape(100, 2), np.concatenate((y, y))
            assert fingerprint(A, y) != before


def test_the_fingerprint_does_not_depend_on_the_byte_order_in_memory(arrays):
    A, y = arrays
    assert fingerprint(np.asfortranarray(A), y.astype(">f8")) == fingerprint(A, y)


def test_of_large_data_every_row_enters():
    """More than 64 MiB, of which a sample of the rows once was all that counted."""
    A, y = np.zeros((90_000, 100)), np.ones(90_000)
    before = fingerprint(A, y)
    for row in (1500, 44_444, 88_000):
        A[row, 7] = 1e-300
        assert fingerprint(A, y) != before
        A[row, 7] = 0.0
    assert fingerprint(A, y) == before


def test_sources_that_cannot_read_ranges_have_no_fingerprint_and_are_not_saved(tmp_path):
    class Elsewhere(RowSource):
        shape, dtype = (5, 2), np.dtype(np.float64)

        def _reduce(self, kernel, per_row, pairing):
            raise NotImplementedError

    with pytest.raises(TypeError, match="any order, got Elsewhere"):
        fingerprint(Elsewhere(), np.zeros(5))
    with pytest.raises(TypeError, match="any order can be saved, got Elsewhere"):
        save_samples(tmp_path / "x.npz", Elsewhere(), np.zeros(5))


# --- whole or not at all ---------------------------------------------------------------------------------------------


def test_saving_again_replaces_what_was_there_and_leaves_nothing_else(suffix, arrays, tmp_path):
    A, y = arrays
    path = tmp_path / f"samples{suffix}"
    save_samples(path, A, y)
    save_samples(path, 2 * A[:20], y[:20])
    with open_samples(path) as samples:
        assert_array_equal(all_rows(samples), 2 * A[:20])
    assert os.listdir(tmp_path) == [path.name]


def test_an_interrupted_save_leaves_what_was_there(suffix, arrays, tmp_path):
    A, y = arrays
    path = tmp_path / f"samples{suffix}"
    save_samples(path, A, y)

    class Interrupted(MemoryRows):
        def read(self, start, stop):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_samples(path, Interrupted(A), y)
    assert os.listdir(tmp_path) == [path.name]
    with open_samples(path) as samples:
        assert samples.fingerprint == fingerprint(A, y)


def test_folders_are_swapped_also_where_the_system_cannot_do_it_in_one_step(arrays, tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    monkeypatch.setattr(atomic, "_exchanged", lambda one, other: False)
    A, y = arrays
    for factor in (1, 2):
        save_samples(tmp_path / "samples.zarr", factor * A, y)
    with open_samples(tmp_path / "samples.zarr") as samples:
        assert_array_equal(all_rows(samples), 2 * A)
    assert os.listdir(tmp_path) == ["samples.zarr"]


def test_a_swap_that_fails_in_the_middle_puts_the_old_folder_back(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_exchanged", lambda one, other: False)
    rename = os.rename
    calls = []

    def second_fails(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError("no")
        rename(source, target)

    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").touch()
    monkeypatch.setattr(os, "rename", second_fails)

    def replace():
        with atomic.replacing(tmp_path / "folder", folder=True) as temporary:
            (temporary / "new").touch()

    with pytest.raises(OSError, match="no"):
        replace()
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(tmp_path / "folder") == ["old"]


def test_a_link_stays_a_link(arrays, tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "samples.npz"
    link.symlink_to(tmp_path / "real" / "data.npz")
    save_samples(link, *arrays)
    assert link.is_symlink()
    assert (tmp_path / "real" / "data.npz").is_file()


def test_a_folder_that_is_no_zarr_store_is_never_replaced(arrays, tmp_path):
    precious = tmp_path / "thesis.zarr"
    precious.mkdir()
    (precious / "chapter1.tex").write_text("once")
    for target in (precious, tmp_path.with_suffix(".npz")):
        if target.suffix == ".npz":
            target.mkdir(exist_ok=True)
        with pytest.raises(DataError, match="is a folder that this would replace"):
            save_samples(target, *arrays)
    assert (precious / "chapter1.tex").read_text() == "once"


def test_what_cannot_be_saved_is_refused_before_anything_is_written(case, tmp_path):
    for name, A, y, options, message in [
        ("x.npy", np.eye(2), [1, 2], {}, r"must end in .npz, .* \(an .npy file holds one array only\)"),
        ("x.csv", np.eye(2), [1, 2], {}, "must end in"),
        ("x.npz", np.eye(2), [1, 2, 3], {}, "responses must be 2 real numbers"),
        ("x.npz", np.eye(2), [1j, 2], {}, "responses must be 2 real numbers"),
        ("x.npz", np.eye(2), [1, 2], {"truth": [1, 2, 3]}, "truth must be 2 numbers"),
    ]:
        with case(name, message):
            with pytest.raises(DataError, match=message):
                save_samples(tmp_path / name, A, y, **options)
            assert not os.listdir(tmp_path)


def test_notes_that_json_cannot_hold_are_refused(arrays, tmp_path):
    with pytest.raises(TypeError, match="notes must be numbers, texts, lists or dictionaries of them, got PosixPath"):
        save_samples(tmp_path / "x.npz", *arrays, place=PosixPath("here"))
    assert not os.listdir(tmp_path)


def test_every_writer_is_tested():
    assert {".npz", ".h5", ".hdf5", ".zarr", ".parquet"} == set(saving.WRITERS)

"""Files that cannot be used are refused in one plain sentence: never a crash, never a wrong answer, nothing unpickled."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import shutil
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robustphase.files import DataError, fingerprint, open_samples, save_samples
from robustphase.rows import as_source, project
from robustphase.rows.io import limits

pytestmark = pytest.mark.usefixtures("forked_probes")

WHOLE_SENTENCE = re.compile(r"^[^\n]{10,400}\.$")


def refusal(path, responses=None, **names):
    """The message with which samples are refused, when they are opened or in the first pass."""
    with pytest.raises(DataError) as caught, open_samples(path, responses, **names) as samples:
        project(samples.covariates, np.ones(samples.covariates.shape[1]))
    message = str(caught.value)
    assert WHOLE_SENTENCE.match(message), message
    return message


def save_pair(folder, A, y):
    np.save(folder / "A.npy", A)
    np.save(folder / "y.npy", y)
    return folder / "A.npy", folder / "y.npy"


# --- files that are not there, or not files --------------------------------------------------------------------------


def test_a_missing_file(tmp_path):
    assert refusal(tmp_path / "nowhere.npz") == f"there is no file '{tmp_path / 'nowhere.npz'}'."


def test_missing_responses(tmp_path):
    A, _ = save_pair(tmp_path, np.eye(3), np.ones(3))
    assert "say where the responses are" in refusal(A)
    assert "there is no file" in refusal(A, tmp_path / "nowhere.npy")


def test_a_folder(tmp_path):
    pytest.importorskip("zarr")
    assert "is not a zarr store" in refusal(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    assert "is neither a file nor a folder" in refusal(tmp_path / "pipe.npz")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    A, y = save_pair(tmp_path, np.eye(3), np.ones(3))
    real = open

    def forbidden(path, *arguments, **options):
        if str(path).endswith("A.npy"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", forbidden)
    assert "cannot be read: [Errno 13] Permission denied" in refusal(A, y)


def test_a_name_with_a_null_byte_is_refused():
    with pytest.raises(DataError, match="cannot be read: embedded null byte"):
        open_samples("a\0b.npz")


# --- damage ----------------------------------------------------------------------------------------------------------


def test_a_file_that_was_cut_off(stored, case):
    files = [stored] if stored.is_file() else [file for file in stored.rglob("*") if file.is_file()]
    largest = max(files, key=lambda file: file.stat().st_size)
    whole = largest.read_bytes()
    for kept in (0.0, 0.02, 0.3, 0.7, 0.99):
        largest.write_bytes(whole[: int(kept * len(whole))])
        with case(kept):
            refusal(stored)


def test_something_else(tmp_path, case):
    for name in ["x.npz", "x.npy", "x.h5", "x.parquet", "x.csv"]:
        with case(name):
            for content in (b"", b"PK", b"a,b\n1,2\n", b"\x00" * 5000):
                (tmp_path / name).write_bytes(content)
                with case(content[:10]):
                    message = refusal(tmp_path / name, np.ones(3))
                    assert ("is empty" in message) == (content == b"")


def test_a_flipped_bit_of_a_number_is_noticed_where_the_file_has_checksums(stored, arrays):
    if stored.suffix == ".h5":
        pytest.skip("HDF5 datasets in one piece have no checksum")
    files = [stored] if stored.is_file() else [file for file in stored.rglob("*") if file.is_file()]
    wanted = arrays[0][20].tobytes()
    for file in files:
        data = file.read_bytes()
        place = data.find(wanted)
        if place >= 0:
            file.write_bytes(data[: place + 3] + bytes([data[place + 3] ^ 1]) + data[place + 4 :])
            refusal(stored)
            return
    raise AssertionError("the numbers are not in the file")


def test_an_npy_header_that_lies_about_the_shape(tmp_path, case):
    A, y = save_pair(tmp_path, np.ones((5, 3)), np.ones(5))
    for shape in ((6, 3), (4, 3), (5, 4), (5, 2), (-5, 3), (10**12, 3), (10**40, 3), (5, 3, 2), (True, 3)):
        A.write_bytes(npy(np.ones((5, 3)), shape=shape))
        with case(shape):
            message = refusal(A, y)
            assert "declares" in message or "damaged" in message


def npy(array, **changes):
    """An .npy file whose header says something else."""
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
        **changes,
    }
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue() + array.tobytes()


@given(flips=st.lists(st.tuples(st.integers(0, 250), st.integers(0, 255)), min_size=1, max_size=4))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_to_an_npy_file_is_refused_or_harmless(flips, tmp_path):
    data = bytearray(npy(np.arange(15.0).reshape(5, 3)))
    for place, value in flips:
        data[place % len(data)] = value
    (tmp_path / "A.npy").write_bytes(bytes(data))
    message = complaint(tmp_path / "A.npy", np.ones(5))
    assert message is None or WHOLE_SENTENCE.match(message)


def complaint(path, responses=None, expected=None):
    """The message with which samples are refused, or None if they are the expected ones."""
    try:
        with open_samples(path, responses) as samples:
            project(samples.covariates, np.ones(samples.covariates.shape[1]))
            assert expected is None or samples.fingerprint == expected
    except DataError as error:
        return str(error)
    return None


@given(
    flips=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 2000),
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_archive_is_refused_or_gives_the_same_numbers(flips, cut, arrays, tmp_path):
    path = tmp_path / "samples.npz"
    save_samples(path, *arrays)
    data = bytearray(path.read_bytes())
    for place, value in flips:
        data[place % len(data)] = value
    path.write_bytes(bytes(data if cut % 3 else data[: cut % len(data)]))
    message = complaint(path, expected=fingerprint(*arrays))
    assert message is None or WHOLE_SENTENCE.match(message)


# --- what must not be loaded -----------------------------------------------------------------------------------------


class Bomb:
    """Goes off when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


def test_python_objects_are_never_loaded(tmp_path):
    objects = np.array([[Bomb(), 1], [2, 3]], dtype=object)
    with open(tmp_path / "A.npy", "wb") as file:
        np.save(file, objects, allow_pickle=True)
    np.savez(tmp_path / "A.npz", A=objects, y=np.ones(2), allow_pickle=True)
    np.savez(tmp_path / "y.npz", A=np.eye(2), y=objects[0], allow_pickle=True)
    for path, responses in (("A.npy", np.ones(2)), ("A.npz", None), ("y.npz", None)):
        assert "Python objects, which are never loaded" in refusal(tmp_path / path, responses)
    (tmp_path / "bare.npz").write_bytes(pickle.dumps(Bomb()))
    refusal(tmp_path / "bare.npz")


@pytest.mark.parametrize("place", ["compressor", "filters"])
def test_codecs_that_unpickle_are_never_used(place, tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "samples.zarr", mode="w", zarr_format=2)
    group.create_array("A", shape=(4, 2), dtype="f8", chunks=(4, 2))[:] = 1
    group.create_array("y", shape=(4,), dtype="f8", chunks=(4,))[:] = 1
    for name in ("A", "y"):
        described = tmp_path / "samples.zarr" / name / ".zarray"
        settings_ = json.loads(described.read_text())
        settings_[place] = {"id": "pickle"} if place == "compressor" else [{"id": "pickle"}]
        described.write_text(json.dumps(settings_))
        for chunk in (tmp_path / "samples.zarr" / name).glob("[0-9]*"):
            chunk.write_bytes(pickle.dumps(Bomb()))
        refusal(tmp_path / "samples.zarr")


def test_an_archive_that_unpacks_to_more_than_memory_is_refused_before_memory_is_taken(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", A=np.zeros((10**6, 5)), y=np.zeros(10**6))
    assert (tmp_path / "bomb.npz").stat().st_size < 100_000
    monkeypatch.setattr(limits, "available_memory", lambda: 10**7)
    tracemalloc.start()
    message = refusal(tmp_path / "bomb.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message.endswith("needs 40 MB of memory, but only 10 MB are left.")
    assert peak < 5 * 10**6


def test_an_archive_that_claims_more_than_compression_can_do(tmp_path):
    path = tmp_path / "bomb.npz"
    content = npy(np.zeros((5, 3)), shape=(10**11, 3))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("A.npy", content)
        archive.writestr("y.npy", npy(np.zeros(5)))
    # The array declares more than the member: refused by comparing the two.
    assert "declares 100000000000 x 3 numbers" in refusal(path)
    # The member declares as much as the array: refused by comparing it with the packed bytes.
    data = path.read_bytes()
    size = len(content).to_bytes(4, "little")
    path.write_bytes(data.replace(size, (2**31).to_bytes(4, "little")))
    assert "more than its compression can do" in refusal(path)


def test_a_header_that_declares_the_world_takes_no_memory(tmp_path):
    A, y = save_pair(tmp_path, np.eye(3), np.ones(3))
    A.write_bytes(npy(np.eye(3), shape=(2**40, 2**20)))
    tracemalloc.start()
    refusal(A, y)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


# --- numbers that cannot be covariates or responses ------------------------------------------------------------------


def test_unsuitable_arrays(tmp_path, case):
    for A, y, message in [
        (np.array([["a", "b"]] * 3), np.ones(3), "numbers are needed"),
        (np.ones((3, 2), "M8[s]"), np.ones(3), "numbers are needed"),
        (np.ones((3, 2), "f8,i4"), np.ones(3), "numbers are needed"),
        (np.ones((3, 2), np.longdouble), np.ones(3), "convert them to float64"),
        (np.ones(3), np.ones(3), "two dimensions"),
        (np.ones((3, 2, 2, 2)), np.ones(3), "two dimensions"),
        (np.ones((0, 2)), np.ones(0), "is empty"),
        (np.ones((3, 0)), np.ones(3), "is empty"),
        (np.ones((3, 2)), np.ones(4), "holds 4 responses for 3 rows"),
        (np.ones((3, 2)), np.ones((4, 4)), "none of its ends fits the 3 rows"),
        (np.ones((3, 2)), np.ones((5, 3)), 'pass transpose="responses"'),
        (np.ones((3, 2)), np.ones((3, 2, 2, 2)), "need one dimension"),
        (np.ones((3, 2)), np.ones((3, 0)), "none of its ends fits the 3 rows"),
        (np.ones((3, 2)), np.array(1.0), "need one dimension"),
        (np.ones((3, 2)), np.ones(3) * 1j, "responses are squared magnitudes and real"),
        (np.ones((3, 2)), np.array(["1", "2", "3"]), "responses must be numbers"),
    ]:
        with case(message):
            np.savez(tmp_path / "plain.npz", A=A, y=y)
            np.savez_compressed(tmp_path / "compressed.npz", A=A, y=y)
            for paths in (save_pair(tmp_path, A, y), [tmp_path / "plain.npz"], [tmp_path / "compressed.npz"]):
                with case(paths[0].name):
                    assert message in refusal(*paths)


UNSUITABLE = [
    (np.ones(3), np.ones(3), "two dimensions"),
    (np.array(3.0), np.ones(3), "two dimensions"),
    (np.ones((3, 0)), np.ones(3), "is empty"),
    (np.ones((3, 2)), np.ones(4), "holds 4 responses for 3 rows"),
    (np.ones((3, 2)), np.ones((4, 4)), "none of its ends fits the 3 rows"),
    (np.ones((3, 2)), np.ones(3) * 1j, "responses are squared magnitudes and real"),
]


def test_unsuitable_hdf5_datasets(tmp_path, case):
    h5py = pytest.importorskip("h5py")
    for A, y, message in [(np.array([[b"a", b"b"]] * 3), np.ones(3), "numbers are needed"), *UNSUITABLE]:
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["A"], file["y"] = A, y
        with case(message):
            assert message in refusal(tmp_path / "x.h5")


def test_unsuitable_zarr_arrays(tmp_path, case):
    zarr = pytest.importorskip("zarr")
    for A, y, message in [(np.ones((3, 2), "M8[s]"), np.ones(3), "numbers are needed"), *UNSUITABLE]:
        group = zarr.create_group(tmp_path / "x.zarr", overwrite=True)
        for name, array in (("A", A), ("y", y)):
            chunks = tuple(max(1, size) for size in array.shape)
            group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks)[...] = array
        with case(message):
            assert message in refusal(tmp_path / "x.zarr")


def test_wrong_responses_given_as_an_array(stored):
    for wrong in (np.ones(49), np.ones((49, 2)), ["a"] * 50, np.ones(50) * 1j):
        assert "the responses given have shape" in refusal(stored, wrong)


# --- names -----------------------------------------------------------------------------------------------------------


def test_a_name_that_is_not_there_lists_those_that_are(stored):
    assert re.search(r"no .*missing.*A, (metadata, )?y", refusal(stored, covariates_name="missing"))
    assert re.search(r"no .*missing.*A, (metadata, )?y", refusal(stored, responses_name="missing"))


def test_a_file_without_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w"):
        pass
    assert "it holds nothing" in refusal(tmp_path / "x.npz")


def test_an_hdf5_file_without_datasets(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_group("A")
    assert "no dataset named A; the datasets in it: none" in refusal(tmp_path / "x.h5")


def test_a_zarr_store_without_arrays(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_group(tmp_path / "x.zarr").create_group("A")
    assert "no array named A; the arrays in it: none" in refusal(tmp_path / "x.zarr")


def test_responses_cannot_be_in_a_zarr_store_that_is_a_single_array(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(store=tmp_path / "x.zarr", shape=(3, 2), dtype="f8", chunks=(3, 2))[:] = 1
    assert "is a single zarr array" in refusal(tmp_path / "x.zarr")
    assert "is a single zarr array" in refusal(tmp_path / "x.zarr", covariates_name="A")


# --- parts that would be made up -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"chunks": (10, 2)}, {}])
def test_an_hdf5_dataset_that_was_not_written_in_full(options, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("A", (50, 2), "f8", **options)
        if options:
            file["A"][:30] = 1
        file["y"] = np.ones(50)
    assert "not written in full" in refusal(tmp_path / "x.h5")


def test_an_hdf5_dataset_that_lives_in_other_files(tmp_path):
    h5py = pytest.importorskip("h5py")
    layout = h5py.VirtualLayout((10, 2), "f8")
    layout[:5] = h5py.VirtualSource(tmp_path / "gone.h5", "A", (5, 2))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_virtual_dataset("A", layout, fillvalue=0)
        file["y"] = np.ones(10)
    assert "keeps its numbers in other files" in refusal(tmp_path / "x.h5")


@pytest.mark.parametrize(
    "options", [{"chunks": (10, 4)}, {"chunks": (5, 4), "shards": (10, 4)}, {"zarr_format": 2, "chunks": (10, 4)}]
)
@pytest.mark.parametrize("name", ["A", "y"])
def test_a_zarr_array_with_a_missing_chunk(options, name, arrays, tmp_path):
    zarr = pytest.importorskip("zarr")
    options = dict(options)
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=options.pop("zarr_format", 3))
    group.create_array("A", shape=(50, 4), dtype="f8", **options)[:] = arrays[0]
    group.create_array("y", shape=(50,), dtype="f8", chunks=(10,))[:] = arrays[1]
    with open_samples(tmp_path / "x.zarr"):
        pass
    chunks = [
        file
        for file in (tmp_path / "x.zarr" / name).rglob("*")
        if file.is_file() and not file.name.startswith((".z", "zarr"))
    ]
    chunks[2].unlink()
    assert re.search(r"1 of the 5 chunks of .* are missing", refusal(tmp_path / "x.zarr"))


def test_a_zarr_shape_beyond_counting_is_refused_quickly(tmp_path):
    pytest.importorskip("zarr")
    save_samples(tmp_path / "x.zarr", np.eye(4), np.ones(4))
    described = tmp_path / "x.zarr" / "A" / "zarr.json"
    metadata = json.loads(described.read_text())
    metadata["shape"] = [10**15, 4]
    described.write_text(json.dumps(metadata))
    assert "are missing" in refusal(tmp_path / "x.zarr")


# --- parquet ---------------------------------------------------------------------------------------------------------


def test_unsuitable_parquet_files(case, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for columns, message in [
        ({"A": [[1.0, 2.0], None, [3.0, 4.0]], "y": [1.0, 2.0, 3.0]}, "empty entries at or after row 0"),
        ({"A": [[1.0, 2.0], [None, 1.0], [3.0, 4.0]], "y": [1.0, 2.0, 3.0]}, "empty entries at or after row 0"),
        ({"A": [None, [1.0, 2.0], [3.0, 4.0]], "y": [1.0, 2.0, 3.0]}, "empty entry in row 0"),
        ({"A": [[1.0, 2.0]] * 3, "y": [1.0, None, 3.0]}, "1 empty entries"),
        (
            {"A": [[1.0, 2.0], [1.0], [3.0, 4.0]], "y": [1.0, 2.0, 3.0]},
            "list of 1 numbers in row 1, and one of 2 in row 0",
        ),
        ({"A": [[], [], []], "y": [1.0, 2.0, 3.0]}, "holds entries of type null"),
        ({"A": ["a", "b", "c"], "y": [1.0, 2.0, 3.0]}, "must be a column of lists of numbers"),
        ({"A": [["a"], ["b"], ["c"]], "y": [1.0, 2.0, 3.0]}, "plain integers or floating-point numbers are needed"),
        ({"A": [[1.0]] * 3, "y": ["a", "b", "c"]}, "plain integers or floating-point numbers are needed"),
        ({"a0": [1.0, 2.0, 3.0], "a2": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]}, "without gaps; its columns: a0, a2, y"),
        ({"a0": [1.0, None, 3.0], "y": [1.0, 2.0, 3.0]}, "empty entries at or after row 0"),
        ({"A_real": [[1.0]] * 3, "y": [1.0, 2.0, 3.0]}, "no pair A_real and A_imag"),
        ({"A_real": [[1.0]] * 3, "A_imag": [[1.0, 2.0]] * 3, "y": [1.0, 2.0, 3.0]}, "list of 2 numbers in row 0"),
        ({"A": [[1.0, 2.0]] * 3}, "no column y; its columns: A"),
    ]:
        with case(message):
            pq.write_table(pa.table(columns), tmp_path / "x.parquet")
            assert message in refusal(tmp_path / "x.parquet")


def test_an_empty_parquet_file(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    empty = pa.table({"A": pa.array([], pa.list_(pa.float64())), "y": pa.array([], pa.float64())})
    pq.write_table(empty, tmp_path / "x.parquet")
    assert "is empty" in refusal(tmp_path / "x.parquet")


# --- missing packages ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "package", "extra"), [(".h5", "h5py", "io"), (".zarr", "zarr", "io"), (".parquet", "pyarrow", "parquet")]
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    suffix, package, extra, arrays, tmp_path, monkeypatch
):
    pytest.importorskip(package)
    save_samples(tmp_path / f"samples{suffix}", *arrays)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    for attempt in (open_samples, as_source, lambda path: save_samples(path, *arrays)):
        with pytest.raises(ImportError, match=rf"needs the package {package}.*pip install 'robustphase\[{extra}\]'"):
            attempt(tmp_path / f"samples{suffix}")


def test_data_errors_are_value_errors():
    assert issubclass(DataError, ValueError)


def test_nothing_stays_open_or_behind_after_a_refusal(stored, tmp_path):
    shutil.copytree(stored, tmp_path / "copy") if stored.is_dir() else shutil.copy(stored, tmp_path / "copy")
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(3):
        refusal(stored, responses_name="missing")
    if descriptors is not None:
        assert len(os.listdir("/proc/self/fd")) <= descriptors

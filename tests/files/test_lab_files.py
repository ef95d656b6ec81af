"""Files that laboratories have: MATLAB of both kinds, text, TIFF, and stacks of patterns and frames in any file."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.files import DataError, open_samples
from robustphase.rows import as_source

pytestmark = pytest.mark.usefixtures("forked_probes")

#: Samples, and height and width of a pattern: all different, so that no axis can be taken for another.
M, H, W = 11, 3, 4


def write_npz(path: Path, **arrays: Any) -> None:
    np.savez(path, **arrays)


def write_packed_npz(path: Path, **arrays: Any) -> None:
    np.savez_compressed(path, **arrays)


def write_columns_first(path: Path, **arrays: Any) -> None:
    np.savez(path, **{name: np.asfortranarray(array) for name, array in arrays.items()})


def write_hdf5(path: Path, **arrays: Any) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(
                name, data=array, chunks=array.ndim > 1 or None, compression="gzip" if array.ndim > 1 else None
            )


def write_zarr(path: Path, **arrays: Any) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.create_group(path)
    for name, array in arrays.items():
        group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=array.shape)[...] = array


def write_mat(path: Path, **arrays: Any) -> None:
    from scipy.io import savemat

    savemat(path, arrays, do_compression=True, oned_as="column")


def write_plain_mat(path: Path, **arrays: Any) -> None:
    from scipy.io import savemat

    savemat(path, arrays, oned_as="row")


def write_matlab(path: Path, **arrays: Any) -> None:
    """As MATLAB does: a block of its own in front, axes in the opposite order, complex numbers as pairs, gzip."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            stored = np.atleast_2d(array.T) if array.ndim < 2 else array.T
            if stored.dtype.kind == "c":
                part = stored.real.dtype
                pairs = np.empty(stored.shape, [("real", part), ("imag", part)])
                pairs["real"], pairs["imag"] = stored.real, stored.imag
                stored = pairs
            dataset = file.create_dataset(name, data=stored, chunks=True, compression="gzip")
            dataset.attrs["MATLAB_class"] = np.bytes_("double")
    with open(path, "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan  1".ljust(116))


WRITERS: dict[str, tuple[str, Callable[..., None]]] = {
    "npz": (".npz", write_npz),
    "packed npz": (".npz", write_packed_npz),
    "columns first": (".npz", write_columns_first),
    "HDF5": (".h5", write_hdf5),
    "zarr": (".zarr", write_zarr),
    "MATLAB 7": (".mat", write_mat),
    "MATLAB 6": (".mat", write_plain_mat),
    "MATLAB 7.3": (".mat", write_matlab),
}


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    suffix, writer = WRITERS[request.param]

    def call(**arrays: Any) -> Path:
        path = tmp_path / f"samples-{len(list(tmp_path.iterdir()))}{suffix}"
        writer(path, **arrays)
        return path

    return call


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
    return (100 * values).astype(dtype) if dtype == "uint8" else values.astype(dtype)


def rows_of(samples: Any) -> np.ndarray:
    return samples.covariates.read(0, samples.covariates.shape[0])


def test_a_matrix_comes_back_transposed_or_not(case, write, rng):
    for dtype in ["float64", "complex128", "float32", "complex64"]:
        with case(dtype):
            A, y = numbers(rng, (M, H), dtype), rng.random(M)
            path = write(A=A, y=y, B=np.ascontiguousarray(A.T))
            for name, transpose in (("A", None), ("B", "covariates")):
                with open_samples(path, covariates_name=name, transpose=transpose) as samples:
                    assert_array_equal(rows_of(samples), A)
                    assert samples.covariates.dtype == A.dtype
                    assert_array_equal(samples.responses, y)
                    assert (samples.pattern_shape, samples.frame_shape) == ((H,), ())


def test_stacks_of_patterns_and_frames_are_flattened_and_keep_their_shapes(case, write, rng):
    for dtype in ["float64", "complex128", "uint8"]:
        with case(dtype):
            A, y = (
                np.abs(numbers(rng, (M, H, W), dtype)) if dtype == "uint8" else numbers(rng, (M, H, W), dtype),
                rng.random((M, 2, 5)),
            )
            last = {"B": np.moveaxis(A, 0, -1).copy(), "z": np.moveaxis(y, 0, -1).copy()}
            path = write(A=A, y=y, **last)
            for names, transpose in (
                (("A", "y"), None),
                (("B", "z"), "both"),
                (("A", "z"), "responses"),
                (("B", "y"), "covariates"),
            ):
                with open_samples(
                    path, covariates_name=names[0], responses_name=names[1], transpose=transpose
                ) as samples:
                    assert_array_equal(rows_of(samples), A.reshape(M, -1))
                    assert_array_equal(samples.responses, y.reshape(M, -1))
                    assert (samples.pattern_shape, samples.frame_shape) == ((H, W), (2, 5))
                    assert "10 signals" in samples.description


def test_a_pass_over_a_stack_is_a_pass_over_its_rows(write, rng):
    # In blocks of two rows, so that pieces and their order count.
    from robustphase.rows.opening import open_rows_at

    A = rng.standard_normal((M, H, W)) + 1j
    path = write(B=np.moveaxis(A, 0, -1).copy())
    source = open_rows_at(path, "B", transpose=True, block_rows=2)
    x = rng.standard_normal(H * W)
    found = source.reduce(lambda block: __import__("robustphase").rows.Parts(rows=(block @ x,))).rows[0]
    assert_allclose(found, A.reshape(M, -1) @ x)


def test_many_signals_are_columns(write, rng):
    A, y = rng.standard_normal((M, H)), rng.random((M, 2))
    with open_samples(write(A=A, y=y)) as samples:
        assert_array_equal(samples.responses, y)
        assert samples.frame_shape == (2,)


def test_a_stack_in_an_npy_file_is_read_in_place(rng, tmp_path):
    A, y = rng.standard_normal((M, H, W)), rng.random(M)
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "B.npy", np.moveaxis(A, 0, -1).copy())
    np.save(tmp_path / "y.npy", y)
    assert_array_equal(as_source(tmp_path / "A.npy").read(0, M), A.reshape(M, -1))
    with open_samples(tmp_path / "B.npy", tmp_path / "y.npy", transpose="covariates") as samples:
        assert type(samples.covariates).__name__ == "FileRows"
        assert_array_equal(rows_of(samples), A.reshape(M, -1))
        assert samples.pattern_shape == (H, W)


def test_tables_of_text(case, rng, tmp_path):
    for dtype, separator, unit in product(("float64", "complex128"), (",", ";", "\t", " "), ("i", "j")):
        A, y = numbers(rng, (M, H), dtype), rng.random(M)
        columns = [[repr(value.item()).strip("()").replace("j", unit) for value in values] for values in (*A.T, y)]
        named = [*(f"a{k}" for k in range(H)), "y"]
        (tmp_path / "both.csv").write_text("\n".join(map(separator.join, [named, *zip(*columns, strict=True)])) + "\n")
        (tmp_path / "A.csv").write_text("\n".join(map(separator.join, columns[:-1])))
        (tmp_path / "y.csv").write_text("\ufeff" + "\r\n".join(columns[-1]))
        with case(dtype, separator, unit):
            with open_samples(tmp_path / "both.csv") as samples:
                assert_array_equal(rows_of(samples), A)
                assert_array_equal(samples.responses, y)
                assert samples.covariates.dtype == A.dtype
            with open_samples(tmp_path / "A.csv", tmp_path / "y.csv", transpose="covariates") as samples:
                assert_array_equal(rows_of(samples), A)
                assert_array_equal(samples.responses, y)


def test_tables_that_cannot_be_read_say_why(case, tmp_path):
    for text, said in [
        (
            "a0,a1,z\n1,2,3\n",
            'no column named y; its columns: a0, a1, z. Say which it is, for example responses_name="z"',
        ),
        ("1,2,3\n4,5,6\n", "has no line of names"),
        ("a0,a1,y\n1,2,3\n4,5\n", "Every line needs the same number of entries"),
        ("a0;y\n1,5;2\n", "a point and not a comma"),
        ("a0,a1,y\n", "no numbers below it"),
        ("a0,a1,a2,y\n1,2,3\n", "4 names and 3 columns"),
        ("a0,a0,y\n1,2,3\n", "several columns of the same name"),
        ("a0,\0,y\n1,2,3\n", "bytes of zero"),
        ("\n \n", "is empty"),
        (b"\xff\xfe1,2", "cannot be read as a table of numbers"),
    ]:
        with case(said):
            path = tmp_path / "x.csv"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            with pytest.raises(DataError) as caught:
                open_samples(path)
            assert said in str(caught.value)


def test_tiff_stacks(case, rng, tmp_path):
    tifffile = pytest.importorskip("tifffile")
    for dtype in ["uint8", "uint16", "float32"]:
        for packed in [None, "zlib"]:
            with case(dtype, packed):
                A, frames = rng.standard_normal((M, H, W)), (200 * rng.random((M, 5, 6))).astype(dtype)
                np.save(tmp_path / "A.npy", A)
                tifffile.imwrite(tmp_path / "frames.tif", frames, photometric="minisblack", compression=packed)
                with open_samples(tmp_path / "A.npy", tmp_path / "frames.tif") as samples:
                    assert_array_equal(samples.responses, frames.reshape(M, -1))
                    assert (samples.pattern_shape, samples.frame_shape) == ((H, W), (5, 6))
                np.save(tmp_path / "y.npy", np.ones(M))
                with open_samples(tmp_path / "frames.tif", tmp_path / "y.npy") as samples:
                    assert_array_equal(rows_of(samples), frames.reshape(M, -1))


def test_tiff_files_that_lie_are_refused(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    np.save(tmp_path / "A.npy", np.ones((M, H)))
    path = tmp_path / "frames.tif"
    tifffile.imwrite(path, np.zeros((M, 5, 6), np.uint16), photometric="minisblack", compression="zlib")
    data = path.read_bytes()
    packed = zlib.compress(np.zeros((5, 6), np.uint16).tobytes(), 6)
    assert packed in data
    # A strip that unpacks to far more than a frame, in the same number of bytes or after them.
    bomb = zlib.compress(bytes(1 << 26), 9)
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].tags
        count_at, offset_at = tags["StripByteCounts"].valueoffset, tags["StripOffsets"].valueoffset
        width = struct.calcsize("<" + {3: "H", 4: "I", 16: "Q"}[int(tags["StripByteCounts"].dtype)])
    changed = bytearray(data + bomb)
    if width < 4:
        pytest.skip("the count of bytes is too short for this bomb")
    changed[count_at : count_at + width] = len(bomb).to_bytes(width, "little")
    changed[offset_at : offset_at + 4] = len(data).to_bytes(4, "little")
    path.write_bytes(changed)
    with pytest.raises(DataError, match=r"unpacks to more|longer than the file|cannot be read"):
        open_samples(tmp_path / "A.npy", path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError):
        open_samples(tmp_path / "A.npy", path)


def test_a_wrong_name_says_which_option_cures_it(write, rng):
    path = write(patterns=rng.standard_normal((M, H)), counts=rng.random(M))
    with pytest.raises(DataError, match=r'covariates_name="(counts|patterns)"'):
        open_samples(path)
    with pytest.raises(DataError, match='responses_name="counts"'):
        open_samples(path, covariates_name="patterns")
    with open_samples(path, covariates_name="patterns", responses_name="counts") as samples:
        assert samples.covariates.shape == (M, H)


def test_a_wrong_transposition_says_which_option_cures_it(write, rng):
    A, y = rng.standard_normal((M, H)), rng.random((M, 2))
    path = write(A=A.T.copy(), B=A, y=rng.random(M), z=y.T.copy(), w=y)
    with pytest.raises(DataError, match='transpose="covariates"'):
        open_samples(path)
    with pytest.raises(DataError, match='transpose="responses"'):
        open_samples(path, covariates_name="B", responses_name="z")
    with pytest.raises(DataError, match="leave out transpose for them"):
        open_samples(path, covariates_name="B", transpose="covariates")
    with pytest.raises(DataError, match="leave out transpose for them"):
        open_samples(path, covariates_name="B", responses_name="w", transpose="responses")
    with pytest.raises(ValueError, match='transpose must be None, "covariates"'):
        open_samples(path, transpose="A")


def test_matlab_variables_that_are_no_arrays_of_numbers_say_the_line_that_cures_it(case, tmp_path):
    from scipy.io import savemat
    from scipy.sparse import eye_array

    for value, cure in [
        (eye_array(3).tocsc(), "A = full(A)"),
        (np.array([np.ones(2), "x"], dtype=object), "A = cell2mat(A)"),
        ("hello", "A = double(A)"),
        ({"a": 1.0}, "of the class struct"),
    ]:
        savemat(tmp_path / "x.mat", {"A": value, "y": np.ones(3)})
        with case(cure):
            with pytest.raises(DataError) as caught:
                open_samples(tmp_path / "x.mat")
            assert cure in str(caught.value)


def test_text_and_sparse_matrices_in_matlab_7_3_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.mat"
    write_matlab(path, A=np.ones((3, 2)), y=np.ones(3))
    with h5py.File(path, "r+") as file:
        file["A"].attrs["MATLAB_class"] = np.bytes_("char")
        file.create_group("S").attrs["MATLAB_sparse"] = 3
    with pytest.raises(DataError, match="is text"):
        open_samples(path)
    with pytest.raises(DataError, match=r"S = full\(S\)"):
        open_samples(path, covariates_name="S")


def test_matlab_files_that_lie_are_refused(case, tmp_path):
    for change in ["cut", "long", "bomb", "head"]:
        with case(change):
            path = tmp_path / "x.mat"
            write_mat(path, A=np.ones((20, 3)), y=np.ones(20))
            data = bytearray(path.read_bytes())
            if change == "cut":
                del data[-10:]
            elif change == "long":
                data[132:136] = (1 << 31).to_bytes(4, "little")
            elif change == "bomb":
                packed = zlib.compress(struct.pack("<II", 14, 0xFFFFFFF0) + bytes(64))
                data[128:] = struct.pack("<II", 15, len(packed)) + packed
            else:
                data[126:128] = b"??"
            path.write_bytes(data)
            with pytest.raises(DataError, match=r"damaged|cut off|claims to unpack"):
                open_samples(path)


def test_other_files_of_that_name_say_how_to_save_them(case, tmp_path):
    for begin, cure in [(b"# Created by Octave", "save -v7"), (b"\0\0\0\0other", "'-v7'")]:
        with case(begin):
            (tmp_path / "x.mat").write_bytes(begin)
            with pytest.raises(DataError) as caught:
                open_samples(tmp_path / "x.mat")
            assert cure in str(caught.value)


def test_truth_may_be_a_picture_or_a_column(write, rng):
    A, y, truth = rng.standard_normal((M, H, W)), rng.random(M), rng.standard_normal((H, W))
    with open_samples(write(A=A, y=y, truth=truth)) as samples:
        assert_array_equal(samples.truth, truth.ravel())

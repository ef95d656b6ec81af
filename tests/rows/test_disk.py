"""Rows on disk give what the same rows in memory give, whatever the kind of file, the type, the blocks and the threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.effort import THOROUGH

import robustphase as rp
from robustphase.rows import (
    MaskedRows,
    MemoryRows,
    Parts,
    ScaledRows,
    adjoint,
    as_source,
    paired_loss_gradient,
    project,
    row_peaks,
    rows_at,
    squared_loss_gradient,
    sweep,
)
from robustphase.rows.blocked import MappedRows
from robustphase.rows.io import limits
from robustphase.rows.io.hdf5 import Hdf5Rows, lock_of
from robustphase.rows.io.limits import DataError, _control_groups, available_memory, check_chunks, require
from robustphase.rows.io.npy import FileRows
from robustphase.rows.io.prefetch import Piece, ReadAheadRows, fetch_and_compute
from robustphase.rows.opening import open_rows_at
from robustphase.testing import dot_test

pytestmark = pytest.mark.usefixtures("forked_probes")

M, N = 203, 7
DTYPES = ["float32", "float64", "complex64", "complex128"]


def rows_of(rng, dtype, m=M, n=N):
    rows = rng.standard_normal((m, n))
    if np.dtype(dtype).kind == "c":
        rows = (rows + 1j * rng.standard_normal((m, n))) / np.sqrt(2)
    return rows.astype(dtype)


def in_npy(folder, A, order="C"):
    np.save(folder / "A.npy", np.asarray(A, order=order))
    return folder / "A.npy"


def in_npz(folder, A, save=np.savez):
    save(folder / "samples.npz", A=A)
    return folder / "samples.npz"


def in_hdf5(folder, A, **options):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "samples.h5", "w") as file:
        file.create_dataset("A", data=A, **options)
    return folder / "samples.h5"


def in_zarr(folder, A, zarr_format=3, **options):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(folder / "samples.zarr", mode="w", zarr_format=zarr_format)
    group.create_array("A", shape=A.shape, dtype=A.dtype, **options)[:] = A
    return folder / "samples.zarr"


def in_parquet(folder, A, kind="fixed"):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    if kind == "columns":
        # Ten and more columns, backwards, so that neither the order of names nor that of the file is the right one.
        columns = {f"a{i}": A[:, i] for i in reversed(range(A.shape[1]))}
    else:
        parts = {"A_real": A.real, "A_imag": A.imag} if A.dtype.kind == "c" else {"A": A}
        columns = {
            name: pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(part).ravel()), A.shape[1])
            if kind == "fixed"
            else pa.array(list(part))
            for name, part in parts.items()
        }
    pq.write_table(pa.table(columns), folder / "samples.parquet", row_group_size=50)
    return folder / "samples.parquet"


FILES = {
    "npy": in_npy,
    "npy-columns-first": lambda folder, A: in_npy(folder, A, order="F"),
    "npz": in_npz,
    "npz-compressed": lambda folder, A: in_npz(folder, A, np.savez_compressed),
    "hdf5": in_hdf5,
    "hdf5-chunks": lambda folder, A: in_hdf5(folder, A, chunks=(16, A.shape[1]), compression="gzip", shuffle=True),
    "hdf5-tiles": lambda folder, A: in_hdf5(folder, A, chunks=(40, 2)),
    "zarr": lambda folder, A: in_zarr(folder, A, chunks=(16, A.shape[1])),
    "zarr-tiles": lambda folder, A: in_zarr(folder, A, chunks=(40, 2)),
    "zarr-shards": lambda folder, A: in_zarr(folder, A, chunks=(8, A.shape[1]), shards=(64, A.shape[1])),
    "zarr-2": lambda folder, A: in_zarr(folder, A, zarr_format=2, chunks=(50, A.shape[1])),
    "parquet": in_parquet,
    "parquet-lists": lambda folder, A: in_parquet(folder, A, "lists"),
    "parquet-columns": lambda folder, A: in_parquet(folder, A, "columns"),
}


@pytest.fixture(params=["float64", "complex64"])
def rows(request, rng):
    return rows_of(rng, request.param)


@pytest.fixture(scope="module", params=["npy", "npz", "hdf5", "zarr", "parquet"])
def store(request, tmp_path_factory):
    """Put rows into files of every kind that a format has for such numbers: pairs of kind and path."""

    def put(A):
        kinds = [kind for kind in FILES if kind.split("-")[0] == request.param]
        if request.param == "parquet" and not A.dtype.isnative:
            kinds = []
        if A.dtype.kind == "c":
            kinds = [kind for kind in kinds if kind != "parquet-columns"]
        return [(kind, FILES[kind](tmp_path_factory.mktemp(kind), A)) for kind in kinds]

    return put


@pytest.fixture(scope="module")
def stored(store):
    """Files of every kind of a format with real and with complex rows: kind, path and rows."""
    rng = np.random.default_rng(20260101)
    arrays = [rows_of(rng, dtype) for dtype in ("float64", "complex64")]
    return [(f"{kind} of {A.dtype}", path, A) for A in arrays for kind, path in store(A)]


def vector_like(rng, rows, *shape):
    vector = rng.standard_normal(shape)
    return vector + 1j * rng.standard_normal(shape) if np.iscomplexobj(rows) else vector


def agree(there, here):
    """To 1e-12 of the sums, in single precision too: the same blocks take part in the same products."""
    assert_allclose(there, here, rtol=1e-12, atol=1e-12 * np.abs(here).max())


# Blocks that divide the rows and that do not; one block; more threads than blocks.
BLOCKS_AND_THREADS = [(29, 1), (17, 3), (100, 7), (1000, 4)]


def test_every_pass_gives_the_answer_of_the_same_rows_in_memory(store, rng, case):
    for place, dtype in enumerate(DTYPES):
        rows = rows_of(rng, dtype)
        # Half of the blocks with single and half with double precision, in both fields, unless there is time.
        cuts = BLOCKS_AND_THREADS if THOROUGH else BLOCKS_AND_THREADS[place % 2 :: 2]
        for kind, path in store(rows):
            with case(kind, dtype):
                assert_same_passes(path, rows, rng, cuts)


def assert_same_passes(path, rows, rng, cuts):
    V, C, y, w = vector_like(rng, rows, N, 3), vector_like(rng, rows, M, 2), rng.random(M), rng.random(M)
    for block_rows, threads in cuts:
        disk = open_rows_at(path, block_rows=block_rows, threads=threads)
        if isinstance(disk, ReadAheadRows):
            # Pieces of chunked files are cut into blocks that begin where the piece begins: take those that fit.
            disk.block_rows = block_rows = block_rows if disk.piece_rows() % block_rows == 0 else disk.piece_rows()
            threads = 1
        memory = MemoryRows(rows, block_rows=block_rows, threads=threads)
        assert disk.shape == memory.shape
        assert disk.dtype == memory.dtype
        agree(project(disk, V), project(memory, V))
        agree(adjoint(disk, C), adjoint(memory, C))
        agree(row_peaks(disk), row_peaks(memory))
        for there, here in zip(
            squared_loss_gradient(disk, y, V[:, 0], w), squared_loss_gradient(memory, y, V[:, 0], w), strict=True
        ):
            agree(there, here)
        view, same = ScaledRows(disk, y), ScaledRows(memory, y)
        agree(view.squared_distances(), same.squared_distances())
        for there, here in zip(view.covariance_times(w, V[:, 0], V), same.covariance_times(w, V[:, 0], V), strict=True):
            agree(there, here)
        assert_array_equal(rows_at(disk, np.array([200, 3, 77])), rows[[200, 3, 77]])


def test_paired_rows_are_read_in_step(stored, rng, case):
    for kind, path, rows in stored:
        with case(kind):
            x, y, w = vector_like(rng, rows, N), rng.random(M), rng.random(M // 2)
            there = paired_loss_gradient(open_rows_at(path, block_rows=19, threads=2), y, x, w)
            here = paired_loss_gradient(MemoryRows(rows, block_rows=19, threads=1), y, x, w)
            tolerance = 1e3 * np.finfo(rows.dtype).eps
            assert_allclose(there.total, here.total, rtol=tolerance, atol=tolerance)
            assert_allclose(there.projections, here.projections, rtol=tolerance, atol=tolerance)


def test_any_range_of_rows_can_be_read_in_any_order(stored, case):
    for kind, path, rows in stored:
        with case(kind):
            source = open_rows_at(path)
            for start, stop in [(150, 203), (0, 1), (49, 52), (1, 2), (202, 203), (0, 203), (60, 60)]:
                assert_array_equal(source.read(start, stop), rows[start:stop])


def test_products_are_adjoint_and_do_not_depend_on_the_number_of_threads(stored, rng, case):
    for kind, path, rows in stored:
        with case(kind):
            dot_test(open_rows_at(path, block_rows=31, threads=2))
            # What is unpacked into memory is summed there, a stretch for each thread.
            if isinstance(open_rows_at(path), ReadAheadRows):
                V = vector_like(rng, rows, N, 2)
                totals = [sweep(open_rows_at(path, block_rows=10, threads=k), V, lambda s: s).total for k in (1, 2, 5)]
                assert_array_equal(totals[0], totals[1])
                assert_array_equal(totals[0], totals[2])


def test_a_wrapper_hides_rows_on_disk_as_in_memory(stored, rng, case):
    hidden = np.zeros(M, bool)
    hidden[::5] = True
    for kind, path, rows in stored:
        with case(kind):
            V = vector_like(rng, rows, N)
            there = project(MaskedRows(open_rows_at(path, block_rows=30, threads=2), hidden), V)
            assert_allclose(there, np.where(hidden, 0, rows @ V), atol=1e3 * np.finfo(rows.dtype).eps)


def test_other_types_are_converted_as_in_memory(store, rng, case):
    for dtype in ("int16", "int64", ">f4", ">c16", "uint8"):
        A = (10 * rng.standard_normal((60, 3))).clip(0 if dtype == "uint8" else -9, 9).astype(dtype)
        for kind, path in store(A):
            with case(kind, dtype):
                source = open_rows_at(path)
                assert source.dtype == MemoryRows(A).dtype
                assert_array_equal(source.read(0, 60), A)


# --- objects that the user has opened --------------------------------------------------------------------------------


def test_a_memory_map_is_used_in_place(rows, rng, tmp_path):
    mapped = np.load(in_npy(tmp_path, rows), mmap_mode="r")
    source = as_source(mapped)
    assert isinstance(source, MappedRows)
    assert np.shares_memory(source.read(0, 10), mapped)
    V = vector_like(rng, rows, N)
    assert_array_equal(project(source, V), project(MemoryRows(rows), V))


def test_a_part_of_a_memory_map_is_the_same_part_of_the_rows(case, rng, tmp_path):
    A = rows_of(rng, "float64")
    path = in_npy(tmp_path, A)
    for part in [np.s_[50:150], np.s_[3:], np.s_[::2], np.s_[:, 1:4], np.s_[199:]]:
        with case(part):
            source = as_source(np.load(path, mmap_mode="r")[part])
            V = rng.standard_normal(A[part].shape[1])
            source.block_rows = 13
            assert_allclose(project(source, V), A[part] @ V, atol=1e-12)


def test_a_memory_map_with_columns_first_is_read(rng, tmp_path):
    A = rows_of(rng, "float64")
    source = as_source(np.load(in_npy(tmp_path, A, "F"), mmap_mode="r"))
    assert_allclose(project(source, np.ones(N)), A.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"chunks": (16, N)}])
def test_an_open_dataset_is_a_source(options, rows, rng, tmp_path):
    h5py = pytest.importorskip("h5py")
    V = vector_like(rng, rows, N)
    with h5py.File(in_hdf5(tmp_path, rows, **options)) as file:
        assert_array_equal(project(as_source(file["A"]), V), project(MemoryRows(rows), V))


def test_a_dataset_that_is_still_being_written_is_read_through_its_library(rng, tmp_path):
    h5py = pytest.importorskip("h5py")
    A = rows_of(rng, "float64")
    with h5py.File(tmp_path / "open.h5", "w") as file:
        file["A"] = A
        source = as_source(file["A"])
        file["A"][0] = 5.0  # May still be in the library's buffers, not in the file.
        assert_array_equal(source.read(0, 1), np.full((1, N), 5.0))


def test_a_dataset_in_one_piece_is_read_past_the_library(rng, tmp_path):
    pytest.importorskip("h5py")
    A = rows_of(rng, "float64")
    plain, chunked = (
        open_rows_at(in_hdf5(folder, A, **options)) for folder, options in folders(tmp_path, {}, {"chunks": (9, N)})
    )
    assert isinstance(plain, Hdf5Rows)
    assert plain._plain is not None
    assert chunked._plain is None


def folders(base, *options):
    for index, option in enumerate(options):
        (base / str(index)).mkdir()
        yield base / str(index), option


def test_a_user_block_before_an_hdf5_file_does_not_shift_the_rows(rng, tmp_path):
    h5py = pytest.importorskip("h5py")
    A = rows_of(rng, "float64")
    with h5py.File(tmp_path / "block.h5", "w", userblock_size=1024) as file:
        file["A"] = A
    assert_array_equal(open_rows_at(tmp_path / "block.h5").read(0, M), A)


def test_everybody_who_opens_an_hdf5_file_shares_one_lock(tmp_path):
    one, same, other = (lock_of(str(tmp_path / name)) for name in ("a.h5", "../" + tmp_path.name + "/a.h5", "b.h5"))
    assert one is same
    assert one is not other


def test_a_zarr_array_is_a_source(rows, rng, tmp_path):
    zarr = pytest.importorskip("zarr")
    V = vector_like(rng, rows, N)
    group = zarr.open_group(in_zarr(tmp_path, rows, chunks=(16, N)), mode="r")
    assert_array_equal(project(as_source(group["A"]), V), project(MemoryRows(rows), V))


def test_a_zarr_array_in_memory_is_a_source(rng):
    zarr = pytest.importorskip("zarr")
    A = rows_of(rng, "float64")
    array = zarr.create_array(store=zarr.storage.MemoryStore(), shape=A.shape, dtype=A.dtype, chunks=(20, N))
    array[:] = A
    assert_array_equal(as_source(array).read(0, M), A)


def test_a_single_zarr_array_needs_no_name(rng, tmp_path):
    zarr = pytest.importorskip("zarr")
    A = rows_of(rng, "float64")
    zarr.create_array(store=tmp_path / "alone.zarr", shape=A.shape, dtype=A.dtype, chunks=(20, N))[:] = A
    assert_array_equal(open_rows_at(tmp_path / "alone.zarr").read(0, M), A)


@pytest.mark.parametrize("give", [str, lambda path: path])
def test_a_path_is_a_source(give, rng, tmp_path):
    A = rows_of(rng, "float64")
    source = as_source(give(in_npy(tmp_path, A)))
    assert isinstance(source, FileRows)
    assert_array_equal(source.read(5, 9), A[5:9])


def test_optional_packages_are_not_imported_for_arrays_and_plain_files(tmp_path):
    path = tmp_path / "A.npy"
    np.save(path, np.eye(4))
    code = f"""
import sys, numpy as np, robustphase.files
from robustphase.rows import as_source
for rows in (np.eye(3), {str(path)!r}, np.load({str(path)!r}, mmap_mode="r")):
    as_source(rows)
print(sorted({{"h5py", "zarr", "pyarrow.parquet"}} & set(sys.modules)))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    with pytest.raises(ImportError, match=r"reading maps needs the package nowhere.*pip install 'robustphase\[io\]'"):
        require("nowhere.else", extra="io", purpose="reading maps")


# --- the reader thread -----------------------------------------------------------------------------------------------


class Slow(ReadAheadRows):
    """Rows made up on the spot, with a note of who fetched what and when."""

    def __init__(self, shape, **options):
        super().__init__(**options)
        self.shape, self.dtype, self.fetched, self.fails_at = shape, np.dtype(np.float64), [], None

    def _fetch(self, start, stop, out):
        self.fetched.append((start, stop, threading.current_thread().name))
        if self.fails_at is not None and stop > self.fails_at:
            raise OSError("the disk is on fire")
        out[...] = np.arange(start, stop)[:, np.newaxis]


def test_one_thread_reads_all_rows_once_and_in_order():
    source = Slow((100, 3), block_rows=8, threads=3)
    assert_array_equal(project(source, np.ones(3)), 3.0 * np.arange(100))
    starts = [start for start, _, _ in source.fetched]
    assert starts == list(range(0, 100, 8))
    assert len({name for _, _, name in source.fetched}) == 1


def test_the_reader_is_ahead_of_the_computation_but_not_far():
    source = Slow((1000, 1), block_rows=10, threads=2)
    leads = []

    def kernel(block):
        leads.append(len(source.fetched))
        return Parts(rows=(block[:, 0].copy(),))

    source.reduce(kernel)
    computed = np.arange(len(leads))
    assert (np.array(leads) - computed).max() <= 2 + 2 + 1


def test_memory_is_a_few_pieces_whatever_the_size():
    made = []

    class Counting(Slow):
        def _fetch(self, start, stop, out):
            made.append(out.__array_interface__["data"][0])
            super()._fetch(start, stop, out)

    project(Counting((5000, 2), block_rows=10, threads=2), np.ones(2))
    assert len(set(made)) <= 4


def test_an_error_of_the_reader_reaches_the_caller(case):
    for threads in [1, 2, 5]:
        with case(threads):
            source = Slow((100, 3), block_rows=8, threads=threads)
            source.fails_at = 50
            with pytest.raises(DataError, match=r"rows 48 to 55 of the data cannot be read: the disk is on fire\."):
                project(source, np.ones(3))
            assert not [thread for thread in threading.enumerate() if thread.name == "robustphase-reader"]


def test_an_error_of_the_computation_stops_the_reader(case):
    for threads in [1, 2, 5]:
        with case(threads):
            source = Slow((10_000, 3), block_rows=8, threads=threads)

            def kernel(block):
                if block[0, 0] >= 80:
                    raise ZeroDivisionError("no")
                return Parts()

            with pytest.raises(ZeroDivisionError):
                source.reduce(kernel)
            assert len(source.fetched) < 100
            assert not [thread for thread in threading.enumerate() if thread.name == "robustphase-reader"]


def test_several_passes_may_run_at_once(stored, rng, case):
    for kind, path, rows in stored:
        with case(kind):
            source = open_rows_at(path, block_rows=11, threads=2)
            vectors = [vector_like(rng, rows, N) for _ in range(4)]
            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(partial(project, source), vectors))
            for answer, vector in zip(answers, vectors, strict=True):
                assert_allclose(answer, rows @ vector, atol=1e3 * np.finfo(rows.dtype).eps)


@given(
    count=st.integers(1, 60),
    size=st.integers(1, 20),
    workers=st.integers(1, 6),
    tired=st.sets(st.integers(0, 60), max_size=3),
)
def test_pieces_are_fetched_before_they_are_computed_on_and_each_exactly_once(count, size, workers, tired):
    pieces = [Piece(i, start, min(start + size, count)) for i, start in enumerate(range(0, count, size))]
    lock, done = threading.Lock(), []

    def fetch(piece, buffers):
        buffers[0][...] = piece.order

    def compute(piece, buffers):
        if piece.order in tired:
            threading.Event().wait(0.002)
        assert (buffers[0] == piece.order).all()
        assert buffers[0].size == piece.stop - piece.start
        with lock:
            done.append(piece.order)

    fetch_and_compute(pieces, fetch, compute, lambda: [np.empty(size)], workers=workers)
    assert sorted(done) == list(range(len(pieces)))


# --- chunks ----------------------------------------------------------------------------------------------------------


def test_reads_follow_the_chunks_of_the_file(rng, tmp_path):
    pytest.importorskip("h5py")
    A = rows_of(rng, "float64")
    source = open_rows_at(in_hdf5(tmp_path, A, chunks=(16, N)), block_rows=20)
    assert source.piece_rows() == 32
    fetched = []
    fetch = source._fetch

    def noted(start, stop, out):
        fetched.append((start, stop))
        fetch(start, stop, out)

    source._fetch = noted
    project(source, np.ones(N))
    assert fetched == [(start, min(start + 32, M)) for start in range(0, M, 32)]


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_chunks_that_every_pass_would_decode_many_times_are_warned_of(kind):
    shape, chunks = (40_000_000, 1000), (40_000_000, 1)
    with pytest.warns(UserWarning, match=r"has chunks of 40000000 x 1: .* Rewrite it in chunks of whole rows"):
        check_chunks(shape, 1, chunks, kind)


def test_chunks_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "available_memory", lambda: 10**9)
    with pytest.raises(
        DataError, match=r"one chunk of x, 1000000 x 1000 needs 16 GB of memory, but only 1 GB are left\."
    ):
        check_chunks((2_000_000, 1000), 8, (1_000_000, 1000), "x")


def test_a_large_row_group_of_a_parquet_file_is_not_decoded_at_once(rng, tmp_path):
    pa = pytest.importorskip("pyarrow")
    A = rng.standard_normal((40_000, 50))
    pq = pytest.importorskip("pyarrow.parquet")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(A.ravel()), 50)
    pq.write_table(pa.table({"A": lists}), tmp_path / "big.parquet", row_group_size=40_000, use_dictionary=False)
    source = open_rows_at(tmp_path / "big.parquet", block_rows=1000, threads=1)
    before, peak = pa.total_allocated_bytes(), []
    fetch = source._fetch

    def watched(start, stop, out):
        fetch(start, stop, out)
        peak.append(pa.total_allocated_bytes() - before)

    source._fetch = watched
    assert_allclose(project(source, np.ones(50)), A.sum(axis=1), atol=1e-11)
    assert max(peak) < A.nbytes / 3


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["npy", "npz", "hdf5", "hdf5-chunks", "parquet"])
def test_a_closed_source_says_so_instead_of_reading_another_file(file, rng, tmp_path):
    source = open_rows_at(FILES[file](tmp_path, rows_of(rng, "float64")))
    source.close()
    source.close()
    with pytest.raises(DataError, match=r"cannot be read|has been closed"):
        project(source, np.ones(N))


def test_a_file_that_shrinks_is_an_error_and_not_the_end_of_the_process(rng, tmp_path):
    path = in_npy(tmp_path, rows_of(rng, "float64"))
    source = open_rows_at(path)
    with open(path, "rb+") as file:
        file.truncate(2000)
    with pytest.raises(DataError, match="ends early"):
        project(source, np.ones(N))


def test_forgotten_files_are_closed(rng, tmp_path):
    source = as_source(in_npy(tmp_path, rows_of(rng, "float64")))
    closing = source._file.close
    assert closing.alive
    del source
    assert not closing.alive


@pytest.mark.parametrize("options", [{"block_rows": 0}, {"threads": -1}])
def test_impossible_options_are_refused(options, rng, tmp_path):
    with pytest.raises(ValueError, match="must be a positive number"):
        open_rows_at(in_npy(tmp_path, rows_of(rng, "float64")), **options)


# --- whole algorithms ------------------------------------------------------------------------------------------------


def test_robust_means_of_rows_on_disk_equal_those_in_memory(rng, tmp_path):
    A = rows_of(rng, "float64", 400, 5)
    A[:40] += 4
    there = rp.robust_mean(open_rows_at(in_npy(tmp_path, A), block_rows=100), 0.1)
    here = rp.robust_mean(A, 0.1)
    assert_allclose(there.location, here.location, atol=1e-9)
    assert_allclose(there.weights, here.weights, atol=1e-9)


# --- how much memory there is ----------------------------------------------------------------------------------------


def test_available_memory_is_a_sensible_number():
    available = available_memory()
    assert available is None or 10**6 < available < 10**15


def test_the_tightest_control_group_counts_and_its_page_cache_is_free(tmp_path):
    def group(folder, **files):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"memory.{name}").write_text(text)

    listing = tmp_path / "cgroup"
    listing.write_text("0::/job/step\n")
    group(tmp_path / "fs", max="max", current="5000", stat="active_file 0\n")
    group(tmp_path / "fs/job", max="3000\n", current="2500\n", stat="anon 900\nactive_file 600\ninactive_file 1000\n")
    group(tmp_path / "fs/job/step", max="max\n", current="2500\n", stat="active_file 0\n")
    assert _control_groups(tmp_path / "fs", listing) == 3000 - 900

    listing.write_text("7:cpu:/\n4:memory:/old\n")
    old = {
        "limit_in_bytes": "1000\n",
        "usage_in_bytes": "700\n",
        "stat": "cache 5\ntotal_active_file 100\ntotal_inactive_file 0\n",
    }
    group(tmp_path / "fs/memory/old", **old)
    assert _control_groups(tmp_path / "fs", listing) == 1000 - 600
    listing.write_text("7:cpu:/\n")
    assert _control_groups(tmp_path / "fs", listing) is None

"""Rows on a cluster give what the same rows in memory give; workers may die, and nothing grows."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.processes import DASK_WORKER, quiet, start

from robustphase.initialise.block_davidson import bin_products
from robustphase.rows import (
    DaskRows,
    DataError,
    MaskedRows,
    MemoryRows,
    Parts,
    ScaledRows,
    ShiftedRows,
    TransformedRows,
    adjoint,
    as_source,
    paired_loss_gradient,
    project,
    row_peaks,
    rows_at,
    squared_loss_gradient,
)
from robustphase.rows.dask import cluster
from robustphase.rows.dask.serialise import RowsElsewhere, deserialise, serialise
from robustphase.testing import dot_test

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

M, N, WORKERS = 1003, 7, 2
DTYPES = ["float32", "float64", "complex64", "complex128"]


def rows_of(rng, dtype="float64", m=M, n=N):
    rows = rng.standard_normal((m, n))
    if np.dtype(dtype).kind == "c":
        rows = (rows + 1j * rng.standard_normal((m, n))) / np.sqrt(2)
    return rows.astype(dtype)


@contextmanager
def more_workers(client, count):
    """Worker processes without anybody who would start them again, by address."""
    options = ("--no-nanny", "--nthreads", "1", "--no-dashboard")
    before = client.run(os.getpid)
    with ExitStack() as stack, quiet() as streams:
        for _ in range(count):
            process = start(DASK_WORKER, *options, client.scheduler.address, **streams)
            stack.callback(process.wait)
            stack.callback(process.kill)
        client.wait_for_workers(len(before) + count, timeout=60)
        yield {address: pid for address, pid in client.run(os.getpid).items() if address not in before}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as scheduler,
        distributed.Client(scheduler) as client,
        more_workers(client, WORKERS),
    ):
        yield client


@pytest.fixture(params=["lazy", "persisted", "without a client"])
def spread_out(request, client):
    """From an array to a source."""

    def source(A, chunks=(100, N)):
        array = da.from_array(A, chunks=chunks)
        if request.param == "persisted":
            return DaskRows(array.persist())
        if request.param == "lazy":
            return DaskRows(array, client=client)
        with client.as_current():
            rows = DaskRows(array)
        rows._cluster = None
        return rows

    return source


def on_scheduler(client, look):
    return client.run_on_scheduler(look)


# --- the same answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spread_out", "dtype"),
    # Every type in one way; real and complex numbers, single and double, in the others.
    [
        *(("lazy", dtype) for dtype in DTYPES),
        *((way, dtype) for way in ("persisted", "without a client") for dtype in ("float32", "complex128")),
    ],
    indirect=["spread_out"],
)
def test_every_pass_gives_what_it_gives_in_memory(dtype, spread_out, rng):
    A = rows_of(rng, dtype)
    there, here = spread_out(A), MemoryRows(A)
    y, weights, signal = (
        rng.random(M),
        rng.random(M),
        rows_of(rng, dtype, m=1)[0].astype(complex if A.dtype.kind == "c" else float),
    )
    bins, hidden = rng.integers(0, 5, M), rng.random(M) < 0.1
    tolerance = {"rtol": 200 * np.finfo(A.dtype).eps, "atol": 200 * np.finfo(A.dtype).eps}
    dot_test(there)
    for answer in (
        lambda rows: project(rows, signal),
        lambda rows: adjoint(rows, weights),
        lambda rows: squared_loss_gradient(rows, y, signal, weights).total,
        lambda rows: rows_at(rows, np.array([M - 1, 3, 500])),
        lambda rows: row_peaks(rows),
        lambda rows: project(MaskedRows(rows, hidden), signal),
        lambda rows: project(ShiftedRows(TransformedRows(rows, 2 * np.eye(N)), np.ones(N)), signal),
        lambda rows: ScaledRows(rows, y).covariance_times(weights, signal, np.eye(N))[0],
        lambda rows: paired_loss_gradient(rows, y, signal).total,
        lambda rows: paired_loss_gradient(MaskedRows(rows, hidden), y, signal).projections,
        lambda rows: rows.reduce(lambda a, b, c: Parts(rows=(a - b + c,)), pairing=3).rows[0],
        lambda rows: project(rows, signal),
    ):
        assert_allclose(answer(there), answer(here), **tolerance)
    # This one computes in single precision, and keeps scratch memory for each thread.
    vectors = rows_of(rng, dtype, m=N)
    assert_allclose(
        bin_products(there, vectors, bins, weights), bin_products(here, vectors, bins, weights), rtol=1e-4, atol=1e-3
    )


@pytest.mark.parametrize("dtype", ["int16", "bool", "float16", ">f8", ">c8"])
def test_foreign_types_are_converted(dtype, client, rng):
    A = (10 * rows_of(rng)).astype(dtype)
    there = DaskRows(da.from_array(A, chunks=(300, 3)))
    assert there.dtype == MemoryRows(A).dtype
    assert_allclose(project(there, np.ones(N)), project(MemoryRows(A), np.ones(N)), rtol=1e-6)


@pytest.mark.parametrize("persist", [False, True])
def test_chunks_may_be_uneven_or_empty_or_split_columns(persist, client, rng):
    A = rows_of(rng)
    for chunks in (((0, 3, 0, 700, 300, 0), (N,)), ((M,), (N,)), ((500, 503), (3, 4))):
        array = da.from_array(A, chunks=chunks)
        there = as_source(array.persist() if persist else array)
        assert isinstance(there, DaskRows)
        assert_array_equal(project(there, np.eye(N)), A)


def test_fewer_rows_than_workers_will_do(client):
    assert_array_equal(project(DaskRows(da.ones((1, 2))), np.eye(2)), np.ones((1, 2)))


def test_the_same_pass_gives_the_same_bits(client, rng):
    A, w = rows_of(rng), rng.random(M)
    first, second = (DaskRows(da.from_array(A, chunks=(90, N)), client=client) for _ in range(2))
    assert_array_equal(adjoint(first, w), adjoint(first, w))
    assert_array_equal(adjoint(first, w), adjoint(second, w))


def test_several_threads_may_sweep_the_same_rows(client, rng):
    A, w = rows_of(rng), rng.random((8, M))
    rows = DaskRows(da.from_array(A, chunks=(100, N)), client=client)
    with ThreadPoolExecutor(4) as pool:
        for weights, total in zip(w, pool.map(lambda weights: adjoint(rows, weights), w), strict=True):
            assert_allclose(total, weights @ A)


def test_without_any_client_the_rows_are_computed_here(rng, monkeypatch):
    def nobody(**options):
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed.Client, "current", nobody)
    A = rows_of(rng)
    rows = DaskRows(da.from_array(A, chunks=(100, 3)))
    with dask.config.set(scheduler="threads"):  # The client of the other tests has made itself the default.
        assert_array_equal(project(rows, np.eye(N)), A)
        assert rows._here is not None
        rows.close()
        assert_array_equal(project(rows, np.eye(N)), A)


# --- what travels, and what stays ----------------------------------------------------------------------------------------


def test_a_pass_is_one_task_for_each_worker_whatever_the_number_of_blocks(client):
    def passes_computed(dask_scheduler):
        return dask_scheduler.task_prefixes["robustphase-pass"].state_counts["memory"]

    for chunk in (500, 10):
        rows = DaskRows(da.ones((M, N), chunks=(chunk, N)), client=client)
        project(rows, np.ones(N))
        before = on_scheduler(client, passes_computed)
        for _ in range(5):
            project(rows, np.ones(N))
        assert on_scheduler(client, passes_computed) - before == 5 * WORKERS


def test_the_scheduler_holds_the_same_after_many_passes(client, monkeypatch):
    monkeypatch.setattr(cluster, "INLINE_BYTES", 0)
    rows, rng = DaskRows(da.ones((M, N), chunks=(50, N)), client=client), np.random.default_rng(0)

    def held(dask_scheduler):
        spans = dask_scheduler.extensions["spans"].spans.values()
        return {
            "tasks": len(dask_scheduler.tasks),
            "groups": len(dask_scheduler.task_groups),
            "prefixes": len(dask_scheduler.task_prefixes),
            "spans": len(spans),
            "groups in spans": sum(len(span.groups) for span in spans),
        }

    def settled():
        # Results are let go a moment after the pass.
        deadline, seen = time.monotonic() + 10, on_scheduler(client, held)
        while time.monotonic() < deadline:
            time.sleep(0.05)
            now = on_scheduler(client, held)
            if now == seen:
                return now
            seen = now
        return seen

    y = rng.random(M)
    for _ in range(20):  # Until the workers keep as many arrays as they may.
        squared_loss_gradient(rows, y, np.ones(N), rng.random(M))
    before, futures = settled(), len(client.futures)
    for _ in range(40):
        squared_loss_gradient(rows, y, np.ones(N), rng.random(M))
    after = settled()
    assert after["tasks"] <= before["tasks"] + WORKERS
    assert len(client.futures) <= futures + WORKERS
    assert {**after, "tasks": 0} == {**before, "tasks": 0}


def test_nothing_is_held_twice_and_nothing_remains(client):
    def keys():
        return [key for held in client.has_what().values() for key in held if key not in others]

    def soon(expected):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not expected(keys()):
            time.sleep(0.02)
        return expected(keys())

    others = {key for held in client.has_what().values() for key in held}
    rows = DaskRows(da.ones((M, N), chunks=(50, N)), client=client)
    project(rows, np.ones(N))
    assert soon(lambda found: sum("shard" in str(key) for key in found) == WORKERS and len(found) == WORKERS + 1)
    rows.close()
    assert soon(lambda found: not found)


def test_persisted_rows_are_swept_where_they_are(client):
    array = da.ones((M, N), chunks=(100, N)).persist()
    distributed.wait(array)
    rows = DaskRows(array)
    project(rows, np.ones(N))
    who_has = client.who_has(array)
    for part in rows._cluster.parts:
        for first, _ in part.place.ranges:
            assert part.worker in who_has[array.name, first // 100, 0]


def test_arrays_that_the_workers_have_are_not_sent_again(client, rng, monkeypatch):
    monkeypatch.setattr(cluster, "INLINE_BYTES", 2000)
    A, y, w = rows_of(rng), rng.random(M), rng.random(M)
    rows, sent = DaskRows(da.from_array(A, chunks=(100, N)), client=client), []
    send = client.scatter

    def scatter(data, **options):
        sent.extend(values.nbytes for values in data.values())
        return send(data, **options)

    monkeypatch.setattr(client, "scatter", scatter)

    def total():
        sent.clear()
        answer = rows.reduce(lambda block, y, w: Parts(sums=(np.dot(y * w, block),)), (y, w)).sums[0]
        assert_allclose(answer, (y * w) @ A)
        return sum(sent)

    assert total() == 2 * 8 * M  # Each worker its own slices.
    assert total() == 0
    w[0] += 1.0  # The same array, but not the same numbers.
    assert 0 < total() < 8 * M
    y[:] = rng.random(M)
    assert total() == 8 * M


def test_workers_keep_only_so_much(client, rng, monkeypatch):
    monkeypatch.setattr(cluster, "INLINE_BYTES", 0)
    rows = DaskRows(da.from_array(rows_of(rng), chunks=(100, N)), client=client)
    for _ in range(30):
        adjoint(rows, rng.random(M))
    for part in rows._cluster.parts:
        assert 0 < sum(size for _, size in part.kept.values()) <= cluster.KEPT_PER_ROW * part.place.rows


def test_a_serialised_kernel_leaves_sources_and_scratch_behind(rng):
    source, scratch = MemoryRows(rows_of(rng)), threading.local()
    scratch.lock = threading.Lock()

    def kernel(block):
        assert not hasattr(scratch, "lock")
        return Parts(sums=(np.array(source.shape), np.array(isinstance(source, MemoryRows))))

    serialised = serialise(kernel)
    assert len(serialised) < 5000
    shape, same = deserialise(serialised)(None).sums
    assert tuple(shape) == source.shape
    assert not same
    assert RowsElsewhere(source.shape, source.dtype).dtype == source.dtype


# --- losses --------------------------------------------------------------------------------------------------------------


def test_workers_killed_in_the_middle_of_a_pass_change_nothing(client, rng, monkeypatch):
    A, w = rows_of(rng), rng.random(M)
    array = da.from_array(A, chunks=(50, N))

    def slowly(block, w):
        time.sleep(0.02)
        return Parts(sums=(np.dot(w, block),), rows=(np.dot(block, block[0]) * w,))

    with more_workers(client, 2) as processes:
        kept = array.persist()
        distributed.wait(kept)
        # Once with everything in the task, and once with arrays that are lost with the worker.
        for inline, rows in ((1 << 20, DaskRows(array, block_rows=20)), (0, DaskRows(kept, block_rows=20))):
            monkeypatch.setattr(cluster, "INLINE_BYTES", inline)
            before = rows.reduce(slowly, (w,))
            victim = next(part.worker for part in rows._cluster.parts if part.worker in processes)
            killer = threading.Timer(0.05, os.kill, (processes.pop(victim), signal.SIGKILL))
            killer.start()
            during = rows.reduce(slowly, (w,))
            killer.join()
            after = rows.reduce(slowly, (w,))
            assert victim not in client.nthreads()
            for parts in (during, after):
                assert_array_equal(parts.sums[0], before.sums[0])
                assert_array_equal(parts.rows[0], before.rows[0])


def test_a_restarted_cluster_gets_the_rows_again(client, rng):
    A = rows_of(rng)
    rows = DaskRows(da.from_array(A, chunks=(100, N)), client=client)
    assert_array_equal(project(rows, np.eye(N)), A)
    client.cancel([part.shard for part in rows._cluster.parts], force=True)
    assert_array_equal(project(rows, np.eye(N)), A)


def test_an_error_in_a_kernel_is_raised_here(client):
    def kernel(block):
        raise ZeroDivisionError("in the kernel")

    rows = DaskRows(da.ones((M, N), chunks=(100, N)), client=client)
    with pytest.raises(ZeroDivisionError, match="in the kernel"):
        rows.reduce(kernel)
    assert_array_equal(project(rows, np.ones(N)), N)


def test_rows_that_cannot_come_back_are_an_error_that_says_so(client, rng):
    rows = DaskRows(da.from_array(rows_of(rng), chunks=(100, N)).persist(), client=client)
    project(rows, np.ones(N))
    client.cancel(rows.array, force=True)
    client.cancel([part.shard for part in rows._cluster.parts], force=True)
    with pytest.raises(RuntimeError, match="was lost 3 times"):
        project(rows, np.ones(N))


# --- what is refused -----------------------------------------------------------------------------------------------------


def test_arrays_that_cannot_be_used_are_refused(client):
    ones = da.ones((M, N), chunks=(100, N))
    with pytest.raises(TypeError, match=r"needs a dask\.array\.Array, got ndarray"):
        DaskRows(np.ones((3, 3)))
    with pytest.raises(DataError, match="two dimensions"):
        DaskRows(ones[:, 0])
    with pytest.raises(DataError, match="compute_chunk_sizes"):
        DaskRows(ones[ones[:, 0] > 0])
    with pytest.raises(DataError, match="numbers are needed"):
        DaskRows(ones.astype(object))
    with pytest.raises(DataError, match="empty"):
        DaskRows(ones[:0])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda block: block[1:], r"has shape \(99, 7\) where the array declares \(100, 7\)"),
        (lambda block: block.astype(complex), "holds complex128 where the array declares float64"),
    ],
    ids=["shape", "type"],
)
def test_chunks_that_are_not_what_the_array_declares_are_refused(made, message, client):
    array = da.ones((200, N), chunks=(100, N)).map_blocks(made, dtype=np.float64, meta=np.empty((0, 0)))
    with pytest.raises(DataError, match=message):
        project(DaskRows(array, client=client), np.ones(N))


def test_a_cluster_without_workers_is_refused():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", processes=False) as empty,
        distributed.Client(empty) as client,
        pytest.raises(RuntimeError, match="wait_for_workers"),
    ):
        project(DaskRows(da.ones((M, N)), client=client), np.ones(N))


def test_an_asynchronous_client_is_refused():
    class Asynchronous:
        asynchronous = True

    with pytest.raises(TypeError, match="asynchronous=True"):
        DaskRows(da.ones((M, N)), client=Asynchronous())


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r"pip install 'robustphase\[dask\]'"):
        DaskRows(None)

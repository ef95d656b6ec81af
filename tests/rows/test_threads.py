"""BLAS gets back the number of threads it had, whatever happens inside."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from robustphase.rows import MemoryRows, project
from robustphase.rows.threads import allowed_threads, single_threaded_blas


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_threads_are_restored_after_nested_and_failing_use():
    before = blas_threads()
    with single_threaded_blas(), single_threaded_blas():
        assert max(blas_threads()) == 1
    with pytest.raises(ZeroDivisionError), single_threaded_blas():
        1 / 0  # noqa: B018
    assert blas_threads() == before


def test_many_user_threads_may_sweep_at_once(rng):
    before = blas_threads()
    rows = rng.standard_normal((4000, 20))
    vectors = rng.standard_normal((20, 8))

    def work(k):
        return project(MemoryRows(rows, block_rows=100, threads=3), vectors[:, k])

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    np.testing.assert_allclose(np.stack(results, axis=1), rows @ vectors)
    assert blas_threads() == before


def test_a_limit_set_by_the_user_is_ours_too():
    with threadpool_limits(1, user_api="blas"):
        assert allowed_threads() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="fork does not exist there")
def test_a_forked_child_can_sweep(rng):
    rows = rng.standard_normal((500, 4))
    source = MemoryRows(rows, block_rows=50, threads=3)
    project(source, np.ones(4))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(project(source, np.ones(4)).sum()))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert queue.get() == pytest.approx(rows.sum())

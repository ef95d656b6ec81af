"""A fit on a cluster gives the answer of the fit in memory, also when a worker is killed on the way."""

from __future__ import annotations

import os
import signal
from threading import Event, Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.processes import local_cluster

import robustphase as rp
from robustphase.descend.climb import CLIMB
from robustphase.rows import DaskRows

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """Two worker processes that are started again when they die."""
    with local_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def in_memory(world):
    return rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)


def in_chunks(world, rows=130):
    return da.from_array(world.A, chunks=(rows, 7)), da.from_array(world.y, chunks=rows)


def test_a_dask_array_is_all_that_is_needed(world, client, in_memory):
    A, y = in_chunks(world)
    for rows in (A, A.persist()):
        model = rp.RobustPhaseRetrieval(0.1).fit(rows, y)
        assert_allclose(model.signal_, in_memory.signal_, rtol=0, atol=1e-8)
        # Blocks are summed in another order, and a fit ends when steps are shorter than its tolerance.
        assert_allclose(model.weights_, in_memory.weights_, rtol=0, atol=CLIMB.tol)
        assert model.history_[-1].passes == in_memory.history_[-1].passes
        assert_allclose(model.predict(rows), in_memory.predict(world.A), atol=1e-7)


def test_an_unknown_background_and_dropped_samples_work_as_in_memory(world, client):
    spoiled = world.A.copy()
    spoiled[17, 3] = np.inf
    settings = {"contamination": 0.1, "noise_mean": "unknown", "nonfinite": "drop"}
    there = rp.RobustPhaseRetrieval(**settings).fit(da.from_array(spoiled, chunks=(300, 20)), world.y)
    here = rp.RobustPhaseRetrieval(**settings).fit(spoiled, world.y)
    assert_allclose(there.signal_, here.signal_, rtol=0, atol=1e-8)
    assert there.weights_[17] == 0


def test_robust_means_take_dask_arrays(world, client):
    A, _ = in_chunks(world)
    assert_allclose(rp.robust_mean(A, 0.1).location, rp.robust_mean(world.A, 0.1).location, atol=1e-8)


def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(world, client):
    A, y = in_chunks(world)
    rows, killed, over = DaskRows(A), [], Event()
    before = rp.RobustPhaseRetrieval(0.1).fit(rows, y)
    processes, passes = client.run(os.getpid), rows.passes

    def kill_later():
        while not over.wait(0.001):
            if rows.passes >= passes + 10:
                victim = rows._cluster.parts[0].worker
                os.kill(processes[victim], signal.SIGKILL)
                killed.append(rows.passes - passes)
                return

    killer = Thread(target=kill_later)
    killer.start()
    try:
        after = rp.RobustPhaseRetrieval(0.1).fit(rows, y)
    finally:
        over.set()
        killer.join()
    # The kill came between the first passes and the last one.
    assert killed
    assert killed[0] < rows.passes - passes
    # The rows are cut as before, so that even the last bits agree.
    assert_array_equal(after.signal_, before.signal_)
    assert_array_equal(after.weights_, before.weights_)

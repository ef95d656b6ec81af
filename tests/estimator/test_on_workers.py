"""Very many samples on a cluster: nothing comes here but sums and a pilot, and the answer is that of the fit in memory."""

from __future__ import annotations

import os
import signal
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.processes import local_cluster

import robustphase as rp
from robustphase.constants import varied
from robustphase.recover.pilot import PILOT
from robustphase.rows import DaskRows

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

M, N = 12000, 12


@pytest.fixture(scope="module", autouse=True)
def small_pilots():
    """Pilots of a size that tests can afford."""
    with varied(PILOT, fewest=2000):
        yield


@pytest.fixture(scope="module")
def client():
    """Two worker processes that are started again when they die."""
    with local_cluster() as client:
        yield client


def there(A, y, rows=1700):
    return da.from_array(A, chunks=(rows, 5)), da.from_array(y, chunks=rows // 2)


def world_of(kind, attack="leverage"):
    world = rp.simulate.make_world(n=N, m=M, contamination=0.1, attack=attack, field=kind, seed=3)
    return world.A, world.y


@pytest.fixture(scope="module")
def usual(client):
    """A world, the fit to its samples on the workers and that to its samples here."""
    A, y = world_of("real")
    return A, y, rp.RobustPhaseRetrieval(0.1).fit(*there(A, y)), rp.RobustPhaseRetrieval(0.1).fit(A, y)


def test_the_answer_is_that_of_the_same_samples_in_memory(usual):
    assert_same_answers(*usual[2:])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("complex", {"contamination": 0.1}), ("real", {"contamination": "auto", "noise_mean": "unknown"})],
)
def test_complex_signals_and_unknown_levels_are_those_of_the_same_samples_in_memory(kind, settings, client):
    A, y = world_of(kind)
    fits = (rp.RobustPhaseRetrieval(**settings).fit(*samples) for samples in (there(A, y), (A, y)))
    assert_same_answers(*fits)


def assert_same_answers(model, here):
    assert model.history_[-1].stage == "all samples"
    assert_allclose(model.signal_, here.signal_, rtol=0, atol=1e-8)
    for name in ("noise_mean_", "noise_scale_", "residual_centre_", "contamination_"):
        assert getattr(model, name) == pytest.approx(getattr(here, name), abs=1e-8), name
    for name in ("weights_", "residual_weights_", "covariate_weights_"):
        values = getattr(model, name)
        assert isinstance(values, da.Array), name
        assert_allclose(np.asarray(values), getattr(here, name), atol=1e-6, err_msg=name)
    assert_array_equal(np.asarray(model.flag_samples()), here.flag_samples())
    assert model.converged_
    assert here.certificate_ <= model.certificate_ < 4 * here.certificate_
    assert model.model_check_.severe is here.model_check_.severe


def test_standard_errors_and_diagnostics_bring_here_what_they_need(usual):
    A, y, model, here = usual
    rows, responses = there(A, y)
    assert_allclose(model.standard_errors(rows, responses), here.standard_errors(A, y), rtol=1e-6)
    found = rp.report.FitDiagnostics.of(model, rows, responses)
    assert_allclose(found.weights, here.weights_, atol=1e-6)


def test_rows_that_are_not_standard_are_standardised_where_they_are(client):
    rng = np.random.default_rng(0)
    A, x = 0.7 * rng.standard_normal((M, N)) + 1.0, rng.standard_normal(N)
    y = (A @ x) ** 2 + 0.3 * rng.standard_normal(M)
    y[:900] = 50.0
    model = rp.RobustPhaseRetrieval(0.1).fit(*there(A, y))
    here = rp.RobustPhaseRetrieval(0.1).fit(A, y)
    assert model.history_[-1].stage == "all samples"
    error = rp.distance(here.signal_, x, relative=True)
    # The mean that is taken away is that of the pilot here and of all rows there.
    assert rp.distance(model.signal_, here.signal_, relative=True) < 0.1 * error
    assert np.mean(np.asarray(model.flag_samples()) != here.flag_samples()) < 0.01


def test_nothing_of_the_length_of_the_data_is_made_here(client):
    """Chunks that the workers make themselves, so that a per-sample array would be the largest thing here."""

    def load(block_info=None, rows=0, columns=5):
        place = block_info[None]["chunk-location"][0]
        numbers = np.random.default_rng([place, columns]).standard_normal((rows, columns))
        return numbers if columns > 1 else numbers[:, 0]

    def peak_of_a_fit(chunk):
        A = da.map_blocks(load, rows=chunk, chunks=((chunk,) * 5, (5,)), dtype=float)
        y = (A @ np.ones(5)) ** 2 + da.map_blocks(load, rows=chunk, columns=1, chunks=((chunk,) * 5,), dtype=float)
        rows = DaskRows(A)
        tracemalloc.start()
        try:
            model = rp.RobustPhaseRetrieval(0.1).fit(rows, y)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert model.history_[-1].stage == "all samples"
        assert rp.distance(model.signal_, np.ones(5)) < 0.02
        return peak

    # What is imported and cached by a first fit is not counted.
    peak_of_a_fit(2_000)
    few, many = peak_of_a_fit(4_000), peak_of_a_fit(50_000)
    # One number for each of 230,000 samples more would be nearly twice as much.
    assert many - few < 1e6


def test_a_worker_that_dies_changes_nothing(client):
    A, y = world_of("real")
    rows, responses = DaskRows(there(A, y)[0]), there(A, y)[1]
    before = rp.RobustPhaseRetrieval(0.1).fit(rows, responses)
    killed = []

    def kill(progress):
        if not killed and progress.stage == "likelihood":
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    after = rp.RobustPhaseRetrieval(0.1, callback=kill).fit(rows, responses)
    assert killed
    assert_array_equal(after.signal_, before.signal_)


def test_samples_that_are_not_ordinary_are_looked_at_one_by_one(client):
    A, y = world_of("real")
    A[17, 3] = np.nan
    with pytest.raises(ValueError, match="first: row 17"):
        rp.RobustPhaseRetrieval(0.1).fit(*there(A, y))
    model = rp.RobustPhaseRetrieval(0.1, nonfinite="drop").fit(*there(A, y))
    assert model.history_[-1].stage != "all samples"
    assert model.weights_[17] == 0


def test_responses_that_are_here_stay_here_with_what_is_said_of_them(usual):
    A, y, _, here = usual
    model = rp.RobustPhaseRetrieval(0.1).fit(there(A, y)[0], y)
    assert isinstance(model.weights_, np.ndarray)
    assert_allclose(model.signal_, here.signal_, atol=1e-8)


def test_responses_of_another_length_are_refused(client):
    A, y = world_of("real")
    with pytest.raises(ValueError, match="12000 rows but y has 11999 responses"):
        rp.RobustPhaseRetrieval(0.1).fit(*there(A, y[:-1]))

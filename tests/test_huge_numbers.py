"""Finite numbers of any size are contamination: the answer is that of the data without them, and nothing overflows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from tests.effort import THOROUGH

from robustphase import RobustPhaseRetrieval, distance, leading_eigenvector, paper, robust_covariance, spectral_init
from robustphase.simulate import make_world

HUGE = (1e150, 1e200)


def spoilt_worlds(field, n=12, m=700):
    """A world, a tenth of its samples, and data in which those hold huge rows or huge responses."""
    world = make_world(n, m, contamination=0.0, attack="none", noise="gaussian", field=field, seed=3)
    bad = np.arange(m) % 10 == 3
    data = []
    for value in HUGE:
        data.append((np.where(bad[:, np.newaxis], value * world.A, world.A), world.y))
        data.append((world.A, np.where(bad, value, world.y)))
        data.append((world.A, np.where(bad, -value, world.y)))
    single = world.A.astype(np.complex64 if field == "complex" else np.float32)
    single[bad] *= 1e30
    data.append((single, world.y))
    return world, bad, data


@pytest.mark.parametrize("field", ["real", "complex"])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"contamination": "auto"}, {"noise_mean": "unknown"}, {"whiten": True}, {"init": "mean"}],
    ids=["default", "auto", "unknown mean", "whiten", "mean"],
)
def test_a_fit_is_as_good_as_without_the_huge_samples(field, parameters):
    world, bad, data = spoilt_worlds(field)
    without = RobustPhaseRetrieval(**parameters).fit(world.A[~bad], world.y[~bad])
    reference = distance(without.signal_, world.truth, relative=True)
    # All data by default; in other ways to fit those of every second kind, by turns of the field, where there is not much time.
    for A, y in data[field == "complex" :: 2] if parameters and not THOROUGH else data:
        model = RobustPhaseRetrieval(**parameters).fit(A, y)
        assert model.converged_
        assert (model.weights_[bad] == 0).all()
        assert distance(model.signal_, world.truth, relative=True) < 1.1 * reference
        # Rows that were not seen before are predicted, however long they are; beyond the largest double that is infinite.
        assert not np.isnan(model.predict(A)).any()


def test_many_signals_and_streams_survive_huge_samples():
    world, bad, data = spoilt_worlds("real")
    for A, y in data:
        several = RobustPhaseRetrieval().fit(A, np.stack((y, world.y), axis=1))
        assert (several.weights_[bad, 0] == 0).all()
        assert max(distance(signal, world.truth, relative=True) for signal in several.signal_) < 0.1
        stream = RobustPhaseRetrieval().partial_fit(world.A, world.y).partial_fit(A, y)
        assert distance(stream.signal_, world.truth, relative=True) < 0.1


@pytest.mark.parametrize("count", [1, 2, 12])
def test_responses_that_are_just_not_too_large_hardly_touch_exact_data(count, rng):
    # Of many signals residuals are judged in single precision, which ends at 1e38, and here in units of roundings.
    A, X = rng.standard_normal((200, 5)), rng.standard_normal((5, count))
    Y = (A @ X) ** 2
    for value in (1e36, -1e36):
        Y[::10] = value
        model = RobustPhaseRetrieval().fit(A, Y if count > 1 else Y[:, 0])
        assert (model.weights_[::10] == 0).all()
        for signal, truth in zip(np.atleast_2d(model.signal_), X.T, strict=True):
            assert distance(signal, truth, relative=True) < 1e-9


@pytest.mark.parametrize("method", ["auto", "spectral"])
def test_a_start_is_that_of_the_samples_without_the_huge_ones(method):
    world, bad, data = spoilt_worlds("real")
    expected = spectral_init(world.A[~bad], world.y[~bad], method=method).signal
    for A, y in data:
        found = spectral_init(A, y, method=method)
        assert (found.weights[bad] == 0).all()
        assert distance(found.signal, expected, relative=True) < 0.1


def test_the_procedures_and_algorithms_of_the_paper_survive_huge_samples():
    # The robust means of the paper may take ε of the samples; the huge ones are part of that, so less is lost with them.
    world, bad, data = spoilt_worlds("real", n=5, m=4000)

    def error(signal):
        return distance(signal, world.truth, relative=True)

    clean = world.A[~bad], world.y[~bad]
    for configuration in ("mean", "covariance"):
        for procedure in (paper.procedure_1, paper.procedure_3):
            reference = error(procedure(*clean, contamination=0.1, configuration=configuration))
            for A, y in data[::2]:
                assert error(procedure(A, y, contamination=0.1, configuration=configuration)) < 1.1 * reference
    for algorithm in (paper.algorithm_2, paper.algorithm_4):
        reference = error(algorithm(1.1 * world.truth, [clean] * 20, contamination=0.1))
        for A, y in data[::2]:
            assert error(algorithm(1.1 * world.truth, [(A, y)] * 20, contamination=0.1)) < 1.1 * reference


def test_spectra_are_those_of_the_other_points(rng):
    points = rng.standard_normal((600, 8)) * np.r_[3.0, np.ones(7)]
    bad = np.arange(600) % 10 == 3
    expected, top = robust_covariance(points[~bad]).covariance, leading_eigenvector(points[~bad]).vector
    for value in HUGE:
        spoilt = np.where(bad[:, np.newaxis], value, points)
        found, leading = robust_covariance(spoilt), leading_eigenvector(spoilt)
        assert (found.weights[bad] == 0).all()
        assert (leading.weights[bad] == 0).all()
        assert_allclose(found.covariance, expected, atol=0.1 * expected.max())
        assert abs(leading.vector @ top) > 0.99
    for estimate in (robust_covariance, leading_eigenvector):
        with pytest.raises(ValueError, match=r"rows of X are larger than.*Divide X by"):
            estimate(1e200 * points)


def test_a_descent_steps_as_if_dropped_samples_had_never_been():
    world = make_world(6, 400, contamination=0.0, attack="none", noise="gaussian", seed=5)
    missing = np.arange(400) % 200 < 60
    settings = {
        "step": "paper",
        "mean_estimator": "empirical",
        "init": 1.1 * world.truth,
        "polish": False,
        "max_iter": 1,
    }
    for noise_mean, m in (("zero", 400), ("unknown", 200)):
        # A pair (j, j + m // 2) is lost with either of its samples.
        A = np.where((missing & (np.arange(400) < m))[:, np.newaxis], np.nan, world.A)
        with pytest.warns(ConvergenceWarning):
            found = RobustPhaseRetrieval(noise_mean=noise_mean, nonfinite="drop", **settings).fit(A, world.y)
        with pytest.warns(ConvergenceWarning):
            without = RobustPhaseRetrieval(noise_mean=noise_mean, **settings).fit(world.A[~missing], world.y[~missing])
        assert_allclose(found.signal_, without.signal_, rtol=1e-9)


def test_a_batch_without_a_usable_sample_is_an_error_that_says_what_to_do():
    world = make_world(6, 400, contamination=0.0, attack="none", noise="gaussian", seed=5)
    A = np.where(np.arange(400)[:, np.newaxis] < 100, np.nan, world.A)
    for noise_mean, what in (("zero", "sample"), ("unknown", "pair of samples")):
        model = RobustPhaseRetrieval(step="paper", batches=4, noise_mean=noise_mean, init=world.truth, nonfinite="drop")
        with pytest.raises(ValueError, match=f"a batch holds no {what} that can be used.*shuffle"):
            model.fit(A, world.y)

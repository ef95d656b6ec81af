"""The fit under laws whose noise depends on the signal."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from robustphase import distance
from robustphase.descend.law_fit import fit_law
from robustphase.likelihood.bad_responses import marginal_law
from robustphase.likelihood.dependent_noise import PoissonLaw
from robustphase.likelihood.laws import Readings
from robustphase.problem import Problem
from robustphase.rows import as_source


def counts(*, mean=3.0, dark=0.3, n=6, m=400, field="real", seed=0):
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((m, n)), rng.standard_normal(n)
    if field == "complex":
        A = (A + 1j * rng.standard_normal((m, n))) / np.sqrt(2)
        x = x + 1j * rng.standard_normal(n)
    x = x * np.sqrt(mean) / np.linalg.norm(x)
    y = rng.poisson(np.abs(A @ x) ** 2 + dark).astype(float)
    return A, y, x


def posed(A, y, level=0.1):
    weights = np.ones((y.size, 1))
    law = marginal_law(y[:, None], weights, counts=True)
    read = Readings(y[:, None], weights, None, np.zeros((y.size, 1)), law)
    return Problem(as_source(A), y[:, None], weights, law, np.array([level]), np.ones(1), True), read


def test_without_bad_counts_it_is_poisson_maximum_likelihood():
    A, y, x = counts()
    problem, read = posed(A, y, level=0.0)
    fit = fit_law(problem, read, PoissonLaw(np.array([1e-12])), 1.1 * x[:, None], np.array([0.2]))

    def negative(point):
        mu = (A @ point[:-1]) ** 2 + np.exp(point[-1])
        residual = 1 - y / mu
        gradient = np.append(2 * A.T @ (residual * (A @ point[:-1])), residual.sum() * np.exp(point[-1]))
        return float(np.sum(mu - y * np.log(mu))), gradient

    best = minimize(negative, np.append(x, np.log(0.3)), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    # The model of the fit has at least a few bad counts; their share is small, and so is what it changes.
    assert distance(fit.signals[:, 0], best[:-1], relative=True) < 5e-3
    assert_allclose(fit.backgrounds[0], np.exp(best[-1]), rtol=0.1)
    assert fit.converged.all()


def test_no_step_lowers_the_likelihood(case):
    for field in ["real", "complex"]:
        for mean in [0.3, 3.0, 100.0]:
            with case(field, mean):
                A, y, x = counts(mean=mean, dark=0.1 * mean, n=10, m=800, field=field)
                y[:60] = np.roll(y, 7)[:60] * 3
                problem, read = posed(A, y)
                rng = np.random.default_rng(5)
                start = x + 0.3 * np.linalg.norm(x) * rng.standard_normal(x.size) / np.sqrt(x.size)
                fit = fit_law(problem, read, PoissonLaw(np.array([0.05])), start[:, None], np.array([0.05 * mean]))
                assert np.diff(fit.merits[:, 0]).min() > -1e-10
                assert fit.merits[-1, 0] > fit.merits[0, 0]


def test_a_dark_count_of_nothing_rests_on_its_bound():
    A, y, x = counts(mean=5.0, dark=0.0, m=600)
    problem, read = posed(A, y)
    fit = fit_law(problem, read, PoissonLaw(np.array([0.02])), x[:, None], np.array([0.3]))
    assert 0 < fit.backgrounds[0] < 0.05
    assert distance(fit.signals[:, 0], x, relative=True) < 0.1


def test_columns_do_not_know_of_each_other():
    A, y, x = counts(n=8, m=500)
    problem, read = posed(A, y)
    starts = np.stack((x, 1.2 * x, np.roll(x, 1)), axis=1)
    together = fit_law(problem, read, PoissonLaw(np.full(3, 0.05)), starts, np.full(3, 0.3))
    alone = fit_law(problem, read, PoissonLaw(np.array([0.05])), starts[:, [1]], np.array([0.3]))
    assert distance(together.signals[:, 1], alone.signals[:, 0], relative=True) < 1e-4


def test_columns_that_have_ended_stay_where_they_ended():
    A, y, x = counts(n=8, m=500)
    problem, read = posed(A, y)
    law = PoissonLaw(np.array([0.05]))
    ended = fit_law(problem, read, law, x[:, None], np.array([0.3]))
    starts = np.hstack((ended.signals, np.roll(x, 1)[:, None], np.roll(x, 3)[:, None]))
    mixing = np.append(ended.law.mixing, (0.05, 0.05))
    together = fit_law(problem, read, PoissonLaw(mixing), starts, np.append(ended.backgrounds, (0.3, 0.3)))
    assert len(together.merits) > 5
    assert_allclose(together.signals[:, 0], ended.signals[:, 0], rtol=1e-12)
    assert_allclose(together.merits[:, 0], ended.merits[-1, 0], rtol=1e-12)

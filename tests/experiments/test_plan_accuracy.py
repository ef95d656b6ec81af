"""The closed forms behind a plan, checked by simulation and against each other."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, norm

import robustphase as rp
from robustphase.experiments.methods import oracle_least_squares
from robustphase.experiments.theory import (
    FARTHEST,
    _product_erf,
    confidence_factor,
    floor,
    inverse_information,
    least_squares_error,
)


def simulated(n, m, s, *, background=False, erased=0.0, seeds=40):
    """Root mean squared error of least squares from the truth, without an adversary, on m samples of which some are erased."""
    errors = []
    for seed in range(seeds):
        world = rp.simulate.make_world(n, m, contamination=0.0, attack="none", noise="gaussian", noise_std=s, seed=seed)
        keep = np.argsort(np.abs(world.A @ world.truth))[: m - round(erased * m)]
        x = oracle_least_squares(world.A[keep], world.y[keep], world.truth, background=0.0 if background else None)
        errors.append(rp.distance(x, world.truth, relative=True))
    return math.sqrt(np.mean(np.square(errors)))


# A root mean square of 40 errors with n degrees of freedom each has a relative deviation of 1/sqrt(80 n): below 3% here.
@pytest.mark.parametrize(
    ("n", "per_unknown", "s"), [(20, 100, 0.5), (30, 20, 0.5), (30, 10, 0.1), (20, 50, 0.02), (30, 40, 1.0)]
)
def test_least_squares_has_the_error_of_the_closed_form(n, per_unknown, s):
    assert_allclose(simulated(n, n * per_unknown, s), least_squares_error(n, n * per_unknown, s), rtol=0.08)


def test_a_background_and_erased_samples_cost_what_the_closed_form_says():
    assert_allclose(
        simulated(5, 500, 0.3, background=True), least_squares_error(5, 500, 0.3, background=True), rtol=0.12
    )
    for erased in (0.1, 0.2):
        expected = least_squares_error(20, 1000, 0.3, erased=erased)
        assert_allclose(simulated(20, 1000, 0.3, erased=erased), expected, rtol=0.08)


def test_with_many_samples_the_error_is_that_of_the_fisher_information():
    # trace of (4 (I + 2 x x'))^-1 over m.
    assert_allclose(least_squares_error(50, 5e7, 0.5), 0.5 * math.sqrt((49 / 4 + 1 / 12) / 5e7), rtol=1e-4)


def test_erasing_the_most_informative_samples_leaves_a_share_of_a_chi_square_with_three_degrees():
    for erased in (0.05, 0.1, 0.2, 0.3):
        assert_allclose(inverse_information(1e-9, erased), 1 / chi2.cdf(chi2.isf(erased, 1), 3), rtol=1e-6)


def test_the_factor_solves_its_equation():
    for aspect, erased in product((0.01, 0.1, 0.4, 0.8), (0.0, 0.1)):
        t = inverse_information(aspect, erased)
        edge = norm.isf(erased / 2) if erased else 12.0
        u = np.linspace(-edge, edge, 200_001)
        mean = np.trapezoid(norm.pdf(u) * t * u**2 / (1 + t * aspect * u**2), u)
        assert_allclose(mean, 1.0, rtol=1e-6)


def test_with_fewer_samples_than_unknowns_the_error_is_infinite():
    assert math.isinf(least_squares_error(10, 10, 0.5))
    assert math.isinf(least_squares_error(90, 100, 0.5, erased=0.1))
    assert math.isinf(least_squares_error(10, 10, 0.0))
    assert least_squares_error(10, 20, 0.0) == 0.0


def test_the_confidence_factor_is_exceeded_with_probability_delta(rng):
    lengths = np.linalg.norm(rng.standard_normal((20000, 30)), axis=1) / math.sqrt(30)
    assert_allclose(np.mean(lengths > confidence_factor(30, 0.05)), 0.05, atol=0.006)


def test_the_total_variation_is_that_of_two_normal_laws(rng):
    u, v = rng.standard_normal((2, 400_000))
    for c in (0.01, 0.3, 1.0, 20.0, 3000.0):
        with np.errstate(under="ignore"):
            direct = np.mean([math.erf(x) for x in c * np.abs(u * v)[:50_000]])
        assert_allclose(_product_erf(c), direct, atol=0.01)


def test_the_floor_is_linear_for_little_contamination_and_ends_at_signals_at_right_angles():
    assert_allclose(floor(0.3, 1e-4) / (0.3 * 1e-4), math.sqrt(math.pi**3) / math.sqrt(8), rtol=1e-3)
    assert floor(5.0, 0.4) == FARTHEST / 2
    assert floor(0.5, 0.0) == floor(0.0, 0.1) == 0.0


def two_worlds(n, m, s, level, seed):
    """Samples of one signal of which the adversary of the floor has rewritten a fraction, responses only."""
    rng = np.random.default_rng(seed)
    half = floor(s, level)
    middle, step = np.zeros(n), np.zeros(n)
    middle[0], step[1] = math.sqrt(1 - half**2), half
    truth, other = middle + step, middle - step
    A = rng.standard_normal((m, n))
    here, there = (A @ truth) ** 2, (A @ other) ** 2
    y = here + s * rng.standard_normal(m)
    p, q = norm.pdf(y, here, s), norm.pdf(y, there, s)
    bad = np.flatnonzero(rng.random(m) < np.clip((p - q) / (2 * p), 0, 1))
    share, waiting = bad.size / m, bad
    while waiting.size:
        drawn = there[waiting] + s * rng.standard_normal(waiting.size)
        p, q = norm.pdf(drawn, here[waiting], s), norm.pdf(drawn, there[waiting], s)
        taken = rng.random(waiting.size) < np.clip(1 - p / q, 0, 1)
        y[waiting[taken]] = drawn[taken]
        waiting = waiting[~taken]
    return A, y, truth, other, share


@pytest.mark.parametrize(("s", "level"), [(0.5, 0.1), (0.1, 0.1), (0.5, 0.05)])
def test_some_adversary_forces_the_floor_and_we_do_not_exceed_it_by_much(s, level):
    A, y, truth, other, share = two_worlds(30, 9000, s, level, seed=1)
    # The share of rewritten samples is binomial with mean ε.
    assert abs(share - level) < 4 * math.sqrt(level / 9000)
    found = rp.RobustPhaseRetrieval(level).fit(A, y).signal_
    # Nobody can tell the two signals apart: half-way between them the error is the floor for either.
    forced = max(rp.distance(found, truth), rp.distance(found, other))
    assert floor(s, level) * 0.95 < forced < 1.35 * floor(s, level)

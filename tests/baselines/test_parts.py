"""The pieces that the methods are made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from robustphase import distance
from robustphase.baselines import starts, wirtinger_flow
from robustphase.baselines.absolute_loss import linearise, solve_model
from robustphase.baselines.m_estimates import Fit, robust_scale, take_turns
from robustphase.baselines.problem import build_problem, descend, length, phases, weighted_sum
from robustphase.rows import MemoryRows


def problem_of(A, y):
    return build_problem(wirtinger_flow, A, y, max_iter=10, tol=1e-6)


# --- Lanczos -----------------------------------------------------------------------------------------------------------


def test_lanczos_finds_the_extreme_eigenvector(case, rng):
    for smallest in [False, True]:
        for kind in [np.float64, np.complex128]:
            with case(smallest, kind):
                A = rng.standard_normal((300, 25)).astype(kind)
                if kind is np.complex128:
                    A += 1j * rng.standard_normal((300, 25))
                weights = rng.standard_normal(300)
                values, vectors = np.linalg.eigh((A.conj().T * weights) @ A / 300)
                found = starts.extreme_eigenpair(MemoryRows(A), weights, seed=0, smallest=smallest)
                end = 0 if smallest else -1
                assert_allclose(found.value, values[end], rtol=1e-6)
                assert abs(np.vdot(found.vector, vectors[:, end])) > 1 - 1e-5


def test_lanczos_survives_a_matrix_of_rank_one_and_one_of_zeros(rng):
    A = np.outer(rng.standard_normal(50), np.eye(8)[2])
    assert abs(starts.extreme_eigenpair(MemoryRows(A), np.ones(50), seed=1).vector[2]) > 1 - 1e-12
    assert starts.extreme_eigenpair(MemoryRows(A), np.zeros(50), seed=1).value == 0


# --- Starts ------------------------------------------------------------------------------------------------------------

ALL_STARTS = [
    starts.plain_start,
    starts.truncated_start,
    starts.median_truncated_start,
    starts.maximal_correlation_start,
    starts.weighted_maximal_correlation_start,
    starts.least_correlation_start,
]


@pytest.mark.parametrize("start", ALL_STARTS)
@pytest.mark.parametrize("field", ["real", "complex"])
def test_every_start_is_near_the_signal_on_clean_samples(noiseless, start, field):
    errors = []
    for seed in range(6):
        samples = noiseless(40, 40, seed, field=field)
        problem = problem_of(samples.A, samples.y)
        errors.append(distance(np.sqrt(problem.unit) * start(problem), samples.truth, relative=True))
    assert max(errors) < 0.75


@pytest.mark.parametrize("start", [starts.median_truncated_start, starts.least_correlation_start])
def test_the_robust_starts_do_not_see_how_large_outliers_are(noiseless, start):
    for seed in range(4):
        samples = noiseless(40, 30, seed)
        found = []
        for size in (1e3, 1e9):
            y = samples.y.copy()
            y[:120] = size * np.linalg.norm(samples.truth) ** 2
            problem = problem_of(samples.A, y)
            found.append(np.sqrt(problem.unit) * start(problem))
        assert distance(*found, relative=True) < 1e-3
        assert distance(found[0], samples.truth, relative=True) < 0.75


@pytest.mark.parametrize("start", [starts.plain_start, starts.truncated_start])
def test_the_others_follow_them(noiseless, start):
    for seed in range(4):
        samples = noiseless(40, 30, seed)
        y = samples.y.copy()
        y[:120] = 1e3 * np.linalg.norm(samples.truth) ** 2
        problem = problem_of(samples.A, y)
        assert distance(np.sqrt(problem.unit) * start(problem), samples.truth, relative=True) > 3


def test_the_truncated_start_allows_for_the_length_of_the_rows(noiseless):
    for seed in range(4):
        samples = noiseless(40, 40, seed)
        problem = problem_of(3 * samples.A, 9 * samples.y)
        assert distance(np.sqrt(problem.unit) * starts.truncated_start(problem), samples.truth, relative=True) < 0.5


@given(
    regressors=st.lists(st.floats(0.01, 10), min_size=1, max_size=12),
    responses=st.lists(st.floats(-5, 5), min_size=12, max_size=12),
)
def test_the_least_absolute_slope_is_the_best_of_all_breakpoints(regressors, responses):
    t = np.array(regressors)
    y = np.array(responses[: t.size])
    best = min(np.abs(y - q * t).sum() for q in y / t)
    assert np.abs(y - starts.least_absolute_slope(t, y) * t).sum() <= best * (1 + 1e-9) + 1e-12


def test_largest_takes_exactly_the_share_asked_for():
    chosen = starts.largest(np.array([3.0, 1.0, 3.0, 2.0, 3.0, 0.0]), 1 / 3)
    assert_array_equal(np.flatnonzero(chosen), [0, 2])


# --- Arithmetic that does not overflow -----------------------------------------------------------------------------------


def test_length_is_the_norm_also_where_squares_overflow_or_vanish(rng):
    vector = rng.standard_normal(9)
    assert_allclose(length(vector), np.linalg.norm(vector), rtol=1e-14)
    assert_allclose(length(1e200 * vector), 1e200 * np.linalg.norm(vector), rtol=1e-14)
    assert_allclose(length(1e-200 * vector), 1e-200 * np.linalg.norm(vector), rtol=1e-14)
    assert length(np.zeros(3)) == 0
    assert length(np.array([1.0, np.inf])) == np.inf


def test_weighted_sums_of_single_precision_rows_take_coefficients_of_any_size(rng):
    A = rng.standard_normal((40, 3)).astype(np.float32)
    c = 1e90 * rng.standard_normal(40)
    assert_allclose(weighted_sum(MemoryRows(A), c), A.T.astype(np.float64) @ c / 40, rtol=1e-5)
    assert_array_equal(weighted_sum(MemoryRows(A), np.zeros(40)), np.zeros(3))


def test_phases_have_modulus_one_except_at_zero():
    assert_array_equal(phases(np.array([-2.0, 0.0, 3.0])), [-1, 0, 1])
    assert_allclose(phases(np.array([3 + 4j, 0j])), [0.6 + 0.8j, 0])


# --- The loop ----------------------------------------------------------------------------------------------------------


def test_the_loop_ends_as_the_proposals_do(case, noiseless):
    for propose, n_iter, converged in [
        (lambda x, t: 0.5 * x if t < 3 else 0 * x, 4, True),
        (lambda x, t: None if t == 2 else 0.1 * x, 2, False),
        (lambda x, t: -9 * x, 6, False),
        (lambda x, t: np.full_like(x, np.nan), 0, False),
    ]:
        with case(propose, n_iter, converged):
            problem = problem_of(*noiseless(4, 10, 0)[:2])
            start = np.ones(4)
            found = descend(problem, start, propose, max_iter=50, tol=1e-9)
            assert (found.n_iter, found.converged) == (n_iter, converged)
            assert np.isfinite(found.signal).all()


# --- The convex model of the prox-linear method ---------------------------------------------------------------------------


@pytest.mark.parametrize("curvature", [0.05, 3.0])
def test_the_inner_problem_is_solved_to_the_gap_it_reports(noisy, curvature):
    samples = noisy(8, 80, 2)
    problem = problem_of(samples.A, samples.y)
    x = samples.truth / np.sqrt(problem.unit) + 0.02
    model = linearise(problem, x)
    s = samples.A @ x
    c, B = s**2 - problem.responses, 2 * s[:, np.newaxis] * samples.A
    assert_allclose(model.predict(np.ones(8)), B @ np.ones(8), rtol=1e-10)
    assert_allclose(model.pull(np.ones(80)), B.T @ np.ones(80) / 80, rtol=1e-10)
    loss = float(np.abs(c).mean())
    inner = solve_model(model, curvature, np.zeros(80), loss, 1e-7, 5000)
    value = np.abs(c + B @ inner.step).mean() + curvature / 2 * inner.step @ inner.step
    assert_allclose(inner.value, value, rtol=1e-10)
    assert inner.bound <= inner.value <= loss
    assert inner.value - inner.bound <= max(0.05 * (loss - inner.value), 1e-7 * loss)
    # The bound holds for every step, so it must for random ones.
    rng = np.random.default_rng(0)
    for _ in range(200):
        step = inner.step + 0.1 * np.linalg.norm(inner.step) * rng.standard_normal(8)
        assert inner.bound <= np.abs(c + B @ step).mean() + curvature / 2 * step @ step


def test_with_vanishing_curvature_the_model_is_a_linear_programme(noisy):
    samples = noisy(5, 60, 3)
    problem = problem_of(samples.A, samples.y)
    model = linearise(problem, samples.truth / np.sqrt(problem.unit))
    s = model.projections
    c, B = model.residuals, 2 * s[:, np.newaxis] * samples.A
    inner = solve_model(model, 1e-6, np.zeros(60), float(np.abs(c).mean()), 1e-4, 20000)
    # min 1ᵀt with −t <= c + B d <= t.
    both = linprog(
        np.concatenate((np.zeros(5), np.full(60, 1 / 60))),
        A_ub=np.block([[B, -np.eye(60)], [-B, -np.eye(60)]]),
        b_ub=np.concatenate((-c, c)),
        bounds=[(None, None)] * 5 + [(0, None)] * 60,
    )
    assert inner.value == pytest.approx(both.fun, rel=2e-3)


# --- Scales ------------------------------------------------------------------------------------------------------------


def test_the_robust_scale_is_the_standard_deviation_of_normal_residuals(rng):
    residuals = 3 * rng.standard_normal(100_000)
    assert robust_scale(residuals) == pytest.approx(3, rel=0.02)
    residuals[:20_000] = 1e9
    assert robust_scale(residuals) == pytest.approx(3, rel=0.4)


def test_turns_end_when_the_scale_no_longer_falls():
    seen = []

    def fit(signal, scale, most):
        seen.append(scale)
        return Fit(signal, np.full(3, max(0.1 * scale, 0.5)), 2, True)

    found = take_turns(fit, Fit(np.ones(1), np.full(3, 100.0), 0, False), 100)
    assert found.converged
    assert seen[0] > seen[1] > seen[-1] > 0.5
    assert found.n_iter == 2 * len(seen)


def test_turns_that_run_out_of_iterations_have_not_converged():
    def fit(signal, scale, most):
        return Fit(signal, np.full(3, 0.5 * scale), most, True)

    found = take_turns(fit, Fit(np.ones(1), np.full(3, 100.0), 0, False), 5)
    assert not found.converged

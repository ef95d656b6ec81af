"""The objective: M is what its formula says, its gradient is its gradient, and what must not matter does not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import t as student

from robustphase.descend.climb import Free, Stopping
from robustphase.descend.likelihood_fit import fit_likelihood
from robustphase.descend.objective import (
    OBJECTIVE,
    State,
    as_point,
    as_state,
    effective_unknowns,
    in_double,
    likelihood_pass,
)
from robustphase.likelihood import NoiseModel, initial_model
from robustphase.likelihood.noise_model import NOISE
from robustphase.rows import MemoryRows
from robustphase.simulate import make_world

N, M = 6, 300
FLOOR = 0.3
FIELDS = pytest.mark.parametrize("field", ["real", "complex"])


def case(problem_of, field, seed=0, columns=1):
    """A problem of one signal, and states of it with a skewed, heavy-tailed noise model and ρ > 0."""
    world = make_world(N, M, contamination=0.1, attack="decoy", noise="student", field=field, seed=seed)
    rng = np.random.default_rng(seed)
    problem = problem_of(world, floor=FLOOR)._replace(weights=rng.random((M, 1)))
    directions = rng.standard_normal((N, columns)) + (
        1j * rng.standard_normal((N, columns)) if field == "complex" else 0
    )
    noise = NoiseModel(
        np.linspace(0.3, 0.5, columns),
        np.linspace(0.3, 0.1, columns),
        np.linspace(0.6, -0.4, columns),
        np.linspace(0.08, 0.05, columns),
    )
    signals = world.truth[:, None] / np.sqrt(problem.units) + 0.1 * directions
    return problem, State(signals, np.linspace(0.05, 0.1, columns), noise, np.linspace(0.02, 0.04, columns))


def merit(problem, state):
    return float(likelihood_pass(problem, state).merit[0])


def slope(problem, path, step=1e-6):
    """Derivative of the merit along a path of states, at zero."""
    return (merit(problem, path(step)) - merit(problem, path(-step))) / (2 * step)


def shifted(state, direction, t):
    return state._replace(signals=state.signals + t * direction)


def raised(state, t):
    return state._replace(backgrounds=state.backgrounds + t)


def changed(state, name, t):
    """A state with one parameter moved, on the scale on which it is free."""
    noise = state.noise
    if name == "cloud":
        return state._replace(spreads=state.spreads * np.exp(t))
    if name == "scales":
        return state._replace(noise=noise._replace(scales=noise.scales * np.exp(t)))
    return state._replace(noise=noise._replace(**{name: getattr(noise, name) + t}))


@FIELDS
def test_the_merit_is_the_likelihood_with_the_entropy_of_the_cloud(problem_of, field):
    problem, state = case(problem_of, field)
    model, energy = state.noise, np.abs(problem.source.read(0, M) @ state.signals) ** 2
    r = problem.responses - energy - state.backgrounds
    v = state.spreads * energy / np.linalg.norm(state.signals) ** 2
    sides = np.where(r > 0, model.skews, 1.0) * model.scales
    q = (r / sides) ** 2 + v / (model.scales**2 * model.skews)
    clean = 2 / (model.scales * (1 + model.skews)) * student.pdf(np.sqrt(q), model.degrees)
    terms = problem.weights * np.log((1 - model.mixing) * clean + model.mixing * problem.density)
    unknowns = 2 * N if field == "complex" else N
    expected = (terms.sum() + unknowns / 2 * np.log(state.spreads[0])) / problem.weights.sum()
    assert merit(problem, state) == pytest.approx(expected, rel=1e-12)


@FIELDS
def test_the_moments_hold_the_gradient_of_the_merit_in_signal_and_background(problem_of, field):
    for seed in range(2):
        problem, state = case(problem_of, field, seed)
        seen, total = likelihood_pass(problem, state), problem.weights.sum()
        # Log-density of squares with weights in units of 1/σ₋²: the chain rule adds the two of 2 s a.
        unit = 2 / (total * state.noise.scales[0] ** 2)
        gradient = unit * seen.moments.gradient[:, 0]
        rng, size = np.random.default_rng(seed), np.linalg.norm(gradient)
        for count in range(2 * N):
            d = rng.standard_normal((N, 1)) + (1j * rng.standard_normal((N, 1)) if field == "complex" else 0)
            d /= np.linalg.norm(d)
            numeric = slope(problem, partial(shifted, state, d))
            assert numeric == pytest.approx(np.vdot(d, gradient).real, abs=1e-5 * size), (
                f"seed {seed}, direction {count}"
            )
        numeric = slope(problem, partial(raised, state))
        assert numeric == pytest.approx(unit / 2 * seen.moments.residual_sum[0], rel=1e-5), f"seed {seed}"


@FIELDS
@pytest.mark.parametrize("noise", ["gaussian", "student", "lognormal"])
def test_a_converged_fit_is_stationary_in_everything_that_is_not_at_a_bound(problem_of, field, noise):
    for seed in range(2):
        world = make_world(N, M, contamination=0.1, attack="huge", noise=noise, field=field, seed=seed)
        problem = problem_of(world, level=0.2, floor=FLOOR)
        start = State(
            world.truth[:, None] / np.sqrt(problem.units),
            np.zeros(1),
            initial_model(np.array([0.4]), np.array([0.1])),
            np.array([0.01]),
        )
        fit = fit_likelihood(problem, start, Stopping(1e-10, 1e-8, 150, 0), Free.SHAPE)
        model, limit = fit.state.noise, np.log(NOISE.most_skew)
        free = {"scales": True, "cloud": True}
        free["log_skews"] = abs(model.log_skews[0]) < limit
        free["tails"] = NOISE.lightest < model.tails[0] < NOISE.heaviest
        free["mixing"] = NOISE.least_share < model.mixing[0] < problem.levels[0]
        # What none of them moves is of order one; derivatives at the start are between 0.01 and 1.
        for name in (name for name, is_free in free.items() if is_free):
            numeric = slope(problem, partial(changed, fit.state, name), 1e-5)
            assert abs(numeric) < 2e-5, f"{name}, seed {seed}"
        seen = likelihood_pass(problem, fit.state)
        size = np.linalg.norm(
            problem.source.read(0, M).conj().T @ (fit.weights * np.abs(fit.residuals * fit.projections))
        )
        assert np.linalg.norm(seen.moments.gradient) < 1e-5 * size, f"seed {seed}"


def test_the_merit_is_continuous_where_residuals_change_sign(problem_of):
    for log_skew in (-1.0, 0.7):
        problem, state = case(problem_of, "real")
        state = state._replace(noise=state.noise._replace(log_skews=np.array([log_skew])))
        s = problem.source.read(0, M) @ state.signals
        for sample in (0, 17, 200):
            zero = (problem.responses - s**2)[sample]
            before, after = (merit(problem, state._replace(backgrounds=zero + h)) for h in (1e-9, -1e-9))
            # A density that jumps by the skew would change M by at least w log(skew)/W, a thousandth.
            assert before == pytest.approx(after, abs=1e-7), f"sample {sample}, log skew {log_skew}"


@FIELDS
def test_coordinates_phase_and_order_do_not_matter_to_the_merit(problem_of, field, rng):
    problem, state = case(problem_of, field)
    A, expected = problem.source.read(0, M), merit(problem, state)
    square = rng.standard_normal((N, N)) + (1j * rng.standard_normal((N, N)) if field == "complex" else 0)
    turn, order = np.linalg.qr(square)[0], rng.permutation(M)
    phase = np.exp(0.7j) if field == "complex" else -1.0
    permuted = problem._replace(
        source=MemoryRows(A[order]),
        responses=problem.responses[order],
        weights=problem.weights[order],
        density=problem.density[order],
    )
    cases = {
        "rotation": (
            problem._replace(source=MemoryRows(A @ turn)),
            state._replace(signals=turn.conj().T @ state.signals),
        ),
        "phase": (problem, state._replace(signals=phase * state.signals)),
        "order": (permuted, state),
    }
    for name, (other, there) in cases.items():
        assert merit(other, there) == pytest.approx(expected, rel=1e-12), name


@FIELDS
@pytest.mark.parametrize("columns", [1, 3, OBJECTIVE.double + 1])
def test_blocks_and_threads_do_not_matter_to_a_pass(problem_of, field, columns):
    problem, state = case(problem_of, field, columns=columns)
    A, expected = problem.source.read(0, M), likelihood_pass(problem, state)
    # Many columns are judged in single precision.
    rtol = 1e-11 if in_double(columns) else 1e-5
    for block_rows, threads in ((7, 1), (64, 2), (None, 2)):
        source = MemoryRows(A, block_rows=block_rows, threads=threads)
        seen = likelihood_pass(problem._replace(source=source), state)
        name = f"blocks of {block_rows}, {threads} threads"
        assert_allclose(seen.merit, expected.merit, rtol=rtol, err_msg=name)
        assert_allclose(seen.projections, expected.projections, rtol=1e-9, err_msg=name)
        size = np.abs(expected.moments.gradient).max()
        assert_allclose(seen.moments.gradient, expected.moments.gradient, rtol=0, atol=100 * rtol * size, err_msg=name)


def test_columns_are_judged_as_if_each_were_alone(problem_of):
    for columns in (3, OBJECTIVE.double + 1):
        problem, state = case(problem_of, "real", columns=columns)
        together, tolerance = likelihood_pass(problem, state), 1e-12 if in_double(columns) else 1e-5
        for k in range(columns):
            alone, name = likelihood_pass(problem, state.only(np.array([k]))), f"column {k} of {columns}"
            assert together.merit[k] == pytest.approx(alone.merit[0], rel=tolerance), name
            size = np.abs(alone.moments.gradient).max()
            gradient = together.moments.gradient[:, [k]]
            assert_allclose(gradient, alone.moments.gradient, rtol=0, atol=10 * tolerance * size, err_msg=name)


def test_a_cloud_has_no_more_unknowns_than_half_of_the_samples(problem_of):
    few, many = (make_world(40, m, contamination=0.0, attack="none", seed=0) for m in (50, 500))
    signals = few.truth[:, None]
    assert effective_unknowns(problem_of(few), signals) == 25
    assert effective_unknowns(problem_of(many), signals) == 40
    assert effective_unknowns(problem_of(many), signals.astype(complex)) == 80


def test_leverages_are_those_of_least_squares(problem_of):
    """The spread ρ that belongs to a noise model gives every prediction the variance that least squares gives it."""
    for field in ("real", "complex"):
        world = make_world(40, 800, contamination=0.0, attack="none", noise="gaussian", field=field, seed=3)
        problem = problem_of(world, floor=FLOOR)
        x, scales = world.truth[:, None] / np.sqrt(problem.units), np.array([0.5 / problem.units[0]])
        s = world.A @ x
        slopes = 2 * s.conj() * world.A
        design = slopes if field == "real" else np.hstack((slopes.real, -slopes.imag))
        exact = np.sum((design @ np.linalg.pinv(design.T @ design)) * design, axis=1)
        noise = initial_model(scales, np.array([0.002]))
        state = State(x, np.zeros(1), noise, np.array([1e-3]))
        for _ in range(30):
            # ρ of the step that the fit makes: the leverages add up to the number of unknowns.
            sums = likelihood_pass(problem, state).statistics
            state = state._replace(spreads=state.spreads * effective_unknowns(problem, x) / sums.leverage)
        found = state.spreads * np.abs(s[:, 0]) ** 2 / np.linalg.norm(x) ** 2 / scales**2
        assert found.sum() == pytest.approx(exact.sum(), rel=0.1), field
        assert np.median(np.abs(found - exact)) < 0.2 * exact.mean(), field


@FIELDS
def test_a_state_is_its_point_and_a_point_out_of_bounds_is_brought_back(problem_of, field):
    _, state = case(problem_of, field, columns=2)
    again = as_state(as_point(state), N, np.full(2, 0.3))
    for one, other in zip(
        (*state[:2], *state.noise, state.spreads), (*again[:2], *again.noise, again.spreads), strict=True
    ):
        assert_allclose(one, other)
    point = as_point(state)
    point[N + 2 :] += 1e3
    wild = as_state(point - np.eye(N + 6)[:, [N + 5]] * 1e3, N, np.full(2, 0.3)).noise
    assert (wild.tails == NOISE.heaviest).all()
    assert_allclose(wild.skews, NOISE.most_skew)
    assert (wild.mixing == 0.3).all()

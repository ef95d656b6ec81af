"""Newton steps: Gauss-Newton solves its least-squares problem, the population's step is right for the population."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.descend.candidate_steps import comparison_pass
from robustphase.descend.newton import (
    NEWTON,
    Inner,
    Moments,
    gauss_newton_step,
    initial_damping,
    inverse_curvature,
    joint_sums,
    newton_step,
    relative_lengths,
    shortened,
)
from robustphase.problem import Problem
from robustphase.rows import MemoryRows
from robustphase.simulate import make_world


def bare_problem(A, unknown_mean):
    """Covariates alone: a Gauss-Newton step is given everything else."""
    nothing = np.zeros((len(A), 1))
    return Problem(MemoryRows(A), nothing, nothing + 1, nothing + 1, np.zeros(1), np.ones(1), unknown_mean)


@pytest.mark.parametrize("fit_background", [False, True])
def test_a_gauss_newton_step_solves_the_weighted_least_squares_problem(rng, fit_background):
    A, x = rng.standard_normal((400, 8)), rng.standard_normal((8, 2))
    s = A @ x
    residuals, weights = rng.standard_normal((400, 2)), rng.random((400, 2))
    step = gauss_newton_step(bare_problem(A, fit_background), x, s, residuals, weights, Inner(60, 1e-13))
    for k in range(2):
        design = np.hstack((2 * s[:, [k]] * A, np.ones((400, 1 if fit_background else 0))))
        root = np.sqrt(weights[:, [k]])
        expected = np.linalg.lstsq(root * design, root[:, 0] * residuals[:, k], rcond=None)[0]
        assert_allclose(step.signals[:, k], expected[:8], rtol=1e-8, err_msg=f"column {k}")
        assert_allclose(step.backgrounds[k], expected[8] if fit_background else 0.0, rtol=1e-8, err_msg=f"column {k}")


def test_a_complex_gauss_newton_step_solves_its_problem_up_to_the_phase(rng):
    A = rng.standard_normal((600, 6)) + 1j * rng.standard_normal((600, 6))
    x = (rng.standard_normal(6) + 1j * rng.standard_normal(6))[:, None]
    s, residuals, weights = A @ x, rng.standard_normal((600, 1)), rng.random((600, 1)) + 0.1
    step = gauss_newton_step(bare_problem(A, False), x, s, residuals, weights, Inner(80, 1e-13))
    design = 2 * np.hstack(((s.conj() * A).real, -(s.conj() * A).imag))
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(root * design, root[:, 0] * residuals[:, 0], rcond=None)[0]
    found = np.concatenate((step.signals[:, 0].real, step.signals[:, 0].imag))
    assert_allclose(design @ found, design @ expected, atol=1e-7)


@pytest.mark.parametrize("field", ["real", "complex"])
def test_products_in_single_precision_lead_to_the_same_step(rng, field):
    A, x = rng.standard_normal((500, 12)), rng.standard_normal((12, 3))
    if field == "complex":
        A, x = A + 1j * rng.standard_normal(A.shape), x + 1j * rng.standard_normal(x.shape)
    s, residuals, weights = A @ x, rng.standard_normal((500, 3)), rng.random((500, 3))
    here, there = (
        gauss_newton_step(bare_problem(A, True), x, s, residuals, weights, Inner(30, 1e-4, single=single))
        for single in (False, True)
    )
    assert_allclose(there.signals, here.signals, atol=2e-4 * np.abs(here.signals).max())
    assert_allclose(there.backgrounds, here.backgrounds, atol=1e-3 * np.abs(residuals).max())


def test_roundings_of_single_precision_lead_no_step_along_the_phase(rng):
    A = rng.standard_normal((1200, 60))
    x = (rng.standard_normal(60) + 1j * rng.standard_normal(60))[:, None]
    s, residuals, weights = A @ x, rng.standard_normal((1200, 1)), rng.random((1200, 1)) + 0.1
    steps = [
        gauss_newton_step(bare_problem(rows, False), x, s, residuals, weights, Inner(200, 1e-9)).signals
        for rows in (A, A.astype(np.float32))
    ]
    assert np.linalg.norm(steps[1] - steps[0]) < 1e-3 * np.linalg.norm(steps[0])


def test_samples_without_weight_ask_for_no_step(rng):
    A, x = rng.standard_normal((60, 4)), rng.standard_normal((4, 1))
    residuals, weights = rng.standard_normal((60, 1)), np.zeros((60, 1))
    step = gauss_newton_step(bare_problem(A, True), x, A @ x, residuals, weights, Inner(10, 1e-6))
    assert_allclose(step.signals, 0)
    assert_allclose(step.backgrounds, 0)


def test_a_population_newton_step_is_exact_in_the_population(problem_of):
    # With 200000 samples and three unknowns the sample moments are the population's to about 1 %.
    for seed in range(2):
        world = make_world(3, 200_000, contamination=0.0, attack="none", noise="none", noise_std=0.0, seed=seed)
        problem = problem_of(world)
        truth = world.truth / np.sqrt(problem.units[0])
        x = 1.001 * truth[:, None]
        # A huge scale weighs all samples alike.
        seen = comparison_pass(problem, x, np.zeros(1), np.array([1e6]))
        step = newton_step(x, seen.moments, fit_background=False)
        assert np.linalg.norm(x[:, 0] + step.signals[:, 0] - truth) < 0.1 * 0.001 * np.linalg.norm(truth), seed
        assert step.backgrounds == 0


@pytest.mark.parametrize("field", ["real", "complex"])
def test_a_population_newton_step_knows_rows_whose_lengths_vary(field):
    # Two lengths, with a kurtosis of 2: a step that takes them for one length is twice too long across the signal.
    rng = np.random.default_rng(2)
    lengths = np.sqrt(np.where(rng.random(200_000) < 0.2, 3.0, 0.5))
    A = lengths[:, None] * rng.standard_normal((200_000, 4))
    kurtosis = float(np.mean(lengths**4) / np.mean(lengths**2) ** 2)
    truth = np.array([1.0, 0.5j, 0.0, 0.0]) if field == "complex" else np.array([1.0, 0.0, 0.0, 0.0])
    offset = 0.001 * np.array([0.0, 0.0, 1.0, 1.0 + 1.0j] if field == "complex" else [0.0, 0.0, 1.0, 1.0])
    x = (truth + offset)[:, None]
    s = A @ x
    r, energy = np.abs(A @ truth)[:, None] ** 2 - np.abs(s) ** 2, np.abs(s) ** 2
    sums = (np.array([200_000.0]), r.sum(0), energy.sum(0), (energy**2).sum(0))
    joint = joint_sums(np.ones_like(energy), s, energy, paired=field == "complex")
    moments = Moments(A.T @ (r * s), *sums, joint)
    step, taken_for_one = (
        newton_step(x, moments, fit_background=False, kurtosis=value).signals[:, 0] for value in (kurtosis, 1.0)
    )
    # The fourth moments of 200000 such rows are known to 2 %.
    assert np.linalg.norm(offset + step) < 0.1 * np.linalg.norm(offset)
    assert np.linalg.norm(offset + taken_for_one) > 0.7 * np.linalg.norm(offset)


@pytest.mark.parametrize("field", ["real", "complex"])
def test_a_population_newton_step_takes_a_background_apart_from_the_signal(field):
    # Both are off by so little that squares do not count; moments of 200000 samples and three unknowns.
    world = make_world(3, 200_000, contamination=0.0, attack="none", noise="none", noise_std=0.0, field=field, seed=1)
    offset, background = np.array([0.001, -0.002, 0.001]) * (1 + (0.5j if field == "complex" else 0)), 0.004
    x = (world.truth + offset)[:, None]
    s = world.A @ x
    r = world.y[:, None] - np.abs(s) ** 2 + background
    energy = np.abs(s) ** 2
    gradient = world.A.conj().T @ (r * s)
    moments = Moments(gradient, np.array([200_000.0]), r.sum(0), energy.sum(0), (energy**2).sum(0))
    step = newton_step(x, moments, fit_background=True)
    # The background is profiled out of the signal's step, and found once the signal is: two steps end it.
    moved = x[:, 0] + step.signals[:, 0]
    phase = np.vdot(moved, world.truth) / abs(np.vdot(moved, world.truth))
    assert np.linalg.norm(phase * moved - world.truth) < 0.1 * np.linalg.norm(offset)


def test_the_inverse_curvature_is_the_inverse_of_one_number_across_and_another_along(rng):
    for kind in ("real", "complex"):
        x, v = rng.standard_normal((2, 5, 3)) + (1j * rng.standard_normal((2, 5, 3)) if kind == "complex" else 0)
        tangential, radial = rng.uniform(1, 3, 3), rng.uniform(1, 3, 3)
        solved = inverse_curvature(x, v, tangential, radial)
        for k in range(3):
            along = np.outer(x[:, k], x[:, k].conj()) / np.linalg.norm(x[:, k]) ** 2
            curvature = tangential[k] * (np.eye(5) - along) + radial[k] * along
            assert_allclose(curvature @ solved[:, k], v[:, k], err_msg=f"{kind}, column {k}")


def test_a_damped_population_step_is_stable_on_the_sample_however_few_there_are():
    for m in (60, 100, 400):
        ratios = []
        for seed in range(3):
            world = make_world(20, m, contamination=0.0, attack="none", noise="none", noise_std=0.0, seed=seed)
            s, x = world.A @ world.truth, world.truth
            population = 2 * np.eye(20) + 4 * np.outer(x, x)
            sample = 2 * (world.A * (s**2)[:, None]).T @ world.A / m
            ratios.append(np.linalg.eigvals(np.linalg.solve(population, sample)).real.max())
        # Steps over a curvature converge below two; beyond, they would leave for good.
        assert initial_damping(m, 20) * np.median(ratios) < 2, f"{m} samples"
    assert initial_damping(50, 20) < initial_damping(100, 20) < initial_damping(10**6, 20) < 2


def test_steps_are_cut_to_a_fraction_of_the_signal_and_short_ones_left_alone(rng):
    signals, steps = rng.standard_normal((6, 2)), rng.standard_normal((6, 2))
    steps *= np.array([5.0, 0.01]) / relative_lengths(steps, signals)
    cut = shortened(steps, signals)
    assert_allclose(relative_lengths(cut, signals), [NEWTON.longest, 0.01])
    assert_allclose(cut / np.linalg.norm(cut, axis=0), steps / np.linalg.norm(steps, axis=0))

"""Steps: Gauss-Newton solves its least-squares problem, the race converges, the polish is efficient."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import distance
from robustphase.descend import gradient_points, robust_gradient
from robustphase.descend.consistency import consistent_samples
from robustphase.descend.gauss_newton import gauss_newton_step
from robustphase.descend.polish import polish
from robustphase.descend.race import distinct_signals, line_up, newton_proposals, pull, race
from robustphase.descend.relaxation import Relaxation
from robustphase.likelihood import cautious_law, mixture_weights, response_density
from robustphase.rows import MemoryRows, squared_loss_gradient
from robustphase.rows.data import Data
from robustphase.simulate import make_world


def data_of(world, contamination=0.1, unknown_mean=False):
    y = world.y
    return Data(MemoryRows(world.A), y, np.ones(y.size), response_density(y, 0.3), contamination, unknown_mean)


def least_squares(world):
    x = world.truth
    for _ in range(20):
        s = world.A[world.clean] @ x
        x = x + np.linalg.lstsq(2 * s[:, None] * world.A[world.clean], world.y[world.clean] - s**2, rcond=None)[0]
    return x


@pytest.mark.parametrize("fit_background", [False, True])
def test_a_gauss_newton_step_solves_the_weighted_least_squares_problem(rng, fit_background):
    A, x = rng.standard_normal((400, 8)), rng.standard_normal((8, 2))
    s = A @ x
    residuals, weights = rng.standard_normal((400, 2)), rng.random((400, 2))
    step = gauss_newton_step(
        MemoryRows(A), x, s, residuals, weights, fit_background=fit_background, max_inner=60, tol=1e-13
    )
    for k in range(2):
        design = 2 * s[:, [k]] * A
        if fit_background:
            design = np.hstack((design, np.ones((400, 1))))
        root = np.sqrt(weights[:, [k]])
        expected = np.linalg.lstsq(root * design, root[:, 0] * residuals[:, k], rcond=None)[0]
        assert_allclose(step.signals[:, k], expected[:8], rtol=1e-8)
        if fit_background:
            assert_allclose(step.backgrounds[k], expected[8], rtol=1e-8)


def test_a_complex_gauss_newton_step_solves_its_problem_up_to_the_phase(rng):
    A = rng.standard_normal((600, 6)) + 1j * rng.standard_normal((600, 6))
    x = (rng.standard_normal(6) + 1j * rng.standard_normal(6))[:, None]
    s, residuals, weights = A @ x, rng.standard_normal((600, 1)), rng.random((600, 1)) + 0.1
    step = gauss_newton_step(MemoryRows(A), x, s, residuals, weights, fit_background=False, max_inner=80, tol=1e-13)
    design = 2 * np.hstack(((s.conj() * A).real, -(s.conj() * A).imag))
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(root * design, root[:, 0] * residuals[:, 0], rcond=None)[0]
    assert_allclose(
        design @ np.concatenate((step.signals[:, 0].real, step.signals[:, 0].imag)), design @ expected, atol=1e-7
    )


def test_a_newton_proposal_is_exact_in_the_population(rng):
    # With 200000 samples and three unknowns the sample moments are the population's to about 1 %.
    world = make_world(3, 200_000, contamination=0.0, attack="none", noise="none", noise_std=0.0, seed=0)
    x = (world.truth * 1.001)[:, None]
    # A huge scale weighs all samples alike.
    pulled = pull(data_of(world), x, np.zeros(1), np.array([1e6]))
    proposal, shift = newton_proposals(x, pulled, unknown_mean=False)
    assert np.linalg.norm(x[:, 0] + proposal[:, 0] - world.truth) < 0.1 * 0.001
    assert shift == 0


def test_the_pull_is_what_its_sums_say(rng):
    world = make_world(7, 500, contamination=0.1, attack="decoy", seed=3)
    data, X, b, scales = data_of(world), rng.standard_normal((7, 3)), rng.standard_normal(3), np.array([0.5, 1.0, 2.0])
    s = world.A @ X
    r = world.y[:, None] - s**2 - b
    w = mixture_weights(r, data.density, scales, data.contamination)[0] * data.weights[:, None]
    pulled = pull(data, X, b, scales)
    # Single precision: seven digits of the largest term.
    assert_allclose(pulled.force, world.A.T @ (w * r * s), rtol=1e-4, atol=1e-3)
    assert_allclose(pulled.residuals, r, rtol=1e-5, atol=1e-5)
    sums = (w.sum(axis=0), (w * r).sum(axis=0), (w * s**2).sum(axis=0), (w * s**4).sum(axis=0))
    for ours, plain in zip((pulled.mass, pulled.drift, pulled.second, pulled.fourth), sums, strict=True):
        assert_allclose(ours, plain, rtol=1e-4, atol=1e-3)
    scores = mixture_weights(r, data.density, scales, data.contamination)[1]
    assert_allclose(pulled.scores, np.log(scores).mean(axis=0), rtol=1e-4, atol=1e-5)


def test_the_race_brings_rough_candidates_to_the_signal(rng):
    world = make_world(40, 2000, contamination=0.1, attack="decoy", seed=1)
    rough = world.truth[:, None] + 0.5 * rng.standard_normal((40, 3)) / np.sqrt(40)
    before = line_up(data_of(world), rough, np.zeros(3))
    after, gains = race(data_of(world), before, 12)
    assert max(distance(after.signals[:, k], world.truth) for k in range(3)) < 0.12
    assert after.scores.min() > before.scores.max()
    assert_allclose(gains, after.scores - before.scores, atol=1e-4)


def test_a_candidate_runs_alike_alone_and_in_a_field(rng):
    world = make_world(20, 1000, contamination=0.1, attack="decoy", seed=1)
    rough = world.truth[:, None] + 0.5 * rng.standard_normal((20, 3)) / np.sqrt(20)
    data, chosen = data_of(world), np.array([2])
    together, _ = race(data, line_up(data, rough, np.zeros(3)), 4)
    alone, _ = race(data, line_up(data, rough[:, chosen], np.zeros(1)), 4)
    assert_allclose(together.only(chosen).signals, alone.signals, atol=1e-4)
    # Steps go on after a stretch as if there had been no look at the field.
    assert_allclose(race(data, together.only(chosen), 3)[0].signals, race(data, alone, 3)[0].signals, atol=1e-4)


def test_the_race_fits_a_background_when_asked(rng):
    world = make_world(30, 3000, contamination=0.05, attack="huge", noise_mean=3.0, seed=2)
    data = data_of(world, unknown_mean=True)
    done, _ = race(data, line_up(data, 1.2 * world.truth[:, None], np.zeros(1)), 12)
    assert distance(done.signals[:, 0], world.truth) < 0.12
    assert done.backgrounds[0] == pytest.approx(3.0, abs=0.15)


def polished_near(world, scale, *, factor=1.05, tol=1e-6):
    law = cautious_law(np.array([scale]), np.array([0.1]))
    return polish(data_of(world), factor * world.truth[:, None], np.zeros(1), law, tol=tol)


@pytest.mark.parametrize("noise", ["gaussian", "student", "lognormal"])
def test_the_polish_ends_at_the_same_point_wherever_it_starts(noise):
    world = make_world(30, 1500, contamination=0.1, attack="decoy", noise=noise, seed=4)
    one, other = polished_near(world, 0.3), polished_near(world, 0.8, factor=0.9)
    assert one.converged.all()
    assert other.converged.all()
    # The steps that are left are shorter than 1e-6; what they add up to may be a few times that.
    assert distance(one.signals[:, 0], other.signals[:, 0], relative=True) < 1e-5


def test_the_polish_solves_the_equations_of_its_law():
    world = make_world(20, 2000, contamination=0.1, attack="huge", noise="student", seed=0)
    done = polished_near(world, 0.5, tol=1e-9)
    w, r, s = done.weights[:, 0], done.residuals[:, 0], done.projections[:, 0]
    size = np.abs(world.A.T @ (w * np.abs(r * s))).max()
    assert np.abs(world.A.T @ (w * r * s)).max() < 1e-6 * size
    assert abs(w @ r) < 1e-6 * (w @ np.abs(r))


def test_candidates_are_polished_together_as_alone():
    world = make_world(20, 1500, contamination=0.1, attack="decoy", noise="student", seed=1)
    starts = world.truth[:, None] * np.array([0.95, 1.1])
    law = cautious_law(np.full(2, 0.5), np.full(2, 0.1))
    both = polish(data_of(world), starts, np.zeros(2), law)
    for k in range(2):
        alone = polish(data_of(world), starts[:, [k]], np.zeros(1), law.only(np.array([k])))
        assert_allclose(both.signals[:, k], alone.signals[:, 0], atol=1e-5)


def test_few_samples_are_polished_to_the_end():
    # Four samples per unknown, no noise: population moments are far off, and the steps must still become exact.
    world = make_world(50, 200, contamination=0.0, attack="none", noise="none", noise_std=0.0, seed=0)
    rng = np.random.default_rng(0)
    start = world.truth[:, None] + 0.05 * rng.standard_normal((50, 1)) / np.sqrt(50)
    law = cautious_law(np.array([0.1]), np.array([0.02]))
    done = polish(data_of(world, contamination=0.02), start, np.zeros(1), law)
    assert distance(done.signals[:, 0], world.truth) < 1e-9


def test_the_polish_is_as_good_as_least_squares_on_the_clean_samples():
    ratios = []
    for seed in range(6):
        world = make_world(40, 2000, contamination=0.1, attack="huge", noise="gaussian", seed=seed)
        polished = polished_near(world, 0.5)
        ratios.append(distance(polished.signals[:, 0], world.truth) / distance(least_squares(world), world.truth))
    # Six paired ratios that scatter by about 3 %.
    assert np.median(ratios) < 1.06


def test_the_polish_beats_least_squares_where_the_noise_is_heavy_and_skewed():
    ratios = []
    for seed in range(4):
        world = make_world(40, 2000, contamination=0.1, attack="constant", noise="lognormal", seed=seed)
        polished = polished_near(world, 0.3)
        ratios.append(distance(polished.signals[:, 0], world.truth) / distance(least_squares(world), world.truth))
    assert np.median(ratios) < 0.7


def test_samples_whose_residuals_depend_on_the_prediction_are_given_up(rng):
    s, noise = rng.standard_normal(5000), 0.3 * rng.standard_normal(5000)
    weights = np.ones(5000)
    assert consistent_samples(s, noise, weights, 1.0).all()
    shifted = np.where(np.abs(s) > 2, noise - 1.5, noise)
    kept = consistent_samples(s, shifted, weights, 1.0)
    assert not kept[np.abs(s) > 2].any()
    assert kept[np.abs(s) < 1.6].all()


def test_ranges_with_few_samples_prove_nothing(rng):
    assert consistent_samples(rng.standard_normal(300), 0.5 * rng.standard_normal(300), np.ones(300), 1.0).all()
    crowded = 1.1 + 0.05 * rng.random(100)
    assert consistent_samples(crowded, rng.standard_normal(100), np.ones(100), 1.0).all()


def test_relaxation_finds_the_length_that_a_linear_map_needs():
    # Proposals D = −c x of a linear problem: the right factor is 1/c, whatever c is.
    relaxation, x = Relaxation(1.0), np.ones((5, 2))
    proposals = -np.array([0.3, 1.6]) * x
    relaxation = relaxation.after(proposals)
    x = x + relaxation.factors(np.full((5, 2), 1e9)) * proposals
    relaxation = relaxation.after(-np.array([0.3, 1.6]) * x)
    assert_allclose(relaxation.factors(np.full((5, 2), 1e9)), [1 / 0.3, 1 / 1.6], rtol=1e-6)
    assert_allclose(relaxation.only(np.array([1])).factors(np.full((5, 1), 1e9)), [1 / 1.6], rtol=1e-6)


def test_distinct_signals_treats_opposite_signs_as_one():
    x = np.random.default_rng(0).standard_normal(6)
    y = np.random.default_rng(1).standard_normal(6)
    chosen = distinct_signals(np.stack((x, -x, y), axis=1), np.array([1.0, 2.0, 0.5]), 5, 0.1)
    assert list(chosen) == [1, 2]


@pytest.mark.parametrize("paired", [False, True])
def test_the_cloud_of_gradients_averages_to_the_loss_gradient(rng, paired):
    A, y, x = rng.standard_normal((200, 5)), rng.random(200), rng.standard_normal(5)
    view = gradient_points(MemoryRows(A), y, x, paired=paired)
    if not paired:
        assert_allclose(view.mean(), squared_loss_gradient(MemoryRows(A), y, x).total, rtol=1e-10)
    assert view.shape == ((100 if paired else 200), 5)


def test_a_robust_gradient_points_home_under_attack():
    world = make_world(30, 3000, contamination=0.1, attack="gradient_push", seed=3)
    x = 1.2 * world.truth
    view = gradient_points(MemoryRows(world.A), world.y, x)
    robust = robust_gradient(view, 0.1).location
    assert robust @ (x - world.truth) > 0.3 * np.linalg.norm(robust) * np.linalg.norm(x - world.truth)

"""The certificate: it covers the signal, leaves good answers alone, and brings back those that left their ball."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import aslinearoperator
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.population import newton_step
from robustphase.problem import kept
from robustphase.recover import recover
from robustphase.recover.certificate import CERTIFICATE, Answers, certify, weighted_gradients
from robustphase.rows import MemoryRows, as_source
from robustphase.simulate import make_world
from robustphase.validation import check_samples


def answers_of(world, signals, weights=None, level=0.1):
    signals = signals.reshape(len(signals), -1)
    k = signals.shape[1]
    weights = np.ones((world.y.size, k)) if weights is None else weights
    responses = np.stack([world.y] * k, axis=1)
    levels = np.full(k, level)
    return Answers(MemoryRows(world.A), responses, weights, signals, np.zeros(k), levels, False)


def test_it_covers_the_signal_and_leaves_good_answers_alone():
    for attack in ("none", "gradient_push", "leverage", "decoy_loud", "erase"):
        for seed in (19, 20):
            world = make_world(40, 3000, contamination=0.1, attack=attack, seed=seed)
            found = recover(check_samples(world.A, world.y), 0.1, unknown_mean=False)
            for weights in (found.weights, None):
                certificates = certify(answers_of(world, found.signals, weights))
                assert certificates.moved[0] == 0, f"{attack}, seed {seed}"
                assert_allclose(certificates.signals, found.signals)
                reached = distance(found.signal, world.truth, relative=True)
                assert reached < certificates.radii[0], f"{attack}, seed {seed}"


def test_it_brings_back_an_answer_that_left_its_ball():
    for seed in (20, 21):
        world = make_world(40, 4000, contamination=0.02, attack="none", noise_std=0.1, seed=seed)
        wrong = 1.3 * world.truth
        certificates = certify(answers_of(world, wrong, level=0.0005))
        assert certificates.moved[0] > 0, f"seed {seed}"
        assert distance(certificates.signals[:, 0], world.truth) < distance(wrong, world.truth), f"seed {seed}"


def test_it_counts_on_the_contamination_that_the_answer_was_fitted_against():
    for seed in (20, 21):
        world = make_world(40, 2400, contamination=0.05, attack="gradient_push", seed=seed)
        certificates = certify(answers_of(world, world.truth, level=0.2))
        assert certificates.moved[0] == 0, f"seed {seed}"
        assert_array_equal(certificates.signals[:, 0], world.truth, f"seed {seed}")
        # Told of less, all that the bad samples ask for cannot be theirs.
        assert certify(answers_of(world, world.truth, level=0.001)).moved[0] > 0, f"seed {seed}"


def test_bad_samples_that_hide_in_the_tails_do_not_lead_an_answer_away_that_was_told_nothing():
    for seed in (600, 602):
        world = make_world(
            40,
            2400,
            design="4_phases",
            field="complex",
            attack="gradient_push",
            contamination=0.05,
            noise_std=0.5,
            seed=seed,
        )
        errors = [
            distance(RobustPhaseRetrieval(level).fit(world.A, world.y).signal_, world.truth) for level in (0.05, "auto")
        ]
        assert errors[1] < 1.3 * errors[0], f"seed {seed}"


def test_a_wrong_answer_has_a_larger_radius_than_the_right_one():
    for seed in range(3):
        world = make_world(20, 2000, contamination=0.1, attack="decoy", seed=seed)
        radii = []
        for x in (world.truth, np.roll(world.truth, 3)):
            sizes = np.abs(world.y - (world.A @ x) ** 2)
            fitting = (sizes <= np.quantile(sizes, 0.9)).astype(float)
            radii.append(float(certify(answers_of(world, x, fitting[:, None])).radii[0]))
        assert radii[1] > 2 * radii[0], f"seed {seed}: {radii}"


def test_many_answers_are_certified_as_each_alone():
    for field in ("real", "complex"):
        world = make_world(15, 1200, contamination=0.1, attack="huge", field=field, seed=3)
        signals = np.stack((world.truth, 1.02 * world.truth, 0.97 * world.truth), axis=1)
        weights = np.where(world.touched, 0.0, 1.0)[:, None] * np.ones(3)
        together = certify(answers_of(world, signals, weights))
        for k in range(3):
            alone = certify(answers_of(world, signals[:, [k]], weights[:, [k]]))
            assert_allclose(together.radii[k], alone.radii[0], rtol=1e-6, err_msg=f"{field}, column {k}")
            assert_allclose(together.gradients.means[:, [k]], alone.gradients.means, atol=1e-9)


def displacements(world, x, kept_ones):
    """H⁻¹ of the gradients of the samples that are kept, over the norm, as real vectors."""
    s, size = world.A @ x, np.linalg.norm(x)
    points = (((np.abs(s) ** 2 - world.y) * s)[:, None] * world.A.conj())[kept_ones]
    moves = np.array([newton_step(x, point) for point in points]) / size
    return points, np.hstack((moves.real, moves.imag)) if np.iscomplexobj(moves) else moves


def test_gradients_of_kept_samples_have_their_mean_worst_variance_and_tail():
    for field in ("real", "complex"):
        world = make_world(12, 1500, contamination=0.1, attack="huge", field=field, seed=4)
        x, weights = 1.1 * world.truth, np.where(world.touched, 0.0, 1.0)
        answers = answers_of(world, x, weights[:, None])
        found = weighted_gradients(answers, kept(answers.weights), answers.levels)
        points, moves = displacements(world, x, weights > 0)
        assert_allclose(found.means[:, 0], points.mean(axis=0), err_msg=field)
        centred = moves - moves.mean(axis=0)
        spectrum, directions = np.linalg.eigh(centred.T @ centred / len(moves))
        # A few steps of Lanczos' method from a good guess.
        assert found.variances[0] == pytest.approx(spectrum[-1], rel=0.05), field
        along = np.sort(centred @ directions[:, -1])
        tail = max(along[-150:].sum(), -along[:150].sum()) / len(moves)
        assert found.tails[0] == pytest.approx(tail, rel=0.1), field
        assert found.tails[0] < np.sqrt(0.1 * found.variances[0] / weights.mean()), field
        assert found.removed[0] == pytest.approx(world.touched.mean()), field


def test_what_chance_may_ask_for_follows_from_the_variance_along_a_typical_direction():
    for field, d in (("real", 30), ("complex", 60)):
        world = make_world(30, 6000, contamination=0.0, attack="none", field=field, seed=5)
        answers = answers_of(world, world.truth)
        found = weighted_gradients(answers, kept(answers.weights), answers.levels)
        _, moves = displacements(world, world.truth, np.ones(6000, dtype=bool))
        # Along the signal, and in the complex case along its phase, it is less.
        assert found.typical[0] == pytest.approx(moves.var(axis=0).sum() / d, rel=0.1), field


def test_samples_that_are_not_kept_may_be_too_large_to_square():
    world = make_world(10, 600, contamination=0.0, attack="none", seed=0)
    y = world.y.copy()
    y[:20] = 1e200
    answers = answers_of(world, world.truth, np.where(np.arange(600) < 20, 0.0, 1.0)[:, None])
    spoilt = answers._replace(responses=y[:, None])
    assert np.isfinite(certify(spoilt).radii).all()
    assert_allclose(certify(spoilt).radii, certify(answers).radii)


def test_the_scale_of_the_signal_does_not_matter_to_the_radius():
    radii = []
    for norm in (1e-4, 1.0, 1e4):
        world = make_world(15, 900, contamination=0.1, attack="huge", norm=norm, seed=5)
        radii.append(
            float(certify(answers_of(world, world.truth, np.where(world.touched, 0.0, 1.0)[:, None])).radii[0])
        )
    assert_allclose(radii, radii[1], rtol=1e-6)


def test_multiplicative_weights_may_vouch_too():
    for seed in (6, 7):
        world = make_world(15, 1500, contamination=0.05, attack="huge", seed=seed)
        answers = answers_of(world, world.truth, np.where(world.touched, 0.0, 1.0)[:, None], level=0.05)
        certificates = certify(answers, mean_estimator="mmw", random_state=0)
        assert distance(certificates.signals[:, 0], world.truth) < 0.1, f"seed {seed}"
        # They are weights of their own, which also take away clean gradients that stick out.
        assert 0 < certificates.radii[0] < 1.5 * certify(answers).radii[0], f"seed {seed}"


def test_a_mean_estimator_that_certifies_nothing_vouches_for_no_ball():
    world = make_world(15, 900, contamination=0.05, attack="huge", seed=8)
    answers = answers_of(world, world.truth, np.where(world.touched, 0.0, 1.0)[:, None])
    for method in ("trimmed", "median", "empirical"):
        certificates = certify(answers, mean_estimator=method)
        assert certificates.radii[0] == np.inf, method
        assert_array_equal(certificates.signals[:, 0], world.truth, method)


def test_an_operator_gets_gradients_and_no_radius():
    world = make_world(10, 500, contamination=0.0, attack="none", seed=7)
    answers = answers_of(world, world.truth)._replace(source=as_source(aslinearoperator(world.A)))
    certificates = certify(answers)
    assert np.isnan(certificates.radii).all()
    assert_allclose(certificates.gradients.means, certify(answers_of(world, world.truth)).gradients.means)


def test_a_signal_of_zero_does_not_divide_by_zero():
    world = make_world(10, 500, contamination=0.0, attack="none", seed=8)
    certificates = certify(answers_of(world, np.zeros(10)))
    assert_allclose(certificates.signals, 0)
    assert certificates.radii[0] == 0 or certificates.radii[0] > CERTIFICATE.rounding


@pytest.mark.parametrize("noise", ["student", "gaussian"])
def test_halved_rows_among_few_unknowns_are_never_certified_below_their_error(noise):
    """Answers are wrong there as a rule, so none may be vouched for."""
    for seed in seeds(1, 3):
        world = make_world(20, 4000, contamination=0.3, attack="shrunk_rows", noise=noise, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = RobustPhaseRetrieval(0.3).fit(world.A, world.y)
        error = distance(model.signal_, world.truth, relative=True)
        assert error < model.certificate_, f"seed {seed}"

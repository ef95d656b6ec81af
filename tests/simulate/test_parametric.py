"""The parametric family of attacks."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.simulate import NOISES, ParametricAttack, make_world
from robustphase.simulate.adversaries.parametric import AIMS, FAMILY

vectors = st.lists(st.floats(0.0, 1.0), min_size=len(FAMILY), max_size=len(FAMILY))


@given(vector=vectors)
def test_every_point_of_the_cube_is_an_attack_within_the_ranges(vector):
    attack = ParametricAttack.from_vector(vector)
    for name, scale in FAMILY.items():
        assert scale.low <= getattr(attack, name) <= scale.high
    assert_allclose(attack.to_vector(), vector, atol=1e-9)
    assert ParametricAttack.from_dict(json.loads(json.dumps(attack.to_dict()))) == attack


@settings(max_examples=60, deadline=None)
@given(
    vector=vectors,
    field=st.sampled_from(["real", "complex"]),
    noise=st.sampled_from(list(NOISES)),
    mean=st.sampled_from([0.0, 2.0]),
    n=st.integers(1, 6),
)
def test_an_attack_rewrites_as_many_samples_as_it_says_with_finite_numbers(vector, field, noise, mean, n):
    attack = ParametricAttack.from_vector(vector, noise)
    world = make_world(
        n, 60, contamination=0.2, attack=attack.adversary, noise=noise, noise_mean=mean, field=field, seed=1
    )
    assert world.touched.sum() == attack.count(12) == max(1, math.floor(12 * (1 - attack.unused)))
    assert np.isfinite(world.A).all()
    assert np.isfinite(world.y).all()
    again = make_world(
        n, 60, contamination=0.2, attack=attack.adversary, noise=noise, noise_mean=mean, field=field, seed=1
    )
    assert_array_equal(world.A, again.A)
    assert_array_equal(world.y, again.y)


def rewritten(attack, **options):
    settings = {"contamination": 0.1, "noise": "gaussian", "seed": 5, **options}
    clean = make_world(20, 1000, **{**settings, "attack": "none"})
    return clean, make_world(20, 1000, attack=attack.adversary, **settings)


def test_where_nothing_is_moved_nothing_changes():
    clean, world = rewritten(ParametricAttack(move=0.0))
    assert world.touched.sum() == 100
    assert_allclose(world.y, clean.y, atol=1e-12)
    assert_allclose(world.A, clean.A, atol=1e-12)


def test_the_responses_are_those_of_a_second_signal_of_the_angle_and_norm_asked_for():
    _, world = rewritten(ParametricAttack(angle=0.7, norm=1.4, noise_factor=0.0))
    bad = world.touched
    # Twenty unknowns, a hundred exact responses: the lifted equations of the plane of the two signals have one solution.
    from scipy.optimize import least_squares

    def residuals(x):
        return (world.A[bad] @ x) ** 2 - world.y[bad]

    rng = np.random.default_rng(0)
    starts = [world.truth + 0.4 * rng.standard_normal(20) for _ in range(20)]
    second = min((least_squares(residuals, start) for start in starts), key=lambda found: found.cost).x
    assert_allclose(residuals(second), 0.0, atol=1e-6)
    assert_allclose(np.linalg.norm(second), 1.4, rtol=1e-6)
    assert_allclose(abs(second @ world.truth) / 1.4, math.cos(0.7), rtol=1e-6)


@pytest.mark.parametrize(("weight", "compare"), [(1.0, np.greater), (-1.0, np.less)])
def test_the_sign_of_a_weight_says_which_end_is_selected(weight, compare):
    clean, world = rewritten(ParametricAttack(by_truth=weight))
    energy = (clean.A @ clean.truth) ** 2
    assert compare(energy[world.touched].mean(), energy[world.clean].mean())
    edge = energy[world.touched].min() if weight > 0 else energy[world.touched].max()
    assert not compare(energy[world.clean], edge).any()


def test_evidence_for_the_truth_is_taken_away_by_the_likelihood_of_the_law_itself():
    angle, sigma = 1.2, 0.5
    attack = ParametricAttack(angle=angle, by_likelihood=-1.0, noise_factor=0.0)
    clean, world = rewritten(attack, noise_std=sigma)
    residual = clean.y - (clean.A @ clean.truth) ** 2
    moved = world.y - (clean.A @ clean.truth) ** 2
    bad = world.touched
    # For Gaussian noise: the residual under the second signal is the larger, by squares.
    ratio = residual[bad] ** 2 - (residual[bad] - moved[bad]) ** 2
    assert (ratio < 0).all()


def test_rows_are_tilted_lengthened_and_redrawn_as_asked():
    clean, world = rewritten(ParametricAttack(tilt=1.0, aim=0.5))
    bad = world.touched
    assert AIMS[0] == "the truth"
    assert_allclose(world.A[bad] @ world.truth, 2 * clean.A[bad] @ clean.truth)
    clean, world = rewritten(ParametricAttack(length=2.0))
    ratios = np.linalg.norm(world.A[world.touched], axis=1) / np.linalg.norm(clean.A[world.touched], axis=1)
    assert_allclose(ratios, 1 + 2 / math.sqrt(40))
    clean, world = rewritten(ParametricAttack(redrawn=1.0))
    assert not np.isclose(world.A[world.touched], clean.A[world.touched]).any()


def test_clipped_responses_stay_within_the_clean_ones():
    loud = ParametricAttack(norm=2.5, by_second=1.0)
    clean, world = rewritten(loud)
    assert world.y.max() > clean.y.max()
    clean, world = rewritten(ParametricAttack(norm=2.5, by_second=1.0, clip=1.0))
    assert world.y[world.touched].max() <= np.quantile(clean.y, 0.95) + 1e-9


def test_numbers_outside_of_the_family_are_refused():
    with pytest.raises(ValueError, match=r"angle must be in \[0, 1.5708\]"):
        ParametricAttack(angle=2.0)
    with pytest.raises(ValueError, match="an attack has no angel"):
        ParametricAttack.from_dict({"angel": 1.0})
    with pytest.raises(ValueError, match="vector must hold"):
        ParametricAttack.from_vector([0.5])
    with pytest.raises(ValueError, match="noise must be one of"):
        ParametricAttack(noise="pink")

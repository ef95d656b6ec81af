"""Signals that contamination hides from everybody, and the certificates that know of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from robustphase import RobustPhaseRetrieval, distance
from robustphase.experiments import indistinguishable_distance
from robustphase.experiments.red_team import KNOWN
from robustphase.likelihood.noise_model import NoiseModel
from robustphase.population.plane import rows_in_plane
from robustphase.recover.indistinguishable import indistinguishable_distances
from robustphase.simulate import make_world


def law(scale, tail=1 / 60, skew=1.0):
    return NoiseModel(*(np.array([value]) for value in (scale, tail, np.log(skew), 0.1)))


def hidden(scale, variation, energy=1.0, least=0.0, *, tail=1 / 60, skew=1.0, **told):
    found = indistinguishable_distances(
        law(scale, tail, skew), np.array([energy]), np.array([variation]), np.array([least]), **told
    )
    return float(found[0])


@pytest.mark.parametrize("is_complex", [False, True])
def test_rows_in_the_plane_have_the_moments_of_normal_rows(is_complex):
    along, beside = rows_in_plane(8192, is_complex)
    fourth = 2.0 if is_complex else 3.0
    assert_allclose([np.mean(np.abs(v) ** 2) for v in (along, beside)], 1.0, atol=0.002)
    assert_allclose(np.mean(np.abs(along) ** 4), fourth, rtol=0.01)
    assert abs(np.vdot(along, beside)) / 8192 < 0.01
    assert_allclose(np.mean(np.abs(along * beside) ** 2), 1.0, rtol=0.02)


@pytest.mark.parametrize("field", ["real", "complex"])
def test_it_agrees_with_the_integral_over_the_plane(field):
    for level in (0.02, 0.05, 0.1):
        exact = indistinguishable_distance(level, noise="gaussian", noise_std=0.5, field=field)
        # Beside the answer is where signals hide farthest at small levels.
        assert_allclose(hidden(0.5, 2 * level, is_complex=field == "complex"), exact, rtol=0.06)


@given(
    st.floats(0.01, 0.5),
    st.floats(0.01, 0.3),
    st.floats(1e-3, 1e3),
    st.sampled_from([1 / 60, 1 / 4]),
    st.sampled_from([0.5, 1.0, 3.0]),
)
def test_it_grows_with_noise_and_contamination_and_knows_no_units(scale, variation, energy, tail, skew):
    found = hidden(scale, variation, tail=tail, skew=skew)
    assert_allclose(hidden(energy * scale, variation, energy, tail=tail, skew=skew), found, rtol=1e-6)
    assert hidden(1.3 * scale, variation, tail=tail, skew=skew) >= found
    assert hidden(scale, 1.3 * variation, tail=tail, skew=skew) >= found
    assert hidden(scale, variation, tail=tail, skew=skew, unknown_mean=True) >= found
    # Less is not asked for.
    assert hidden(scale, variation, least=0.9 * found, tail=tail, skew=skew) >= 0.9 * found


def test_nothing_hides_without_noise_and_everything_beyond_breakdown():
    assert hidden(0.0, 0.2) < 1e-6
    assert hidden(1e-6, 0.2) < 1e-5
    assert hidden(0.5, 0.0) < 1e-6
    assert hidden(0.5, 0.6) == np.inf
    assert hidden(0.5, 0.2, energy=0.0) == np.inf
    assert hidden(0.5, 0.2, least=0.7) == 0.7
    assert hidden(0.5, 0.2, least=np.inf) == np.inf


@pytest.mark.parametrize("polish", [True, False])
def test_certificates_cover_an_attack_that_leaves_nothing_to_flag(polish):
    """A fifth of the samples speak for a second signal near the first, and none of them sticks out."""
    for seed in (900, 901):
        world = make_world(
            50, 2500, contamination=0.2, attack=KNOWN[0].adversary, noise="gaussian", noise_std=0.5, seed=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A warning would be as good.
            model = RobustPhaseRetrieval(contamination=0.2, polish=polish).fit(world.A, world.y)
        reached = distance(model.signal_, world.truth, relative=True)
        assert reached > 0.25, f"seed {seed}: the attack no longer hurts, so this shows nothing"
        assert model.certificate_ > reached, f"seed {seed}"


def test_certificates_of_a_stream_cover_it_too():
    world = make_world(50, 7500, contamination=0.2, attack=KNOWN[0].adversary, noise="gaussian", noise_std=0.5, seed=3)
    model = RobustPhaseRetrieval(contamination=0.2)
    for batch in range(3):
        rows = slice(2500 * batch, 2500 * (batch + 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A warning would be as good.
            model.partial_fit(world.A[rows], world.y[rows])
        reached = distance(model.signal_, world.truth, relative=True)
        assert reached > 0.25, f"batch {batch}: the attack no longer hurts, so this shows nothing"
        assert model.certificate_ > reached, f"batch {batch}"

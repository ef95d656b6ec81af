"""Worlds as detectors read them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.simulate import count_photons, make_camera, make_counts, read_camera


def test_counts_have_their_means_and_variances():
    counts = count_photons(np.full(200_000, 3.0), seed=0)
    assert_allclose([counts.mean(), counts.var()], 3.0, rtol=0.02)


def test_a_camera_has_gain_read_noise_offset_and_a_ceiling():
    readings = read_camera(np.full(200_000, 500.0), gain=2.3, read_noise=4.0, offset=100.0, bits=12, seed=0)
    assert_allclose(readings.mean(), 600.0, atol=0.5)
    assert_allclose(readings.var(), 2.3 * 500 + 16 + 1 / 12, rtol=0.02)
    assert_array_equal(read_camera(np.full(9, 1e6), bits=8, seed=0), 255.0)


@pytest.mark.parametrize("field", ["real", "complex"])
def test_counts_of_a_world_are_whole_and_the_adversary_stays_within_its_budget(field):
    world = make_counts(10, 2000, mean_count=2.0, contamination=0.1, attack="moderate", field=field, seed=1)
    assert_array_equal(world.y, np.rint(world.y))
    assert (world.y >= 0).all()
    assert 0 < world.touched.sum() <= 200
    assert_allclose(world.y[world.clean].mean(), 2.2, rtol=0.1)
    assert_allclose(np.linalg.norm(world.truth) ** 2, 2.0)


@pytest.mark.parametrize(("design", "field"), [("on_off", "complex"), ("phases", "complex"), ("grey", "real")])
def test_detectors_stand_behind_any_design_and_so_do_the_rows_of_the_adversary(design, field):
    counts = make_counts(
        10, 4000, mean_count=2.0, contamination=0.1, attack="cloud", design=design, field=field, seed=1
    )
    assert counts.design == design
    assert np.iscomplexobj(counts.truth) == (field == "complex")
    assert_allclose((np.abs(counts.A[counts.clean] @ counts.truth) ** 2).mean(), 2.0, rtol=0.1)
    assert_allclose(counts.norm, np.linalg.norm(counts.truth))
    world = make_camera(10, 4000, saturated=0.2, contamination=0.0, attack="none", design=design, field=field, seed=2)
    assert_allclose(np.mean(world.y == 4095), 0.2, atol=0.02)
    if design == "on_off":
        for one in (counts, world):
            assert np.isin(one.A, (0.0, 1.0)).all()


def test_the_same_seed_draws_the_same_clean_counts_whatever_the_attack():
    one, other = (make_counts(10, 500, attack=attack, seed=5) for attack in ("decoy", "permute"))
    both = one.clean & other.clean
    assert_array_equal(one.y[both], other.y[both])


def test_the_exposure_saturates_the_share_asked_for():
    world = make_camera(10, 4000, saturated=0.2, contamination=0.0, attack="none", seed=2)
    assert_allclose(np.mean(world.y == 4095), 0.2, atol=0.02)
    with pytest.raises(ValueError, match="saturated"):
        make_camera(saturated=3)

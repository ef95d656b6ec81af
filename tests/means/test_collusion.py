"""Groups among few, long points."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from robustphase import robust_mean
from robustphase.means.gram import without_colluders


def honest(seed, count, length):
    return np.random.default_rng(seed).standard_normal((count, length))


def test_a_group_is_found_however_near_it_stays(case):
    for count, bad in [(20, 4), (50, 10), (100, 20)]:
        for size in [0.4, 1.0, 30.0]:
            with case(count, bad, size):
                # 0.4 of a deviation in each coordinate is nearer than the honest points are to each other. On 30 other seeds of
                # each size and count no group was missed.
                for seed in range(3):
                    points = honest(seed, count, 100 * count)
                    points[:bad] = points[bad:].mean(axis=0) + size
                    keep = without_colluders(points, np.ones(count, bool), 0.2)
                    assert_allclose(keep, np.arange(count) >= bad)
                    assert_allclose(robust_mean(points, 0.2).location, points[bad:].mean(axis=0), atol=1e-10)


def test_honest_points_are_left_alone(case):
    for kind in ["independent", "few directions", "decaying"]:
        for count in [10, 20, 60]:
            with case(kind, count):
                # On 40 other seeds of each kind and count not one point was taken.
                taken = 0
                for seed in range(5):
                    points = honest(seed, count, 20 * count)
                    if kind == "decaying":
                        points *= np.geomspace(10, 0.01, points.shape[1])
                    if kind == "few directions":
                        points += 2 * honest(seed + 100, count, 3) @ honest(seed + 200, 3, points.shape[1])
                    taken += count - int(without_colluders(points, np.ones(count, bool), 0.2).sum())
                assert taken <= 0.02 * 5 * count


def test_no_more_are_taken_than_stated():
    points = honest(0, 20, 2000)
    points[:5] = 1.0
    assert without_colluders(points, np.ones(20, bool), 0.2).sum() == 16
    assert_allclose(without_colluders(points, np.ones(20, bool), "auto"), np.arange(20) >= 5)


def test_points_that_cannot_be_used_stay_out():
    usable = np.arange(20) != 7
    assert not without_colluders(honest(0, 20, 2000), usable, 0.2)[7]


def test_too_few_points_accuse_nobody():
    assert without_colluders(np.ones((3, 50)), np.ones(3, bool), 0.4).all()

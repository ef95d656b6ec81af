"""The min-max estimator of Proposition 2.2 is solved to the gap it states."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import robust_covariance
from robustphase.spectra.minmax import OPTIONS, minmax_covariance, trimmed_moments


@pytest.mark.parametrize("n", [2, 5])
def test_the_min_max_estimate_reaches_its_stated_gap(n):
    rng = np.random.default_rng(n)
    points = rng.standard_normal((300, n)) * np.linspace(1, 2, n)
    points[:15] = 8
    result = robust_covariance(points, 0.05, "minmax", assume_centered=True)
    assert result.converged
    assert 0 <= result.gap <= OPTIONS.gap
    assert np.linalg.eigvalsh(result.covariance)[0] >= 0
    # Trimming squares at 5 percent loses a third of a normal variance; contamination can raise it again.
    assert 0.4 < np.linalg.eigvalsh(result.covariance)[0] < result.top_variance < 6


def test_in_the_plane_no_direction_fits_worse_than_the_gap_allows():
    rng = np.random.default_rng(7)
    points = rng.standard_t(4, (400, 2)) * [2, 1]
    points[:20] = [0, 9]
    trimmed = 20
    solution = minmax_covariance(points, trimmed / 400)
    angles = np.linspace(0, np.pi, 2000)
    directions = np.stack((np.cos(angles), np.sin(angles)), axis=1)
    targets = trimmed_moments(points, directions, trimmed)

    def worst(matrix):
        return np.abs(np.einsum("ij,jk,ik->i", directions, matrix, directions) - targets).max()

    found = worst(solution.matrix)
    # No matrix nearby does better by more than the gap: random moves around the solution never do.
    nearby = rng.standard_normal((200, 2, 2)) * 0.1 * np.linalg.norm(solution.matrix)
    assert found <= (1 + solution.gap + 1e-6) * min(
        worst(solution.matrix + size * (move + move.T)) for move in nearby for size in (0.01, 0.1, 1)
    )


def test_without_trimming_the_min_max_estimate_is_the_second_moment(rng):
    points = rng.standard_normal((200, 3))
    assert_allclose(minmax_covariance(points, 0.0).matrix, points.T @ points / 200, atol=1e-6)

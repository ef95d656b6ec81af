"""The paper written down without a thought for cost: every gradient is made, every filter round takes a full decomposition."""

from __future__ import annotations

import numpy as np

from robustphase.population import paper_step


def filtered_mean(points: np.ndarray, contamination: float, rounds: int = 10) -> np.ndarray:
    """Robust mean: as long as a direction has too much variance, the points farthest along it go."""
    kept = np.ones(len(points), bool)
    budget = int(2 * contamination * len(points))
    for _ in range(rounds):
        mean = points[kept].mean(axis=0)
        _, sizes, directions = np.linalg.svd(points[kept] - mean, full_matrices=False)
        if sizes[0] ** 2 < 1.5 * np.median(sizes**2) or kept.sum() <= len(points) - budget:
            break
        scores = np.abs((points - mean) @ directions[0])
        kept &= scores <= np.quantile(scores[kept], 1 - contamination / 2)
    return points[kept].mean(axis=0)


def robust_step(A: np.ndarray, y: np.ndarray, x: np.ndarray, contamination: float) -> np.ndarray:
    """One iteration of Algorithm 2."""
    s = A @ x
    gradients = ((s * s - y) * s)[:, np.newaxis] * A
    return x - paper_step(x) * filtered_mean(gradients, contamination)

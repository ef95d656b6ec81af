"""The empirical mean: optimal for Gaussian data without contamination, defenceless against anything else."""

from __future__ import annotations

import numpy as np

from robustphase.means.result import MeanResult
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array


def empirical_mean(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """Average of all points that are not dropped. Breakdown: a single point. Cost: one pass."""
    weights = np.ones(view.shape[0]) if dropped is None else (~dropped).astype(np.float64)
    return MeanResult(
        location=view.mean(weights),
        weights=weights,
        top_variance=np.nan,
        removed=1.0 - float(weights.mean()),
        contamination=contamination,
        n_iter=1,
        converged=True,
        message="the empirical mean: one bad point can move it anywhere",
    )

"""The loss gradients of all samples as a cloud of scaled rows, and their robust mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.means import METHODS, MeanResult
from robustphase.means.estimate import RANDOMISED
from robustphase.rows import RowSource, ScaledRows, project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


def gradient_points(
    source: RowSource, responses: Array, signal: Array, *, background: float = 0.0, paired: bool = False
) -> ScaledRows:
    """The points ``(|s|² + b − y) s a`` with ``s = aᴴx``, or the paired ones of Algorithm 4.

    Parameters
    ----------
    source : RowSource
        The covariates.
    responses : ndarray of shape (m,)
        ``y``.
    signal : ndarray of shape (n,)
        ``x``.
    background : float, default=0
        ``b``.
    paired : bool, default=False
        The points ``(xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x = ½[(s² − y) − (s'² − y')](s a − s' a')``.

    Returns
    -------
    ScaledRows
    """
    s = project(source, signal)
    residuals = abs2(s) + background - responses
    if not paired:
        return ScaledRows(source, residuals * s)
    pairs = s.size // 2
    half_gap = 0.5 * (residuals[:pairs] - residuals[pairs : 2 * pairs])
    scale = np.zeros_like(s)
    scale[:pairs], scale[pairs : 2 * pairs] = half_gap * s[:pairs], half_gap * s[pairs : 2 * pairs]
    return ScaledRows(source, scale, paired=True)


def robust_gradient(
    view: ScaledRows,
    contamination: float | str,
    *,
    mean_estimator: str = "filter",
    start: MeanResult | None = None,
    random_state: Any = None,
    dropped: Array | None = None,
) -> MeanResult:
    """Robust mean of a cloud of gradients by any of the mean estimators; the filter warms up from ``start``.

    Gradients that are ``dropped`` count as contaminated: those of samples that read as zero would hold the mean back.
    """
    if contamination == 0 and mean_estimator in ("filter", "mmw"):
        mean_estimator = "empirical"
    options: dict[str, Any] = {}
    if mean_estimator == "filter":
        # Gradients are skewed and heavy-tailed away from the solution, without any contamination.
        options |= {"start": start, "strict": True}
    if mean_estimator in RANDOMISED:
        options["random_state"] = random_state
    return METHODS[mean_estimator](view, contamination, dropped=dropped, **options)


def pairs_with(marked: Array) -> Array:
    """Which of the pairs (j, j + m // 2) hold a marked sample."""
    pairs = marked.size // 2
    spoilt: Array = marked[:pairs] | marked[pairs : 2 * pairs]
    return spoilt

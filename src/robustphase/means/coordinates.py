"""Estimators that treat every coordinate on its own: median, trimmed mean, and the M-estimator of Catoni and Holland.

Each bounds what one bad point can do to one coordinate. A cluster of bad points moves all n coordinates a little, which
adds up to an error of order ``sqrt(n) ε`` where the filter has ``sqrt(ε)``; and none is invariant under rotations.
"""

from __future__ import annotations

import numpy as np

from robustphase.means.columns import coordinatewise, plain_result, usable_points
from robustphase.means.result import MeanResult
from robustphase.means.spread import NORMAL_IQR
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)
_NO_CERTIFICATE = "treats every coordinate on its own and gives no certificate: a cluster of bad points biases it"


def coordinate_median(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """Median of every coordinate. Breakdown: one half. Cost: 32 partial passes.

    It estimates the mean only where the points are symmetric about it; ``contamination`` is not used, the weights tell
    nothing but which points were dropped, and there is no certificate.
    """
    keep = usable_points(view, dropped)
    found = coordinatewise(view, keep, lambda values: (np.median(values, axis=0), None))
    return plain_result(found.location, found.weights, contamination, f"the coordinate-wise median {_NO_CERTIFICATE}")


def trimmed_mean(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """Mean of every coordinate without its ``contamination`` smallest and largest values.

    Breakdown: the stated contamination. Cost: 32 partial passes. A point's weight is the share of coordinates in which
    it was kept; there is no certificate.
    """
    keep = usable_points(view, dropped)
    count = int(keep.sum())
    cut = min(int(np.ceil(contamination * count - 1e-9)), (count - 1) // 2)

    def statistic(values: Array) -> tuple[Array, Array]:
        parted = np.partition(values, (cut, count - 1 - cut), axis=0)
        low, high = parted[cut], parted[count - 1 - cut]
        inside = (values >= low) & (values <= high)
        return parted[cut : count - cut].mean(axis=0, dtype=np.float64), inside.mean(axis=1)

    found = coordinatewise(view, keep, statistic)
    return plain_result(found.location, found.weights, contamination, f"the trimmed mean {_NO_CERTIFICATE}")


def catoni_mean(
    view: ScaledRows, contamination: float, *, dropped: Array | None = None, max_iter: int = 50, tol: float = 1e-10
) -> MeanResult:
    """M-estimator of every coordinate in the manner of Catoni (2012), with Holland's bounded influence function.

    The root θ of ``Σ ψ((x − θ) / s) = 0`` with the Gudermannian ``ψ(u) = 2 arctan(tanh(u / 2))``: the mean for what is
    within the scale s, a median for what is far beyond it. Catoni's scale for confidence 1 − δ is
    ``σ sqrt(N / (2 log(1/δ)))``; with ε' in place of ``log(1/δ) / N`` it serves contamination too, ``s = σ/sqrt(2ε')``.
    The spread σ is that of the quartiles, so nothing has to be known.

    Breakdown: a quarter, that of the quartiles. Cost: 32 partial passes, and a few looks at each group in memory. A
    point's weight is the average over coordinates of ``ψ(u) / u``; there is no certificate.
    """
    keep = usable_points(view, dropped)
    if contamination == 0:
        weights = keep.astype(np.float64)
        return plain_result(view.mean(weights), weights, 0.0, "the empirical mean: no contamination was stated")
    rounds: list[int] = []

    def statistic(values: Array) -> tuple[Array, Array]:
        low, centre, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
        scale = (high - low) / NORMAL_IQR / np.sqrt(2 * contamination)
        # More than half of the values of a column coincide: its median is the answer, and any tiny scale gives it.
        scale = np.maximum(scale, np.maximum(1e-12 * np.abs(values).max(axis=0), _TINY))
        round_, step = 0, scale
        while round_ < max_iter and (np.abs(step) > tol * scale).any():
            round_ += 1
            relative = (values - centre) / scale
            influence = gudermannian(relative)
            # Newton: the derivative of ψ is 1/cosh, at least one half of the points being within a few scales.
            step = scale * influence.mean(axis=0) / (1.0 / np.cosh(np.clip(relative, -300, 300))).mean(axis=0)
            centre = centre + step
        rounds.append(round_)
        share = np.divide(influence, relative, out=np.ones_like(relative), where=relative != 0)
        return centre, share.mean(axis=1)

    found = coordinatewise(view, keep, statistic)
    return plain_result(
        found.location,
        found.weights,
        contamination,
        f"the Catoni-Holland estimator {_NO_CERTIFICATE}",
        n_iter=max(rounds),
        converged=max(rounds) < max_iter,
    )


def gudermannian(u: Array) -> Array:
    """``2 arctan(tanh(u / 2))``: the identity near zero, bounded by π/2."""
    bounded: Array = 2.0 * np.arctan(np.tanh(u / 2.0))
    return bounded

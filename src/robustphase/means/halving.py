"""Dimension halving: the agnostic mean of Lai, Rao and Vempala (2016).

Bad points that matter make directions of large variance. So in the half of the directions with the smallest variances
the plain mean of what is left after truncation is good, and only the other half is worth a closer look: recurse there,
until one direction is left, where the median will do.
"""

from __future__ import annotations

import numpy as np

from robustphase.means.columns import column_groups, plain_result, usable_points
from robustphase.means.result import MeanResult
from robustphase.rows import ScaledRows
from robustphase.rows.source import Array


def halving_mean(view: ScaledRows, contamination: float, *, dropped: Array | None = None) -> MeanResult:
    """Robust mean by halving the dimension (Lai, Rao and Vempala).

    Each level forgets the share ``contamination`` of the points that is farthest from the coordinate-wise median within
    the directions still open, takes the mean of the others along the quieter half of the directions, and hands the rest
    down.

    Breakdown: the stated contamination, with an error of order ``sqrt(ε ‖Σ‖ log n)``. Cost: ``log2 n`` levels and about
    130 passes, ``N n²`` operations and n × n memory: it is here for comparison. A point's weight is the share of
    coordinates whose mean it entered; there is no certificate.
    """
    usable = usable_points(view, dropped)
    dimension = view.shape[1]
    kind = np.result_type(view.dtype, np.float64)
    open_, location = np.eye(dimension, dtype=kind), np.zeros(dimension, kind)
    weights, levels = np.zeros(view.shape[0]), 0
    while open_.shape[1] > 1:
        levels += 1
        keep = truncated(view, usable, open_, contamination)
        mean = view.mean(keep.astype(np.float64))
        noisy, quiet = halves(view, keep, mean, open_)
        location += quiet @ (quiet.conj().T @ mean)
        weights += keep * (quiet.shape[1] / dimension)
        open_ = noisy
    last = view.inner(open_[:, 0])[usable].conj()
    middle = np.median(last.real) + (1j * np.median(last.imag) if last.dtype.kind == "c" else 0.0)
    location += open_[:, 0] * middle
    weights += usable / dimension
    message = "the dimension-halving estimator gives no certificate"
    return plain_result(location, np.minimum(weights, 1.0), contamination, message, n_iter=levels)


def truncated(view: ScaledRows, usable: Array, basis: Array, contamination: float) -> Array:
    """The usable points without the farthest share ``contamination``, by distance to the median along ``basis``."""
    squares = np.zeros(view.shape[0])
    for chosen in column_groups(basis.shape[1]):
        along = view.inner(basis[:, chosen])
        squares += ((along.real - np.median(along.real[usable], axis=0)) ** 2).sum(axis=1)
        if along.dtype.kind == "c":
            squares += ((along.imag - np.median(along.imag[usable], axis=0)) ** 2).sum(axis=1)
    return usable & (squares <= np.quantile(squares[usable], 1.0 - contamination, method="higher"))


def halves(view: ScaledRows, keep: Array, mean: Array, basis: Array) -> tuple[Array, Array]:
    """The half of ``basis``'s span in which the kept points vary most, and the rest of it."""
    weights = keep.astype(np.float64)
    products = [view.covariance_times(weights, mean, basis[:, chosen])[0] for chosen in column_groups(basis.shape[1])]
    small = basis.conj().T @ np.hstack(products)
    _, rotation = np.linalg.eigh((small + small.conj().T) / 2)
    rotated: Array = basis @ rotation
    cut = basis.shape[1] - basis.shape[1] // 2
    return rotated[:, cut:], rotated[:, :cut]

"""The first pass over the rows of a check: predictions, gradients of the halves, and what there is to know of the design.

That is the lengths of the rows, their mean, two moments of the spectrum of their covariance along a random direction, and whether
they determine a signal (:mod:`robustphase.recover.model.determinacy`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.recover.model.determinacy import least_curvature, variety
from robustphase.recover.model.residuals import NORMAL_MAD, median
from robustphase.recover.model.samples import Part, column_counts, squared_lengths
from robustphase.rows import OperatorRows
from robustphase.rows.passes import in_slices
from robustphase.rows.products import abs2, adjoint_block, in_type_of, project_block
from robustphase.rows.source import Array, Parts


class Design(NamedTuple):
    """The rows that were kept, held against a standard normal design.

    Attributes
    ----------
    scale : float
        Median squared length of the rows over the number of unknowns: 1.
    shift : float
        Squared length of the mean row over the mean squared length of a row: nearly 0.
    spread : float
        Variance of the eigenvalues of the second moment in units of their mean squared, less what chance adds: 0.
    kurtosis : float
        Excess kurtosis of the entries if they are independent, from the variance of the squared lengths: 0.
    rows : int
        How many rows that were.
    curvature : float
        Least curvature of the loss at the answer over that of a standard normal design: 1. NaN where it was not computed.
    variety : float, default=inf
        At least so many numbers can be told from each other by responses to such rows, however many there are.
    """

    scale: float
    shift: float
    spread: float
    kurtosis: float
    rows: int
    curvature: float
    variety: float = np.inf


class First(NamedTuple):
    """What the first pass over the rows found."""

    projections: Array
    predictions: Array
    difference: Array
    lengths: Array | None
    mean: Array
    image: Array
    along: float
    rows: int
    curvature: float
    variety: float


def first_pass(part: Part, probe: Array, rng: np.random.Generator) -> First:
    """Predictions, mean gradient of the first half less that of the second, and figures of the design."""
    fit, keep, first_half = part.fit, part.keep, part.first_half[:, np.newaxis]
    p, signals, centres = fit.signals.shape[1], fit.signals, fit.centres
    operator, both = isinstance(fit.source, OperatorRows), np.concatenate((signals, probe), axis=1)
    # Most rows are kept or nothing can be said; where they are not, the figures of the design are about all of them.
    most = mostly(keep)
    rows = most if 2 * np.count_nonzero(most) >= len(keep) else np.ones((len(keep), 1), bool)
    of_first = column_counts(keep & first_half)
    of_second = column_counts(keep) - of_first
    factors = np.where(first_half, 1 / np.maximum(of_first, 1.0), -1 / np.maximum(of_second, 1.0))

    def kernel(block: Array, y: Array, kept_: Array, factor: Array, row: Array) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            projected = project_block(block, both)
            s, along = projected[:, :p], np.where(row, projected[:, p:], 0.0)
            pull = np.where(kept_, (abs2(s) + (centres - y)) * s, 0.0) * factor
            # One column after the other in memory, as the product reads them.
            dtype = pull.dtype if operator else in_type_of(block, pull[:0]).dtype
            columns = np.empty((p + 2, len(y)), dtype).T
            columns[:, :p], columns[:, p:-1], columns[:, -1:] = pull, along, row
            sums = adjoint_block(block, columns)
            lengths = np.zeros(len(y)) if operator or part.lengths is not None else squared_lengths(block)
        return Parts(sums=(sums, abs2(along).sum(axis=0)), rows=(s, lengths))

    sliced, per_row = in_slices(kernel, 4 * p), (fit.responses, keep, factors, rows)
    # Rows that were taken are few, and need no blocks or threads of their own.
    parts = fit.source.reduce(sliced, per_row) if part.rows is None else sliced(part.rows, *per_row)
    sums, along = parts.sums
    sums = sums.astype(np.result_type(sums, np.float64), copy=False)
    projections, lengths = parts.rows
    if part.lengths is not None:
        lengths = part.lengths
    count = max(int(np.count_nonzero(rows)), 1)
    return First(
        projections=projections,
        predictions=abs2(projections),
        difference=sums[:, :p],
        lengths=None if operator else lengths,
        mean=sums[:, p + 1] / count,
        image=sums[:, p] / count,
        along=float(along[0]) / count,
        rows=count,
        curvature=_curvature(part, projections, most[:, 0], rng),
        variety=np.inf if part.single is None else variety(part.single, np.flatnonzero(rows[:, 0]), rng),
    )


def _curvature(part: Part, projections: Array, rows: Array, rng: np.random.Generator) -> float:
    """Least curvature of the loss at a typical answer over what standard normal rows would give; NaN if it cannot be told."""
    signals = part.fit.signals
    energies = abs2(signals).sum(axis=0)
    column = int(energies.argsort()[energies.size // 2])
    if part.single is None or not energies[column] > 0:
        return np.nan
    unit = np.sqrt(energies[column])
    used = np.where(rows, projections[:, column] / unit, 0.0)
    return least_curvature(part.single, used, signals[:, column] / unit, rng)


def mostly(keep: Array) -> Array:
    """Rows that are kept for most signals, shape (m, 1): those that the design is judged by."""
    mostly: Array = keep if keep.shape[1] == 1 else 2 * keep.sum(axis=1, keepdims=True) > keep.shape[1]
    return mostly


def design_of(first: First, real_rows: bool, keep: Array, usable: Array, n: int) -> Design:
    """The rows that were kept, or all usable ones where most are not, held against a standard normal design."""
    assert first.lengths is not None
    rows = keep if 2 * np.count_nonzero(keep) >= keep.size else usable
    lengths = first.lengths[rows]
    total = float(lengths.sum(dtype=np.float64))
    if not math.isfinite(total):
        lengths = lengths[np.isfinite(lengths)]
        total = float(lengths.sum(dtype=np.float64))
    typical = median(lengths) if lengths.size else 0.0
    if not typical > 0:
        return Design(0.0, 0.0, 0.0, 0.0, 0, 0.0)
    average = total / lengths.size
    real = 1.0 if real_rows else 0.5
    shift = float(np.vdot(first.mean, first.mean).real) / average
    second = float(np.vdot(first.image, first.image).real)
    spread = second / max(first.along, TINY) ** 2 - 1.0 - n / first.rows
    # Squared lengths of rows of independent entries have the variance n(κ + 2), or n(κ + 1) if they are complex.
    varied = (NORMAL_MAD * median(np.abs(lengths - typical)) / typical) ** 2 * n
    return Design(typical / n, shift, spread, varied - 2.0 * real, first.rows, first.curvature, first.variety)

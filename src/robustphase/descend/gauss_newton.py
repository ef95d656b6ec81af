"""Gauss-Newton steps: weighted least squares on the sample itself, by conjugate gradients.

Where samples are few, population moments are not good enough to end with. The linearised problem
``min Σ w (r − 2 Re(s̄ aᴴd) − β)²`` is solved by conjugate gradients, preconditioned by the population's curvature: a handful
of passes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.rows import RowSource, adjoint, sweep
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: Smaller powers count as this one.
LEAST_POWER = 1e-150
_TINY = float(np.finfo(np.float64).tiny)


class Step(NamedTuple):
    """Steps of the signals (n, k) and of the backgrounds (k,)."""

    signals: Array
    backgrounds: Array


def gauss_newton_step(
    source: RowSource,
    signals: Array,
    projections: Array,
    residuals: Array,
    weights: Array,
    *,
    fit_background: bool,
    max_inner: int,
    tol: float,
) -> Step:
    """One Gauss-Newton step for every candidate.

    Parameters
    ----------
    source : RowSource
        The covariates.
    signals : ndarray of shape (n, k)
        Candidates.
    projections, residuals, weights : ndarray of shape (m, k)
        ``A X``, ``y − |A X|² − b`` and the weights.
    fit_background : bool
        Let the background move too.
    max_inner : int
        Most iterations of conjugate gradients.
    tol : float
        Stop them when the residual has fallen by this factor.
    """
    shares = weights / np.maximum(weights.sum(axis=0), _TINY)
    pulled = shares * projections
    # A signal of zero has neither power nor curvature, and no gradient either: it stays where it is.
    power, energy = np.maximum(abs2(signals).sum(axis=0), LEAST_POWER), abs2(projections)
    second, fourth = (shares * energy).sum(axis=0), (shares * energy**2).sum(axis=0)
    across = np.maximum((2.0 if np.iscomplexobj(signals) else 4.0) * second, LEAST_POWER)
    along = np.maximum(4 * (fourth - (second**2 if fit_background else 0.0)) / power, 0.3 * across)

    def precondition(vectors: Array) -> Array:
        share = _dots(signals, vectors) / power
        solved: Array = vectors / across + signals * (share * (1 / along - 1 / across))
        return solved

    mean_residual = (shares * residuals).sum(axis=0) if fit_background else np.zeros(signals.shape[1])
    if fit_background:
        # Subtracting the mean response of a direction to the background needs the second sum.
        both = 2 * adjoint(source, np.hstack((pulled * (residuals - mean_residual), pulled)))
        left, level = both[:, : power.size], both[:, power.size :]
    else:
        left, level = 2 * adjoint(source, pulled * residuals), np.zeros_like(signals)

    step, lowered = np.zeros_like(signals), np.zeros(signals.shape[1])
    conditioned = precondition(left)
    direction, size = conditioned, _dots(left, conditioned).real
    first = size
    for _ in range(max_inner):
        image, changes = _curvature_times(source, direction, projections, pulled)
        raised = (shares * changes).sum(axis=0) if fit_background else 0.0
        image = image - level * raised
        curvature = _dots(direction, image).real
        # Samples without any weight have no curvature, and nothing to say.
        length = np.where(curvature > 0, size, 0.0) / np.maximum(curvature, _TINY)
        step, lowered, left = step + length * direction, lowered + length * raised, left - length * image
        conditioned = precondition(left)
        new = _dots(left, conditioned).real
        if not (new > tol * tol * first).any():
            break
        direction, size = conditioned + new / np.maximum(size, _TINY) * direction, new
    return Step(step, mean_residual - lowered if fit_background else mean_residual)


def _curvature_times(source: RowSource, vectors: Array, projections: Array, pulled: Array) -> tuple[Array, Array]:
    """``2 Σ w s q a`` with ``q = 2 Re(s̄ aᴴv)`` the change of the prediction along v; and q. One pass."""
    done = sweep(source, vectors, lambda t, s, ws: 2 * ws * _change(s, t), (projections, pulled))
    return done.total, _change(projections, done.projections)


def _change(projections: Array, along: Array) -> Array:
    change: Array = 2 * (projections.conj() * along).real
    return change


def _dots(left: Array, right: Array) -> Array:
    """Inner products of the columns."""
    products: Array = np.vecdot(left.T, right.T)
    return products

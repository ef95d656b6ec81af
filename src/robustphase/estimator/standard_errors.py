"""Standard errors of the fitted signal.

The likelihood fit solves ``Σ_j ψ(r_j) f_j = 0`` for the signal and the background, with the residual r, the change ``f = (2 s
a, 1)`` of the prediction, and ``ψ(r) = w r`` from the fitted noise law. So its covariance is the sandwich ``B⁻¹ M B⁻ᵀ`` with
``B = Σ ψ'(r) f fᵀ`` and ``M = Σ ψ(r)² f fᵀ``.

Two cheaper formulas do not work. Weights in place of ψ' ignore that a residual which grows loses weight: intervals that
should hold 95 times in a hundred hold 82 times. The inverse of M alone, right if the noise law were exactly the fitted one, is
too wide by half for skewed noise. Residuals are smaller than noise, since the signal was fitted to them; as in linear
regression (HC2) each squared one is divided by one minus its leverage.
"""

from __future__ import annotations

import numpy as np

from robustphase.likelihood import NoiseModel
from robustphase.rows import Parts, RowSource
from robustphase.rows.source import Array

#: No sample may count as more than this much of its own prediction.
HIGHEST_LEVERAGE = 0.5


def sandwich(source: RowSource, projections: Array, slopes: Array, influences: Array) -> Array:
    """Standard errors, shape (n,): two passes and a few matrices of size n × n.

    Parameters
    ----------
    source : RowSource
        Real covariates.
    projections : ndarray of shape (m,)
        ``s = A x``.
    slopes, influences : ndarray of shape (m,)
        ``ψ'(r)`` and ``ψ(r)``.
    """
    n = source.shape[1]
    # A background in units of the other derivatives keeps the matrices well-conditioned at every scale of the signal.
    unit = float(np.sqrt(np.mean(projections**2)))
    bread = np.linalg.pinv(_second_moment(source, projections, slopes, unit), hermitian=True)

    def leverages(block: Array, s: Array) -> Parts:
        changes = _changes(block, s, unit)
        return Parts(rows=(np.einsum("ij,ij->i", np.dot(changes, bread), changes),))

    leverage = np.clip(slopes * source.reduce(leverages, (projections,)).rows[0], 0.0, HIGHEST_LEVERAGE)
    filling = _second_moment(source, projections, influences**2 / (1 - leverage), unit)
    variances = np.einsum("ij,jk,ki->i", bread, filling, bread)[:n]
    errors: Array = np.sqrt(np.maximum(variances, 0.0))
    return errors


def influence_slopes(residuals: Array, clean: Array, weights: Array, noise: NoiseModel) -> Array:
    """Derivative of ``ψ(r) = w r`` under a fitted noise model of one signal.

    The weights are ``w = c v`` with c the probability to be clean and ``1/v = (k² ν + r²/σ²)/(ν + 1)``, where the stretch k
    depends on the side of r. So ``ψ' = w (1 − [(1 − c) + 2/(ν + 1)] v r²/σ²)``.

    Parameters
    ----------
    residuals, clean, weights : ndarray of shape (m,)
        r, c and w; c and w both times the weights of the covariates.
    noise : NoiseModel
        The model, whose fields are numbers.
    """
    squares = (residuals / noise.scales) ** 2
    used = weights > 0
    v = np.zeros_like(weights)
    v[used] = weights[used] / clean[used]
    slopes: Array = weights * (1 - ((1 - clean) + 2 / (1 + noise.degrees)) * v * squares)
    return slopes


def _changes(block: Array, projections: Array, unit: float) -> Array:
    """Derivatives ``f = (2 s a, 1)`` of the predictions with respect to signal and background, the latter in a unit."""
    changes = np.empty((block.shape[0], block.shape[1] + 1))
    np.multiply(block, 2 * projections[:, np.newaxis], out=changes[:, :-1])
    changes[:, -1] = unit
    return changes


def _second_moment(source: RowSource, projections: Array, weights: Array, unit: float) -> Array:
    """``Σ_j w_j f_j f_jᵀ``: one pass."""

    def kernel(block: Array, s: Array, w: Array) -> Parts:
        changes = _changes(block, s, unit)
        return Parts(sums=(np.dot((w[:, np.newaxis] * changes).T, changes),))

    return source.reduce(kernel, (projections, weights)).sums[0]

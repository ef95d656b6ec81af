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

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.likelihood import NoiseModel
from robustphase.rows import Parts, RowSource
from robustphase.rows.products import project_block
from robustphase.rows.source import Array

#: No sample may count as more than this much of its own prediction.
HIGHEST_LEVERAGE = 0.5
#: Of the samples of a block: changes f of the predictions, slopes ψ'(r) and scores ψ(r).
Judged = tuple[Array, Array, Array]


def errors_of_fit(model: Any, source: RowSource, responses: Array) -> Array:
    """Standard errors of a fitted estimator: two passes over the rows and responses that it was fitted to.

    Rows and responses that cannot be computed with are zero already.
    """
    if np.iscomplexobj(model.signal_):
        raise ValueError(
            "standard errors are for real data: the phase of a complex signal is arbitrary, so its entries have no "
            "error of their own. Compare fits to resampled rows after aligning their phases."
        )
    if not model._law_fitted:
        raise ValueError("standard errors need a fit with polish=True that was not followed by partial_fit.")
    if responses.size != model.weights_.size:
        raise ValueError(
            f"standard errors need the data of the fit, {model.weights_.size} samples, got {responses.size}."
        )
    if model._scores is not None and model._slopes is not None:
        return weighted_sandwich(source, model.signal_, model._scores, model._slopes)
    fitted = FittedModel(model.signal_, model.residual_centre_, model.noise_model_)
    # Those of a fit on workers come here now.
    clean, weights = np.asarray(model._probabilities), np.asarray(model.residual_weights_)
    return sandwich(source, responses, clean, weights, fitted)


class FittedModel(NamedTuple):
    """What residuals and their weights follow from: the signal, where clean residuals are centred, and the noise model."""

    signal: Array
    centre: float
    noise: NoiseModel


def sandwich(source: RowSource, responses: Array, clean: Array, weights: Array, fitted: FittedModel) -> Array:
    """Standard errors, shape (n,), behind real covariates: two passes and a few matrices of size n × n.

    ``clean`` and ``weights`` (m,) are probability to be clean and weight in the last least-squares problem, both times the
    weights of the covariates.
    """
    unit = _background_unit(responses, weights, fitted)

    def judge(block: Array, y: Array, c: Array, w: Array) -> Judged:
        changes, residuals = _linearised(block, y, fitted, unit)
        return changes, influence_slopes(residuals, c, w, fitted.noise), w * residuals

    return _errors(source, judge, (responses, clean, weights))


def weighted_sandwich(source: RowSource, signal: Array, scores: Array, slopes: Array) -> Array:
    """Standard errors, shape (n,), behind real covariates where the noise depends on the signal: two passes.

    ``scores`` and ``slopes`` (m,) are the derivative of the log-likelihood of each sample by its mean, and minus the next one.
    """
    # A background in the unit of the other derivatives keeps the matrices well-conditioned.
    unit = max(float(np.linalg.norm(signal)), TINY)

    def judge(block: Array, slope: Array, score: Array) -> Judged:
        changes = np.empty((block.shape[0], signal.size + 1))
        np.multiply(block, 2 * project_block(block, signal)[:, np.newaxis], out=changes[:, :-1])
        changes[:, -1] = unit
        return changes, slope, score

    return _errors(source, judge, (slopes, scores))


def _errors(source: RowSource, judge: Callable[..., Judged], per_row: tuple[Array, ...]) -> Array:
    """Roots of the variances of the sandwich but the last, that of the background: two passes."""

    def bread_kernel(block: Array, *known: Array) -> Parts:
        changes, slopes, _ = judge(block, *known)
        return Parts(sums=(_second_moment(changes, slopes),))

    bread = np.linalg.pinv(source.reduce(bread_kernel, per_row).sums[0], hermitian=True)

    def filling_kernel(block: Array, *known: Array) -> Parts:
        changes, slopes, scores = judge(block, *known)
        leverage = np.clip(slopes * np.einsum("ij,ij->i", np.dot(changes, bread), changes), 0.0, HIGHEST_LEVERAGE)
        return Parts(sums=(_second_moment(changes, scores**2 / (1 - leverage)),))

    filling = source.reduce(filling_kernel, per_row).sums[0]
    variances = np.einsum("ij,jk,ki->i", bread, filling, bread)[:-1]
    errors: Array = np.sqrt(np.maximum(variances, 0.0))
    return errors


def influence_slopes(residuals: Array, clean: Array, weights: Array, noise: NoiseModel) -> Array:
    """Derivative of ``ψ(r) = w r`` under a fitted noise model of one signal, whose fields are numbers.

    The weights are ``w = c v`` with c the probability to be clean and ``1/v = (k² ν + r²/σ²)/(ν + 1)``, where the stretch k
    depends on the side of r. So ``ψ' = w (1 − [(1 − c) + 2/(ν + 1)] v r²/σ²)``. All c and w are times the weights of the
    covariates.
    """
    squares = (residuals / noise.scales) ** 2
    used = weights > 0
    v = np.zeros_like(weights)
    v[used] = weights[used] / clean[used]
    slopes: Array = weights * (1 - ((1 - clean) + 2 / (1 + noise.degrees)) * v * squares)
    return slopes


def _background_unit(responses: Array, weights: Array, fitted: FittedModel) -> float:
    """Root of the weighted mean of ``s²``, which is that of ``y`` minus the centre, since weighted residuals add up to zero.

    A background in units of the other derivatives keeps the matrices well-conditioned at every scale of the signal.
    """
    mean = float(weights @ (responses - fitted.centre)) / max(float(weights.sum()), TINY)
    return float(np.sqrt(mean)) if mean > 0 else 1.0


def _linearised(block: Array, responses: Array, fitted: FittedModel, unit: float) -> tuple[Array, Array]:
    """Derivatives ``f = (2 s a, 1)`` of the predictions with respect to signal and background, the latter in a unit; and r."""
    projections = project_block(block, fitted.signal)
    changes = np.empty((block.shape[0], block.shape[1] + 1))
    np.multiply(block, 2 * projections[:, np.newaxis], out=changes[:, :-1])
    changes[:, -1] = unit
    return changes, responses - projections**2 - fitted.centre


def _second_moment(changes: Array, weights: Array) -> Array:
    """``Σ_j w_j f_j f_jᵀ``."""
    moment: Array = np.dot((weights[:, np.newaxis] * changes).T, changes)
    return moment

"""The certificates of many signals at once: see :mod:`robustphase.recover.certificate`.

With the weights of the engine every gradient is a multiple of a row, ``g_j = c_j a_j``, so its mean and its covariance times
a vector are products of the rows with one matrix for all signals.
"""

from __future__ import annotations

import numpy as np

from robustphase.means import MeanResult
from robustphase.recover.certificate import DEPTH, Certificate, judge_gradient
from robustphase.rows import RowSource, project
from robustphase.rows.passes import abs2, adjoint_block, project_block
from robustphase.rows.slices import in_slices
from robustphase.rows.source import Array, Parts

_TINY = float(np.finfo(np.float64).tiny)


def certify_many(
    source: RowSource,
    responses: Array,
    signals: Array,
    backgrounds: Array,
    contaminations: Array,
    weights: Array,
    *,
    unknown_mean: bool,
) -> list[Certificate]:
    """One certificate per signal, with the weights that came with the answers.

    Parameters
    ----------
    source : RowSource
        The covariates.
    responses, weights : ndarray of shape (m, p)
        Responses, and weights of the samples.
    signals : ndarray of shape (n, p)
        The answers.
    backgrounds, contaminations : ndarray of shape (p,)
        Backgrounds, and ε' of Proposition 2.1.
    unknown_mean : bool
        Whether backgrounds were fitted.
    """
    projections = project(source, signals)
    coefficients = (abs2(projections) - responses + backgrounds) * projections
    kept = weights >= 0.5
    mass = np.maximum(kept.sum(axis=0), 1)

    def mean_kernel(block: Array, c: Array, keep: Array) -> Parts:
        return Parts(sums=(adjoint_block(block, keep * c),))

    p = signals.shape[1]
    means = source.reduce(in_slices(mean_kernel, p), (coefficients, kept)).sums[0] / mass
    sizes = np.maximum(np.linalg.norm(means, axis=0), _TINY)
    side = np.where(np.vecdot(signals.T, means.T).real < 0, -1.0, 1.0)
    vectors = signals / np.maximum(np.linalg.norm(signals, axis=0), np.finfo(np.float64).tiny) + side * means / sizes
    for _ in range(DEPTH):
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=0), _TINY)
        products = _second_moments_times(source, vectors, abs2(coefficients) * kept) / mass
        products = products - means * np.vecdot(means.T, vectors.T)
        variances = np.vecdot(vectors.T, products.T).real
        last, vectors = vectors, products
    removed = 1.0 - kept.mean(axis=0)
    return [
        judge_gradient(
            signals[:, k],
            MeanResult(
                location=means[:, k],
                weights=kept[:, k].astype(np.float64),
                top_variance=float(variances[k]),
                removed=float(removed[k]),
                contamination=float(removed[k]),
                n_iter=1,
                converged=True,
                message="the mean with weights as given",
                directions=last[:, [k]],
            ),
            max(float(contaminations[k]), float(removed[k])),
            unknown_mean=unknown_mean,
        )
        for k in range(p)
    ]


def _second_moments_times(source: RowSource, vectors: Array, squares: Array) -> Array:
    """``Σ_j |c_j|² a_j a_jᴴ v`` for every column: one pass."""

    def kernel(block: Array, q: Array) -> Parts:
        return Parts(sums=(adjoint_block(block, q * project_block(block, vectors)),))

    return source.reduce(in_slices(kernel, vectors.shape[1]), (squares,)).sums[0]

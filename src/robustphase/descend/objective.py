"""Candidates on the data: residuals, scales, weights and scores, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.likelihood import mixture_weights, residual_scales
from robustphase.rows import project
from robustphase.rows.data import Data
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: Samples whose weights are computed together: the few temporaries of that stay in cache.
ROWS = 8192


def real_unknowns(signals: Array) -> int:
    """How many real numbers a signal is."""
    return len(signals) * (2 if np.iscomplexobj(signals) else 1)


class Fit(NamedTuple):
    """How k candidates fit.

    Attributes
    ----------
    projections, residuals, weights : ndarray of shape (m, k)
        ``A X``, ``y − |A X|² − b``, and the weights of iterated least squares times those of the covariates.
    scales, scores : ndarray of shape (k,)
        Scale of the clean residuals, and mean log-likelihood ratio.
    """

    projections: Array
    residuals: Array
    weights: Array
    scales: Array
    scores: Array

    def only(self, chosen: Array) -> Fit:
        """Some of the candidates."""
        return Fit(*(part[..., chosen] for part in self))


def evaluate(data: Data, signals: Array, backgrounds: Array) -> Fit:
    """Fit of the candidates in the columns of ``signals``: one pass."""
    projections = project(data.source, signals)
    # In place: each array of this shape is as large as m rows of k unknowns.
    residuals = abs2(projections)
    np.subtract(data.responses[:, np.newaxis], residuals, out=residuals)
    residuals -= backgrounds
    return weigh(data, projections, residuals)


def weigh(data: Data, projections: Array, residuals: Array) -> Fit:
    """Scales, weights and scores of given residuals."""
    scales = residual_scales(residuals, data.weights > 0, data.contamination)
    weights, log_ratio = np.empty_like(residuals), np.zeros(residuals.shape[1])
    for start in range(0, residuals.shape[0], ROWS):
        part = slice(start, start + ROWS)
        found, ratio = mixture_weights(residuals[part], data.density[part], scales, data.contamination)
        np.multiply(found, data.weights[part, np.newaxis], out=weights[part])
        log_ratio += data.weights[part] @ np.log(ratio)
    return Fit(projections, residuals, weights, scales, log_ratio / data.weights.sum())

"""Candidates on the data: residuals, scales, weights and scores, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.likelihood import mixture_weights, residual_scales
from robustphase.rows import RowSource, project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: Samples whose weights are computed together: the few temporaries of that stay in cache.
ROWS = 8192


class Data(NamedTuple):
    """Screened samples: covariates, responses in natural units, covariate weights, response density, ε, background or not.

    Responses, weights and density are of shape (m,) or (m, 1), the same for all candidates, or (m, k), one column for each.
    """

    source: RowSource
    responses: Array
    weights: Array
    density: Array
    contamination: float
    unknown_mean: bool

    def only(self, chosen: Array) -> Data:
        """The data of some of the candidates."""
        responses, weights, density = (
            values[:, chosen] if values.ndim == 2 and values.shape[1] > 1 else values
            for values in (self.responses, self.weights, self.density)
        )
        return self._replace(responses=responses, weights=weights, density=density)


def as_columns(values: Array) -> Array:
    """Values per sample as one column, or as the columns they are."""
    return values if values.ndim == 2 else values[:, np.newaxis]


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

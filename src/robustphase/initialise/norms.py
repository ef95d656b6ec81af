"""From directions to candidate signals: the norm (and background) that explains most, by the likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.likelihood import mixture_weights, residual_scales, score
from robustphase.rows.data import Data, as_columns
from robustphase.rows.passes import abs2, project_rows
from robustphase.rows.source import Array

#: Squared norms tried, in units of the interquartile range of the responses.
SQUARED_NORMS = (0.15, 0.3, 0.45, 0.65, 0.95, 1.4, 2.2, 3.2)
#: The one that responses would suggest: the interquartile range of a chi-square variable is 1.22, and noise adds to it.
NATURAL_SQUARED_NORM = 0.65
#: Samples that are enough to compare norms.
SAMPLES = 3000
#: Samples that are enough where a race follows for every signal anyway.
SAMPLES_OF_MANY = 1000


class Candidates(NamedTuple):
    """Candidate signals, their backgrounds and their scores.

    Attributes
    ----------
    signals : ndarray of shape (n, k)
        One candidate per column.
    backgrounds : ndarray of shape (k,)
        Noise means that go with them; zero where the mean is known to be zero.
    scales : ndarray of shape (k,)
        Scale of their clean residuals.
    scores : ndarray of shape (k,)
        Mean log-likelihood ratio against the marginal density of the responses: larger is better.
    """

    signals: Array
    backgrounds: Array
    scales: Array
    scores: Array

    def joined(self, other: Candidates) -> Candidates:
        """These candidates, then the others."""
        return Candidates(*(np.concatenate(pair, axis=-1) for pair in zip(self, other, strict=True)))

    def only(self, chosen: Array | list[int]) -> Candidates:
        """Some of the candidates."""
        return Candidates(*(part[..., chosen] for part in self))


def profile_norms(data: Data, directions: Array, *, seed: int = 0) -> tuple[Candidates, Candidates]:
    """The best full norm on a grid for each direction; and the best norm of all, where that is smaller.

    A direction that is somewhat off explains less than the signal does, and then a shrunken signal explains most; so does
    one whose largest responses were cut off. But a descent that starts too long finds its length in a few steps, whereas one
    that starts too short may lose its direction. So the norms that clean data would suggest, and larger ones, come first.

    Parameters
    ----------
    data : Data
        The samples. If the noise mean is unknown each norm gets its own background, the median residual.
    directions : ndarray of shape (n, k)
        Unit vectors.
    seed : int, default=0
        For the choice of samples.
    """
    tried = _try_norms(data, directions, SQUARED_NORMS, SAMPLES, seed)
    ordinary = SQUARED_NORMS.index(NATURAL_SQUARED_NORM)
    full, _ = _best_of(tried[ordinary:])
    free, chosen = _best_of(tried)
    # Where the likelihood chose a full norm there is nothing to add.
    return full, free.only(np.flatnonzero(chosen < ordinary))


def profile_norms_of_many(data: Data, directions: Array, *, seed: int = 0) -> Candidates:
    """The best full norm on a grid for the direction of each signal, where responses have a column for each."""
    norms = SQUARED_NORMS[SQUARED_NORMS.index(NATURAL_SQUARED_NORM) :]
    return _best_of(_try_norms(data, directions, norms, SAMPLES_OF_MANY, seed))[0]


def _try_norms(
    data: Data, directions: Array, squared_norms: tuple[float, ...], samples: int, seed: int
) -> list[Candidates]:
    """Every direction with each of the norms, judged on some of the samples: one pass."""
    weights = as_columns(data.weights)
    usable = np.flatnonzero((weights > 0).any(axis=1))
    if usable.size > samples:
        usable = np.random.default_rng(seed).choice(usable, samples, replace=False)
    squares = abs2(project_rows(data.source, directions, usable))
    y, w, f = (as_columns(values)[usable] for values in (data.responses, weights, data.density))
    tried = []
    for squared_norm in squared_norms:
        residuals = y - squared_norm * squares
        background = np.median(residuals, axis=0) if data.unknown_mean else np.zeros(directions.shape[1])
        residuals -= background
        scales = residual_scales(residuals, w > 0, data.contamination)
        value = score(mixture_weights(residuals, f, scales, data.contamination)[1], w)
        tried.append(Candidates(directions * np.sqrt(squared_norm), background, scales, value))
    return tried


def _best_of(tried: list[Candidates]) -> tuple[Candidates, Array]:
    """For each direction the candidate with the best score, and its place in the list."""
    chosen = np.argmax([candidates.scores for candidates in tried], axis=0)
    columns = np.arange(chosen.size)
    signals, *others = (np.stack(parts)[chosen, ..., columns] for parts in zip(*tried, strict=True))
    return Candidates(signals.T, *others), chosen

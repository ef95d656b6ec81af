"""From directions to candidate signals: the norm (and background) that explains most, by the likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget, derived
from robustphase.likelihood import compare, residual_scales, score
from robustphase.problem import Candidates, Problem
from robustphase.rows.passes import abs2, project_rows
from robustphase.rows.source import Array


@dataclass(frozen=True)
class NormOptions:
    """Constants of the search for norms."""

    full: tuple[float, ...] = derived(
        (0.65, 0.95, 1.4, 2.2, 3.2), "squared norms in units of the interquartile range of the responses"
    )
    noiseless: float = derived(1.22, "that range over ‖x‖² for chi-square variables; it is more with noise")
    shrunken: tuple[float, ...] = derived((0.15, 0.3, 0.45), "norms that part of the responses would suggest")
    samples: int = budget(3000, "samples that are enough to compare norms")
    samples_of_many: int = budget(1000, "samples that are enough where steps follow for every signal anyway")

    @property
    def long(self) -> tuple[float, ...]:
        """Those of the full norms that are too long for responses without noise."""
        return tuple(norm for norm in self.full if norm > 1 / self.noiseless)


NORMS = NormOptions()


def profile_norms(problem: Problem, directions: Array, *, seed: int = 0) -> tuple[Candidates, Candidates]:
    """The best full norm on a grid for each direction; and the best norm of all, where that is smaller.

    A direction that is somewhat off explains less than the signal does, and then a shrunken signal explains most; so does
    one whose largest responses were cut off. But a descent that starts too long finds its length in a few steps, whereas one
    that starts too short may lose its direction. So the norms that clean data would suggest, and larger ones, come first.

    Parameters
    ----------
    problem : Problem
        The samples of one signal. If the noise mean is unknown each norm gets its own background, the median residual.
    directions : ndarray of shape (n, k)
        Unit vectors.
    seed : int, default=0
        For the choice of samples.
    """
    tried = _try_norms(problem, directions, NORMS.shrunken + NORMS.full, NORMS.samples, seed)
    shrunken = len(NORMS.shrunken)
    full, _ = _best_of(tried[shrunken:])
    free, chosen = _best_of(tried)
    # Where the likelihood chose a full norm there is nothing to add.
    return full, free.only(np.flatnonzero(chosen < shrunken))


def profile_full_norms(problem: Problem, directions: Array, *, seed: int = 0) -> Candidates:
    """The best full norm on a grid for the direction of each signal, where responses have a column for each."""
    return _best_of(_try_norms(problem, directions, NORMS.full, NORMS.samples_of_many, seed))[0]


def with_long_norms(problem: Problem, directions: Array, *, seed: int = 0) -> Candidates:
    """Every direction with each of the norms that are rather too long, for one signal.

    Where the likelihood was deceived it chooses norms that are too short.
    """
    tried = _try_norms(problem, directions, NORMS.long, NORMS.samples, seed)
    return Candidates(*(np.concatenate(parts, axis=-1) for parts in zip(*tried, strict=True)))


def _try_norms(
    problem: Problem, directions: Array, squared_norms: tuple[float, ...], samples: int, seed: int
) -> list[Candidates]:
    """Every direction with each of the norms, judged on some of the samples: one pass."""
    usable = np.flatnonzero((problem.weights > 0).any(axis=1))
    if usable.size > samples:
        usable = np.random.default_rng(seed).choice(usable, samples, replace=False)
    squares = abs2(project_rows(problem.source, directions, usable))
    y, w, f = (values[usable] for values in (problem.responses, problem.weights, problem.density))
    tried = []
    for squared_norm in squared_norms:
        residuals = y - squared_norm * squares
        background = np.median(residuals, axis=0) if problem.unknown_mean else np.zeros(directions.shape[1])
        residuals -= background
        scales = residual_scales(residuals, w > 0, problem.levels)
        value = score(compare(residuals, f, scales, problem.levels)[1], w)
        tried.append(Candidates(directions * np.sqrt(squared_norm), background, scales, value))
    return tried


def _best_of(tried: list[Candidates]) -> tuple[Candidates, Array]:
    """For each direction the candidate with the best score, and its place in the list."""
    chosen = np.argmax([candidates.scores for candidates in tried], axis=0)
    columns = np.arange(chosen.size)
    signals, *others = (np.stack(parts)[chosen, ..., columns] for parts in zip(*tried, strict=True))
    return Candidates(signals.T, *others), chosen

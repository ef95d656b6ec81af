"""A second opinion on an answer, from the samples that it explains worst.

Whoever learns how the likelihood works rewrites responses so that a wrong signal explains them, and the others look like
wider noise: the answer is then wrong and no sample sticks out. Three things give it away. The samples that the wrong answer
explains worst are clean, for the bad ones were made to fit it, so on that half of the samples the gradient points away from
it, where that of a right answer is mere chance. A search among that half alone finds the signal. And a fit whose noise is
*held* tight cannot explain bad samples by wider noise, so it stays with the signal.

So the gradient of the worse half is looked at after every fit, at the price of one pass. Where it is beyond chance,
candidates are sought in that half, and the winner is fitted to all samples with tight noise. Of the two answers the one wins
whose best half of residuals is shorter, the criterion with the least bias that contamination can cause (Martin, Yohai and
Zamar, 1989), if the two differ by more than chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from robustphase.constants import budget, derived, empirical, numeric
from robustphase.descend.likelihood_fit import Free, LikelihoodFit, Stopping, fit_likelihood
from robustphase.descend.objective import State
from robustphase.likelihood import NoiseModel, e_step, initial_model
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.population import distance
from robustphase.problem import Candidates, Problem, kept, real_unknowns
from robustphase.rows import adjoint, project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class OpinionOptions:
    """Constants of the second opinion."""

    clip: float = derived(
        3.0, "residuals count up to this many times their median size, two standard deviations if normal"
    )
    slack: float = empirical(
        1.7, "times chance that is no contradiction: noise which the model cannot follow, like t₃, makes as much"
    )
    deviations: float = derived(1.5, "standard deviations of chance on top, sqrt(2/d) each for d real unknowns")
    shift: float = numeric(0.05, "shift of the residuals, over their scale, that shows mean slopes")
    sample: int = numeric(2001, "residuals that stand for a noise model")
    tight: float = empirical(
        0.6, "scale at which noise is held, over that which the best half of the residuals suggests"
    )
    floor: float = derived(
        1.0, "density floor of bad responses there: one over their unit, as dense as ordinary responses lie"
    )
    normal: float = derived(
        0.6745, "half of the residuals of normal noise are shorter than this many standard deviations"
    )
    apart: float = derived(2.0, "standard errors by which two answers must differ")
    tol: tuple[float, float] = numeric(
        (1e-3, 1e-6), "relative step at which the tight fit is judged, and at which it ends"
    )
    passes: int = budget(25, "most passes of the tight fit")


OPINION = OpinionOptions()

Search = Callable[[Problem], Candidates]


def contradicted(problem: Problem, fit: LikelihoodFit, weights: Array) -> Array:
    """Which answers the gradient of the samples that they explain worst contradicts, shape (k,): one pass.

    Parameters
    ----------
    problem : Problem
        The samples.
    fit : LikelihoodFit
        The answers.
    weights : ndarray of shape (m, k)
        Weights of the samples: those that are not kept have contradicted their answer already.
    """
    keep, noise = kept(weights), fit.state.noise
    worse = worse_half(fit, weights)
    pulls = np.where(worse, pull(fit.residuals, noise, _separating(fit.residuals, noise, keep)), 0.0)
    # A background that is off shows in all samples alike, and is no contradiction.
    pulls = np.where(worse, pulls - pulls.sum(axis=0) / np.maximum(worse.sum(axis=0), 1), 0.0)
    coefficients = pulls * fit.projections
    gradient = abs2(adjoint(problem.source, coefficients)).sum(axis=0)
    unrelated = abs2(coefficients).sum(axis=0) * problem.source.shape[1]
    most = OPINION.slack * (1 + OPINION.deviations * np.sqrt(2 / real_unknowns(fit.state.signals)))
    beyond: Array = gradient > most * chance_energy(noise) * np.maximum(unrelated, _TINY)
    return beyond


def worse_half(fit: LikelihoodFit, weights: Array) -> Array:
    """The half of the kept samples with the larger residuals over their scale, shape (m, k)."""
    keep, noise = kept(weights), fit.state.noise
    half: Array = keep & (np.abs(_standard(fit.residuals, noise)) >= _separating(fit.residuals, noise, keep))
    return half


def pull(residuals: Array, noise: NoiseModel, sizes: Array) -> Array:
    """What samples of the worse half ask of an answer: residuals over their scale, clipped; zero for the better half."""
    standard = _standard(residuals, noise)
    clipped = np.clip(standard, -OPINION.clip * sizes, OPINION.clip * sizes)
    return np.where(np.abs(standard) >= sizes, clipped / np.where(residuals > 0, noise.skews, 1.0), 0.0)


def chance_energy(noise: NoiseModel) -> Array:
    """Energy of the worse half's gradient, over that of unrelated signs, at an answer that is right, shape (k,).

    It is well below one: the answer was fitted to all samples, and most of what the worse half asks is taken away by that.
    With the influence ψ of a residual on the fit and the pull h of the worse half, of mean slopes K and K', the gradient of
    the half is the sum of ``h − (K'/K) ψ`` over independent samples. The means are over residuals that follow the noise
    model.
    """
    law = _law_sample(noise)
    sizes = np.median(np.abs(_standard(law, noise)), axis=0)
    pulls, influences = pull(law, noise, sizes), _influence(law, noise)
    shift = OPINION.shift * noise.scales
    pull_slope = (pull(law + shift, noise, sizes) - pull(law - shift, noise, sizes)).mean(axis=0)
    influence_slope = (_influence(law + shift, noise) - _influence(law - shift, noise)).mean(axis=0)
    centred = pulls - pulls.sum(axis=0) / np.maximum((pulls != 0).sum(axis=0), 1) * (pulls != 0)
    left = centred - pull_slope / np.maximum(influence_slope, _TINY) * influences
    energy: Array = (left**2).mean(axis=0) / np.maximum((centred**2).mean(axis=0), _TINY)
    return energy


def _standard(residuals: Array, noise: NoiseModel) -> Array:
    """Residuals over the scale of their side."""
    standard: Array = residuals / (np.maximum(noise.scales, _TINY) * np.where(residuals > 0, noise.skews, 1.0))
    return standard


def _separating(residuals: Array, noise: NoiseModel, keep: Array) -> Array:
    """Median size of the kept residuals over their scale, shape (k,)."""
    sizes = np.abs(_standard(residuals, noise))
    return np.array([np.median(size[k]) if k.any() else 0.0 for size, k in zip(sizes.T, keep.T, strict=True)])


def _influence(residuals: Array, noise: NoiseModel) -> Array:
    """ψ of a residual, in units of one over the scale, where bad responses have their least density."""
    one = np.ones((len(residuals), 1))
    seen = e_step(residuals, np.zeros_like(residuals), DENSITY.floor * one, one, noise)
    influence: Array = seen.weights * residuals / noise.scales
    return influence


def _law_sample(noise: NoiseModel) -> Array:
    """Residuals that follow the noise models, at equal steps of probability, shape (sample, k)."""
    shares = ((np.arange(OPINION.sample) + 0.5) / OPINION.sample)[:, np.newaxis]
    skews, below = noise.skews, 1 / (1 + noise.skews)
    lower = stdtrit(noise.degrees, np.minimum(shares / below, 1.0) / 2)
    upper = skews * stdtrit(noise.degrees, 1 - np.minimum((1 - shares) / (1 - below), 1.0) / 2)
    sample: Array = noise.scales * np.where(shares < below, lower, upper)
    return sample


def best_half(problem: Problem, residuals: Array) -> Array:
    """Half the length of the shortest interval that holds half of the residuals of each column, shape (k,)."""
    lengths = []
    for column, used in zip(residuals.T, np.broadcast_to(problem.weights > 0, residuals.shape).T, strict=True):
        ordered = np.sort(column[used])
        half = ordered.size // 2
        lengths.append(float((ordered[half:] - ordered[: ordered.size - half]).min()) / 2 if half else 0.0)
    return np.array(lengths)


def second_opinions(
    problem: Problem, fit: LikelihoodFit, weights: Array, search: Search
) -> tuple[Array, LikelihoodFit]:
    """Other answers to those in doubt: which of them are better, shape (k,), and the better ones.

    Parameters
    ----------
    problem : Problem
        The samples, one column for each answer in doubt.
    fit : LikelihoodFit
        The answers.
    weights : ndarray of shape (m, k)
        Weights of the samples.
    search : callable
        Finds a candidate for every column of a problem.
    """
    half = problem._replace(weights=problem.weights * worse_half(fit, weights))
    candidates, first = search(half), best_half(problem, fit.residuals)
    # The worse half knows less than all samples: an answer that agrees with it by and large needs no further look.
    apart = _errors_apart(problem, fit.state.signals, candidates.signals, first) > 2 * OPINION.apart
    if not apart.any():
        return apart, fit.only(apart)
    problem, fit, candidates, first = problem.only(apart), fit.only(apart), candidates.only(apart), first[apart]
    residuals = problem.responses - abs2(project(problem.source, candidates.signals))
    scales = np.maximum(OPINION.tight * best_half(problem, residuals) / OPINION.normal, _TINY)
    state = State(candidates.signals, candidates.backgrounds, initial_model(scales, problem.levels), 1e-3 * scales**2)
    other = fit_tightly(problem, state, OPINION.tol[0])
    second = best_half(problem, other.residuals)
    better = second < first
    better &= _errors_apart(problem, fit.state.signals, other.state.signals, second) > OPINION.apart
    apart[apart] = better
    if better.any():
        problem = problem.only(better)
        other = fit_tightly(problem, other.state.only(better), OPINION.tol[1])
        # Reported with the noise that their best half of residuals suggests.
        wide = initial_model(best_half(problem, other.residuals) / OPINION.normal, problem.levels)
        return apart, other._replace(state=other.state._replace(noise=wide))
    return apart, other.only(better)


def _errors_apart(problem: Problem, signals: Array, others: Array, half: Array) -> Array:
    """Distances of signals to others, in errors of least squares with noise whose best half is this long, shape (k,)."""
    m, d = problem.source.shape[0], real_unknowns(signals)
    lengths = np.maximum(np.linalg.norm(others, axis=0), _TINY)
    errors = half / OPINION.normal * np.sqrt(d / m) / (2 * lengths)
    pairs = zip(signals.T, others.T, strict=True)
    distances = np.array([distance(one, other, conjugate=problem.paired) for one, other in pairs])
    apart: Array = distances / np.maximum(errors, _TINY)
    return apart


def fit_tightly(problem: Problem, state: State, tol: float) -> LikelihoodFit:
    """The fit to all samples of signal and background alone, with noise that is held."""
    stopping = Stopping(tol, np.inf, OPINION.passes, 0)
    return fit_likelihood(problem.floored(OPINION.floor), state, stopping, Free.NOTHING)

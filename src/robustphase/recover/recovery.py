"""What the engine returns: the answers with their evidence, a history of the stages, and how answers are put together.

Behind several signals each row is a group of its responses, and groups of rows are the same for all: what some signals say of
them is told to the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import TINY
from robustphase.descend.likelihood_fit import LikelihoodFit
from robustphase.likelihood import GroupEvidence, NoiseModel
from robustphase.likelihood.laws import CurvedNoise
from robustphase.problem import KEPT, Grouping, Problem, kept, put_columns
from robustphase.recover.sample_rule import SampleRule
from robustphase.rows.products import abs2
from robustphase.rows.source import Array
from robustphase.rows.watching import tell_finished
from robustphase.validation import Samples


class Stage(NamedTuple):
    """One line of the history."""

    stage: str  # What was done
    candidates: int  # How many candidates or signals took part
    score: float  # Best score, mean log-likelihood ratio against no signal
    moved: float  # How far the best candidate moved, relative to its norm
    scale: float  # Scale of its clean residuals, in units of the responses
    passes: int  # Sweeps over the data so far
    seconds: float  # Time so far


@dataclass(frozen=True)
class Recovery:
    """The answers and their evidence, one column for each signal.

    Attributes
    ----------
    signals, initial_signals : ndarray of shape (n, p)
        The estimates, and the starts they came from.
    backgrounds : ndarray of shape (p,)
        Location of the residuals; fitted also where the noise mean is known to be zero.
    weights : ndarray of shape (m, p)
        Probability of each sample to be clean, times the weight of its covariates.
    contaminations : ndarray of shape (p,)
        Share of the samples that are not kept.
    noise : NoiseModel
        The fitted noise models, in the units of the responses.
    converged : ndarray of bool, shape (p,)
        Whether the last stage settled.
    covariate_weights : ndarray of shape (m, p)
        Weights of the covariates alone.
    residual_weights, probabilities : ndarray of shape (m, p)
        Weights of the last least-squares problem, and the probabilities to be clean that they came from.
    predictions : ndarray of shape (m, p), or (0, p)
        ``|A x|²`` at the answers of a likelihood fit.
    missed : ndarray of shape (p,)
        Share of the votes that the answer misses against other signals, beyond what contamination takes from the truth; NaN where
        the samples were not asked.
    rivals : ndarray of shape (p,)
        Distance of the farthest signal that they did not refute, over the norm of the answer; zero elsewhere.
    history : tuple of Stage
        What was done.
    scores, slopes : ndarray of shape (m, p), optional
        Score of each sample and minus its derivative by the mean, where the noise depends on the signal (``noise`` is then
        a :class:`~robustphase.likelihood.laws.CurvedNoise`).
    shared : tuple of GroupEvidence or None
        What was found of the groups of each grouping; None where they share nothing.
    rule : SampleRule, optional
        How the fit to one signal would weigh other samples; None where it does not say, or is in doubt.
    unseen : ndarray of bool, shape (n,), optional
        Unknowns behind a linear operator that get so little energy that they stay near where they started.
    """

    signals: Array
    initial_signals: Array
    backgrounds: Array
    weights: Array = field(repr=False)
    contaminations: Array
    noise: NoiseModel | CurvedNoise
    converged: Array
    covariate_weights: Array = field(repr=False)
    residual_weights: Array = field(repr=False)
    probabilities: Array = field(repr=False)
    predictions: Array = field(repr=False)
    missed: Array
    rivals: Array
    history: tuple[Stage, ...] = ()
    scores: Array | None = field(default=None, repr=False)
    slopes: Array | None = field(default=None, repr=False)
    shared: tuple[GroupEvidence | None, ...] = ()
    unseen: Array | None = field(default=None, repr=False)
    rule: SampleRule | None = field(default=None, repr=False)

    @property
    def signal(self) -> Array:
        """The first estimate, shape (n,): that of a single signal."""
        signal: Array = self.signals[:, 0]
        return signal

    def put(self, columns: Array, other: Recovery) -> Recovery:
        """These answers, with those of some columns replaced."""
        changed: dict[str, Any] = {
            name: put_columns(getattr(self, name), getattr(other, name), columns) for name in _PER_SIGNAL
        }
        # Groups are what the majority of the signals say they are.
        shared = other.shared if is_majority(columns) else self.shared
        return replace(self, shared=shared, rule=other.rule if np.all(columns) else None, **changed)

    def joined(self, other: Recovery) -> Recovery:
        """These answers, then the others."""
        noise = type(self.noise)(*(np.concatenate(pair) for pair in zip(self.noise, other.noise, strict=True)))
        joined: dict[str, Any] = {
            name: np.concatenate((getattr(self, name), getattr(other, name)), axis=-1)
            for name in _PER_SIGNAL
            if name != "noise"
        }
        shared = tuple(joined_evidence(*pair) for pair in zip(self.shared, other.shared, strict=True))
        return replace(self, noise=noise, shared=shared, rule=None, **joined)


_PER_SIGNAL = tuple(
    name
    for name in Recovery.__dataclass_fields__
    if name not in ("history", "scores", "slopes", "shared", "unseen", "rule")
)


def said_by(fit: LikelihoodFit, problem: Problem, fitted: Array, weights: Array) -> dict[str, Any]:
    """What a likelihood fit says, in the units of the responses, under the names of a :class:`Recovery`.

    ``fitted`` (m, k) are the weights of the covariates as they were in the fit, ``weights`` those of the samples, with the bad
    ones counted.
    """
    units, state = problem.units, fit.state
    return {
        "signals": np.sqrt(units) * state.signals,
        "backgrounds": units * state.backgrounds,
        "weights": weights,
        "contaminations": 1 - kept(weights).mean(axis=0),
        "noise": state.noise._replace(scales=units * state.noise.scales),
        "converged": fit.converged,
        "covariate_weights": np.broadcast_to(problem.weights, weights.shape),
        "residual_weights": fit.weights * fitted,
        "probabilities": fit.clean * fitted,
        "predictions": units * abs2(fit.projections),
    }


def unasked(count: int) -> dict[str, Any]:
    """What votes say of so many answers where the samples were not asked, under the names of a :class:`Recovery`."""
    return {"missed": np.full(count, np.nan), "rivals": np.zeros(count)}


class History:
    """Collects the stages, and remembers whether a second opinion has overruled an answer."""

    def __init__(self, samples: Samples) -> None:
        self._source, self._since = samples.source, perf_counter()
        self.stages: list[Stage] = []
        self.overruled = False

    def take_over(self, stages: tuple[Stage, ...]) -> None:
        """Add the stages of a run on some of the samples, which made no pass over all."""
        self.stages += [stage._replace(passes=self._source.passes) for stage in stages]

    def note(
        self, stage: str, candidates: int, score: float = np.nan, moved: float = np.nan, scale: float = np.nan
    ) -> None:
        """Add a stage that has just finished."""
        seconds = perf_counter() - self._since
        self.stages.append(Stage(stage, candidates, score, moved, scale, self._source.passes, seconds))
        tell_finished(stage)


class Run(NamedTuple):
    """What all stages of one call know."""

    history: History
    likelihood_fit: bool
    seed: int
    #: What the rows were divided by.
    size: float = 1.0


def rows_as_groups(problem: Problem) -> tuple[Grouping, ...]:
    """Behind several signals each row is a group of its responses."""
    m, p = problem.responses.shape
    return (Grouping(np.arange(m), m),) if p > 1 else ()


def is_majority(columns: Array) -> bool:
    """Whether most signals are among them."""
    return bool(2 * columns.sum() > columns.size)


def with_groups_known(problem: Problem, evidence: tuple[GroupEvidence | None, ...]) -> Problem:
    """The problem of some of the signals, with what all of them say of the groups."""
    weights = problem.weights
    for (codes, _), one in zip(problem.groupings, evidence, strict=True):
        weights = weights if one is None or not one.found else weights * one.used[codes, np.newaxis]
    return problem._replace(weights=weights)


def joined_evidence(one: GroupEvidence | None, other: GroupEvidence | None) -> GroupEvidence | None:
    """What two sets of signals say of the same groups: independent evidence."""
    if one is None or other is None:
        return one if other is None else other
    if one.found != other.found:
        return one if one.found else other
    # Odds of being bad multiply, and the share of bad groups that is in both of them counts once.
    logits = [np.log(np.maximum(1 - w, TINY)) - np.log(np.maximum(w, TINY)) for w in (one.weights, other.weights)]
    prior = float(np.median(logits[0] - one.log_odds))
    weights = 1 / (1 + np.exp(np.clip(logits[0] + logits[1] - prior, -700, 700)))
    sizes = one.sizes + other.sizes
    shares = one.sizes / np.maximum(sizes, 1)
    return GroupEvidence(
        # Groups that were not found to be bad are not flagged.
        weights if one.found else np.maximum(weights, KEPT),
        one.log_odds + other.log_odds,
        np.exp(shares * np.log(one.widths) + (1 - shares) * np.log(other.widths)),
        shares * one.bad_shares + (1 - shares) * other.bad_shares,
        sizes,
        one.found,
    )

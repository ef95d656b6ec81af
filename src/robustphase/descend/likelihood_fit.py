"""The last, efficient step: signal, background and noise model that maximise M (:mod:`robustphase.descend.objective`).

**The step.** Each block of variables has its own ascent step: the signal and the background a Newton step of the weighted
squares which the e-step leaves, scales, share and ρ the m-step, the degrees of freedom Fisher's scoring. They are made
together, from the sums of one pass, and extrapolated by Anderson's method.

**The merit function** is M itself. A point at which M is lower than at the last accepted one is given up; the next try from
there is the step without extrapolation, then a quarter of it, and so on. So accepted points never lower M.

**The end** of a column is a negligible step, or tries that lead nowhere, or a budget used up, and the fit says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, derived, empirical, numeric
from robustphase.descend.acceleration import Anderson
from robustphase.descend.newton import (
    NEWTON,
    Inner,
    Step,
    gauss_newton_step,
    initial_damping,
    newton_step,
    relative_lengths,
    shortened,
)
from robustphase.descend.objective import (
    Evaluation,
    State,
    as_point,
    as_state,
    effective_unknowns,
    in_double,
    likelihood_pass,
)
from robustphase.descend.shared_weights import Judged, Shared, shared_weights
from robustphase.likelihood import bad_density, e_step, initial_model, m_step
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.problem import Problem, join_columns, put_columns, real_unknowns, select_columns
from robustphase.rows.passes import NUMBERS, abs2
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)
_ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FitOptions:
    """Constants of the likelihood fit."""

    arrived: float = empirical(
        0.02, "relative step below which the shape of the noise is fitted too: before, a signal that is off makes tails"
    )
    arriving: int = budget(10, "most passes until then")
    metric: tuple[float, ...] = numeric(
        (0.3, 0.02, 0.02, 0.02, 0.02), "weights of background, log scale, tails, skew and share beside relative signals"
    )
    farthest: float = numeric(1.0, "farthest that the logarithm of a scale is extrapolated")
    steady: float = numeric(0.2, "change of the logarithm of the scale below which it has arrived")
    resolution: float = numeric(0.02, "a step is negligible if it is shorter than this fraction of the noise")
    tol: float = numeric(1e-7, "and than this fraction of the signal: what is left is a few times as long, six digits")
    rounding: tuple[float, float] = numeric((1e-11, 1e-6), "roundings of M in double and in single precision")
    spacings: float = numeric(
        4.0,
        "steps shorter than this many spacings of the rows' numbers, relative to the signal, are none: signals are rounded to "
        "half of one where they meet rows in single precision, and sums over the samples to about two",
    )
    deviations: float = derived(
        4.0, "standard deviations of the difference of two merits, from roundings of the projections, that are no fall"
    )
    shrink: float = numeric(0.25, "factor between two tries of a step without extrapolation")
    tries: int = budget(6, "tries until a column counts as stuck")
    passes: int = budget(60, "most passes with population-Newton steps")
    exact_passes: int = budget(25, "most Gauss-Newton steps after them")
    inner: int = budget(50, "most conjugate gradients in each of them")
    inner_tol: tuple[float, float] = numeric(
        (1e-6, 0.1), "range of their tolerance, three times the last relative step"
    )
    few_samples: float = empirical(
        8.0, "samples per unknown below which Gauss-Newton steps are taken from the beginning"
    )
    leave: float = budget(
        0.25, "share of the columns that must have ended for them to leave: a departure copies the rest"
    )
    rows: int = budget(64, "fewest samples judged together at the end")
    renewals: int = budget(8, "most fits to renewed weights of groups")
    between: tuple[int, int] = budget((6, 3), "most passes of each of them; Gauss-Newton steps where samples are few")


FIT = FitOptions()


class Reason(Enum):
    """Why a column ended."""

    RUNNING = "it has not ended"
    SETTLED = "the next step is negligible"
    STUCK = "no step raises the likelihood any more"
    TOO_MANY = "the steps ran out"


class LikelihoodFit(NamedTuple):
    """Fitted signals, one per column.

    Attributes
    ----------
    state : State
        The fit.
    projections, residuals, clean, weights : ndarray of shape (m, k)
        ``A x``, ``y − |A x|² − b``, the probability to be clean, and the weights of iterated least squares; the latter two
        without the weights of the covariates.
    spreads : ndarray of shape (m, k)
        Variances of the predictions.
    moves : tuple of float
        Relative length of each Newton step, the largest of all columns.
    merits : ndarray of shape (passes, k)
        M of the accepted points; NaN where a column had ended.
    reasons : list of Reason
        Why each column ended.
    converged : ndarray of bool, shape (k,)
        Whether what is left to go is negligible.
    shared : Shared, optional
        Weights of groups of rows that the fit made use of.
    """

    state: State
    projections: Array
    residuals: Array
    clean: Array
    weights: Array
    spreads: Array
    moves: tuple[float, ...]
    merits: Array
    reasons: list[Reason]
    converged: Array
    shared: Shared | None = None

    def only(self, columns: Array) -> LikelihoodFit:
        """Some of the columns, given as a mask or by their places."""
        names = ("state", "projections", "residuals", "clean", "weights", "spreads", "merits", "converged")
        chosen = {name: select_columns(getattr(self, name), columns) for name in names}
        reasons = [self.reasons[place] for place in np.arange(len(self.reasons))[columns]]
        return self._replace(**chosen, reasons=reasons)

    def joined(self, other: LikelihoodFit) -> LikelihoodFit:
        """These fits, then the others, of whose climbs nothing is kept."""
        names = ("state", "projections", "residuals", "clean", "weights", "spreads", "converged")
        both = {name: join_columns(getattr(self, name), getattr(other, name)) for name in names}
        merits = np.hstack((self.merits, np.full((len(self.merits), other.converged.size), np.nan)))
        return self._replace(**both, merits=merits, reasons=[*self.reasons, *other.reasons])

    def put(self, columns: Array, other: LikelihoodFit) -> LikelihoodFit:
        """These fits, with those of some columns replaced."""
        names = ("state", "projections", "residuals", "clean", "weights", "spreads", "converged")
        changed = {name: put_columns(getattr(self, name), getattr(other, name), columns) for name in names}
        reasons = list(self.reasons)
        for place, reason in zip(np.flatnonzero(columns), other.reasons, strict=True):
            reasons[place] = reason
        return self._replace(**changed, reasons=reasons, moves=self.moves + other.moves)


class Free(Enum):
    """What is fitted beside signals and backgrounds."""

    NOTHING = 0
    SCALE = 1
    SHAPE = 2


class Stopping(NamedTuple):
    """When a column has settled: a step shorter than a fraction of the signal, and than a fraction of the noise."""

    tol: float
    resolution: float
    passes: int
    exact_passes: int


def fit_signals(problem: Problem, signals: Array, backgrounds: Array, scales: Array) -> tuple[LikelihoodFit, Problem]:
    """Fit signals from good starts, in two rounds.

    While a signal is off, residuals of clean samples have longer tails than their noise, and bad samples pass for such tails. So
    the shape of the noise is held until the signals have arrived. Then the doubts about the samples also say where bad responses
    lie, and the second round knows their density, and which groups of rows are bad. That is judged again after it.

    Parameters
    ----------
    problem : Problem
        The samples, with one column per signal.
    signals, backgrounds, scales : ndarray of shape (n, k), (k,) and (k,)
        Where to start, and the scale of the clean residuals there.

    Returns
    -------
    fit : LikelihoodFit
        The fits.
    problem : Problem
        The samples, with the density of bad responses and the weights of groups that were found.
    """
    noise = initial_model(scales, np.broadcast_to(problem.levels, scales.shape))
    state = State(signals, backgrounds, noise, cloud(problem, signals, scales))
    coarse = problem.floored(DENSITY.floor)
    few = exact_from_the_beginning(problem)
    arriving = Stopping(FIT.arrived, np.inf, FIT.arriving, FIT.arriving if few else 0)
    arrived = fit_likelihood(coarse, state, arriving, Free.SCALE)
    doubts = (1 - arrived.clean) * problem.weights
    fine = problem._replace(density=bad_density(problem.density, problem.responses, doubts)).floored(DENSITY.floor)
    fitted, shared = _fit_with_groups(fine, arrived)
    return fitted._replace(shared=shared), shared.applied_to(fine)


def _fit_with_groups(problem: Problem, arrived: LikelihoodFit) -> tuple[LikelihoodFit, Shared]:
    """The fit, with weights of groups that it renews itself until they rest; only then it is run to the end."""
    fit, moves = arrived, arrived.moves
    shared = _judged(problem, fit)
    if not shared.bad:
        fit = refit(problem, arrived.state)
        # Only now the shape of the noise is known, and what was taken for its tails may be groups.
        shared, moves = _judged(problem, fit), moves + fit.moves
        if not shared.bad:
            return fit._replace(moves=moves), shared
    few = problem.source.shape[0] < FIT.few_samples * problem.source.shape[1]
    stretch = Stopping(FIT.tol, FIT.resolution, FIT.between[0], FIT.between[1] if few else 0)
    for _ in range(FIT.renewals):
        fit = fit_likelihood(shared.applied_to(problem), fit.state, stretch, Free.SHAPE)
        last, shared, moves = shared, _judged(problem, fit, shared), moves + fit.moves
        if shared.like(last):
            break
    fit = refit(shared.applied_to(problem), fit.state)
    return fit._replace(moves=moves + fit.moves), shared


def _judged(problem: Problem, fit: LikelihoodFit, last: Shared | None = None) -> Shared:
    return shared_weights(problem, Judged(fit.residuals, fit.spreads, fit.clean, fit.state.noise), last)


def exact_from_the_beginning(problem: Problem) -> bool:
    """Whether steps need the sample's own moments: those of few samples are others."""
    m, n = problem.source.shape
    return m < FIT.few_samples * n


def refit(problem: Problem, state: State) -> LikelihoodFit:
    """The fit from a state that is close already, with all of the noise model free."""
    return fit_likelihood(problem, state, Stopping(FIT.tol, FIT.resolution, FIT.passes, FIT.exact_passes), Free.SHAPE)


def fit_likelihood(problem: Problem, state: State, stopping: Stopping, free: Free) -> LikelihoodFit:
    """Maximise M (see the module's docstring) over signals, backgrounds and noise models; parameters as in :func:`climb`."""
    return climb(problem, state, stopping, free).fit(problem)


def climb(problem: Problem, state: State, stopping: Stopping, free: Free) -> Climb:
    """Maximise M, without a judgement of every sample in the end.

    Parameters
    ----------
    problem : Problem
        The samples, with one column per signal, and the density of bad responses.
    state : State
        Where to start.
    stopping : Stopping
        When to end.
    free : Free
        What of the noise model is fitted: nothing, its scale and the share of bad samples, or tails and skew too.
    """
    n = problem.source.shape[1]
    few = exact_from_the_beginning(problem)
    population_passes = 0 if few else stopping.passes
    last_pass = stopping.exact_passes if few else stopping.passes + stopping.exact_passes
    finished, memory = Climb(state), Anderson()
    accepted: _Accepted | None = None
    # Columns that have ended stay for a while, but only as company: an answer must not depend on when it leaves.
    company = np.zeros(state.spreads.size, bool)
    # Merits of columns that started in single precision stay comparable when few are left and the precision changes.
    rounding = FIT.rounding[0 if in_double(company.size) else 1]
    for iteration in range(last_pass + 1):
        seen = likelihood_pass(problem, state)
        exact = iteration >= population_passes
        # The closer, the more exactly a step has to be known.
        last = 1.0 if accepted is None else float(accepted.relative.max())
        exact_tol = float(np.clip(3 * last, *FIT.inner_tol)) if exact else None
        target, relative = _plain_step(problem, state, seen, exact_tol, free)
        reached = _Accepted(state, seen, target, relative, np.zeros(relative.size, int))
        noticed = rounding + _row_roundings(problem, state)
        accepted = reached if accepted is None else _accept(accepted, reached, memory, noticed)
        finished.note(accepted, ~company)
        settled, little = _settled(accepted, stopping, problem)
        stuck = accepted.tries > FIT.tries
        # What still moves after many passes is often little against what noise leaves open.
        over = iteration == last_pass or (iteration + 1 == population_passes and bool((little | stuck).all()))
        ended = (settled | stuck | over) & ~company
        # Where every sample looks bad there is no step left to take either, and that is no answer.
        answered = (little | settled) & (accepted.seen.moments.mass > NEWTON.least)
        finished.keep(ended, accepted, np.where(settled, 0, np.where(stuck, 1, 2)), answered)
        company = company | ended
        if company.all():
            break
        if company.sum() >= FIT.leave * company.size:
            staying = ~company
            memory.only(staying)
            finished.only(staying)
            problem, accepted, company = problem.only(staying), accepted.only(staying), company[staying]
        state = _next_state(problem, accepted, memory, n)
    return finished


class _Accepted(NamedTuple):
    """The last accepted points, what a pass told of them, where the plain step leads, and how often it was tried."""

    state: State
    seen: Evaluation
    target: State
    relative: Array
    tries: Array

    def only(self, columns: Array) -> _Accepted:
        accepted: _Accepted = select_columns(self, columns)
        return accepted


def _row_roundings(problem: Problem, state: State) -> Array | float:
    """What roundings of the projections may do to a merit, shape (k,): nothing for rows in double precision.

    Each projection is rounded by half a spacing, relative to the norm of the signal, and moves its logarithm by ``2 s ψ`` as
    much; ψ, the slope of the logarithm, is about 1/σ. The merit is a mean, in which independent roundings average out.
    """
    spacing = float(np.finfo(problem.source.dtype).eps)
    if spacing <= _ROUNDING:
        return 0.0
    strengths = abs2(state.signals).sum(axis=0) / np.maximum(state.noise.scales, _TINY)
    mass = np.maximum(problem.weights.sum(axis=0), 1.0)
    roundings: Array = FIT.deviations * np.sqrt(2 / mass) * spacing * np.minimum(strengths, 1 / spacing)
    return roundings


def _accept(last: _Accepted, new: _Accepted, memory: Anderson, rounding: Array | float) -> _Accepted:
    """The new points where M has not fallen; elsewhere the last ones, to be left by shorter steps."""
    before = last.seen.merit
    # Written so that a merit which is not a number counts as fallen.
    fell = ~(new.seen.merit >= before - rounding * (1 + np.abs(before)))
    if not fell.any():
        return new
    memory.forget(fell)
    back: _Accepted = put_columns(new, last.only(fell), fell)
    return back._replace(tries=np.where(fell, last.tries + 1, 0))


def _plain_step(
    problem: Problem, state: State, seen: Evaluation, exact_tol: float | None, free: Free
) -> tuple[State, Array]:
    """Where the step without extrapolation leads; and the relative length of the Newton step."""
    m = problem.source.shape[0]
    if exact_tol is not None:
        step, damping = _exact_step(problem, state, seen.projections, exact_tol), 1.0
    else:
        step = newton_step(state.signals, seen.moments, fit_background=True, kurtosis=problem.kurtosis)
        damping = initial_damping(m, real_unknowns(state.signals))
    noise, spreads = state.noise, state.spreads
    if free is not Free.NOTHING:
        noise = m_step(state.noise, seen.statistics, problem.levels)
        # A cloud that no sample holds grows to its bound, by a factor that overflows nothing.
        leverage = np.maximum(seen.statistics.leverage, _ROUNDING)
        spreads = spreads * effective_unknowns(problem, state.signals) / leverage
    if free is Free.SCALE:
        noise = noise._replace(tails=state.noise.tails, log_skews=state.noise.log_skews)
    signals = state.signals + shortened(damping * step.signals, state.signals)
    target = State(signals, state.backgrounds + step.backgrounds, noise, spreads)
    return target, relative_lengths(step.signals, state.signals)


def _exact_step(problem: Problem, state: State, projections: Array, tol: float) -> Step:
    """Gauss-Newton steps with the sample's own moments."""
    energy = abs2(projections)
    residuals = problem.responses - energy - state.backgrounds
    rates = state.spreads / np.maximum(abs2(state.signals).sum(axis=0), NEWTON.least)
    seen = e_step(residuals, rates * energy, problem.density, problem.weights, state.noise)
    return gauss_newton_step(
        problem._replace(unknown_mean=True),
        state.signals,
        projections,
        residuals,
        seen.weights * problem.weights,
        Inner(FIT.inner, tol),
    )


def _settled(accepted: _Accepted, stopping: Stopping, problem: Problem) -> tuple[Array, Array]:
    """Which columns have settled; and for which what is left is little against what noise leaves open."""
    m, n = problem.source.shape
    none = max(1e-12, FIT.spacings * float(np.finfo(problem.source.dtype).eps))
    state, target, relative = accepted.state, accepted.target, accepted.relative
    noise = target.noise.scales / np.maximum(abs2(state.signals).sum(axis=0), _TINY)
    steady = np.abs(np.log(target.noise.scales / state.noise.scales)) < FIT.steady
    fraction = stopping.resolution * noise
    settled = (relative < none) | (steady & (relative < stopping.tol) & (relative < fraction))
    little = settled | (relative < FIT.resolution * np.minimum(noise * np.sqrt(n / m), 1.0))
    # Where every sample counts as bad there is no step either.
    seeing = accepted.seen.moments.mass > 0
    return settled & seeing, little & seeing


def _next_state(problem: Problem, accepted: _Accepted, memory: Anderson, n: int) -> State:
    """The extrapolated step; where points were given up, the plain one or a fraction of it."""
    here, there = as_point(accepted.state), as_point(accepted.target)
    power = np.maximum(abs2(accepted.state.signals).sum(axis=0), NEWTON.least)
    metric = np.vstack(
        (
            np.broadcast_to(1 / np.sqrt(power), (n, power.size)),
            FIT.metric[0] / power,
            *(np.full(power.size, weight) for weight in FIT.metric[1:]),
            np.zeros(power.size),
        )
    )
    reached = memory.extrapolate(here, there - here, metric)
    fractions = FIT.shrink ** np.maximum(accepted.tries - 1, 0)
    reached = np.where(accepted.tries > 0, here + fractions * (there - here), reached)
    reached[:n] = here[:n] + shortened(reached[:n] - here[:n], accepted.state.signals)
    # A scale that vanishes at one stroke would make every sample look bad.
    reached[n + 1] = here[n + 1] + np.clip((reached[n + 1] - here[n + 1]).real, -FIT.farthest, FIT.farthest)
    return as_state(reached, n, problem.levels)


def cloud(problem: Problem, signals: Array, scales: Array) -> Array:
    """ρ when nothing is known but the scale of the noise: every unknown takes its share of the samples."""
    mass = problem.weights.sum(axis=0)
    spreads: Array = effective_unknowns(problem, signals) * scales**2 / np.maximum(mass, _TINY)
    return np.broadcast_to(spreads, scales.shape)


class Climb:
    """Columns that have ended, in their places.

    Attributes
    ----------
    converged : ndarray of bool, shape (k,)
        Whether what is left to go is negligible.
    moves : list of float
        Relative length of each Newton step, the largest of all columns.
    """

    def __init__(self, state: State) -> None:
        n, k = state.signals.shape
        self._places = np.arange(k)
        self._point = np.empty((n + 6, k), np.result_type(state.signals, np.float64))
        self._projections: Array | None = None
        self.converged, self._reasons = np.empty(k, bool), np.full(k, -1)
        self.moves: list[float] = []
        self._merits: list[Array] = []

    def note(self, accepted: _Accepted, moving: Array) -> None:
        """Remember the merits of all columns that are still on their way."""
        merits = np.full(self.converged.size, np.nan)
        merits[self._places[moving]] = accepted.seen.merit[moving]
        self._merits.append(merits)
        self.moves.append(float(accepted.relative[moving].max()))

    def only(self, columns: Array) -> None:
        """Go on with some of the columns."""
        self._places = self._places[columns]

    def keep(self, ended: Array, accepted: _Accepted, reasons: Array, converged: Array) -> None:
        """Put the columns that have ended into their places."""
        places = self._places[ended]
        if self._projections is None:
            # As many as a pass tells: none of samples that are judged where they are.
            self._projections = np.empty((len(accepted.seen.projections), self._point.shape[1]), self._point.dtype)
        self._point[:, places] = as_point(accepted.state)[:, ended]
        self._projections[:, places] = accepted.seen.projections[:, ended]
        self.converged[places], self._reasons[places] = converged[ended], reasons[ended]

    def state(self, levels: Array) -> State:
        """Where all columns have ended."""
        return as_state(self._point, self._point.shape[0] - 6, levels)

    def fit(self, problem: Problem) -> LikelihoodFit:
        """All columns together, judged by their noise models."""
        assert self._projections is not None
        state = self.state(problem.levels)
        spreads = abs2(self._projections)
        residuals = problem.responses - spreads
        residuals -= state.backgrounds
        spreads *= state.spreads / np.maximum(abs2(state.signals).sum(axis=0), NEWTON.least)
        clean, weights = np.empty_like(residuals), np.empty_like(residuals)
        # A slice at a time: what an e-step makes along the way is ten times as large as its result.
        step = max(FIT.rows, NUMBERS // residuals.shape[1])
        for low in range(0, residuals.shape[0], step):
            part = slice(low, low + step)
            seen = e_step(residuals[part], spreads[part], problem.density[part], problem.weights[part], state.noise)
            clean[part], weights[part] = seen.clean, seen.weights
        # The last stands for −1, a column that nobody has put into its place.
        known = (Reason.SETTLED, Reason.STUCK, Reason.TOO_MANY, Reason.RUNNING)
        reasons = [known[reason] for reason in self._reasons]
        merits = np.stack(self._merits)
        return LikelihoodFit(
            state,
            self._projections,
            residuals,
            clean,
            weights,
            spreads,
            tuple(self.moves),
            merits,
            reasons,
            self.converged,
        )

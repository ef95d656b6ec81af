"""The solver that maximises the merit M (:mod:`robustphase.descend.objective`): a state, a step, a test of the end.

**The step.** Each block of variables has its own ascent step: the signal and the background a Newton step of the weighted
squares which the e-step leaves, scales, share and ρ the m-step, the degrees of freedom Fisher's scoring. They are made
together, from the sums of one pass, and extrapolated by Anderson's method.

**The merit function** is M itself. A point at which M is lower than at the last accepted one is given up; the next try from
there is the step without extrapolation, then a quarter of it, and so on. So accepted points never lower M.

**The end** of a column is a negligible step, or tries that lead nowhere, or a budget used up, and the climb says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, numeric
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
from robustphase.likelihood import e_step, m_step
from robustphase.problem import Problem, put_columns, real_unknowns, select_columns
from robustphase.rows.products import abs2
from robustphase.rows.source import Array

_ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ClimbOptions:
    """Constants of the climb."""

    metric: tuple[float, ...] = numeric(
        (0.3, 0.02, 0.02, 0.02, 0.02), "weights of background, log scale, tails, skew and share beside relative signals"
    )
    farthest: float = numeric(1.0, "farthest that the logarithm of a scale is extrapolated")
    steady: float = numeric(0.2, "change of the logarithm of the scale below which it has arrived")
    resolution: float = numeric(0.02, "a step is negligible if it is shorter than this fraction of the noise")
    tol: float = numeric(1e-7, "and than this fraction of the signal: what is left is a few times as long, six digits")
    unseen: float = numeric(
        1e-4,
        "or than this fraction of what noise leaves open, σ/‖x‖² √(n/m): what is left then is a few times as long, half a "
        "thousandth of the error that any fit has",
    )
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
    few_samples: float = budget(
        8.0,
        "samples per unknown below which Gauss-Newton steps, which take more passes but fewer steps, are taken from the "
        "beginning: either kind ends at the same maximum",
    )
    leave: float = budget(
        0.25, "share of the columns that must have ended for them to leave: a departure copies the rest"
    )


CLIMB = ClimbOptions()


class Reason(Enum):
    """Why a column ended."""

    RUNNING = "it has not ended"
    SETTLED = "the next step is negligible"
    STUCK = "no step raises the likelihood any more"
    TOO_MANY = "the steps ran out"


class Free(Enum):
    """What is fitted beside signals and backgrounds."""

    NOTHING = 0
    SCALE = 1
    SHAPE = 2


class Stopping(NamedTuple):
    """When a column has settled."""

    #: A step shorter than these fractions of the signal and of the noise is the last one.
    tol: float
    resolution: float
    #: Most passes with population-Newton steps, and most Gauss-Newton steps after them.
    passes: int
    exact_passes: int
    unseen: float = 0.0  # A population-Newton step shorter than this fraction of what noise leaves open is the last


TO_THE_END = Stopping(CLIMB.tol, CLIMB.resolution, CLIMB.passes, CLIMB.exact_passes)
WITHIN_NOISE = TO_THE_END._replace(unseen=CLIMB.unseen)


def climb(problem: Problem, state: State, stopping: Stopping, free: Free) -> Climb:
    """Maximise M, without a judgement of every sample in the end.

    ``free`` says what of the noise model is fitted: nothing, its scale and the share of bad samples, or tails and skew too.
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
    rounding = CLIMB.rounding[0 if in_double(company.size) else 1]
    for iteration in range(last_pass + 1):
        seen = likelihood_pass(problem, state)
        exact = iteration >= population_passes
        # The closer, the more exactly a step has to be known.
        last = 1.0 if accepted is None else float(accepted.relative.max())
        exact_tol = float(np.clip(3 * last, *CLIMB.inner_tol)) if exact else None
        target, relative = _plain_step(problem, state, seen, exact_tol, free)
        reached = _Accepted(state, seen, target, relative, np.zeros(relative.size, int))
        noticed = rounding + _row_roundings(problem, state)
        accepted = reached if accepted is None else _accept(accepted, reached, memory, noticed)
        finished.note(accepted, ~company)
        # Gauss-Newton steps double their digits, and few samples without noise are met exactly.
        settled, little = _settled(accepted, stopping._replace(unseen=0.0) if exact else stopping, problem)
        stuck = accepted.tries > CLIMB.tries
        # What still moves after many passes is often little against what noise leaves open.
        over = iteration == last_pass or (iteration + 1 == population_passes and bool((little | stuck).all()))
        ended = (settled | stuck | over) & ~company
        # Where every sample looks bad there is no step left to take either, and that is no answer.
        answered = (little | settled) & (accepted.seen.moments.mass > NEWTON.least)
        reasons = np.full(ended.shape, Reason.TOO_MANY, dtype=object)
        reasons[stuck], reasons[settled] = Reason.STUCK, Reason.SETTLED
        finished.keep(ended, accepted, reasons, answered)
        company = company | ended
        if company.all():
            break
        if company.sum() >= CLIMB.leave * company.size:
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
    strengths = abs2(state.signals).sum(axis=0) / np.maximum(state.noise.scales, TINY)
    mass = np.maximum(problem.weights.sum(axis=0), 1.0)
    roundings: Array = CLIMB.deviations * np.sqrt(2 / mass) * spacing * np.minimum(strengths, 1 / spacing)
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
    residuals, spreads = state.residuals_and_spreads(problem.responses, projections)
    seen = e_step(residuals, spreads, problem.density, problem.weights, state.noise)
    return gauss_newton_step(
        problem._replace(unknown_mean=True),
        state.signals,
        projections,
        residuals,
        seen.weights * problem.weights,
        Inner(CLIMB.inner, tol),
    )


def _settled(accepted: _Accepted, stopping: Stopping, problem: Problem) -> tuple[Array, Array]:
    """Which columns have settled; and for which what is left is little against what noise leaves open."""
    m, n = problem.source.shape
    none = max(1e-12, CLIMB.spacings * float(np.finfo(problem.source.dtype).eps))
    state, target, relative = accepted.state, accepted.target, accepted.relative
    noise = target.noise.scales / np.maximum(abs2(state.signals).sum(axis=0), TINY)
    steady = np.abs(np.log(target.noise.scales / state.noise.scales)) < CLIMB.steady
    open_to_noise = np.minimum(noise * np.sqrt(n / m), 1.0)
    short = (relative < stopping.tol) & (relative < stopping.resolution * noise)
    settled = (relative < none) | (steady & (short | (relative < stopping.unseen * open_to_noise)))
    little = settled | (relative < CLIMB.resolution * open_to_noise)
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
            CLIMB.metric[0] / power,
            *(np.full(power.size, weight) for weight in CLIMB.metric[1:]),
            np.zeros(power.size),
        )
    )
    reached = memory.extrapolate(here, there - here, metric)
    fractions = CLIMB.shrink ** np.maximum(accepted.tries - 1, 0)
    reached = np.where(accepted.tries > 0, here + fractions * (there - here), reached)
    reached[:n] = here[:n] + shortened(reached[:n] - here[:n], accepted.state.signals)
    # A scale that vanishes at one stroke would make every sample look bad.
    reached[n + 1] = here[n + 1] + np.clip((reached[n + 1] - here[n + 1]).real, -CLIMB.farthest, CLIMB.farthest)
    return as_state(reached, n, problem.levels)


def exact_from_the_beginning(problem: Problem) -> bool:
    """Whether steps need the sample's own moments: those of few samples are others."""
    m, n = problem.source.shape
    return m < CLIMB.few_samples * n


class Climb:
    """Columns that have ended, in their places.

    Attributes
    ----------
    projections : ndarray of shape (m, k)
        ``A x``; of shape (0, k) for samples that are judged where they are.
    converged : ndarray of bool, shape (k,)
        Whether what is left to go is negligible.
    moves : list of float
        Relative length of each Newton step, the largest of all columns.
    merits : list of ndarray of shape (k,)
        M of the accepted points; NaN where a column had ended.
    """

    def __init__(self, state: State) -> None:
        n, k = state.signals.shape
        self._places = np.arange(k)
        self._point = np.empty((n + 6, k), np.result_type(state.signals, np.float64))
        self.projections = np.empty((0, k), self._point.dtype)
        self.converged, self.reasons = np.empty(k, bool), [Reason.RUNNING] * k
        self.moves: list[float] = []
        self.merits: list[Array] = []

    def note(self, accepted: _Accepted, moving: Array) -> None:
        """Remember the merits of all columns that are still on their way."""
        merits = np.full(self.converged.size, np.nan)
        merits[self._places[moving]] = accepted.seen.merit[moving]
        self.merits.append(merits)
        self.moves.append(float(accepted.relative[moving].max()))

    def only(self, columns: Array) -> None:
        """Go on with some of the columns."""
        self._places = self._places[columns]

    def keep(self, ended: Array, accepted: _Accepted, reasons: Array, converged: Array) -> None:
        """Put the columns that have ended into their places."""
        places = self._places[ended]
        if len(self.projections) != len(accepted.seen.projections):
            # As many as a pass tells.
            self.projections = np.empty((len(accepted.seen.projections), self._point.shape[1]), self._point.dtype)
        self._point[:, places] = as_point(accepted.state)[:, ended]
        self.projections[:, places] = accepted.seen.projections[:, ended]
        self.converged[places] = converged[ended]
        for place, reason in zip(places, reasons[ended], strict=True):
            self.reasons[place] = reason

    def state(self, levels: Array) -> State:
        """Where all columns have ended."""
        return as_state(self._point, self._point.shape[0] - 6, levels)

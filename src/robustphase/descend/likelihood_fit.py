"""The last, efficient step: signal, background and noise model that maximise M (:mod:`robustphase.descend.objective`).

The solver is :mod:`robustphase.descend.climb`; here it is led from a good start to the end, in rounds that free more and more
of the noise model, and every sample is judged by what it has found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, empirical
from robustphase.descend.climb import (
    CLIMB,
    TO_THE_END,
    WITHIN_NOISE,
    Free,
    Reason,
    Stopping,
    climb,
    exact_from_the_beginning,
)
from robustphase.descend.objective import State, effective_unknowns
from robustphase.descend.shared_weights import SampleFit, Shared, shared_weights
from robustphase.likelihood import bad_density, e_step, initial_model
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.problem import Problem, join_columns, put_columns, select_columns
from robustphase.rows.source import Array


@dataclass(frozen=True)
class FitOptions:
    """Constants of the likelihood fit."""

    arrived: float = empirical(
        0.02, "relative step below which the shape of the noise is fitted too: before, a signal that is off makes tails"
    )
    arriving: int = budget(10, "most passes until then")
    renewals: int = budget(8, "most fits to renewed weights of groups")
    between: tuple[int, int] = budget((6, 3), "most passes of each of them; Gauss-Newton steps where samples are few")


FIT = FitOptions()


class LikelihoodFit(NamedTuple):
    """Fitted signals, one per column."""

    state: State  # The fit
    #: (m, k): ``A x``, ``y − |A x|² − b``, the probability to be clean, and the weights of iterated least squares; the
    #: latter two without the weights of the covariates.
    projections: Array
    residuals: Array
    clean: Array
    weights: Array
    spreads: Array  # (m, k): variances of the predictions
    moves: tuple[float, ...]  # Relative length of each Newton step, the largest of all columns
    merits: Array  # (passes, k): M of the accepted points; NaN where a column had ended
    reasons: list[Reason]  # Why each column ended
    converged: Array  # bool (k,): whether what is left to go is negligible
    shared: Shared | None = None  # Weights of groups of rows that the fit made use of

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


def fit_signals(problem: Problem, signals: Array, backgrounds: Array, scales: Array) -> tuple[LikelihoodFit, Problem]:
    """Fit signals (n, k) from good starts, in two rounds; and the problem as it was then.

    While a signal is off, residuals of clean samples have longer tails than their noise, and bad samples pass for such tails.
    So the shape of the noise is held until the signals have arrived. Then the doubts about the samples also say where bad
    responses lie, and the second round knows their density, and which groups of rows are bad. That is judged again after it.

    ``scales`` (k,) are those of the clean residuals at the start. The problem that is returned has the density of bad responses
    and the weights of groups that were found.
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
    shared = _shared_by(problem, fit)
    if not shared.bad:
        fit = refit(problem, arrived.state, WITHIN_NOISE)
        # Only now the shape of the noise is known, and what was taken for its tails may be groups.
        shared, moves = _shared_by(problem, fit), moves + fit.moves
        if not shared.bad:
            return fit._replace(moves=moves), shared
    exact_passes = FIT.between[1] if exact_from_the_beginning(problem) else 0
    stretch = Stopping(CLIMB.tol, CLIMB.resolution, FIT.between[0], exact_passes)
    for _ in range(FIT.renewals):
        fit = fit_likelihood(shared.applied_to(problem), fit.state, stretch, Free.SHAPE)
        last, shared, moves = shared, _shared_by(problem, fit, shared), moves + fit.moves
        if shared.like(last):
            break
    fit = refit(shared.applied_to(problem), fit.state, WITHIN_NOISE)
    return fit._replace(moves=moves + fit.moves), shared


def _shared_by(problem: Problem, fit: LikelihoodFit, last: Shared | None = None) -> Shared:
    return shared_weights(problem, SampleFit(fit.residuals, fit.spreads, fit.clean, fit.state.noise), last)


def refit(problem: Problem, state: State, stopping: Stopping = TO_THE_END) -> LikelihoodFit:
    """The fit from a state that is close already, with all of the noise model free."""
    return fit_likelihood(problem, state, stopping, Free.SHAPE)


def fit_likelihood(problem: Problem, state: State, stopping: Stopping, free: Free) -> LikelihoodFit:
    """Maximise M over signals, backgrounds and noise models, and judge every sample; parameters as in :func:`climb`."""
    reached = climb(problem, state, stopping, free)
    return judged(problem, reached.state(problem.levels), reached.projections)._replace(
        moves=tuple(reached.moves),
        merits=np.stack(reached.merits),
        reasons=reached.reasons,
        converged=reached.converged,
    )


def judged(problem: Problem, state: State, projections: Array) -> LikelihoodFit:
    """All samples as a state sees them. It does not count as converged: no fit has ended there."""
    residuals, spreads = state.residuals_and_spreads(problem.responses, projections)
    count = residuals.shape[1]
    seen = e_step(residuals, spreads, problem.density, problem.weights, state.noise)
    return LikelihoodFit(
        state,
        projections,
        residuals,
        seen.clean,
        seen.weights,
        spreads,
        moves=(),
        merits=np.empty((0, count)),
        reasons=[Reason.RUNNING] * count,
        converged=np.zeros(count, bool),
    )


def cloud(problem: Problem, signals: Array, scales: Array) -> Array:
    """ρ when nothing is known but the scale of the noise: every unknown takes its share of the samples."""
    mass = problem.weights.sum(axis=0)
    spreads: Array = effective_unknowns(problem, signals) * scales**2 / np.maximum(mass, TINY)
    return np.broadcast_to(spreads, scales.shape)

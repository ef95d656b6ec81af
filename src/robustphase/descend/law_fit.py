r"""Signals and backgrounds that maximise the likelihood of readings whose noise depends on the signal.

With means ``μ_j = |a_jᴴx|² + b + B_j``, a law p of clean readings (:mod:`robustphase.likelihood.laws`), a share π of bad ones
whose law is f, and weights w of the covariates that sum to W, the merit is

.. math:: M(x, b, \pi, \theta) = \frac1W \sum_j w_j \log\big[(1 - \pi)\, p(y_j; \mu_j, \theta) + \pi f(y_j)\big].

Each step is one of EM with Fisher's scoring: the law says which least-squares problem has the same gradient, and a Gauss-Newton
step of that problem moves signal and background together. A step after which M is lower is given up for a quarter of it, so
accepted points never lower M. Laws with a variance curve hold the variances within a round and renew them between two rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, numeric
from robustphase.descend.newton import Inner, Step, gauss_newton_step, relative_lengths, shortened
from robustphase.descend.objective import in_double
from robustphase.likelihood.dependent_noise import PoissonLaw, VarianceLaw
from robustphase.likelihood.laws import Judged, Readings, means_of
from robustphase.problem import Problem, put_columns, real_unknowns, select_columns
from robustphase.rows import project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array

Law = PoissonLaw | VarianceLaw


@dataclass(frozen=True)
class LawFitOptions:
    """Constants of the fit."""

    passes: int = budget(40, "most steps of one round")
    inner: int = budget(30, "most conjugate gradients in each")
    inner_tol: float = numeric(
        0.1,
        "factor by which they lower the residual: doubts that follow the signal undo more of a step than it leaves open",
    )
    tol: float = numeric(1e-6, "relative step at which a column has settled")
    rounding: float = numeric(1e-11, "roundings of M")
    shrink: float = numeric(0.25, "factor between two tries of a step")
    tries: int = budget(6, "tries until a column counts as stuck")
    leave: float = budget(
        0.25, "share of the columns that must have ended for them to leave: a departure copies the rest"
    )
    little: float = numeric(1e-3, "relative step at which a column counts as converged, settled or not")
    rounds: int = budget(8, "most rounds in which variances are held")
    steady: float = numeric(1e-4, "relative change of a signal between two rounds at which they are over")


LAW_FIT = LawFitOptions()


class LawFit(NamedTuple):
    """Fitted signals, one per column."""

    signals: Array  # (n, k)
    backgrounds: Array  # (k,): b
    law: Law  # The fitted laws
    #: (m, k): ``A x`` and μ.
    projections: Array
    means: Array
    judged: Judged  # What the laws say of the readings
    merits: Array  # (steps, k): M of the accepted points
    converged: Array  # bool (k,): whether the last step was negligible

    def only(self, columns: Array) -> LawFit:
        """Some of the columns."""
        judged = Judged(*(part[..., columns] for part in self.judged))
        law = self.law.only(columns)
        chosen = [self.signals, self.backgrounds, self.projections, self.means, self.merits, self.converged]
        signals, backgrounds, projections, means, merits, converged = (part[..., columns] for part in chosen)
        return LawFit(signals, backgrounds, law, projections, means, judged, merits, converged)

    def put(self, other: LawFit, columns: Array) -> LawFit:
        """With some columns from another fit; of the merits the last ones are left."""
        here, there = (fit._replace(merits=fit.merits[-1:]) for fit in (self, other))
        whole: LawFit = put_columns(here, there, columns)
        return whole


class Effort(NamedTuple):
    """How far a fit is driven: steps, conjugate gradients in each, and the relative step at which it ends."""

    passes: int = LAW_FIT.passes
    inner: int = LAW_FIT.inner
    tol: float = LAW_FIT.tol


class _Point(NamedTuple):
    """Where the signals are, what they predict, and what the laws say of it."""

    signals: Array
    backgrounds: Array
    projections: Array
    means: Array
    judged: Judged


class _Accepted(NamedTuple):
    """Points that were accepted, their laws and merits, the steps that come next, how long they are, and how often tried."""

    point: _Point
    law: Law
    merits: Array
    step: Step
    relative: Array
    tries: Array


def fit_law(
    problem: Problem,
    readings: Readings,
    law: Law,
    signals: Array,
    backgrounds: Array,
    effort: Effort | None = None,
) -> LawFit:
    """Fit signals (n, k), backgrounds (k,) and laws from good starts.

    Of the problem, covariates and the largest shares of bad readings are used.
    """
    effort = Effort() if effort is None else effort
    if isinstance(law, PoissonLaw):
        return fit_held(problem, readings, law, signals, backgrounds, effort)
    law = law.held(abs2(project(problem.source, signals)))
    fit = fit_held(problem, readings, law, signals, backgrounds, effort)
    for _ in range(LAW_FIT.rounds):
        last, law = fit, fit.law.held(abs2(fit.projections))
        fit = fit_held(problem, readings, law, fit.signals, fit.backgrounds, effort)
        if (relative_lengths(fit.signals - last.signals, fit.signals) < LAW_FIT.steady).all():
            break
    return fit


def fit_held(
    problem: Problem, readings: Readings, law: Law, signals: Array, backgrounds: Array, effort: Effort
) -> LawFit:
    """One round, in which the energies that variances depend on are held."""
    least = law.least(problem.source.shape[0])
    point = _seen(problem, readings, law, signals, np.maximum(backgrounds, least))
    step = _step(problem, point, effort, least)
    relative = relative_lengths(step.signals, signals)
    here = _Accepted(point, law, _merits(readings, point), step, relative, np.zeros(relative.size, int))
    whole, running, history = here, np.arange(relative.size), [here.merits]
    for _ in range(effort.passes):
        going = (here.relative >= effort.tol) & (here.tries <= LAW_FIT.tries)
        if not going.any():
            break
        if going.mean() <= 1 - LAW_FIT.leave:
            whole = put_columns(whole, here, running)
            problem, readings, running = problem.only(going), readings.only(going), running[going]
            here, going = select_columns(here, going), going[going]
        here = _moved(problem, readings, here, going, effort)
        history.append(np.array(history[-1]))
        history[-1][running] = here.merits
    point, law, _, _, relative, _ = put_columns(whole, here, running)
    # What a column that is stuck would still move is little, or it has not converged.
    return LawFit(
        point.signals,
        point.backgrounds,
        law,
        point.projections,
        point.means,
        point.judged,
        np.stack(history),
        relative < LAW_FIT.little,
    )


def _moved(problem: Problem, readings: Readings, here: _Accepted, going: Array, effort: Effort) -> _Accepted:
    """One step of the columns that are going, where it does not lower their merit; the others are company and stay."""
    point, law, tries = here.point, here.law, here.tries
    m, unknowns = problem.source.shape[0], float(real_unknowns(point.signals))
    fractions = LAW_FIT.shrink**tries
    signals = point.signals + shortened(fractions * here.step.signals, point.signals)
    backgrounds = np.maximum(point.backgrounds + fractions * here.step.backgrounds, law.least(m))
    # The laws follow at the same time, as in generalised EM; not after a step that was given up, perhaps for their sake.
    renewed = law.renewed(point.judged, readings, point.means, problem.levels, unknowns)
    again = tries > 0
    renewed = put_columns(renewed, law.only(again), again) if again.any() else renewed
    tried = _seen(problem, readings, renewed, signals, backgrounds)
    before, after = here.merits, _merits(readings, tried)
    # Written so that a merit which is not a number counts as fallen.
    moved = going & (after >= before - LAW_FIT.rounding * (1 + np.abs(before)))
    tries = np.where(moved, 0, tries + going)
    if not moved.any():
        return here._replace(tries=tries)
    law = put_columns(law, renewed.only(moved), moved)
    point = put_columns(point, select_columns(tried, moved), moved)
    step = _step(problem, point, effort, law.least(m))
    relative = relative_lengths(step.signals, point.signals)
    return _Accepted(point, law, np.where(moved, after, before), step, relative, tries)


def _merits(readings: Readings, point: _Point) -> Array:
    mass = np.broadcast_to(readings.weights, point.means.shape).sum(axis=0)
    merits: Array = point.judged.log_likelihood / np.maximum(mass, TINY)
    return merits


def _seen(problem: Problem, readings: Readings, law: Law, signals: Array, backgrounds: Array) -> _Point:
    """What the laws say of signals: one pass."""
    projections = project(problem.source, signals)
    means = means_of(abs2(projections), backgrounds, readings, law.least(problem.source.shape[0]))
    return _Point(signals, backgrounds, projections, means, law.judge(readings, means))


def _step(problem: Problem, point: _Point, effort: Effort, least: float) -> Step:
    """Gauss-Newton steps; columns whose background rests on its bound keep it."""
    step = _exact_step(problem._replace(unknown_mean=True), point, effort)
    bound = (point.backgrounds <= least) & (step.backgrounds < 0)
    if not bound.any():
        return step
    held = _exact_step(problem._replace(unknown_mean=False), select_columns(point, bound), effort)
    both: Step = put_columns(step, held, bound)
    return both


def _exact_step(problem: Problem, point: _Point, effort: Effort) -> Step:
    judged = point.judged
    return gauss_newton_step(
        problem,
        point.signals,
        point.projections,
        judged.residuals,
        judged.weights,
        Inner(effort.inner, LAW_FIT.inner_tol, single=not in_double(point.backgrounds.size)),
    )

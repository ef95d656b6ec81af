"""The last, efficient step: maximum likelihood with the noise law fitted along.

Signal, background, scale, tails and skew of the noise and the share of bad samples are fitted together. One pass gives all of
them their next value: weights from the present law, the population-Newton step of iterated least squares with these weights,
and the sums from which the law is renewed. That map converges slowly where samples are few or doubts many, so its steps are
accelerated.

Squared residuals count as enlarged by the leverages of their samples (:mod:`robustphase.descend.leverage`).

The background is free even where the noise mean is known to be zero: then the equation for the signal is unbiased whatever
the noise law, skewed ones included, because noise is independent of the covariates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustphase.descend.acceleration import Acceleration
from robustphase.descend.gauss_newton import LEAST_POWER, gauss_newton_step
from robustphase.descend.leverage import leverage_rates
from robustphase.descend.objective import real_unknowns
from robustphase.descend.race import Pull, first_factor, newton_proposals
from robustphase.descend.relaxation import LONGEST
from robustphase.likelihood.noise import (
    HEAVIEST,
    LEAST,
    LIGHTEST,
    MOST_SKEW,
    TINY_SCALE,
    NoiseLaw,
    Tally,
    judge,
    renew,
)
from robustphase.rows.data import Data, as_columns
from robustphase.rows.passes import abs2, adjoint_block, project_block
from robustphase.rows.slices import NUMBERS, in_slices
from robustphase.rows.source import Array, InBulk, Kernel, Parts

#: Weights of the background, the logarithm of the scale, tails, skew and share of bad samples when steps are compared with
#: each other, against a relative change of the signal.
METRIC = (0.3, 0.02, 0.02, 0.02, 0.02)
#: A scale that changes by more than this factor in a step is on its way to zero, and must not be extrapolated; after so many
#: steps with less it has arrived.
SETTLING, CALM = 0.2, 3
#: Steps that have not become shorter by this factor within so many passes have been led astray: extrapolation seeks the place of
#: the shortest step, which may be a saddle. The law then follows the residuals at its own pace for good, and the signal takes
#: plain steps until the next look.
STALLED, WINDOW = 0.5, 10
#: The shape of the law is held until a step is shorter than this, or the window is over: while the signal is off, residuals of
#: clean samples have longer tails than their noise, and bad samples pass for such tails.
ARRIVED = 0.02
#: Columns that have settled leave when they are at least this share of all: each departure copies what stays.
LEAVE = 0.25
#: Fewest samples judged together at the end.
ROWS = 64
#: An accelerated step may be this many times as long as the plain one.
AMPLIFIED = 30.0
#: Farthest that the logarithm of the scale is extrapolated in a step.
FARTHEST = 1.0
#: A step is negligible if it is shorter than this fraction of the noise.
RESOLUTION = 0.02
#: Fewer samples per unknown than this ask for Gauss-Newton steps from the beginning; most such steps, and most iterations
#: of conjugate gradients in each.
FEW_SAMPLES, EXACT_STEPS, INNER_STEPS = 8, 25, 50
_TINY = float(np.finfo(np.float64).tiny)


class Polished(NamedTuple):
    """Polished candidates, one per column.

    Attributes
    ----------
    signals : ndarray of shape (n, k)
        The estimates.
    backgrounds : ndarray of shape (k,)
        Mean of the residuals as weighted.
    law : NoiseLaw
        The fitted laws.
    projections, residuals, clean, weights : ndarray of shape (m, k)
        At the estimate before its last move: ``A x``, ``y − |A x|² − b``, the probability to be clean, and the
        weights of iterated least squares; the latter two without the weights of the covariates.
    rates : ndarray of shape (k,)
        Leverages of the samples over ``|A x|²``.
    moves : tuple of float
        Relative length of each step, the largest of all columns.
    converged : ndarray of bool, shape (k,)
        Whether the last one was negligible.
    """

    signals: Array
    backgrounds: Array
    law: NoiseLaw
    projections: Array
    residuals: Array
    clean: Array
    weights: Array
    rates: Array
    moves: tuple[float, ...]
    converged: Array


class Look(NamedTuple):
    """What one pass tells of k candidates: what the samples ask of the signals and of the law, and the projections."""

    pull: Pull
    tally: Tally
    projections: Array


def polish(
    data: Data,
    signals: Array,
    backgrounds: Array,
    law: NoiseLaw,
    *,
    max_iter: int = 60,
    tol: float = 1e-7,
) -> Polished:
    """Maximum-likelihood fit from a good start.

    Parameters
    ----------
    data : Data
        The samples. Responses and density have one column for all candidates, or one for each.
    signals, backgrounds, law
        Where to start: shapes (n, k) and (k,), and laws of k columns.
    max_iter : int
        Most passes with population-Newton steps; after that a few Gauss-Newton steps have to do.
    tol : float
        Stop when a step is shorter than this fraction of the signal, and than a fiftieth of the noise. What is left to go is a
        few times as long as the last step: the default gives six digits.
    """
    m, n = data.source.shape
    original, memory = data, Acceleration()
    done, pace = _Done(signals.shape[1], n, m, signals.dtype), _Pace(signals.shape[1])
    moves: list[float] = []
    # Without enough samples their moments are too far from the population's for its Newton steps to converge.
    newton_steps = max_iter if m >= FEW_SAMPLES * n else 0
    while True:
        seen = look(data, signals, backgrounds, law)
        fitted = renew(law, seen.tally, data.contamination)
        if len(moves) < newton_steps:
            factor = first_factor(m, real_unknowns(signals))
            proposals, shifts = newton_proposals(signals, seen.pull, unknown_mean=True)
        else:
            factor, last = 1.0, moves[-1] if moves else 1.0
            proposals, shifts = _exact_proposals(data, signals, backgrounds, law, seen.projections, last)
        # Never zero: where the data hold no signal, it may vanish.
        power = np.maximum(abs2(signals).sum(axis=0), LEAST_POWER)
        relative = np.linalg.norm(proposals, axis=0) / np.sqrt(power)
        fitted = pace.held(law, fitted, relative)
        now, then = _variables(backgrounds, law), _variables(backgrounds + shifts, fitted)
        moves.append(float(relative.max()))
        follows = pace.note(relative, np.abs(then[1] - now[1]) < SETTLING)
        cut = np.minimum(factor, LONGEST / np.maximum(relative, _TINY))
        metric = _metric(n, power, follows)
        memory.forget(pace.plain)
        reached = memory.step(np.vstack((signals, now)), np.vstack((cut * proposals, then - now)), metric)
        signals = signals + _within(reached[:n] - signals, np.sqrt(power), np.minimum(LONGEST, AMPLIFIED * relative))
        # A background that leaves the noise would make every sample look bad.
        reach = np.maximum(AMPLIFIED * np.abs(shifts), 0.1 * fitted.scales)
        reached[n] = backgrounds + np.clip(reached[n].real - backgrounds, -reach, reach)
        # So would a scale that vanishes at one stroke.
        reached[n + 1] = now[1] + np.clip(reached[n + 1].real - now[1], -FARTHEST, FARTHEST)

        noise = fitted.scales / power
        settled = (relative < 1e-12) | (pace.calm & (relative < tol) & (relative < RESOLUTION * noise))
        little = settled | (relative < np.minimum(RESOLUTION * noise * np.sqrt(n / m), RESOLUTION))
        # What still moves after many passes is often little against what noise leaves open.
        last_pass = len(moves) == newton_steps + EXACT_STEPS or (len(moves) == newton_steps and bool(little.all()))
        leaving = np.ones_like(settled) if last_pass else settled
        if last_pass or leaving.sum() >= LEAVE * leaving.size:
            done.keep(leaving, signals, backgrounds, law, seen.projections, little)
            if leaving.all():
                return done.polished(original, tuple(moves))
            staying = ~leaving
            memory.only(staying)
            pace.only(staying)
            data, signals, follows = data.only(staying), signals[:, staying], follows[staying]
            reached, then = reached[:, staying], then[:, staying]
        backgrounds = reached[n].real
        law = _law(np.where(follows, reached[n + 1 :].real, then[1:]), data.contamination)


class _Pace:
    """How the steps of every column have gone so far, and which laws may be extrapolated."""

    def __init__(self, k: int) -> None:
        self._lengths = np.empty((0, k))
        self._stalled, self._calm, self._free = np.zeros(k, bool), np.zeros(k, int), np.zeros(k, bool)
        #: Columns whose steps are not to be extrapolated.
        self.plain = np.zeros(k, bool)

    def held(self, law: NoiseLaw, fitted: NoiseLaw, relative: Array) -> NoiseLaw:
        """The fitted law, with the shape of the present one as long as the signal is still on its way."""
        self._free |= (relative < ARRIVED) | (len(self._lengths) >= WINDOW)
        tails, tilts = np.where(self._free, fitted.tails, law.tails), np.where(self._free, fitted.tilts, law.tilts)
        return fitted._replace(tails=tails, tilts=tilts)

    def note(self, relative: Array, steady: Array) -> Array:
        """Note a step; which columns have a law that is steady, and has not led astray."""
        self._lengths = np.vstack((self._lengths, relative))
        count = len(self._lengths)
        if count % WINDOW == 0 and count >= 2 * WINDOW:
            recent, before = self._lengths[-WINDOW:].min(axis=0), self._lengths[-2 * WINDOW : -WINDOW].min(axis=0)
            stalled = recent > STALLED * before
            self._stalled |= stalled
            self.plain = (stalled & ~self.plain) | (self.plain & (relative >= ARRIVED))
        self._calm = np.where(steady, self._calm + 1, 0)
        follows: Array = steady & ~self._stalled
        return follows

    @property
    def calm(self) -> Array:
        """Columns whose scale has arrived."""
        calm: Array = self._calm >= CALM
        return calm

    def only(self, columns: Array) -> None:
        """Go on with some of the columns."""
        self._lengths = self._lengths[:, columns]
        self._stalled, self._calm, self._free = self._stalled[columns], self._calm[columns], self._free[columns]
        self.plain = self.plain[columns]


def _metric(n: int, power: Array, follows: Array) -> Array:
    """Weights of signals, backgrounds and laws when steps are compared; laws that do not follow have none."""
    return np.vstack(
        (
            np.broadcast_to(1 / np.sqrt(power), (n, power.size)),
            METRIC[0] / power,
            *(weight * follows for weight in METRIC[1:]),
        )
    )


def _within(steps: Array, norms: Array, limits: Array) -> Array:
    """Steps cut to the given fractions of the norms."""
    lengths = np.linalg.norm(steps, axis=0) / norms
    cut: Array = steps * np.minimum(1.0, limits / np.maximum(lengths, _TINY))
    return cut


class _Done:
    """Columns that have settled, in their places."""

    def __init__(self, k: int, n: int, m: int, dtype: np.dtype[Any]) -> None:
        self._places = np.arange(k)
        self._signals, self._projections = np.empty((n, k), dtype), np.empty((m, k), dtype)
        self._backgrounds, self._converged = np.empty(k), np.empty(k, bool)
        self._law = NoiseLaw(*np.empty((4, k)))

    def keep(
        self, leaving: Array, signals: Array, backgrounds: Array, law: NoiseLaw, projections: Array, converged: Array
    ) -> None:
        """Put the columns that leave into their places."""
        places = self._places[leaving]
        self._signals[:, places], self._projections[:, places] = signals[:, leaving], projections[:, leaving]
        self._backgrounds[places], self._converged[places] = backgrounds[leaving], converged[leaving]
        for kept, part in zip(self._law, law, strict=True):
            kept[places] = part[leaving]
        self._places = self._places[~leaving]

    def polished(self, data: Data, moves: tuple[float, ...]) -> Polished:
        """All columns together, judged by their laws."""
        residuals = as_columns(data.responses) - abs2(self._projections)
        residuals -= self._backgrounds
        rates = leverage_rates(data, self._signals, self._law)
        clean, weights = np.empty_like(residuals), np.empty_like(residuals)
        density, counted = as_columns(data.density), as_columns(data.weights)
        # A slice at a time: what a judgement makes along the way is ten times as large as its result.
        step = max(ROWS, NUMBERS // residuals.shape[1])
        for start in range(0, residuals.shape[0], step):
            part = slice(start, start + step)
            leverages = rates * abs2(self._projections[part])
            judged = judge(residuals[part], density[part], self._law, counted[part], leverages)
            clean[part], weights[part] = judged.clean, judged.weights
        return Polished(
            self._signals,
            self._backgrounds,
            self._law,
            self._projections,
            residuals,
            clean,
            weights,
            rates,
            moves,
            self._converged,
        )


def _exact_proposals(
    data: Data, signals: Array, backgrounds: Array, law: NoiseLaw, projections: Array, last: float
) -> tuple[Array, Array]:
    """Gauss-Newton steps with the sample's own moments."""
    residuals = as_columns(data.responses) - abs2(projections) - backgrounds
    leverages = leverage_rates(data, signals, law) * abs2(projections)
    weights = judge(residuals, as_columns(data.density), law, as_columns(data.weights), leverages).weights
    step = gauss_newton_step(
        data.source,
        signals,
        projections,
        residuals,
        weights * as_columns(data.weights),
        fit_background=True,
        max_inner=INNER_STEPS,
        tol=max(min(0.1, 3 * last), 1e-6),
    )
    return step.signals, step.backgrounds


def _variables(backgrounds: Array, law: NoiseLaw) -> Array:
    """Background and law in variables that may be extrapolated, shape (5, k)."""
    return np.stack((backgrounds, np.log(law.scales), law.tails, law.tilts, law.shares))


def _law(variables: Array, most: float) -> NoiseLaw:
    """The law that these variables mean, within its bounds."""
    scales, tails, tilts, shares = variables
    return NoiseLaw(
        np.maximum(np.exp(scales), TINY_SCALE),
        np.clip(tails, LIGHTEST, HEAVIEST),
        np.clip(tilts, -MOST_SKEW, MOST_SKEW),
        np.clip(shares, LEAST, max(most, LEAST)),
    )


def look(data: Data, signals: Array, backgrounds: Array, law: NoiseLaw) -> Look:
    """What the samples say of candidates with given laws: one pass."""
    rates = leverage_rates(data, signals, law)

    def kernel(block: Array, y: Array, density: Array, w: Array) -> Parts:
        projections = project_block(block, signals)
        coefficients, sums = _coefficients(projections, y, density, w, backgrounds, rates, law)
        return Parts(sums=(adjoint_block(block, coefficients), *sums), rows=(projections,))

    # Many signals are judged in single precision, where it is half of the work; for a single one it is next to nothing, but
    # not the number of steps.
    single = signals.shape[1] == 1
    precision = np.float64 if single else np.float32
    per_row = (
        as_columns(data.responses),
        as_columns(data.density).astype(precision, copy=False),
        as_columns(data.weights).astype(precision, copy=False),
    )
    suited: Kernel = InBulk(kernel) if single else in_slices(kernel, signals.shape[1])
    parts = data.source.reduce(suited, per_row)
    force, mass, drift, second, fourth, *tally = parts.sums
    pull = Pull(force, mass, drift, second, fourth, np.empty(0), np.empty((0, 0)))
    return Look(pull, Tally(*tally), parts.rows[0])


def _coefficients(
    projections: Array, y: Array, density: Array, w: Array, backgrounds: Array, rates: Array, law: NoiseLaw
) -> tuple[Array, tuple[Array, ...]]:
    """``w r s`` for the samples of a block, and the sums of the pull and the tally that need no rows."""
    energy = abs2(projections)
    residuals = y - energy
    residuals -= backgrounds
    _, weights, tally = judge(residuals, density, law, w, rates * energy)
    weights = np.multiply(weights, w, dtype=np.float64)
    mass = weights.sum(axis=0)
    residuals *= weights
    drift = residuals.sum(axis=0)
    coefficients = residuals * projections
    weights *= energy
    second = weights.sum(axis=0)
    weights *= energy
    return coefficients, (mass, drift, second, weights.sum(axis=0), *tally)

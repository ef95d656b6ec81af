"""The last, efficient step: maximum likelihood with the noise law fitted along.

Signal, background, scale, tails and skew of the noise and the share of bad samples are fitted together. One pass gives all of
them their next value: weights from the present law, the population-Newton step of iterated least squares with these weights,
and the sums from which the law is renewed. That map converges slowly where samples are few or doubts many, so its steps are
accelerated.

The background is free even where the noise mean is known to be zero: then the equation for the signal is unbiased whatever
the noise law, skewed ones included, because noise is independent of the covariates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.acceleration import Acceleration
from robustphase.descend.gauss_newton import gauss_newton_step
from robustphase.descend.objective import Data
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
from robustphase.rows.passes import abs2, adjoint_block, project_block
from robustphase.rows.source import Array, Parts
from robustphase.rows.threads import one_at_a_time

#: Weights of the background, the logarithm of the scale, tails, skew and share of bad samples when steps are compared with
#: each other, against a relative change of the signal.
METRIC = (0.3, 0.02, 0.02, 0.02, 0.02)
#: A scale that changes by more than this factor in a step is on its way to zero, and must not be extrapolated.
SETTLING = 0.2
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
        At the estimate before its last, negligible move: ``A x``, ``y − |A x|² − b``, the probability to be clean, and the
        weights of iterated least squares; the latter two without the weights of the covariates.
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
    tol: float = 1e-6,
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
        Stop when a step is shorter than this fraction of the signal, and than a fiftieth of the noise.
    """
    m, n = data.source.shape
    memory = Acceleration()
    moves: list[float] = []
    # Without enough samples their moments are too far from the population's for its Newton steps to converge.
    newton_steps = max_iter if m >= FEW_SAMPLES * n else 0
    while True:
        seen = look(data, signals, backgrounds, law)
        fitted = renew(law, seen.tally, data.contamination)
        now, then = _variables(backgrounds, law), _variables(backgrounds, fitted)
        steady = np.abs(then[1] - now[1]) < SETTLING
        power = abs2(signals).sum(axis=0)
        noise = fitted.scales / power
        last = moves[-1] if moves else 1.0
        if len(moves) < newton_steps:
            factor = first_factor(m, n)
            proposals, shifts = newton_proposals(signals, seen.pull, unknown_mean=True)
        else:
            factor = 1.0
            proposals, shifts = _exact_proposals(data, signals, backgrounds, law, seen.projections, last)
        relative = np.linalg.norm(proposals, axis=0) / np.sqrt(power)
        moves.append(float(relative.max()))
        settled = (relative < 1e-12) | (steady & (relative < tol) & (relative < RESOLUTION * noise))
        little = relative < np.minimum(RESOLUTION * noise * np.sqrt(n / m), RESOLUTION)
        # What still moves after many passes is often little against what noise leaves open.
        enough = (settled | little).all() and len(moves) == newton_steps
        if settled.all() or enough or len(moves) == newton_steps + EXACT_STEPS:
            break
        then[0] += shifts
        metric = np.vstack(
            (
                np.broadcast_to(1 / np.sqrt(power), signals.shape),
                METRIC[0] / power,
                *(weight * steady for weight in METRIC[1:]),
            )
        )
        cut = np.minimum(factor, LONGEST / np.maximum(relative, _TINY))
        points, targets = np.vstack((signals, now)), np.vstack((cut * proposals, then - now))
        reached = memory.step(points, targets, metric)
        step = reached[:n] - signals
        length = np.linalg.norm(step, axis=0) / np.sqrt(power)
        signals = signals + step * np.minimum(1.0, LONGEST / np.maximum(length, _TINY))
        backgrounds = reached[n].real
        law = _law(np.where(steady, reached[n + 1 :].real, then[1:]), data.contamination)
    residuals = _columns(data.responses) - abs2(seen.projections) - backgrounds
    judged = judge(residuals, _columns(data.density), law, data.weights[:, np.newaxis])
    return Polished(
        signals,
        backgrounds,
        law,
        seen.projections,
        residuals,
        judged.clean,
        judged.weights,
        tuple(moves),
        settled | little,
    )


def _exact_proposals(
    data: Data, signals: Array, backgrounds: Array, law: NoiseLaw, projections: Array, last: float
) -> tuple[Array, Array]:
    """Gauss-Newton steps with the sample's own moments."""
    residuals = _columns(data.responses) - abs2(projections) - backgrounds
    weights = judge(residuals, _columns(data.density), law, data.weights[:, np.newaxis]).weights
    step = gauss_newton_step(
        data.source,
        signals,
        projections,
        residuals,
        weights * data.weights[:, np.newaxis],
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


def _columns(values: Array) -> Array:
    return values if values.ndim == 2 else values[:, np.newaxis]


def look(data: Data, signals: Array, backgrounds: Array, law: NoiseLaw) -> Look:
    """What the samples say of candidates with given laws: one pass."""

    def kernel(block: Array, y: Array, density: Array, w: Array) -> Parts:
        projections = project_block(block, signals)
        coefficients, sums = one_at_a_time(_coefficients, projections, y, density, w, backgrounds, law)
        return Parts(sums=(adjoint_block(block, coefficients), *sums), rows=(projections,))

    parts = data.source.reduce(kernel, (_columns(data.responses), _columns(data.density), data.weights[:, np.newaxis]))
    force, mass, drift, second, fourth, *tally = parts.sums
    pull = Pull(force, mass, drift, second, fourth, np.empty(0), np.empty((0, 0)))
    return Look(pull, Tally(*tally), parts.rows[0])


def _coefficients(
    projections: Array, y: Array, density: Array, w: Array, backgrounds: Array, law: NoiseLaw
) -> tuple[Array, tuple[Array, ...]]:
    """``w r s`` for the samples of a block, and the sums of the pull and the tally that need no rows."""
    energy = abs2(projections)
    residuals = y - energy
    residuals -= backgrounds
    _, weights, tally = judge(residuals, density, law, w)
    weights *= w
    mass = weights.sum(axis=0)
    residuals *= weights
    drift = residuals.sum(axis=0)
    coefficients = residuals * projections
    weights *= energy
    second = weights.sum(axis=0)
    weights *= energy
    return coefficients, (mass, drift, second, weights.sum(axis=0), *tally)

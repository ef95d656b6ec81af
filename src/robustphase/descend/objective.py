r"""What the last, efficient step maximises: the likelihood of signal, background and noise model together.

With residuals ``r_j = y_j − |a_jᴴx|² − b``, weights w of the covariates (they sum to W), the clean density p of
:mod:`robustphase.likelihood.noise_model` with scales σ₋, σ₊, degrees of freedom ν, a share π of bad samples whose responses
have the density f, and d real unknowns, the merit is

.. math::

    M(x, b, \sigma_\pm, \nu, \pi, \rho) = \frac1W \Big\{ \sum_j w_j \log\big[(1 - \pi)\, p(r_j; v_j) + \pi f(y_j)\big]
    + \frac{d}{2} \log \rho \Big\}, \qquad v_j = \rho\, \frac{|a_j^H x|^2}{\|x\|^2}.

The signal is not one point but a small cloud around x, in which predictions have the variances v_j (their *leverage* on the
fit, in units of the noise); ρ is its size, and the last term its entropy. So M is a lower bound of the likelihood integrated
over the signal, as in variational EM: with normal noise it yields the unbiased variance ``Σr²/(m − d)`` where plain
likelihood would yield ``Σr²/m``. The bounds: π at most the stated contamination, 1/ν and σ₊/σ₋ within those of the noise
model, d at most W/2, and ρ at most σ₋σ₊: where every sample counts as bad, only the entropy is left, and grows without bound.

One pass weighs every sample under the present model (e-step) and sums M, its gradient, and what the m-step needs.

The background is free even where the noise mean is known to be zero: then the equation for the signal is unbiased whatever
the noise law, skewed ones included, because noise is independent of the covariates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived
from robustphase.descend.newton import NEWTON, Moments, joint_sums
from robustphase.likelihood import NoiseModel
from robustphase.likelihood.noise_model import NOISE, Statistics, column_sums, expected, prepared, statistics_of
from robustphase.problem import Problem, real_unknowns, select_columns
from robustphase.rows.passes import in_slices
from robustphase.rows.products import abs2, adjoint_block, project_block
from robustphase.rows.source import Array, InBulk, Kernel, Parts


@dataclass(frozen=True)
class ObjectiveOptions:
    """Constants of the objective."""

    most_leverage: float = derived(0.5, "largest d/W: with fewer than two samples per unknown noise and signal are one")
    largest_cloud: float = derived(1.0, "largest ρ/(σ₋σ₊): that of d = W/2 where half of the samples are bad")
    double: int = budget(8, "most signals that are judged in double precision")


OBJECTIVE = ObjectiveOptions()


class State(NamedTuple):
    """Signals (n, k), backgrounds (k,), noise models of k columns, and ρ (k,)."""

    signals: Array
    backgrounds: Array
    noise: NoiseModel
    spreads: Array

    def only(self, columns: Array) -> State:
        """Some of the columns."""
        state: State = select_columns(self, columns)
        return state

    def residuals_and_spreads(self, responses: Array, projections: Array) -> tuple[Array, Array]:
        """``y − |A x|² − b``, and the variances v of the predictions, shape (b, k), at projections ``A x`` of these signals."""
        spreads = abs2(projections)
        residuals = responses - spreads
        residuals -= self.backgrounds
        spreads *= self.spreads / np.maximum(abs2(self.signals).sum(axis=0), NEWTON.least)
        return residuals, spreads


class Evaluation(NamedTuple):
    """What one pass tells of a state: the merit M (k,), moments, statistics, and projections ``A x`` (m, k)."""

    merit: Array
    moments: Moments
    statistics: Statistics
    projections: Array


def likelihood_pass(problem: Problem, state: State) -> Evaluation:
    """The e-step, and the sums of objective, gradient and m-step: one pass."""
    signals, backgrounds, noise, spreads = state
    power = np.maximum(abs2(signals).sum(axis=0), NEWTON.least)
    rates, paired = spreads / power, problem.paired

    k = signals.shape[1]
    precision = np.dtype(np.float64 if in_double(k) else np.float32)
    law = prepared(noise, precision)

    def kernel(block: Array, y: Array, density: Array, w: Array) -> Parts:
        projections = project_block(block, signals)
        energy = abs2(projections)
        residuals = y - energy
        residuals -= backgrounds
        _, weights, spread_weights, expectations = expected(residuals, rates * energy, density, w, law)
        weights = np.multiply(weights, w, dtype=np.float64)
        moments = np.empty((4, k))
        moments[0] = column_sums(weights)
        joint = joint_sums(weights, projections, energy, paired=paired)
        residuals *= weights
        moments[1] = column_sums(residuals)
        # The variances of the predictions depend on the signal too.
        spread_weights *= w
        residuals -= spread_weights * (rates / 2)
        coefficients = residuals * projections
        weights *= energy
        moments[2] = column_sums(weights)
        weights *= energy
        moments[3] = column_sums(weights)
        return Parts(sums=(adjoint_block(block, coefficients), moments, joint, expectations), rows=(projections,))

    per_row = (
        problem.responses,
        problem.density.astype(precision, copy=False),
        problem.weights.astype(precision, copy=False),
    )
    suited: Kernel = InBulk(kernel) if k == 1 else in_slices(kernel, k)
    parts = problem.source.reduce(suited, per_row)
    gradient, (mass, residual_sum, second, fourth), joint, expectations = parts.sums
    statistics = statistics_of(noise, expectations)
    gradient = gradient + signals * (noise.scales**2 * statistics.leverage / (2 * power))
    entropy = effective_unknowns(problem, signals) / 2 * np.log(np.maximum(spreads, TINY))
    merit = (statistics.log_likelihood + entropy) / statistics.mass
    return Evaluation(merit, Moments(gradient, mass, residual_sum, second, fourth, joint), statistics, parts.rows[0])


def in_double(k: int) -> bool:
    """Whether k signals are judged in double precision: for few it is next to nothing, for many half of the work."""
    return k <= OBJECTIVE.double


def effective_unknowns(problem: Problem, signals: Array) -> Array:
    """d: the real unknowns of a signal, at most half of the samples."""
    unknowns: Array = np.minimum(real_unknowns(signals), OBJECTIVE.most_leverage * problem.weights.sum(axis=0))
    return unknowns


def as_point(state: State) -> Array:
    """A state in variables that may be extrapolated, shape (n + 6, k)."""
    noise = state.noise
    return np.vstack(
        (
            state.signals,
            state.backgrounds,
            np.log(noise.scales),
            noise.tails,
            noise.log_skews,
            noise.mixing,
            np.log(np.maximum(state.spreads, TINY)),
        )
    )


def as_state(point: Array, n: int, most: Array) -> State:
    """The state that these variables mean, within its bounds."""
    backgrounds, scales, tails, log_skews, mixing, spreads = point[n:].real
    limit = np.log(NOISE.most_skew)
    noise = NoiseModel(
        np.maximum(np.exp(scales), NOISE.tiny_scale),
        np.clip(tails, NOISE.lightest, NOISE.heaviest),
        np.clip(log_skews, -limit, limit),
        np.clip(mixing, NOISE.least_share, np.maximum(most, NOISE.least_share)),
    )
    largest = np.log(OBJECTIVE.largest_cloud * noise.scales**2 * noise.skews)
    return State(point[:n], backgrounds, noise, np.exp(np.minimum(spreads, largest)))

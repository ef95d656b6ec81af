"""What the theory says about the answer: a ball that holds a stationary point of the robust gradient.

At the answer the loss gradients of all samples get a robust mean g, with the variance λ along its worst direction as
certificate. Clean gradients average to within ``C sqrt(ε λ)`` of g (Proposition 2.1), and the risk is curved by at least
``2‖x‖²`` near the signal (Lemma 2.1, corrected), so the signal lies within ``‖H⁻¹g‖ + C sqrt(ε λ)/(2‖x‖²)`` of the answer. The
polish has no such guarantee of its own, so it may not leave the ball around the robust stationary point ``x − H⁻¹g``.

Any weights certify that take away no more than the contamination and leave a small variance, wherever they come from. So the
engine's own are tried first, at the price of a few passes; the mean estimator runs only where they do not settle the matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustphase.descend.gradients import gradient_points, robust_gradient
from robustphase.means import MeanResult
from robustphase.means.directions import worst_directions
from robustphase.population import newton_step
from robustphase.rows import RowSource, ScaledRows
from robustphase.rows.source import Array

#: The constant of Proposition 2.1, calibrated: clean and attacked runs stay below a third of it.
CONSTANT = 3.0
#: Passes that look for the worst direction.
DEPTH = 5


class Certificate(NamedTuple):
    """Evidence from the robust gradient.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        The answer, brought back into the ball if it was outside.
    radius : float
        Distance from the answer within which the signal lies, relative to its norm, if the stated contamination is right.
    moved : float
        How far the answer was brought back, relative to its norm; zero almost always.
    gradient : MeanResult
        The robust mean of the gradients.
    """

    signal: Array
    radius: float
    moved: float
    gradient: MeanResult


def certify(
    source: RowSource,
    responses: Array,
    signal: Array,
    background: float,
    contamination: float,
    *,
    unknown_mean: bool,
    weights: Array | None = None,
    mean_estimator: str = "filter",
    random_state: Any = None,
) -> Certificate:
    """Check an answer against the robust gradient.

    Parameters
    ----------
    source, responses
        The samples.
    signal, background
        The answer.
    contamination : float
        ε' of Proposition 2.1.
    unknown_mean : bool
        Whether the background was fitted.
    weights : ndarray of shape (m,), optional
        Weights of the samples that came with the answer.
    mean_estimator, random_state
        Which robust mean to take where these weights do not settle the matter, and where there are none.
    """
    view = gradient_points(source, responses, signal, background=background)
    if weights is not None and (weights >= 0.5).any() and mean_estimator == "filter":
        gradient = weighted_gradient(view, (weights >= 0.5).astype(np.float64), signal)
        certificate = judge_gradient(signal, gradient, max(contamination, gradient.removed), unknown_mean=unknown_mean)
        if certificate.moved == 0:
            return certificate
    gradient = robust_gradient(view, contamination, mean_estimator=mean_estimator, random_state=random_state)
    return judge_gradient(signal, gradient, contamination, unknown_mean=unknown_mean)


def uncertified(source: RowSource, responses: Array, signal: Array, background: float, weights: Array) -> Certificate:
    """The evidence of the gradient for a linear operator: its mean and worst variance, without a radius.

    The radius rests on the curvature of a Gaussian design, which an operator need not have, and on a filter that looks at rows.
    """
    view = gradient_points(source, responses, signal, background=background)
    kept = weights >= 0.5
    gradient = weighted_gradient(view, (kept if kept.any() else np.ones_like(kept)).astype(np.float64), signal)
    return Certificate(signal, np.nan, 0.0, gradient)


def weighted_gradient(view: ScaledRows, weights: Array, signal: Array) -> MeanResult:
    """Mean of the gradients with given weights, and the variance along the worst direction that is left.

    Clean gradients vary most along the signal, and points that move the mean show along the mean, so the search for the
    worst direction starts between these two.
    """
    mean = view.mean(weights)
    # On the same side, so that the two do not cancel.
    side = -1.0 if np.vdot(signal, mean).real < 0 else 1.0
    tiny = np.finfo(np.float64).tiny
    guess = signal / max(float(np.linalg.norm(signal)), tiny) + side * mean / max(float(np.linalg.norm(mean)), tiny)
    worst = worst_directions(view, weights, mean, guess[:, np.newaxis], DEPTH)
    removed = 1.0 - float(weights.mean())
    return MeanResult(
        location=mean,
        weights=weights,
        # No direction is left where all gradients coincide.
        top_variance=float(worst.variances[0]) if worst.variances.size else 0.0,
        removed=removed,
        contamination=removed,
        n_iter=1,
        converged=True,
        message="the mean with weights as given",
        directions=worst.vectors,
    )


def judge_gradient(signal: Array, gradient: MeanResult, contamination: float, *, unknown_mean: bool) -> Certificate:
    """The ball that a robust mean of the gradients vouches for, and the signal brought back into it."""
    power = float(np.linalg.norm(signal)) ** 2
    displacement = newton_step(signal, gradient.location, noise_mean="unknown" if unknown_mean else "zero")
    offset = float(np.linalg.norm(displacement))
    variance = gradient.top_variance if np.isfinite(gradient.top_variance) else 0.0
    least = 1.0 / gradient.weights.size
    allowed = CONSTANT * np.sqrt(max(contamination, least) * max(variance, 0.0)) / (2 * power)
    excess = 1.0 - allowed / offset if offset > allowed and offset > 1e-9 * np.sqrt(power) else 0.0
    length = np.sqrt(power)
    return Certificate(
        signal=signal - excess * displacement,
        radius=float((min(offset, allowed) + allowed) / length),
        moved=float(excess * offset / length),
        gradient=gradient,
    )

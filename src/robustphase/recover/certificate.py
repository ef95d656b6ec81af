"""What the theory says about the answer: a ball that holds a stationary point of the robust gradient.

At the answer the loss gradients of all samples get a robust mean g, with the variance λ along its worst direction as
certificate. Clean gradients average to within ``C sqrt(ε λ)`` of g (Proposition 2.1), and the risk is curved by at least
``2‖x‖²`` near the signal (Lemma 2.1, corrected), so the signal lies within ``‖H⁻¹g‖ + C sqrt(ε λ)/(2‖x‖²)`` of the answer. The
polish has no such guarantee of its own, so it may not leave the ball around the robust stationary point ``x − H⁻¹g``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustphase.descend.gradients import gradient_points, robust_gradient
from robustphase.means import MeanResult
from robustphase.population import newton_step
from robustphase.rows import RowSource
from robustphase.rows.source import Array

#: The constant of Proposition 2.1, calibrated: clean and attacked runs stay below a third of it.
CONSTANT = 3.0


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
    mean_estimator: str = "filter",
    random_state: Any = None,
) -> Certificate:
    """Check an answer against the robust gradient."""
    power = float(np.linalg.norm(signal)) ** 2
    view = gradient_points(source, responses, signal, background=background)
    gradient = robust_gradient(view, contamination, mean_estimator=mean_estimator, random_state=random_state)
    displacement = newton_step(signal, gradient.location, noise_mean="unknown" if unknown_mean else "zero")
    offset = float(np.linalg.norm(displacement))
    variance = gradient.top_variance if np.isfinite(gradient.top_variance) else 0.0
    allowed = CONSTANT * np.sqrt(max(contamination, 1.0 / view.shape[0]) * max(variance, 0.0)) / (2 * power)
    excess = 1.0 - allowed / offset if offset > allowed and offset > 1e-9 * np.sqrt(power) else 0.0
    length = np.sqrt(power)
    return Certificate(
        signal=signal - excess * displacement,
        radius=float((min(offset, allowed) + allowed) / length),
        moved=float(excess * offset / length),
        gradient=gradient,
    )

"""Descent along robust gradients: Algorithms 2 and 4 of the paper, and Newton's steps in their place.

The loss gradients of all samples are a cloud of scaled rows; a robust mean of it is close to the mean of the clean ones
(Definition 2.2), and everything else is gradient descent::

    for t = 1, ..., T:
        g ← MeanEstStab({(|aᴴx|² − y)(aᴴx) a over batch t}, ε, δ)
        x ← x − η g

Algorithm 4, for an unknown noise mean, does the same on differences of paired samples, with twice the contamination.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robustphase.means import METHODS, MeanResult
from robustphase.means.estimate import HIGHEST_LEVEL, RANDOMISED, confident_level
from robustphase.population import newton_step
from robustphase.rows import RowSource, ScaledRows, project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: Longest Newton step, relative to the signal: the same fraction as everywhere, a little less than what may pass zero.
LONGEST_STEP = 0.4


@dataclass(frozen=True)
class DescentRule:
    """How a descent makes its steps."""

    contamination: float  # ε, of the samples; pairing doubles it, which is done here
    delta: float  # Confidence parameter δ of every step
    mean_estimator: str = "filter"  # One of :data:`robustphase.means.METHODS`
    paired: bool = False  # Work on differences of samples, as Algorithm 4 does
    step_size: float | None = None  # η; without it steps are population-Newton steps
    unknown_mean: bool = False  # Which curvature those have
    random_state: Any = None  # For mean estimators that draw random numbers

    def level(self, count: int) -> float | str:
        """Contamination of ``count`` gradients, with room for chance at confidence δ."""
        epsilon = min(2 * self.contamination, HIGHEST_LEVEL) if self.paired else self.contamination
        return confident_level(epsilon, self.delta, count)


class DescentStep(NamedTuple):
    """The point that was reached, the move that led there, and the robust gradient it followed."""

    signal: Array
    move: Array
    gradient: MeanResult

    def sample_weights(self, rule: DescentRule) -> Array:
        """Weights of the samples, from those of the gradients: both samples of a pair get its weight."""
        weights = self.gradient.weights
        return np.concatenate((weights, weights)) if rule.paired else weights


def robust_descent(start: Array, batches: Iterable[Samples], rule: DescentRule) -> Iterator[DescentStep]:
    """One robust step for every batch, beginning at ``start``, which is not zero."""
    x, gradient = start, None
    for samples in batches:
        dropped = pairs_with(samples.dropped) if rule.paired else samples.dropped
        if dropped.all():
            what = "pair of samples" if rule.paired else "sample"
            raise ValueError(
                f"a batch holds no {what} that can be used. Make batches of more samples, or shuffle them."
            )
        points = gradient_points(samples.source, samples.responses, x, paired=rule.paired)
        gradient = robust_gradient(
            points,
            rule.level(points.shape[0]),
            mean_estimator=rule.mean_estimator,
            start=gradient,
            random_state=rule.random_state,
            dropped=dropped,
        )
        if rule.step_size is not None:
            move = rule.step_size * gradient.location
        else:
            noise_mean: Any = "unknown" if rule.unknown_mean else "zero"
            move = newton_step(
                x,
                gradient.location,
                noise_mean=noise_mean,
                max_relative_length=LONGEST_STEP,
                real_rows=samples.source.dtype.kind != "c",
            )
        x = x - move
        yield DescentStep(x, move, gradient)


def gradient_points(
    source: RowSource, responses: Array, signal: Array, *, background: float = 0.0, paired: bool = False
) -> ScaledRows:
    """The points ``(|s|² + b − y) s a`` with ``s = aᴴx``, or the paired ones of Algorithm 4.

    Those are ``(xᵀb cᵀx − υ)(bcᵀ + cbᵀ)x = ½[(s² − y) − (s'² − y')](s a − s' a')``.
    """
    s = project(source, signal)
    residuals = abs2(s) + background - responses
    if not paired:
        return ScaledRows(source, residuals * s)
    pairs = s.size // 2
    half_gap = 0.5 * (residuals[:pairs] - residuals[pairs : 2 * pairs])
    scale = np.zeros_like(s)
    scale[:pairs], scale[pairs : 2 * pairs] = half_gap * s[:pairs], half_gap * s[pairs : 2 * pairs]
    return ScaledRows(source, scale, paired=True)


def robust_gradient(
    view: ScaledRows,
    contamination: float | str,
    *,
    mean_estimator: str = "filter",
    start: MeanResult | None = None,
    random_state: Any = None,
    dropped: Array | None = None,
) -> MeanResult:
    """Robust mean of a cloud of gradients by any of the mean estimators; the filter warms up from ``start``.

    Gradients that are ``dropped`` count as contaminated: those of samples that read as zero would hold the mean back.
    """
    if contamination == 0 and mean_estimator in ("filter", "mmw"):
        mean_estimator = "empirical"
    options: dict[str, Any] = {}
    if mean_estimator == "filter":
        # Gradients are skewed and heavy-tailed away from the solution, without any contamination.
        options |= {"start": start, "strict": True}
    if mean_estimator in RANDOMISED:
        options["random_state"] = random_state
    return METHODS[mean_estimator](view, contamination, dropped=dropped, **options)


def pairs_with(marked: Array) -> Array:
    """Which of the pairs (j, j + m // 2) hold a marked sample."""
    pairs = marked.size // 2
    spoilt: Array = marked[:pairs] | marked[pairs : 2 * pairs]
    return spoilt

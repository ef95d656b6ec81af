"""Another signal that explains the samples which were flagged.

Bad samples that tell of one other signal are what a decoy looks like, and up to the stated contamination they are expected. Where
a part of the rows is told wrongly, where gains differ between parts of the data, or where most of the samples are bad, the
other signal, the *rival*, explains more of the samples than may be bad. Flags alone do not tell: heavy tails are flagged too, but
do not agree with each other. Samples at which both signals predict about the same are kept whatever they tell of, so how many
there really are is seen among the samples at which the predictions differ; but an adversary chooses his samples among those.

There are two candidates: the answer itself at another length, and what is found among the flagged samples alone, from a leading
eigenvector of their responses by population-Newton steps on the better part of the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, derived, empirical, numeric
from robustphase.population import newton_step
from robustphase.rows.passes import abs2, adjoint_block, project_block
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)
#: Half of the better 85% of the absolute values of normal variables are below this many standard deviations.
_NORMAL_HALF = 0.5651


@dataclass(frozen=True)
class RivalOptions:
    """Constants of the search for a rival."""

    samples: float = derived(2.0, "flagged samples per real unknown from which on they determine a signal")
    fewest: int = numeric(20, "flagged samples from which on a gain can be read off them")
    power_steps: int = budget(12, "steps of the power method")
    steps: int = budget(40, "Newton steps; only fits with more flags than expected take them")
    trimmed: float = empirical(0.85, "share of the flagged samples with the smallest residuals that lead the steps")
    damping: float = empirical(0.8, "length of the steps")
    explained: float = derived(3.0, "scales of the noise within which a sample is explained")
    coarse: float = empirical(0.03, "least scale, over the energy of the signal: a rival is found only roughly")
    widest: float = empirical(0.25, "largest scale of a rival's residuals: what is wider explains nothing")


RIVAL = RivalOptions()


class Rival(NamedTuple):
    """Samples that a rival explains and the answer does not: their share of those that tell the two apart, and of all."""

    apart: float
    all: float


def find_rival(rows: Array, residuals: Array, predictions: Array, flagged: Array, signal: Array, scale: float) -> Rival:
    """Seek a rival of a signal.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        Rows that can be used.
    residuals, predictions : ndarray of shape (m,)
        What the answer predicts, and responses minus that.
    flagged : ndarray of bool, shape (m,)
        Which samples are flagged.
    signal : ndarray of shape (n,)
        The answer.
    scale : float
        Of the residuals that are kept.
    """
    unknowns = signal.size * (2 if np.iscomplexobj(signal) else 1)
    energy, count = float(np.sum(abs2(signal))), int(flagged.sum())
    if count < RIVAL.fewest or not energy > 0:
        return Rival(0.0, 0.0)
    few, y = rows[flagged], np.clip(residuals[flagged] + predictions[flagged], -1e6 * energy, 1e6 * energy)
    found = [np.sqrt(_gain(y, predictions[flagged])) * signal]
    if count >= RIVAL.samples * unknowns:
        found.append(_descended(few, y, _start(few, y, signal)))
    rivals = []
    for rival in found:
        left = np.sort(np.abs(y - abs2(project_block(few, rival))))[: max(int(RIVAL.trimmed * count), 1)]
        own = min(float(np.median(left)) / _NORMAL_HALF, RIVAL.widest * energy)
        rivals.append(_support(rows, residuals, predictions, rival, max(scale, own, RIVAL.coarse * energy)))
    return max(rivals, key=lambda one: one.all)


def _gain(y: Array, predictions: Array) -> float:
    """Typical ratio of responses to large predictions."""
    large = predictions >= np.median(predictions)
    return max(float(np.median(y[large] / np.maximum(predictions[large], _TINY))), 0.01)


def _start(rows: Array, y: Array, signal: Array) -> Array:
    """A leading eigenvector of bounded responses, at the length that they have."""
    weights = np.clip(y, 0.0, 3 * max(float(np.median(y)), _TINY))
    vector = signal / np.linalg.norm(signal)
    # From a mixture of the answer and of what the samples say at once, so that neither is met with a right angle.
    vector = vector + _unit(adjoint_block(rows, weights * project_block(rows, np.roll(vector, 1))))
    for _ in range(RIVAL.power_steps):
        vector = _unit(adjoint_block(rows, weights * project_block(rows, vector)))
    squares = abs2(project_block(rows, vector))
    length = np.sqrt(max(float(np.median(y)), _TINY) / max(float(np.median(squares)), _TINY))
    start: Array = length * vector
    return start


def _descended(rows: Array, y: Array, signal: Array) -> Array:
    count = max(int(RIVAL.trimmed * y.size), 1)
    for _ in range(RIVAL.steps):
        s = project_block(rows, signal)
        residuals = abs2(s) - y
        sizes = np.abs(residuals)
        used = sizes <= np.partition(sizes, count - 1)[count - 1]
        gradient = adjoint_block(rows, np.where(used, residuals, 0.0) * s) / count
        if not np.any(signal) or not np.isfinite(gradient).all():
            break
        step = newton_step(signal, gradient.astype(signal.dtype), max_relative_length=0.5)
        signal = signal - RIVAL.damping * step
    return signal


def _support(rows: Array, residuals: Array, predictions: Array, rival: Array, scale: float) -> Rival:
    with np.errstate(over="ignore", invalid="ignore"):
        others = abs2(project_block(rows, rival))
        apart = np.abs(others - predictions) > 2 * RIVAL.explained * scale
        left = residuals + predictions - others
        with_rival = (np.abs(left) < RIVAL.explained * scale) & (np.abs(residuals) > RIVAL.explained * scale)
    supporters = int((with_rival & apart).sum())
    return Rival(supporters / max(int(apart.sum()), 1), supporters / max(apart.size, 1))


def _unit(vector: Array) -> Array:
    unit: Array = vector / max(float(np.linalg.norm(vector)), _TINY)
    return unit

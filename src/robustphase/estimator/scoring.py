"""How well a fitted signal predicts responses that may themselves be bad.

R² squares every residual, so one bad response among those that are held out decides which model wins. Here only the better half
of the residuals counts (least trimmed squares): one minus their mean square over that of the better half about the best constant.
Up to half of the responses may be anything. Criteria that clip large residuals instead of leaving them out prefer a signal that
the bad samples agree with: told of no contamination, with a quarter of the responses made to agree with a wrong signal, they rank
the wrong one first. The rule is the same for every model, whatever contamination it was told and whatever noise it found, so
models can be compared.
"""

from __future__ import annotations

import numpy as np

from robustphase.rows.source import Array


def explained(responses: Array, predictions: Array, sample_weight: Array | None = None) -> float:
    """One minus the mean square of the better half of the residuals over that of the best constant.

    Of p columns, shape (m, p), it is the mean. Samples with a NaN in either do not count.
    """
    columns = zip(responses.reshape(len(responses), -1).T, predictions.reshape(len(responses), -1).T, strict=True)
    weights = np.ones(len(responses)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return float(np.mean([_explained(y, p, weights) for y, p in columns]))


def _explained(y: Array, predictions: Array, weights: Array) -> float:
    used = ~np.isnan(y) & ~np.isnan(predictions) & (weights > 0)
    y, predictions, weights = y[used], predictions[used], weights[used]
    if not y.size:
        return np.nan
    with np.errstate(over="ignore", invalid="ignore"):
        left, there = better_half(y - predictions, weights), constant_half(y, weights)
    if there == 0:
        return 1.0 if left == 0 else 0.0
    return float(1.0 - left / there)


def better_half(residuals: Array, weights: Array) -> float:
    """Mean square of the half of the residuals that are closest to zero."""
    sizes = np.abs(residuals)
    order = np.argsort(sizes)
    total = np.cumsum(weights[order])
    half = order[: int(np.searchsorted(total, total[-1] / 2)) + 1]
    return float(weights[half] @ sizes[half] ** 2 / weights[half].sum())


def constant_half(y: Array, weights: Array) -> float:
    """Mean square of the better half of the responses about the constant for which it is least."""
    order = np.argsort(y)
    # About the median, so that sums of squares do not cancel, and without numbers too large to square.
    y, weights = y[order], weights[order]
    y = np.clip(y - y[y.size // 2], -1e150, 1e150)
    total = np.cumsum(weights)
    ends = np.searchsorted(total, total - weights + total[-1] / 2)
    starts = np.flatnonzero(ends < y.size)
    windows = [(int(start), int(ends[start]) + 1) for start in starts]
    best = np.inf
    for low, high in _promising(y, windows):
        part, w = y[low:high], weights[low:high]
        mean = float(w @ part) / w.sum()
        best = min(best, float(w @ (part - mean) ** 2) / float(w.sum()))
    return best


def _promising(y: Array, windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The shortest windows: a window's mean square lies between 1/m and 1/4 of its squared length, so few can be the best."""
    lengths = np.array([y[high - 1] - y[low] for low, high in windows])
    return [windows[k] for k in np.argsort(lengths)[:64]]

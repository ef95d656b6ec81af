"""Six kinds of planted poison: points with a known covariance, a share of which is replaced."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

KINDS = ("cluster", "shift", "far", "tails", "clusters", "flip")
SPECTRA = ("identity", "linear", "geometric", "spiked")


class Poisoned(NamedTuple):
    """The points, which of them are bad, and the covariance of the good ones."""

    points: Array
    bad: Array
    truth: Array


def spectrum_of(name: str, d: int) -> Array:
    """Variances along the axes: all one, from 1 to 4, from 10 to 0.1, or a few large ones."""
    if name == "linear":
        return np.linspace(1.0, 4.0, d)
    if name == "geometric":
        return np.geomspace(10.0, 0.1, d)
    if name == "spiked":
        return np.concatenate(([100.0, 30.0, 10.0], np.ones(d)))[:d]
    return np.ones(d)


def poisoned(kind: str, count: int, d: int, share: float, spectrum: str = "identity", seed: int = 0) -> Poisoned:
    """Normal points of which a share is replaced, in units of the good points.

    ``cluster``: a tight group no farther out than the good points. ``shift``: four deviations along one direction, otherwise
    like good points. ``far``: a hundred deviations. ``tails``: like good points but with Cauchy-like lengths. ``clusters``: ten
    groups that share the bad points. ``flip``: pairs of variables with correlation 0.8 have -0.8.
    """
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    variances, half = spectrum_of(spectrum, d), d // 2
    if kind == "flip":
        variances[:half] *= 1.8
        variances[half : 2 * half] *= 0.2
    root = axes * np.sqrt(variances)
    points = rng.standard_normal((count, d)) @ root.T
    bad = np.zeros(count, bool)
    bad[rng.choice(count, round(share * count), replace=False)] = True
    z = rng.standard_normal((int(bad.sum()), d))
    u = rng.standard_normal(d)
    u /= np.linalg.norm(u)
    if kind == "cluster":
        z = np.sqrt(d) * u + 0.1 * z
    elif kind == "shift":
        z += 4 * u
    elif kind == "far":
        z += 100 * u
    elif kind == "tails":
        z /= np.sqrt(rng.chisquare(1, len(z)))[:, np.newaxis]
    elif kind == "clusters":
        centres = rng.standard_normal((10, d))
        centres *= np.sqrt(d) / np.linalg.norm(centres, axis=1, keepdims=True)
        z = centres[rng.integers(10, size=len(z))] + 0.3 * z
    elif kind == "flip":
        z[:, :half] /= 3.0
        z[:, half : 2 * half] *= 3.0
    else:
        raise ValueError(f"no such poison: {kind!r}")
    points[bad] = z @ root.T
    return Poisoned(points, bad, (axes * variances) @ axes.T)


def operator_error(estimate: Array, truth: Array) -> float:
    """Largest error of a variance over all directions."""
    return float(np.linalg.norm(estimate - truth, 2))


def clean_error(world: Poisoned) -> float:
    """That of the sample covariance of the good points."""
    return operator_error(np.cov(world.points[~world.bad].T, bias=True), world.truth)

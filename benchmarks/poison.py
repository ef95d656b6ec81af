"""Kinds of planted poison: points with a known covariance, a share of which is replaced."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz

Array = NDArray[Any]

KINDS = ("cluster", "shift", "far", "tails", "clusters", "flip")
#: Further kinds, which the estimators were not made with.
FURTHER_KINDS = ("quiet", "leverage", "cells", "mirrored", "copies", "doubled", "tenth")
SPECTRA = ("identity", "linear", "geometric", "spiked", "toeplitz")


class Poisoned(NamedTuple):
    """The points, which of them are bad, and the covariance of the good ones."""

    points: Array
    bad: Array
    truth: Array


def spectrum_of(name: str, d: int) -> Array:
    """Variances along the axes: all one, from 1 to 4, from 10 to 0.1, a few large ones, or of an autoregression (0.7)."""
    if name == "linear":
        return np.linspace(1.0, 4.0, d)
    if name == "geometric":
        return np.geomspace(10.0, 0.1, d)
    if name == "spiked":
        return np.concatenate(([100.0, 30.0, 10.0], np.ones(d)))[:d]
    if name == "toeplitz":
        return np.linalg.eigvalsh(toeplitz(0.7 ** np.arange(d)))
    return np.ones(d)


def poisoned(kind: str, count: int, d: int, share: float, spectrum: str = "identity", seed: int = 0) -> Poisoned:
    """Normal points of which a share is replaced, in units of the good points.

    ``cluster``: a tight group no farther out than the good points. ``shift``: four deviations along one direction, otherwise
    like good points. ``far``: a hundred deviations. ``tails``: like good points but with Cauchy-like lengths. ``clusters``: ten
    groups that share the bad points. ``flip``: pairs of variables with correlation 0.8 have -0.8.

    ``quiet``, ``leverage``: four, or a hundred, deviations along the direction of the least variance. ``cells``: three of the
    first ten variables are ten deviations off. ``mirrored``: good points whose signs are changed, of a mean of a deviation in
    every direction. ``copies``: one good point many times. ``doubled``, ``tenth``: good points times 2, or times 0.1.
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
    elif kind in ("quiet", "leverage"):
        z[:, np.argmin(variances)] += 4 if kind == "quiet" else 100
    elif kind == "copies":
        z[:] = z[:1]
    elif kind in ("doubled", "tenth"):
        z *= 2.0 if kind == "doubled" else 0.1
    elif kind == "mirrored":
        points += root.sum(axis=1)
        z = -z - 1
    elif kind != "cells":
        raise ValueError(f"no such poison: {kind!r}")
    points[bad] = z @ root.T
    if kind == "cells":
        struck = np.argsort(rng.random((len(z), min(d, 10))), axis=1)[:, :3]
        deviations = np.linalg.norm(root, axis=1)
        points[np.flatnonzero(bad)[:, np.newaxis], struck] = 10 * deviations[struck]
    return Poisoned(points, bad, (axes * variances) @ axes.T)


def operator_error(estimate: Array, truth: Array) -> float:
    """Largest error of a variance over all directions."""
    return float(np.linalg.norm(estimate - truth, 2))


def clean_error(world: Poisoned) -> float:
    """That of the sample covariance of the good points."""
    return operator_error(np.cov(world.points[~world.bad].T, bias=True), world.truth)

"""Adversaries that know the theorems: they move robust means as far as second moments allow.

The attack acts on numbers ``v_j``, one per point, whose robust mean is to be moved: projections of gradients on a fixed
direction u, or the numbers that Procedure 3 averages for the scale. Both rewrite responses (``mirror``) or one sample of a
point (``push``):

* ``mirror`` finds the points with the largest v and turns each into −v. The squares stay, so the second moment does not
  change and nothing that looks at variances can see it. It moves the mean by twice the mass of the upper tail: of order
  ε^(1 − 1/k) if the tail has k moments, so between √ε (two moments) and ε log(1/ε) (Gaussian).
* ``push`` gives randomly chosen points the value −κ s/√ε, with s² the variance of v. That adds κ²s² to the variance, whatever
  ε, and moves the mean by κ s √ε: the construction behind the lower bound for robust means.

Gradients are taken at the truth. Iterates close to it have nearly the same ones. The direction is the same in every batch, or
the displacements of the steps would cancel.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from robustphase.experiments.reproduce.stats import Floats
from robustphase.simulate import Adversary, CleanSample, Rewrite

#: κ of the push: it raises the variance along u by a third.
KAPPA = 0.6
#: Components along u of the rows that push, and the least component along the truth, in units of clean ones.
GRIP, LEAST = 2.0, 0.5

NAMES = ("mirror", "push")


def adversary(name: str, *, paired: bool) -> str | Adversary:
    """The adversary of that name: one of :data:`NAMES`, or else one that the library has."""
    return gradient_adversary(name, paired=paired) if name in NAMES else name


def gradient_adversary(name: str, *, paired: bool) -> Adversary:
    """The adversary of that name against the gradients of Algorithm 2, or with ``paired`` of Algorithm 4."""
    sentence = {
        "mirror": "The largest gradients along one direction change sign; second moments stay.",
        "push": "Gradients of order 1/√ε along one direction, which add a fixed share to the variance.",
    }[name]
    attack = {"mirror": mirror_gradients, "push": push_gradients}[name]
    return Adversary(name, "adaptive", sentence, partial(attack, paired=paired))


def scale_adversary(direction: Floats | None = None) -> Adversary:
    """The adversary that mirrors the largest of the numbers that estimate ‖x*‖² in Procedure 3.

    Those are ``υ bᵀc`` as printed, and with a direction u those of the remedy, ``υ (b·u)(c·u)``.
    """
    return Adversary(
        "scale", "adaptive", "The largest estimates of ‖x*‖² change sign.", partial(mirror_scale, direction=direction)
    )


def side(sample: CleanSample) -> Floats:
    """A unit vector orthogonal to the truth, the same for every batch of the same signal."""
    away = np.zeros(sample.n)
    away[int(np.argmin(np.abs(sample.truth)))] = 1.0
    away -= sample.unit * (sample.unit @ away)
    return np.asarray(away / np.linalg.norm(away))


def mirror_gradients(sample: CleanSample, budget: int, rng: np.random.Generator, *, paired: bool) -> Rewrite:
    """Turn the largest gradients along u round, by their responses alone."""
    grip = sample.inner * (sample.A @ side(sample))
    residual = sample.energy - sample.y
    if not paired:
        rows = _largest(residual * grip, budget)
        return Rewrite(rows, y=sample.energy[rows] + residual[rows])
    first, second = _halves(sample.m)
    gap = residual[first] - residual[second]
    chosen = _largest(gap * (grip[first] - grip[second]), budget)
    rows = first[chosen]
    # The gap changes sign when the residual of the first sample becomes 2r' − r.
    return Rewrite(rows, y=sample.energy[rows] - (residual[rows] - 2 * gap[chosen]))


def push_gradients(sample: CleanSample, budget: int, rng: np.random.Generator, *, paired: bool) -> Rewrite:
    """Give random gradients a large component along −u, by rows with a firm grip and the residuals that this takes."""
    unit = side(sample)
    grip = sample.inner * (sample.A @ unit)
    residual = sample.energy - sample.y
    first, second = _halves(sample.m)
    points = len(first) if paired else sample.m
    values = 0.5 * (residual[first] - residual[second]) * (grip[first] - grip[second]) if paired else residual * grip
    rows = rng.choice(points, min(budget, points), replace=False)
    target = -KAPPA * values.std() / np.sqrt(len(rows) / points)
    A = sample.A[rows]
    along = A @ sample.unit
    steady = np.where(np.abs(along) < LEAST, np.copysign(LEAST, along), along)
    A = A + np.outer(steady - along, sample.unit)
    partner = grip[rows + len(first)] if paired else np.zeros(len(rows))
    # Of the two signs of the component along u, the one that adds to the grip of the partner; either, where there is none.
    signs = np.where(partner * steady == 0, rng.choice((-1.0, 1.0), len(rows)), -partner * steady)
    A = A + np.outer(np.copysign(GRIP, signs) - A @ unit, unit)
    inner = A @ sample.truth
    grips = inner * (A @ unit)
    wanted = residual[rows + len(first)] + 2 * target / (grips - partner) if paired else target / grips
    return Rewrite(rows, A, inner**2 - wanted)


def mirror_scale(sample: CleanSample, budget: int, rng: np.random.Generator, *, direction: Floats | None) -> Rewrite:
    """Turn the largest estimates of ‖x*‖² of the pairs round, by their responses alone."""
    first, second = _halves(sample.m)
    sizes = (sample.A**2).sum(axis=1) if direction is None else (sample.A @ direction) ** 2
    gap = sample.y[first] - sample.y[second]
    chosen = _largest(gap * (sizes[first] - sizes[second]), budget)
    rows = first[chosen]
    return Rewrite(rows, y=sample.y[rows] - 2 * gap[chosen])


def _halves(m: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """First and second members of the pairs (j, j + m/2)."""
    pairs = m // 2
    return np.arange(pairs), np.arange(pairs, 2 * pairs)


def _largest(values: Floats, count: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.argsort(-values, kind="stable")[:count]

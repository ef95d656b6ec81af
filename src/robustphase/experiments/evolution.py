"""Covariance matrix adaptation (CMA-ES): a search by a Gaussian cloud that learns the shape of what it climbs.

Each generation draws points from a normal law, keeps the better half, moves the centre to their weighted mean, and adapts the
covariance to the steps that paid off and the width to whether successive steps agree. It needs values only, no gradients, and
only their order, so that noise and jumps of the objective do it little harm. The constants are those of N. Hansen, "The CMA
evolution strategy: a tutorial" (2016), with two departures: points outside of the unit cube are moved to its surface before
they are valued and learnt from, and coordinates are rounded, so that a stored search can be followed on another machine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

#: Digits of a coordinate.
DIGITS = 6


class EvolutionStrategy:
    """A search for the largest value in the unit cube, from a cloud of this centre (d,) and standard deviation."""

    def __init__(self, centre: Points, width: float, rng: np.random.Generator) -> None:
        d = len(centre)
        self.centre, self.width, self.rng = np.array(centre, float), width, rng
        #: Points of a generation.
        self.size = 4 + int(3 * math.log(d))
        kept = self.size // 2
        weights = math.log(kept + 0.5) - np.log(np.arange(1, kept + 1))
        self.weights = weights / weights.sum()
        mass = 1 / np.sum(self.weights**2)
        self.rate_path_width = (mass + 2) / (d + mass + 5)
        self.damping = 1 + 2 * max(0.0, math.sqrt((mass - 1) / (d + 1)) - 1) + self.rate_path_width
        self.rate_path = (4 + mass / d) / (d + 4 + 2 * mass / d)
        self.rate_one = 2 / ((d + 1.3) ** 2 + mass)
        self.rate_many = min(1 - self.rate_one, 2 * (mass - 2 + 1 / mass) / ((d + 2) ** 2 + mass))
        self.mass, self.expected = mass, math.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d**2))
        self.covariance = np.eye(d)
        self.path, self.path_width = np.zeros(d), np.zeros(d)
        self.generation = 0

    def ask(self) -> Points:
        """Points of the next generation, one per row."""
        values, vectors = np.linalg.eigh(self.covariance)
        draws = self.rng.standard_normal((self.size, len(self.centre)))
        steps = draws * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        return rounded(self.centre + self.width * steps)

    def tell(self, points: Points, values: NDArray[np.float64]) -> None:
        """Learn from the values at the points of a generation; where only some of them were valued, give those."""
        self.generation += 1
        best = np.argsort(-values, kind="stable")[: len(self.weights)]
        weights = self.weights[: len(best)] / self.weights[: len(best)].sum()
        steps = (points[best] - self.centre) / self.width
        step = weights @ steps
        self.centre = self.centre + self.width * step
        spectrum, vectors = np.linalg.eigh(self.covariance)
        whitened = vectors @ ((vectors.T @ step) / np.sqrt(np.maximum(spectrum, 1e-12)))
        c = self.rate_path_width
        self.path_width = (1 - c) * self.path_width + math.sqrt(c * (2 - c) * self.mass) * whitened
        length = float(np.linalg.norm(self.path_width)) / math.sqrt(1 - (1 - c) ** (2 * self.generation))
        # A long path of the width means that the cloud is too narrow; the other path must not run ahead meanwhile.
        calm = length < (1.4 + 2 / (len(self.centre) + 1)) * self.expected
        c = self.rate_path
        self.path = (1 - c) * self.path + calm * math.sqrt(c * (2 - c) * self.mass) * step
        kept = 1 - self.rate_one - self.rate_many + (not calm) * self.rate_one * c * (2 - c)
        learnt = self.rate_one * np.outer(self.path, self.path) + self.rate_many * (steps.T * weights) @ steps
        self.covariance = kept * self.covariance + learnt
        growth = self.rate_path_width / self.damping * (float(np.linalg.norm(self.path_width)) / self.expected - 1)
        self.width = min(self.width * math.exp(growth), 1.0)


def rounded(points: Points) -> Points:
    """Points moved into the unit cube, with `DIGITS` digits."""
    return np.asarray(np.round(np.clip(points, 0.0, 1.0), DIGITS), np.float64)

"""The world of the demo: phaseless measurements of a picture, a tenth of which an adversary has forged."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import robustphase as rp
from robustphase.cli.picture import grin, sailing_boat

#: Width and height of the picture, and samples per pixel.
SIDE, PER_PIXEL = 20, 16
#: Share of the samples that are forged; standard deviation of the noise, and background, in units of the signal's energy.
CONTAMINATION, NOISE_STD, BACKGROUND = 0.1, 0.5, 1.0
#: What the forged direction shares with the truth: their cosine.
TRACE = 0.07
#: Forgeries of two kinds: their share, how far their rows lean towards the forged picture (in standard deviations of an honest
#: row), and their response there, in units of the signal's energy.
QUIET, LOUD = (0.75, 3.0, 9.0), (0.25, 8.0, 60.0)


def forged_world(seed: int) -> rp.simulate.World:
    """Measure the boat, add heavy-tailed noise and a background, and let the adversary rewrite a tenth.

    Parameters
    ----------
    seed : int
        Source of all randomness.

    Returns
    -------
    World
        With the boat, of norm 1, as its truth.
    """
    truth = unit(sailing_boat(SIDE))
    attack = rp.simulate.Adversary(
        "forgery",
        "joint",
        "Rows that lean towards another picture, with large responses.",
        partial(forge, grin(SIDE)),
    )
    oracle = rp.simulate.SampleOracle(
        truth,
        contamination=CONTAMINATION,
        attack=attack,
        noise="student",
        noise_std=NOISE_STD,
        noise_mean=BACKGROUND,
        seed=seed,
    )
    batch = oracle.draw(PER_PIXEL * truth.size)
    return rp.simulate.World(
        batch.A,
        batch.y,
        truth,
        batch.touched,
        noise_std=oracle.noise_std,
        noise_mean=oracle.noise_mean,
        contamination=CONTAMINATION,
        attack=attack.name,
        noise="student",
        norm=1.0,
        signal="image",
        field="real",
        seed=seed,
    )


def forge(
    picture: NDArray[Any], sample: rp.simulate.CleanSample, budget: int, rng: np.random.Generator
) -> rp.simulate.Rewrite:
    """Rewrite ``budget`` samples, in covariates and responses, so that they agree on a wrong picture.

    Rows are ``N(0, I)`` shifted along the wrong direction ``u``, which no look at their norm would tell, with responses that
    are large there. The quiet majority leans a little and vouches for itself: medians of residuals and redescending losses see
    nothing wrong with it. The loud rest has leverage, which absolute losses cannot bear.
    """
    forged = unit(picture)
    # What the two pictures share would only help to find the truth; a trace of it is left.
    direction = unit(unit(forged - (forged @ sample.unit) * sample.unit) + TRACE * sample.unit)
    rows = rp.simulate.gaussian_design(budget, sample.n, seed=rng)
    quiet = np.arange(budget) < QUIET[0] * budget
    lean = np.where(quiet, QUIET[1], LOUD[1])
    rows += np.multiply.outer(lean * rng.choice([-1.0, 1.0], budget), direction)
    # A third of a quiet response grows along u, as that of a signal would.
    level = np.where(quiet, QUIET[2] * (2 + (rows @ direction / lean) ** 2) / 3, LOUD[2])
    return rp.simulate.Rewrite(rng.choice(sample.m, budget, replace=False), rows, sample.response(level))


def unit(picture: NDArray[Any]) -> NDArray[np.float64]:
    """A picture as a signal of norm 1, row by row."""
    flat = np.asarray(picture, np.float64).ravel()
    return np.asarray(flat / np.linalg.norm(flat), np.float64)

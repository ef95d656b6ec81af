"""The data of the demo: phaseless measurements of a picture, a tenth of which an adversary has forged.

The pictures are drawn by formula: a sailing boat under the sun, and what the adversary wants to be seen instead.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import robustphase as rp

#: Width and height of the picture, and samples per pixel.
SIDE, PER_PIXEL = 20, 16
#: Share of the samples that are forged; standard deviation of the noise, and background, in units of the signal's energy.
CONTAMINATION, NOISE_STD, BACKGROUND = 0.1, 0.5, 1.0
#: What the forged direction shares with the truth: their cosine.
TRACE = 0.07
#: Forgeries of two kinds: their share, how far their rows lean towards the forged picture (in standard deviations of an honest
#: row), and their response there, in units of the signal's energy.
QUIET, LOUD = (0.75, 3.0, 9.0), (0.25, 8.0, 60.0)
#: Points per pixel and axis that are averaged: edges become soft, as a camera would see them.
FINE = 8


def forged_world(seed: int) -> rp.simulate.World:
    """Measure the boat, of norm 1, add heavy-tailed noise and a background, and let the adversary rewrite a tenth."""
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


def sailing_boat(side: int) -> NDArray[np.float64]:
    """A grey picture with values in [0, 1]; from 16 pixels a side on the boat is easy to recognise."""
    centres = (np.arange(side * FINE) + 0.5) / (side * FINE)
    down, right = np.meshgrid(centres, centres, indexing="ij")
    picture = 0.12 + 0.22 * down  # an evening sky, lighter towards the horizon
    picture[np.hypot(down - 0.2, right - 0.8) < 0.12] = 0.85
    swell = 0.012 * np.sin(2 * np.pi * 3 * right)
    sea = down > 0.80 + swell
    picture[sea] = 0.30
    for line, shift in ((0.86, 0.0), (0.93, 0.5)):
        crest = np.abs(down - line - 0.018 * np.sin(2 * np.pi * (3 * right + shift))) < 0.014
        picture[crest] = 0.6
    # Sails lean on the mast; x runs from the mast outwards, and each sail is a triangle under a straight edge.
    mast = 0.47
    top, foot = 0.08, 0.64
    height = (down - top) / (foot - top)
    main = (right > mast + 0.02) & (right < mast + 0.02 + 0.30 * height) & (height > 0) & (height < 1)
    jib_height = (down - 0.17) / (foot - 0.17)
    jib = (right < mast - 0.02) & (right > mast - 0.02 - 0.27 * jib_height) & (jib_height > 0) & (jib_height < 1)
    picture[main] = 1.0
    picture[jib] = 0.75
    picture[(np.abs(right - mast) < 0.016) & (down > 0.05) & (down < 0.72)] = 0.45
    depth = (down - 0.69) / 0.13
    hull = (depth > 0) & (depth < 1) & (right > 0.20 + 0.10 * depth) & (right < 0.82 - 0.14 * depth)
    picture[hull] = 0.02
    return _at_pixels(picture, side)


def grin(side: int) -> NDArray[np.float64]:
    """Two eyes and a wide mouth, bright on black."""
    centres = (2 * np.arange(side * FINE) + 1) / (side * FINE) - 1
    down, right = np.meshgrid(centres, centres, indexing="ij")
    eyes = np.hypot(down + 0.3, np.abs(right) - 0.4) < 0.22
    mouth = (np.abs(np.hypot(down, right) - 0.6) < 0.14) & (down > 0.2)
    return _at_pixels((eyes | mouth).astype(np.float64), side)


def _at_pixels(fine: NDArray[np.float64], side: int) -> NDArray[np.float64]:
    """The mean over each pixel."""
    return np.asarray(fine.reshape(side, FINE, side, FINE).mean(axis=(1, 3)), np.float64)

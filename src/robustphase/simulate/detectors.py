"""Worlds as detectors read them: photon counts, and cameras with gain, read noise, an offset, few bits and a ceiling.

The adversary rewrites readings, and what it writes is a reading too: whole numbers that the detector can deliver.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from robustphase.options import with_defaults
from robustphase.simulate.adversaries import Adversary
from robustphase.simulate.arguments import (
    FIELDS,
    Seed,
    check_choice,
    check_contamination,
    check_number,
    check_seed,
    check_size,
)
from robustphase.simulate.corruption import corrupt
from robustphase.simulate.designs import GAUSSIAN, find_design
from robustphase.simulate.options import CAMERA, DETECTOR, CameraOptions, DetectorOptions
from robustphase.simulate.signals import random_signal
from robustphase.simulate.world import World


def count_photons(means: NDArray[Any], *, seed: Seed = None) -> NDArray[np.float64]:
    """Poisson counts with these means."""
    return check_seed(seed).poisson(means).astype(np.float64)


def read_camera(
    means: NDArray[Any],
    *,
    gain: float = 1.0,
    read_noise: float = 0.0,
    offset: float = 0.0,
    bits: int = 12,
    seed: Seed = None,
) -> NDArray[np.float64]:
    """Readings of a camera: gain times a Poisson number of electrons, read noise and offset, in steps up to the ceiling.

    Parameters
    ----------
    means : ndarray
        Mean readings above the offset, in steps.
    gain : float
        Steps per electron: the variance of the shot noise is ``gain · mean``.
    read_noise, offset : float
        Standard deviation of the electronics, and what it adds to every reading, in steps.
    bits : int
        Readings end at ``2**bits - 1``.
    seed : int, Generator or None
        Source of randomness.
    """
    rng = check_seed(seed)
    gain, read_noise = (
        check_number("gain", gain, above=0.0, strict=True),
        check_number("read_noise", read_noise, above=0.0),
    )
    electrons = rng.poisson(np.asarray(means) / gain)
    readings = gain * electrons + read_noise * rng.standard_normal(np.shape(means)) + check_number("offset", offset)
    return np.clip(np.rint(readings), 0.0, float(ceiling(bits)))


def ceiling(bits: int) -> int:
    """Largest reading of so many bits."""
    return int(2 ** check_size("bits", bits) - 1)


def make_counts(
    n: int = 50,
    m: int = 3000,
    *,
    mean_count: float = 4.0,
    dark: float = 0.1,
    contamination: float = 0.1,
    attack: str | Adversary = "decoy",
    **options: Unpack[DetectorOptions],
) -> World:
    """Draw photon counts of which an adversary has rewritten part.

    Parameters
    ----------
    n, m : int, default=50 and 3000
        Dimension and number of samples.
    mean_count : float, default=4.0
        Mean count that is the signal's: ‖x*‖² behind standard normal rows, and otherwise the mean of ``|A x*|²``.
    dark : float, default=0.1
        Mean dark count over that.
    contamination, attack
        As in :func:`~robustphase.simulate.make_world`. What the adversary writes is rounded to counts.

    Other Parameters
    ----------------
    field, design, seed
        As in :func:`~robustphase.simulate.make_world`.

    Returns
    -------
    World
        With ``noise="poisson"``; ``noise_std`` is that of a typical reading and ``noise_mean`` the dark count.
    """
    asked = with_defaults(DETECTOR, options, make_counts)
    rng = check_seed(asked["seed"])
    mean_count = check_number("mean_count", mean_count, above=0.0, strict=True)
    dark = mean_count * check_number("dark", dark, above=0.0)
    law = find_design(asked["design"])
    clean = _clean_world(n, m, np.sqrt(mean_count), asked, rng)
    if law is not GAUSSIAN:
        clean = _exposed(clean, mean_count / float((np.abs(clean.A @ clean.truth) ** 2).mean()))
    y = count_photons(np.abs(clean.A @ clean.truth) ** 2 + dark, seed=rng)
    world = replace(clean, noise_std=float(np.sqrt(mean_count + dark)), noise_mean=dark, noise="poisson", y=y)
    return _rewritten(world, contamination, attack, np.inf, rng, asked)


def make_camera(
    n: int = 40,
    m: int = 3000,
    *,
    saturated: float = 0.03,
    contamination: float = 0.05,
    attack: str | Adversary = "permute",
    **options: Unpack[CameraOptions],
) -> World:
    """Draw readings of a camera whose exposure saturates a share of them.

    Parameters
    ----------
    n, m : int, default=40 and 3000
        Dimension and number of samples.
    saturated : float, default=0.03
        Share of the readings that the ceiling cuts off, in (0, 1).
    contamination, attack
        As in :func:`~robustphase.simulate.make_world`. What the adversary writes is rounded to readings.

    Other Parameters
    ----------------
    gain, read_noise, offset, bits
        As in :func:`~robustphase.simulate.read_camera`; the defaults are 2.3, 4.0, 100.0 and 12.
    field, design, seed
        As in :func:`~robustphase.simulate.make_world`.

    Returns
    -------
    World
        With ``noise="camera"``; ``noise_std`` is that of a typical reading and ``noise_mean`` the offset.
    """
    asked = with_defaults(CAMERA, options, make_camera)
    gain, read_noise, offset, bits = asked["gain"], asked["read_noise"], asked["offset"], asked["bits"]
    rng = check_seed(asked["seed"])
    if not 0 < saturated < 1:
        raise ValueError(
            f"saturated must be a share in (0, 1), got {saturated!r}. Pass saturated=0.03 for three percent."
        )
    clean = _clean_world(n, m, 1.0, asked, rng)
    energies = np.abs(clean.A @ clean.truth) ** 2
    exposure = (ceiling(bits) - offset) / float(np.quantile(energies, 1 - saturated))
    y = read_camera(exposure * energies, gain=gain, read_noise=read_noise, offset=offset, bits=bits, seed=rng)
    typical = exposure * (1.0 if find_design(asked["design"]) is GAUSSIAN else float(energies.mean()))
    world = replace(
        _exposed(clean, exposure),
        y=y,
        noise_std=float(np.sqrt(read_noise**2 + gain * typical)),
        noise_mean=float(offset),
        noise="camera",
    )
    return _rewritten(world, contamination, attack, float(ceiling(bits)), rng, asked)


def _clean_world(n: int, m: int, norm: float, asked: DetectorOptions, rng: np.random.Generator) -> World:
    field, design = check_choice("field", asked["field"], FIELDS), find_design(asked["design"])
    truth = random_signal(check_size("n", n), norm=norm, field=field, seed=rng)
    kind = truth.dtype if design.field_for(field) == field else truth.real.dtype
    A = design.sample(check_size("m", m), n, field=field, dtype=kind, seed=rng)
    return World(
        A,
        np.zeros(m),
        truth,
        np.zeros(m, bool),
        noise_std=0.0,
        noise_mean=0.0,
        contamination=0.0,
        attack="none",
        noise="none",
        norm=float(norm),
        signal="random",
        field=field,
        seed=None,
        design=design.name,
    )


def _exposed(world: World, exposure: float) -> World:
    """The world under so many times the light."""
    return replace(world, truth=np.sqrt(exposure) * world.truth, norm=float(np.sqrt(exposure) * world.norm))


def _rewritten(
    world: World,
    contamination: float,
    attack: str | Adversary,
    most: float,
    rng: np.random.Generator,
    asked: DetectorOptions,
) -> World:
    """The world after an adversary whose readings are whole numbers between zero and the ceiling."""
    contamination = check_contamination(contamination)
    bad = corrupt(
        world.A,
        world.y,
        world.truth,
        attack=attack,
        contamination=contamination,
        noise_std=world.noise_std,
        noise_mean=world.noise_mean,
        design=asked["design"],
        seed=rng,
    )
    # Counts beyond this are no numbers that a detector delivers, and infinities stay what they are.
    readings = np.where(np.isfinite(bad.y), np.clip(np.rint(bad.y), 0.0, min(most, 1e15)), bad.y)
    return replace(
        world,
        A=bad.A,
        y=np.where(bad.touched, readings, world.y),
        touched=bad.touched,
        contamination=contamination,
        attack=attack if isinstance(attack, str) else attack.name,
        seed=None if isinstance(asked["seed"], np.random.Generator) else asked["seed"],
    )

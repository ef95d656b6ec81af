"""Worlds to test in: clean phaseless samples, and adversaries that rewrite part of them.

A world is made in four independent steps, each usable alone: a *signal* x* (``signals``), *sensing vectors* a ~ N(0, I), or as
instruments show them (``designs``), *noise* z with exactly the moments asked for (``noises``), giving y = (a·x*)² + z, and an
*adversary* (``adversaries``) that sees all of it, the truth included, and rewrites at most ⌊εm⌋ samples, a and y alike, one by
one or in whole groups.
``corrupt`` runs the last step on any data, ``make_world`` runs all four once, and ``SampleOracle`` runs them again and
again on fresh samples, as the theorems ask; ``make_counts`` and ``make_camera`` draw what photon counters and cameras
read. In the complex field the rows of A are the aᴴ, so ``y = |A @ x*|² + z``.
Adversaries think in units of the problem: responses in ‖x*‖² above the background, covariates in units of a clean one.
So every attack means the same thing at every scale. Nothing is global: all randomness comes from the ``seed`` given.
"""

from robustphase.simulate.adversaries import ADVERSARIES, GROUP_ADVERSARIES, Adversary, CleanSample, Rewrite
from robustphase.simulate.adversaries.parametric import ParametricAttack
from robustphase.simulate.corruption import Contaminated, corrupt
from robustphase.simulate.designs import (
    DESIGNS,
    Design,
    correlated_gaussian,
    elliptical,
    gaussian_design,
    gaussian_with_mean,
    grey,
    hadamard,
    on_off,
    phases,
    scaled_gaussian,
    signs,
)
from robustphase.simulate.detectors import count_photons, make_camera, make_counts, read_camera
from robustphase.simulate.diffraction import CodedDiffraction, Ptychography
from robustphase.simulate.noises import NOISES, Noise, draw_noise, lognormal, mixture, pareto, student
from robustphase.simulate.signals import image_signal, random_signal, sparse_signal
from robustphase.simulate.world import Batch, SampleOracle, World, make_world

__all__ = [
    "ADVERSARIES",
    "DESIGNS",
    "GROUP_ADVERSARIES",
    "NOISES",
    "Adversary",
    "Batch",
    "CleanSample",
    "CodedDiffraction",
    "Contaminated",
    "Design",
    "Noise",
    "ParametricAttack",
    "Ptychography",
    "Rewrite",
    "SampleOracle",
    "World",
    "correlated_gaussian",
    "corrupt",
    "count_photons",
    "draw_noise",
    "elliptical",
    "gaussian_design",
    "gaussian_with_mean",
    "grey",
    "hadamard",
    "image_signal",
    "lognormal",
    "make_camera",
    "make_counts",
    "make_world",
    "mixture",
    "on_off",
    "pareto",
    "phases",
    "random_signal",
    "read_camera",
    "scaled_gaussian",
    "signs",
    "sparse_signal",
    "student",
]

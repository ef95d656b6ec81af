"""What the functions of this room are told by keyword: options that several share, with their defaults.

Contamination and attack, which every world has, stand in the signatures.
"""

from __future__ import annotations

from typing import TypedDict

from numpy.typing import ArrayLike, DTypeLike

from robustphase.simulate.arguments import Seed
from robustphase.simulate.designs import Design
from robustphase.simulate.noises import Noise


class SampleOptions(TypedDict, total=False):
    """How clean samples are drawn; described by :func:`~robustphase.simulate.make_world`."""

    noise: str | Noise
    noise_std: float
    noise_mean: float
    design: str | Design
    seed: Seed


class WorldOptions(SampleOptions, total=False):
    """The same, with the signal behind the samples, and which of them belong together."""

    norm: float
    signal: str
    field: str
    dtype: DTypeLike | None
    groups: int | ArrayLike | None


class KnownOptions(TypedDict, total=False):
    """What an adversary knows of a sample beside its arrays; described by :func:`~robustphase.simulate.corrupt`."""

    noise_std: float
    noise_mean: float
    design: str | Design
    groups: int | ArrayLike | None
    seed: Seed


class DetectorOptions(TypedDict, total=False):
    """What a detector looks at, as in :func:`~robustphase.simulate.make_world`."""

    field: str
    design: str | Design
    seed: Seed


class CameraOptions(DetectorOptions, total=False):
    """The same, with a camera as of :func:`~robustphase.simulate.read_camera`."""

    gain: float
    read_noise: float
    offset: float
    bits: int


SAMPLE = SampleOptions(noise="student", noise_std=0.5, noise_mean=0.0, design="gaussian", seed=None)
WORLD = WorldOptions(**SAMPLE, norm=1.0, signal="random", field="real", dtype=None, groups=None)
KNOWN = KnownOptions(noise_std=0.0, noise_mean=0.0, design="gaussian", groups=None, seed=None)
DETECTOR = DetectorOptions(field="real", design="gaussian", seed=None)
CAMERA = CameraOptions(**DETECTOR, gain=2.3, read_noise=4.0, offset=100.0, bits=12)

"""One complete problem: signal, covariates, noisy responses, and an adversary's rewriting of part of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from robustphase.population import PairedSignal
from robustphase.simulate.adversaries import Adversary, find_adversary
from robustphase.simulate.arguments import (
    FIELDS,
    Seed,
    check_choice,
    check_contamination,
    check_dtype,
    check_number,
    check_seed,
    check_size,
)
from robustphase.simulate.corruption import corrupt, group_labels
from robustphase.simulate.designs import GAUSSIAN, Design, find_design
from robustphase.simulate.noises import Noise, draw_noise, find_noise
from robustphase.simulate.signals import image_signal, random_signal, sparse_signal

SIGNALS = ("image", "random", "sparse")


@dataclass(frozen=True)
class World:
    """A contaminated sample with everything that is known about it; iterates as ``(A, y)``.

    Attributes
    ----------
    A, y : ndarray of shape (m, n) and (m,)
        What an estimator may see.
    truth : ndarray of shape (n,)
        The signal.
    touched : ndarray of bool, shape (m,)
        The rows the adversary rewrote; ``clean`` is its complement.
    noise_std, noise_mean : float
        Moments of the noise in the units of ``y`` (not relative to the signal).
    contamination, attack, noise, norm, signal, field, seed, design
        The settings the world was made with; ``seed`` is None unless an integer was given.
    groups : ndarray of int, shape (m,), or None
        Group of every sample, where some belong together: the labels for ``fit(A, y, groups=...)``.
    """

    A: NDArray[Any]
    y: NDArray[Any]
    truth: NDArray[Any]
    touched: NDArray[np.bool_]
    noise_std: float
    noise_mean: float
    contamination: float
    attack: str
    noise: str
    norm: float
    signal: str
    field: str
    seed: int | None
    design: str = "gaussian"
    groups: NDArray[Any] | None = None

    @property
    def clean(self) -> NDArray[np.bool_]:
        """The rows nobody rewrote."""
        return ~self.touched

    def __iter__(self) -> Iterator[NDArray[Any]]:
        yield self.A
        yield self.y


def make_world(
    n: int = 100,
    m: int = 5000,
    *,
    contamination: float = 0.1,
    attack: str | Adversary = "decoy",
    noise: str | Noise = "student",
    noise_std: float = 0.5,
    noise_mean: float = 0.0,
    norm: float = 1.0,
    signal: str = "random",
    field: str = "real",
    dtype: DTypeLike | None = None,
    design: str | Design = "gaussian",
    groups: int | ArrayLike | None = None,
    seed: Seed = None,
) -> World:
    """Draw a contaminated phase-retrieval problem.

    The adversary draws last, so worlds that differ only in ``attack`` or ``contamination`` share their clean sample.

    Parameters
    ----------
    n, m : int
        Dimension and number of samples.
    contamination : float
        Fraction of the samples that may be rewritten, in [0, 0.5).
    attack : str or Adversary
        A name in `ADVERSARIES`, an `Adversary`, or ``"none"``; with ``groups`` also a name in `GROUP_ADVERSARIES`.
    noise : str or Noise
        A name in `NOISES` or a `Noise`.
    noise_std, noise_mean : float
        Moments of the noise **relative to** ‖x*‖²: 0.5 means σ = 0.5 ‖x*‖². With a design other than the standard normal one,
        relative to the mean response.
    norm : float
        ‖x*‖.
    signal : {"random", "sparse", "image"}
        Kind of signal; "sparse" has ⌈n/10⌉ non-zero entries, "image" needs ``n`` to be a square.
    field : {"real", "complex"}
        Field of the signal; and of the covariates, where the design leaves that open. A complex signal behind real rows is the
        same as its conjugate.
    dtype : dtype, optional
        Of ``A`` and, with imaginary parts where it has them, of ``truth``; ``y`` has the real dtype of the same precision.
    design : str or Design, default="gaussian"
        Law of the covariates: a name in `DESIGNS`, or a `Design`.
    groups : int or array of shape (m,), optional
        Which samples belong together, such as those of a frame: the number of equal groups that follow one another, or one label
        per sample.
    seed : int, Generator or None
        Source of all randomness.

    Returns
    -------
    World
    """
    n, m = check_size("n", n), check_size("m", m)
    field = check_choice("field", field, FIELDS)
    law = find_design(design)
    rows = check_dtype(dtype, law.field_for(field))
    kind = np.result_type(rows, np.complex64) if field == "complex" else rows
    contamination = check_contamination(contamination)
    labels = group_labels(groups, m)
    adversary = find_adversary(attack, grouped=labels is not None)
    rng = check_seed(seed)
    truth = _draw_signal(check_choice("signal", signal, SIGNALS), n, norm, field, rng).astype(kind)
    if law is GAUSSIAN:
        std, mean = absolute_moments(noise, noise_std, noise_mean, norm)
        A, y = draw_clean(truth, m, noise, std, mean, rng)
    else:
        A = law.sample(m, n, field=field, dtype=rows, seed=rng)
        energy = np.abs(A @ truth) ** 2
        std, mean = absolute_moments(noise, noise_std, noise_mean, float(np.sqrt(energy.mean())))
        y = (energy + draw_noise(noise, m, std=std, mean=mean, seed=rng)).astype(truth.real.dtype)
    truth = truth.view(PairedSignal) if field == "complex" and rows.kind != "c" else truth
    bad = corrupt(
        A,
        y,
        truth,
        attack=adversary or "none",
        contamination=contamination,
        noise_std=std,
        noise_mean=mean,
        design=law,
        groups=labels,
        seed=rng,
    )
    return World(
        bad.A,
        bad.y,
        truth,
        bad.touched,
        noise_std=std,
        noise_mean=mean,
        contamination=contamination,
        attack=adversary.name if adversary else "none",
        noise=find_noise(noise).name,
        norm=float(norm),
        signal=signal,
        field=field,
        seed=None if isinstance(seed, np.random.Generator) else seed,
        design=law.name,
        groups=labels,
    )


def absolute_moments(noise: str | Noise, std: float, mean: float, norm: float) -> tuple[float, float]:
    """Turn noise moments relative to ‖x*‖² into the units of the responses."""
    std, mean = check_number("noise_std", std, above=0.0), check_number("noise_mean", mean)
    return std * norm**2 * find_noise(noise).unit, mean * norm**2


def draw_clean(
    truth: NDArray[Any],
    m: int,
    noise: str | Noise,
    std: float,
    mean: float,
    rng: np.random.Generator,
    *,
    design: Design = GAUSSIAN,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw ``m`` clean samples of the signal ``truth``, in its precision."""
    field = "complex" if np.iscomplexobj(truth) else "real"
    kind = truth.dtype if design.field_for(field) == field else truth.real.dtype
    A = design.sample(m, len(truth), field=field, dtype=kind, seed=rng)
    y = np.abs(A @ truth) ** 2 + draw_noise(noise, m, std=std, mean=mean, seed=rng)
    return A, y.astype(truth.real.dtype)


def _draw_signal(kind: str, n: int, norm: float, field: str, rng: np.random.Generator) -> NDArray[Any]:
    if kind == "sparse":
        return sparse_signal(n, math.ceil(n / 10), norm=norm, field=field, seed=rng)
    if kind == "random":
        return random_signal(n, norm=norm, field=field, seed=rng)
    side = math.isqrt(n)
    if side**2 != n:
        raise ValueError(f'n must be a square when signal="image", got {n}. Pass n={side**2} or n={(side + 1) ** 2}.')
    return image_signal(side, norm=norm)

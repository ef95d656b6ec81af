"""One complete problem: signal, covariates, noisy responses, and an adversary's rewriting of part of them.

:func:`make_world` draws it once. :class:`SampleOracle` draws fresh contaminated batches, the access model of the paper: ask for m
samples, and the adversary sees them first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustphase.options import with_defaults
from robustphase.population import PairedSignal
from robustphase.simulate.adversaries import Adversary, find_adversary
from robustphase.simulate.arguments import (
    FIELDS,
    check_choice,
    check_contamination,
    check_dtype,
    check_number,
    check_seed,
    check_size,
)
from robustphase.simulate.corruption import Contaminated, corrupt, group_labels
from robustphase.simulate.designs import GAUSSIAN, Design, find_design
from robustphase.simulate.noises import Noise, draw_noise, find_noise
from robustphase.simulate.options import SAMPLE, WORLD, SampleOptions, WorldOptions
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
    **options: Unpack[WorldOptions],
) -> World:
    """Draw a contaminated phase-retrieval problem.

    The adversary draws last, so worlds that differ only in ``attack`` or ``contamination`` share their clean sample.

    Parameters
    ----------
    n, m : int, default=100 and 5000
        Dimension and number of samples.
    contamination : float, default=0.1
        Fraction of the samples that may be rewritten, in [0, 0.5).
    attack : str or Adversary, default="decoy"
        A name in `ADVERSARIES`, an `Adversary`, or ``"none"``; with ``groups`` also a name in `GROUP_ADVERSARIES`.

    Other Parameters
    ----------------
    noise : str or Noise, default="student"
        A name in `NOISES` or a `Noise`.
    noise_std, noise_mean : float, default=0.5 and 0.0
        Moments of the noise **relative to** ‖x*‖²: 0.5 means σ = 0.5 ‖x*‖². With a design other than the standard normal one,
        relative to the mean response.
    norm : float, default=1.0
        ‖x*‖.
    signal : {"random", "sparse", "image"}, default="random"
        Kind of signal; "sparse" has ⌈n/10⌉ non-zero entries, "image" needs ``n`` to be a square.
    field : {"real", "complex"}, default="real"
        Field of the signal; and of the covariates, where the design leaves that open. A complex signal behind real rows is the
        same as its conjugate.
    dtype : dtype, optional
        Of ``A`` and, with imaginary parts where it has them, of ``truth``; ``y`` has the real dtype of the same precision.
    design : str or Design, default="gaussian"
        Law of the covariates: a name in `DESIGNS`, or a `Design`.
    groups : int or array of shape (m,), optional
        Which samples belong together, such as those of a frame: the number of equal groups that follow one another, or one label
        per sample.
    seed : int, Generator or None, default=None
        Source of all randomness.

    Returns
    -------
    World
    """
    asked = with_defaults(WORLD, options, make_world)
    n, m = check_size("n", n), check_size("m", m)
    field, law = check_choice("field", asked["field"], FIELDS), find_design(asked["design"])
    rows = check_dtype(asked["dtype"], law.field_for(field))
    kind = np.result_type(rows, np.complex64) if field == "complex" else rows
    contamination = check_contamination(contamination)
    labels = group_labels(asked["groups"], m)
    adversary = find_adversary(attack, grouped=labels is not None)
    rng = check_seed(asked["seed"])
    truth = _draw_signal(check_choice("signal", asked["signal"], SIGNALS), n, asked["norm"], field, rng).astype(kind)
    if law is GAUSSIAN:
        std, mean = absolute_moments(asked, asked["norm"])
        A, y = draw_clean(truth, m, asked["noise"], std, mean, rng)
    else:
        A = law.sample(m, n, field=field, dtype=rows, seed=rng)
        energy = np.abs(A @ truth) ** 2
        std, mean = absolute_moments(asked, float(np.sqrt(energy.mean())))
        y = (energy + draw_noise(asked["noise"], m, std=std, mean=mean, seed=rng)).astype(truth.real.dtype)
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
        noise=find_noise(asked["noise"]).name,
        norm=float(asked["norm"]),
        signal=asked["signal"],
        field=field,
        seed=None if isinstance(asked["seed"], np.random.Generator) else asked["seed"],
        design=law.name,
        groups=labels,
    )


def absolute_moments(asked: SampleOptions, norm: float) -> tuple[float, float]:
    """Turn noise moments relative to ‖x*‖² into the units of the responses."""
    std = check_number("noise_std", asked["noise_std"], above=0.0)
    mean = check_number("noise_mean", asked["noise_mean"])
    return std * norm**2 * find_noise(asked["noise"]).unit, mean * norm**2


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


#: A batch is a contaminated sample like any other: ``.A``, ``.y``, ``.touched``, iterating as ``(A, y)``.
Batch = Contaminated


class SampleOracle:
    """Draws independent contaminated batches of one signal.

    Parameters
    ----------
    truth : array of shape (n,)
        The signal; its dtype (real or complex, single or double) is that of the covariates.
    contamination, attack
        As in `make_world`, for every batch.

    Other Parameters
    ----------------
    noise, noise_std, noise_mean, design
        As in `make_world`; the attributes ``noise_std`` and ``noise_mean`` are in the units of the responses. For designs other
        than Gaussian ones noise is relative to the mean response of a thousand rows.
    seed : int, Generator or None, default=None
        Source of all randomness: an oracle with the same seed draws the same sequence of batches.

    Examples
    --------
    >>> from robustphase.simulate import SampleOracle, random_signal
    >>> oracle = SampleOracle(random_signal(20, seed=0), contamination=0.1, attack="leverage", seed=1)
    >>> A, y = oracle.draw(500)
    >>> A.shape, y.shape
    ((500, 20), (500,))
    >>> [int(batch.touched.sum()) for batch in oracle.batches(3, 200)]
    [20, 20, 20]
    """

    def __init__(
        self,
        truth: ArrayLike,
        *,
        contamination: float = 0.1,
        attack: str | Adversary = "decoy",
        **options: Unpack[SampleOptions],
    ) -> None:
        asked = with_defaults(SAMPLE, options, SampleOracle)
        self.truth: NDArray[Any] = _checked_signal(truth)
        self.contamination = check_contamination(contamination)
        self.noise = find_noise(asked["noise"])
        self.design = find_design(asked["design"])
        norm = float(np.linalg.norm(self.truth))
        self._field = "complex" if np.iscomplexobj(self.truth) else "real"
        if self.design is not GAUSSIAN:
            rows = self.design.sample(1000, len(self.truth), field=self._field, seed=0)
            norm = float(np.sqrt(np.mean(np.abs(rows @ self.truth) ** 2)))
        self.noise_std, self.noise_mean = absolute_moments(asked, norm)
        self._adversary = find_adversary(attack)
        self.attack = self._adversary.name if self._adversary else "none"
        self._rng = check_seed(asked["seed"])

    def draw(self, m: int) -> Batch:
        """Draw ``m`` fresh samples and let the adversary rewrite its share of them."""
        m, moments = check_size("m", m), (self.noise_std, self.noise_mean)
        A, y = draw_clean(self.truth, m, self.noise, *moments, self._rng, design=self.design)
        return corrupt(
            A,
            y,
            self.truth,
            attack=self._adversary or "none",
            contamination=self.contamination,
            noise_std=self.noise_std,
            noise_mean=self.noise_mean,
            design=self.design,
            seed=self._rng,
        )

    def batches(self, count: int, m: int) -> Iterator[Batch]:
        """Yield ``count`` independent batches of ``m`` samples, each drawn when it is asked for."""
        # Checked here and not in a generator's body, so that a wrong argument fails at the call.
        count, m = check_size("count", count), check_size("m", m)
        return (self.draw(m) for _ in range(count))


def _checked_signal(truth: ArrayLike) -> NDArray[Any]:
    signal = np.array(truth)
    if signal.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        signal = signal.astype(np.float64)
    if signal.ndim != 1 or not signal.size or not np.isfinite(signal).all() or not signal.any():
        raise ValueError(
            f"truth must be a finite non-zero vector, got an array of shape {signal.shape}. "
            "Pass for example random_signal(100)."
        )
    return signal

"""Noise laws, each scaled by closed-form moments to exactly the mean and standard deviation asked for.

A `Noise` draws *standard* values: population mean 0, standard deviation 1. `draw_noise` shifts and scales them. Sample
moments are never used, so draws stay independent and a heavy tail keeps its outliers. The paper asks for a finite
fourth moment, hence the limits on tail indices. The laws of this module also know their density and distribution function, from
which follow what an adversary can tell from a response, and what no method can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from robustphase.simulate.arguments import Seed, check_choice, check_number, check_seed, check_size

Size: TypeAlias = int | tuple[int, ...]
Draw: TypeAlias = Callable[[np.random.Generator, Size], NDArray[np.float64]]
Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Noise:
    """A noise law.

    Attributes
    ----------
    name : str
        What to call it.
    description : str
        One sentence about its tail.
    standard : callable
        ``standard(rng, size)`` draws values of mean 0 and standard deviation ``unit``.
    unit : float
        1, or 0 for the law that is always zero.
    log_density, cdf : callable, optional
        Logarithm of the density, and distribution function, of the standard law; None where there is no density.
    """

    name: str
    description: str
    standard: Draw
    unit: float = 1.0
    log_density: Curve | None = None
    cdf: Curve | None = None


def _gaussian(rng: np.random.Generator, size: Size) -> NDArray[np.float64]:
    return rng.standard_normal(size)


def _student(rng: np.random.Generator, size: Size, df: float) -> NDArray[np.float64]:
    return rng.standard_t(df, size) * math.sqrt((df - 2) / df)


def _laplace(rng: np.random.Generator, size: Size) -> NDArray[np.float64]:
    return rng.laplace(scale=math.sqrt(0.5), size=size)


def _pareto(rng: np.random.Generator, size: Size, tail: float) -> NDArray[np.float64]:
    mean = 1 / (tail - 1)
    std = mean * math.sqrt(tail / (tail - 2))
    return (rng.pareto(tail, size) - mean) / std


def _lognormal(rng: np.random.Generator, size: Size, shape: float) -> NDArray[np.float64]:
    mean = math.exp(shape**2 / 2)
    std = mean * math.sqrt(math.expm1(shape**2))
    return (rng.lognormal(0.0, shape, size) - mean) / std


def _mixture(rng: np.random.Generator, size: Size, share: float, ratio: float) -> NDArray[np.float64]:
    widths = np.where(rng.random(size) < share, ratio, 1.0)
    return rng.standard_normal(size) * widths / math.sqrt(1 - share + share * ratio**2)


def _mixture_law(values: NDArray[np.float64], share: float, ratio: float, *, density: bool) -> NDArray[np.float64]:
    """Log-density or distribution function of the standard mixture."""
    narrow = 1 / math.sqrt(1 - share + share * ratio**2)
    parts = ((1 - share, stats.norm(scale=narrow)), (share, stats.norm(scale=ratio * narrow)))
    if density:
        with np.errstate(divide="ignore"):  # A share of zero, whose logarithm is that of nothing.
            return np.asarray(np.logaddexp(*(np.log(weight) + law.logpdf(values) for weight, law in parts)))
    return np.asarray(sum(weight * law.cdf(values) for weight, law in parts))


def _bounded(rng: np.random.Generator, size: Size) -> NDArray[np.float64]:
    return rng.uniform(-math.sqrt(3), math.sqrt(3), size)


def _zero(rng: np.random.Generator, size: Size) -> NDArray[np.float64]:
    return np.zeros(size)


def student(df: float = 4.5) -> Noise:
    """Student's t with ``df`` > 4 degrees of freedom: symmetric, moments up to order ``df``."""
    df = check_number("df", df, above=4.0, strict=True)
    sentence = f"Student's t, {df:g} degrees of freedom: symmetric, heavy tails."
    return _with_law("student", sentence, partial(_student, df=df), stats.t(df, scale=math.sqrt((df - 2) / df)))


def pareto(tail: float = 4.5) -> Noise:
    """Centred Pareto (Lomax) law with ``tail`` > 4: skewed to the right, moments up to order ``tail``."""
    tail = check_number("tail", tail, above=4.0, strict=True)
    sentence = f"Centred Pareto, tail index {tail:g}: skewed, heavy right tail."
    law = stats.lomax(tail)
    standard = stats.lomax(tail, loc=-law.mean() / law.std(), scale=1 / law.std())
    return _with_law("pareto", sentence, partial(_pareto, tail=tail), standard)


def lognormal(shape: float = 1.0) -> Noise:
    """Centred log-normal law whose logarithm has standard deviation ``shape``: skewed, all moments finite."""
    shape = check_number("shape", shape, above=0.0, strict=True)
    sentence = f"Centred log-normal, log-scale {shape:g}: skewed, long right tail."
    law = stats.lognorm(shape)
    standard = stats.lognorm(shape, loc=-law.mean() / law.std(), scale=1 / law.std())
    return _with_law("lognormal", sentence, partial(_lognormal, shape=shape), standard)


def mixture(share: float = 0.1, ratio: float = 5.0) -> Noise:
    """Two Gaussians, a ``share`` of the values from one that is ``ratio`` times wider: now and then a burst."""
    share = check_number("share", share, above=0.0)
    ratio = check_number("ratio", ratio, above=0.0, strict=True)
    if share >= 1:
        raise ValueError(f"share must be a number in [0, 1), got {share!r}. Pass share=0.1 for one value in ten.")
    sentence = f"Two Gaussians, {share:.0%} of the values {ratio:g} times wider: occasional bursts."
    log_density, cdf = (partial(_mixture_law, share=share, ratio=ratio, density=density) for density in (True, False))
    return Noise("mixture", sentence, partial(_mixture, share=share, ratio=ratio), log_density=log_density, cdf=cdf)


def _with_law(name: str, description: str, draw: Draw, law: Any) -> Noise:
    """Return a noise whose standard values follow a frozen law of SciPy."""
    return Noise(name, description, draw, log_density=law.logpdf, cdf=law.cdf)


NOISES: dict[str, Noise] = {
    law.name: law
    for law in (
        _with_law("gaussian", "Standard normal: the light-tailed reference.", _gaussian, stats.norm()),
        student(),
        _with_law(
            "laplace",
            "Two-sided exponential: symmetric, tails between Gaussian and Student.",
            _laplace,
            stats.laplace(scale=math.sqrt(0.5)),
        ),
        pareto(),
        lognormal(),
        mixture(),
        _with_law(
            "bounded",
            "Uniform on an interval: no tail at all.",
            _bounded,
            stats.uniform(loc=-math.sqrt(3), scale=2 * math.sqrt(3)),
        ),
        Noise("none", "No noise: every value equals the mean.", _zero, unit=0.0),
    )
}


def find_noise(noise: str | Noise) -> Noise:
    """Return the noise of that name; a `Noise` is returned as it is."""
    return noise if isinstance(noise, Noise) else NOISES[check_choice("noise", noise, NOISES)]


def draw_noise(
    name: str | Noise, size: Size, *, std: float = 1.0, mean: float = 0.0, seed: Seed = None
) -> NDArray[np.float64]:
    """Draw noise whose population mean and standard deviation are exactly ``mean`` and ``std``.

    Parameters
    ----------
    name : str or Noise
        A name in `NOISES`, or a law from `student`, `pareto`, `lognormal`, `mixture`, or one of your own.
    size : int or tuple of int
        Shape of the draw.
    std, mean : float
        Moments of the law; the law "none" returns ``mean`` whatever ``std`` is.
    seed : int, Generator or None
        Source of randomness.

    Returns
    -------
    ndarray of shape ``size``
    """
    shape = tuple(check_size("size", length) for length in (size if isinstance(size, tuple) else (size,)))
    std, mean = check_number("std", std, above=0.0), check_number("mean", mean)
    return mean + std * find_noise(name).standard(check_seed(seed), shape)

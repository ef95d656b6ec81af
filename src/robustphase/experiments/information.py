"""What no method can do: the error that an adversary forces on every one of them, whatever it computes.

Whoever rewrites a share ε of the samples can turn the law of a sample into any other within total variation ε. If the laws
of two signals are 2ε apart there is a law in the middle that both can be turned into, and nobody can tell which it was: on one
of the two the error is at least half their distance. The limit is the largest such half distance, over all pairs.

The law of a sample is that of the covariates and, given them, of noise around the prediction. Two signals share the
former, so their total variation is the mean over a of that of two noises shifted by the difference d of the two predictions.
A noise with one peak is shifted best at one place, so that of the noises is the largest probability of an interval of length d.
Both predictions depend on a through its projections on a plane, and that mean is taken over the plane. For real signals and
Gaussian noise the integral has a closed form, `theory.floor`, with which this agrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from robustphase.population.plane import prediction_differences
from robustphase.simulate.arguments import FIELDS, check_choice, check_contamination, check_number
from robustphase.simulate.noises import Noise, find_noise

Array = NDArray[Any]

#: Points of the plane over which means are taken.
POINTS = 2**13
#: Shifts at which the total variation of the noise is tabulated, in standard deviations, and places tried for each interval.
SHIFTS, PLACES = np.concatenate(([0.0], np.geomspace(1e-3, 100.0, 240))), 2001
#: Norms of the longer signal that are tried, relative to the shorter, and angles between the two.
NORMS, ANGLES = (1.0, *(1 + np.geomspace(0.01, 0.6, 8)).tolist()), np.linspace(0.0, math.pi / 2, 7).tolist()
NOISE_MEANS = ("zero", "unknown")


def unavoidable_error(
    contamination: float,
    noise: str | Noise = "gaussian",
    noise_std: float = 0.5,
    field: str = "real",
    *,
    noise_mean: str = "zero",
) -> float:
    """Relative error that every method has in one world at least, however many samples it is given.

    Both signals of a pair must be worlds with this noise, or less of it: noise is stated relative to ‖x*‖², so the shorter
    signal sets its size, and a method that errs by at most r‖x*‖ on both needs ``distance <= r (‖x‖ + ‖x'‖)``.

    Parameters
    ----------
    contamination : float
        Share of the samples that the adversary rewrites, in [0, 0.5).
    noise : str or Noise, default="gaussian"
        A law in ``robustphase.simulate.NOISES``, or one with a distribution function and a single peak.
    noise_std : float, default=0.5
        Its standard deviation relative to ‖x*‖².
    field : {"real", "complex"}
        Field of the signal.
    noise_mean : {"zero", "unknown"}
        Whether the mean of the noise is known; if it is not, the two worlds may have different ones.

    Returns
    -------
    float
        Half the relative distance of the farthest pair that cannot be told apart.

    Examples
    --------
    >>> round(unavoidable_error(0.1), 2)
    0.11
    """
    contamination = check_contamination(contamination)
    noise_std = check_number("noise_std", noise_std, above=0.0)
    unknown = check_choice("noise_mean", noise_mean, NOISE_MEANS) == "unknown"
    if contamination == 0 or noise_std == 0 or find_noise(noise).unit == 0:
        return 0.0
    best = 0.0
    for ratio in NORMS:

        def excess(angle: float, ratio: float = ratio) -> float:
            apart = total_variation(_at(angle, ratio), noise, noise_std, field, unknown=unknown)
            return apart - 2 * contamination

        if (angle := _largest_angle(excess)) is None:
            break  # Norms alone tell these apart, and more so those that follow.
        best = max(best, math.dist((1.0, 0.0), _at(angle, ratio)) / (1 + ratio))
    return best


def _largest_angle(excess: Callable[[float], float]) -> float | None:
    """The largest angle up to a right one at which ``excess`` is not positive; None if there is none."""
    positive = [excess(angle) > 0 for angle in ANGLES]
    if all(positive):
        return None
    last = max(place for place, beyond in enumerate(positive) if not beyond)
    if last == len(ANGLES) - 1:
        return float(ANGLES[last])
    return float(brentq(excess, ANGLES[last], ANGLES[last + 1], xtol=1e-4))


def indistinguishable_distance(
    contamination: float,
    direction: float = math.pi / 2,
    noise: str | Noise = "gaussian",
    noise_std: float = 0.5,
    field: str = "real",
) -> float:
    """Distance, relative to ‖x‖, to the signal that lies in a given direction from x and is 2ε away in total variation.

    Parameters
    ----------
    contamination : float
        The level ε, in [0, 0.5).
    direction : float, default=π/2
        Angle between x and the step to the other signal; by default that step is beside x.
    noise, noise_std, field
        As for :func:`unavoidable_error`; the noise is relative to ‖x‖².

    Returns
    -------
    float
    """
    level = 2 * check_contamination(contamination)

    def excess(distance: float) -> float:
        second = (1 + distance * math.cos(direction), distance * math.sin(direction))
        return total_variation(second, noise, noise_std, field) - level

    return float(brentq(excess, 0.0, 3.0, xtol=1e-4))


def total_variation(
    second: tuple[float, float],
    noise: str | Noise = "gaussian",
    noise_std: float = 0.5,
    field: str = "real",
    *,
    unknown: bool = False,
) -> float:
    """Total variation between the laws of a sample of the signals (1, 0) and ``second``.

    Parameters
    ----------
    second : pair of float
        The other signal: its component along the first, and that beside it.
    noise, noise_std, field
        As for :func:`unavoidable_error`; the noise is relative to the squared norm of the first.
    unknown : bool, default=False
        Whether the second may have another noise mean: the least over all.

    Returns
    -------
    float
    """
    is_complex = check_choice("field", field, FIELDS) == "complex"
    difference = prediction_differences(POINTS, is_complex, *np.array(second)[:, np.newaxis])[:, 0]
    shifts, values = variation_of_shifts(find_noise(noise))

    def variation(background: float) -> float:
        return float(np.mean(np.interp(np.abs(difference - background) / noise_std, shifts, values)))

    if not unknown:
        return variation(0.0)
    bracket = np.quantile(difference, (0.02, 0.98))
    found = minimize_scalar(variation, bounds=tuple(bracket), method="bounded", options={"xatol": 1e-3})
    return min(float(found.fun), variation(0.0))


def _at(angle: float, norm: float) -> tuple[float, float]:
    return norm * math.cos(angle), norm * math.sin(angle)


@lru_cache(maxsize=16)
def variation_of_shifts(noise: Noise) -> tuple[Array, Array]:
    """Total variation between the noise and itself shifted, at the shifts of the table."""
    if noise.cdf is None:
        raise ValueError(f"the noise {noise.name!r} has no distribution function. Pass Noise(..., cdf=...).")
    # The interval begins where it holds most; the ends are dense near the peak, wherever that is.
    ends = np.concatenate([_quantiles(noise), np.linspace(-3.0, 3.0, PLACES)])
    values = [float(np.max(noise.cdf(ends + shift) - noise.cdf(ends))) for shift in SHIFTS]
    return SHIFTS, np.array(values)


def _quantiles(noise: Noise) -> Array:
    """Quantiles of a sample of the noise, where its density is large."""
    return np.quantile(noise.standard(np.random.default_rng(0), 20000), np.linspace(0.0, 1.0, PLACES))

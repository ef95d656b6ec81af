"""One wide family of attacks, each a handful of numbers, for whoever searches for the attack that hurts a method most.

Every member does four things, and each has its numbers: it invents a *second signal*, *selects* the samples to rewrite by
scores of what it sees (the two predictions, the response, what the noise already says), *changes their rows* or leaves them,
and *writes responses* that speak for the second signal, all of the way or part of it. The wrong signals, decoys and
mimics of the other files are corners of the family; so are attacks that rewrite just where the noise leans their way,
or where the evidence against them is strongest.

`ParametricAttack` is one member. `FAMILY` gives the range of each of its numbers, and with it the way to and from the unit cube,
in which a search moves. Angles are in radians, norms in ‖x*‖, responses in ‖x*‖².
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from robustphase.simulate.adversaries.base import (
    Adversary,
    Array,
    CleanSample,
    Rewrite,
    Rows,
    fresh_rows,
    leaning_unit,
    orthogonal_unit,
    resampled_noise,
    top_rows,
    with_component,
)
from robustphase.simulate.arguments import check_choice, check_number
from robustphase.simulate.noises import NOISES

#: Directions along which rows can be tilted, in the order of the number ``aim``.
AIMS = ("the truth", "the second signal", "their difference")
#: Without noise, likelihoods are those of Gaussian noise of this size, in units of ‖x*‖².
LEAST_NOISE = 0.05
#: Log-densities are cut off here, so that impossible responses can still be compared.
LEAST_LOG_DENSITY = -1e3
#: Clipping begins at this value of ``clip`` and reaches the quantile 1 - `DEEPEST_CLIP` of the clean responses at 1.
CLIP_FROM, DEEPEST_CLIP = 0.5, 0.1


class Range(NamedTuple):
    """Least and largest value of a number, and whether it is searched on a logarithmic scale."""

    low: float
    high: float
    logarithmic: bool = False

    def decode(self, share: float) -> float:
        """The value at a point of [0, 1]."""
        low, high = (math.log(self.low), math.log(self.high)) if self.logarithmic else (self.low, self.high)
        value = low + (high - low) * share
        return min(max(math.exp(value) if self.logarithmic else value, self.low), self.high)

    def encode(self, value: float) -> float:
        """The point of [0, 1] at which the value is."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


#: The numbers of an attack, in the order of a vector of the unit cube.
FAMILY: dict[str, Range] = {
    "angle": Range(0.0, math.pi / 2),
    "norm": Range(0.3, 2.5, logarithmic=True),
    "leaning": Range(0.0, 1.0),
    "by_difference": Range(-1.0, 1.0),
    "by_sign": Range(-1.0, 1.0),
    "by_truth": Range(-1.0, 1.0),
    "by_second": Range(-1.0, 1.0),
    "by_response": Range(-1.0, 1.0),
    "by_leaning": Range(-1.0, 1.0),
    "by_likelihood": Range(-1.0, 1.0),
    "randomness": Range(0.0, 2.0),
    "move": Range(0.0, 1.5),
    "noise_factor": Range(0.0, 2.0),
    "own_noise": Range(0.0, 1.0),
    "shift": Range(-1.0, 1.0),
    "clip": Range(0.0, 1.0),
    "redrawn": Range(0.0, 1.0),
    "choices": Range(1.0, 16.0, logarithmic=True),
    "aim": Range(0.0, 3.0),
    "tilt": Range(-1.0, 1.5),
    "length": Range(-3.0, 3.0),
    "unused": Range(0.0, 0.5),
}


@dataclass(frozen=True)
class ParametricAttack:
    """One attack of the family; call it, or hand `adversary` to `make_world` and `corrupt`.

    Attributes
    ----------
    angle, norm : float
        Where the second signal is: its angle to the truth, and its norm relative to the truth's.
    leaning : float
        From 0, a random direction beside the truth, to 1, the one in which the noise already pulls least squares.
    by_difference, by_sign, by_truth, by_second, by_response, by_leaning, by_likelihood : float
        Weights of what the samples are selected by: how far the two predictions are apart, the same with its sign (second minus
        truth), the two predictions, the response, the noise times the difference (positive where the noise leans towards the
        second signal), and the log-likelihood ratio of the response between second signal and truth, whose smallest are the
        evidence for the truth. Each is taken as a normal score, so that weights compare; a negative weight selects the smallest.
    randomness : float
        Standard deviation of a random number added to the score.
    move : float
        Responses go this part of the way from the own response to that of the second signal; 1 arrives.
    noise_factor : float
        Spread of the noise around the response of the second signal, relative to clean noise.
    own_noise : float
        Share of the samples that keep their own noise; the others get that of other samples.
    shift : float
        What is added to the response of the second signal.
    clip : float
        Above 0.5, responses are kept within quantiles of the clean ones.
    redrawn : float
        Share of the rewritten rows that are drawn anew.
    choices : float
        New noise (and rows, where they are new) is the best of so many draws: that which speaks most for the second signal.
    aim, tilt : float
        Along which direction of `AIMS` rows are tilted, and by how much: -1 removes that component, 1 doubles it.
    length : float
        How much longer rows become, in standard deviations of the length of a clean row.
    unused : float
        Share of the budget that is left unused.
    noise : str
        Name of the noise law, by which likelihoods are computed.
    """

    angle: float = 1.0
    norm: float = 1.0
    leaning: float = 0.0
    by_difference: float = 0.0
    by_sign: float = 0.0
    by_truth: float = 0.0
    by_second: float = 0.0
    by_response: float = 0.0
    by_leaning: float = 0.0
    by_likelihood: float = 0.0
    randomness: float = 0.0
    move: float = 1.0
    noise_factor: float = 1.0
    own_noise: float = 1.0
    shift: float = 0.0
    clip: float = 0.0
    redrawn: float = 0.0
    choices: float = 1.0
    aim: float = 0.0
    tilt: float = 0.0
    length: float = 0.0
    unused: float = 0.0
    noise: str = "gaussian"

    def __post_init__(self) -> None:
        check_choice("noise", self.noise, NOISES)
        for name, (low, high, _) in FAMILY.items():
            value = check_number(name, getattr(self, name))
            if not low <= value <= high:
                raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {value!r}.")

    @classmethod
    def from_vector(cls, vector: ArrayLike, noise: str = "gaussian") -> ParametricAttack:
        """Return the attack at a point of the unit cube, whose coordinates are in the order of `FAMILY`."""
        shares = np.asarray(vector, float)
        if shares.shape != (len(FAMILY),) or not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError(f"vector must hold {len(FAMILY)} numbers in [0, 1], got {vector!r}.")
        values = (scale.decode(float(share)) for scale, share in zip(FAMILY.values(), shares, strict=True))
        return cls(**dict(zip(FAMILY, values, strict=True)), noise=noise)

    def to_vector(self) -> NDArray[np.float64]:
        """Return the point of the unit cube at which this attack is."""
        return np.array([scale.encode(getattr(self, name)) for name, scale in FAMILY.items()])

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ParametricAttack:
        """Return the attack with these numbers, as `to_dict` gives them."""
        unknown = sorted(set(values) - set(FAMILY) - {"noise"})
        if unknown:
            raise ValueError(f"an attack has no {', '.join(unknown)}; it has {', '.join((*FAMILY, 'noise'))}.")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return its numbers by name, to be written as JSON."""
        return asdict(self)

    @property
    def adversary(self) -> Adversary:
        """The attack as an adversary of `make_world` and `corrupt`."""
        return Adversary("parametric", "adaptive", self.describe(), self)

    def describe(self) -> str:
        """Say in one sentence what it does."""
        scores = {name: getattr(self, name) for name in FAMILY if name.startswith("by_")}
        strongest = sorted(scores, key=lambda name: -abs(scores[name]))[:3]
        told = [f"{name[3:]} ({scores[name]:+.2f})" for name in strongest if abs(scores[name]) >= 0.1]
        parts = {
            f"A second signal at {self.angle:.2f} rad with norm {self.norm:.2f}": True,
            f"samples by {', '.join(told) or 'chance'}": True,
            f"randomness {self.randomness:.2f}": self.randomness >= 0.01,
            f"responses moved {self.move:.0%} of the way with noise times {self.noise_factor:.2f}": True,
            f"the best of {self._draws} draws": self._draws > 1 and (self.own_noise < 0.99 or self.redrawn >= 0.01),
            f"shift {self.shift:+.2f}": abs(self.shift) >= 0.01,
            "clipped": self.clip > CLIP_FROM,
            f"{self.redrawn:.0%} of the rows redrawn": self.redrawn >= 0.01,
            f"rows tilted by {self.tilt:+.2f} along {self._aimed_at}": abs(self.tilt) >= 0.01,
            f"rows longer by {self.length:+.1f} sd": abs(self.length) >= 0.1,
            f"{self.unused:.0%} of the budget unused": self.unused >= 0.01,
        }
        return "; ".join(part for part, said in parts.items() if said) + "."

    def __call__(self, sample: CleanSample, budget: int, rng: np.random.Generator) -> Rewrite:
        """Rewrite the share of ``budget`` that this attack uses, one sample at least."""
        second = self._second_signal(sample, rng)
        rows = top_rows(self._score(sample, second, rng), self.count(budget))
        A, noise = self._rows_and_noise(sample, rows, second, rng)
        A = self._reshaped(sample, A, second)
        return Rewrite(rows, A=A, y=self._responses(sample, A, noise, second))

    def count(self, budget: int) -> int:
        """How many samples it rewrites of those that it may."""
        return max(min(budget, 1), math.floor(budget * (1 - self.unused)))

    @property
    def _draws(self) -> int:
        return round(self.choices)

    @property
    def _aimed_at(self) -> str:
        return AIMS[min(int(self.aim), len(AIMS) - 1)]

    def _second_signal(self, sample: CleanSample, rng: np.random.Generator) -> Array:
        beside = (1 - self.leaning) * orthogonal_unit(sample, rng) + self.leaning * leaning_unit(sample, rng)
        length = np.linalg.norm(beside)
        # Two opposite directions can cancel, in one dimension for instance.
        beside = beside / length if length > 1e-9 else orthogonal_unit(sample, rng)
        turned = math.cos(self.angle) * sample.unit + math.sin(self.angle) * beside
        return np.asarray(self.norm * sample.norm * turned)

    def _score(self, sample: CleanSample, second: Array, rng: np.random.Generator) -> Array:
        """Rate every sample; the largest are rewritten."""
        here, there = sample.energy, np.abs(sample.A @ second) ** 2
        seen: Iterable[tuple[float, Array]] = (
            (self.by_difference, np.abs(there - here)),
            (self.by_sign, there - here),
            (self.by_truth, here),
            (self.by_second, there),
            (self.by_response, sample.y),
            (self.by_leaning, (sample.noise - sample.noise_mean) * (there - here)),
            (self.by_likelihood, self._log_ratio(sample, sample.y, here, there)),
        )
        score = self.randomness * rng.standard_normal(sample.m)
        for weight, values in seen:
            score += weight * _normal_scores(values)
        return np.asarray(score)

    def _log_ratio(self, sample: CleanSample, y: Array, here: Array, there: Array) -> Array:
        """How much more likely the responses are under the second signal than under the truth."""
        law = NOISES[self.noise]
        size = sample.noise_std * law.unit
        if law.log_density is None or size < LEAST_NOISE * sample.scale:
            law, size = NOISES["gaussian"], max(size, LEAST_NOISE * sample.scale)
        assert law.log_density is not None
        logs = [law.log_density((y - sample.noise_mean - energy) / size) for energy in (there, here)]
        return np.subtract(*(np.maximum(values, LEAST_LOG_DENSITY) for values in logs))

    def _rows_and_noise(
        self, sample: CleanSample, rows: Rows, second: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Rows, kept or new, and noise, kept or new; what is new is the best of several draws."""
        A, noise = sample.A[rows].copy(), sample.noise[rows].copy()
        new = rng.random(len(rows)) < self.redrawn
        other = new | (rng.random(len(rows)) >= self.own_noise)
        best = np.full(len(rows), -np.inf)
        for _ in range(self._draws):
            drawn = np.where(new[:, None], fresh_rows(sample, len(rows), rng), sample.A[rows])
            values = resampled_noise(sample, len(rows), rng)
            here, there = np.abs(drawn @ sample.truth) ** 2, np.abs(drawn @ second) ** 2
            ratio = self._log_ratio(sample, there + values, here, there)
            better = other & (ratio > best)
            A[better], noise[better], best[better] = drawn[better], values[better], ratio[better]
        return A, noise

    def _reshaped(self, sample: CleanSample, A: Array, second: Array) -> Array:
        """Rows tilted and rescaled."""
        direction = dict(zip(AIMS, (sample.truth, second, second - sample.truth), strict=True))[self._aimed_at]
        length = np.linalg.norm(direction)
        unit = direction / length if length > 1e-9 * sample.norm else sample.unit
        tilted = with_component(A, unit, (1 + self.tilt) * (A @ unit))
        freedom = sample.n * (2 if sample.field == "complex" else 1)
        # In few dimensions lengths vary so much that a row could become negative.
        return np.asarray(tilted * max(1 + self.length / math.sqrt(2 * freedom), 0.1))

    def _responses(self, sample: CleanSample, A: Array, noise: Array, second: Array) -> Array:
        own = np.abs(A @ sample.truth) ** 2 + noise
        centred = noise - sample.noise_mean
        there = np.abs(A @ second) ** 2 + sample.response(self.shift) + self.noise_factor * centred
        y = (1 - self.move) * own + self.move * there
        if self.clip > CLIP_FROM:
            depth = DEEPEST_CLIP * (self.clip - CLIP_FROM) / (1 - CLIP_FROM)
            y = np.clip(y, *np.quantile(sample.y, (depth / 2, 1 - depth / 2)))
        return np.asarray(y)


def _normal_scores(values: Array) -> Array:
    """Turn values into the quantiles of a standard normal that have their ranks."""
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return np.asarray(ndtri((ranks + 0.5) / len(values)))

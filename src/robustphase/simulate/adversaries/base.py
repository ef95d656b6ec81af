"""What an adversary sees, what it returns, and the few moves that attacks are built from.

An attack is a pure function ``attack(sample, budget, rng) -> Rewrite``. It sees the whole clean sample, the truth and
the noise moments, read-only, and says which rows it rewrites and with what. Most attacks are three moves long: pick
rows (`random_rows`, `top_rows`), pick a wrong direction (`orthogonal_unit`), and move covariates (`with_component`,
`fresh_rows`) or responses (`CleanSample.response`, `responses_to`).

Units: a response is written as so many ‖x*‖² above the background, ``sample.response(4)``, so that an attack means the
same thing for every signal norm and every noise mean. In the complex field the rows of ``A`` are aᴴ: the component of a
row along a unit vector u is ``row @ u``, and a row that points along u is a multiple of ``u.conj()``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustphase.simulate.designs import GAUSSIAN, Design, gaussian_design

Array = NDArray[Any]
Rows = NDArray[np.intp]

GROUPS = ("responses", "covariates", "joint", "information", "adaptive")


@dataclass(frozen=True)
class CleanSample:
    """Everything the adversary knows; the arrays are read-only.

    Attributes
    ----------
    A, y : ndarray of shape (m, n) and (m,)
        The clean sample.
    truth : ndarray of shape (n,)
        The signal.
    noise_std, noise_mean : float
        Moments of the noise, in the units of ``y``.
    design : Design
        The law of the rows.
    groups : ndarray of int, shape (m,), optional
        Group of every sample, where some belong together.
    """

    A: Array
    y: Array
    truth: Array
    noise_std: float
    noise_mean: float
    design: Design = GAUSSIAN
    groups: Array | None = None

    @classmethod
    def of(
        cls,
        A: Array,
        y: Array,
        truth: Array,
        noise_std: float,
        noise_mean: float,
        design: Design = GAUSSIAN,
        groups: Array | None = None,
    ) -> CleanSample:
        """Wrap the arrays in read-only views."""
        labels = None if groups is None else _read_only(groups)
        return cls(_read_only(A), _read_only(y), _read_only(truth), noise_std, noise_mean, design, labels)

    @property
    def m(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def n(self) -> int:
        """Dimension."""
        return len(self.truth)

    @property
    def field(self) -> str:
        """The field of the covariates, "real" or "complex"."""
        return "complex" if np.iscomplexobj(self.A) else "real"

    @cached_property
    def norm(self) -> float:
        """‖x*‖."""
        return float(np.linalg.norm(self.truth))

    @property
    def paired(self) -> bool:
        """Whether a complex signal stands behind real rows."""
        return np.iscomplexobj(self.truth) and not np.iscomplexobj(self.A)

    @cached_property
    def scale(self) -> float:
        """The unit of responses: ‖x*‖², what they are on average behind standard normal rows; else what they are."""
        if self.design is GAUSSIAN:
            return self.norm**2
        return float(self.energy.mean()) or self.norm**2

    @property
    def unit(self) -> Array:
        """Direction of the truth."""
        return self.truth / self.norm

    @cached_property
    def inner(self) -> Array:
        """``A @ x*``, one value per sample."""
        return self.A @ self.truth

    @cached_property
    def energy(self) -> Array:
        """``|A @ x*|²``, what the responses would be without noise; large values carry the information."""
        return np.asarray(np.abs(self.inner) ** 2)

    @cached_property
    def noise(self) -> Array:
        """The noise of every sample, background included."""
        return self.y - self.energy

    def response(self, level: ArrayLike) -> Array:
        """Response that lies ``level`` times ‖x*‖² above the background."""
        return np.asarray(self.noise_mean + self.scale * np.asarray(level))


@dataclass(frozen=True)
class Rewrite:
    """What an attack asks for: ``rows`` get covariates ``A`` and responses ``y``; ``None`` leaves those as they are."""

    rows: Rows
    A: Array | None = None
    y: ArrayLike | None = None


Attack = Callable[[CleanSample, int, np.random.Generator], Rewrite]


@dataclass(frozen=True)
class Adversary:
    """A named attack.

    Attributes
    ----------
    name : str
        What to call it.
    group : str
        What it rewrites or aims at: one of ``GROUPS``; ``"groups"`` for one that rewrites whole groups of samples.
    description : str
        One sentence.
    attack : callable
        ``attack(sample, budget, rng) -> Rewrite``; pure, and never more than ``budget`` rows.
    """

    name: str
    group: str
    description: str
    attack: Attack


def random_rows(sample: CleanSample, count: int, rng: np.random.Generator) -> Rows:
    """Return ``count`` distinct rows, uniformly at random."""
    return rng.choice(sample.m, count, replace=False)


def top_rows(scores: Array, count: int) -> Rows:
    """Return the rows with the ``count`` largest scores, largest first; ties go to the earlier row."""
    return np.argsort(-scores, kind="stable")[:count]


def orthogonal_frame(sample: CleanSample, count: int, rng: np.random.Generator) -> Array:
    """Return up to ``count`` random orthonormal columns orthogonal to the truth.

    In one dimension nothing is orthogonal to the truth; its own direction is returned, and attacks act on the norm.
    """
    if sample.n == 1:
        return sample.unit[:, None]
    # Behind real rows directions are real, and orthogonal to the real and to the imaginary part of the truth.
    taken = [sample.unit.real, sample.unit.imag] if sample.paired and sample.n > 2 else [sample.unit]
    count = min(count, sample.n - len(taken))
    random = gaussian_design(sample.n, count, field=sample.field, seed=rng)
    frame, _ = np.linalg.qr(np.column_stack([*taken, random]))
    return np.asarray(frame[:, len(taken) :])


def orthogonal_unit(sample: CleanSample, rng: np.random.Generator) -> Array:
    """Return a random unit vector orthogonal to the truth (see `orthogonal_frame`)."""
    return np.asarray(orthogonal_frame(sample, 1, rng)[:, 0])


def leaning_unit(sample: CleanSample, rng: np.random.Generator) -> Array:
    """Return the direction orthogonal to the truth in which noise already pulls least squares; random without noise."""
    pull = sample.A.conj().T @ ((sample.noise - sample.noise_mean) * sample.inner)
    across = pull - sample.unit * np.vdot(sample.unit, pull)
    length = np.linalg.norm(across)
    if length <= 1e-6 * np.linalg.norm(sample.A) * sample.norm * sample.scale:
        return orthogonal_unit(sample, rng)
    return np.asarray(across / length)


def fresh_rows(sample: CleanSample, count: int, rng: np.random.Generator) -> Array:
    """Return new sensing vectors from the clean law."""
    return sample.design.sample(count, sample.n, field=sample.field, seed=rng)


def random_signs(sample: CleanSample, count: int, rng: np.random.Generator) -> Array:
    """Return random signs (phases in the complex field); they hide that rows share a direction, and cost nothing."""
    draws = gaussian_design(count, 1, field=sample.field, seed=rng)[:, 0]
    return np.asarray(draws / np.abs(draws))


def resampled_noise(sample: CleanSample, count: int, rng: np.random.Generator) -> Array:
    """Return noise values of clean samples, drawn with replacement: the true law without having to know it."""
    return np.asarray(sample.noise[rng.integers(sample.m, size=count)])


def with_component(rows: Array, unit: Array, values: ArrayLike) -> Array:
    """Return ``rows`` with their component along ``unit`` replaced by ``values`` and nothing else changed."""
    return np.asarray(rows + np.multiply.outer(np.asarray(values) - rows @ unit, unit.conj()))


def along(direction: Array, values: ArrayLike) -> Array:
    """Return rows that are ``values`` times ``direction``."""
    return np.asarray(np.multiply.outer(np.asarray(values), direction.conj()))


def responses_to(rows: Array, signal: Array, noise: ArrayLike) -> Array:
    """Return the responses of ``rows`` to ``signal``."""
    return np.asarray(np.abs(rows @ signal) ** 2 + noise)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view

"""Hand a clean sample to an adversary, check that it stayed within its budget, and return the rewritten copy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustphase.options import with_defaults
from robustphase.simulate.adversaries import Adversary, CleanSample, Rewrite, find_adversary
from robustphase.simulate.arguments import check_contamination, check_number, check_seed
from robustphase.simulate.designs import GAUSSIAN, Design, find_design
from robustphase.simulate.options import KNOWN, KnownOptions

#: Entries beyond this are meant to overflow and not to be patterns.
_ENORMOUS = 1e15


@dataclass(frozen=True)
class Contaminated:
    """A sample after the adversary; iterates as ``(A, y)``.

    Attributes
    ----------
    A, y : ndarray of shape (m, n) and (m,)
        Covariates and responses, copies of the clean ones outside ``touched``.
    touched : ndarray of bool, shape (m,)
        The rows the adversary rewrote.
    groups : ndarray of int, shape (m,), or None
        Group of every sample, where some belong together: the labels for ``fit(A, y, groups=...)``.
    """

    A: NDArray[Any]
    y: NDArray[Any]
    touched: NDArray[np.bool_]
    groups: NDArray[Any] | None = None

    @property
    def clean(self) -> NDArray[np.bool_]:
        """The rows nobody rewrote."""
        return ~self.touched

    def __iter__(self) -> Iterator[NDArray[Any]]:
        yield self.A
        yield self.y


def corrupt(
    A: ArrayLike,
    y: ArrayLike,
    truth: ArrayLike,
    *,
    attack: str | Adversary,
    contamination: float,
    **options: Unpack[KnownOptions],
) -> Contaminated:
    """Let an adversary rewrite at most ``floor(contamination * m)`` of the samples.

    Parameters
    ----------
    A : array of shape (m, n)
        Clean covariates; in the complex field the rows are aᴴ.
    y : array of shape (m,)
        Clean responses.
    truth : array of shape (n,)
        The signal behind them, which the adversary knows.
    attack : str or Adversary
        A name in `ADVERSARIES`, an `Adversary` of your own, or ``"none"``; with ``groups`` also a name in `GROUP_ADVERSARIES`.
    contamination : float
        Fraction of the samples that may be rewritten, in [0, 0.5).

    Other Parameters
    ----------------
    noise_std, noise_mean : float, default=0.0
        Standard deviation and mean of the noise in ``y``, in the units of ``y``, which the adversary knows too.
    design : str or Design, default="gaussian"
        The law of the rows: a name in `DESIGNS` or a `Design`. Rows that the adversary writes are rows of this kind.
    groups : int or array of shape (m,), optional
        Which samples belong together, such as those of a frame: one label per row, or the number of equal groups that follow one
        another.
    seed : int, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    Contaminated
        ``.A``, ``.y`` (copies), ``.touched`` and ``.groups``.
    """
    known = with_defaults(KNOWN, options, corrupt)
    A, y, truth = _aligned(A, y, truth)
    contamination = check_contamination(contamination)
    noise_std = check_number("noise_std", known["noise_std"], above=0.0)
    noise_mean = check_number("noise_mean", known["noise_mean"])
    labels = group_labels(known["groups"], len(y))
    adversary, law = find_adversary(attack, grouped=labels is not None), find_design(known["design"])
    rng = check_seed(known["seed"])
    budget = math.floor(contamination * len(y))
    A, y, touched = A.copy(), y.copy(), np.zeros(len(y), bool)
    if adversary is None or budget == 0:
        return Contaminated(A, y, touched, labels)
    rewrite = adversary.attack(CleanSample.of(A, y, truth, noise_std, noise_mean, law, labels), budget, rng)
    rows = _checked_rows(rewrite, adversary.name, budget, len(y))
    touched[rows] = True
    if rewrite.A is not None:
        A[rows] = _of_this_kind(rewrite.A, A, law)
    if rewrite.y is not None:
        y[rows] = rewrite.y
    return Contaminated(A, y, touched, labels)


def group_labels(groups: int | ArrayLike | None, m: int) -> NDArray[np.intp] | None:
    """Group of every sample, whole numbers from zero; None where no samples belong together."""
    if groups is None:
        return None
    if np.ndim(groups) == 0:
        if isinstance(groups, bool) or not isinstance(groups, Integral) or not 1 <= int(groups) <= m:
            raise ValueError(
                f"groups must be a number of groups from 1 to {m}, or one label per row of A, got {groups!r}."
            )
        return np.arange(m) * int(groups) // m
    labels = np.asarray(groups)
    if labels.shape != (m,):
        raise ValueError(f"groups must hold {m} labels, one per row of A, got shape {labels.shape}.")
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def _of_this_kind(wished: NDArray[Any], A: NDArray[Any], design: Design) -> NDArray[Any]:
    """What an adversary wishes as rows of the design; what cannot be computed with stays as it is."""
    if np.iscomplexobj(wished) and not np.iscomplexobj(A):
        wished = wished.real
    if design is GAUSSIAN:
        return wished
    # Patterns have finite entries; an attack with others is on whoever reads the file.
    sound = np.isfinite(wished).all(axis=1) & (np.abs(wished).max(axis=1) < _ENORMOUS)
    rows = wished.astype(np.result_type(wished, A))
    if sound.any():
        rows[sound] = design.match(wished[sound])
    return rows


def _aligned(A: ArrayLike, y: ArrayLike, truth: ArrayLike) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    A, y, truth = (_inexact(array) for array in (A, y, truth))
    if A.ndim != 2 or 0 in A.shape:
        raise ValueError(f"A must be a non-empty matrix of shape (m, n), got shape {A.shape}. Pass one sample per row.")
    m, n = A.shape
    if y.shape != (m,) or np.iscomplexobj(y):
        raise ValueError(
            f"y must hold {m} real responses, one per row of A, got shape {y.shape} and dtype {y.dtype}. "
            "Pass the squared magnitudes |A @ truth|**2 plus noise."
        )
    if truth.shape != (n,):
        raise ValueError(
            f"truth must have shape ({n},), got shape {truth.shape}. Pass the signal that A and y were made from."
        )
    if not np.isfinite(truth).all() or not truth.any():
        raise ValueError(
            "truth must be finite and not zero: attacks are sized in units of its norm. Pass a proper signal."
        )
    return A, y, truth.astype(np.result_type(A.dtype, np.complex64) if np.iscomplexobj(truth) else A.dtype)


def _inexact(array: ArrayLike) -> NDArray[Any]:
    found = np.asarray(array)
    return found if np.issubdtype(found.dtype, np.inexact) else found.astype(np.float64)


def _checked_rows(rewrite: Rewrite, name: str, budget: int, m: int) -> NDArray[np.intp]:
    rows = np.asarray(rewrite.rows, np.intp)
    if (
        rows.ndim == 1
        and len(rows) <= budget
        and len(np.unique(rows)) == len(rows)
        and not ((rows < 0) | (rows >= m)).any()
    ):
        return rows
    raise ValueError(
        f"attack {name!r} must rewrite at most {budget} distinct rows numbered 0 to {m - 1}, "
        f"got {len(rows)} rows. Choose them from range({m}) without repetition."
    )

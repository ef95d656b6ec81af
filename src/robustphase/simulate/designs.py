"""Sensing vectors: rows of A from the standard normal law of the theory, and as instruments show them.

A :class:`Design` draws rows, and says which row of its kind comes closest to what an adversary wishes: an on/off device that goes
wrong shows another on/off pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from robustphase.simulate.arguments import FIELDS, Seed, check_choice, check_dtype, check_seed, check_size


def gaussian_design(
    m: int, n: int, *, field: str = "real", dtype: DTypeLike | None = None, seed: Seed = None
) -> NDArray[Any]:
    """Draw ``m`` sensing vectors a ~ N(0, I), or aᴴ with a ~ CN(0, I), as the rows of a matrix.

    Parameters
    ----------
    m, n : int
        Number of samples and dimension.
    field : {"real", "complex"}
        In the complex field an entry is (N + iN)/√2, so that E|a_j|² = 1 as in the real one.
    dtype : dtype, optional
        Double precision of the field unless given; ``float32`` and ``complex64`` halve the memory.
    seed : int, Generator or None
        Source of randomness.

    Returns
    -------
    ndarray of shape (m, n)
    """
    m, n = check_size("m", m), check_size("n", n)
    field = check_choice("field", field, FIELDS)
    kind = check_dtype(dtype, field)
    rng = check_seed(seed)
    single = kind.name in ("float32", "complex64")
    part = np.float32 if single else np.float64
    if field == "real":
        return rng.standard_normal((m, n), dtype=part)
    # Drawn as the (re, im) pairs that the complex dtype stores: no second array, no copy.
    pairs = rng.standard_normal((m, 2 * n), dtype=part)
    pairs *= part(np.sqrt(0.5))
    return pairs.view(kind)


Draw = Callable[[int, int, np.random.Generator], NDArray[Any]]
Match = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Design:
    """A law of sensing vectors.

    Attributes
    ----------
    name : str
        What to call it.
    description : str
        One sentence.
    rows : {"real", "complex", "signal"}
        Field of the rows; ``"signal"``: that of the signal. Behind real rows a signal may be complex.
    draw : callable
        ``draw(m, n, rng) -> rows``; not used where rows are those of the signal's field.
    match : callable
        The row of this kind that is closest to what an adversary wishes; a row of this kind is itself.
    """

    name: str
    description: str
    rows: str
    draw: Draw
    match: Match

    def field_for(self, field: str) -> str:
        """Field of the rows for a signal of this field."""
        if self.rows == "complex" and field == "real":
            raise ValueError(
                f'rows of the design {self.name!r} are complex, and so is the signal: pass field="complex".'
            )
        return field if self.rows == "signal" else self.rows

    def sample(
        self, m: int, n: int, *, field: str = "real", dtype: DTypeLike | None = None, seed: Seed = None
    ) -> NDArray[Any]:
        """Draw m rows of n entries for a signal of the given field."""
        kind = self.field_for(check_choice("field", field, FIELDS))
        rng = check_seed(seed)
        if self.rows == "signal":
            return gaussian_design(m, n, field=kind, dtype=dtype, seed=rng)
        return self.draw(check_size("m", m), check_size("n", n), rng).astype(check_dtype(dtype, kind), copy=False)


def on_off(duty: float = 0.5) -> Design:
    """Mirrors that are on (1) with probability ``duty`` and off (0) otherwise."""
    _check_open("duty", duty)

    def draw(m: int, n: int, rng: np.random.Generator) -> NDArray[Any]:
        return (rng.random((m, n)) < duty).astype(np.float64)

    def match(rows: NDArray[Any]) -> NDArray[Any]:
        count = max(1, round(duty * rows.shape[1]))
        limits = np.partition(rows, -count, axis=1)[:, [-count]]
        return np.where(_made_of(rows, (0.0, 1.0)), rows, (rows >= limits).astype(np.float64))

    return Design("on_off", f"Entries 1 with probability {duty:g}, else 0.", "real", draw, match)


def signs() -> Design:
    """Entries ±1."""
    return Design("signs", "Entries ±1 with equal probability.", "real", _draw_signs, _match_signs)


def hadamard(*, scrambled: bool = False, switched: bool = False, complements: bool = False) -> Design:
    """Rows of Hadamard matrices, ±1 or, ``switched``, 1 and 0.

    Parameters
    ----------
    scrambled : bool, default=False
        One complete matrix after the other, each with columns in random order and random signs. Otherwise distinct rows and
        random columns of one matrix that is large enough for all samples.
    switched : bool, default=False
        ``(H + 1)/2``, as an on/off device shows it.
    complements : bool, default=False
        Every second pattern is the complement of the one before.
    """
    name = ("switched_" if switched else "") + ("scrambled_" if scrambled else "") + "hadamard"
    described = "Rows of scrambled Hadamard matrices" if scrambled else "Distinct rows of one large Hadamard matrix"
    described += ", as 1 and 0." if switched else ", ±1."

    def draw(m: int, n: int, rng: np.random.Generator) -> NDArray[Any]:
        count = -(-m // 2) if complements else m
        order = 1 << max(1, (n if scrambled else max(count, n)) - 1).bit_length()
        if scrambled:
            blocks = [
                _walsh(np.arange(order), rng.permutation(order)[:n]) * rng.choice((-1.0, 1.0), n)
                for _ in range(-(-count // order))
            ]
            rows = np.vstack(blocks)[:count]
        else:
            rows = _walsh(rng.permutation(order)[:count], rng.permutation(order)[:n])
        rows = (rows + 1) / 2 if switched else rows
        if complements:
            rows = np.stack((rows, 1 - rows if switched else -rows), axis=1).reshape(-1, n)[:m]
        return rows

    return Design(name, described, "real", draw, on_off().match if switched else _match_signs)


def grey(levels: int = 256) -> Design:
    """Grey levels between 0 and 1, all equally often."""
    levels = check_size("levels", levels)
    if levels < 2:
        raise ValueError(f"levels must be at least 2, got {levels}.")

    def draw(m: int, n: int, rng: np.random.Generator) -> NDArray[Any]:
        return rng.integers(0, levels, (m, n)) / (levels - 1)

    def match(rows: NDArray[Any]) -> NDArray[Any]:
        low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
        inside = (low >= 0) & (high <= 1)
        stretched = np.where(inside, rows, (rows - low) / np.maximum(high - low, np.finfo(np.float64).tiny))
        return np.asarray(np.round(stretched * (levels - 1)) / (levels - 1))

    return Design("grey", f"{levels} grey levels from 0 to 1.", "real", draw, match)


def phases(count: int | None = None) -> Design:
    """Entries of modulus one: ``count`` phases, or all of them."""
    if count is not None and check_size("count", count) < 3:
        raise ValueError(f"count must be at least 3, got {count}: two phases are signs, and real.")

    def rounded(angles: NDArray[Any]) -> NDArray[Any]:
        return angles if count is None else np.round(angles * count / (2 * np.pi)) * (2 * np.pi / count)

    def draw(m: int, n: int, rng: np.random.Generator) -> NDArray[Any]:
        return np.exp(1j * rounded(rng.uniform(0, 2 * np.pi, (m, n))))

    def match(rows: NDArray[Any]) -> NDArray[Any]:
        return np.exp(1j * rounded(np.angle(rows)))

    name, described = ("phases", "Random phases") if count is None else (f"{count}_phases", f"One of {count} phases")
    return Design(name, f"{described}, modulus one.", "complex", draw, match)


def gaussian_with_mean(mean: float = 1.0) -> Design:
    """Normal entries of variance one around a mean."""
    return Design(
        "mean",
        f"Normal entries of mean {mean:g}.",
        "real",
        lambda m, n, rng: rng.standard_normal((m, n)) + mean,
        _as_is,
    )


def scaled_gaussian(scale: float = 1.4) -> Design:
    """Normal entries of another standard deviation."""
    return Design(
        "scaled",
        f"Normal entries of standard deviation {scale:g}.",
        "real",
        lambda m, n, rng: scale * rng.standard_normal((m, n)),
        _as_is,
    )


def correlated_gaussian(condition: float = 30.0) -> Design:
    """Normal rows whose covariance has eigenvalues from 1 to 1/condition, evenly in logarithms, in fixed random directions."""

    def draw(m: int, n: int, rng: np.random.Generator) -> NDArray[Any]:
        # The same covariance in every draw of this size: fresh rows of an adversary have it too.
        rotation = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]
        return np.asarray(rng.standard_normal((m, n)) * np.sqrt(np.geomspace(1, 1 / condition, n)) @ rotation.T)

    return Design("correlated", f"Normal rows, covariance of condition number {condition:g}.", "real", draw, _as_is)


def elliptical(degrees: float = 5.0) -> Design:
    """Normal rows over the root of a chi-square variable: Student's t in every direction, of unit covariance."""
    if not degrees > 2:
        raise ValueError(f"degrees must be larger than 2, got {degrees!r}: there is no covariance.")

    def draw(m: int, n: int, rng: np.random.Generator) -> NDArray[Any]:
        lengths = np.sqrt((degrees - 2) / rng.chisquare(degrees, (m, 1)))
        return np.asarray(rng.standard_normal((m, n)) * lengths)

    return Design(
        "elliptical",
        f"Elliptical rows with the tails of Student's t, {degrees:g} degrees of freedom.",
        "real",
        draw,
        _as_is,
    )


def _as_is(rows: NDArray[Any]) -> NDArray[Any]:
    return rows


def _draw_signs(m: int, n: int, rng: np.random.Generator) -> NDArray[Any]:
    return rng.choice((-1.0, 1.0), (m, n))


def _match_signs(rows: NDArray[Any]) -> NDArray[Any]:
    return np.where(rows < 0, -1.0, 1.0)


def _made_of(rows: NDArray[Any], values: tuple[float, ...]) -> NDArray[np.bool_]:
    """Which rows have these entries only, shape (m, 1)."""
    return np.asarray(np.isin(rows, values).all(axis=1, keepdims=True))


def _walsh(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """Entries ``(−1)^⟨i, j⟩`` of Sylvester's Hadamard matrix, with the binary digits of i and j."""
    digits = np.arange(max(int(rows.max()), int(columns.max())).bit_length() or 1)
    left, right = ((index[:, np.newaxis] >> digits) & 1 for index in (rows, columns))
    return np.asarray(1.0 - 2.0 * ((left @ right.T) % 2))


def _check_open(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")


GAUSSIAN = Design("gaussian", "Standard normal rows in the field of the signal.", "signal", _draw_signs, _as_is)
#: Designs by name, with the parameters that they have by default.
DESIGNS: dict[str, Design] = {
    design.name: design
    for design in (
        GAUSSIAN,
        Design(
            "real_gaussian",
            "Standard normal rows, real also where the signal is complex.",
            "real",
            lambda m, n, rng: rng.standard_normal((m, n)),
            _as_is,
        ),
        scaled_gaussian(),
        gaussian_with_mean(),
        correlated_gaussian(),
        elliptical(),
        on_off(),
        signs(),
        hadamard(),
        hadamard(scrambled=True),
        hadamard(scrambled=True, switched=True),
        grey(),
        phases(4),
        phases(),
    )
}


def find_design(design: str | Design) -> Design:
    """The design of this name, or the design itself."""
    return design if isinstance(design, Design) else DESIGNS[check_choice("design", design, DESIGNS)]

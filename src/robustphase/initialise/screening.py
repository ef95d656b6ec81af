"""Covariates against their known distribution: rows of N(0, I) look alike in every direction.

Bad rows can only favour a wrong direction by having too much energy along it. So rows of impossible length go first; then,
as long as the weighted second moment has a direction above the edge that pure chance allows (Marchenko and Pastur), rows are
weighed down along it until their projections have the mass in every range that a normal variable would have there.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcinv, ndtr, ndtri

from robustphase.constants import TINY, budget, derived
from robustphase.means.directions import real_columns, worst_directions
from robustphase.problem import Screen, WeighedDown
from robustphase.rows import RowSource, ScaledRows, project
from robustphase.rows.source import Array


@dataclass(frozen=True)
class ScreeningOptions:
    """Constants of the screening."""

    false_alarms: float = derived(0.005, "expected number of clean rows, among all, whose length counts as impossible")
    beyond: float = derived(
        2.02,
        "units of chance beyond the edge at which a direction is too strong: once in 100, by Tracy and Widom's law",
    )
    crowded: float = derived(
        0.05, "expected number of ranges, of all lengths or of a projection, that clean rows crowd by chance"
    )
    tails: tuple[float, ...] = derived(
        (1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.004, 0.001),
        "two-sided tail probabilities that separate the ranges of a projection, finer where bad rows do most",
    )
    ranges: int = budget(20, "ranges of the length, equally likely")
    untouched: int = derived(3, "ranges inside, which hold most rows and little energy, are never weighed down")
    directions: int = budget(4, "directions looked at together")
    cold_depth: int = budget(4, "passes that look for them from scratch")
    warm_depth: int = budget(3, "and once they have been found")
    rounds: int = budget(6, "most rounds of weighing down")
    grid: int = budget(60, "points at which the edge of the spectrum is sought")


SCREENING = ScreeningOptions()


def plausible_rows(
    source: RowSource, usable: Array, *, normal: bool = True, squares: Array | None = None
) -> tuple[Array, Screen | None]:
    """Weight 1 for usable rows of possible length, and which are possible.

    Where most are impossible, all usable rows count, a warning says so, and there is no screen. Squared lengths that are known
    already save a pass.
    """
    lengths = ScaledRows(source).squared_distances() if squares is None else squares
    possible = ordinary_lengths if normal else usual_lengths
    shortest, longest = possible(lengths, source.shape[1], source.dtype.kind == "c")
    ordinary = usable & (lengths > shortest) & (lengths < longest)
    if ordinary.sum() < 0.5 * usable.sum():
        warnings.warn(
            "more than half of the rows of A have lengths that standard normal vectors cannot have, so the covariates are "
            "not screened. If the design is Gaussian with another scale or covariance, pass whiten=True.",
            UserWarning,
            stacklevel=2,
        )
        return usable.astype(np.float64), None
    return ordinary.astype(np.float64), Screen(shortest, longest)


def length_kurtosis(squares: Array, weights: Array) -> float:
    """Mean fourth power of the lengths of weighted rows over their squared mean square: one for rows of one length."""
    used = (weights > 0) & (squares > 0)
    if not used.any():
        return 1.0
    # Over the largest, so that no square of them overflows.
    lengths, shares = squares[used] / squares[used].max(), weights[used]
    return float(shares.sum() * (shares @ lengths**2) / (shares @ lengths) ** 2)


def screen_directions(
    source: RowSource, weights: Array, *, normal: bool = True, seed: int = 0
) -> tuple[Array, tuple[WeighedDown, ...]]:
    """Weigh down rows along directions of too much energy, round by round; the weights, and those directions.

    Where rows are not normal, their projections are compared with those on directions of no meaning.
    """
    found: list[WeighedDown] = []
    reference = None if normal else reference_law(source, weights, seed=seed)
    n, view, is_complex = source.shape[1], ScaledRows(source), source.dtype.kind == "c"
    guess = np.random.default_rng(seed).standard_normal((n, min(SCREENING.directions, n)))
    depth, centre = SCREENING.cold_depth, np.zeros(n)
    squares = None if normal else view.squared_distances()
    for _ in range(SCREENING.rounds):
        strongest = worst_directions(view, weights, centre, guess, depth)
        hot = strongest.variances > largest_energy(n, weights, squares)
        if not hot.any():
            break
        # The real and the imaginary part of a complex projection have half the variance each.
        vectors = np.sqrt(2.0 if is_complex else 1.0) * strongest.vectors[:, hot]
        columns = real_columns(strongest.projections[:, hot]) * np.sqrt(2.0 if is_complex else 1.0)
        for place, column in enumerate(columns.T):
            edges, factors = match_normal(column, weights, reference)
            # All real parts come first, then all imaginary ones.
            part, vector = divmod(place, vectors.shape[1])
            found.append(WeighedDown(vectors[:, vector], bool(part), edges, factors))
            weights = weights * found[-1].factors_of(column)
        guess, depth = strongest.vectors, SCREENING.warm_depth
    return weights, tuple(found)


def largest_energy(n: int, weights: Array, squares: Array | None = None) -> float:
    """Mean energy along a direction that weighted rows of N(0, I) hardly exceed: the edge of Marchenko and Pastur, and chance.

    For c rows of equal weight the largest energy varies about the edge ``(1 + √(n/c))²`` by that over ``√c + √n``, times
    ``(1/√c + 1/√n)^(1/3)`` (Johnstone 2001); other weights count as equal ones of as many rows as ``(Σw)²/Σw²``. For rows of
    these squared lengths, in directions of no preference, the edge is that of Silverstein's equation: the least of
    ``1/t + mean h/(1 − c h t)`` over ``0 < t < 1/(c max h)``, with squared lengths h over n and c unknowns per row.
    """
    count = max(float(weights.sum()) ** 2 / max(float(weights @ weights), TINY), 1.0)
    chance = 1 + SCREENING.beyond * (1 / np.sqrt(count) + 1 / np.sqrt(n)) ** (1 / 3) / (np.sqrt(count) + np.sqrt(n))
    if squares is None:
        return float(chance * (1 + np.sqrt(n / count)) ** 2)
    used = weights > 0
    h = weights[used] * squares[used] / (n * weights[used].mean())
    c = n / h.size
    t = np.linspace(0, 1 / (c * float(h.max())), SCREENING.grid + 2)[1:-1]
    edges = 1 / t + np.array([float(np.mean(h / (1 - c * h * one))) for one in t])
    return float(chance * edges.min())


def ordinary_lengths(squares: Array, n: int, is_complex: bool) -> tuple[float, float]:
    """Between which squared lengths those of normal rows lie, by Wilson and Hilferty's approximation to chi-square variables."""
    degrees = 2 * n if is_complex else n
    unit = 2 / (9 * degrees)
    # So far out that hardly one clean row among all of them is farther.
    reach = -float(ndtri(SCREENING.false_alarms / (2 * max(squares.size, 1)))) * float(np.sqrt(unit))
    return n * (1 - unit - reach) ** 3, n * (1 - unit + reach) ** 3


def standard_lengths(squares: Array, n: int, is_complex: bool) -> Array:
    """Squared lengths of normal rows as standard normal variables, by Wilson and Hilferty's approximation."""
    unit = 2 / (9 * (2 * n if is_complex else n))
    standard: Array = (np.cbrt(squares / n) - (1 - unit)) / np.sqrt(unit)
    return standard


def match_lengths(source: RowSource, weights: Array) -> Array:
    """Weigh down rows whose lengths are clearly more frequent than those of normal rows: one pass.

    Rows that an attacker makes shorter or longer within what is possible are no longer distributed like the others.
    """
    standard = standard_lengths(ScaledRows(source).squared_distances(), source.shape[1], source.dtype.kind == "c")
    # Rows too long to square have no weight.
    shares = np.nan_to_num(ndtr(standard))
    ranges = np.clip((SCREENING.ranges * shares).astype(int), 0, SCREENING.ranges - 1)
    observed, expected = np.bincount(ranges, weights, SCREENING.ranges), weights.sum() / SCREENING.ranges
    factors = np.where(_crowded(observed, expected), expected / np.maximum(observed, 1), 1.0)
    matched: Array = weights * factors[ranges]
    return matched


def usual_lengths(squares: Array, n: int, is_complex: bool) -> tuple[float, float]:
    """Between which squared lengths those of a design that is not normal lie: by its own law, in logarithms.

    Lengths that vary less than those of normal rows may vary as much; those that vary more have heavy tails, and logarithms of
    lengths are about normal.
    """
    degrees = 2 * n if is_complex else n
    positive = squares[squares > 0]
    if not positive.size:
        return np.inf, np.inf
    centre = float(np.median(np.log(positive)))
    spread = 1.4826 * float(np.median(np.abs(np.log(positive) - centre)))
    limit = -float(ndtri(SCREENING.false_alarms / (2 * max(squares.size, 1))))
    reach = limit * max(spread, float(np.sqrt(2 / degrees)))
    with np.errstate(over="ignore"):
        return float(np.exp(centre - reach)), float(np.exp(centre + reach))


def reference_law(source: RowSource, weights: Array, *, seed: int) -> Array:
    """Sizes that projections on random directions exceed with the tail probabilities of the ranges, shape (tails,)."""
    n, count = source.shape[1], SCREENING.directions
    vectors = np.random.default_rng(seed + 1).standard_normal((n, count))
    projections = project(source, vectors / np.linalg.norm(vectors, axis=0))[weights > 0]
    sizes = np.abs(real_columns(projections) * (np.sqrt(2.0) if np.iscomplexobj(projections) else 1.0))
    edges: Array = np.quantile(sizes, 1 - np.array(SCREENING.tails))
    return edges


def match_normal(projections: Array, weights: Array, reference: Array | None = None) -> tuple[Array, Array]:
    """Edges of ranges of ``|t|``, and factors below one for those that hold clearly more mass than they should.

    What they should hold is what a standard normal variable, or the reference, has there.
    """
    tails = np.array(SCREENING.tails)
    normal = np.sqrt(2) * erfcinv(tails)
    # Few distinct values may give all of them to one range; a normal variable has them apart.
    edges: Array = normal if reference is None else np.maximum(normal, reference)
    ranges = np.clip(np.searchsorted(edges, np.abs(projections), side="right") - 1, 0, tails.size - 1)
    observed = np.bincount(ranges, weights, tails.size)
    expected = -np.diff(np.append(tails, 0.0)) * weights.sum()
    factors = np.ones_like(expected)
    outer = slice(SCREENING.untouched, None)
    factors[outer] = np.where(
        _crowded(observed[outer], expected[outer]), expected[outer] / np.maximum(observed[outer], 1), 1.0
    )
    return edges, factors


def _crowded(observed: Array, expected: Array | float) -> Array:
    """Which ranges hold clearly more rows than expected, beyond chance, whose variance is that number."""
    reach = -float(ndtri(SCREENING.crowded / observed.size))
    crowded: Array = observed > expected + reach * np.sqrt(expected) + 1
    return crowded

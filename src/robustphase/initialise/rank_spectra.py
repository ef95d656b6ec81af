"""Leading eigenvectors of second moments weighted by ranks: starts that need products only.

Only the ranks of the responses are used, so neither a background nor the law of the noise matters, and no reading counts more
than any other. A bounded function T of the ranks, centred, gives a matrix ``Σ T_j a_j a_jᴴ`` whose leading eigenvector leans
towards the signal. Eigenvectors of many such matrices are sought together, one pass per step. That serves

- many signals behind one design: the ranks themselves, for each (:func:`monotone_weightings`);
- linear operators, whose rows nobody can look at: several functions of the ranks (:func:`operator_directions`). One is the best
  there is without noise (Mondelli and Montanari, 2019; Luo, Alghamdi and Lu, 2019); the others look at parts of the ranks, so
  that whoever spoils one part leaves the others. Then each direction learns a function of its own. Nothing can be screened, and
  rows are assumed to have no preferred direction, that is AᴴA close to a multiple of the identity.

An attacker can hide directions from the usual weightings of the ranks (:func:`hidden_directions`). All that second moments tell
of a signal is the mean energy h(y) along it among samples of the response y. Without an attack h grows with y. Whoever rewrites a
fifth of the samples can bend it: the samples with the largest responses, rewritten with small ones, leave h with either sign, or
none, wherever he likes. But to make it vanish for *all* responses takes more than that, and a direction shows in the weighting
T(y) that goes with its h as soon as m E[h²] > n (Mondelli and Montanari, 2019), whatever its shape.

So every smooth weighting is tried. Those that are a combination of the first four cosines of the ranks are a sphere in four
dimensions, and the 24 vertices of the 24-cell cover it evenly: every combination has a cosine of 0.7 or more with one of them.
The leading direction of each learns its own weighting, the best there is for the energy that it sees, h/(1 + h) (Luo, Alghamdi
and Lu, 2019), until it stays where it is.

Samples that were rewritten in the name of a second signal depend on both, and then the directions found mix the two. The signal
is in the plane of two of them: so the most unusual ones are taken out, the next ones are found beside them, and all that lies
between is a candidate too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from robustphase.constants import TINY, budget, numeric
from robustphase.initialise.block_davidson import (
    SEARCH,
    RankBins,
    Space,
    distinct_directions,
    paired_directions,
    rank_bins,
)
from robustphase.problem import Problem
from robustphase.rows import OperatorRows, RowSource, project
from robustphase.rows.passes import in_slices
from robustphase.rows.products import abs2, adjoint_block, in_single_precision, multiply_block
from robustphase.rows.source import Array, Parts


@dataclass(frozen=True)
class SpectraOptions:
    """Constants of the weighted second moments."""

    least_margin: float = numeric(0.3, "how far from its pole the best function is kept where samples are few")
    steps: int = budget(60, "most steps of the search for eigenvectors of an operator")
    steps_of_many: int = budget(20, "the same for many signals, which move on afterwards")
    settled: float = numeric(0.05, "residual, relative to the eigenvalue, at which it ends")
    rounds: int = budget(3, "most rounds of learning")
    settled_cosine: float = numeric(0.97, "cosine with the last round at which it ends")
    same: float = numeric(
        0.99, "cosine above which directions are the same: close ones may lead to either of two answers"
    )
    negligible: float = numeric(1e-10, "what is smaller, relative to its neighbours, is rounding")


SPECTRA = SpectraOptions()


class Directions(NamedTuple):
    """Unit vectors (n, k), the mean weighted energy along each (k,), and what chance alone would give (k,)."""

    vectors: Array
    strengths: Array
    chance: Array


def monotone_weightings(values: Array, weights: Array) -> Array:
    """Ranks of the values of each column, centred and weighted, shape (m, p), in single precision.

    Values (m, p) are responses or residuals, weights (m, 1) or (m, p) those of the covariates.
    """
    m, p = values.shape
    weightings = np.empty((m, p), np.float32)
    positions = (np.arange(m) + 0.5) / m
    for column in range(p):
        w = weights[:, column if weights.shape[1] > 1 else 0]
        ranks = np.empty(m)
        ranks[np.argsort(values[:, column])] = positions
        weightings[:, column] = w * (ranks - (w @ ranks) / max(float(w.sum()), TINY))
    return weightings


def operator_directions(problem: Problem, *, seed: int = 0) -> Array:
    """Unit vectors, shape (n, k), one of which should point along the signal behind a linear operator.

    First those of the given functions of the ranks; then each direction learns a function of its own, the energy it sees in
    bins of the ranks, and is sought again with that. It sharpens the right ones, and tells a part of the ranks that was spoilt.
    """
    source, responses, weights = problem.source, problem.responses[:, 0], problem.weights[:, 0]
    is_complex = source.dtype.kind == "c" or problem.paired
    functions = rank_functions(responses, weights, source.shape[1], is_complex)
    directions = leading_directions(source, functions, random_guesses(source, functions.shape[1], seed)).vectors
    directions = directions[:, distinct_directions(directions, SPECTRA.same)]
    binned, learners = rank_bins(responses, weights), directions
    for _ in range(SPECTRA.rounds):
        learned = learned_functions(project(source, learners), binned, weights)
        before, learners = learners, leading_directions(source, learned, learners).vectors
        if (np.abs(np.vecdot(before.T, learners.T)) > SPECTRA.settled_cosine).all():
            break
    if problem.paired:
        learned = learned_functions(project(source, learners), binned, weights)
        pairs = with_partners(source, learned, learners, seed=seed)
        return pairs[:, distinct_directions(pairs, SPECTRA.same, paired=True)]
    everything = np.hstack((learners, directions))
    return everything[:, distinct_directions(everything, SPECTRA.same)]


def with_partners(
    source: RowSource, weightings: Array, leading: Array, *, most: int | None = None, seed: int = 0
) -> Array:
    """Complex unit vectors, shape (n, k), of signals behind real rows, from the leading eigenvectors of their weightings.

    The imaginary part of each is the second eigenvector; squared lengths go with the eigenvalues.
    """
    first = _unit(leading)
    m, guesses = source.shape[0], random_guesses(source, leading.shape[1], seed + 1)
    strengths = np.vecdot(first.T, (_products(source, first, weightings) / m).T).real
    second = leading_directions(source, weightings, guesses, most=most, beside=first)
    shares = np.clip(second.strengths / np.maximum(strengths, TINY), SEARCH.least_part, 1.0)
    return _unit(first + 1j * np.sqrt(shares) * second.vectors)


def random_guesses(source: RowSource, count: int, seed: int) -> Array:
    """Vectors without structure, shape (n, count)."""
    rng = np.random.default_rng(seed)
    guesses: Array = rng.standard_normal((source.shape[1], count))
    return guesses + 1j * rng.standard_normal(guesses.shape) if source.dtype.kind == "c" else guesses


def learned_functions(projections: Array, binned: RankBins, weights: Array) -> Array:
    """Energy that each direction sees in the bin of a sample, against its average: centred and of unit size, shape (m, k)."""
    energies = np.stack(
        [np.bincount(binned.bins, weights * column, binned.mass.size) / binned.mass for column in abs2(projections).T],
        axis=1,
    )
    shares = binned.mass / binned.mass.sum()
    energies -= shares @ energies
    energies /= np.maximum(np.sqrt(shares @ energies**2), TINY)
    functions: Array = energies[binned.bins] * weights[:, np.newaxis]
    return functions


def rank_functions(responses: Array, weights: Array, n: int, is_complex: bool) -> Array:
    """Bounded functions of the ranks, centred and of unit size, shape (m, k); zero where the weight is zero.

    The best there is without noise; then the groups of bins that also rows of a design are searched by.
    """
    used = weights > 0
    count = int(used.sum())
    ranks = np.full(responses.size, 0.5)
    ranks[used] = (np.argsort(np.argsort(responses[used], kind="stable"), kind="stable") + 0.5) / count
    # A response over its mean, as it would be without noise: exponential, or the square of a normal variable.
    expected = -np.log1p(-ranks) if is_complex else ndtri((1 + ranks) / 2) ** 2
    margin = max(float(np.sqrt(count / n)) - 1, SPECTRA.least_margin)
    # Only leading eigenvectors are sought: along the signal, small responses have too little energy.
    signs = [1.0 if low + high > SEARCH.bins else -1.0 for low, high in SEARCH.groups]
    places = SEARCH.bins * ranks
    groups = [sign * ((places > low) & (places < high)) for sign, (low, high) in zip(signs, SEARCH.groups, strict=True)]
    functions = np.stack([(expected - 1) / (expected + margin), *groups], axis=1)
    functions -= functions[used].mean(axis=0)
    functions /= np.maximum(np.sqrt((functions[used] ** 2).mean(axis=0)), TINY)
    functions[~used] = 0.0
    return functions


def leading_directions(
    source: RowSource, weightings: Array, guesses: Array, *, most: int | None = None, beside: Array | None = None
) -> Directions:
    """Leading eigenvectors of ``Σ_j t_j a_j a_jᴴ / m`` for each column t of the weightings, from ``guesses`` (n, k).

    By Knyazev's locally optimal conjugate gradients (2001): the best vector in the span of the present one, its residual and the
    last step. That needs three vectors per weighting whatever the number of steps, and one pass per step for all of them.
    With unit vectors ``beside`` (n, k), the leading ones among those orthogonal to them.
    """
    m, n = source.shape

    def inside(vectors: Array) -> Array:
        return vectors if beside is None else vectors - beside * np.vecdot(beside.T, vectors.T)

    vectors = _unit(inside(guesses))
    images = inside(_products(source, vectors, weightings) / m)
    steps = step_images = np.zeros_like(vectors)
    for _ in range(SPECTRA.steps if most is None else most):
        values = np.vecdot(vectors.T, images.T).real
        residuals = images - vectors * values
        if (np.linalg.norm(residuals, axis=0) <= SPECTRA.settled * np.abs(values)).all():
            break
        residuals = _unit(residuals - vectors * np.vecdot(vectors.T, residuals.T))
        spanned = np.stack((vectors, residuals, steps))
        multiplied = np.stack((images, inside(_products(source, residuals, weightings) / m), step_images))
        mixtures = _best_mixtures(spanned, multiplied)
        steps, step_images = (np.einsum("dk,dnk->nk", mixtures[1:], parts[1:]) for parts in (spanned, multiplied))
        vectors, images = vectors * mixtures[0] + steps, images * mixtures[0] + step_images
        lengths = np.maximum(np.linalg.norm(vectors, axis=0), TINY)
        vectors, images = vectors / lengths, images / lengths
        lengths = np.maximum(np.linalg.norm(steps, axis=0), TINY)
        steps, step_images = steps / lengths, step_images / lengths
    squares = np.linalg.norm(weightings, axis=0).astype(np.float64)
    chance = 2 * np.sqrt(n) * squares / m + n * np.abs(weightings).max(axis=0) / m
    return Directions(vectors, np.vecdot(vectors.T, images.T).real, chance)


def _products(source: RowSource, vectors: Array, weightings: Array) -> Array:
    """``Σ_j t_j a_j a_jᴴ v`` for every column, in single precision where rows are stored: one pass."""
    if isinstance(source, OperatorRows):
        rounded = vectors
    else:
        rounded = vectors.astype(np.complex64 if np.iscomplexobj(vectors) else np.float32)

    def kernel(block: Array, t: Array) -> Parts:
        rows = in_single_precision(block)
        projections = multiply_block(rows, rounded)
        # Rows without weight may be too long for single precision.
        projections[(t == 0).all(axis=1)] = 0
        projections *= t
        return Parts(sums=(adjoint_block(rows, projections),))

    return source.reduce(in_slices(kernel, vectors.shape[1]), (weightings,)).sums[0]


def _best_mixtures(vectors: Array, images: Array) -> Array:
    """Coefficients, shape (3, k), of the mixtures of unit vectors (3, n, k) with the largest Rayleigh quotients."""
    inner = np.einsum("dnk,enk->kde", vectors.conj(), vectors)
    small = np.einsum("dnk,enk->kde", vectors.conj(), images)
    sizes, basis = np.linalg.eigh(inner)
    kept = sizes > SPECTRA.negligible
    basis = np.where(kept[:, np.newaxis], basis / np.sqrt(np.where(kept, sizes, 1.0))[:, np.newaxis], 0.0)
    reduced = basis.conj().transpose(0, 2, 1) @ small @ basis
    reduced = (reduced + reduced.conj().transpose(0, 2, 1)) / 2
    # A part of the span that is no direction of its own must not win, also where all eigenvalues are negative.
    lowest = -np.abs(reduced).sum(axis=(1, 2)) - 1
    reduced += np.where(kept, 0.0, lowest[:, np.newaxis])[:, np.newaxis] * np.eye(3)
    _, rotations = np.linalg.eigh(reduced)
    mixtures: Array = np.einsum("kde,ke->dk", basis, rotations[:, :, -1])
    return mixtures


def _unit(vectors: Array) -> Array:
    unit: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=0), TINY)
    return unit


@dataclass(frozen=True)
class HiddenOptions:
    """Constants of the search for hidden directions."""

    passes: int = budget(5, "passes that follow the smooth weightings")
    learning_passes: int = budget(2, "passes that follow the learned ones")
    rounds: int = budget(3, "rounds of learning before each pass, and after the last")
    same: float = numeric(0.9, "cosine above which two directions are the same")
    planes: int = budget(3, "most unusual directions, and as many beside each of them, that span planes")
    angles: int = budget(6, "directions in each plane")
    least: float = numeric(
        0.05, "energies over their mean below it count as that: the best weighting has a pole at none"
    )


HIDDEN = HiddenOptions()


def smooth_weightings(binned: RankBins) -> Array:
    """Weightings of the bins in all directions of the first four cosines of the ranks, shape (24, bins), times their shares."""
    shares = binned.mass / binned.mass.sum()
    middles = np.cumsum(shares) - shares / 2
    waves = np.cos(np.pi * middles * np.arange(1, 5)[:, np.newaxis])
    # Half of the vertices of the 24-cell; the others are opposite.
    vertices = np.vstack((2 * np.eye(4), [(1, *signs) for signs in product((1, -1), repeat=3)])) / 2
    weightings = vertices @ waves
    weightings = shares * (weightings - (weightings @ shares)[:, np.newaxis])
    return np.vstack((weightings, -weightings))


def hidden_directions(
    source: RowSource, responses: Array, weights: Array, *, paired: bool = False, seed: int = 0
) -> Array:
    """Unit vectors, shape (n, k), along which the energy depends on the responses in any way at all.

    The arguments are those of :func:`~robustphase.initialise.block_davidson.candidate_directions`.
    """
    binned, n = rank_bins(responses, weights), source.shape[1]
    space, weightings = Space(source, binned, weights), smooth_weightings(binned)
    space.grow(np.random.default_rng(seed).standard_normal((n, min(SEARCH.first_vectors, n))))
    # A space that is full stays as it is.
    for _ in range(HIDDEN.passes):
        if space.full:
            break
        space.grow(_left_over(space, weightings, _leading(space.small, weightings)))
    for _ in range(HIDDEN.learning_passes):
        if space.full:
            break
        learned, leading = learn(space.small, space.shares, weightings)
        space.grow(_left_over(space, learned, leading))
    found, learned = _distinct(space.small, space.shares, weightings)
    if paired:
        pairs = paired_directions(space, learned)
        return space.basis @ pairs[:, distinct_directions(pairs, SEARCH.same_after, paired=True)]
    planes = [found, *(_planes(space, direction, weightings) for direction in found.T[: HIDDEN.planes])]
    return np.asarray(space.basis @ np.hstack(planes))


def learn(small: Array, shares: Array, weightings: Array) -> tuple[Array, Array]:
    """Weightings that follow from the energies along their own leading directions, shape (k, bins), and those, shape (p, k)."""
    leading = _leading(small, weightings)
    for _ in range(HIDDEN.rounds):
        weightings = best_weightings(energies(small, leading), shares)
        leading = _leading(small, weightings)
    return weightings, leading


def energies(small: Array, coordinates: Array) -> Array:
    """Mean energy of every bin along each direction, shape (k, bins)."""
    seen: Array = np.einsum("pk,bpk->kb", coordinates.conj(), small @ coordinates).real
    return seen


def best_weightings(seen: Array, shares: Array) -> Array:
    """h/(1 + h) for the energies 1 + h over their mean, times the shares of the bins, shape (k, bins)."""
    relative = seen / np.maximum(seen @ shares, TINY)[:, np.newaxis]
    weightings: Array = shares * (1 - 1 / np.maximum(relative, HIDDEN.least))
    return weightings


def _distinct(small: Array, shares: Array, weightings: Array) -> tuple[Array, Array]:
    """Coordinates (p, k) of the directions where learning ends, the most unusual energies first, and their weightings."""
    learned, leading = learn(small, shares, weightings)
    seen = energies(small, leading)
    unusual = ((seen - (seen @ shares)[:, np.newaxis]) ** 2) @ shares
    order = np.argsort(-unusual, kind="stable")
    chosen = order[distinct_directions(leading[:, order], HIDDEN.same)]
    return leading[:, chosen], learned[chosen]


def _planes(space: Space, direction: Array, weightings: Array) -> Array:
    """Directions in the planes that one direction spans with those found beside it, shape (p, k), without itself."""
    if direction.size < 2:
        return np.empty((direction.size, 0))
    # The complement: all but the first column of an orthonormal basis that begins with the direction.
    beside = np.linalg.qr(np.column_stack((direction, np.eye(direction.size))))[0][:, 1:]
    small = beside.conj().T @ space.small @ beside
    others = beside @ _distinct(small, space.shares, weightings)[0][:, : HIDDEN.planes]
    angles = np.pi * np.arange(1, HIDDEN.angles) / HIDDEN.angles
    turned = direction[:, np.newaxis, np.newaxis] * np.cos(angles) + others[:, :, np.newaxis] * np.sin(angles)
    return np.asarray(turned.reshape(direction.size, -1))


def _leading(small: Array, weightings: Array) -> Array:
    """Leading eigenvector of ``Σ_b t_b M_b`` for every weighting t, shape (p, k)."""
    last = [small.shape[1] - 1] * 2
    # One at a time and the last vector alone: numpy would compute them all.
    found = [eigh(matrix, subset_by_index=last)[1] for matrix in np.tensordot(weightings, small, 1)]
    return np.hstack(found)


def _left_over(space: Space, weightings: Array, coordinates: Array) -> Array:
    """What the products of directions with their weighted second moments have outside the space, shape (n, k)."""
    images = np.einsum("kb,bnk->nk", weightings, space.images @ coordinates)
    return np.asarray(images - space.basis @ (space.basis.conj().T @ images))

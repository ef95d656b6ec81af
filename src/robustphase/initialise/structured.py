"""The start for linear operators: products only, no rows to look at.

As for arrays only the ranks of the responses are used, so neither a background nor the law of the noise matters, and no reading
counts more than any other. A rank stands for the response that a noiseless Gaussian sample of that rank would have; bounded
functions T of it, centred, give matrices ``Σ T_j a_j a_jᴴ`` whose leading eigenvector leans towards the signal. One function is
the best there is without noise (Mondelli and Montanari, 2019; Luo, Alghamdi and Lu, 2019); the others look at parts of the
ranks, so that whoever spoils one part leaves the others. All eigenvectors are sought together, one pass per step.

Covariates are taken as they are: nothing can be screened, and rows are assumed to have no preferred direction, that is AᴴA close
to a multiple of the identity. Their size need not be that of standard normal rows; it is estimated.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from robustphase.initialise.directions import RankBins, distinct_directions, rank_bins
from robustphase.initialise.norms import Candidates, profile_norms
from robustphase.initialise.start import MOST_SHRUNKEN, Problem, in_natural_units
from robustphase.rows import OperatorRows, RowSource, project, sweep
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: Most steps of the search for eigenvectors, and the residual, relative to the eigenvalue, at which it ends.
STEPS, SETTLED = 60, 0.05
#: Most rounds of learning, and the cosine with the last round at which it ends.
LEARNED_ROUNDS, SETTLED_COSINE = 3, 0.97
#: Directions whose cosine exceeds this are the same: close ones may lead to either of two answers that are close.
SAME = 0.99
#: Ranges of ranks that are looked at alone: the largest responses; the smallest; and large ones against small ones without the
#: smallest, among which erased responses lie.
TOP, BOTTOM, LARGE, SMALL = 0.85, 0.3, 0.6, (0.15, 0.5)
#: Responses beyond this many times their mean are that large.
CLIP = 3.0
#: How far from its pole the best function is kept where samples are few.
LEAST_MARGIN = 0.3
#: What is smaller than this, relative to its neighbours, is rounding.
NEGLIGIBLE = 1e-10
_TINY = float(np.finfo(np.float64).tiny)


def normalised(samples: Samples) -> tuple[Samples, float]:
    """Samples whose rows have entries of mean square one, and the number their rows were divided by.

    Signals belong to the rows: those of the normalised samples are this number times as long.
    """
    source = samples.source
    assert isinstance(source, OperatorRows)
    size = float(np.sqrt(source.mean_square()))
    if not 0 < size < np.inf:
        raise ValueError(
            f"the rows of A have a mean square of {size**2:g}: there is nothing to recover. Check that A is not zero."
        )
    return samples._replace(source=source.rescaled(1 / size)), size


def pose_structured(samples: Samples, contamination: float | str, *, unknown_mean: bool) -> Problem:
    """The responses in natural units; every sample that can be computed with has full weight."""
    return in_natural_units(samples, contamination, unknown_mean, (~samples.dropped).astype(np.float64))


def structured_candidates(
    samples: Samples, contamination: float | str, *, unknown_mean: bool, seed: int = 0
) -> tuple[Problem, Candidates]:
    """The problem, and candidate signals for the race; rows must be normalised."""
    problem = pose_structured(samples, contamination, unknown_mean=unknown_mean)
    data = problem.data
    directions = candidate_directions(data.source, data.responses, data.weights, seed=seed)
    full, shrunken = profile_norms(data, directions, seed=seed)
    best_first = np.argsort(-shrunken.scores, kind="stable")
    return problem, full.joined(shrunken.only(best_first[:MOST_SHRUNKEN]))


def candidate_directions(source: RowSource, responses: Array, weights: Array, *, seed: int = 0) -> Array:
    """Unit vectors, shape (n, k), one of which should point along the signal.

    First those of the given functions of the ranks; then each direction learns a function of its own, the energy it sees in
    bins of the ranks, and is sought again with that. It sharpens the right ones, and tells a part of the ranks that was spoilt.
    """
    n, dtype = source.shape[1], np.result_type(source.dtype, np.float64)
    rng = np.random.default_rng(seed)
    functions = rank_functions(responses, weights, n, source.dtype.kind == "c")
    guesses = rng.standard_normal((n, functions.shape[1])).astype(dtype)
    if dtype.kind == "c":
        guesses += 1j * rng.standard_normal(guesses.shape)
    directions = leading_directions(source, functions, guesses)
    directions = directions[:, distinct_directions(directions, SAME)]
    binned, learners = rank_bins(responses, weights), directions
    for _ in range(LEARNED_ROUNDS):
        learned = learned_functions(project(source, learners), binned, weights)
        before, learners = learners, leading_directions(source, learned, learners)
        if (np.abs(np.vecdot(before.T, learners.T)) > SETTLED_COSINE).all():
            break
    everything = np.hstack((learners, directions))
    return everything[:, distinct_directions(everything, SAME)]


def learned_functions(projections: Array, binned: RankBins, weights: Array) -> Array:
    """Energy that each direction sees in the bin of a sample, against its average: centred and of unit size, shape (m, k)."""
    energies = np.stack(
        [np.bincount(binned.bins, weights * column, binned.mass.size) / binned.mass for column in abs2(projections).T],
        axis=1,
    )
    shares = binned.mass / binned.mass.sum()
    energies -= shares @ energies
    energies /= np.maximum(np.sqrt(shares @ energies**2), _TINY)
    functions: Array = energies[binned.bins] * weights[:, np.newaxis]
    return functions


def rank_functions(responses: Array, weights: Array, n: int, is_complex: bool) -> Array:
    """Bounded functions of the ranks, centred and of unit size, shape (m, k); zero where the weight is zero."""
    used = weights > 0
    count = int(used.sum())
    ranks = np.full(responses.size, 0.5)
    ranks[used] = (np.argsort(np.argsort(responses[used], kind="stable"), kind="stable") + 0.5) / count
    # A response over its mean, as it would be without noise: exponential, or the square of a normal variable.
    expected = -np.log1p(-ranks) if is_complex else ndtri((1 + ranks) / 2) ** 2
    margin = max(float(np.sqrt(count / n)) - 1, LEAST_MARGIN)
    columns = [
        (expected - 1) / (expected + margin),
        np.minimum(expected, CLIP),
        (ranks > TOP).astype(np.float64),
        -(ranks < BOTTOM).astype(np.float64),
        (ranks > LARGE).astype(np.float64) - ((ranks > SMALL[0]) & (ranks < SMALL[1])),
    ]
    functions = np.stack(columns, axis=1)
    functions -= functions[used].mean(axis=0)
    functions /= np.maximum(np.sqrt((functions[used] ** 2).mean(axis=0)), _TINY)
    functions[~used] = 0.0
    return functions


def leading_directions(source: RowSource, functions: Array, guesses: Array) -> Array:
    """Leading eigenvectors of ``Σ_j t_j a_j a_jᴴ / m`` for each column t of ``functions``, shape (n, k), from ``guesses``.

    By Knyazev's locally optimal conjugate gradients (2001): the best vector in the span of the present one, its residual and the
    last step. That needs three vectors per function whatever the number of steps, and one pass per step for all functions.
    """
    shares = functions / source.shape[0]

    def times(these: Array) -> Array:
        return sweep(source, these, lambda s, t: t * s, (shares,)).total

    vectors = _unit(guesses)
    images = times(vectors)
    steps = step_images = np.zeros_like(vectors)
    for _ in range(STEPS):
        values = np.vecdot(vectors.T, images.T).real
        residuals = images - vectors * values
        if (np.linalg.norm(residuals, axis=0) <= SETTLED * np.abs(values)).all():
            break
        residuals = _unit(residuals - vectors * np.vecdot(vectors.T, residuals.T))
        spanned = np.stack((vectors, residuals, steps))
        multiplied = np.stack((images, times(residuals), step_images))
        chosen = np.stack([_best_mixture(spanned[..., j], multiplied[..., j]) for j in range(vectors.shape[1])], axis=1)
        steps, step_images = (np.einsum("dk,dnk->nk", chosen[1:], parts[1:]) for parts in (spanned, multiplied))
        vectors, images = vectors * chosen[0] + steps, images * chosen[0] + step_images
        lengths = np.maximum(np.linalg.norm(vectors, axis=0), _TINY)
        vectors, images = vectors / lengths, images / lengths
        lengths = np.maximum(np.linalg.norm(steps, axis=0), _TINY)
        steps, step_images = steps / lengths, step_images / lengths
    return vectors


def _best_mixture(vectors: Array, images: Array) -> Array:
    """Coefficients, shape (3,), of the mixture of unit vectors (3, n) with the largest Rayleigh quotient."""
    inner, small = vectors.conj() @ vectors.T, vectors.conj() @ images.T
    sizes, basis = eigh(inner)
    kept = sizes > NEGLIGIBLE
    basis = basis[:, kept] / np.sqrt(sizes[kept])
    reduced = basis.conj().T @ small @ basis
    _, rotations = eigh((reduced + reduced.conj().T) / 2)
    mixture: Array = basis @ rotations[:, -1]
    return mixture


def _unit(vectors: Array) -> Array:
    unit: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=0), _TINY)
    return unit

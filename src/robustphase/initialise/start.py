"""Where the descent starts: screened covariates, candidate directions, norms by likelihood.

It asks for a number of samples proportional to n, survives a constant share of contamination in covariates and responses, and
does not care about the noise mean. Directions become signals by the norm (and background) that explains most. Three strategies,
one for each kind of problem:

- *broad* (:func:`broad_start`): one signal gets up to 16 candidates from a search over groups of rank bins;
- *shared* (:func:`shared_start`): many signals behind one design get one candidate each, all of them from common passes;
- *operator* (:func:`operator_start`): covariates that are a linear operator are not looked at.

All hand on candidates with their scores; choosing among them is the recovery engine's work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np

from robustphase.constants import TINY, budget, derived
from robustphase.initialise.block_davidson import candidate_directions
from robustphase.initialise.procedures import Leading, complex_pair, published_start
from robustphase.initialise.rank_spectra import (
    SPECTRA,
    Directions,
    hidden_directions,
    leading_directions,
    monotone_weightings,
    operator_directions,
    random_guesses,
    with_partners,
)
from robustphase.initialise.screening import length_kurtosis, plausible_rows, screen_directions
from robustphase.initialise.standardise import STANDARD, standardised
from robustphase.likelihood import compare, residual_scales, score
from robustphase.likelihood.comparison import comparison_floor
from robustphase.options import with_defaults
from robustphase.problem import Candidates, Problem, Screen, assumed_level, build_problem
from robustphase.rows import OperatorRows, RowSource, ScaledRows, sweep
from robustphase.rows.passes import project_rows
from robustphase.rows.products import abs2
from robustphase.rows.source import Array
from robustphase.rows.threads import single_threaded_blas
from robustphase.validation import Samples, check_choice, check_contamination, check_samples, in_ordinary_units


@dataclass(frozen=True)
class NormOptions:
    """Constants of the search for norms."""

    full: tuple[float, ...] = derived(
        (0.65, 0.95, 1.4, 2.2, 3.2), "squared norms in units of the interquartile range of the responses"
    )
    noiseless: float = derived(1.22, "that range over ‖x‖² for chi-square variables; it is more with noise")
    shrunken: tuple[float, ...] = derived((0.15, 0.3, 0.45), "norms that part of the responses would suggest")
    samples: int = budget(3000, "samples that are enough to compare norms")
    samples_of_many: int = budget(1000, "samples that are enough where steps follow for every signal anyway")

    @property
    def long(self) -> tuple[float, ...]:
        """Those of the full norms that are too long for responses without noise."""
        return tuple(norm for norm in self.full if norm > 1 / self.noiseless)


NORMS = NormOptions()


def profile_norms(problem: Problem, directions: Array, *, seed: int = 0) -> tuple[Candidates, Candidates]:
    """The best full norm on a grid for each direction (n, k); and the best norm of all, where that is smaller.

    A direction that is somewhat off explains less than the signal does, and then a shrunken signal explains most; so does one
    whose largest responses were cut off. But a descent that starts too long finds its length in a few steps, whereas one that
    starts too short may lose its direction. So the norms that clean data would suggest, and larger ones, come first. If the
    noise mean is unknown each norm gets its own background, the median residual.
    """
    tried = _try_norms(problem, directions, NORMS.shrunken + NORMS.full, NORMS.samples, seed)
    shrunken = len(NORMS.shrunken)
    full, _ = _best_of(tried[shrunken:])
    free, chosen = _best_of(tried)
    # Where the likelihood chose a full norm there is nothing to add.
    return full, free.only(np.flatnonzero(chosen < shrunken))


def profile_full_norms(problem: Problem, directions: Array, *, seed: int = 0) -> Candidates:
    """The best full norm on a grid for the direction of each signal, where responses have a column for each."""
    return _best_of(_try_norms(problem, directions, NORMS.full, NORMS.samples_of_many, seed))[0]


def with_long_norms(problem: Problem, directions: Array, *, seed: int = 0) -> Candidates:
    """Every direction with each of the norms that are rather too long, for one signal.

    Where the likelihood was deceived it chooses norms that are too short.
    """
    tried = _try_norms(problem, directions, NORMS.long, NORMS.samples, seed)
    return Candidates(*(np.concatenate(parts, axis=-1) for parts in zip(*tried, strict=True)))


def _try_norms(
    problem: Problem, directions: Array, squared_norms: tuple[float, ...], samples: int, seed: int
) -> list[Candidates]:
    """Every direction with each of the norms, judged on some of the samples: one pass."""
    usable = np.flatnonzero((problem.weights > 0).any(axis=1))
    if usable.size > samples:
        usable = np.random.default_rng(seed).choice(usable, samples, replace=False)
    squares = abs2(project_rows(problem.source, directions, usable))
    y, w, f = (values[usable] for values in (problem.responses, problem.weights, problem.density))
    tried = []
    for squared_norm in squared_norms:
        residuals = y - squared_norm * squares
        background = np.median(residuals, axis=0) if problem.unknown_mean else np.zeros(directions.shape[1])
        residuals -= background
        scales = residual_scales(residuals, w > 0, problem.levels)
        value = score(compare(residuals, f, scales, problem.levels)[1], w)
        tried.append(Candidates(directions * np.sqrt(squared_norm), background, scales, value))
    return tried


def _best_of(tried: list[Candidates]) -> tuple[Candidates, Array]:
    """For each direction the candidate with the best score, and its place in the list."""
    chosen = np.argmax([candidates.scores for candidates in tried], axis=0)
    columns = np.arange(chosen.size)
    signals, *others = (np.stack(parts)[chosen, ..., columns] for parts in zip(*tried, strict=True))
    return Candidates(signals.T, *others), chosen


METHODS = ("auto", "mean", "covariance", "spectral")


@dataclass(frozen=True)
class StartOptions:
    """Constants of the start."""

    candidates: int = budget(16, "most candidates handed on")
    shrunken: int = budget(4, "most of them that repeat a direction with a shrunken norm")


START = StartOptions()


@dataclass(frozen=True)
class StartResult:
    """A start and its evidence.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        The candidate with the best score.
    candidates : ndarray of shape (k, n)
        All candidates, best first.
    scores : ndarray of shape (k,)
        Mean log-likelihood ratio of each against no signal at all; not comparable between data sets.
    backgrounds : ndarray of shape (k,)
        Noise mean that goes with each candidate.
    weights : ndarray of shape (m,)
        Weights of the samples: 0 where the covariates cannot belong to the design.
    contamination : float
        The level used.
    """

    signal: Array
    candidates: Array
    scores: Array
    backgrounds: Array
    weights: Array
    contamination: float


class InitOptions(TypedDict, total=False):
    """What the start shares with a fit; described by :func:`spectral_init`."""

    delta: float
    nonfinite: str
    random_state: int
    field: str


DEFAULTS = InitOptions(delta=0.01, nonfinite="raise", random_state=0, field="auto")


def spectral_init(
    A: Any,
    y: Any,
    contamination: float | str = 0.1,
    noise_mean: str = "zero",
    method: str = "auto",
    *,
    whiten: bool | str = "auto",
    **options: Unpack[InitOptions],
) -> StartResult:
    """A starting point for the descent, with its evidence.

    Parameters
    ----------
    A : array-like of shape (m, n) or RowSource
        Covariates, standard normal except for the bad ones.
    y : array-like of shape (m,)
        Responses.
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the samples that may be bad.
    noise_mean : {"zero", "unknown"}, default="zero"
        Whether the noise may have a mean, the background.
    method : {"auto", "mean", "covariance", "spectral"}, default="auto"
        The default start; the two configurations of the paper's Procedure 1 (or 3, for an unknown mean); or the plain
        spectral start without any robustness.
    whiten : {"auto", True, False}, default="auto"
        Standardise the second moment of the rows (scale, mean, covariance) where it is not the identity, always, or never.

    Other Parameters
    ----------------
    delta : float, default=0.01
        Confidence parameter of the paper's procedures.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or count them as contaminated, as finite ones too large to compute
        with always are.
    random_state : int, default=0
        Seed for first guesses and subsamples.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.

    Returns
    -------
    StartResult
    """
    given = with_defaults(DEFAULTS, options, spectral_init)
    seed = given["random_state"]
    level = check_contamination(contamination, allow_auto=True)
    check_choice("noise_mean", noise_mean, ("zero", "unknown"))
    check_choice("method", method, METHODS)
    check_whiten(whiten)
    looking = STANDARD.rows if whiten == "auto" and method == "auto" else 0
    samples = check_samples(A, y, nonfinite=given["nonfinite"], field=given["field"], look=looking)
    samples, size = in_ordinary_units(samples)
    # The paper's procedures and the plain start are for the rows as they are, unless told otherwise.
    standard = standardised(samples, whiten, level)
    samples = standard.samples
    unknown = noise_mean == "unknown"
    if method == "auto":
        with single_threaded_blas():
            problem, screen = screened_problem(samples, level, unknown_mean=unknown, thorough=False, seed=seed)
            problem, found = broad_start(problem, screen=screen, seed=seed)
        found = _best(found, START.candidates)
        unit, used = float(problem.units[0]), float(problem.levels[0])
        signals, backgrounds, scores = np.sqrt(unit) * found.signals, unit * found.backgrounds, found.scores
        weights = problem.weights[:, 0]
    else:
        used = assumed_level(level) if isinstance(level, str) else level
        signal, weights = _single_start(samples, used, unknown, method, given["delta"])
        signals, backgrounds, scores = signal[:, np.newaxis], np.zeros(1), np.zeros(1)
    signals = standard.back(signals) / size
    return StartResult(signals[:, 0], signals.T, scores, backgrounds, weights, used)


def screened_problem(
    samples: Samples, contamination: float | str, *, unknown_mean: bool, thorough: bool, seed: int = 0
) -> tuple[Problem, bool]:
    """The standardised problem; and whether rows may still be weighed down along directions.

    ``thorough`` is to look for directions of too much energy at once. The broad start looks at all samples together anyway, and
    notices such directions without a pass of its own.
    """
    responses = _columns(samples.responses)
    dropped = _columns(samples.dropped)
    usable: Array = ~np.asarray(dropped.all(axis=1))
    if isinstance(samples.source, OperatorRows):
        weights, screen, screenable, kurtosis = np.asarray(usable, np.float64), None, False, 1.0
    else:
        squares = ScaledRows(samples.source).squared_distances()
        weights, screen = plausible_rows(samples.source, usable, normal=samples.normal, squares=squares)
        screenable = screen is not None
        kurtosis = 1.0 if samples.normal else length_kurtosis(squares, weights)
        if thorough and screen is not None:
            weights, down = screen_directions(samples.source, weights, normal=samples.normal, seed=seed)
            screen, screenable = screen._replace(directions=down), False
    per_column = (
        weights[:, np.newaxis] * ~dropped if responses.shape[1] > 1 and dropped.any() else weights[:, np.newaxis]
    )
    levels = np.full(responses.shape[1], assumed_level(contamination))
    problem = build_problem(
        samples.source, responses, per_column, levels, unknown_mean=unknown_mean, paired=samples.paired
    )._replace(normal=samples.normal, kurtosis=kurtosis, screen=Screen() if screen is None else screen)
    return problem, screenable


def broad_start(problem: Problem, *, screen: bool, seed: int = 0) -> tuple[Problem, Candidates]:
    """At most 16 candidates for one signal, best score first; and the problem, with better weights of the rows.

    The search for directions looks at all samples together anyway, so it notices rows that have to be screened; without any
    the screening costs nothing.
    """
    directions, weights, down = candidate_directions(
        problem.source,
        problem.responses[:, 0],
        problem.weights[:, 0],
        screen=screen,
        paired=problem.paired,
        normal=problem.normal,
        seed=seed,
    )
    screened = problem.screen._replace(directions=(*problem.screen.directions, *down))
    problem = problem._replace(weights=weights[:, np.newaxis], screen=screened)
    full, shrunken = profile_norms(problem.floored(comparison_floor(problem.levels)), directions, seed=seed)
    shrunken = _best(shrunken, START.shrunken)
    return problem, _best(full, START.candidates - shrunken.scores.size).joined(shrunken)


def hidden_start(problem: Problem, *, seed: int = 0) -> Candidates:
    """Candidates for one signal that may have been hidden from the broad start, in no order."""
    directions = hidden_directions(
        problem.source, problem.responses[:, 0], problem.weights[:, 0], paired=problem.paired, seed=seed
    )
    return with_long_norms(problem.floored(comparison_floor(problem.levels)), directions, seed=seed)


def shared_start(problem: Problem, *, seed: int = 0) -> tuple[Candidates, Directions]:
    """One candidate for every signal, and the directions they came from."""
    found = unusual_directions(problem, problem.responses, seed=seed)
    vectors = found.vectors
    if problem.paired:
        weightings = monotone_weightings(problem.responses, problem.weights)
        vectors = with_partners(problem.source, weightings, vectors, most=SPECTRA.steps_of_many, seed=seed)
    return profile_full_norms(problem.floored(comparison_floor(problem.levels)), vectors, seed=seed), found


def unusual_directions(problem: Problem, values: Array, *, most: int | None = None, seed: int = 0) -> Directions:
    """For every column of values the direction along which they depend on the covariates most."""
    weightings = monotone_weightings(values, problem.weights)
    guesses = random_guesses(problem.source, values.shape[1], seed)
    return leading_directions(problem.source, weightings, guesses, most=SPECTRA.steps_of_many if most is None else most)


def operator_start(problem: Problem, *, seed: int = 0) -> Candidates:
    """Candidates for the signal behind a linear operator, whose rows must be normalised."""
    directions = operator_directions(problem, seed=seed)
    full, shrunken = profile_norms(problem.floored(comparison_floor(problem.levels)), directions, seed=seed)
    return full.joined(_best(shrunken, START.shrunken))


def normalised(samples: Samples) -> tuple[Samples, float, Array]:
    """Samples whose rows have entries of mean square one, the number their rows were divided by, and the energies of the columns.

    Signals belong to the rows: those of the normalised samples are this number times as long.
    """
    source = samples.source
    assert isinstance(source, OperatorRows)
    energies = source.column_energies()
    size = float(np.sqrt(energies.mean() / source.shape[0]))
    if not 0 < size < np.inf:
        raise ValueError(
            f"the rows of A have a mean square of {size**2:g}: there is nothing to recover. Check that A is not zero."
        )
    return samples._replace(source=source.rescaled(1 / size)), size, energies / size**2


def check_whiten(whiten: Any) -> None:
    """Refuse what is neither yes, no nor "auto"."""
    if not (isinstance(whiten, (bool, np.bool_)) or whiten == "auto"):
        raise ValueError(f'whiten must be "auto", True or False, got {whiten!r}.')


def plain_spectral_start(
    source: RowSource, responses: Array, *, paired: bool = False, tol: float = 1e-3, max_iter: int = 200
) -> Array:
    """Leading eigenvector of ``Σ y_j a_j a_jᴴ`` by power iteration, with the norm ``sqrt(mean(y))``; not robust.

    With ``paired``, a complex signal from two eigenvectors behind real rows.
    """
    power = max(float(responses.mean()), 0.0)
    first, size = _power_iteration(source, responses, np.empty((source.shape[1], 0)), tol, max_iter)
    direction = first
    if paired:
        second, other = _power_iteration(source, responses, first[:, np.newaxis], tol, max_iter)
        leading = Leading(np.column_stack((first, second)), np.array([size, other]) / responses.size)
        direction = complex_pair(leading, 2 * power)
    start: Array = np.sqrt(power) * direction
    return start


def _power_iteration(
    source: RowSource, responses: Array, around: Array, tol: float, max_iter: int
) -> tuple[Array, float]:
    """Leading eigenvector of ``Σ y_j a_j a_jᴴ`` among the vectors orthogonal to the columns of ``around``; its eigenvalue."""
    # A fixed vector without structure: reproducible, and orthogonal to no signal anybody would have.
    vector = np.random.default_rng(0).standard_normal(source.shape[1]).astype(np.result_type(source.dtype, np.float64))
    vector = vector - around @ (around.conj().T @ vector)
    vector /= max(float(np.linalg.norm(vector)), TINY)
    size = 0.0
    for _ in range(max_iter):
        product = sweep(source, vector, lambda s, y: y * s, (responses,)).total
        product = product - around @ (around.conj().T @ product)
        size = float(np.linalg.norm(product))
        if size == 0:
            break
        previous, vector = vector, product / size
        if np.linalg.norm(vector - previous * np.sign(np.vdot(previous, vector).real)) < tol:
            break
    return vector, size


def _best(candidates: Candidates, most: int) -> Candidates:
    """The best-scored candidates, best first."""
    return candidates.only(np.argsort(-candidates.scores, kind="stable")[:most])


def _columns(values: Array) -> Array:
    return values if values.ndim == 2 else values[:, np.newaxis]


def _single_start(
    samples: Samples, contamination: float, unknown_mean: bool, method: str, delta: float
) -> tuple[Array, Array]:
    if method == "spectral":
        weights = (~samples.dropped).astype(np.float64)
        # The mean response is that of the samples that have one.
        start = plain_spectral_start(samples.source, samples.responses, paired=samples.paired)
        return start / np.sqrt(weights.mean()), weights
    published = published_start(
        samples, contamination=contamination, delta=delta, configuration=method, paired=unknown_mean
    )
    return published.signal, np.resize(published.weights, samples.responses.size)

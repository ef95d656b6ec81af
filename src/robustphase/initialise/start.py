"""The default start: screened covariates, candidate directions from rank bins, norms by likelihood.

It asks for a number of samples proportional to n, survives a constant share of contamination in covariates and responses,
and does not care about the noise mean. It hands on several candidates with their scores; racing them is the recovery
engine's work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robustphase.initialise.directions import candidate_directions
from robustphase.initialise.norms import Candidates, profile_norms
from robustphase.initialise.printed import printed_start
from robustphase.initialise.screening import plausible_rows, screen_covariates, screen_directions
from robustphase.likelihood import density_floor, response_density
from robustphase.rows import RowSource, TransformedRows, sweep
from robustphase.rows.data import Data, as_columns
from robustphase.rows.source import Array
from robustphase.rows.threads import single_threaded_blas
from robustphase.spectra.covariance import covariance_of, whitener
from robustphase.spectra.prepare import Centred
from robustphase.validation import Samples, check_choice, check_contamination, check_samples, in_ordinary_units

#: Most candidates handed on.
MOST_CANDIDATES = 16
#: Most of them that repeat a direction with a shrunken norm.
MOST_SHRUNKEN = 4
#: A smaller stated contamination is not believed: a mixture without bad samples trusts every sample.
LEAST_CONTAMINATION = 0.02
#: Largest interquartile range of clean responses, in units of the shortest range that holds half of them.
SHORTEST_HALVES = 3.0
#: What is assumed when the contamination is to be found out.
AUTO_CONTAMINATION = 0.2

METHODS = ("auto", "mean", "covariance", "spectral")


class Problem(NamedTuple):
    """Screened samples, and the unit of their responses: the interquartile range."""

    data: Data
    unit: float


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


def spectral_init(
    A: Any,
    y: Any,
    contamination: float | str = 0.1,
    noise_mean: str = "zero",
    method: str = "auto",
    *,
    whiten: bool = False,
    delta: float = 0.01,
    nonfinite: str = "raise",
    random_state: int = 0,
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
    whiten : bool, default=False
        The design is Gaussian but neither centred scale nor covariance are known: estimate the covariance robustly and
        whiten the rows first.
    delta : float, default=0.01
        Confidence parameter of the paper's procedures.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or count them as contaminated, as finite ones too large to compute
        with always are.
    random_state : int, default=0
        Seed for first guesses and subsamples.

    Returns
    -------
    StartResult
    """
    level = check_contamination(contamination, allow_auto=True)
    check_choice("noise_mean", noise_mean, ("zero", "unknown"))
    check_choice("method", method, METHODS)
    samples, size = in_ordinary_units(check_samples(A, y, nonfinite=nonfinite))
    samples, back = whitened(samples, level) if whiten else (samples, None)
    unknown = noise_mean == "unknown"
    if method == "auto":
        with single_threaded_blas():
            problem, found = start_candidates(samples, level, unknown_mean=unknown, seed=random_state)
        found = found.only(_best(found, MOST_CANDIDATES))
        signals = np.sqrt(problem.unit) * found.signals
        weights, backgrounds, scores = problem.data.weights, problem.unit * found.backgrounds, found.scores
        used = problem.data.contamination
    else:
        used = AUTO_CONTAMINATION if isinstance(level, str) else level
        signal, weights = _single_start(samples, used, unknown, method, delta)
        signals, backgrounds, scores = signal[:, np.newaxis], np.zeros(1), np.zeros(1)
    if back is not None:
        signals = back @ signals
    signals = signals / size
    return StartResult(signals[:, 0], signals.T, scores, backgrounds, weights, used)


def pose(samples: Samples, contamination: float | str, *, unknown_mean: bool, seed: int = 0) -> Problem:
    """Screen the covariates and put the responses into natural units."""
    weights = screen_covariates(samples.source, ~samples.dropped, seed=seed)
    return in_natural_units(samples, contamination, unknown_mean, weights)


def assumed_level(contamination: float | str) -> float:
    """The contamination that a fit assumes when it is told this."""
    return AUTO_CONTAMINATION if isinstance(contamination, str) else max(contamination, LEAST_CONTAMINATION)


def in_natural_units(samples: Samples, contamination: float | str, unknown_mean: bool, weights: Array) -> Problem:
    """The problem, with responses over their interquartile range."""
    level = assumed_level(contamination)
    unit = response_unit(samples.responses[~samples.dropped])
    responses = samples.responses / unit
    density = response_density(responses, density_floor(level))
    return Problem(Data(samples.source, responses, weights, density, level, unknown_mean), unit)


def start_candidates(
    samples: Samples, contamination: float | str, *, unknown_mean: bool, seed: int = 0
) -> tuple[Problem, Candidates]:
    """The problem as :func:`pose` would pose it, and at most ``MOST_CANDIDATES`` candidate signals, best score first.

    The search for directions looks at all samples together anyway, so it notices rows that have to be screened; without any
    the screening costs nothing.
    """
    weights, normal = plausible_rows(samples.source, ~samples.dropped)
    directions, weights = candidate_directions(
        samples.source,
        samples.responses,
        weights,
        screen=(lambda w: screen_directions(samples.source, w, seed=seed)) if normal else None,
        seed=seed,
    )
    problem = in_natural_units(samples, contamination, unknown_mean, weights)
    full, shrunken = profile_norms(problem.data, directions, seed=seed)
    shrunken = shrunken.only(_best(shrunken, MOST_SHRUNKEN))
    return problem, full.only(_best(full, MOST_CANDIDATES - shrunken.scores.size)).joined(shrunken)


def _best(candidates: Candidates, most: int) -> Array:
    """Indices of the best-scored candidates, best first."""
    return np.argsort(-candidates.scores, kind="stable")[:most]


def response_unit(responses: Array) -> float:
    """Interquartile range of the responses, as long as it can be trusted; their mean size where most of them coincide.

    More than a quarter of bad responses on one side carry a quartile away. The shortest range that holds half of the
    responses stays where the majority is. For squared normal variables without noise the interquartile range is 2.7 times as
    long, with noise or a background less; where it is longer still, it is not that of clean responses.
    """
    ordered = np.sort(responses)
    low, high = np.quantile(ordered, (0.25, 0.75))
    half = ordered.size // 2
    shortest = float((ordered[half:] - ordered[: ordered.size - half]).min()) if half else 0.0
    unit = min(float(high - low), SHORTEST_HALVES * shortest) if shortest > 0 else float(high - low)
    return unit or float(np.mean(np.abs(responses))) or 1.0


def whitened(samples: Samples, contamination: float | str) -> tuple[Samples, Array]:
    """Samples with robustly whitened covariates, and the matrix that takes signals back."""
    source, dropped = samples.source, samples.dropped
    # Dropped rows read as zero. They are no points of the design, and as such would shrink its second moment.
    usable = (~as_columns(dropped)).max(axis=1)
    centre = np.zeros(source.shape[1], np.result_type(source.dtype, np.float64))
    matrix = whitener(covariance_of(Centred(source, centre, usable), contamination).covariance)
    return samples._replace(source=TransformedRows(samples.source, matrix)), matrix


def _single_start(
    samples: Samples, contamination: float, unknown_mean: bool, method: str, delta: float
) -> tuple[Array, Array]:
    source, responses = samples.source, samples.responses
    if method == "spectral":
        weights = (~samples.dropped).astype(np.float64)
        # The mean response is that of the samples that have one.
        return plain_spectral_start(source, responses) / np.sqrt(weights.mean()), weights
    start = printed_start(
        source,
        responses,
        contamination=contamination,
        delta=delta,
        configuration=method,
        paired=unknown_mean,
        dropped=samples.dropped,
    )
    return start.signal, np.resize(start.weights, responses.size)


def plain_spectral_start(source: RowSource, responses: Array, *, tol: float = 1e-3, max_iter: int = 200) -> Array:
    """Leading eigenvector of ``Σ y_j a_j a_jᴴ`` by power iteration, with the norm ``sqrt(mean(y))``; not robust."""
    # A fixed vector without structure: reproducible, and orthogonal to no signal anybody would have.
    vector = np.random.default_rng(0).standard_normal(source.shape[1]).astype(np.result_type(source.dtype, np.float64))
    vector /= np.linalg.norm(vector)
    for _ in range(max_iter):
        product = sweep(source, vector, lambda s, y: y * s, (responses,)).total
        size = np.linalg.norm(product)
        if size == 0:
            break
        previous, vector = vector, product / size
        if np.linalg.norm(vector - previous * np.sign(np.vdot(previous, vector).real)) < tol:
            break
    start: Array = np.sqrt(max(float(responses.mean()), 0.0)) * vector
    return start

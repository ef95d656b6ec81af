"""Which law readings follow, as far as they show it beyond chance and beyond what bad samples could do.

Bad samples may sit where they make noise look uneven. The test compares the median size of the residuals of the two halves of the
predictions; bad samples can move a median only as far as the quantiles that their number allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import derived
from robustphase.descend.law_fit import LawFit
from robustphase.likelihood.laws import Readings
from robustphase.problem import Problem, kept, real_unknowns
from robustphase.recover.law.answers import Answer
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class EvidenceOptions:
    """Constants of the evidence."""

    deviations: float = derived(4.5, "standard deviations of chance that are no evidence: exceeded in one fit of 10⁵")
    median_error: float = derived(
        2.33, "standard deviation of the log ratio of two medians of half of m normal sizes, times sqrt(m)"
    )
    dispersion: float = derived(
        0.1,
        "relative deviation of the dispersion from one that bad counts which are not noticed may cause, at a tenth of them",
    )
    unnoticed: float = derived(0.1, "bad samples that may look like noise, of those that were stated")


LAW_EVIDENCE = EvidenceOptions()


def all_counts(problem: Problem) -> bool:
    """Whether all readings that can be used are whole numbers, and next to none below zero."""
    y = problem.responses[np.broadcast_to(problem.weights > 0, problem.responses.shape)]
    return bool(y.size and np.mean((y == np.rint(y)) & (y >= 0)) >= 1 - float(problem.levels.max()))


def constant(problem: Problem) -> bool:
    """Whether the readings hold one value only, as those of a dead pixel: no law has anything to explain there."""
    y = problem.responses[np.broadcast_to(problem.weights > 0, problem.responses.shape)]
    return bool(y.size == 0 or np.ptp(y) == 0)


def dispersed_as_counts(problem: Problem, readings: Readings, fit: LawFit) -> bool:
    """Whether the squared residuals of counts are their means, for most of the columns.

    On average, and in either half of the means: a camera whose offset hides its gain is right on average alone. Bad counts that
    are not noticed may all sit in one half.
    """
    seen = fit.judged.clean * readings.weights
    if readings.censored is not None:
        seen = seen * ~readings.censored
    squares = (readings.responses - fit.means) ** 2 / fit.means
    free = np.maximum(1 - real_unknowns(fit.signals) / np.maximum(seen.sum(axis=0), 1.0), 0.5)
    larger = fit.means > np.median(fit.means, axis=0)
    alike = np.ones(free.size, bool)
    for part, unnoticed in ((seen, 1.0), (seen * larger, 2.0), (seen * ~larger, 2.0)):
        mass = np.maximum(part.sum(axis=0), 1.0)
        dispersion = (part * squares).sum(axis=0) / mass / free
        # (y − μ)²/μ has the variance 2 + 1/μ.
        error = np.sqrt((part * (2 + 1 / fit.means)).sum(axis=0) / mass / mass)
        allowed = LAW_EVIDENCE.dispersion * unnoticed * problem.levels / 0.1 + LAW_EVIDENCE.deviations * error
        alike &= np.abs(dispersion - 1) <= allowed
    return bool(np.mean(alike) > 0.5)


def uneven(problem: Problem, answer: Answer) -> bool:
    """Whether the noise of most columns depends on the prediction, beyond chance and what bad samples could do."""
    m = problem.source.shape[0]
    predictions = answer.predictions
    residuals = problem.responses * problem.units - predictions - answer.backgrounds
    levels = np.broadcast_to(problem.levels, predictions.shape[1:])
    votes: list[bool] = []
    for column in range(predictions.shape[1]):
        used = np.broadcast_to(problem.weights > 0, predictions.shape)[:, column]
        mu, sizes = predictions[used, column], np.abs(residuals[used, column])
        # Bad samples that were made to look like noise are not noticed: as many as were stated there may always be.
        found = 1.0 - float(kept(answer.weights[used, column]).mean())
        bad = max(found, min(float(levels[column]), LAW_EVIDENCE.unnoticed))
        half = mu > np.median(mu)
        if not half.any():
            # All rows predict the same: nothing can be uneven along that.
            votes.append(False)
            continue
        low, high = np.median(sizes[~half]), np.median(sizes[half])
        votes.append(bool(low > 0 and high > low * np.exp(most_uneven(sizes, bad, m))))
    return bool(np.mean(votes) > 0.5)


def most_uneven(sizes: Array, bad: float, m: int) -> float:
    """Largest log ratio of the medians of two halves that even noise with this share of bad samples explains."""
    share = min(2 * bad, 0.49)
    middle = np.median(sizes)
    raised, lowered = np.quantile(sizes, (0.5 / (1 - share), (0.5 - share) / (1 - share)))
    ratio = max(raised / max(middle, _TINY), middle / max(lowered, _TINY))
    return float(np.log(ratio)) + LAW_EVIDENCE.deviations * LAW_EVIDENCE.median_error / float(np.sqrt(m))

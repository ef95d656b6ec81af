"""Why a sample was rejected, and whether the rejected ones keep to some stretch of the rows.

The fit judges in this order, and so do we: numbers that cannot be computed with, covariates of a length that the design
cannot have, covariates in a direction that holds more rows than the design explains, and last the response.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from robustphase.report.evidence import THRESHOLD, Evidence
from robustphase.report.thinning import budgets

Array = NDArray[Any]

#: The codes of `reasons` are positions in this tuple.
REASONS = ("kept", "nonfinite", "norm", "direction", "residual")
MEANING = {
    "nonfinite": "NaN, infinite or overflowing numbers",
    "norm": "‖a‖ impossible for the design",
    "direction": "too many rows point this way",
    "residual": "response contradicts the signal",
}
#: Stretches of rows that are compared, and the fewest rows in one.
STRETCHES, FEWEST = 40, 25
#: Crowded stretches at most this far apart are one.
GAP = 3
#: A stretch is crowded when chance explains it with less than this probability, and its share is this many times larger.
SURPRISING, CLEARLY_MORE = 1e-4, 1.5


class Stretch(NamedTuple):
    """Rows ``start`` to ``stop`` (exclusive), the share of them that was rejected, and why."""

    start: int
    stop: int
    share: float
    reason: str


class Sample(NamedTuple):
    """One line of the table of rejected samples."""

    row: int
    reason: str
    weight: float
    length: float
    response: float
    prediction: float
    deviation: float


def reasons(evidence: Evidence) -> NDArray[np.int8]:
    """For every sample the position in `REASONS`: 0 if it was kept."""
    y, u = evidence.responses, evidence.covariate_weights
    with np.errstate(over="ignore"):
        # The fit squares eighth powers, so it drops responses that come close to overflowing there.
        unusable = ~np.isfinite(evidence.predictions) | ~np.isfinite((100 * np.abs(y)) ** 8)
    codes = np.select([unusable, u == 0, u < THRESHOLD], [1, 2, 3], default=4)
    return np.where(evidence.rejected, codes, 0).astype(np.int8)


def counts(evidence: Evidence) -> dict[str, int]:
    """How many samples were rejected for each reason."""
    totals = np.bincount(reasons(evidence), minlength=len(REASONS))
    return {name: int(totals[code]) for code, name in enumerate(REASONS) if code > 0}


def worst_samples(evidence: Evidence, most: int = 20) -> list[Sample]:
    """The rejected samples that are farthest from what they should be, some of every reason; in the order of the rows."""
    codes = reasons(evidence)
    lengths = np.sqrt(evidence.squared_norms / evidence.n)
    deviations = deviation(evidence)
    by_reason = [np.flatnonzero(codes == code) for code in range(1, len(REASONS))]
    chosen = []
    for rows, share in zip(by_reason, budgets([rows.size for rows in by_reason], most), strict=True):
        far = np.nan_to_num(np.abs(deviations[rows]), nan=np.inf)
        chosen.extend(rows[np.lexsort((rows, -far, evidence.weights[rows]))][:share].tolist())
    return [
        Sample(
            row,
            REASONS[codes[row]],
            float(evidence.weights[row]),
            float(lengths[row]),
            float(evidence.responses[row]),
            float(evidence.predictions[row]),
            float(deviations[row]),
        )
        for row in sorted(chosen)
    ]


def deviation(evidence: Evidence) -> Array:
    """Residuals from the centre of the noise law, in units of the scale of clean residuals, shape (m,)."""
    centre = 0.0 if evidence.noise_law is None else evidence.noise_law.centre
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled: Array = (evidence.residuals - centre) / evidence.noise_scale
    return scaled


def stretch_edges(evidence: Evidence) -> NDArray[np.intp]:
    """Edges of the stretches that the rows are cut into: at most forty, of at least 25 rows if there are as many."""
    pieces = int(np.clip(evidence.m // FEWEST, 1, STRETCHES))
    return np.linspace(0, evidence.m, pieces + 1).astype(np.intp)


def crowded_stretches(evidence: Evidence) -> list[Stretch]:
    """Stretches of rows in which clearly more samples were rejected for some reason than elsewhere.

    A stretch is crowded when rejected samples in random order would put as many into it with a probability below 1e-4 over
    the number of comparisons (hypergeometric, Bonferroni), so that where rejection has nothing to do with the order of the
    rows at most one report in ten thousand says otherwise. Crowded stretches close to each other are joined.
    """
    edges, codes = stretch_edges(evidence), reasons(evidence)
    sizes = np.diff(edges)
    if sizes.size < 2:
        return []
    limit = SURPRISING / (sizes.size * (len(REASONS) - 1))
    crowded = []
    for code, reason in enumerate(REASONS[1:], start=1):
        found = np.add.reduceat(codes == code, edges[:-1], dtype=np.int64)
        total = int(found.sum())
        elsewhere = (total - found) / (evidence.m - sizes)
        by_chance = hypergeom.sf(found - 1, evidence.m, total, sizes)
        surprising = (by_chance < limit) & (found / sizes > CLEARLY_MORE * elsewhere)
        places = np.flatnonzero(surprising)
        for run in np.split(places, np.flatnonzero(np.diff(places) > GAP) + 1) if places.size else []:
            a, b = int(run[0]), int(run[-1]) + 1
            share = float(found[a:b].sum() / sizes[a:b].sum())
            crowded.append(Stretch(int(edges[a]), int(edges[b]), share, reason))
    return crowded

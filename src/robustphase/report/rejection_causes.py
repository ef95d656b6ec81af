"""Why a sample was rejected, and whether the rejected ones keep to some stretch of the rows.

The fit judges in this order, and so do we: numbers that cannot be computed with, covariates of a length that the design
cannot have, covariates in a direction that holds more rows than the design explains, and last the response.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from robustphase.plot.axes import budgets
from robustphase.plot.detector import stretch_edges
from robustphase.plot.samples import CAUSES, cause_codes, samples_of
from robustphase.report.diagnostics import FitDiagnostics

Array = NDArray[Any]

MEANING = {
    "nonfinite": "NaN, infinite or overflowing numbers",
    "norm": "‖a‖ impossible for the design",
    "direction": "too many rows point this way",
    "residual": "response contradicts the signal",
}
#: Crowded stretches at most this far apart are one.
GAP = 3
#: A stretch is crowded when chance explains it with less than this probability, and its share is this many times larger.
SURPRISING, CLEARLY_MORE = 1e-4, 1.5


class Stretch(NamedTuple):
    """Rows ``start`` to ``stop`` (exclusive), the share of them that was rejected, and why."""

    start: int
    stop: int
    share: float
    cause: str


class Sample(NamedTuple):
    """One line of the table of rejected samples."""

    row: int
    cause: str
    weight: float
    length: float
    response: float
    prediction: float
    deviation: float


def rejection_causes(diagnostics: FitDiagnostics) -> NDArray[np.int8]:
    """For every sample the position in `CAUSES`: 0 if it was kept."""
    d = diagnostics
    return cause_codes(d.weights, d.covariate_weights, d.responses, d.predictions)


def counts(diagnostics: FitDiagnostics) -> dict[str, int]:
    """How many samples were rejected for each cause."""
    totals = np.bincount(rejection_causes(diagnostics), minlength=len(CAUSES))
    return {name: int(totals[code]) for code, name in enumerate(CAUSES) if code > 0}


def worst_samples(diagnostics: FitDiagnostics, most: int = 20) -> list[Sample]:
    """The rejected samples that are farthest from what they should be, some of every cause; in the order of the rows."""
    codes = rejection_causes(diagnostics)
    lengths = np.sqrt(diagnostics.squared_norms / diagnostics.n)
    deviations = deviation(diagnostics)
    by_cause = [np.flatnonzero(codes == code) for code in range(1, len(CAUSES))]
    chosen = []
    for rows, share in zip(by_cause, budgets([rows.size for rows in by_cause], most), strict=True):
        far = np.nan_to_num(np.abs(deviations[rows]), nan=np.inf)
        chosen.extend(rows[np.lexsort((rows, -far, diagnostics.weights[rows]))][:share].tolist())
    return [
        Sample(
            row,
            CAUSES[codes[row]],
            float(diagnostics.weights[row]),
            float(lengths[row]),
            float(diagnostics.responses[row]),
            float(diagnostics.predictions[row]),
            float(deviations[row]),
        )
        for row in sorted(chosen)
    ]


def deviation(diagnostics: FitDiagnostics) -> Array:
    """Residuals from the centre of the clean ones, in units of the width of the noise, shape (m,)."""
    return samples_of(diagnostics).deviations


def crowded_stretches(diagnostics: FitDiagnostics) -> list[Stretch]:
    """Stretches of rows in which clearly more samples were rejected for some cause than elsewhere.

    A stretch is crowded when rejected samples in random order would put as many into it with a probability below 1e-4 over
    the number of comparisons (hypergeometric, Bonferroni), so that where rejection has nothing to do with the order of the
    rows at most one report in ten thousand says otherwise. Crowded stretches close to each other are joined.
    """
    edges, codes = stretch_edges(diagnostics.m), rejection_causes(diagnostics)
    sizes = np.diff(edges)
    if sizes.size < 2:
        return []
    limit = SURPRISING / (sizes.size * (len(CAUSES) - 1))
    crowded = []
    for code, cause in enumerate(CAUSES[1:], start=1):
        found = np.add.reduceat(codes == code, edges[:-1], dtype=np.int64)
        total = int(found.sum())
        elsewhere = (total - found) / (diagnostics.m - sizes)
        by_chance = hypergeom.sf(found - 1, diagnostics.m, total, sizes)
        surprising = (by_chance < limit) & (found / sizes > CLEARLY_MORE * elsewhere)
        places = np.flatnonzero(surprising)
        for run in np.split(places, np.flatnonzero(np.diff(places) > GAP) + 1) if places.size else []:
            a, b = int(run[0]), int(run[-1]) + 1
            share = float(found[a:b].sum() / sizes[a:b].sum())
            crowded.append(Stretch(int(edges[a]), int(edges[b]), share, cause))
    return crowded

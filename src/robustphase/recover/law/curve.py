"""Signals behind noise whose variance grows with the prediction: fitted together with the curve of the variance."""

from __future__ import annotations

import numpy as np

from robustphase.descend.law_fit import Law, LawFit, fit_law
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.likelihood.laws import Readings
from robustphase.likelihood.noise_model import NOISE
from robustphase.likelihood.variance_law import VarianceLaw
from robustphase.problem import Problem, response_unit
from robustphase.recover.law.answers import Answer
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


def fit_curve(problem: Problem, readings: Readings, answer: Answer, *, curved: bool) -> LawFit:
    """Signal and variance curve together, from the additive answer."""
    p = problem.responses.shape[1]
    noise = answer.noise._replace(
        scales=np.ones(p),
        tails=np.full(p, NOISE.lightest),
        log_skews=np.zeros(p),
        mixing=np.clip(answer.noise.mixing, NOISE.least_share, np.maximum(problem.levels, NOISE.least_share)),
    )
    power = np.maximum(abs2(answer.signals).sum(axis=0), _TINY)
    squared = np.maximum(answer.noise.scales, _TINY) ** 2
    # Each part as large as the others where readings are typical; a part that begins with zero stays there.
    curve = (
        np.stack((squared, squared / power, squared / power**2)) / 3
        if curved
        else np.stack((squared, 0 * squared, 0 * squared))
    )
    law: Law = VarianceLaw(noise, curve, answer.predictions)
    # The ceiling is no typical distance of readings, however many are there.
    told = (readings.weights > 0) & ~_censored(readings) & np.ones_like(problem.responses, bool)
    floor = DENSITY.floor / np.array([response_unit(y[at]) for y, at in zip(problem.responses.T, told.T, strict=True)])
    readings = readings._replace(bad=np.where(_censored(readings), readings.bad, np.maximum(readings.bad, floor)))
    return fit_law(problem, readings, law, answer.signals, answer.backgrounds)


def _censored(readings: Readings) -> Array:
    return np.zeros((1, 1), bool) if readings.censored is None else readings.censored

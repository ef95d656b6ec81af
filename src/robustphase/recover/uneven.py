"""Operators whose columns have very different energies, such as a probe that lights its rim a little: descent on amplitudes."""

from __future__ import annotations

import numpy as np

from robustphase.constants import TINY
from robustphase.descend.amplitude_flow import AMPLITUDE, amplitude_flow, unseen_columns
from robustphase.problem import Problem, kept
from robustphase.recover.recovery import Recovery, Run, unasked
from robustphase.rows import project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


def recover_uneven(problem: Problem, starts: Array | None, energies: Array, run: Run) -> Recovery:
    """One signal behind an operator whose columns have very different energies: descent on amplitudes."""
    units, weights = problem.units, problem.weights[:, 0]
    if starts is None:
        start = _even_start(problem, energies)
        run.history.note("start", 1)
    else:
        start = starts[:, 0] / np.sqrt(units[0])
    fit = amplitude_flow(problem, start, energies)
    residuals = problem.responses[:, 0] - abs2(project(problem.source, fit.signal))
    clean = np.clip(weights * fit.clean * fit.shared.weights, 0.0, 1.0)[:, np.newaxis]
    scale = float(np.median(np.abs(residuals[kept(clean[:, 0])]))) if kept(clean).any() else 0.0
    noise = fit.noise._replace(scales=units * scale)
    run.history.note("amplitudes", 1, moved=fit.moved, scale=float(noise.scales[0]))
    return Recovery(
        signals=np.sqrt(units) * fit.signal[:, np.newaxis],
        initial_signals=np.sqrt(units) * start[:, np.newaxis],
        backgrounds=np.zeros(1),
        weights=clean,
        contaminations=1 - kept(clean).mean(axis=0),
        noise=noise,
        converged=np.array([fit.moved < AMPLITUDE.settled]),
        covariate_weights=problem.weights,
        residual_weights=clean,
        probabilities=clean,
        predictions=units * abs2(project(problem.source, fit.signal[:, np.newaxis])),
        **unasked(1),
        shared=fit.shared.evidence,
        unseen=unseen_columns(energies),
    )


def _even_start(problem: Problem, energies: Array) -> Array:
    """The same number everywhere, as large as the responses ask: transparent objects are close to it.

    Spectral starts know nothing here: rows that share most of their energy make all responses alike.
    """
    weights = problem.weights[:, 0]
    flat = np.ones(energies.size, np.result_type(problem.source.dtype, np.float64))
    predicted = abs2(project(problem.source, flat))
    sizes = np.sqrt(np.maximum(problem.responses[:, 0], 0.0) * predicted)
    start: Array = flat * float(weights @ sizes) / max(float(weights @ predicted), TINY)
    return start

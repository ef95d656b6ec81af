"""Candidates on the data: how well each fits, and population-Newton steps of all of them at once.

Candidates are compared by the likelihood of :mod:`robustphase.likelihood.comparison`. Its weights make weighted squares of every
candidate, so samples that it cannot explain hardly count, and one pass moves all of them by a Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import numeric
from robustphase.descend.acceleration import Aitken
from robustphase.descend.newton import Moments, initial_damping, joint_sums, newton_step, shortened
from robustphase.likelihood import compare, residual_scales
from robustphase.likelihood.noise_model import column_sums
from robustphase.problem import Candidates, Problem, real_unknowns
from robustphase.rows import project
from robustphase.rows.passes import in_slices
from robustphase.rows.products import abs2, adjoint_block, in_single_precision, multiply_block
from robustphase.rows.source import Array, Parts
from robustphase.rows.threads import allowed_threads, run_in_threads


@dataclass(frozen=True)
class StepOptions:
    """Constants of the steps."""

    largest: float = numeric(
        1e15, "responses and predictions beyond it count as that large: squares fit single precision"
    )
    rows: int = numeric(8192, "samples whose weights are computed together: the temporaries of that stay in cache")


STEPS = StepOptions()


class Advance(NamedTuple):
    """Candidates after some steps, how long their steps have become, and what each gained in score (k,)."""

    candidates: Candidates
    aitken: Aitken
    gains: Array

    def only(self, columns: Array) -> Advance:
        """Some of the candidates."""
        return Advance(self.candidates.only(columns), self.aitken.only(columns), self.gains[columns])


def at_rest(problem: Problem, candidates: Candidates, samples: int | None = None) -> Advance:
    """Candidates that have not moved yet, whose first steps are as long as so many samples allow; by default those there are."""
    m = problem.source.shape[0] if samples is None else samples
    damping = initial_damping(m, real_unknowns(candidates.signals))
    return Advance(candidates, Aitken(damping), np.zeros(candidates.scores.size))


def placed(problem: Problem, signals: Array, backgrounds: Array) -> Candidates:
    """Candidates at given signals; one pass to see how they fit."""
    seen = evaluate(problem, signals, backgrounds)
    return Candidates(signals, backgrounds, seen.scales, seen.scores)


def advance(problem: Problem, before: Advance, steps: int) -> Advance:
    """Move all candidates by ``steps`` steps, one pass each for all together.

    The gain is that of the score, as seen in the first and in the last pass.
    """
    (signals, backgrounds, scales, _), aitken, _ = before
    active, scores = problem.weights > 0, []
    for _ in range(steps):
        seen = comparison_pass(problem, signals, backgrounds, scales)
        step = newton_step(signals, seen.moments, fit_background=problem.unknown_mean, kurtosis=problem.kurtosis)
        aitken = aitken.after(step.signals)
        signals = signals + shortened(aitken.factors * step.signals, signals)
        backgrounds = backgrounds + step.backgrounds
        # The scale before the step: a fresh one would ask for a pass of its own, and is the same in the end.
        scales = _scales(seen.residuals, active, problem.levels)
        scores.append(seen.scores)
    return Advance(Candidates(signals, backgrounds, scales, scores[-1]), aitken, scores[-1] - scores[0])


class Comparison(NamedTuple):
    """Moments of the weighted squares of k candidates, their scores (k,), and residuals (m, k)."""

    moments: Moments
    scores: Array
    residuals: Array


def comparison_pass(problem: Problem, signals: Array, backgrounds: Array, scales: Array) -> Comparison:
    """What the samples say of each candidate, with weights for residuals of the given scales: one pass.

    It is made in single precision: candidates need not be known better than to a thousandth.
    """
    b, levels, paired = backgrounds.astype(np.float32), problem.levels, problem.paired
    rounded = signals.astype(np.complex64 if np.iscomplexobj(signals) else np.float32)

    def kernel(block: Array, y: Array, density: Array, w: Array) -> Parts:
        rows = in_single_precision(block)
        projections = multiply_block(rows, rounded)
        # Rows without weight may be too long for single precision.
        projections[(w == 0).all(axis=1)] = 0
        energy = np.minimum(abs2(projections), STEPS.largest)
        residuals = y - energy
        residuals -= b
        weights, ratio = compare(residuals, density, scales, levels)
        weights *= w
        score = column_sums(w * np.log(ratio, out=ratio))
        pulling = weights * residuals
        mass, residual_sum = column_sums(weights), column_sums(pulling)
        joint = joint_sums(weights, projections, energy, paired=paired)
        weights *= energy
        second = column_sums(weights)
        weights *= energy
        gradient = adjoint_block(rows, pulling * projections)
        fourth = column_sums(weights)
        return Parts(sums=(gradient, mass, residual_sum, second, fourth, joint, score), rows=(residuals,))

    responses = np.clip(problem.responses, -STEPS.largest, STEPS.largest)
    per_row = [values.astype(np.float32) for values in (responses, problem.density, problem.weights)]
    parts = problem.source.reduce(in_slices(kernel, signals.shape[1]), per_row)
    *moments, score = parts.sums
    return Comparison(Moments(*moments), score / problem.weights.sum(axis=0), parts.rows[0])


class Evaluation(NamedTuple):
    """How k candidates fit."""

    #: (m, k): ``A X``, ``y − |A X|² − b``, and the weights of iterated least squares times those of the covariates.
    projections: Array
    residuals: Array
    weights: Array
    #: (k,): scale of the clean residuals, and mean log-likelihood ratio.
    scales: Array
    scores: Array


def evaluate(problem: Problem, signals: Array, backgrounds: Array) -> Evaluation:
    """Fit of the candidates in the columns of ``signals``, in double precision: one pass."""
    projections = project(problem.source, signals)
    # In place: each array of this shape is as large as m rows of k unknowns.
    residuals = abs2(projections)
    np.subtract(problem.responses, residuals, out=residuals)
    residuals -= backgrounds
    return weigh(problem, projections, residuals)


def weigh(problem: Problem, projections: Array, residuals: Array) -> Evaluation:
    """Scales, weights and scores of given residuals."""
    scales = _scales(residuals, problem.weights > 0, problem.levels)
    weights, log_ratio = np.empty_like(residuals), np.zeros(residuals.shape[1])
    for start in range(0, residuals.shape[0], STEPS.rows):
        part = slice(start, start + STEPS.rows)
        found, ratio = compare(residuals[part], problem.density[part], scales, problem.levels)
        np.multiply(found, problem.weights[part], out=weights[part])
        log_ratio += (problem.weights[part] * np.log(ratio)).sum(axis=0)
    return Evaluation(projections, residuals, weights, scales, log_ratio / problem.weights.sum(axis=0))


def _scales(residuals: Array, active: Array, levels: Array) -> Array:
    """Scale of the clean residuals of each candidate, shape (k,): some of them on each thread."""
    k = residuals.shape[1]
    used, shares = np.broadcast_to(active, residuals.shape), np.broadcast_to(levels, (k,))
    threads = max(1, min(allowed_threads(), k))
    parts = [slice(part, k, threads) for part in range(threads)]
    found = run_in_threads(lambda part: residual_scales(residuals[:, part], used[:, part], shares[part]), parts)
    scales = np.empty(k)
    for part, some in zip(parts, found, strict=True):
        scales[part] = some
    return scales


def distinct_signals(signals: Array, scores: Array, most: int, apart: float, *, paired: bool = False) -> Array:
    """Indices of the best candidates that differ from all better ones by a fraction ``apart`` of their norm, best first.

    With ``paired``, signals stand behind real rows, and a conjugate does not differ.
    """
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        signal = signals[:, index]
        others = signals[:, kept]
        overlap = np.abs(others.conj().T @ signal)
        if paired:
            overlap = np.maximum(overlap, np.abs(others.T @ signal))
        distances = abs2(others).sum(axis=0) + abs2(signal).sum() - 2 * overlap
        if not (distances <= (apart**2) * abs2(signal).sum()).any():
            kept.append(int(index))
        if len(kept) == most:
            break
    return np.array(kept)

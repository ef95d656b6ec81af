r"""Specification tests of answers (Hausman, 1978): whether other fits would leave one, and how far apart chance leaves two.

At a right answer residuals r are independent of the covariates, so *any* bounded function h of them, with any weight of the
projections s, has the gradient :math:`\sum_j h(r_j)\, w(|s_j|)\, s_j a_j` zero but for chance. The likelihood fit makes one such
gradient vanish, that of its own influence ψ. Whoever learns how it works rewrites samples so that ψ balances them against the
clean ones at a wrong signal; but other influences do not balance there. So three others are looked at after every fit, at the
price of one pass: what large residuals ask, the same with strong samples held back, and what small ones ask. Two more are those
of fits in which no sample pulls more than a typical one (:mod:`robustphase.recover.held_noise`), in the second with strong
samples held back as well. They are looked at across the signal alone: bounded pulls of skewed noise are not zero in the mean,
and shorten or lengthen a signal, but turn it nowhere.

Attacks on the length leave no such trace: rows of all directions have a part in them, and the fit has given its length and its
background to balance them. But clean samples and bad ones do so at different predictions, so residuals then follow a curve
along the predictions that neither explains (:mod:`robustphase.recover.model.power`).

How large chance makes such a gradient follows from the residuals themselves. The answer was fitted, which takes away from
:math:`h w s` what it has in common with :math:`\psi s`: with κ the ratio of their mean slopes, the gradient is the sum of
:math:`u_j a_j`, :math:`u_j = h w s - \kappa\, \psi s`, over independent samples, of energy
:math:`\sum_j |u_j|^2 \lVert a_j\rVert^2`.

A fit that weighs the gradients :math:`\psi_j s_j a_j` of its samples moves by :math:`\sum_j \psi_j s_j a_j / cH` from where it
would be without noise, with H the sum of slopes times energies of the projections, and c two for real and one for complex
signals. The difference of two fits to the same samples is a sum of that kind too, with the difference of their coefficients, and
so has such an energy.

Which of two is closer to the truth, one that is accurate but perhaps biased, and one that is neither? Squares of biases and of
what chance does add up: the distance between the two holds the bias of the first and the chance v that the second has on top.
So the second is closer once the squared distance is beyond 2v (Green and Strawderman, 1991).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from robustphase.constants import TINY, budget, derived, empirical, numeric
from robustphase.descend.likelihood_fit import LikelihoodFit
from robustphase.likelihood import e_step
from robustphase.likelihood.noise_model import NOISE
from robustphase.ordering import stable_order
from robustphase.problem import Problem, kept, real_unknowns
from robustphase.recover.held_noise import HELD, Fitted, bounded_influence, shortest_half, strength_factors
from robustphase.recover.model.limits import CHECKS
from robustphase.recover.model.power import is_another_power, power_of
from robustphase.recover.model.residuals import located
from robustphase.rows import OperatorRows, RowSource, adjoint
from robustphase.rows.products import abs2, adjoint_block
from robustphase.rows.source import Array, Parts


@dataclass(frozen=True)
class ContradictionOptions:
    """Constants of the test."""

    slack: float = empirical(
        1.1, "times chance that is none yet: the slopes are estimates, whose errors no number of unknowns averages out"
    )
    once: float = derived(
        160.0,
        "fits in one of which chance alone goes beyond: the energy has a chi-square law, one degree per real unknown",
    )
    once_unfound: float = budget(
        10.0,
        "the same where fewer than half of the bad samples that are allowed for were found, and others may pass for clean: that "
        "costs a third of a fit on average, and answers that are heard again for nothing stay as they are",
    )
    dear: float = derived(
        1.0,
        "squared errors of the answer that bounded pulls may add: where they add more, most of what they turn is chance",
    )
    material: float = empirical(
        0.3,
        "a contradiction counts if it asks for this part of the move that contamination can cause, ε σ/(2‖x‖²): with many "
        "samples everything contradicts everything by a hair",
    )
    negligible: float = numeric(1e-5, "relative moves below it are none: that much a fit leaves undone")
    shift: float = numeric(0.05, "shift of the residuals, over their scale, that shows the slope of the influence")
    least: float = numeric(0.1, "projections below this fraction of their root mean square count as that large")


CONTRADICTION = ContradictionOptions()


def far(u: Array) -> tuple[Array, Array]:
    """What large residuals ask, u³/(1 + u²)^(3/2), and its slope."""
    base = 1 / (1 + u * u)
    root = np.sqrt(base)
    sine = u * root
    # A product is a hundred times as fast as a cube.
    return sine * sine * sine, 3 * (u * base) ** 2 * root


def near(u: Array) -> tuple[Array, Array]:
    """What small residuals ask, u exp(−u²/2), and its slope."""
    with np.errstate(under="ignore"):
        bell = np.exp(-u * u / 2)
        return u * bell, (1 - u * u) * bell


#: The influences, each with the power of the size of projections that it is divided by.
ASKED: tuple[tuple[Callable[[Array], tuple[Array, Array]], float], ...] = ((far, 0.0), (far, 1.0), (near, 0.5))
#: Standardised residuals beyond it are as far as can be.
_LARGEST = 1e3
#: Signals shorter than it count as that long.
_SHORTEST = 1e-100


class Contradictions(NamedTuple):
    """What speaks against answers.

    Attributes
    ----------
    strengths : ndarray of shape (k,)
        How strongly other influences contradict them, over what counts as a contradiction: values up to one are none.
    pulled : ndarray of bool, shape (2, k)
        Which of them would turn if no sample pulled more than a typical one, and which if strong ones were held back besides; of
        the two the one that asks for it more clearly.
    """

    strengths: Array
    pulled: Array


def contradictions(problem: Problem, fit: LikelihoodFit, weights: Array, dim: Array) -> Contradictions:
    """What other influences have against the answers: one pass.

    Parameters
    ----------
    problem : Problem
        The samples as they were fitted.
    fit : LikelihoodFit
        The answers.
    weights : ndarray of shape (m, k)
        Weights of the samples: those that are not kept have contradicted their answer already.
    dim : ndarray of bool, shape (k,)
        Faint answers. They are heard again anyway, and only what is beyond chance counts against them.
    """
    seen = asked_of(problem, fit, weights)
    bends = [
        bend(y[keep], abs2(s[keep]), float(level))
        for y, s, keep, level in zip(
            problem.responses.T,
            fit.projections.T,
            kept(weights).T,
            np.broadcast_to(problem.levels, fit.converged.shape),
            strict=True,
        )
    ]
    material = (seen.moves > CONTRADICTION.material * problem.levels) & (
        seen.moves * seen.units > CONTRADICTION.negligible
    )
    found, unknowns = np.where(material, seen.energies, 0.0), real_unknowns(fit.state.signals)
    sooner = _unfound(problem, weights) & ~dim
    most = _most_by_chance(unknowns, np.where(sooner, CONTRADICTION.once_unfound, CONTRADICTION.once))
    turns = np.where(seen.prices < CONTRADICTION.dear, found[len(ASKED) :], 0.0)
    clearest = np.arange(len(turns))[:, np.newaxis] == turns.argmax(axis=0)
    return Contradictions(
        np.maximum(found[: len(ASKED)].max(axis=0) / most, bends),
        # These are looked at across the signal.
        clearest & (turns > _most_by_chance(max(unknowns - 1, 1), CONTRADICTION.once)),
    )


def bend(responses: Array, predictions: Array, level: float) -> float:
    """Evidence that kept responses follow another curve along the predictions than a line, over what is no chance any more.

    Zero for a curve so close to a line that it does no harm.

    Parameters
    ----------
    responses, predictions : ndarray of shape (m,)
        Of the samples that are kept.
    level : float
        Share of the samples that may be bad.
    """
    order = stable_order(predictions)
    power, evidence = power_of(predictions[order], responses[order], located(responses - predictions).scale, level)
    return evidence / (CONTRADICTION.slack * CHECKS.hint) if is_another_power(power) else 0.0


def _unfound(problem: Problem, weights: Array) -> Array:
    """Whether fewer than half of the bad samples that are allowed for were found, shape (k,)."""
    used = np.broadcast_to(problem.weights > 0, weights.shape)
    flagged = (used & ~kept(weights)).sum(axis=0)
    return np.asarray(2 * flagged < problem.levels * used.sum(axis=0))


def _most_by_chance(unknowns: int, once: Array | float) -> Array:
    """Energy over its mean, of as many independent errors, that is chance only once in so many fits."""
    quantiles = 2 * gammaincinv(unknowns / 2, 1 - 1 / np.asarray(once)) / unknowns
    return np.asarray(CONTRADICTION.slack * quantiles)


class Asked(NamedTuple):
    """What other influences ask of the answers, the last two of them those of bounded pulls.

    Attributes
    ----------
    energies : ndarray of shape (5, k)
        Energy of their gradients over that of chance.
    moves : ndarray of shape (5, k)
        Length of the step that they ask for in the unit: ε of it is what contamination can cause.
    units : ndarray of shape (k,)
        σ/(2‖x‖²), relative to the signal.
    prices : ndarray of shape (2, k)
        Squared errors that bounded pulls add, over those of the answers, if nothing is wrong with these.
    """

    energies: Array
    moves: Array
    units: Array
    prices: Array


def asked_of(problem: Problem, fit: LikelihoodFit, weights: Array) -> Asked:
    """Compare the gradients that other influences have at the answers with chance: one pass."""
    keep, k = kept(weights), fit.converged.size
    # Samples that are not kept may be too large to square.
    s = np.where(keep, fit.projections, 0)
    residuals = np.where(keep, fit.residuals, 0.0)
    counts = np.maximum(keep.sum(axis=0), 1)
    energy = abs2(s)
    level = np.maximum(energy.sum(axis=0) / counts, TINY)
    middles, halves = np.transpose([shortest_half(r[used]) for r, used in zip(residuals.T, keep.T, strict=True)])
    unit = np.maximum(halves / HELD.normal, NOISE.tiny_scale)
    own, own_slopes = influence(problem, fit, residuals, keep)
    coefficients, chance, steepness, ratios = [], [], [], []
    for asked, held_back, slopes in _others(problem, residuals - middles, unit, np.sqrt(energy / level)):
        # A background that is off shows in all samples alike, and is no contradiction.
        values = np.where(keep, asked - np.where(keep, asked, 0.0).sum(axis=0) / counts, 0.0) * held_back
        steep = np.where(keep, slopes * energy, 0.0).sum(axis=0)
        ratios.append(steep / unit / np.where(own_slopes == 0, np.inf, own_slopes))
        coefficients.append(values * s)
        chance.append(abs2((values - ratios[-1] * own) * s))
        steepness.append(steep)
    # And what chance does to the fit itself.
    chance.append(abs2(own * s))
    gradients, energies = gradient_and_chance(problem.source, np.hstack(coefficients), np.hstack(chance))
    gradients, energies = gradients.reshape(-1, len(steepness), k), energies.reshape(-1, k)
    # The square of a shorter signal is no number.
    norms = np.maximum(np.linalg.norm(fit.state.signals, axis=0), _SHORTEST)
    for place in range(len(ASKED), len(steepness)):
        lost = (chance[place] * (energy / norms**2)).sum(axis=0)
        gradients[:, place], energies[place] = _across(
            fit.state.signals / norms, gradients[:, place], energies[place], lost
        )
    found, (*by_chance, own_chance) = abs2(gradients).sum(axis=0), energies
    # An answer that half of the samples meet to within roundings has nothing left to contradict it.
    noisy = halves > HELD.normal * NOISE.tiny_scale
    # A fit that no sample moves has no slope, and asking it anything costs nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        prices = (by_chance / np.maximum(np.square(ratios) * own_chance, TINY))[len(ASKED) :]
        asked_for = np.where(noisy & (found > 0), found / np.maximum(by_chance, TINY), 0.0)
    return Asked(
        asked_for,
        np.sqrt(found) * norms / np.maximum(np.abs(steepness), TINY),
        unit / (2 * norms**2),
        prices,
    )


def _across(along: Array, gradients: Array, energies: Array, lost: Array) -> tuple[Array, Array]:
    """Gradients (n, k) across the unit vectors ``along``, and the energies (k,) that chance has there: without those along."""
    left = energies - lost
    across = gradients - along * (along.conj() * gradients).sum(axis=0)
    # Of a single unknown, or where all rows are alike, nothing is left but roundings.
    return np.where(left < CONTRADICTION.negligible * energies, 0.0, across), left


def _others(problem: Problem, residuals: Array, unit: Array, sizes: Array) -> Iterator[tuple[Array, Array, Array]]:
    """The other influences: values, what they are multiplied with once they are centred, and slopes of both, each (m, k)."""
    with np.errstate(over="ignore"):
        u = np.clip(residuals / unit, -_LARGEST, _LARGEST)
    softened = np.sqrt(sizes**2 + CONTRADICTION.least**2)
    for asked, power in ASKED:
        values, slopes = asked(u)
        held_back = softened**-power
        yield values, held_back, slopes * held_back
    shift = CONTRADICTION.shift
    low, middle, high = (
        problem.weights * bounded_influence(problem, (u + step) * unit, unit, sizes) for step in (-shift, 0.0, shift)
    )
    slopes = (high - low) / (2 * shift)
    for factors in (np.ones((1, 1)), strength_factors(sizes)):
        yield middle, factors, slopes * factors


def gradient_and_chance(source: RowSource, coefficients: Array, squares: Array) -> tuple[Array, Array]:
    """``Σ_j c_j a_j``, shape (n, l), and the energies ``Σ_j |u_j|² ‖a_j‖²`` of chance, shape (l,), from ``|u|²``: one pass."""
    if isinstance(source, OperatorRows):
        # Its rows are never seen one by one; in the mean they have this energy.
        return adjoint(source, coefficients), source.shape[1] * squares.sum(axis=0)

    def kernel(block: Array, c: Array, u2: Array) -> Parts:
        # Rows without a part in this may be too large to square.
        with np.errstate(over="ignore", invalid="ignore"):
            energies = np.vecdot(block, block).real.astype(np.float64)
        energies = np.where(u2.any(axis=1), energies, 0.0)
        return Parts(sums=(adjoint_block(block, c), energies @ u2))

    gradient, chance = source.reduce(kernel, (coefficients, squares)).sums
    return gradient, chance


def influence(problem: Problem, fit: LikelihoodFit, residuals: Array, keep: Array) -> tuple[Array, Array]:
    """Influence ψ of every sample on the fit, (m, k), and the sums (k,) of its slopes times the energy of the projections."""
    scales, used = fit.state.noise.scales, np.where(keep, problem.weights, 0.0)

    def asked_at(at: Array) -> Array:
        seen = e_step(at, fit.spreads, problem.density, problem.weights, fit.state.noise)
        value: Array = seen.weights * used * at
        return value

    shift = CONTRADICTION.shift * scales
    slopes = (asked_at(residuals + shift) - asked_at(residuals - shift)) / np.maximum(2 * shift, TINY)
    own: Array = fit.weights * used * residuals
    return own, np.asarray((slopes * abs2(np.where(keep, fit.projections, 0))).sum(axis=0))


def chance_apart(one: Fitted, other: Fitted) -> Array:
    """Squared distances that chance leaves between fits, column by column, shape (k,): one pass."""
    first, second = one.fit.state.signals, other.fit.state.signals
    overlap = (first.conj() * second).sum(axis=0)
    # Signals are known up to a phase; of a pair of conjugates the wrong one would only make chance look larger.
    phases = np.where(overlap == 0, 1.0, overlap / np.where(overlap == 0, 1.0, np.abs(overlap)))
    apart = _coefficients(one) - _coefficients(other) / phases
    _, energies = gradient_and_chance(one.problem.source, apart, abs2(apart))
    squared: Array = energies if np.iscomplexobj(first) else energies / 4
    return squared


def _coefficients(fitted: Fitted) -> Array:
    """What every sample adds to the fit, as a multiple of its row, shape (m, k)."""
    problem, fit = fitted
    used = np.broadcast_to(problem.weights > 0, fit.residuals.shape)
    own, slopes = influence(problem, fit, np.where(used, fit.residuals, 0.0), used)
    moves: Array = own * np.where(used, fit.projections, 0) / np.where(slopes == 0, np.inf, np.abs(slopes))
    return moves

r"""Descent on amplitudes, preconditioned by the energy of the columns: for operators that light unknowns unevenly.

Instruments light part of what they look at; the energies ``d_i = Σ_j |a_ji|²`` of the columns then differ by orders of magnitude,
and a step that takes them for equal leaves the dim unknowns where they are. With amplitudes ``√y`` instead of intensities, photon
noise has about the same variance everywhere, and

.. math:: \sum_j w_j \big(\sqrt{y_j} - |a_j^H x|\big)^2

is majorised, at the present phases of ``Ax``, by a quadratic function whose curvature is ``AᴴWA``. So with λ the largest
eigenvalue of ``AᴴA`` beside the diagonal matrix of the ``d_i``, the step ``x + (λ D)⁻¹ Aᴴ w (√y/|s| − 1) s`` never raises it:
amplitude flow with illumination preconditioning. In ptychography ``AᴴA`` is diagonal, and λ is one.

Weights are those of a mixture as everywhere: residuals ``√y − |s|`` of clean samples follow a Student law that is fitted along
the way, a share of the samples is bad, and so are groups. They are renewed every few steps. Groups are judged by the residuals
that they would have had if they had been left out. Unknowns that get hardly any energy cannot be determined; their steps are
shortened (D is bounded from below), so they stay near where they started.

Samples pull the signal towards themselves, so their residuals are shorter than their distance to what the other samples say. For
these preconditioned steps the predictions s of a group g keep the share

.. math:: h_g = \frac{\|A_g^H s_g\|^2_{D^{-1}}}{\|s_g\|^2}, \qquad D = \operatorname{diag}(A^H W A),

of what the group asks for, and its residuals are ``1 − w_g h_g`` times as long as they would be had it been left out. In a scan
that is the light of a frame that it shares with no other: at the rim, where few frames overlap, a misplaced one explains itself.

One group after the other would take a pass each. Row blocks of an operator hold few groups, which are taken one by one there; of
many groups in a block some are taken together, at random, and what they have of each other is taken off on average. What changes
in the course of a fit is D alone: by so much as the light in a group changes, its share does too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, empirical, numeric
from robustphase.descend.shared_weights import SampleFit, Shared, nothing_shared, shared_weights
from robustphase.likelihood import NoiseModel, e_step, initial_model, m_step
from robustphase.problem import Grouping, Problem
from robustphase.rows import RowSource, project, sweep
from robustphase.rows.products import abs2, adjoint_block, project_block
from robustphase.rows.source import Array, Parts


@dataclass(frozen=True)
class AmplitudeOptions:
    """Constants of the descent on amplitudes."""

    uneven: float = derived(
        10.0,
        "mean energy of a column over that of the dimmest hundredth: steps for equal ones take that many times as long",
    )
    dimmest: float = derived(0.01, "that hundredth")
    regularised: float = empirical(
        0.05, "least energy of a column in a step, over the largest: dimmer unknowns move less"
    )
    power_steps: int = budget(6, "power iterations for the largest eigenvalue")
    margin: float = numeric(1.02, "what they may miss of it")
    certain: float = numeric(0.05, "eigenvalues that close to one are one: the energies are exact and AᴴA is diagonal")
    first: int = budget(10, "steps until weights are renewed first: before, every residual is large")
    every: int = budget(10, "steps between renewals")
    model_rounds: int = budget(8, "rounds of expectation maximisation for the law of the residuals")
    steps: int = budget(150, "most steps")
    tol: float = numeric(2e-4, "relative step at which the descent is over")
    settled: float = numeric(2e-3, "relative step at which it has settled: unknowns in the dark go on for long")


AMPLITUDE = AmplitudeOptions()


class AmplitudeFit(NamedTuple):
    """A signal (n,), probabilities to be clean and shared weights of the samples (m,), and how the descent went."""

    signal: Array
    clean: Array
    shared: Shared
    noise: NoiseModel  # Law of the residuals of the amplitudes
    moved: float  # Relative length of the last step
    loss: float  # Mean square of the residuals of the amplitudes that count


def is_uneven(energies: Array) -> bool:
    """Whether columns of these energies are too different for steps that take them for equal."""
    return bool(energies.mean() > AMPLITUDE.uneven * np.quantile(energies, AMPLITUDE.dimmest))


def unseen_columns(energies: Array) -> Array:
    """Which unknowns get so little energy that their steps are shortened: they are not determined by the samples alone."""
    unseen: Array = energies < AMPLITUDE.regularised * energies.max()
    return unseen


def amplitude_flow(problem: Problem, start: Array, energies: Array) -> AmplitudeFit:
    """Descend on the amplitudes of one signal, from a start (n,), with these energies (n,) of the columns."""
    amplitudes = np.sqrt(np.maximum(problem.responses[:, 0], 0.0))
    samples = problem._replace(responses=amplitudes[:, np.newaxis])
    scaled = energies + AMPLITUDE.regularised * energies.max()
    scaled = scaled * _largest_eigenvalue(problem.source, scaled)
    signal, moved, leverages = start, np.inf, None
    clean, shared, noise = np.ones(amplitudes.size), nothing_shared(problem), None
    weights, settled_at = problem.weights[:, 0], -1
    for step in range(AMPLITUDE.steps):
        done = sweep(problem.source, signal, _gradient_coefficients, (amplitudes, weights))
        if step >= AMPLITUDE.first and (step - AMPLITUDE.first) % AMPLITUDE.every == 0 and settled_at < 0:
            leverages = group_leverages(problem, signal, weights) if step == AMPLITUDE.first else leverages
            residuals = (amplitudes - np.abs(done.projections)) * _left_out(leverages, problem, signal, weights, shared)
            last = shared
            clean, shared, noise = _classify(samples, residuals, shared, noise)
            weights = problem.weights[:, 0] * clean * shared.weights
            settled_at = step if step > AMPLITUDE.first and shared.like(last) and moved < AMPLITUDE.settled else -1
        change = done.total / scaled
        signal = signal + change
        moved = float(np.linalg.norm(change) / max(float(np.linalg.norm(signal)), TINY))
        if moved < AMPLITUDE.tol and step > AMPLITUDE.first + AMPLITUDE.every:
            break
    residuals = amplitudes - np.abs(
        sweep(problem.source, signal, _gradient_coefficients, (amplitudes, weights)).projections
    )
    longer = residuals * _left_out(leverages, problem, signal, weights, shared)
    clean, shared, noise = _classify(samples, longer, shared, noise)
    kept = problem.weights[:, 0] * clean * shared.weights
    loss = float(kept @ residuals**2 / max(float(kept.sum()), TINY))
    return AmplitudeFit(signal, clean, shared, noise, moved, loss)


def _left_out(
    leverages: Leverages | None, problem: Problem, signal: Array, weights: Array, shared: Shared
) -> Array | float:
    """Factors that make residuals those of groups that were left out; one without groups."""
    return 1.0 if leverages is None else leverages.left_out(problem, signal, weights, shared.weights)


def _gradient_coefficients(projections: Array, amplitudes: Array, weights: Array) -> Array:
    """What each sample asks of its projection: another length, at the present phase."""
    lengths = np.abs(projections)
    coefficients: Array = weights * (amplitudes / np.maximum(lengths, TINY) - 1) * projections
    # Without a phase there is no direction to go.
    return np.where(lengths > 0, coefficients, 0)


def _classify(
    problem: Problem, residuals: Array, last: Shared, noise: NoiseModel | None
) -> tuple[Array, Shared, NoiseModel]:
    """Probabilities to be clean, weights of groups, and the law of the residuals."""
    column, kept = residuals[:, np.newaxis], last.applied_to(problem)
    if noise is None:
        used = np.abs(residuals[problem.weights[:, 0] > 0])
        noise = initial_model(np.array([max(float(np.median(used)), TINY)]), problem.levels)
    spreads, density = np.zeros_like(column), _bad_density(problem)
    for _ in range(AMPLITUDE.model_rounds):
        seen = e_step(column, spreads, density, kept.weights, noise)
        noise = m_step(noise, seen.statistics, kept.levels)
    seen = e_step(column, spreads, density, kept.weights, noise)
    shared = shared_weights(problem._replace(density=density), SampleFit(column, spreads, seen.clean, noise), last)
    return seen.clean[:, 0], shared, noise


def _bad_density(problem: Problem) -> Array:
    """Density of bad amplitudes: even over the range of all of them."""
    amplitudes = problem.responses[problem.weights[:, 0] > 0]
    reach = max(float(amplitudes.max(initial=0.0)), TINY)
    return np.full(problem.responses.shape, 1 / reach)


def _largest_eigenvalue(source: RowSource, scaled: Array) -> float:
    """Largest eigenvalue of ``AᴴA`` beside the diagonal matrix of ``scaled``, at least one: a few power iterations."""
    root, value = np.sqrt(scaled), 1.0
    vector = np.random.default_rng(0).standard_normal(root.size) * np.ones(1, source.dtype)
    for _ in range(AMPLITUDE.power_steps):
        vector = vector / max(float(np.linalg.norm(vector)), TINY)
        vector = sweep(source, vector / root, lambda s: s).total / root
        value = float(np.linalg.norm(vector))
    return max(AMPLITUDE.margin * value, 1.0) if value > 1 + AMPLITUDE.certain else 1.0


@dataclass(frozen=True)
class LeverageOptions:
    """Constants of the leverages."""

    together: int = budget(
        64, "most parts into which the groups of a block are divided, each of which takes two products"
    )
    most: float = derived(
        0.5, "largest share of its own: beyond it a group has no majority of others to be held against"
    )


LEVERAGE = LeverageOptions()


class Leverages(NamedTuple):
    """Shares of their own (G,) at the first weights, and the light of the groups then, by which later ones are scaled."""

    shares: Array
    light: Array
    grouping: Grouping

    def left_out(self, problem: Problem, signal: Array, weights: Array, group_weights: Array) -> Array:
        """Factors, shape (m,), that make residuals as long as if their group had been left out: two passes.

        ``weights`` (m,) are those of the samples in the steps that led to the signal, ``group_weights`` what the groups have of
        these.
        """
        light = _light(problem, signal, _energies(problem.source, weights), self.grouping)
        shares = np.clip(self.shares * light / np.maximum(self.light, TINY), 0.0, LEVERAGE.most)
        factors: Array = 1 / (1 - group_weights * shares[self.grouping.codes])
        return factors


def group_leverages(problem: Problem, signal: Array, weights: Array) -> Leverages | None:
    """Shares that groups, those of the first grouping, have in their own predictions; None without groups."""
    if not problem.groupings:
        return None
    source, (codes, count) = problem.source, problem.groupings[0]
    energies, rng = _energies(source, weights), np.random.default_rng(0)
    parts = rng.permutation(np.arange(count) % LEVERAGE.together)

    def kernel(block: Any, part: Array, codes: Array) -> Parts:
        predictions = project_block(block, signal)
        few = np.unique(codes)
        # Few groups are taken one by one, each exactly.
        part, shared = (codes, False) if few.size <= LEVERAGE.together else (part, True)
        asked = np.zeros(predictions.size)
        for one in np.unique(part):
            own = np.where(part == one, predictions, 0)
            image = project_block(block, adjoint_block(block, own) / energies)
            asked += np.where(part == one, (predictions.conj() * image).real, 0.0)
        if shared:
            whole = project_block(block, adjoint_block(block, predictions) / energies)
            others = (predictions.conj() * whole).real / LEVERAGE.together
            asked = (asked - others) / (1 - 1 / LEVERAGE.together)
        return Parts(rows=(asked, abs2(predictions)))

    asked, squares = source.reduce(kernel, (parts[codes], codes)).rows
    own = np.bincount(codes, asked, minlength=count)
    shares = np.clip(own / np.maximum(np.bincount(codes, squares, minlength=count), TINY), 0.0, 1.0)
    return Leverages(shares, _light(problem, signal, energies, problem.groupings[0]), problem.groupings[0])


def _energies(source: RowSource, weights: Array) -> Array:
    """Energies of the columns in weighted samples, from below as in the steps: probed with random signs, one pass."""
    signs = np.random.default_rng(0).choice((-1.0, 1.0), source.shape[1])
    energies = np.maximum((signs * sweep(source, signs, lambda s, w: w * s, (weights,)).total).real, 0.0)
    floored: Array = energies + max(AMPLITUDE.regularised * float(energies.max()), TINY)
    return floored


def _light(problem: Problem, signal: Array, energies: Array, grouping: Grouping) -> Array:
    """Energy ``Σ_i E_gi |x_i|²/D_i`` of groups behind columns of unit energy: probed with random signs, one pass."""
    signs = np.random.default_rng(1).choice((-1.0, 1.0), signal.size)
    squares = abs2(project(problem.source, signs * signal / np.sqrt(energies)))
    return np.bincount(grouping.codes, squares, minlength=grouping.size)

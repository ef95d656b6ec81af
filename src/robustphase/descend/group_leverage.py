r"""How much of a prediction of a group is its own doing, behind an operator.

Samples pull the signal towards themselves, so their residuals are shorter than their distance to what the other samples say. For
the preconditioned steps of :mod:`robustphase.descend.amplitude_flow` the predictions s of a group g keep the share

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

from robustphase.constants import budget, derived
from robustphase.problem import Grouping, Problem
from robustphase.rows import RowSource, project, sweep
from robustphase.rows.passes import abs2, adjoint_block, project_block
from robustphase.rows.source import Array, Parts

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LeverageOptions:
    """Constants of the leverages."""

    together: int = budget(
        64, "most parts into which the groups of a block are divided, each of which takes two products"
    )
    most: float = derived(
        0.5, "largest share of its own: beyond it a group has no majority of others to be held against"
    )
    regularised: float = derived(0.05, "least energy of a column over the largest, as in the steps")


LEVERAGE = LeverageOptions()


class Leverages(NamedTuple):
    """Shares of their own (G,) at the first weights, and the light of the groups then, by which later ones are scaled."""

    shares: Array
    light: Array
    grouping: Grouping

    def left_out(self, problem: Problem, signal: Array, weights: Array, group_weights: Array) -> Array:
        """Factors, shape (m,), that make residuals as long as if their group had been left out: two passes.

        Parameters
        ----------
        problem : Problem
            The samples.
        signal : ndarray of shape (n,)
            The present signal.
        weights : ndarray of shape (m,)
            Weights of the samples in the steps that led there.
        group_weights : ndarray of shape (m,)
            What the groups have of these.
        """
        light = _light(problem, signal, _energies(problem.source, weights), self.grouping)
        shares = np.clip(self.shares * light / np.maximum(self.light, _TINY), 0.0, LEVERAGE.most)
        factors: Array = 1 / (1 - group_weights * shares[self.grouping.codes])
        return factors


def group_leverages(problem: Problem, signal: Array, weights: Array, *, seed: int = 0) -> Leverages | None:
    """Shares that groups have in their own predictions; None without groups.

    Parameters
    ----------
    problem : Problem
        The samples; the first grouping counts.
    signal : ndarray of shape (n,)
        The present signal.
    weights : ndarray of shape (m,)
        Weights of the samples.
    seed : int, default=0
        For groups that are taken together.
    """
    if not problem.groupings:
        return None
    source, (codes, count) = problem.source, problem.groupings[0]
    energies, rng = _energies(source, weights), np.random.default_rng(seed)
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
    shares = np.clip(own / np.maximum(np.bincount(codes, squares, minlength=count), _TINY), 0.0, 1.0)
    return Leverages(shares, _light(problem, signal, energies, problem.groupings[0]), problem.groupings[0])


def _energies(source: RowSource, weights: Array) -> Array:
    """Energies of the columns in weighted samples, from below as in the steps: probed with random signs, one pass."""
    signs = np.random.default_rng(0).choice((-1.0, 1.0), source.shape[1])
    energies = np.maximum((signs * sweep(source, signs, lambda s, w: w * s, (weights,)).total).real, 0.0)
    floored: Array = energies + max(LEVERAGE.regularised * float(energies.max()), _TINY)
    return floored


def _light(problem: Problem, signal: Array, energies: Array, grouping: Grouping) -> Array:
    """Energy ``Σ_i E_gi |x_i|²/D_i`` of groups behind columns of unit energy: probed with random signs, one pass."""
    signs = np.random.default_rng(1).choice((-1.0, 1.0), signal.size)
    squares = abs2(project(problem.source, signs * signal / np.sqrt(energies)))
    return np.bincount(grouping.codes, squares, minlength=grouping.size)

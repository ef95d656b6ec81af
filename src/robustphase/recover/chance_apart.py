r"""How far apart chance leaves two fits to the same samples.

A fit that weighs the gradients :math:`\psi_j s_j a_j` of its samples moves by :math:`\sum_j \psi_j s_j a_j / cH` from where it
would be without noise, with H the sum of slopes times energies of the projections, and c two for real and one for complex
signals. The difference of two fits is a sum of that kind too, with the difference of their coefficients, and so has the energy
:math:`\sum_j |u_j|^2 \lVert a_j\rVert^2` (Hausman, 1978).

Which of two is closer to the truth, one that is accurate but perhaps biased, and one that is neither? Squares of biases and of
what chance does add up: the distance between the two holds the bias of the first and the chance v that the second has on top.
So the second is closer once the squared distance is beyond 2v (Green and Strawderman, 1991).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.likelihood_fit import LikelihoodFit
from robustphase.problem import Problem, join_columns
from robustphase.recover.contradiction import gradient_and_chance, influence
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array


class Fitted(NamedTuple):
    """Fits, and the samples as they were fitted."""

    problem: Problem
    fit: LikelihoodFit

    def only(self, columns: Array) -> Fitted:
        """Some of the columns, given as a mask or by their places."""
        return Fitted(self.problem.only(columns), self.fit.only(columns))

    def joined(self, other: Fitted) -> Fitted:
        """These fits, then those to the same rows."""
        names = ("responses", "weights", "density", "levels", "units")
        both = {name: join_columns(getattr(self.problem, name), getattr(other.problem, name)) for name in names}
        return Fitted(self.problem._replace(**both), self.fit.joined(other.fit))


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

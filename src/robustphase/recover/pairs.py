r"""Pairs of signals that share the samples.

Bad samples that were written in the name of another signal pull at every fit that does not know of it, and where they are many
all fits end somewhere between the two. So two signals are fitted by turns, each with a tight noise, and to either of them those
samples are bad that the other explains: the density of bad responses is

.. math:: f_{\text{beside}}(y_j) = (1 - \beta)\, p(y_j - |a_j^H x'|^2 - b') + \beta f(y_j)

for a rival x' with the background b', the law p of its tight noise, and a share β of bad samples that neither explains. The two
begin alike. The first leaves the samples between to the second, the second to the first, and so they part as the two components
of a mixture of regressions do. If bad samples speak for one signal, that is one of the two, and the other is the truth, with
hardly more bias than if the bad samples were not there.

Who of them is right the samples decide (:mod:`robustphase.recover.election`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustphase.constants import budget, empirical, numeric
from robustphase.descend.objective import State
from robustphase.likelihood.noise_model import NOISE
from robustphase.problem import Problem
from robustphase.recover.held_noise import HELD, Fitted, fit_held, half_scales, held, strong_factors
from robustphase.rows import project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


@dataclass(frozen=True)
class PairOptions:
    """Constants of the fits of pairs."""

    neither: float = empirical(0.05, "share β of the bad samples that neither of the two explains")
    turns: int = budget(3, "turns of either")
    tol: float = numeric(1e-3, "relative step at which a turn ends")
    passes: int = budget(10, "most passes of a turn")


PAIR = PairOptions()


def fit_pairs(problem: Problem, signals: Array, backgrounds: Array, held_back: Array) -> Fitted:
    """Two fits from every start that share the samples: those that move first, then those that move second.

    Parameters
    ----------
    problem : Problem
        A column for each start.
    signals, backgrounds : ndarray of shapes (n, k) and (k,)
        The starts.
    held_back : ndarray of bool, shape (k,)
        In which of them strong samples lose weight.
    """
    first = second = State(signals, backgrounds, *held(problem, np.ones(backgrounds.shape)))
    for _ in range(PAIR.turns):
        one = _fit_beside(problem, first, second, held_back)
        other = _fit_beside(problem, second, first := one.fit.state, held_back)
        second = other.fit.state
    return one.joined(other)


def _fit_beside(problem: Problem, state: State, rival: State, held_back: Array) -> Fitted:
    """The tight fit from a state, to all samples, of which those are bad that a rival explains."""
    energy, explained = (abs2(project(problem.source, one.signals)) for one in (state, rival))
    unexplained = problem.responses - explained - rival.backgrounds
    own, other = (
        np.maximum(HELD.tight * half_scales(problem, residuals), NOISE.tiny_scale)
        for residuals in (problem.responses - energy - state.backgrounds, unexplained)
    )
    density = PAIR.neither * np.maximum(problem.density, HELD.floor)
    density += (1 - PAIR.neither) * held(problem, other)[0].density(unexplained)
    place = State(state.signals, state.backgrounds, *held(problem, own))
    return fit_held(
        problem._replace(density=density), place, strong_factors(problem, energy, held_back), (PAIR.tol, PAIR.passes)
    )

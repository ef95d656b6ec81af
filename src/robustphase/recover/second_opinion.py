"""A second opinion on an answer that other influences contradict.

Whoever learns how the likelihood works rewrites responses so that a wrong signal explains them, and the others look like wider
noise. What gives it away is a test (:mod:`robustphase.recover.contradiction`); what finds the signal again are two estimates of
bounded influence, which give up efficiency for the least bias that contamination can cause.

Candidates are sought among the half of the samples that the answer explains worst, which are clean where the bad ones were made
to fit it, and, since the attacker may have hidden the signal from such a search, along all directions that any smooth weighting
of the ranks shows (:mod:`robustphase.initialise.rank_spectra`). Rows whose lengths are too frequent count less. From these
candidates and from the answer signals are fitted to all samples with a noise that is *held* tight, so that bad samples cannot
pass for wider noise (:mod:`robustphase.recover.held_noise`); once as they are, and once with weights that fall off with the
projection, so that a few strong samples do not outweigh many ordinary ones (Mallows' estimator). From those that are farthest
apart pairs of signals are fitted that share the samples (:mod:`robustphase.recover.pairs`): where bad samples speak for another
signal, one of a pair is that one, and the other has nearly nothing of it left.

Among all these and the answer the samples vote (:mod:`robustphase.recover.election`). A *faint* answer, with less power than
noise, is heard again even where nothing contradicts it, and none but a clearer one takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, empirical, numeric
from robustphase.descend.climb import CLIMB
from robustphase.descend.likelihood_fit import LikelihoodFit
from robustphase.initialise.screening import match_lengths
from robustphase.likelihood import initial_model
from robustphase.likelihood.noise_model import NOISE
from robustphase.population import distance
from robustphase.problem import Candidates, Problem, kept, real_unknowns, select_columns
from robustphase.recover.contradiction import chance_apart
from robustphase.recover.election import ELECTION, Rules, elected
from robustphase.recover.held_noise import HELD, Fitted, fit_tightly, half_scales
from robustphase.recover.pairs import fit_pairs
from robustphase.rows import OperatorRows
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


@dataclass(frozen=True)
class OpinionOptions:
    """Constants of the second opinion."""

    optimism: float = empirical(
        0.15,
        "lead, in standard errors of a vote and roots of the real unknowns, that a tight fit to these very samples has "
        "without being closer",
    )
    sure: float = derived(
        2.0,
        "contradictions that many times as strong as the least one are no chance, and the answer has no lead in the vote",
    )
    crowded: float = empirical(
        10.0,
        "times as many equal responses as is usual make a value that no noise has: levels of a camera differ by less",
    )
    pairs: int = budget(2, "contenders from which pairs of signals are sought")
    copies: float = numeric(
        0.25, "parts of what chance leaves between two fits, up to which they count as the same signal"
    )
    same: float = derived(
        2.0,
        "times the squared distance that chance leaves between two fits, up to which another signal is the answer again: beyond, "
        "the squared bias of the answer is larger than what chance adds to the other",
    )


OPINION = OpinionOptions()


#: Candidates for every column of a problem, given with all samples and with a half of them.
Search = Callable[[Problem, Problem], list[Candidates]]


def worse_half(fit: LikelihoodFit, weights: Array) -> Array:
    """The half of the kept samples with the larger residuals over the scale of their side, shape (m, k)."""
    keep, noise = kept(weights), fit.state.noise
    sizes = np.abs(fit.residuals) / np.where(fit.residuals > 0, noise.skews, 1.0)
    middle = [np.median(size[used]) if used.any() else 0.0 for size, used in zip(sizes.T, keep.T, strict=True)]
    half: Array = keep & (sizes >= np.array(middle))
    return half


def crowded(responses: Array) -> Array:
    """Which responses are equal to far more others than is usual among them, shape (m, k): no noise does that."""
    many = np.empty(responses.shape, bool)
    for k, column in enumerate(responses.T):
        _, places, counts = np.unique(column, return_inverse=True, return_counts=True)
        ties = counts[places]
        many[:, k] = ties > OPINION.crowded * np.median(ties)
    return many


def faint(problem: Problem, fit: LikelihoodFit) -> Array:
    """Which answers have less power than half of the residuals spread, shape (k,): longer signals may hide behind the noise.

    What did not settle is no answer, and too few samples, or those of a signal of no length, have no half to search in.
    """
    m, power = problem.source.shape[0], powers(fit.state.signals)
    if m < 2 * CLIMB.few_samples * real_unknowns(fit.state.signals):
        return np.zeros(power.shape, bool)
    half = HELD.normal * half_scales(problem, fit.residuals)
    dim: Array = fit.converged & (power > 0) & (power < half) & (half > NOISE.tiny_scale)
    return dim


def powers(signals: Array) -> Array:
    """Mean responses without a background, shape (k,)."""
    return np.asarray(abs2(signals).sum(axis=0))


class Opinions(NamedTuple):
    """What the samples say of answers in doubt.

    Attributes
    ----------
    better : ndarray of bool, shape (k,)
        Which answers others take the place of.
    fit : LikelihoodFit
        Those.
    missed : ndarray of shape (k,)
        Share of the votes that the answers in the end miss beyond what contamination takes from the truth; NaN for
        faint ones.
    rivals : ndarray of shape (k,)
        Distance of the farthest signal from the answer that the samples do not refute, over the norm of the answer.
    """

    better: Array
    fit: LikelihoodFit
    missed: Array
    rivals: Array


def second_opinions(problem: Problem, answers: Fitted, weights: Array, doubts: Array, search: Search) -> Opinions:
    """Other answers to those in doubt, where the samples vote for others.

    The problem has one column for each answer in doubt. ``doubts`` (k,) say how strongly the answers are contradicted; those up
    to one are faint. ``search`` finds candidates for every column of a problem, given with all samples and with the half that
    the answer explains worst.
    """
    # What an over-exposed detector reports is bad whatever the signal, and would vote for the one that comes closest to it.
    problem, fit = problem._replace(weights=np.where(crowded(problem.responses), 0.0, _matched(problem))), answers.fit
    sought = search(problem, problem._replace(weights=_where_to_search(problem, worse_half(fit, weights))))
    others, owners = _contenders(problem, fit, sought)
    signals, unknowns = fit.state.signals, real_unknowns(fit.state.signals)
    used = np.broadcast_to(problem.weights > 0, fit.residuals.shape)
    levels = np.broadcast_to(problem.levels, doubts.shape)
    chosen, missed, rivals = np.full(len(sought), -1), np.empty(len(sought)), np.empty(len(sought))
    for k in range(len(sought)):
        own = _distinct(problem, others, np.flatnonzero(owners == k))
        standing = np.column_stack((signals[:, k], others.fit.state.signals[:, own]))
        verdict = elected(
            np.column_stack((fit.residuals[:, k], others.fit.residuals[:, own])),
            powers(standing),
            used[:, k],
            Rules(float(levels[k]), _lead(doubts[k], unknowns), np.append(True, others.fit.converged[own])),
        )
        # Against a faint answer nothing is held.
        missed[k] = verdict.missed[verdict.winner] if doubts[k] > 1 else np.nan
        away = _distances(standing, problem.paired)[verdict.winner]
        rivals[k] = away[verdict.left].max(initial=0.0) / max(np.sqrt(powers(standing[:, verdict.winner])), TINY)
        chosen[k] = own[verdict.winner - 1] if verdict.winner else -1
    better = chosen >= 0
    if better.any():
        # What is not farther than that is the answer again, less accurately.
        most = OPINION.same * chance_apart(answers.only(better), others.only(chosen[better]))
        better[better] = _apart(problem, signals[:, better], others.fit.state.signals[:, chosen[better]]) > most
    winners = others.fit.only(chosen[better])
    # Reported with the noise that their best half of residuals suggests.
    scales = half_scales(problem.only(better), winners.residuals)
    wide = initial_model(np.maximum(scales, NOISE.tiny_scale), problem.levels[better])
    return Opinions(better, winners._replace(state=winners.state._replace(noise=wide)), missed, rivals)


def _distances(signals: Array, paired: bool) -> Array:
    """Distances of signals (n, l) from each other, which are known up to a phase, and behind real rows a conjugate, (l, l)."""
    overlap, energies = np.abs(signals.conj().T @ signals), powers(signals)
    if paired:
        overlap = np.maximum(overlap, np.abs(signals.T @ signals))
    squares: Array = energies + energies[:, np.newaxis] - 2 * overlap
    return np.sqrt(np.maximum(squares, 0.0))


def _apart(problem: Problem, signals: Array, others: Array) -> Array:
    """Squared distances of signals, column by column, shape (k,)."""
    pairs = zip(others.T, signals.T, strict=True)
    return np.array([distance(other, signal, conjugate=problem.paired) ** 2 for other, signal in pairs])


def _contenders(problem: Problem, fit: LikelihoodFit, sought: list[Candidates]) -> tuple[Fitted, Array]:
    """Who stands against the answers, and which of these that is about, shape (l,)."""
    # Every answer is a start too: where the attack has moved it only a little, the way back is short.
    owners = np.repeat(np.arange(len(sought)), [1 + one.scores.size for one in sought])
    state = fit.state
    starts = np.hstack([np.column_stack((state.signals[:, k], one.signals)) for k, one in enumerate(sought)])
    levels = np.concatenate([np.append(state.backgrounds[k], one.backgrounds) for k, one in enumerate(sought)])
    # Each fitted in both ways, with columns of their own in the same passes.
    tight = _both_ways(fit_tightly, problem, starts, levels, owners)
    owners = np.repeat(owners, 2)
    # Who is far apart from the others is likely to be on either side of two signals that share the samples.
    state = tight.fit.state
    ends = [_far_apart(state.signals[:, owners == k], problem.paired) for k in range(len(sought))]
    chosen = np.concatenate([np.flatnonzero(owners == k)[places] for k, places in enumerate(ends)])
    pairs = _both_ways(fit_pairs, problem, state.signals[:, chosen], state.backgrounds[chosen], owners[chosen])
    whose = np.repeat(owners[chosen], 2)
    return tight.joined(pairs), np.concatenate((owners, whose, whose))


def _both_ways(
    fit: Callable[[Problem, Array, Array, Array], Fitted], problem: Problem, starts: Array, levels: Array, owners: Array
) -> Fitted:
    """Fits from every start, to all samples alike and with strong ones held back, in columns beside each other."""
    twice = np.repeat(np.arange(owners.size), 2)
    held_back = np.tile((False, True), owners.size)
    return fit(_repeated(problem, owners[twice]), starts[:, twice], levels[twice], held_back)


def _far_apart(signals: Array, paired: bool) -> list[int]:
    """Places of the first of some signals (n, l), and of those that lie farthest from it and from each other."""
    apart, places = _distances(signals, paired), [0]
    while len(places) < min(OPINION.pairs, len(apart)):
        places.append(int(apart[:, places].min(axis=1).argmax()))
    return places


def _distinct(problem: Problem, fitted: Fitted, places: Array) -> Array:
    """Those of some places of fits whose signals are no copies of one before them: votes compare everybody with everybody.

    By chance a fit is off by σ/2 times √(d/m), for d real unknowns, over the length of its signal; copies are nearer than a
    fraction of that.
    """
    some = fitted.only(places)
    signals, scales = some.fit.state.signals, half_scales(some.problem, some.fit.residuals)
    chance = float(scales.min()) / 2 * np.sqrt(real_unknowns(signals) / max(len(some.fit.residuals), 1))
    near = _distances(signals, problem.paired) * np.sqrt(powers(signals).max()) < OPINION.copies * chance
    first = [0]
    for place in range(1, places.size):
        if not near[first, place].any():
            first.append(place)
    return np.asarray(places[first])


def _where_to_search(problem: Problem, half: Array) -> Array:
    """Weights of the samples of the half; of all of them where fewer than one per column of the rows are left in it."""
    weights = problem.weights * half
    enough = (weights > 0).sum(axis=0) >= problem.source.shape[1]
    searched: Array = np.where(enough, weights, problem.weights)
    return searched


def _matched(problem: Problem) -> Array:
    """Weights of the samples, less where the lengths of rows are too frequent for their design, shape (m, 1) or (m, k)."""
    if isinstance(problem.source, OperatorRows) or not problem.normal:
        return problem.weights
    used = np.asarray((problem.weights > 0).any(axis=1), np.float64)
    factors = match_lengths(problem.source, used)
    return np.asarray(problem.weights * factors[:, np.newaxis])


def _lead(doubt: float, unknowns: int) -> float:
    if doubt <= 1:
        # Nothing is held against the answer but that it is faint.
        return np.inf
    # And an answer that may be right wins ties.
    return 0.0 if doubt > OPINION.sure else ELECTION.tied + OPINION.optimism * float(np.sqrt(unknowns))


def _repeated(problem: Problem, owners: Array) -> Problem:
    """The problem with a column of its own for every candidate, whose owners are columns of it."""
    weights = np.broadcast_to(problem.weights, problem.responses.shape)
    return problem._replace(
        responses=problem.responses[:, owners],
        weights=weights[:, owners],
        density=select_columns(np.broadcast_to(problem.density, problem.responses.shape), owners),
        levels=np.broadcast_to(problem.levels, problem.responses.shape[1:])[owners],
        units=problem.units[owners],
    )

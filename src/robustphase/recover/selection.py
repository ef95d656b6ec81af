"""Choosing among the candidates of one signal: successive halving, refinement of the finalists, and a vote.

All candidates move together, a few steps at a time. After each stretch those stay that are still different and promising.
What promises is a forecast: the score after the stretch, and as much again as was gained in it. A right candidate that
started far away is still behind when wrong ones have long settled, but it gains more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import budget, empirical, numeric
from robustphase.descend.acceleration import Aitken
from robustphase.descend.candidate_steps import Advance, Evaluation, advance, at_rest, distinct_signals, evaluate, weigh
from robustphase.descend.newton import Inner, gauss_newton_step, relative_lengths, shortened
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.likelihood.comparison import comparison_floor
from robustphase.problem import Candidates, Problem
from robustphase.rows.products import abs2
from robustphase.rows.source import Array


@dataclass(frozen=True)
class SelectionOptions:
    """Constants of the selection."""

    first_steps: int = budget(2, "steps until the first look")
    steps: int = budget(4, "steps between later looks")
    most: tuple[int, ...] = budget((16, 16, 8, 6, 6, 5, 5, 4, 3), "most candidates that stay after each look")
    behind: float = budget(
        0.25,
        "forecasts that far behind the best are dropped; twice as far at the first look, which only drops the hopeless. "
        "Whoever stays longer does not win more often",
    )
    apart: float = empirical(
        0.2, "relative distance below which two candidates are on the way to the same place; half of it for finalists"
    )
    finalists: int = budget(3, "candidates that get Gauss-Newton steps")
    fewest_refinements: int = budget(2, "Gauss-Newton steps at least")
    most_refinements: int = budget(8, "and at most")
    inner: int = budget(4, "conjugate gradients in each")
    settled: float = numeric(0.02, "candidates that move by less than this fraction have settled")
    about_as_good: float = empirical(0.16, "candidates whose score is that close to the best take part in the vote")
    ordinary: float = empirical(0.3, "so do only those with this fraction of its power: zero contradicts no sample")
    voting_floor: float = empirical(0.6, "density floor of the vote: every sample counts about once")


SELECTION = SelectionOptions()

Note = Callable[[Candidates, Candidates], None]


class Selected(NamedTuple):
    """The winner as a single candidate, its residuals (m, 1) where it was refined, which start it came from, and finalists."""

    winner: Candidates
    residuals: Array
    origin: int
    finalists: int


def select(problem: Problem, starts: Candidates, note: Note, *, refine_alone: bool) -> Selected:
    """The candidate that explains the samples of one signal best.

    ``note`` is called after every stretch, with the candidates before and after it. With ``refine_alone`` also a single
    finalist is refined, instead of leaving that to the likelihood fit, which takes the same kind of steps.
    """
    floored = problem.floored(comparison_floor(problem.levels))
    ((finalists, origins),) = _halve(floored, at_rest(floored, starts), [starts.scores.size], note)
    if origins.size == 1 and not refine_alone:
        return Selected(finalists, np.empty((0, 1)), int(origins[0]), 1)
    signals, backgrounds, seen = _refine(floored, finalists)
    winner = choose(problem, seen) if origins.size > 1 else 0
    refined = Candidates(signals, backgrounds, seen.scales, seen.scores).only(np.array([winner]))
    return Selected(refined, seen.residuals[:, [winner]], int(origins[winner]), origins.size)


def finalists(problem: Problem, races: list[Candidates], samples: int) -> list[Candidates]:
    """The candidates of one signal that successive halving leaves of each race, all of them run in the same passes.

    First steps are as long as so many samples allow: those that the problem was taken from.
    """
    floored, sizes = problem.floored(comparison_floor(problem.levels)), [one.scores.size for one in races]
    starts = Candidates(*(np.concatenate(parts, axis=-1) for parts in zip(*races, strict=True)))
    found = _halve(floored, at_rest(floored, starts, samples), sizes, lambda before, after: None)
    return [candidates for candidates, _ in found]


def _halve(problem: Problem, moving: Advance, sizes: list[int], note: Note) -> list[tuple[Candidates, Array]]:
    """Successive halving in races of so many candidates; of each the finalists, and which of all starts they came from.

    Races share their passes and nothing else: no candidate drops out because of one of another race.
    """
    races, origins = np.repeat(np.arange(len(sizes)), sizes), np.arange(sum(sizes))
    arrived: dict[int, tuple[Candidates, Array]] = {}
    for look in range(len(SELECTION.most)):
        before = moving.candidates
        moving = advance(problem, moving, SELECTION.steps if look else SELECTION.first_steps)
        after = moving.candidates
        note(before, after)
        settled = relative_lengths(after.signals - before.signals, after.signals) < SELECTION.settled
        staying = []
        for race in np.unique(races):
            own = np.flatnonzero(races == race)
            chosen = own[_promising(moving.only(own), look, paired=problem.paired)]
            arrived[race] = after.only(chosen), origins[chosen]
            # Who has beaten others is near the signal; a start that was given may be far away.
            if (chosen.size > 1 or sizes[race] == 1) and not settled[chosen].all():
                staying.append(chosen)
        if not staying:
            break
        rest = np.concatenate(staying)
        moving, races, origins = moving.only(rest), races[rest], origins[rest]
    return [_last_of(*arrived[race], paired=problem.paired) for race in range(len(sizes))]


def _promising(moving: Advance, look: int, *, paired: bool) -> Array:
    """Which candidates of a race stay after a look, the best first."""
    forecasts = moving.candidates.scores + moving.gains
    most, behind = SELECTION.most[look], SELECTION.behind if look else 2 * SELECTION.behind
    chosen = distinct_signals(moving.candidates.signals, forecasts, most, SELECTION.apart, paired=paired)
    promising: Array = chosen[forecasts[chosen] > forecasts.max() - behind]
    return promising


def _last_of(final: Candidates, origins: Array, *, paired: bool) -> tuple[Candidates, Array]:
    """The finalists among those that a race has left, and their origins."""
    chosen = distinct_signals(final.signals, final.scores, SELECTION.finalists, SELECTION.apart / 2, paired=paired)
    return final.only(chosen), origins[chosen]


def _refine(problem: Problem, finalists: Candidates) -> tuple[Array, Array, Evaluation]:
    """A few Gauss-Newton steps on the same likelihood, more where a finalist is still on its way."""
    aitken = Aitken(1.0, least=1.0)
    signals, backgrounds = finalists.signals, finalists.backgrounds
    seen = evaluate(problem, signals, backgrounds)
    for count in range(1, SELECTION.most_refinements + 1):
        step = gauss_newton_step(
            problem, signals, seen.projections, seen.residuals, seen.weights, Inner(SELECTION.inner, 0.1)
        )
        aitken = aitken.after(step.signals)
        longer = shortened(aitken.factors * step.signals, signals)
        factors = relative_lengths(longer, signals) / np.maximum(relative_lengths(step.signals, signals), 1e-300)
        signals, backgrounds = signals + longer, backgrounds + factors * step.backgrounds
        seen = evaluate(problem, signals, backgrounds)
        settled = relative_lengths(step.signals, signals) < SELECTION.settled
        if count >= SELECTION.fewest_refinements and settled.all():
            break
    return signals, backgrounds, seen


def choose(problem: Problem, seen: Evaluation) -> int:
    """Index of the winner: the best likelihood; among those about as good, the one that most samples vote for.

    A high floor of the response density caps what a single sample can count, so it asks for votes; a low one asks for
    explanations of what is surprising. A signal close to zero says nothing of any sample, so nobody votes against it: it
    takes no part in a vote on one of ordinary size.
    """
    lowest = np.minimum(DENSITY.low_floor, comparison_floor(problem.levels))
    explaining, voting = (
        weigh(problem.floored(floor), seen.projections, seen.residuals).scores
        for floor in (lowest, SELECTION.voting_floor)
    )
    power = abs2(seen.projections).mean(axis=0)
    eligible = explaining >= explaining.max() - SELECTION.about_as_good
    eligible &= power >= SELECTION.ordinary * power[np.argmax(explaining)]
    return int(np.argmax(np.where(eligible, voting, -np.inf)))

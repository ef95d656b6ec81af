"""What a search for attacks returns: the worst ones, how they did on fresh worlds, and a report to read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from robustphase.experiments.attack_store import Trial
from robustphase.experiments.information import unavoidable_error
from robustphase.simulate.adversaries import Adversary
from robustphase.simulate.adversaries.parametric import ParametricAttack


class RedTeamSettings(NamedTuple):
    """The worlds of a search and its size, as they were given to :func:`robustphase.experiments.red_team`."""

    contamination: float
    n: int
    m: int
    noise: str
    noise_std: float
    noise_mean: float
    field: str
    budget: int
    seeds_per_attack: int
    restarts: int
    confirm: int
    confirm_n: int
    confirm_m: int
    top: int
    seed: int


@dataclass(frozen=True)
class FoundAttack:
    """One of the worst attacks.

    Attributes
    ----------
    attack : ParametricAttack
        What it does.
    search_errors : tuple of float
        Relative errors in the worlds of the search, which are flattered: it was chosen for them.
    fresh_errors : tuple of float
        Relative errors in worlds that the search has not seen; empty if it was not confirmed.
    refused : int
        In how many of all these worlds the method gave no answer, which counts as an error of 1.
    """

    attack: ParametricAttack
    search_errors: tuple[float, ...]
    fresh_errors: tuple[float, ...]
    refused: int = 0

    @property
    def error(self) -> float:
        """Mean error in fresh worlds, or in those of the search if there are none."""
        errors = self.fresh_errors or self.search_errors
        return sum(errors) / len(errors)


@dataclass(frozen=True)
class RedTeamResult:
    """The worst attacks that were found against a method.

    Attributes
    ----------
    method : str
        What was attacked.
    settings : RedTeamSettings
        In which worlds, and how hard.
    attacks : tuple of FoundAttack
        The worst, by their mean error in fresh worlds.
    clean_error : float
        Mean error of the method in the worlds of the search when nobody attacks.
    history : tuple of float
        Mean error of every attack, in the order in which they were tried.
    fits : int
        Fits that were made: the search, which keeps within the budget, and the confirmation.
    """

    method: str
    settings: RedTeamSettings
    attacks: tuple[FoundAttack, ...]
    clean_error: float
    history: tuple[float, ...]
    fits: int

    @property
    def worst(self) -> FoundAttack:
        """The attack with the largest mean error in fresh worlds."""
        return self.attacks[0]

    @property
    def error(self) -> float:
        """Mean error under the worst attack."""
        return self.worst.error

    @property
    def adversary(self) -> Adversary:
        """The worst attack, for ``simulate.make_world(attack=...)``."""
        return self.worst.attack.adversary

    @cached_property
    def unavoidable_error(self) -> float:
        """The error that no method avoids in such worlds, see :func:`robustphase.experiments.unavoidable_error`."""
        known = self.settings
        mean = "zero" if known.noise_mean == 0 else "unknown"
        return unavoidable_error(known.contamination, known.noise, known.noise_std, known.field, noise_mean=mean)

    def report(self) -> str:
        """Everything in Markdown: the figures, the worst attacks, and the lines that make the worst one again."""
        known = self.settings
        size = f"n = {known.n}, m = {known.m}"
        fresh = f"n = {known.confirm_n}, m = {known.confirm_m}"
        lines = [
            f"# The worst attacks found against {self.method}",
            "",
            f"Contamination {known.contamination:g}, {known.noise} noise of {known.noise_std:g}‖x*‖² around "
            f"{known.noise_mean:g}‖x*‖², {known.field}, {size}; {self.fits} fits, seed {known.seed}.",
            "",
            f"- error when nobody attacks: {self.clean_error:.3f}",
            f"- error under the worst attack found: {self.error:.3f}",
            f"- error that no method avoids, however large m: {self.unavoidable_error:.3f}",
            "",
            f"| attack | error in {known.confirm} fresh worlds ({fresh}) | their worst | error in the {known.seeds_per_attack} "
            "worlds of the search | no answer in | what it does |",
            "|---|---|---|---|---|---|",
        ]
        for number, found in enumerate(self.attacks, 1):
            fresh_mean = f"{found.error:.3f}" if found.fresh_errors else "not run"
            fresh_worst = f"{max(found.fresh_errors):.3f}" if found.fresh_errors else "not run"
            searched = sum(found.search_errors) / len(found.search_errors)
            told = found.attack.describe()
            lines.append(f"| {number} | {fresh_mean} | {fresh_worst} | {searched:.3f} | {found.refused} | {told} |")
        values = json.dumps(self.worst.attack.to_dict())
        moments = f"noise={known.noise!r}, noise_std={known.noise_std!r}, noise_mean={known.noise_mean!r}"
        lines += [
            "",
            "The first one again:",
            "",
            "```python",
            f"attack = rp.simulate.ParametricAttack.from_dict({values})",
            f"world = rp.simulate.make_world({known.n}, {known.m}, attack=attack.adversary, "
            f"contamination={known.contamination!r}, {moments}, field={known.field!r}, seed=0)",
            "```",
        ]
        return "\n".join(lines) + "\n"


def found_attacks(searched: list[Trial], confirmed: list[Trial], noise: str) -> tuple[FoundAttack, ...]:
    """Trials of the search with those of the confirmation, as far as these go, the worst first."""
    pairs = [(trial, confirmed[place] if place < len(confirmed) else None) for place, trial in enumerate(searched)]
    found = [
        FoundAttack(
            ParametricAttack.from_vector(trial.vector or (), noise),
            trial.errors,
            fresh.errors if fresh else (),
            trial.refused + (fresh.refused if fresh else 0),
        )
        for trial, fresh in pairs
    ]
    return tuple(sorted(found, key=lambda attack: -attack.error))

"""What a search for attacks has found: so far, in a file, and in the end, as a report to read.

The file is one JSON document, written whole or not at all after every attack that was tried: the settings, then every attack with
its errors, in the order of the search. The search itself is a function of its seed and of these errors; made again, it
asks for the same attacks, finds them here, and goes on where it was.

The report has the worst attacks, and how they did on fresh worlds.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from robustphase.atomic import write_text
from robustphase.experiments.information import unavoidable_error
from robustphase.simulate.adversaries import Adversary
from robustphase.simulate.adversaries.parametric import ParametricAttack

#: Raised whenever the meaning of the file, or of a vector of the family, changes.
FORMAT = 1


class Trial(NamedTuple):
    """One attack that was tried.

    Attributes
    ----------
    vector : tuple of float, or None
        Point of the family; None is no attack at all.
    errors : tuple of float
        Relative errors, one per world. No answer counts as 1, the error of the answer zero.
    refused : int
        In how many of the worlds there was no answer: an error was raised, or the signal was not finite.
    """

    vector: tuple[float, ...] | None
    errors: tuple[float, ...]
    refused: int = 0

    @property
    def mean(self) -> float:
        """Mean of the errors: what the search makes large."""
        return sum(self.errors) / len(self.errors)


class TrialStore:
    """Trials of the search and of the confirmation, in a file if there is one.

    That is a ``.json`` file, continued if there is one with the same settings; without it trials are kept in memory.
    """

    def __init__(self, path: str | os.PathLike[str] | None, settings: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self._settings = {"format": FORMAT, **settings}
        self.trials: dict[str, list[Trial]] = {"search": [], "confirmation": []}
        if self.path is None:
            return
        if self.path.suffix != ".json":
            raise ValueError(f"store must be a file that ends in .json, got {self.path.name!r}.")
        if self.path.exists():
            self._read(self.path)
        self._write()

    def add(self, part: str, trial: Trial) -> None:
        """Keep a trial of the "search" or of the "confirmation"."""
        self.trials[part].append(trial)
        self._write()

    def _write(self) -> None:
        if self.path is not None:
            kept = {part: [trial._asdict() for trial in trials] for part, trials in self.trials.items()}
            write_text(self.path, json.dumps({"red_team": self._settings, **kept}) + "\n")

    def _read(self, path: Path) -> None:
        try:
            found = json.loads(path.read_text("utf-8"))
            there = dict(found["red_team"])
            trials = {part: [_trial(record) for record in found[part]] for part in self.trials}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path.name} is not the store of a search for attacks; it was left as it is. Choose another name for store."
            ) from error
        differences = [
            f"{key}={there.get(key)!r} there, {key}={value!r} here"
            for key, value in self._settings.items()
            if there.get(key) != value
        ]
        if differences:
            raise ValueError(
                f"{path.name} belongs to a search with other settings ({'; '.join(differences)}). "
                "Pass the same settings to continue it, or choose another name for store."
            )
        self.trials = trials


def _trial(record: dict[str, Any]) -> Trial:
    vector = record["vector"]
    return Trial(
        None if vector is None else tuple(float(value) for value in vector),
        tuple(float(error) for error in record["errors"]),
        int(record["refused"]),
    )


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

"""What a search for attacks has found so far, in a file, so that it can be interrupted and continued.

The file is one JSON document, written whole or not at all after every attack that was tried: the settings, then every attack with
its errors, in the order of the search. The search itself is a function of its seed and of these errors; made again, it
asks for the same attacks, finds them here, and goes on where it was.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from robustphase.atomic import write_text

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

    Parameters
    ----------
    path : path, optional
        A ``.json`` file, continued if there is one with the same settings; without it trials are kept in memory.
    settings : dict
        What the search depends on, to be written as JSON.
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

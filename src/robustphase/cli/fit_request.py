"""What ``robustphase fit`` is asked for: what it reads, and where it writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

import robustphase as rp
from robustphase.cli.outputs import check_distinct, check_outputs, check_outside
from robustphase.cli.terminal import shown
from robustphase.files import DataError, StoredSamples, read_values
from robustphase.files.checkpoint import PROBLEM
from robustphase.report import require_report


@dataclass(frozen=True)
class FitRequest:
    """What ``robustphase fit`` is asked for; ``settings`` are the arguments of the estimator that have the same name."""

    data: Path
    responses: Path | None
    covariates_name: str | None
    responses_name: str | None
    transpose: str | None
    column: int | None
    groups: Path | None
    saturation: float | Path | None
    background: Path | None
    drift: bool
    init: str | Path
    no_polish: bool
    seed: int
    out: Path | None
    report: Path | None
    flagged: Path | None
    image_shape: tuple[int, int] | None
    detector_shape: tuple[int, ...] | None
    checkpoint: Path | None
    resume: bool
    checkpoint_every: float
    keep_checkpoint: bool
    overwrite: bool
    settings: dict[str, Any]

    @property
    def result(self) -> Path:
        """Where the result goes."""
        return Path(f"{self.data.stem}-result.npz") if self.out is None else self.out

    @property
    def folder(self) -> Path | None:
        """Where the checkpoint goes, if there is to be one."""
        return self.result.with_suffix(".checkpoint") if self.resume and self.checkpoint is None else self.checkpoint

    def check_outputs(self) -> None:
        """Refuse to write over the data or twice to one place, or where nothing can be written."""
        outputs = {
            "--out": self.result,
            "--report": self.report,
            "--flagged": self.flagged,
            "--checkpoint": self.folder,
        }
        inputs: dict[str, Any] = {
            "DATA": self.data,
            "--responses": self.responses,
            "--init": self.init,
            "--groups": self.groups,
            "--saturation": self.saturation,
            "--background": self.background,
        }
        for name, path in inputs.items():
            if isinstance(path, Path):
                check_distinct(**{name: path, **outputs})
                check_outside(path, **outputs)
        if self.report is not None:
            require_report()  # before the hours of a fit, not after them
        for path in (self.result, self.report, self.flagged):
            check_outputs(path, overwrite=self.overwrite or self._is_own(path))

    def _is_own(self, path: Path | None) -> bool:
        """Whether an earlier run of this command was cut off after it had written a file: that is written again.

        It can only have been written after the checkpoint was begun, so an older file is somebody else's.
        """
        if path is None or not self.resume or self.folder is None:
            return False
        begun = self.folder / PROBLEM
        return begun.is_file() and path.is_file() and path.stat().st_mtime_ns >= begun.stat().st_mtime_ns

    def responses_of(self, samples: StoredSamples) -> np.ndarray[Any, Any]:
        """The responses to fit: all, or one column of them."""
        if self.column is None:
            return samples.responses
        columns = samples.responses.reshape(len(samples.responses), -1)
        if self.column >= columns.shape[1]:
            raise click.UsageError(
                f"--column {self.column}: the responses have {columns.shape[1]} columns, the first of which is 0."
            )
        return np.ascontiguousarray(columns[:, self.column])

    def model(self, count: int) -> rp.RobustPhaseRetrieval:
        """The estimator, not fitted, for so many samples."""
        start = _read_array(self.init, "a starting point", "numbers") if isinstance(self.init, Path) else self.init
        whiten = "auto" if self.settings["whiten"] is None else self.settings["whiten"]
        limits = read_values(self.saturation, count) if isinstance(self.saturation, Path) else self.saturation
        settings = self.settings | {
            "whiten": whiten,
            "saturation": limits,
            "background": None if self.background is None else read_values(self.background, count),
            "drift": "auto" if self.drift else None,
        }
        return rp.RobustPhaseRetrieval(init=start, polish=not self.no_polish, random_state=self.seed, **settings)


def read_labels(path: Path) -> np.ndarray[Any, Any]:
    """The labels in a ``.npy`` file."""
    return _read_array(path, "labels", "numbers or strings")


def _read_array(path: Path, what: str, kind: str) -> np.ndarray[Any, Any]:
    """What is in a ``.npy`` file, if it holds things of that kind."""
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"cannot read {what} from {shown(path)}: it is not a .npy file of {kind}.") from error
    if not isinstance(found, np.ndarray):
        found.close()
        raise DataError(
            f"cannot read {what} from {shown(path)}: it may hold several arrays. Save the {what} alone: .npy."
        )
    return found

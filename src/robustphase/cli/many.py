"""Several signals behind the same covariates: their result file, and what to say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import robustphase as rp
from robustphase.atomic import writing
from robustphase.files import StoredSamples
from robustphase.formatting import number

#: What tells these files from those of one signal.
FORMAT = "robustphase signals"
#: Attributes of the estimator that are kept, without the underscore at their end.
KEPT = (
    "signal",
    "initial_signal",
    "weights",
    "row_weights",
    "contamination",
    "noise_mean",
    "noise_scale",
    "certificate",
    "converged",
)


def save_many(path: Path, model: rp.RobustPhaseRetrieval, samples: StoredSamples, command: str) -> None:
    """Write the answers as an ``.npz`` archive of plain arrays, whole or not at all.

    ``signal`` has one row for every signal; ``pattern_shape`` and ``frame_shape`` say how to show one as a picture, and how the
    signals lie in a frame.
    """
    arrays: dict[str, Any] = {name: np.asarray(getattr(model, f"{name}_")) for name in KEPT}
    arrays |= {"format": np.array(FORMAT), "command": np.array(command)}
    for name in ("pattern_shape", "frame_shape"):
        arrays[name] = np.array(getattr(samples, name), np.int64)
    with writing(path) as handle:
        np.savez_compressed(handle, **arrays)


def facts_of(model: rp.RobustPhaseRetrieval) -> list[tuple[str, str]]:
    """What was found, in a few lines."""
    converged, levels = np.asarray(model.converged_), np.asarray(model.contamination_)
    bad_rows, flagged = model.row_weights_ < 0.5, model.flag_samples()
    certificates = np.asarray(model.certificate_)
    last = model.history_[-1]
    facts = [
        ("answers", f"{int(converged.sum())} of {converged.size} signals converged"),
        ("contamination", f"{number(float(np.median(levels)))} in the median, {number(float(levels.max()))} at most"),
        ("readings treated as bad", f"{int(flagged.sum())} of {flagged.size} ({flagged.mean():.1%})"),
        ("samples bad for all signals", f"{int(bad_rows.sum())} of {bad_rows.size} ({bad_rows.mean():.1%})"),
        ("noise scale", f"{number(float(np.median(model.noise_scale_)))} in the median"),
        ("certificate", f"{int((certificates < 1).sum())} of {certificates.size} signals have one"),
        ("cost", f"{last.passes} passes over the data, {last.seconds:.1f} s"),
    ]
    left = np.flatnonzero(~converged)[:8]
    if left.size:
        facts.insert(
            1, ("did not converge", "signals " + ", ".join(map(str, left)) + (", …" if left.size == 8 else ""))
        )
    return facts

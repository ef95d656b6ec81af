"""Result files: diagnostics as an ``.npz`` archive of plain arrays, without pickle, in a versioned schema.

Arrays are stored under their own names; everything else is one JSON text. A reader of another language needs a zip library
and the ``.npy`` format.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from typing import Any

import numpy as np

from robustphase.atomic import writing
from robustphase.estimator import CurvedNoise, NoiseModel
from robustphase.report.diagnostics import HISTORY, CheckRecord, FitDiagnostics
from robustphase.report.many import FLAGGED, PER_SIGNAL, ManyDiagnostics
from robustphase.rows.io.limits import reason
from robustphase.rows.io.npy import npz_names, read_npz_array

#: What tells our files from others, and the newest layout this version knows.
FORMAT, SCHEMA = "robustphase result", 2
#: The same for files of many signals, which hold those of some signals in detail, under names with their number.
FORMAT_OF_MANY, SCHEMA_OF_MANY = "robustphase signals", 1

ARRAYS = ("signal", "initial_signal", "weights", "covariate_weights", "responses", "predictions", "squared_norms")
GROUPS = ("groups", "group_weights", "group_widths")
OPTIONAL_ARRAYS = ("standard_errors", "truth", *GROUPS)
#: Of every fit, of one signal or many.
VALUES_OF_ALL = (
    "contamination_told",
    "message",
    "parameters",
    "seed",
    "dtype",
    "versions",
    "command",
    "data_name",
    "fingerprint",
    "seconds",
    "passes",
)
VALUES = (
    *VALUES_OF_ALL,
    "contamination_used",
    "noise_mean",
    "noise_scale",
    "residual_centre",
    "certificate",
    "converged",
    "failed_checks",
)
ARRAYS_OF_MANY = (
    "signal",
    "initial_signal",
    "weights",
    "row_weights",
    *PER_SIGNAL,
    "expected_error",
    *(f"flagged_{name}" for name in FLAGGED),
    "check_names",
    "check_failed",
    "check_severe",
)
SHAPES = ("pattern_shape", "frame_shape")
#: Stages as earlier versions called them, and as they are called now.
RENAMED = {"race": "selection", "polish": "likelihood"}


class ResultFileError(ValueError):
    """A file that is not a result, or not a whole one, or one of a later version."""


def save_result(path: str | os.PathLike[str], diagnostics: FitDiagnostics | ManyDiagnostics) -> None:
    """Write diagnostics to a file, whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to; the customary ending is ``.npz``. A file that is there is replaced.
    diagnostics : FitDiagnostics or ManyDiagnostics
        What to keep.
    """
    if isinstance(diagnostics, ManyDiagnostics):
        kind, schema, arrays = FORMAT_OF_MANY, SCHEMA_OF_MANY, _arrays_of_many(diagnostics)
    else:
        kind, schema, arrays = FORMAT, SCHEMA, _arrays_of_one(diagnostics)
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind not in "fciubU":
            raise TypeError(f"{name} holds {np.asarray(array).dtype}, which cannot be written without pickle.")
    with writing(path) as handle:
        np.savez_compressed(handle, format=np.array(kind), schema=np.array(schema), **arrays)


def _arrays_of_one(diagnostics: FitDiagnostics) -> dict[str, Any]:
    arrays: dict[str, Any] = {name: getattr(diagnostics, name) for name in ARRAYS}
    arrays |= {name: getattr(diagnostics, name) for name in OPTIONAL_ARRAYS if getattr(diagnostics, name) is not None}
    arrays |= {f"history_{name}": diagnostics.history[name] for name in HISTORY}
    values = _values(diagnostics, VALUES)
    for name in ("noise_model", "noise_curve"):
        noise = getattr(diagnostics, name)
        values[name] = None if noise is None else {key: float(part) for key, part in noise._asdict().items()}
    values["model_check"] = [list(check) for check in diagnostics.model_check]
    for name in ("image_shape", "detector_shape"):
        shape = getattr(diagnostics, name)
        values[name] = None if shape is None else list(shape)
    return arrays | {"values": np.array(json.dumps(values))}


def _arrays_of_many(many: ManyDiagnostics) -> dict[str, Any]:
    arrays: dict[str, Any] = {name: getattr(many, name) for name in ARRAYS_OF_MANY}
    arrays |= {name: getattr(many, name) for name in GROUPS if getattr(many, name) is not None}
    arrays |= {name: np.array(getattr(many, name), np.int64) for name in SHAPES}
    arrays |= {"values": np.array(json.dumps(_values(many, VALUES_OF_ALL)))}
    arrays |= {"details": np.array(list(many.details), np.int64)}
    for index, one in many.details.items():
        arrays |= {_within(index, name): array for name, array in _arrays_of_one(one).items()}
    return arrays


def _values(diagnostics: FitDiagnostics | ManyDiagnostics, names: tuple[str, ...]) -> dict[str, Any]:
    found = {name: getattr(diagnostics, name) for name in names}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}


def _within(index: int, name: str) -> str:
    """Name of an array of one of many signals."""
    return f"signal_{index}_{name}"


def load_result(path: str | os.PathLike[str]) -> FitDiagnostics | ManyDiagnostics:
    """Read diagnostics from a file.

    Parameters
    ----------
    path : path-like
        A file that `save_result` wrote.

    Returns
    -------
    FitDiagnostics or ManyDiagnostics

    Raises
    ------
    ResultFileError
        If the file is something else, damaged, or of a later version.
    OSError
        If it cannot be read.
    """
    name = os.fspath(path)
    if stat.S_ISFIFO(os.stat(path).st_mode):  # Opening a pipe would wait for somebody to write to it.
        raise ResultFileError(f"{name!r} is not a result file of robustphase: it is a pipe.")
    with open(path, "rb") as handle:
        if handle.read(4) != b"PK\x03\x04":
            raise ResultFileError(f"{name!r} is not a result file of robustphase: it is not an .npz archive.")
    try:
        return _read(name, _Archive(path))
    except ResultFileError:
        raise
    except Exception as error:  # Damaged archives raise errors of a dozen kinds.
        cause = reason(error).strip("'\"")
        raise ResultFileError(
            f"{name!r} is damaged or incomplete ({cause}). Make it again, or restore it from a copy."
        ) from error


class _Archive:
    """The arrays of an archive by name, each read when it is asked for, and none that is larger than it should be."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self.files = path, npz_names(path)

    def __getitem__(self, name: str) -> Any:
        if name not in self.files:
            raise KeyError(name)
        return read_npz_array(self._path, name)


class _Part:
    """The arrays of one of many signals."""

    def __init__(self, whole: Any, index: int) -> None:
        self._whole, self._index = whole, index
        begin = _within(index, "")
        self.files = [name.removeprefix(begin) for name in whole.files if name.startswith(begin)]

    def __getitem__(self, name: str) -> Any:
        return self._whole[_within(self._index, name)]


def _read(name: str, archive: Any) -> FitDiagnostics | ManyDiagnostics:
    stored = set(archive.files)
    kind = str(archive["format"]) if "format" in stored else ""
    if kind not in (FORMAT, FORMAT_OF_MANY):
        held = ", ".join(sorted(stored)[:5]) or "nothing"
        raise ResultFileError(
            f"{name!r} is an .npz file but not a result of robustphase: it holds {held}. "
            "Results are written by save_result and by robustphase fit --out."
        )
    if "schema" not in stored and kind == FORMAT_OF_MANY:
        raise ResultFileError(
            f"{name!r} holds the signals but not what a report shows of them; fit again with this version."
        )
    schema, newest = int(archive["schema"]), SCHEMA if kind == FORMAT else SCHEMA_OF_MANY
    if schema > newest:
        raise ResultFileError(
            f"{name!r} was written by a later version of robustphase (schema {schema}; this one reads up to {newest}). "
            "Update with pip install --upgrade robustphase."
        )
    return _diagnostics(archive, schema) if kind == FORMAT else _many(archive)


def _many(archive: Any) -> ManyDiagnostics:
    values = json.loads(str(archive["values"]))
    arrays: dict[str, Any] = {key: archive[key] for key in (*ARRAYS_OF_MANY, *GROUPS) if key in archive.files}
    shapes: dict[str, Any] = {key: tuple(int(side) for side in archive[key]) for key in SHAPES}
    details = {int(index): _diagnostics(_Part(archive, int(index)), SCHEMA) for index in archive["details"]}
    return ManyDiagnostics(**arrays, **shapes, **{key: values[key] for key in VALUES_OF_ALL}, details=details)


def _diagnostics(archive: Any, schema: int) -> FitDiagnostics:
    stored = set(archive.files)
    values = json.loads(str(archive["values"]))
    if schema == 1:
        values = _since_schema_1(values)
    # Files written before the model was checked hold no failures.
    values = {"failed_checks": {}, "model_check": [], "noise_curve": None, "detector_shape": None} | values
    noise, curve, shape, detector = (
        values.pop(key) for key in ("noise_model", "noise_curve", "image_shape", "detector_shape")
    )
    arrays: dict[str, Any] = {key: archive[key] for key in (*ARRAYS, *OPTIONAL_ARRAYS) if key in stored}
    return FitDiagnostics(
        **arrays,
        **{key: values[key] for key in VALUES},
        history=_history({key: archive[f"history_{key}"] for key in HISTORY}),
        noise_model=None if noise is None else NoiseModel(**noise),
        noise_curve=None if curve is None else CurvedNoise(**curve),
        model_check=tuple(CheckRecord(*check) for check in values["model_check"]),
        image_shape=None if shape is None else (int(shape[0]), int(shape[1])),
        detector_shape=None if detector is None else tuple(int(side) for side in detector),
    )


def _history(columns: dict[str, Any]) -> dict[str, Any]:
    """A history with the names that its stages have now."""
    stages = np.asarray(columns["stage"])
    return columns | {"stage": np.array([RENAMED.get(str(stage), str(stage)) for stage in stages], dtype=np.str_)}


def _since_schema_1(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a file of the first schema, which held a centre, scale, degrees of freedom and skew but no share of bad."""
    centre, *law = values.pop("noise_law") or (0.0,)
    noise = None
    if law:
        scale, degrees, skew = law
        noise = {"scales": scale, "tails": 1 / degrees, "log_skews": math.log(skew), "mixing": math.nan}
    return values | {"residual_centre": centre, "noise_model": noise}

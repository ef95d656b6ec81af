"""A simulated world on disk, in the forms that ``robustphase fit`` reads."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

import robustphase as rp
from robustphase.cli.outputs import note_written, replacing
from robustphase.cli.terminal import shown
from robustphase.files import save_samples

#: Endings that can be written, with the module they need and the extra that brings it.
FORMS: dict[str, tuple[str, str] | None] = {
    ".npz": None,
    ".npy": None,
    ".h5": ("h5py", "io"),
    ".hdf5": ("h5py", "io"),
    ".zarr": ("zarr", "io"),
    ".parquet": ("pyarrow", "parquet"),
}
SETTINGS = ("contamination", "attack", "noise", "noise_std", "noise_mean", "norm", "signal", "field", "seed")


def check_form(out: Path, responses: Path | None) -> None:
    """Refuse a file that is of no known form, has no place for the responses, or needs what is not installed."""
    form = out.suffix.lower()
    if form not in FORMS:
        raise click.UsageError(f"OUT must end in {', '.join(FORMS)}; {shown(out.name)} does not.")
    if (form == ".npy") != (responses is not None):
        raise click.UsageError(
            "a .npy file holds one array only: say with --responses Y.npy where the responses go."
            if form == ".npy"
            else f"--responses is for .npy files; {shown(out.name)} holds the responses itself."
        )
    if responses is not None and responses.suffix.lower() != ".npy":
        raise click.UsageError(f"--responses must end in .npy; {shown(responses.name)} does not.")
    needed = FORMS[form]
    if needed is not None and not _installed(needed[0]):
        raise ImportError(f"writing {form} needs {needed[0]}; install it with: pip install 'robustphase[{needed[1]}]'")


def write_world(
    out: Path, world: rp.simulate.World, recipe: str, *, responses: Path | None, truth: Path | None
) -> None:
    """Write covariates and responses, and the truth beside them or to a file of its own.

    Parameters
    ----------
    out : Path
        Where to; its ending is the form.
    world : World
        What.
    recipe : str
        The command that makes this file again, kept with the data.
    responses : Path or None
        Where the responses go when the form holds one array only.
    truth : Path or None
        Where the signal and the bad samples go; None: to ``out``, if it can hold them.
    """
    notes: dict[str, Any] = {name: getattr(world, name) for name in SETTINGS} | {"command": recipe}
    if responses is not None:
        _write_array(out, world.A)
        _write_array(responses, world.y)
    else:
        bad = {"touched": np.flatnonzero(world.touched)} if truth is None else {}
        save_samples(out, world.A, world.y, world.truth if truth is None else None, **notes, **bad)
        note_written(out)
    if truth is not None:
        with replacing(truth) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, truth=world.truth, touched=world.touched)


def _write_array(path: Path, array: np.ndarray[Any, Any]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False

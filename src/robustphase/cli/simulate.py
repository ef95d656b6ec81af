"""``robustphase simulate``: a contaminated data set in a file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

import robustphase as rp
from robustphase.atomic import sweep_leftovers
from robustphase.cli.app import as_command, as_request, command_line, file_option, flag, general_options, option
from robustphase.cli.options import ATTACKS, NOISES, Level, Name
from robustphase.cli.outputs import check_distinct, check_outputs, note_written, replacing
from robustphase.cli.terminal import screen, shown
from robustphase.files import save_samples

SIZE, BAD, NOISE, OUTPUT = "What to measure", "What is wrong with it", "Noise", "Output"
#: Endings that can be written, with the module they need and the extra that brings it.
FORMS: dict[str, tuple[str, str] | None] = {
    ".npz": None,
    ".npy": None,
    ".h5": ("h5py", "io"),
    ".hdf5": ("h5py", "io"),
    ".zarr": ("zarr", "io"),
    ".parquet": ("pyarrow", "parquet"),
}
SETTINGS = ("contamination", "attack", "noise", "noise_std", "noise_mean", "norm", "signal", "field", "design", "seed")


@dataclass(frozen=True)
class SimulationRequest:
    """What ``robustphase simulate`` is asked for; ``settings`` are the other arguments of ``make_world``."""

    out: Path
    n: int
    m: int
    single: bool
    responses: Path | None
    truth: Path | None
    overwrite: bool
    settings: dict[str, Any]

    def check_outputs(self) -> None:
        """Refuse files of no known form, one for two things, or where nothing can be written."""
        check_form(self.out, self.responses)
        check_distinct(OUT=self.out, **{"--responses": self.responses, "--truth": self.truth})
        for path in (self.out, self.responses, self.truth):
            if path is not None:
                check_outputs(path, overwrite=self.overwrite)
                sweep_leftovers(path)

    def world(self) -> rp.simulate.World:
        """The data."""
        rows = rp.simulate.DESIGNS[self.settings["design"]].field_for(self.settings["field"])
        dtype = {"real": "float32", "complex": "complex64"}[rows] if self.single else None
        return rp.simulate.make_world(self.n, self.m, dtype=dtype, **self.settings)


def _list_choices(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Print what the adversaries do and what the noises are like."""
    if not value or ctx.resilient_parsing:
        return
    see = screen()
    adversaries = [(name, attack.group, attack.description) for name, attack in rp.simulate.ADVERSARIES.items()]
    see.table(("attack", "group", "what it does"), adversaries, left=("attack", "group", "what it does"))
    laws = [(name, law.description) for name, law in rp.simulate.NOISES.items()]
    see.table(("noise", "what it is like"), laws, left=("noise", "what it is like"))
    designs = [(name, law.description) for name, law in rp.simulate.DESIGNS.items()]
    see.table(("design", "what it is like"), designs, left=("design", "what it is like"))
    ctx.exit()


@as_command(
    "simulate",
    notes=f"Attacks: {', '.join(ATTACKS)}. Noises: {', '.join(NOISES)}.",
    example="""
robustphase simulate data.npz --n 100 --m 5000 --contamination 0.1 --attack leverage --seed 1
robustphase simulate blind.h5 --noise-mean 3 --truth truth.npz --seed 1
""",
)
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@option(
    SIZE, "--n", "n", type=click.IntRange(min=1), metavar="COUNT", default=100, help="Unknowns: entries of the signal."
)
@option(SIZE, "--m", "m", type=click.IntRange(min=1), metavar="COUNT", default=5000, help="Samples.")
@option(
    SIZE,
    "--signal",
    type=click.Choice(("random", "sparse", "image")),
    default="random",
    help="Kind of signal; a sparse one has a tenth of its entries non-zero, an image needs a square --n.",
)
@option(
    SIZE,
    "--norm",
    type=click.FloatRange(min=0, min_open=True),
    metavar="NUMBER",
    default=1.0,
    help="Norm of the signal.",
)
@option(SIZE, "--field", type=click.Choice(("real", "complex")), default="real", help="Field of the signal.")
@option(
    SIZE,
    "--design",
    type=Name(tuple(rp.simulate.DESIGNS), "DESIGN"),
    default="gaussian",
    help="Law of the covariates, as the theory or as instruments have it; --list shows them.",
)
@flag(SIZE, "--single", help="Single precision.")
@option(BAD, "--contamination", type=Level(), default=0.1, help="Share of the samples an adversary may rewrite.")
@option(BAD, "--attack", type=Name(ATTACKS, "ATTACK"), default="decoy", help="What it does with them; listed below.")
@option(NOISE, "--noise", type=Name(NOISES, "NOISE"), default="student", help="Law of the noise; listed below.")
@option(
    NOISE,
    "--noise-std",
    type=click.FloatRange(min=0),
    metavar="NUMBER",
    default=0.5,
    help="Its standard deviation, in units of the signal's squared norm.",
)
@option(
    NOISE,
    "--noise-mean",
    type=float,
    metavar="NUMBER",
    default=0.0,
    help="Its mean, the background, in the same units.",
)
@option(
    OUTPUT,
    "--seed",
    type=click.IntRange(min=0),
    metavar="SEED",
    default=0,
    help="The same seed writes the same data.",
)
@file_option(
    OUTPUT,
    "--responses",
    metavar="Y.npy",
    help="Where the responses go if OUT is a .npy file, which holds one array only.",
)
@file_option(
    OUTPUT,
    "--truth",
    metavar="TRUTH.npz",
    help="Keep the truth apart: the signal, and which samples are bad. Default: in OUT, beside the data.",
)
@flag(OUTPUT, "--overwrite", help="Write over files that are there already.")
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_choices,
    help="List attacks and noises, with a sentence about each, and exit.",
)
@general_options
def simulate(**options: Any) -> None:
    """Write a contaminated data set to a file, to try things on.

    OUT ends in .npz, .h5 (or .hdf5), .zarr, .parquet or .npy. It holds covariates A (one sample per row) and responses y:
    phaseless measurements of a signal, of which an adversary, who knows everything, has rewritten a share. `robustphase fit`
    reads it.
    """
    asked = as_request(SimulationRequest, options)
    asked.check_outputs()
    see, out, responses, truth = screen(), asked.out, asked.responses, asked.truth
    with see.watching("simulating", lambda: f"{asked.m} x {asked.n}"):
        world = asked.world()
    with see.watching("writing", lambda: f"{world.A.nbytes / 1e6:.0f} MB"):
        write_world(out, world, command_line(), responses=responses, truth=truth)
    bad = int(world.touched.sum())
    see.say(f"{shown(out)}: {asked.m} samples of a signal with {asked.n} entries, {bad} of them bad ({world.attack}).")
    if responses is not None:
        see.say(f"{shown(responses)}: the responses.")
    if truth is not None:
        see.say(f"{shown(truth)}: the signal (truth) and which samples are bad (touched).")


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

    The ending of ``out`` is the form. ``recipe`` is the command that makes this file again, kept with the data; ``responses``
    is where these go when the form holds one array only.
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

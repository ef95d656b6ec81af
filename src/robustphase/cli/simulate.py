"""``robustphase simulate``: a contaminated data set in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import robustphase as rp
from robustphase.cli.commands import as_command, command_line, general_options, option
from robustphase.cli.outputs import check_distinct, check_writable
from robustphase.cli.terminal import screen, shown
from robustphase.cli.values import ATTACKS, NOISES, Level, Name
from robustphase.cli.worlds import check_form, write_world

SIZE, BAD, NOISE, OUTPUT = "What to measure", "What is wrong with it", "Noise", "Output"


def _list_choices(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Print what the adversaries do and what the noises are like."""
    if not value or ctx.resilient_parsing:
        return
    see = screen()
    adversaries = [(name, attack.group, attack.description) for name, attack in rp.simulate.ADVERSARIES.items()]
    see.table(("attack", "group", "what it does"), adversaries, left=("attack", "group", "what it does"))
    laws = [(name, law.description) for name, law in rp.simulate.NOISES.items()]
    see.table(("noise", "what it is like"), laws, left=("noise", "what it is like"))
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
@option(SIZE, "--field", type=click.Choice(("real", "complex")), default="real", help="Field of signal and covariates.")
@option(SIZE, "--single", is_flag=True, help="Single precision.", show_default=False)
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
@option(
    OUTPUT,
    "--responses",
    metavar="Y.npy",
    type=click.Path(path_type=Path),
    help="Where the responses go if OUT is a .npy file, which holds one array only.",
)
@option(
    OUTPUT,
    "--truth",
    metavar="TRUTH.npz",
    type=click.Path(path_type=Path),
    help="Keep the truth apart: the signal, and which samples are bad. Default: in OUT, beside the data.",
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_choices,
    help="List attacks and noises, with a sentence about each, and exit.",
)
@general_options
def simulate(
    out: Path,
    n: int,
    m: int,
    single: bool,
    responses: Path | None,
    truth: Path | None,
    quiet: bool,
    debug: bool,
    **settings: Any,
) -> None:
    """Write a contaminated data set to a file, to try things on.

    OUT ends in .npz, .h5 (or .hdf5), .zarr, .parquet or .npy. It holds covariates A (one sample per row) and responses y:
    phaseless measurements of a signal, of which an adversary, who knows everything, has rewritten a share. `robustphase fit`
    reads it.
    """
    check_form(out, responses)
    check_distinct(OUT=out, **{"--responses": responses, "--truth": truth})
    for path in (out, responses, truth):
        if path is not None:
            check_writable(path)
    see = screen()
    dtype = {"real": "float32", "complex": "complex64"}[settings["field"]] if single else None
    with see.watching("simulating", lambda: f"{m} x {n}"):
        world = rp.simulate.make_world(n, m, dtype=dtype, **settings)
    with see.watching("writing", lambda: f"{world.A.nbytes / 1e6:.0f} MB"):
        write_world(out, world, command_line(), responses=responses, truth=truth)
    bad = int(world.touched.sum())
    see.say(f"{shown(out)}: {m} samples of a signal with {n} entries, {bad} of them bad ({world.attack}).")
    if responses is not None:
        see.say(f"{shown(responses)}: the responses.")
    if truth is not None:
        see.say(f"{shown(truth)}: the signal (truth) and which samples are bad (touched).")

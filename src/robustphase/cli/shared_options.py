"""Options that several commands have, each in the group that the command gives it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from robustphase.cli.app import Function, option
from robustphase.cli.values import DetectorShape, ImageShape

#: A number of things, of which there is at least one.
COUNT = click.IntRange(min=1)


def world_size(group: str, n: int, m: int) -> Callable[[Function], Function]:
    """``--n`` and ``--m``, the size of the worlds that a command makes."""
    unknowns = option(group, "--n", "n", type=COUNT, metavar="COUNT", default=n, help="Unknowns.")
    samples = option(group, "--m", "m", type=COUNT, metavar="COUNT", default=m, help="Samples.")
    return lambda function: unknowns(samples(function))


def world_noise(group: str) -> Callable[[Function], Function]:
    """``--noise-std`` and ``--noise-mean`` of these worlds."""
    spread = option(
        group,
        "--noise-std",
        type=click.FloatRange(min=0),
        metavar="NUMBER",
        default=0.5,
        help="Standard deviation of the noise, in units of the signal's squared norm.",
    )
    mean = option(
        group,
        "--noise-mean",
        type=float,
        metavar="NUMBER",
        default=0.0,
        help="Background in the same units; if it is not 0, methods that can are told that it is unknown.",
    )
    return lambda function: spread(mean(function))


def workers(group: str) -> Callable[[Function], Function]:
    """``--workers``, the processes among which work is divided."""
    return option(group, "--workers", type=COUNT, metavar="COUNT", help="Processes. Default: one per processor.")


def flagged_table(group: str) -> Callable[[Function], Function]:
    """``--flagged``, a table of the samples that were treated as bad."""
    return option(
        group,
        "--flagged",
        metavar="BAD.csv",
        type=click.Path(path_type=Path),
        help="Write the samples that were treated as bad to a table.",
    )


def shown_shapes(group: str) -> Callable[[Function], Function]:
    """``--image-shape`` and ``--detector-shape``, in which a report shows signal and samples."""
    image = option(group, "--image-shape", type=ImageShape(), help="The signal is a picture of this height and width.")
    detector = option(
        group,
        "--detector-shape",
        type=DetectorShape(),
        help="The samples of one signal are the readings of a detector of this height and width, or of several frames of it.",
    )
    return lambda function: image(detector(function))

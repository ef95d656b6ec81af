"""What is typed after a command: how text becomes a value, and the options that several commands have.

A value is a contamination level, a list of them, the shape of a picture, a start. Each shared option stands in the group of
``--help`` that the command gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

import robustphase as rp
from robustphase.cli.app import Function, file_option, option

#: Choices of the estimator that have no list in the public API; a test compares them with the library's own.
STARTS = ("auto", "mean", "covariance", "spectral")
MEAN_ESTIMATORS = (
    "filter",
    "mmw",
    "geometric_median_of_means",
    "median_of_means",
    "geometric_median",
    "trimmed",
    "median",
    "catoni",
    "lrv",
    "empirical",
)
STEPS = ("newton", "paper")
NOISE_MEANS = ("zero", "unknown")
NONFINITE = ("raise", "drop")
FIELDS = ("auto", "real", "complex")
LAWS = ("auto", "additive", "poisson")
TRANSPOSE = ("covariates", "responses", "both")
ATTACKS = ("none", *rp.simulate.ADVERSARIES)
NOISES = tuple(rp.simulate.NOISES)

# Generic for the type checker only: older versions of click have no parameter there.
if TYPE_CHECKING:
    ParamType: TypeAlias = click.ParamType[Any]
else:
    ParamType = click.ParamType


class Typed(ParamType):
    """A value as it is typed, for which ``--help`` shows the metavar."""

    metavar: str

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """What ``--help`` shows for it."""
        return self.metavar


class Level(Typed):
    """A contamination level: a number in [0, 0.5), or "auto" where that is allowed."""

    name = "level"

    def __init__(self, *, auto: bool = False) -> None:
        self._auto, self.metavar = auto, "LEVEL|auto" if auto else "LEVEL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """The level, or an error that guesses what was meant."""
        if isinstance(value, float):
            return value
        if self._auto and value == "auto":
            return "auto"
        try:
            level = float(value)
        except ValueError:
            expected = f"a number in [0, 0.5){' or auto' if self._auto else ''}"
            raise click.BadParameter(f"{value!r} is not {expected}.", ctx, param) from None
        if 0 <= level < 0.5:
            return level
        hint = " With half of the data bad nobody can tell the good half from the bad one." if 0.5 <= level < 1 else ""
        if 1 <= level < 50:
            hint = f" Did you mean {level / 100:g} ({level:g} percent)?"
        raise click.BadParameter(f"{value!r} is not in [0, 0.5).{hint}", ctx, param)


class ImageShape(Typed):
    """Height and width of a picture, such as 24x32."""

    name = metavar = "HxW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Height and width."""
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"\s*([1-9][0-9]{0,6})\s*[xX×]\s*([1-9][0-9]{0,6})\s*", value)
        if found is None:
            raise click.BadParameter(f"{value!r} is not a height and a width in pixels, such as 24x32.", ctx, param)
        return int(found[1]), int(found[2])


class DetectorShape(Typed):
    """Height and width of a detector, such as 24x32, or frames before them, such as 5x24x32."""

    name = metavar = "[FRAMESx]HxW"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Frames where there are any, height and width."""
        if isinstance(value, tuple):
            return value
        if re.fullmatch(r"\s*[1-9][0-9]{0,8}(\s*[xX×]\s*[1-9][0-9]{0,8}){1,2}\s*", value) is None:
            raise click.BadParameter(f"{value!r} is no shape of a detector, such as 24x32 or 5x24x32.", ctx, param)
        return tuple(int(side) for side in re.findall("[0-9]+", value))


class Start(Typed):
    """The name of an initialisation, or a ``.npy`` file with a starting point."""

    name, metavar = "start", f"[{'|'.join(STARTS)}|FILE.npy]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | Path:
        """The name, or the path of a file."""
        if isinstance(value, Path):
            return value
        if value in STARTS:
            return str(value)
        if str(value).endswith(".npy"):
            return Path(value)
        raise click.BadParameter(
            f"{value!r} is neither one of {', '.join(STARTS)} nor a .npy file with a starting point.", ctx, param
        )


class NumberOrFile(Typed):
    """A positive number, or a file with one for every sample."""

    name, metavar = "number", "NUMBER|FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | Path:
        """The number, or the path of a file."""
        if isinstance(value, (float, Path)):
            return value
        try:
            found = float(value)
        except ValueError:
            return Path(value)
        if not 0 < found < float("inf"):
            raise click.BadParameter(f"{value!r} is not a positive number.", ctx, param)
        return found


class Listed(Typed):
    """Several values with commas between them, each read by another type; "all" where a list of all is given."""

    name = "list"

    def __init__(self, each: ParamType, *, everything: tuple[str, ...] = (), metavar: str = "NAME,...") -> None:
        self._each, self._everything = each, everything
        self.metavar = metavar + ("|all" if everything else "")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """The values, each once, in the order given."""
        if isinstance(value, tuple):
            return value
        if self._everything and value.strip() == "all":
            return self._everything
        words = [word.strip() for word in value.split(",") if word.strip()]
        if not words:
            raise click.BadParameter("the list is empty.", ctx, param)
        return tuple(dict.fromkeys(self._each.convert(word, param, ctx) for word in words))


class Name(Typed):
    """One of many names: the error lists the closest ones and not all forty."""

    name = "name"

    def __init__(self, known: tuple[str, ...], metavar: str = "NAME") -> None:
        self._known, self.metavar = known, metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name."""
        if value in self._known:
            return str(value)
        close = get_close_matches(str(value), self._known, n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(self._known)}."
        raise click.BadParameter(f"{value!r} is not known. {hint}", ctx, param)


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
    return file_option(
        group,
        "--flagged",
        metavar="BAD.csv",
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

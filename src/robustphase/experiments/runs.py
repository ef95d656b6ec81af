"""One line of a comparison: what a method did in a world, and against which yardstick it is read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, get_type_hints

#: A run whose relative error is at most this counts as survived: the estimate still points to the signal.
SURVIVED = 0.25
#: Without noise the oracle is exact and a ratio to it says nothing; errors are then read in units of this.
LEAST_ORACLE = 1e-6
#: Longest message kept of an exception or a warning.
LONGEST_MESSAGE = 300


class WorldKey(NamedTuple):
    """What distinguishes one world of a comparison from another.

    Attributes
    ----------
    attack : str
        A name in ``robustphase.simulate.ADVERSARIES``, or ``"none"``.
    contamination : float
        Fraction that the adversary may rewrite, which the methods are told.
    noise : str
        A name in ``robustphase.simulate.NOISES``.
    seed : int
        Source of all its randomness.
    """

    attack: str
    contamination: float
    noise: str
    seed: int


class Settings(NamedTuple):
    """What all worlds of a comparison share: sizes, and the moments of the noise relative to ‖x*‖²."""

    n: int
    m: int
    noise_std: float
    noise_mean: float


class Run(NamedTuple):
    """One method in one world.

    Attributes
    ----------
    method, attack, contamination, noise, noise_mean, noise_std, n, m, seed
        What was run, and where.
    error : float
        Relative distance to the truth; infinite if the method raised an error or returned no numbers.
    oracle_error : float
        The same for least squares told which samples are clean.
    ratio : float
        ``error`` over ``oracle_error``.
    survived : bool
        Whether the error is at most 0.25.
    seconds : float
        Processor time of the method on one thread, so that other work on the machine does not count.
    converged : bool
        What the method says of itself.
    message : str
        What it warned of, or the error that it raised.
    """

    method: str
    attack: str
    contamination: float
    noise: str
    noise_mean: float
    noise_std: float
    n: int
    m: int
    seed: int
    error: float
    oracle_error: float
    ratio: float
    survived: bool
    seconds: float
    converged: bool
    message: str

    @property
    def world(self) -> WorldKey:
        """The world it ran in."""
        return WorldKey(self.attack, self.contamination, self.noise, self.seed)

    @property
    def raised(self) -> bool:
        """Whether there is no answer at all."""
        return math.isinf(self.error)


def make_run(
    method: str,
    world: WorldKey,
    settings: Settings,
    *,
    error: float,
    oracle_error: float,
    seconds: float,
    converged: bool,
    message: str,
) -> Run:
    """A run with its verdicts; an error that is no number is a loss."""
    error = error if math.isfinite(error) else math.inf
    return Run(
        method=method,
        attack=world.attack,
        contamination=world.contamination,
        noise=world.noise,
        noise_mean=settings.noise_mean,
        noise_std=settings.noise_std,
        n=settings.n,
        m=settings.m,
        seed=world.seed,
        error=error,
        oracle_error=oracle_error,
        ratio=error / max(oracle_error, LEAST_ORACLE),
        survived=error <= SURVIVED,
        seconds=seconds,
        converged=converged,
        message=one_line(message),
    )


def one_line(text: str) -> str:
    """The same words on one line, so that a line of a file is a run; the end of a long text is left out."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_MESSAGE else words[: LONGEST_MESSAGE - 1] + "…"


def as_text(run: Run) -> list[str]:
    """The fields as they are written to a file; numbers can be read back exactly."""
    return [repr(value) if isinstance(value, float) else str(value) for value in run]


def from_text(fields: list[str]) -> Run:
    """A run from the fields of a line; raises ValueError where they are not those of a run."""
    if len(fields) != len(Run._fields):
        raise ValueError(f"a run has {len(Run._fields)} fields, not {len(fields)}")
    kinds = get_type_hints(Run).values()
    values: list[Any] = [_truth(text) if kind is bool else kind(text) for kind, text in zip(kinds, fields, strict=True)]
    return Run(*values)


def _truth(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError(f"neither True nor False: {text!r}")
    return text == "True"

"""Before measuring: how many samples, what error, at what cost.

Three questions with three kinds of answers. *Accuracy* follows from closed forms (`theory`), with one constant for the
efficiency of the engine and one for what the worst known adversary adds. *Recovery*, whether the signal is found at all, has
the shape of the theorems with constants calibrated by experiment (`theory` too). *Cost* is counted in reads of the data: the
engine reads it a number of times that hardly depends on the problem, so its time is that number times the time of a read,
which is measured here on a small array in a few milliseconds, with the pass and the threads that a fit would use.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np

from robustphase import rows
from robustphase.experiments.theory import (
    EFFICIENCY,
    FARTHEST,
    PaperRequirement,
    breakdown,
    confidence_factor,
    excess_error,
    floor,
    least_squares_error,
    paper_requirement,
    samples_for_recovery,
)
from robustphase.formatting import in_bytes, number

#: Where the constants were measured: fewest unknowns, most noise, and most contamination as a share of the breakdown.
FEWEST_UNKNOWNS, MOST_NOISE, MOST_OF_BREAKDOWN = 25, 0.7, 0.75
#: No plan is made for more samples than this.
MOST_SAMPLES = 10**15
#: Passes over the data of a fit (measured: 44 to 76).
PASSES = 45
#: A pass takes as long as reading the covariates so many times (most carry several vectors) ...
READS_PER_PASS = 3.0
#: ... and so many bytes per sample (elementwise work), and a fit so many seconds whatever its size.
BYTES_PER_PASS, OVERHEAD = 2000.0, 0.05
#: Working memory per sample, per unknown and of the blocks, beside the data.
BYTES_PER_SAMPLE, BYTES_PER_UNKNOWN, BYTES_OF_BLOCKS = 320, 4800, 1_000_000
#: Bytes for each number in the rows that the model check looks at: once as they are, once in single precision.
BYTES_CHECKED = 12
#: Rows that it looks at, at least; more for many unknowns, and of many rows an eighth.
LEAST_CHECKED, CHECKED_PER_UNKNOWN = 4000, 8
#: Numbers in them, at most: where there are more, they are read where they are.
MOST_CHECKED = 1 << 24
#: Size of the array that is read to measure the speed, and how often.
TRIAL_BYTES, TRIALS = 2**24, 5
#: Bytes of a covariate.
ITEM = 8


class PlanWarning(UserWarning):
    """A plan outside of the range in which its constants were measured, or one that cannot be kept."""


@dataclass(frozen=True)
class Plan:
    """How many samples, what error, at what cost. ``print(plan)`` says it in words.

    Errors are relative to ‖x*‖, for Gaussian noise; heavier tails of the same variance end below them.

    Attributes
    ----------
    n, noise_std, contamination, delta, noise_mean, target_error
        The question.
    m : int
        Number of samples that the errors and the cost are about: the one given, or ``samples``.
    samples : int or None
        Samples needed, for recovery and for the target. None if no number suffices.
    recovery_samples : int or None
        Samples needed for recovery alone.
    typical_error : float
        Root mean squared error under contamination that does not aim at the signal.
    error : float
        Exceeded with probability at most ``delta`` under every adversary of ``robustphase.simulate``. What ``target_error``
        is about.
    worst_error : float
        The same under the best adversary there can be, who knows signal and noise.
    floor : float
        The part of it that no number of samples and no method can remove.
    breakdown : float
        Contamination from which on some adversary wins, at this noise.
    paper : PaperRequirement
        The conditions of the paper's theorems, with constants of one.
    passes : int
        Expected passes over the data.
    seconds : float
        Expected time of a fit on this machine.
    bytes : int
        Expected memory, data included.
    warnings : tuple of str
        What to be careful about.
    """

    n: int
    m: int
    noise_std: float
    contamination: float
    delta: float
    noise_mean: str
    target_error: float | None
    samples: int | None
    recovery_samples: int | None
    typical_error: float
    error: float
    worst_error: float
    floor: float
    breakdown: float
    paper: PaperRequirement
    passes: int
    seconds: float = field(compare=False)
    bytes: int
    warnings: tuple[str, ...]

    @property
    def enough(self) -> bool:
        """Whether ``m`` samples are enough for recovery and for the target."""
        return self.samples is not None and self.m >= self.samples

    def __str__(self) -> str:
        aim = "" if self.target_error is None else f" and for an error of {number(self.target_error)}"
        needed = (
            "no number suffices"
            if self.samples is None
            else f"{self.samples:,} ({self.samples / self.n:.1f} per unknown)"
        )
        lines = [
            f"{self.n} unknowns, noise {number(self.noise_std)} ‖x‖², contamination {self.contamination:.1%}, "
            f"confidence {1 - self.delta:.4g}, noise mean {self.noise_mean}",
            f"samples needed to find the signal{aim}: {needed}",
            f"with {self.m:,} samples the relative error is",
            f"  typically                                {number(self.typical_error)}",
            f"  under every adversary that we know       {number(self.error)} at most, with probability {1 - self.delta:.4g}",
            f"  under the best adversary there can be    {number(self.worst_error)}, of which {number(self.floor)} cannot be "
            "avoided by any method",
            f"contamination at which this noise lets some adversary win: {self.breakdown:.1%}",
            f"the paper asks, with constants of one, for {math.ceil(self.paper.start_by_covariance):,} samples to start "
            f"(Theorem {self._theorem(2)}; {math.ceil(self.paper.start_by_means):,} by Theorem {self._theorem(1)}) "
            f"and {math.ceil(self.paper.descent):,} for each step (Theorem {self._theorem(3)})",
            f"cost of a fit here: about {self.passes} passes, {number(self.seconds)} s, {in_bytes(self.bytes)} of memory",
            *(f"careful: {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)

    def _theorem(self, number: int) -> str:
        return f"{'B' if self.noise_mean == 'unknown' else '3'}.{number}"


def plan(
    n: int,
    *,
    noise_std: float = 0.5,
    contamination: float = 0.1,
    delta: float = 0.01,
    noise_mean: str = "zero",
    m: int | None = None,
    target_error: float | None = None,
) -> Plan:
    """How many samples are needed, what error to expect, and what a fit will cost.

    Parameters
    ----------
    n : int
        Number of unknowns, at least 2.
    noise_std : float, default=0.5
        Standard deviation of the noise over ‖x*‖², which is the mean response above the background.
    contamination : float in [0, 0.5), default=0.1
        Fraction of the samples that may be bad.
    delta : float in (0, 1), default=0.01
        Accepted probability that the error is exceeded.
    noise_mean : {"zero", "unknown"}, default="zero"
        Whether a background has to be found as well.
    m : int, optional
        Number of samples that there are. Default: the number needed.
    target_error : float, optional
        Relative error to be reached, under every adversary of ``robustphase.simulate``.

    Returns
    -------
    Plan

    Warns
    -----
    PlanWarning
        Outside of the range in which the constants were measured, and where ``m`` is too small.

    Examples
    --------
    >>> import robustphase as rp
    >>> answer = plan(100, noise_std=0.5, contamination=0.1, target_error=0.05)
    >>> answer.enough, answer.error <= 0.05
    (True, True)
    >>> plan(100, m=answer.m).error == answer.error
    True
    """
    n = _whole("n", n, least=2)
    s = _real("noise_std", noise_std, 0.0, math.inf)
    level = _real("contamination", contamination, 0.0, 0.5)
    # Less than one sample in a thousand million is none, and numbers close to the smallest there are would underflow.
    level = level if level > 1e-9 else 0.0
    delta = _real("delta", delta, 0.0, 1.0, open_below=True)
    if noise_mean not in ("zero", "unknown"):
        raise ValueError(f"noise_mean must be 'zero' or 'unknown', got {noise_mean!r}.")
    model = _Model(n, s, level, delta, background=noise_mean == "unknown")
    recovery = model.recovery_samples()
    needed = recovery
    if target_error is not None:
        target_error = _real("target_error", target_error, 0.0, math.inf, open_below=s > 0.0)
        for_target = model.samples_for(target_error)
        needed = None if recovery is None or for_target is None else max(recovery, for_target)
    if m is None and needed is None:
        raise ValueError(_hopeless(model, target_error, recovery))
    used = int(needed or 0) if m is None else _whole("m", m, least=1)
    cautions = _cautions(model, used, needed, target_error)
    for caution in cautions:
        warnings.warn(caution, PlanWarning, stacklevel=2)
    return Plan(
        n=n,
        m=used,
        noise_std=s,
        contamination=level,
        delta=delta,
        noise_mean=noise_mean,
        target_error=target_error,
        samples=needed,
        recovery_samples=recovery,
        typical_error=model.typical_error(used),
        error=model.error(used),
        worst_error=model.worst_error(used),
        floor=model.floor,
        breakdown=breakdown(s),
        paper=paper_requirement(n, s, delta, unknown_mean=noise_mean == "unknown"),
        passes=PASSES,
        seconds=predicted_seconds(n, used, machine_speed()),
        bytes=predicted_bytes(n, used),
        warnings=cautions,
    )


class _Model:
    """Errors as functions of the number of samples, and their inverses."""

    def __init__(self, n: int, noise_std: float, contamination: float, delta: float, *, background: bool) -> None:
        self.n, self.noise_std, self.contamination, self.delta = n, noise_std, contamination, delta
        self.background = background
        self.floor = floor(noise_std, contamination)
        self.excess = excess_error(noise_std, contamination)
        self._confidence = max(1.0, confidence_factor(n, delta))

    def typical_error(self, m: int) -> float:
        kept = (1.0 - self.contamination) * m
        return min(EFFICIENCY * least_squares_error(self.n, kept, self.noise_std, background=self.background), FARTHEST)

    def error(self, m: int) -> float:
        return min(math.hypot(self._noise_part(m), self.excess), FARTHEST)

    def worst_error(self, m: int) -> float:
        return min(math.hypot(self._noise_part(m), max(self.excess, self.floor)), FARTHEST)

    def recovery_samples(self) -> int | None:
        samples = samples_for_recovery(self.n, self.noise_std, self.contamination, self.delta)
        return math.ceil(samples) if samples < MOST_SAMPLES else None

    def samples_for(self, target: float) -> int | None:
        """The least m with ``error(m) <= target``, by halving."""
        low, high = 0, self.n
        while self.error(high) > target:
            low, high = high, 2 * high
            if high > MOST_SAMPLES:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.error(middle) <= target else (middle, high)
        return high

    def _noise_part(self, m: int) -> float:
        erased = least_squares_error(self.n, m, self.noise_std, background=self.background, erased=self.contamination)
        return EFFICIENCY * self._confidence * erased


def _hopeless(model: _Model, target: float | None, recovery: int | None) -> str:
    if recovery is None:
        return (
            f"no number of samples is enough: with noise_std={model.noise_std:g} some adversaries win from a contamination of "
            f"{breakdown(model.noise_std):.3f} on, and it is {model.contamination:g}. Reduce the noise or the contamination, or "
            "pass m to see what to expect all the same."
        )
    if target is not None and model.excess < target:
        return f"target_error={target:g} would take more than {MOST_SAMPLES:.0e} samples. Ask for less, or reduce the noise."
    return (
        f"no number of samples reaches target_error={target:g}: adversaries add up to {model.excess:.3g} at "
        f"contamination={model.contamination:g}. Reduce the noise or the contamination, or ask for more than that."
    )


def _cautions(model: _Model, m: int, needed: int | None, target: float | None) -> tuple[str, ...]:
    found = []
    limit = MOST_OF_BREAKDOWN * breakdown(model.noise_std)
    if needed is None:
        found.append(_hopeless(model, target, model.recovery_samples()).split(". ")[0] + ".")
    elif m < needed:
        recovery = model.recovery_samples() or needed
        outcome = "some adversaries will win" if m < recovery else "the target will be missed"
        found.append(f"{m:,} samples are fewer than the {needed:,} needed; {outcome}.")
    if needed is not None and model.contamination > limit:
        found.append(
            f"a contamination of {model.contamination:g} is close to the breakdown at this noise; the figures were checked up to "
            f"{limit:.3f}."
        )
    if model.noise_std > MOST_NOISE:
        found.append(
            f"noise of {model.noise_std:g} ‖x‖² is beyond {MOST_NOISE:g}, up to which the figures were checked; single "
            "adversaries may win."
        )
    if model.n < FEWEST_UNKNOWNS:
        found.append(
            f"with fewer than {FEWEST_UNKNOWNS} unknowns bad covariates are hard to see, and the figures were not checked."
        )
    return tuple(found)


def _whole(name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= MOST_SAMPLES:
        raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}.")
    return int(value)


def _real(name: str, value: Any, least: float, below: float, *, open_below: bool = False) -> float:
    found = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not least <= found < below or (open_below and found == least):
        span = f"{'(' if open_below else '['}{least:g}, {'∞' if math.isinf(below) else f'{below:g}'})"
        hint = ""
        if name == "contamination" and 1 <= found < 50:
            hint = f" Did you mean {found / 100:g} ({found:g} percent)?"
        raise ValueError(f"{name} must be a number in {span}, got {value!r}.{hint}")
    return found


def read_speed() -> float:
    """Bytes per second at which a pass reads covariates from memory; the best of a few trials."""
    columns = 256
    covariates = np.ones((TRIAL_BYTES // (ITEM * columns), columns))
    source, vector = rows.as_source(covariates), np.ones(columns)
    best = np.inf
    for _ in range(TRIALS):
        began = time.perf_counter()
        rows.project(source, vector)
        best = min(best, time.perf_counter() - began)
    return covariates.nbytes / best


@cache
def machine_speed() -> float:
    """`read_speed`, measured once."""
    return read_speed()


def predicted_seconds(n: int, m: int, speed: float) -> float:
    """Time of a fit to n unknowns and m samples in memory, on a machine that reads ``speed`` bytes per second."""
    return OVERHEAD + PASSES * m * (READS_PER_PASS * ITEM * n + BYTES_PER_PASS) / speed


def predicted_bytes(n: int, m: int) -> int:
    """Memory of a fit, the data included."""
    looked_at = min(m, max(LEAST_CHECKED, CHECKED_PER_UNKNOWN * n, m // 8))
    checked = BYTES_CHECKED * min(n * looked_at, MOST_CHECKED)
    return m * (ITEM * (n + 1) + BYTES_PER_SAMPLE) + BYTES_PER_UNKNOWN * n + BYTES_OF_BLOCKS + checked

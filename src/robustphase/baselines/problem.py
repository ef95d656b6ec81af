"""What every baseline does around its own idea: check the input, choose units, make moves, give the answer back.

Responses are divided by the largest of them, so that signals are at most of the order of one and no power that a method takes can
overflow, whatever the user's units are. All methods here are equivariant: in other units they would make the same steps.

First-order methods share a loop, and arithmetic that bad data cannot overflow. Each method is a rule that proposes a move. The
loop makes it, and stops when a move is small, when there is none, or when the iterates run away. Divergence is an outcome of a
baseline and not an error: it ends the loop with ``converged=False`` and the last finite signal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from robustphase.options import with_defaults
from robustphase.population import PairedSignal
from robustphase.rows import MemoryRows, Parts, RowSource, adjoint
from robustphase.rows.source import Array
from robustphase.validation import Samples, check_samples


@dataclass(frozen=True)
class BaselineResult:
    """Outcome of a baseline method.

    Attributes
    ----------
    signal : ndarray of shape (n,)
        The estimate, defined up to its sign (real) or global phase (complex).
    initial_signal : ndarray of shape (n,)
        Where the method started.
    n_iter : int
        Iterations made after the start.
    converged : bool
        Whether the stopping rule was met.
    """

    signal: Array
    initial_signal: Array
    n_iter: int
    converged: bool


class Problem(NamedTuple):
    """Checked data in natural units."""

    source: RowSource  # The covariates
    responses: Array  # (m,): responses over ``unit``, in [−1, 1]
    unit: float  # Largest absolute response; one if all of them are zero
    start: Array | None  # (n,): the user's starting point over the root of ``unit``
    seed: int  # For the first guess of eigenvectors
    paired: bool = False  # The rows are real and the signal is complex

    @property
    def amplitudes(self) -> Array:
        """``ψ = sqrt(y)``. Amplitude-based methods cannot represent a negative response; it counts as zero."""
        return np.sqrt(np.maximum(self.responses, 0.0))

    @property
    def is_complex(self) -> bool:
        """Whether the signal is complex: behind complex covariates, or where that was asked for."""
        return self.paired or self.source.dtype.kind == "c"

    def result(self, signal: Array, initial_signal: Array, n_iter: int, converged: bool) -> BaselineResult:
        """The answer in the user's units."""
        root = np.sqrt(self.unit)
        signals = (root * signal, root * initial_signal)
        if self.paired:
            signals = tuple(one.view(PairedSignal) for one in signals)
        return BaselineResult(*signals, n_iter, converged)


class BaselineOptions(TypedDict, total=False):
    """What every baseline may be told alike; described by :func:`~robustphase.baselines.wirtinger_flow`."""

    start: Any
    random_state: Any
    nonfinite: str
    field: str


DEFAULTS = BaselineOptions(start=None, random_state=None, nonfinite="raise", field="auto")


def build_problem(
    method: Callable[..., BaselineResult],
    A: Any,
    y: Any,
    *,
    max_iter: int,
    tol: float,
    **options: Unpack[BaselineOptions],
) -> Problem:
    """Check everything a baseline is given."""
    given = with_defaults(DEFAULTS, options, method)
    if isinstance(max_iter, bool) or not isinstance(max_iter, (int, np.integer)) or max_iter < 0:
        raise ValueError(f"max_iter must be a whole number that is zero or positive, got {max_iter!r}.")
    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.integer, np.floating)) or not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a number that is zero or positive, such as 1e-6, got {tol!r}.")
    samples = check_samples(A, y, nonfinite=given["nonfinite"], field=given["field"])
    source, responses = usable(samples)
    unit = float(np.abs(responses).max()) or 1.0
    start = given["start"]
    first = None if start is None else check_start(start, source, samples.paired) / np.sqrt(unit)
    return Problem(source, responses / unit, unit, first, as_seed(given["random_state"]), samples.paired)


def refuse_complex(problem: Problem, method: str) -> None:
    """Raise an error for a method that is for real data only, if the data are complex."""
    if problem.is_complex:
        raise ValueError(
            f"{method} supports real data only, got covariates of dtype {problem.source.dtype}. Complex data is not "
            "supported by this baseline; use one of the flows, such as median_reshaped_wirtinger_flow."
        )


def usable(samples: Samples) -> tuple[RowSource, Array]:
    """The samples without the dropped ones: a row of zeros with response zero would shift every median."""
    if not samples.dropped.any():
        return samples.source, samples.responses
    rows = samples.source.reduce(lambda block: Parts(rows=(block,))).rows[0]
    return MemoryRows(rows[~samples.dropped]), samples.responses[~samples.dropped]


def check_start(start: Any, source: RowSource, paired: bool) -> Array:
    """A starting point that any of the methods can use."""
    point, n = np.asarray(start), source.shape[1]
    if point.shape != (n,) or point.dtype.kind not in "fciub":
        raise ValueError(
            f"start must be None or an array of {n} numbers, one per column of A, "
            f"got an array of shape {point.shape} and dtype {point.dtype}."
        )
    if point.dtype.kind == "c" and source.dtype.kind != "c" and not paired:
        raise ValueError('start is complex but A is real. Pass start.real, or field="complex".')
    if not np.isfinite(point).all() or not np.any(point):
        raise ValueError(
            "start must be finite and not zero: at zero every gradient vanishes and there is no way to go."
        )
    return point.astype(np.result_type(source.dtype, np.complex128 if paired else np.float64))


def as_seed(random_state: Any) -> int:
    """A seed for NumPy's generators; None is as good as 0, so that calls repeat."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    raise ValueError(
        f"random_state must be None, a whole number that is zero or positive, a numpy Generator or RandomState, "
        f"got {random_state!r}."
    )


#: Iterates this much longer than the start (or than the root of the largest response) will not come back.
RUNAWAY = 1e6

#: ``propose(x, t)``: what to subtract from x in iteration t = 0, 1, ..., or None where the method has no move.
Proposal = Callable[[Array, int], Array | None]


def descend(problem: Problem, start: Array, propose: Proposal, *, max_iter: int, tol: float) -> BaselineResult:
    """Follow the proposals from ``start``, in the units of the problem, until a move is shorter than ``tol`` of the signal.

    Zero has no direction to go: it is returned, not converged.
    """
    x, iteration, converged = start, 0, False
    limit = RUNAWAY * max(length(start), 1.0)
    # Overflow on the way to divergence is looked for in the numbers; a warning would tell the user nothing more.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        while np.any(x) and iteration < max_iter and not converged:
            move = propose(x, iteration)
            if move is None or not np.isfinite(move).all() or length(x - move) > limit:
                break
            x, iteration = x - move, iteration + 1
            converged = length(move) <= tol * length(x)
    return problem.result(x, start, iteration, converged)


def weighted_sum(source: RowSource, coefficients: Array) -> Array:
    """``Σ c_j a_j / m``, computed with coefficients of at most one so that single precision does not overflow."""
    peak = float(np.abs(coefficients).max())
    if not 0 < peak < np.inf:
        return np.full(source.shape[1], peak, np.result_type(source.dtype, coefficients.dtype, np.float64))
    return adjoint(source, coefficients / peak) * (peak / source.shape[0])


def phases(projections: Array) -> Array:
    """``s / |s|``, the sign of real projections; zero where s is zero."""
    if projections.dtype.kind != "c":
        return np.sign(projections)
    sizes = np.abs(projections)
    return projections / np.where(sizes > 0, sizes, 1.0)


def length(vector: Array) -> float:
    """Euclidean norm that does not overflow before its result does."""
    peak = float(np.abs(vector).max())
    if not 0 < peak < np.inf:
        return peak
    return peak * float(np.linalg.norm(vector / peak))

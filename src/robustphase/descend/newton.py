"""Newton steps of weighted least squares, for many signals at once.

A signal x and a background b are to lower ``Σ w (y − |aᴴx|² − b)²``. Two ways to the step:

*population-Newton*: as if the covariates had their population moments. ``Σ w |s|² a aᴴ`` is then a multiple of the identity
plus one along the signal (the Hessian of Lemma 2.1 at the solution, weighted), and its inverse costs nothing. Entries of any
law do as normal ones do where the signal spreads over many of them; lengths of the rows that vary do not, and their kurtosis
enters the curvature across the signal.

*Gauss-Newton*: on the sample itself, by conjugate gradients preconditioned with the population's curvature, a handful of
passes. Where samples are few, population moments are not good enough to end with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, derived, numeric
from robustphase.population.real_rows import JointMoments, PairedCurvature
from robustphase.problem import Problem
from robustphase.rows import RowSource, adjoint
from robustphase.rows.passes import in_slices
from robustphase.rows.products import abs2, adjoint_block, in_single_precision, in_type_of, multiply_block
from robustphase.rows.source import Array, Parts


@dataclass(frozen=True)
class NewtonOptions:
    """Constants of the steps."""

    least_tangential: float = numeric(0.2, "least curvature across the signal over Σw‖x‖²; 2 for clean real samples")
    least_radial: float = numeric(0.3, "least curvature along the signal over Σw‖x‖²; 4 for clean real samples")
    stability: float = derived(1.9, "longest stable step over the largest curvature is 2; a little less")
    least: float = numeric(1e-150, "smaller powers, masses and curvatures count as this: its square is still a number")
    roundings: float = numeric(10.0, "curvatures below so many roundings of what the preconditioner expects are none")
    longest: float = derived(0.5, "no step may be longer than this fraction of the signal: beyond, it may pass zero")


NEWTON = NewtonOptions()


class Moments(NamedTuple):
    """Weighted sums over the samples, for k signals with ``s = aᴴx`` and residuals r."""

    #: (n, k): ``Σ w r s a``: a fourth (a half, complex) of the negative gradient of the weighted squares.
    gradient: Array
    #: (k,): ``Σ w``, ``Σ w r``, ``Σ w |s|²`` and ``Σ w |s|⁴``.
    mass: Array
    residual_sum: Array
    second: Array
    fourth: Array
    #: (3, k), or (0, k): ``Σ w s²``, ``Σ w |s|²s²`` and ``Σ w s⁴`` of complex signals behind real rows; of no use to
    #: others.
    joint: Array = np.empty((0, 0))


class Step(NamedTuple):
    """Steps of the signals (n, k) and of the backgrounds (k,)."""

    signals: Array
    backgrounds: Array


class Inner(NamedTuple):
    """Conjugate gradients inside a step."""

    most: int  # Most iterations, one pass each
    tol: float  # Stop when the residual has fallen by this factor
    single: bool = False  # Take the products in single precision. What they solve stays in that of the rows.


def initial_damping(m: int, unknowns: int) -> float:
    """Factor of a population-Newton step: below one where samples are few and their moments far from the population's.

    The largest eigenvalue of the sample's Hessian over the population's is about ``(1 + sqrt(3 p/m))²`` for p unknowns.
    """
    return float(NEWTON.stability / (1 + np.sqrt(3 * unknowns / m)) ** 2)


def newton_step(signals: Array, moments: Moments, *, fit_background: bool, kurtosis: float = 1.0) -> Step:
    """Population-Newton steps, with the background profiled out where it is fitted.

    Rows whose lengths vary have a ``kurtosis`` of these lengths above one, and as much more curvature across a signal.
    """
    second, fourth = moments.second, moments.fourth
    # A candidate that vanishes or explains no sample has neither curvature nor gradient: it stays where it is.
    mass, power = np.maximum(moments.mass, NEWTON.least), np.maximum(abs2(signals).sum(axis=0), NEWTON.least)
    # Half of the energy of a complex row lies in the phase, which changes nothing.
    tangential = (1.0 if np.iscomplexobj(signals) else 2.0) * kurtosis * second
    tangential = np.maximum(tangential, NEWTON.least_tangential * power * mass)
    profiled = second**2 / mass if fit_background else 0.0
    radial = np.maximum(2 * (fourth - profiled) / power, NEWTON.least_radial * power * mass)
    tangential, radial = np.maximum(tangential, NEWTON.least), np.maximum(radial, NEWTON.least)
    shifts = moments.residual_sum / mass if fit_background else np.zeros_like(mass)
    if len(moments.joint):
        curvature = PairedCurvature(
            signals,
            JointMoments(mass, second, fourth, *moments.joint),
            profiled=fit_background,
            kurtosis=kurtosis,
            least_across=NEWTON.least_tangential * power * mass,
            least_along=NEWTON.least_radial * power * mass,
        )
        return Step(curvature.solve(moments.gradient, shifts), shifts)
    # A background that moves takes Σ w s a from the gradient; for the population that is a multiple of the signal.
    gradient = moments.gradient - signals * (shifts * second / power)
    return Step(inverse_curvature(signals, gradient, tangential, radial), shifts)


def joint_sums(weights: Array, projections: Array, energy: Array, *, paired: bool) -> Array:
    """``Σ w s²``, ``Σ w |s|²s²`` and ``Σ w s⁴``, shape (3, k), where complex signals stand behind real rows; else (0, k)."""
    if not paired:
        return np.empty((0, weights.shape[1]))
    squares = projections * projections
    weighted = weights * squares
    sums = [np.sum(part, axis=0, dtype=np.complex128) for part in (weighted, weighted * energy, weighted * squares)]
    return np.stack(sums)


def inverse_curvature(signals: Array, vectors: Array, tangential: Array, radial: Array) -> Array:
    """``H⁻¹ v`` for curvatures that are one number across each signal and another along it."""
    power = np.maximum(abs2(signals).sum(axis=0), TINY)
    # Samples without any weight have no curvature, and their vectors are zero.
    tangential, radial = np.maximum(tangential, TINY), np.maximum(radial, TINY)
    share = np.vecdot(signals.T, vectors.T) / power
    solved: Array = vectors / tangential + signals * (share * (1 / radial - 1 / tangential))
    return solved


def gauss_newton_step(
    problem: Problem,
    signals: Array,
    projections: Array,
    residuals: Array,
    weights: Array,
    inner: Inner,
) -> Step:
    """Gauss-Newton steps ``min Σ w (r − 2 Re(s̄ aᴴd) − β)²`` over d, and over β where the background is unknown.

    ``projections``, ``residuals`` and ``weights`` (m, k) are ``A X``, ``y − |A X|² − b`` and w at the signals (n, k).
    """
    source, fit_background = problem.source, problem.unknown_mean
    shares = weights / np.maximum(weights.sum(axis=0), TINY)
    scaled = shares * projections
    power, energy = np.maximum(abs2(signals).sum(axis=0), NEWTON.least), abs2(projections)
    second, fourth = (shares * energy).sum(axis=0), (shares * energy**2).sum(axis=0)
    k = signals.shape[1]
    precondition: Callable[[Array], Array]
    if problem.paired:
        joint = joint_sums(shares, projections, energy, paired=True)
        inverse = PairedCurvature(
            signals,
            JointMoments(np.ones(k), second, fourth, *joint),
            profiled=fit_background,
            kurtosis=problem.kurtosis,
            least_across=NEWTON.least_radial * second,
            least_along=NEWTON.least_radial * second,
        )

        def precondition(vectors: Array) -> Array:
            return inverse.solve(vectors) / 2

    else:
        tangential = np.maximum((2.0 if np.iscomplexobj(signals) else 4.0) * problem.kurtosis * second, NEWTON.least)
        spread = fourth - (second**2 if fit_background else 0.0)
        radial = np.maximum(4 * spread / power, NEWTON.least_radial * tangential)

        def precondition(vectors: Array) -> Array:
            return inverse_curvature(signals, vectors, tangential, radial)

    if fit_background:
        mean_residual = (shares * residuals).sum(axis=0)
        # Subtracting the mean response of a direction to the background needs the second sum.
        both = 2 * adjoint(source, np.hstack((scaled * (residuals - mean_residual), scaled)))
        left, level = both[:, :k], both[:, k:]
    else:
        mean_residual = np.zeros(k)
        left, level = 2 * adjoint(source, scaled * residuals), np.zeros_like(signals)

    step, lowered = np.zeros_like(signals), np.zeros(k)
    left = _without_phase(signals, left)
    conditioned = _without_phase(signals, precondition(left))
    direction, size = conditioned, np.vecdot(left.T, conditioned.T).real
    first = size
    # Squared lengths of the directions in the metric of the preconditioner, by which roundings of curvatures are known.
    assumed, rounding = size, NEWTON.roundings * float(np.finfo(np.float32 if inner.single else source.dtype).eps)
    going = np.ones(k, bool)
    curved = _Curvature(source, projections, shares, single=inner.single)
    for _ in range(inner.most):
        image, changes = curved.times(direction)
        raised = changes if fit_background else 0.0
        image = _without_phase(signals, image - level * raised)
        curvature = np.vecdot(direction.T, image.T).real
        # Samples without any weight have no curvature, and nothing to say; nor have roundings.
        going = going & (curvature > rounding * assumed)
        length = np.where(going, size, 0.0) / np.maximum(curvature, TINY)
        step, lowered, left = step + length * direction, lowered + length * raised, left - length * image
        conditioned = _without_phase(signals, precondition(left))
        new = np.where(going, np.vecdot(left.T, conditioned.T).real, 0.0)
        if not (new > inner.tol**2 * first).any():
            break
        ratio = new / np.maximum(size, TINY)
        direction, size, assumed = conditioned + ratio * direction, new, new + ratio**2 * assumed
    return Step(step, mean_residual - lowered if fit_background else mean_residual)


def _without_phase(signals: Array, vectors: Array) -> Array:
    """The vectors without what turns the phase of their signal, which no sample sees: roundings along it are never undone."""
    if not np.iscomplexobj(signals):
        return vectors
    power = np.maximum(abs2(signals).sum(axis=0), NEWTON.least)
    left: Array = vectors - 1j * signals * (np.vecdot(signals.T, vectors.T).imag / power)
    return left


def relative_lengths(steps: Array, signals: Array) -> Array:
    """Length of every step over that of its signal, shape (k,)."""
    lengths: Array = np.linalg.norm(steps, axis=0) / np.maximum(np.linalg.norm(signals, axis=0), TINY)
    return lengths


def shortened(steps: Array, signals: Array) -> Array:
    """Steps no longer than the largest fraction of their signal."""
    cut: Array = steps * np.minimum(1.0, NEWTON.longest / np.maximum(relative_lengths(steps, signals), TINY))
    return cut


class _Curvature:
    """Curvature of weighted squares with the weights w, which add up to one: ``v ↦ 4 Σ w Re(s̄ aᴴv) s a``."""

    def __init__(self, source: RowSource, projections: Array, shares: Array, *, single: bool) -> None:
        self._source, self._single = source, single
        self._projections, self._shares, self._unit = projections, shares, np.ones(1)
        if single:
            # In units of their own, because single precision has no room for all of them.
            used = np.where(shares > 0, projections, 0)
            self._unit = np.maximum(np.abs(used).max(axis=0), NEWTON.least)
            kind = np.complex64 if np.iscomplexobj(projections) else np.float32
            self._projections, self._shares = (used / self._unit).astype(kind), shares.astype(np.float32)

    def times(self, vectors: Array) -> tuple[Array, Array]:
        """The curvature times vectors (n, k); and the mean change of the predictions along them, (k,). One pass."""
        unit = self._unit
        if self._single:
            lengths = np.maximum(np.linalg.norm(vectors, axis=0), NEWTON.least)
            vectors, unit = (vectors / lengths).astype(self._projections.dtype), unit * lengths

        def kernel(block: Array, s: Array, w: Array) -> Parts:
            block = in_single_precision(block) if self._single else block
            change = w * _change(s, multiply_block(block, in_type_of(block, vectors)))
            return Parts(sums=(adjoint_block(block, change * s), change.sum(axis=0)))

        parts = self._source.reduce(in_slices(kernel, vectors.shape[1]), (self._projections, self._shares))
        return 2 * self._unit * unit * parts.sums[0], unit * parts.sums[1]


def _change(projections: Array, along: Array) -> Array:
    """``2 Re(s̄ t)``: the change of a squared projection s along t."""
    change: Array = projections.real * along.real
    if np.iscomplexobj(along):
        change += projections.imag * along.imag
    change *= 2
    return change

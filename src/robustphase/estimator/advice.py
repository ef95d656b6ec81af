"""What to say when the answer did not settle: the likely cause, and what to try."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustphase.estimator.history import Iteration
from robustphase.recover import Recovery
from robustphase.recover.model import ModelCheck
from robustphase.rows.source import Array

#: Shares of bad samples: above the stated one by this much is a cause; beyond this no common signal explains the data.
CLEARLY_MORE, TOO_MANY = 0.02, 0.4
#: A signal is too faint to be seen when its energy is below this multiple of the scale of the residuals.
FAINT = 0.5
#: A start counts as failed when the descent leaves it by this factor of its norm.
ESCAPE = 10.0
#: From fewer moves nothing can be told about how fast they fall.
FEW_STEPS = 16


def engine_advice(stated: float | str, recovery: Recovery, samples: int, unknowns: int, whiten: bool) -> str:
    """For the recovery engine and what it found; ``whiten`` tells whether it may have standardised the rows."""
    found, energy = float(recovery.contaminations[0]), float(np.linalg.norm(recovery.signal)) ** 2
    scale = float(recovery.noise.scales[0])
    if energy < FAINT * scale:
        return (
            f"the signal did not settle: its energy, {energy:.2g}, drowns in residuals of size {scale:.2g}. "
            "Likely cause: the responses do not depend on A. Check that every response stands beside its own row."
        )
    if found > TOO_MANY:
        remedy = "" if whiten else "whiten=True if the rows of A have another scale, mean or covariance, "
        return (
            f"the signal did not settle: {found:.0%} of the samples do not fit it. Likely cause: the model y = |a·x|² does "
            f'not hold. Try {remedy}noise_mean="unknown" if there is a background, or y**2 if y holds magnitudes.'
        )
    if not isinstance(stated, str) and found > stated + CLEARLY_MORE:
        return (
            f"the signal did not settle. Likely cause: contamination={stated:g} is lower than the share of bad samples "
            f'(about {found:.2f} look bad). Try contamination="auto", or contamination={min(found + 0.03, 0.49):.2f}.'
        )
    return (
        f"the signal did not settle. Likely cause: {samples} samples for {unknowns} unknowns, {samples / unknowns:.1f} each, "
        "are few at this noise. Collect more, or pass polish=False for a rougher and steadier answer."
    )


def nothing_advice() -> str:
    """For responses that a signal of zero explains."""
    return (
        "the responses hold no signal at all: they do not depend on A, and the answer is zero. Likely cause: a dead or covered "
        "detector, or a constant column read as y. Check that every response stands beside its own row."
    )


def many_advice(converged: Array, nothing: Array) -> str:
    """For many signals, some of which did not settle or are not there."""
    lost = np.flatnonzero(~converged & ~nothing)
    said = []
    if nothing.any():
        said.append(
            f"{int(nothing.sum())} of {nothing.size} columns of y (the first is column {int(np.argmax(nothing))}) hold no signal "
            "at all: their responses do not depend on A, and the answer is zero."
        )
    if lost.size:
        said.append(
            f"{lost.size} of {converged.size} signals did not settle (the first is column {int(lost[0])} of y). Fit that column "
            "by itself: the warning then names the likely cause and what to try."
        )
    return " ".join(said)


def many_model_advice(checks: Sequence[ModelCheck]) -> str:
    """For many signals, of some of which the model does not hold."""
    severe = [column for column, check in enumerate(checks) if check.severe]
    return f"{len(severe)} of {len(checks)} signals are in doubt. Column {severe[0]} of y: {checks[severe[0]].message}"


def descent_advice(history: list[Iteration], tol: float) -> str:
    """For a descent that used up its iterations."""
    moves = np.array([record.moved for record in history if record.stage == "descent"])
    said = f"stopped after {moves.size} iterations, the last of which moved the signal by {moves[-1]:.1e} of its norm."
    if moves.size < FEW_STEPS:
        return f"{said} These are few: try max_iter=100."
    half = moves.size // 2
    early, late = float(np.mean(moves[:half])), float(np.mean(moves[half:]))
    if 0 < late < 0.8 * early:
        # Both halves are geometric means of the same decay, half of the iterations apart.
        rate = np.log(early / late) / half
        more = moves.size + int(np.ceil(np.log(max(moves[-1] / max(tol, 1e-16), 1.0)) / rate))
        return f"{said} It was still getting closer: try max_iter={more + more // 4}, or a tol above {tol:g}."
    return (
        f"{said} Likely cause: the robust mean takes away other samples in every iteration. Try tol={2 * late:.0e}, "
        'fresh batches (batches=20), or step="newton".'
    )


def escape_advice(start: float, end: float) -> str:
    """For a descent that left its start behind."""
    return (
        f"the descent diverged: the norm of the signal went from {start:.2g} to {end:.2g}, and the start is returned "
        "instead. Likely cause: a start with too small a norm, which makes the paper's constant step too long. "
        'Try init="auto", or step="newton".'
    )


def zero_start_advice(init: str) -> str:
    """For a start that found nothing."""
    return (
        f"init={init!r} gave a start of zero, where the gradient vanishes, so the signal is zero. Likely cause: too much noise "
        'or contamination for this start. Try init="auto".'
    )


def stopped_advice(stage: str, passes: int) -> str:
    """What to say of a fit that its callback has ended."""
    return (
        f"the callback ended the fit before its {stage}, after {passes} passes: the answer is the best so far, without a "
        "certificate, and the weights mark the largest residuals only. Fit again without the callback, or let it return None."
    )

"""Fits of many signals at once: ``y`` with one column for each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from robustphase.estimator.records import Clock, Iteration
from robustphase.means.estimate import confident_level
from robustphase.recover.certificate import certify
from robustphase.recover.certify_many import certify_many
from robustphase.recover.many import ManyRecovery, recover_many
from robustphase.rows import project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.validation import Samples

#: A signal with less energy than this fraction of the typical response is rounding error.
NOTHING = 1e-9


def check_many_use(estimator: Any) -> None:
    """Refuse what only a single signal can have."""
    refused = (
        (estimator.step != "newton", f"step={estimator.step!r}", '"newton"'),
        (estimator.batches != 1, f"batches={estimator.batches}", "1"),
        (not isinstance(estimator.init, str) or estimator.init != "auto", "an init of your own", '"auto"'),
        (not estimator.polish, "polish=False", "True"),
        (estimator.mean_estimator != "filter", f"mean_estimator={estimator.mean_estimator!r}", '"filter"'),
    )
    for wrong, what, right in refused:
        if wrong:
            raise ValueError(
                f"y has several columns, one signal each, and {what} works for one signal at a time. Use {right}, or fit the "
                "columns one by one."
            )


def fit_many(estimator: Any, samples: Samples, level: float | str, clock: Clock) -> None:
    """Set the attributes of an estimator from samples whose responses have one column per signal."""
    unknown = estimator.noise_mean == "unknown"
    _, before = clock.now()
    found = recover_many(samples, level, unknown_mean=unknown, seed=estimator._seed)
    for stage in found.history:
        estimator._note(
            Iteration(
                stage.stage,
                moved=stage.moved,
                candidates=stage.candidates,
                passes=clock.passes_at(stage.passes),
                seconds=before + stage.seconds,
            )
        )
    p = found.scales.size
    estimator.contamination_ = found.contaminations if isinstance(level, str) else np.full(p, float(level))
    estimator.weights_, estimator.residual_weights_ = found.weights, found.residual_weights
    estimator.noise_scale_, estimator._probabilities = found.scales, found.probabilities
    estimator.noise_mean_ = _backgrounds(samples, found) if unknown else np.zeros(p)
    levels = np.array(
        [float(confident_level(e, estimator.delta, samples.source.shape[0])) for e in estimator.contamination_]
    )
    signals, radii = _certified(estimator, samples, found, levels, unknown)
    nothing = without_signal(samples.responses, signals)
    signals[:, nothing], radii[nothing], found.converged[nothing] = 0.0, np.inf, False
    estimator.signal_, estimator.initial_signal_ = signals.T, found.initial_signals.T
    estimator.certificate_, estimator.converged_ = radii, found.converged
    estimator._residual_centre, estimator._law_fitted = found.backgrounds, True
    passes, seconds = clock.now()
    estimator._note(Iteration("certificate", candidates=p, passes=passes, seconds=seconds))
    if not found.converged.all():
        warnings.warn(_complaint(found.converged, nothing), ConvergenceWarning, stacklevel=4)


def without_signal(responses: Array, signals: Array) -> Array:
    """Which columns of responses say nothing: all alike, as a dead pixel reports them, so that a signal of zero explains them.

    The certificate would not tell: it is relative to the norm of the signal, and without residuals it is zero.
    """
    sizes = np.abs(responses)
    typical = np.median(sizes, axis=0)
    typical = np.where(typical > 0, typical, sizes.mean(axis=0))
    energies = np.linalg.norm(signals, axis=0) ** 2
    # Written so that numbers which underflowed on the way, and became NaN, count as nothing too.
    nothing: Array = ~(energies > NOTHING * np.where(typical > 0, typical, 1.0))
    return nothing


def _complaint(converged: Array, nothing: Array) -> str:
    """What the warning says about signals that did not settle."""
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


def _certified(
    estimator: Any, samples: Samples, found: ManyRecovery, levels: Array, unknown: bool
) -> tuple[Array, Array]:
    """The signals, brought back where the robust gradient does not vouch for them, and the radii of the certificates."""
    certificates = certify_many(
        samples.source,
        samples.responses,
        found.signals,
        estimator.noise_mean_,
        levels,
        found.weights,
        unknown_mean=unknown,
    )
    for k, certificate in enumerate(certificates):
        if certificate.moved > 0:
            # As for a single signal: the mean estimator has the last word.
            certificates[k] = certify(
                samples.source,
                samples.responses[:, k],
                found.signals[:, k],
                float(estimator.noise_mean_[k]),
                float(levels[k]),
                unknown_mean=unknown,
                random_state=estimator._seed,
            )
    signals = np.stack([certificate.signal for certificate in certificates], axis=1)
    return signals, np.array([certificate.radius for certificate in certificates])


def _backgrounds(samples: Samples, found: ManyRecovery) -> Array:
    """Mean residual of the samples that are not flagged, for each signal."""
    residuals = samples.responses - abs2(project(samples.source, found.signals))
    kept = found.weights > 0.5
    means: Array = (residuals * kept).sum(axis=0) / np.maximum(kept.sum(axis=0), 1)
    return np.where(kept.any(axis=0), means, np.median(residuals, axis=0))

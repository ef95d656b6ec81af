"""How to fit, and what a fit found: what the engine, a descent, certificates and checks of the model have in common.

What was found becomes the attributes of the estimator, in the units of the rows that were given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robustphase.descend.robust_gradient import DescentRule
from robustphase.estimator.groups import Labelled, group_weights
from robustphase.initialise.standardise import Standardised
from robustphase.likelihood import GroupEvidence
from robustphase.population import paper_step
from robustphase.problem import Grouping
from robustphase.recover import Recovery
from robustphase.recover.drift import Drift
from robustphase.recover.law.answers import Detector
from robustphase.recover.model import ModelCheck, doubts
from robustphase.rows import MemoryRows
from robustphase.rows.source import Array
from robustphase.validation import Samples


@dataclass(frozen=True)
class Settings:
    """How to fit: the estimator's parameters, with a definite seed, and how the samples were read and standardised."""

    contamination: float | str
    noise_mean: str
    init: Any
    mean_estimator: str
    step: str
    batches: int
    polish: bool
    delta: float
    max_iter: int
    tol: float
    whiten: bool | str
    field: str
    seed: int
    detector: Detector | None = None
    groupings: tuple[Grouping, ...] = ()
    standard: Standardised | None = None

    @property
    def unknown_mean(self) -> bool:
        """Whether the noise may have a mean."""
        return self.noise_mean == "unknown"

    @property
    def descends(self) -> bool:
        """Whether robust gradients lead all the way, rather than the engine."""
        return self.step == "paper" or self.batches > 1

    def rule(self, contamination: float, start: Array) -> DescentRule:
        """The steps of a descent from ``start``: those of Algorithm 2 or 4, or Newton's."""
        as_published = self.step == "paper"
        noise_mean: Any = self.noise_mean
        return DescentRule(
            contamination,
            self.delta,
            mean_estimator=self.mean_estimator,
            paired=as_published and self.unknown_mean,
            step_size=paper_step(start, noise_mean=noise_mean) if as_published else None,
            unknown_mean=self.unknown_mean,
            random_state=self.seed,
        )


@dataclass(frozen=True)
class Fitted:
    """What a fit found, one column for each signal."""

    recovery: Recovery  # The answers as the engine or the descent left them
    signals: Array  # (n, p): the answers as the robust gradient vouches for them
    #: (p,): certificates, contamination used or found, and noise means.
    radii: Array
    levels: Array
    noise_means: Array
    converged: Array  # bool (p,): whether each settled
    message: str = ""  # What to warn of, if anything
    checks: tuple[ModelCheck, ...] = ()  # The test of each one's model
    drift: Drift | None = None  # What drifts over the rows, where that was asked for


def unread(samples: Samples, settings: Settings) -> Array:
    """Samples whose responses cannot be compared with predictions: dropped, or censored."""
    censored = None if settings.detector is None else settings.detector.censored
    unread: Array = samples.dropped if censored is None else samples.dropped | censored.reshape(samples.dropped.shape)
    return unread


def as_columns(values: Array) -> Array:
    """Responses, or what there is one of for each, with an axis for the signals."""
    return values.reshape(len(values), -1)


#: What only some fits know.
SOMETIMES = ("unseen_", "drift_", "row_weights_", "groups_", "group_weights_", "group_evidence_")


def attributes_of(fitted: Fitted, standard: Standardised, size: float, *, one: bool) -> dict[str, Any]:
    """What every fit knows, of what was found behind standard rows.

    Rows were multiplied with ``size`` before they were made standard. With ``one`` signal there is no axis of the signals.
    """
    found = fitted.recovery

    def plain(values: Array) -> Any:
        first = values[..., 0]
        return (first if first.ndim else first.item()) if one else values

    signals, initial = (standard.back(s) / size for s in (fitted.signals, found.initial_signals))
    return {
        "signal_": plain(signals) if one else signals.T,
        "initial_signal_": plain(initial) if one else initial.T,
        "weights_": plain(found.weights),
        "residual_weights_": plain(found.residual_weights),
        # Without weights of its own for any signal, one column serves all of them.
        "covariate_weights_": plain(found.covariate_weights),
        "contamination_": plain(fitted.levels),
        "certificate_": plain(standard.radii(fitted.signals, fitted.radii)),
        "noise_mean_": plain(fitted.noise_means),
        "residual_centre_": plain(found.backgrounds),
        "noise_model_": type(found.noise)(*(plain(part) for part in found.noise)),
        "noise_scale_": plain(found.noise.scales),
        "converged_": plain(fitted.converged),
        "model_check_": fitted.checks[0] if one else fitted.checks,
        "_probabilities": plain(found.probabilities),
        "_scores": None if found.scores is None else plain(found.scores),
        "_slopes": None if found.slopes is None else plain(found.slopes),
        # Of many signals there are no standard errors in any case.
        "_doubted": doubts(fitted.checks[0]),
        # The changes are wanted again where batches follow, the rows are not.
        "_standard": _without_rows(standard),
        "_size": size,
        # What the robust gradient has moved is no longer what the rule is about.
        "_rule": found.rule if np.array_equal(found.signals, fitted.signals) else None,
    }


def special_attributes(fitted: Fitted, labelled: tuple[Labelled, ...], *, one: bool) -> dict[str, Any]:
    """What is known of several signals behind the same rows, of groups, of operators with dark columns, and of drift."""
    found = fitted.recovery
    known: dict[str, Any] = {}
    if found.unseen is not None:
        known["unseen_"] = found.unseen
    if fitted.drift is not None:
        known["drift_"] = fitted.drift
    if not one:
        rows = found.shared[len(labelled)]
        known["row_weights_"] = np.ones(len(found.weights)) if rows is None else rows.used
    return known | (_group_attributes(labelled, found.shared[: len(labelled)]) if labelled else {})


def _group_attributes(labelled: tuple[Labelled, ...], evidence: tuple[GroupEvidence | None, ...]) -> dict[str, Any]:
    weights = tuple(group_weights(one, seen) for one, seen in zip(labelled, evidence, strict=True))
    names = tuple(one.names for one in labelled)
    several = {"groups_": names, "group_weights_": weights, "group_evidence_": evidence}
    return several if len(labelled) > 1 else {name: values[0] for name, values in several.items()}


def _without_rows(standard: Standardised) -> Standardised:
    nothing, n = np.empty(0), standard.samples.source.shape[1]
    rows = MemoryRows(np.empty((0, n)))
    return standard._replace(samples=standard.samples._replace(source=rows, responses=nothing, dropped=nothing))

"""The attributes of a fitted estimator: what a fit found, in the units of the rows that were given."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.estimator.fitted import Fitted
from robustphase.estimator.groups import Labelled, group_weights
from robustphase.initialise.standardise import Standardised
from robustphase.likelihood import GroupEvidence
from robustphase.recover.model import doubts
from robustphase.rows import MemoryRows
from robustphase.rows.source import Array

#: What only some fits know.
SOMETIMES = ("unseen_", "drift_", "row_weights_", "groups_", "group_weights_", "group_evidence_")


def attributes_of(fitted: Fitted, standard: Standardised, size: float, *, one: bool) -> dict[str, Any]:
    """What every fit knows.

    Parameters
    ----------
    fitted : Fitted
        What was found behind standard rows.
    standard : Standardised
        How they were made.
    size : float
        What the rows were multiplied with before.
    one : bool
        One signal: without the axis of the signals.
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

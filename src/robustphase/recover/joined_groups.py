"""Groups of rows behind several signals: what some signals say of them, told to the others and put together."""

from __future__ import annotations

import numpy as np

from robustphase.likelihood import GroupEvidence
from robustphase.problem import KEPT, Grouping, Problem
from robustphase.rows.source import Array

_TINY = float(np.finfo(np.float64).tiny)


def rows_as_groups(problem: Problem) -> tuple[Grouping, ...]:
    """Behind several signals each row is a group of its responses."""
    m, p = problem.responses.shape
    return (Grouping(np.arange(m), m),) if p > 1 else ()


def is_majority(columns: Array) -> bool:
    """Whether most signals are among them."""
    return bool(2 * columns.sum() > columns.size)


def with_groups_known(problem: Problem, evidence: tuple[GroupEvidence | None, ...]) -> Problem:
    """The problem of some of the signals, with what all of them say of the groups."""
    weights = problem.weights
    for (codes, _), one in zip(problem.groupings, evidence, strict=True):
        weights = weights if one is None or not one.found else weights * one.used[codes, np.newaxis]
    return problem._replace(weights=weights)


def joined_evidence(one: GroupEvidence | None, other: GroupEvidence | None) -> GroupEvidence | None:
    """What two sets of signals say of the same groups: independent evidence."""
    if one is None or other is None:
        return one if other is None else other
    if one.found != other.found:
        return one if one.found else other
    # Odds of being bad multiply, and the share of bad groups that is in both of them counts once.
    logits = [np.log(np.maximum(1 - w, _TINY)) - np.log(np.maximum(w, _TINY)) for w in (one.weights, other.weights)]
    prior = float(np.median(logits[0] - one.log_odds))
    weights = 1 / (1 + np.exp(np.clip(logits[0] + logits[1] - prior, -700, 700)))
    sizes = one.sizes + other.sizes
    shares = one.sizes / np.maximum(sizes, 1)
    return GroupEvidence(
        # Groups that were not found to be bad are not flagged.
        weights if one.found else np.maximum(weights, KEPT),
        one.log_odds + other.log_odds,
        np.exp(shares * np.log(one.widths) + (1 - shares) * np.log(other.widths)),
        shares * one.bad_shares + (1 - shares) * other.bad_shares,
        sizes,
        one.found,
    )

"""Why samples were rejected, and where they stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import robustphase as rp
from robustphase.report import FitDiagnostics
from robustphase.report.rejection_causes import CAUSES, counts, crowded_stretches, rejection_causes, worst_samples


def test_every_bad_sample_is_rejected_for_what_was_done_to_it(diagnostics, spoilt):
    *_, groups = spoilt
    names = np.array(CAUSES)[rejection_causes(diagnostics)]
    assert (names[groups["nonfinite"]] == "nonfinite").all()
    assert (names[groups["norm"]] == "norm").all()
    assert (names[groups["direction"]] == "direction").mean() > 0.95
    # A row near the cloud of bad ones may be weighed down for its direction before its response is seen.
    assert (names[groups["residual"]] == "residual").mean() > 0.9


@pytest.mark.parametrize(
    ("attack", "cause"),
    [("inflated_rows", "norm"), ("leverage", "direction"), ("huge", "residual"), ("overflow", "nonfinite")],
)
def test_attacks_are_told_apart(attack, cause):
    # One world each; the shares were above 0.95 in ten.
    world = rp.simulate.make_world(n=30, m=1500, attack=attack, seed=0)
    e = FitDiagnostics.of(rp.RobustPhaseRetrieval(nonfinite="drop").fit(*world), *world)
    rejected = rejection_causes(e)[world.touched]
    assert (rejected == CAUSES.index(cause)).mean() > 0.9


def test_counts_add_up(diagnostics, plain):
    for e in (diagnostics, plain):
        assert sum(counts(e).values()) == e.rejected.sum()
        assert ((rejection_causes(e) > 0) == e.rejected).all()


def test_the_worst_samples_are_rejected_ones_of_every_cause(diagnostics):
    samples = worst_samples(diagnostics)
    assert len(samples) == 20
    rows = [sample.row for sample in samples]
    assert rows == sorted(set(rows))
    assert diagnostics.rejected[rows].all()
    assert {sample.cause for sample in samples} == set(CAUSES[1:])
    residual = [sample for sample in samples if sample.cause == "residual"]
    others = np.flatnonzero(rejection_causes(diagnostics) == CAUSES.index("residual"))
    lightest = diagnostics.weights[others].min()
    assert all(sample.weight <= lightest + 1e-3 for sample in residual)


def with_rejected(diagnostics, rejected):
    ones = np.ones(rejected.size)
    return replace(
        diagnostics,
        weights=np.where(rejected, 0.0, 1.0),
        covariate_weights=ones,
        responses=ones,
        predictions=ones,
        squared_norms=ones,
    )


def test_a_dead_stretch_is_found(plain, rng):
    rejected = rng.random(4000) < 0.05
    rejected[1000:1200] = True
    (stretch,) = crowded_stretches(with_rejected(plain, rejected))
    assert stretch.start <= 1000
    assert stretch.stop >= 1200
    assert stretch.stop - stretch.start <= 400
    assert stretch.cause == "residual"


@pytest.mark.parametrize("share", [0.0, 0.002, 0.05, 0.3])
@pytest.mark.parametrize("m", [20, 60, 1000, 8000])
def test_chance_makes_no_crowd(plain, rng, share, m):
    # The rate of false alarms is below 1e-4 each, so 100 reports have one with a probability below 0.01.
    assert not any(crowded_stretches(with_rejected(plain, rng.random(m) < share)) for _ in range(100))

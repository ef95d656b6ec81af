"""Searches look at copies of the samples that count, and find there what they would find among all."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.constants import varied
from robustphase.descend.candidate_steps import placed
from robustphase.likelihood.comparison import comparison_floor
from robustphase.recover.search_copy import COPY, search_copy
from robustphase.recover.selection import finalists
from robustphase.rows import MemoryRows, Parts, RowSource
from robustphase.simulate import make_world


class SweptRows(RowSource):
    """Rows of somebody's own, which can be swept and no more."""

    def __init__(self, rows):
        self.rows = rows
        self.shape, self.dtype = rows.shape, rows.dtype

    def _reduce(self, kernel, per_row, pairing) -> Parts:
        return MemoryRows(self.rows).reduce(kernel, per_row, pairing=pairing)


def half_of(problem, seed=0):
    weights = problem.weights * (np.random.default_rng(seed).random(problem.weights.shape) < 0.5)
    return problem._replace(weights=weights)


def starts_of(problem, signals):
    floored = problem.floored(comparison_floor(problem.levels))
    return placed(floored, signals / np.sqrt(problem.units), np.zeros(signals.shape[1]))


@pytest.mark.parametrize("field", ["real", "complex"])
def test_a_copy_holds_the_samples_with_a_weight_in_single_precision(problem_of, field):
    world = make_world(8, 300, contamination=0.1, attack="huge", field=field, seed=0)
    half = half_of(problem_of(world))
    used = half.weights[:, 0] > 0
    copy = search_copy(half)
    assert copy.source.dtype == (np.float32 if field == "real" else np.complex64)
    assert_array_equal(copy.source.array, world.A[used].astype(copy.source.dtype))
    for name in ("responses", "weights", "density"):
        assert_array_equal(getattr(copy, name), getattr(half, name)[used])


def test_no_copy_is_made_without_room_or_of_rows_that_can_only_be_swept(problem_of):
    problem = problem_of(make_world(8, 300, contamination=0.1, attack="huge", seed=0))
    swept = problem._replace(source=SweptRows(np.ones((300, 8))))
    assert search_copy(swept) is swept
    with varied(COPY, most_bytes=1000):
        assert search_copy(problem) is problem


def test_pieces_are_put_together_in_order(problem_of):
    problem = problem_of(make_world(8, 300, contamination=0.1, attack="huge", seed=0))
    whole = search_copy(problem).source.array
    with varied(COPY, piece_bytes=1000):
        assert_array_equal(search_copy(problem).source.array, whole)


def test_a_search_in_a_copy_finds_what_it_finds_among_all_samples(problem_of):
    world = make_world(20, 1500, contamination=0.1, attack="decoy", seed=1)
    half = half_of(problem_of(world))
    starts = starts_of(half, np.random.default_rng(0).standard_normal((20, 12)) / np.sqrt(20))
    (there,), (here,) = (finalists(samples, [starts], 1500) for samples in (half, search_copy(half)))
    assert_allclose(here.signals, there.signals, atol=1e-4)
    assert_allclose(here.scores, there.scores, atol=1e-4)


def test_races_in_the_same_passes_end_as_each_alone(problem_of):
    world = make_world(20, 1500, contamination=0.1, attack="decoy", seed=1)
    problem, rng = problem_of(world), np.random.default_rng(0)
    races = [starts_of(problem, rng.standard_normal((20, count)) / np.sqrt(20)) for count in (9, 1, 4)]
    together = finalists(problem, races, 1500)
    for race, found in zip(races, together, strict=True):
        (alone,) = finalists(problem, [race], 1500)
        assert_allclose(found.signals, alone.signals, atol=1e-4)
        assert_allclose(found.scores, alone.scores, atol=1e-4)

"""Passes that were made once need not be made again."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from robustphase.rows import (
    MaskedRows,
    MemoryRows,
    Parts,
    ReplayedRows,
    ScaledRows,
    ShiftedRows,
    TransformedRows,
    adjoint,
    paired_loss_gradient,
    project,
    rows_at,
    squared_loss_gradient,
)
from robustphase.rows import replay as replay_module
from robustphase.rows.replay import pass_digest


class Remembered:
    """A log in memory."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[str, Parts]] = {}

    def recall(self, number: int, call: str) -> Parts | None:
        recorded, parts = self.kept.get(number, ("", Parts()))
        return Parts(*(tuple(a.copy("K") for a in arrays) for arrays in parts)) if recorded == call else None

    def record(self, number: int, call: str, parts: Parts) -> None:
        self.kept[number] = call, Parts(*(tuple(a.copy("K") for a in arrays) for arrays in parts))


class Unreadable(MemoryRows):
    """Rows that may not be touched."""

    def read(self, start: int, stop: int):
        raise AssertionError("a pass was made")


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((101, 7))


def passes_of_every_kind(source) -> list[np.ndarray]:
    """What a program might do with a source, views and wrappers included; each result depends on the one before."""
    m, n = source.shape
    y = np.linspace(-1, 2, m)
    found = [project(source, np.ones((n, 3)))]
    found.append(adjoint(source, found[-1]))
    found[-1] *= 2  # Results belong to the caller.
    found += squared_loss_gradient(source, y, found[-1][:, 0])
    found += paired_loss_gradient(source, y, found[-2])
    found.append(rows_at(source, np.array([5, 3, m - 1])))
    view = ScaledRows(source, y, paired=True)
    found += [
        view.mean(),
        view.squared_distances(),
        *view.covariance_times(np.ones(m // 2), np.zeros(n), np.eye(n)[:, :2]),
    ]
    for wrapped in (
        MaskedRows(source, y > 1.5),
        ShiftedRows(source, np.arange(n) / n),
        TransformedRows(ShiftedRows(source, found[1][:, 0]), np.diag(1.0 + np.arange(n))),
    ):
        found.append(project(wrapped, np.ones(n)))
    return found


def test_a_repeated_run_gets_the_same_results_without_touching_the_rows(rows):
    log = Remembered()
    plain = passes_of_every_kind(MemoryRows(rows))
    first = ReplayedRows(MemoryRows(rows), log)
    for expected, found in zip(plain, passes_of_every_kind(first), strict=True):
        assert_array_equal(found, expected)
    assert first.recalled == 0
    again = ReplayedRows(Unreadable(rows), log)
    for expected, found in zip(plain, passes_of_every_kind(again), strict=True):
        assert_array_equal(found, expected)
        assert found.strides == expected.strides
    assert again.recalled == again.passes == first.passes == len(log.kept)


@pytest.mark.parametrize("missing", [{0}, {3}, {2, 5}, {8, 9, 10, 11, 12, 13}])
def test_passes_that_are_missing_are_made_again_and_the_others_are_not(rows, missing):
    log, counted = Remembered(), MemoryRows(rows)
    plain = passes_of_every_kind(ReplayedRows(MemoryRows(rows), log))
    for number in missing:
        log.kept.pop(number, None)
    left = len(log.kept)
    again = ReplayedRows(counted, log)
    for expected, found in zip(plain, passes_of_every_kind(again), strict=True):
        assert_array_equal(found, expected)
    assert counted.passes == again.passes - again.recalled == again.passes - left
    assert set(log.kept) >= missing & set(range(again.passes))


def test_a_pass_that_fails_keeps_its_number(rows):
    log = Remembered()

    class Faulty(MemoryRows):
        faults = 1

        def read(self, start, stop):
            if self.faults:
                self.faults -= 1
                raise OSError("a loose cable")
            return super().read(start, stop)

    source = ReplayedRows(Faulty(rows), log)
    with pytest.raises(OSError, match="loose cable"):
        project(source, np.ones(7))
    assert log.kept == {}
    project(source, np.ones(7))
    assert set(log.kept) == {0}


class TestWhetherACallIsTheSame:
    @staticmethod
    def kernel(vectors, scale=2.0):
        def inner(block):
            return Parts(rows=(block @ vectors * scale,))

        return inner

    def same(self, one, other, per_row=(), other_per_row=None, pairing=(1, 1)):
        other_per_row = per_row if other_per_row is None else other_per_row
        return pass_digest(one, per_row, pairing[0]) == pass_digest(other, other_per_row, pairing[1])

    def test_equal_numbers_in_other_arrays_are_the_same(self):
        assert self.same(self.kernel(np.ones(3)), self.kernel(np.ones(3)))

    def test_the_last_digit_of_a_vector_counts(self):
        assert not self.same(self.kernel(np.ones(3)), self.kernel(np.array([1.0, 1.0, np.nextafter(1.0, 2.0)])))

    def test_the_order_in_memory_counts(self):
        matrix = np.arange(6.0).reshape(2, 3)
        assert not self.same(self.kernel(matrix), self.kernel(np.asfortranarray(matrix)))

    def test_types_numbers_pairing_and_per_sample_arrays_count(self):
        ones = np.ones(3)
        assert not self.same(self.kernel(ones), self.kernel(ones.astype(np.float32)))
        assert not self.same(self.kernel(ones), self.kernel(ones, 3.0))
        assert not self.same(self.kernel(ones), self.kernel(ones), pairing=(1, 2))
        assert not self.same(self.kernel(ones), self.kernel(ones), (ones,), (2 * ones,))
        assert not self.same(self.kernel(ones), self.kernel(ones), (ones,), ())

    def test_large_arrays_are_told_apart_by_a_part_of_them(self):
        many = np.zeros(100_000)
        assert self.same(self.kernel(many), self.kernel(many.copy()))
        assert not self.same(self.kernel(many), self.kernel(many + 1e-300))

    def test_what_a_kernel_does_counts(self):
        assert not self.same(lambda block: Parts(sums=(block.sum(),)), lambda block: Parts(sums=(block.max(),)))
        assert not self.same(lambda block: block * 2.0, lambda block: block * 3.0)

    def test_partial_functions_methods_and_objects_are_looked_into(self):
        class Kept(threading.local):
            def __init__(self):
                self.array = np.random.default_rng().random(3)

        class Holder:
            def __init__(self, values):
                self.values, self.lock, self.own = values, threading.Lock(), Kept()
                self.me = self

            def kernel(self, block):
                return Parts(rows=(block @ self.values,))

        ones = np.ones(3)
        assert self.same(Holder(ones).kernel, Holder(ones).kernel)
        assert not self.same(Holder(ones).kernel, Holder(2 * ones).kernel)
        assert self.same(partial(np.dot, b=ones), partial(np.dot, b=ones.copy()))
        assert not self.same(partial(np.dot, b=ones), partial(np.dot, b=2 * ones))

    def test_wrappers_count_with_what_they_do_but_not_with_their_rows(self, rows):
        def on(source):
            return lambda block: block - source.origin

        origin = np.ones(7)
        assert self.same(on(ShiftedRows(MemoryRows(rows), origin)), on(ShiftedRows(MemoryRows(rows + 1), origin)))
        assert not self.same(on(ShiftedRows(MemoryRows(rows), origin)), on(ShiftedRows(MemoryRows(rows), 2 * origin)))

    def test_looking_ends(self):
        endless: list[object] = []
        endless.append(endless)
        deep = None
        for _ in range(50):
            deep = [deep]
        assert self.same(self.kernel(endless), self.kernel(endless))
        assert self.same(self.kernel(deep), self.kernel(deep))

    def test_a_name_that_is_not_bound_yet_is_no_obstacle(self):
        def outer():
            def kernel(block):
                return later(block)

            digest = pass_digest(kernel, (), 1)
            later = np.negative
            return digest, kernel, later

        assert outer()[0] == outer()[0]

    def test_the_sample_of_a_large_array_is_small(self, monkeypatch):
        taken = []

        class Counting:
            def update(self, data):
                taken.append(len(bytes(data)))

        replay_module._take_content(Counting(), np.zeros((1_000_000, 2)))
        assert sum(taken) <= 2 * 8 * 2 * replay_module.ROWS

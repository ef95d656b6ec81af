"""Means of a few long vectors, in NumPy and in torch."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import aggregate


def updates(seed=0, count=20, bad=4, shape=(3000,), dtype=np.float32):
    rng = np.random.default_rng(seed)
    points = (0.1 + 0.5 * rng.standard_normal((count, *shape))).astype(dtype)
    points[:bad] = -points[bad:].mean(axis=0)
    return points


def test_colluding_senders_are_left_out(case):
    for dtype in [np.float32, np.float64, np.complex64]:
        with case(dtype):
            points = updates(dtype=dtype)
            found = aggregate(points, 0.2)
            assert found.dtype == dtype
            assert_allclose(found, points[4:].mean(axis=0), atol=1e-6)
            assert_allclose(aggregate(points, "auto"), found, atol=1e-6)


def test_updates_may_have_any_shape_and_come_in_a_list():
    points = updates(shape=(30, 10, 10))
    assert_allclose(aggregate(list(points), 0.2), points[4:].mean(axis=0), atol=1e-6)
    assert aggregate(points, 0.2).shape == (30, 10, 10)
    assert_allclose(aggregate([[1, 2], [1, 2], [1, 2]], 0.1), [1.0, 2.0])


def test_many_senders_of_short_vectors_are_welcome_too():
    points = updates(count=1000, bad=100, shape=(20,), dtype=np.float64)
    points[:100] = 3.0
    assert np.linalg.norm(aggregate(points, 0.1) - points[100:].mean(axis=0)) < 0.05


def test_what_cannot_be_averaged_is_refused():
    with pytest.raises(ValueError, match="no updates"):
        aggregate([], 0.1)
    with pytest.raises(ValueError, match="contamination must be"):
        aggregate(updates(), 0.6)
    with pytest.raises(ValueError, match="NaN or infinite"):
        aggregate(np.full((10, 50), np.nan), 0.1)


class Tensor:
    """As much of a torch tensor as aggregation uses, on an array; remembers what was moved to the host."""

    def __init__(self, values, moved=None):
        self.values = np.asarray(values)
        self.moved = [] if moved is None else moved

    def _like(self, values):
        return type(self)(values, self.moved)

    shape = property(lambda self: self.values.shape)
    T = property(lambda self: self._like(self.values.T))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        return self._like(self.values[key])

    def __setitem__(self, key, value):
        self.values[key] = value.values

    def __sub__(self, other):
        return self._like(self.values - other.values)

    def __matmul__(self, other):
        return self._like(self.values @ other.values)

    def detach(self):
        return self

    def reshape(self, *shape):
        return self._like(self.values.reshape(*shape))

    def double(self):
        return self._like(self.values.astype(np.float64))

    def isfinite(self):
        return self._like(np.isfinite(self.values))

    def all(self, dim):
        return self._like(self.values.all(axis=dim))

    def new_tensor(self, values):
        return self._like(np.asarray(values, self.values.dtype))

    def new_empty(self, shape):
        return self._like(np.empty(shape, self.values.dtype))

    def cpu(self):
        self.moved.append(self.values.size)
        return self

    def numpy(self):
        return self.values


@pytest.fixture
def tensor(monkeypatch):
    """A maker of tensors: those of torch where it is installed, else stand-ins that say they come from there."""
    try:
        import torch
    except ModuleNotFoundError:
        monkeypatch.setattr(Tensor, "__module__", "torch")
        monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
        return Tensor
    return torch.as_tensor


def test_tensors_go_in_and_come_out(tensor):
    points = updates(shape=(60, 50))
    for given in (tensor(points), [tensor(point) for point in points]):
        found = aggregate(given, 0.2)
        assert type(found) is type(tensor(points))
        assert found.numpy().dtype == np.float32
        assert_allclose(found.numpy(), points[4:].mean(axis=0), atol=1e-6)


def test_nothing_long_leaves_the_device(tensor):
    given = tensor(updates(shape=(60, 50)))
    aggregate(given, 0.2)
    if isinstance(given, Tensor):
        assert max(given.moved) == 20 * 20


def test_short_tensors_and_levels_of_zero_take_the_way_of_arrays(tensor):
    points = updates(count=400, bad=40, shape=(10,))
    assert_allclose(aggregate(tensor(points), 0.1).numpy(), aggregate(points, 0.1), atol=1e-6)
    assert_allclose(aggregate(tensor(updates()), 0.0).numpy(), updates().mean(axis=0), atol=1e-6)


def test_tensors_that_are_not_finite_are_refused(tensor):
    points = updates()
    points[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"1 updates hold NaN or infinite entries \(first: update 7\)"):
        aggregate(tensor(points), 0.2)

"""Rows copied to a temporary file: the same rows, one pass, and nothing left behind."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from robustphase.rows import MemoryRows
from robustphase.rows import spilled as module
from robustphase.rows.passes import project
from robustphase.rows.spilled import spilled
from robustphase.rows.wrapped import MaskedRows, RescaledRows


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Several pieces, the last of them shorter.
    monkeypatch.setattr(module, "PIECE_BYTES", 1000)
    return tmp_path


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_rows_come_back_as_they_were(temporary, dtype):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((500, 7)).astype(dtype) * dtype(1 + 1j if dtype is np.complex128 else 1)
    base, chosen = MemoryRows(A), np.sort(rng.choice(500, 333, replace=False))
    source = RescaledRows(MaskedRows(base, np.arange(500) % 5 == 0), 2.0)
    with spilled(source, chosen) as rows:
        assert (source.passes, base.passes) == (1, 1)
        expected = source.take(chosen)
        assert (rows.shape, rows.dtype, rows.on_disk) == (expected.shape, expected.dtype, True)
        assert_array_equal(rows.read(0, 333), expected)
        assert_array_equal(project(rows, np.ones(7)), project(MemoryRows(expected), np.ones(7)))
    assert not list(temporary.iterdir())


def test_nothing_is_left_behind_when_the_work_fails(temporary):
    with pytest.raises(KeyboardInterrupt), spilled(MemoryRows(np.ones((50, 3))), np.arange(20)):
        raise KeyboardInterrupt
    assert not list(temporary.iterdir())


def test_a_disk_without_room_is_left_alone(temporary, monkeypatch):
    source = MemoryRows(np.ones((50, 3)))
    monkeypatch.setattr(module, "ROOM", np.inf)
    with spilled(source, np.arange(20)) as rows:
        assert rows is None
    assert source.passes == 0


def test_a_disk_that_is_full_before_the_end_gives_no_rows(temporary, monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fdopen", lambda *_, **__: Full())
    with spilled(MemoryRows(np.ones((50, 3))), np.arange(20)) as rows:
        assert rows is None
    assert not list(temporary.iterdir())

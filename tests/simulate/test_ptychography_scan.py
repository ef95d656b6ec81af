"""The scan of the example, read from a package like the one it comes in; and what is said where there is none."""

import bz2
import os
import pickle
import sys
import tarfile

import numpy as np
import pytest
from benchmarks import ptychography_example
from benchmarks.ptychography_scan import MEMBER, estimate_probe, load_scan
from numpy.testing import assert_array_equal

from robustphase import distance
from robustphase.simulate import Ptychography

SIDE, SIZE = 12, 34


@pytest.fixture(scope="module")
def scan():
    """Frames of a smooth object, with a probe that is a spot with curved phases: patterns, positions, guess, probe."""
    rng = np.random.default_rng(0)
    corners = np.stack(np.meshgrid(np.arange(0, SIZE - SIDE + 1, 3), np.arange(0, SIZE - SIDE + 1, 3)), axis=-1)
    corners = corners.reshape(-1, 2) + rng.integers(0, 2, (corners.size // 2, 2))
    corners = np.minimum(corners, SIZE - SIDE)
    x, y = np.meshgrid(*[np.linspace(-1, 1, SIDE)] * 2)
    spot = np.exp(-3 * (x**2 + y**2))
    probe = 30 * spot * np.exp(1.5j * (x**2 + y**2 + 0.5 * x))
    phases = rng.standard_normal((SIZE, SIZE))
    operator = Ptychography(probe, corners, (SIZE, SIZE))
    patterns = np.abs(operator @ np.exp(0.5j * phases).ravel()) ** 2
    return patterns.reshape(len(corners), SIDE, SIDE), corners.astype(np.float32), spot.astype(complex), probe


def packed(path, content):
    with bz2.open(path.parent / MEMBER, "wb") as file:
        pickle.dump(content, file)
    with tarfile.open(path, "w:gz") as package:
        package.add(path.parent / MEMBER, f"tike-0.26.0/tests/data/{MEMBER}")
    return path


def test_a_scan_is_read_from_the_package(tmp_path, scan):
    patterns, true, guess, _ = scan
    # Some of the arrays have further axes there.
    path = packed(
        tmp_path / "package.tar.gz", [patterns[np.newaxis], true[np.newaxis] + 2, true, guess[np.newaxis, np.newaxis]]
    )
    found = load_scan(path)
    assert_array_equal(found["patterns"], patterns)
    assert_array_equal(found["true_positions"], true)
    assert_array_equal(found["recorded_positions"], true + 2)
    assert found["probe"].shape == guess.shape


def test_the_probe_is_found_along_with_the_object(scan):
    patterns, true, guess, probe = scan
    found = estimate_probe(patterns, true, guess, steps=300)
    before = distance(30 * guess.ravel(), probe.ravel(), relative=True)
    assert before > 0.3
    assert distance(found.ravel(), probe.ravel(), relative=True) < before / 3


def test_programs_in_a_package_are_not_run(tmp_path):
    class Program:
        def __reduce__(self):
            return os.system, ("true",)

    with pytest.raises(pickle.UnpicklingError, match="no part of an array"):
        load_scan(packed(tmp_path / "package.tar.gz", [Program()]))


def test_another_package_is_refused(tmp_path):
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz"):
        pass
    with pytest.raises(SystemExit, match="holds no position-error"):
        load_scan(tmp_path / "other.tar.gz")


def test_without_the_data_the_example_says_where_they_are_and_ends(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ptychography_example"])
    ptychography_example.main()
    assert "pip download tike==0.26.0" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["ptychography_example", "--data", "none.npz"])
    with pytest.raises(SystemExit, match="there is no file"):
        ptychography_example.main()
    assert list(tmp_path.iterdir()) == []
